"""P-Tuning v2: attention by hand, counts of the paper, the network that is dropped, its dropout."""

# S lanes, N = S x b rows, T tokens, L blocks, C 2: keys and values, P prefix length, D width

from typing import Any

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.files import shape_of
from trials.methods.lanes import Lanes
from trials.methods.prefixes import PrefixAdapter
from trials.methods.ptuning_v2 import PTuningV2

CPU = torch.device("cpu")
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "prompt_length": 4}

with_prefixes = pytest.mark.parametrize("family", ["bert", "roberta"], indirect=True)


def built(backbone: Backbone, *seeds: int, **values: Any) -> PrefixAdapter:
    adapter = PTuningV2(**VALUES | values).attach(backbone, Lanes(seeds or (0,), CPU))
    assert isinstance(adapter, PrefixAdapter)
    return adapter


def by_hand(prefix_LCPD: Tensor, backbone: Backbone, text: Text) -> Tensor:
    """Attention written out: a bare hook on each block's replaces what it gives."""
    hooks = []
    for block, (keys_PD, values_PD) in zip(backbone.blocks, prefix_LCPD, strict=True):
        own = block.attention.self
        heads = own.num_attention_heads

        def attend(
            _: object,
            args: tuple[Tensor, ...],
            output: tuple[Tensor, ...],
            own: Any = own,
            keys_PD: Tensor = keys_PD,
            values_PD: Tensor = values_PD,
            heads: int = heads,
        ) -> tuple[Any, ...]:
            h_NTD, num_rows = args[0], len(args[0])
            keys = torch.cat([keys_PD.expand(num_rows, -1, -1), own.key(h_NTD)], 1)
            values = torch.cat([values_PD.expand(num_rows, -1, -1), own.value(h_NTD)], 1)
            q, k, v = (x.unflatten(-1, (heads, -1)) for x in (own.query(h_NTD), keys, values))
            scores = torch.einsum("nqhw,nkhw->nhqk", q, k) / q.shape[-1] ** 0.5
            hidden_NT = text.mask_NT == 0
            scores[..., len(keys_PD) :].masked_fill_(hidden_NT[:, None, None], -torch.inf)
            context = torch.einsum("nhqk,nkhw->nqhw", scores.softmax(-1), v)
            return (context.flatten(2), *output[1:])

        hooks.append(own.register_forward_hook(attend))
    found = own_forward(backbone, text)
    for hook in hooks:
        hook.remove()
    return found


@with_prefixes
@pytest.mark.parametrize("width", [0, 16])
@torch.no_grad()
def test_every_block_attends_to_its_lanes_keys_and_values(backbone: Backbone, width: int) -> None:
    adapter = built(backbone, 0, 1, reparametrisation_width=width)
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    prefix_SLCPD = adapter.prefixes()
    assert prefix_SLCPD.shape == (2, backbone.shape.num_blocks, 2, 4, backbone.shape.width)
    tokens_NT = text.mask_NT.bool()
    lane_N = torch.tensor([0, 0, 1, 1])
    for lane, prefix_LCPD in enumerate(prefix_SLCPD):
        expected = by_hand(prefix_LCPD, backbone, text)
        mine = tokens_NT & (lane_N == lane)[:, None]
        others = tokens_NT & (lane_N != lane)[:, None]
        assert (ours - expected)[mine].abs().max() <= 1e-5
        assert (ours - expected)[others].abs().max() > 0.1
        swapped = by_hand(prefix_LCPD.flip(1), backbone, text)  # values as keys, keys as values
        assert (ours - swapped)[mine].abs().max() > 0.1


@with_prefixes
@torch.no_grad()
def test_the_network_is_two_linear_layers_around_a_tanh(backbone: Backbone) -> None:
    adapter = built(backbone, 0, 1, reparametrisation_width=16)
    rows, w1, b1, w2, b2 = (weight[1] for weight in adapter.parameters())
    made_PM = torch.tanh(rows @ w1 + b1) @ w2 + b2
    by_position = made_PM.view(4, backbone.shape.num_blocks, 2, backbone.shape.width)
    assert torch.allclose(adapter.prefixes()[1], by_position.permute(1, 2, 0, 3), atol=1e-6)
    linear = (rows @ w1 + b1) @ w2 + b2
    assert (linear - made_PM).abs().max() > 0.1


@with_prefixes
@pytest.mark.parametrize("width", [0, 16])
@torch.no_grad()
def test_fused_nothing_is_left_but_keys_and_values(backbone: Backbone, width: int) -> None:
    adapter = built(backbone, 0, 1, 2, reparametrisation_width=width, dropout=0.5)
    fused = adapter.fuse(backbone)
    text = some_text(backbone, lengths=(7, 12, 3, 9, 9, 5))
    ours = backbone.run(text, adapter.edits(train=False))
    for train in (False, True):  # no dropout is left either
        assert torch.equal(backbone.run(text, fused.edits(train=train)), ours)
    (left,) = fused.parameters()
    assert left.shape == (3, backbone.shape.num_blocks, 2, 4, backbone.shape.width)
    assert not left.requires_grad
    assert (ours - backbone.run(text, Edits())).abs().max() > 0.1
    adapter.get_parameter("rows_SPD" if width else "prefix_SLCPD").zero_()
    assert torch.equal(backbone.run(text, fused.edits(train=False)), ours)
    left.copy_(left.roll(1, 0))
    assert (backbone.run(text, fused.edits(train=False)) - ours).abs().max() > 0.1


