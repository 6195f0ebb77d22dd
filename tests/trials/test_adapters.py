"""Adapters and AdapterDrop: the formula at both places, the blocks without, counts, the start."""

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor
from torch.nn import functional as F

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.methods.adapterdrop import AdapterDrop
from trials.methods.adapters import Adapters, BottleneckAdapter
from trials.methods.lanes import Lanes

# N rows, T tokens, D width

CPU = torch.device("cpu")
VALUES = {"learning_rate": 1e-3, "bottleneck": 8}
FUNCTIONS = {"gelu": F.gelu, "relu": F.relu}


def trained(
    method: Adapters, backbone: Backbone, seeds: tuple[int, ...] = (0,)
) -> BottleneckAdapter:
    """An adapter as training may leave it: no weight is near zero."""
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=source)
    return adapter


def by_hand(
    adapter: BottleneckAdapter, backbone: Backbone, text: Text, lane: int, activation: str
) -> Tensor:
    """h + W2 f(h W1 + b1) + b2 by bare hooks while Hugging Face's own forward drives."""
    hooks = []
    upper = list(enumerate(backbone.model.encoder.layer))[adapter.first_block :]
    for number, (_, block) in enumerate(upper):
        for place, path in enumerate(("attention.output.dense", "output.dense")):
            w1, b1, w2, b2 = (
                weight[lane, number, place]
                for weight in (
                    adapter.down_SLKDR,
                    adapter.down_bias_SLKR,
                    adapter.up_SLKRD,
                    adapter.up_bias_SLKD,
                )
            )

            def add(_: object, __: object, h: Tensor, w1=w1, b1=b1, w2=w2, b2=b2) -> Tensor:
                return h + FUNCTIONS[activation](h @ w1 + b1) @ w2 + b2

            hooks.append(block.get_submodule(path).register_forward_hook(add))
    output = own_forward(backbone, text)
    for hook in hooks:
        hook.remove()
    return output


@pytest.mark.parametrize("activation", ["gelu", "relu"])
@pytest.mark.parametrize("num_dropped", [0, 1, 2])
@torch.no_grad()
def test_every_lane_has_its_networks_after_both_sublayers(
    backbone: Backbone, activation: str, num_dropped: int
) -> None:
    values = VALUES | {"activation": activation}
    method = AdapterDrop(**values, num_dropped=num_dropped) if num_dropped else Adapters(**values)
    adapter = trained(method, backbone, (0, 1))
    assert adapter.first_block == num_dropped
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        expected = by_hand(adapter, backbone, text, lane, activation)[rows]
        assert (ours[rows] - expected).abs().max() <= 1e-5
        swapped = by_hand(adapter, backbone, text, 1 - lane, activation)[rows]
        assert (ours[rows] - swapped).abs().max() > 0.1
    other = by_hand(adapter, backbone, text, 0, "relu" if activation == "gelu" else "gelu")[:2]
    assert (ours[:2] - other).abs().max() > 1e-3
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1


@torch.no_grad()
def test_the_dropped_blocks_give_what_the_plain_ones_do(backbone: Backbone) -> None:
    adapter = trained(AdapterDrop(**VALUES, num_dropped=2), backbone)
    text = some_text(backbone, lengths=(7, 12))
    entered: list[Tensor] = []

    def note(h_NTD: Tensor, *_: object) -> Tensor:
        entered.append(h_NTD)
        return h_NTD

    edits = adapter.edits(train=False)
    assert {block for block, _ in edits.outputs} == {2}
    changed = backbone.run(text, Edits(hidden={2: note}, outputs=edits.outputs))
    plain = backbone.run(text, Edits(hidden={2: note}))
    assert torch.equal(entered[0], entered[1])
    assert (changed - plain).abs().max() > 0.1
    states = backbone.run(text, edits, start=2, states_NTD=entered[0])
    assert torch.equal(states, changed)


@pytest.mark.parametrize("method", [Adapters(**VALUES), AdapterDrop(**VALUES, num_dropped=1)])
@torch.no_grad()
def test_the_start_is_near_the_identity(backbone: Backbone, method: Adapters) -> None:
    adapter = method.attach(backbone, Lanes((0, 1), CPU))
    for weight in (adapter.down_SLKDR, adapter.up_SLKRD):
        assert weight.std().item() == pytest.approx(0.01, rel=0.1)
        assert not torch.equal(weight[0], weight[1])
    assert not adapter.down_bias_SLKR.any()
    assert not adapter.up_bias_SLKD.any()
    text = some_text(backbone, lengths=(7, 12))
    effect = (backbone.run(text, adapter.edits(train=False)) - own_forward(backbone, text)).abs()
    assert 1e-6 < effect.max() < 1e-2
    wide = Adapters(**VALUES, init_std=0.1).attach(backbone, Lanes((0,), CPU))
    assert wide.down_SLKDR.std().item() == pytest.approx(0.1, rel=0.1)


def test_there_is_nothing_to_fuse(backbone: Backbone) -> None:
    adapter = Adapters(**VALUES).attach(backbone, Lanes((0,), CPU))
    assert adapter.fuse(backbone) is adapter


def test_the_counts_are_those_of_the_formula() -> None:
    def count(method: str, backbone: str, **values: int) -> int:
        return parameters(method, {"learning_rate": 1e-3, **values}, backbone, 2)[0]

    assert count("adapters", "roberta-large", bottleneck=64) == 6_343_680
    # the T5 codes': 48 networks, or 28, of which RoBERTa-base has half; LayerNorms apart
    assert count("adapters", "roberta-base", bottleneck=24) * 2 == 1_855_104 - 62 * 768
    dropped = count("adapterdrop", "roberta-base", bottleneck=24, num_dropped=5)
    assert dropped * 2 == 1_101_984 - 62 * 768


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bottleneck", 0),
        ("bottleneck", 2.5),
        ("activation", "tanh"),
        ("init_std", 0),
        ("init_std", -0.1),
        ("init_std", float("nan")),
        ("num_dropped", 0),
        ("num_dropped", 1.5),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^AdapterDrop: {field} must be .*, got {value!r}$"):
        AdapterDrop(**VALUES | {"num_dropped": 1, field: value})


def test_a_block_must_keep_its_adapters(backbone: Backbone) -> None:
    AdapterDrop(**VALUES, num_dropped=2).check(backbone.shape)
    family = backbone.shape.family
    pattern = f"^AdapterDrop: num_dropped must be at most 2 on this {family}, got 3$"
    with pytest.raises(ValueError, match=pattern):
        AdapterDrop(**VALUES, num_dropped=3).check(backbone.shape)