@with_prefixes
@torch.no_grad()
def test_kept_lanes_go_on_with_their_own_prefixes(backbone: Backbone) -> None:
    adapter = built(backbone, 0, 1, 2)
    fused = adapter.fuse(backbone)
    text = some_text(backbone, lengths=(9, 9, 9))
    all_lanes = Text(text.ids_NT, text.mask_NT)
    first = backbone.run(all_lanes, adapter.edits(train=False))
    rows = [0, 2]
    two_lanes = Text(text.ids_NT[rows], text.mask_NT[rows])
    for kept in (adapter, fused):
        kept.keep(rows)
        found = backbone.run(two_lanes, kept.edits(train=False))
        assert (found - first[rows]).abs().max() <= 1e-5
        kept.keep([1, 0])
        swapped = backbone.run(two_lanes, kept.edits(train=False))
        assert (swapped - first[rows]).abs().max() > 0.1


@with_prefixes
def test_prefixes_start_normal_with_the_deviation_asked_for(backbone: Backbone) -> None:
    for values, std in [({}, 1.0), ({"init_std": 0.02}, 0.02)]:
        adapter = built(backbone, 0, 1, prompt_length=50, **values)
        first = adapter.get_parameter("prefix_SLCPD")
        assert first.std().item() == pytest.approx(std, rel=0.05)
        assert first.mean().abs().item() < 0.05 * std
        assert not torch.equal(first[0], first[1])


@with_prefixes
@torch.no_grad()
def test_dropout_differs_by_text_and_is_there_in_training_only(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(9, 9))
    same = Text(text.ids_NT[[0, 0]], text.mask_NT[[0, 0]])
    adapter = built(backbone, dropout=0.5)
    still = backbone.run(same, adapter.edits(train=False))
    assert (still[0] - still[1]).abs().max() <= 1e-5
    shaken = backbone.run(same, adapter.edits(train=True))
    assert (shaken - still).abs().max() > 0.1
    assert (shaken[0] - shaken[1]).abs().max() > 0.1
    without = built(backbone, dropout=0.0)
    assert torch.equal(backbone.run(same, without.edits(train=True)), still)


@torch.no_grad()
def test_a_quarter_of_keys_and_values_is_dropped_and_the_rest_scaled() -> None:
    shape = shape_of("minilm")
    method = PTuningV2(**VALUES | {"prompt_length": 100, "dropout": 0.25})
    adapter = method.build(shape, Lanes((0,), CPU), torch.empty(0))
    prefix_SCPD = adapter.get_parameter("prefix_SLCPD")[:, 0]
    text = Text(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.long))
    keys, values = adapter.edits(train=True).prefix[0](text)
    whole_keys, _ = adapter.edits(train=False).prefix[0](text)
    assert keys.shape == values.shape == (2, shape.num_heads, 100, shape.width // shape.num_heads)
    assert torch.equal(whole_keys[1].transpose(0, 1).flatten(1), prefix_SCPD[0, 0])
    assert (keys == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert torch.allclose(keys[keys != 0], whole_keys[keys != 0] / 0.75)


@pytest.mark.parametrize(
    ("backbone_name", "values", "count"),
    [
        ("roberta-base", {"prompt_length": 10}, 184_320),
        ("roberta-large", {"prompt_length": 100}, 4_915_200),
        (
            "roberta-base",
            {"prompt_length": 10, "reparametrisation_width": 512},
            10 * 768 + 768 * 512 + 512 + 512 * 2 * 12 * 768 + 2 * 12 * 768,
        ),
    ],
)
def test_as_many_numbers_are_trained_as_the_paper_has(
    backbone_name: str, values: dict[str, Any], count: int
) -> None:
    adapter, _ = parameters("ptuning_v2", VALUES | values, backbone_name, 2)
    assert adapter == count


def test_no_position_is_taken_from_the_text() -> None:
    method = PTuningV2(**VALUES | {"prompt_length": 5000})
    assert method.num_positions == 0
    method.check(shape_of("roberta-base"))


@pytest.mark.parametrize("name", ["deberta-xl"])
def test_a_backbone_that_takes_no_prefixes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^PTuningV2: prompt_length .* which deberta's does not$"):
        PTuningV2(**VALUES).check(shape_of(name))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_length", 0),
        ("prompt_length", 2.5),
        ("init_std", 0),
        ("init_std", float("inf")),
        ("init_std", float("nan")),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("reparametrisation_width", -1),
        ("reparametrisation_width", 1.5),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^PTuningV2: {field} must be .*, got {value!r}$"):
        PTuningV2(**VALUES | {field: value})
