"""EPT and EPT*: the bare network and its ablations, tied copies, counts, the one stored row."""

from typing import Any

import pytest
import torch
from prompts_by_hand import CPU, by_hand, trained
from tiny_backbones import some_text
from torch import Tensor
from torch.nn import functional as F

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.backbones.load import load
from trials.methods.ept import Ept
from trials.methods.ept_star import EptStar
from trials.methods.lanes import Lanes

# S lanes, P prompt rows, D width

SEEDS = (0, 1, 2)
RATE: dict[str, Any] = {"learning_rate": 0.1}
METHODS: dict[str, Any] = {"ept": Ept, "ept_star": EptStar}


@pytest.fixture
def bert(tiny_folders: dict[str, Any]) -> Backbone:
    return load(str(tiny_folders["bert"]), CPU)


def projected(adapter: Any, lane: int) -> Tensor:
    """(P W_down) W_up of one lane."""
    down_DR, up_RD = (m.weight_SIO[lane] for m in (adapter.network.down, adapter.network.up))
    return (adapter.prompt_SPD[lane] @ down_DR) @ up_RD


@pytest.mark.parametrize("bottleneck", [1, 3])
@torch.no_grad()
def test_the_row_before_the_text_is_the_formula(backbone: Backbone, bottleneck: int) -> None:
    adapter = trained(Ept(**RATE, bottleneck=bottleneck), backbone, SEEDS)
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, adapter.edits(train=False))
    kept = text.mask_NT.bool()
    rows_SPD = torch.stack([projected(adapter, lane) for lane in range(3)])
    assert rows_SPD.shape[1] == 1
    assert (ours - by_hand(backbone, text, rows_SPD))[kept].abs().max() <= 1e-5
    assert (ours - backbone.run(text, Edits()))[kept].abs().max() > 0.1
    bare = by_hand(backbone, text, adapter.prompt_SPD)
    assert (ours - bare)[kept].abs().max() > 1e-2


@torch.no_grad()
def test_with_one_hidden_unit_the_row_is_a_multiple_of_a_learned_direction(bert: Backbone) -> None:
    adapter = trained(Ept(**RATE, prompt_length=4), bert, SEEDS)
    direction_S1D = adapter.network.up.weight_SIO
    cosine_SP = F.cosine_similarity(adapter.rows(), direction_S1D, dim=-1)
    assert torch.allclose(cosine_SP.abs(), torch.ones(3, 4), atol=1e-5)
    assert (F.cosine_similarity(adapter.prompt_SPD, direction_S1D, dim=-1).abs() < 0.9).all()


ABLATIONS: dict[str, dict[str, Any]] = {
    "layer_norm": {"layer_norm": True},
    "residual": {"residual": True},
    "relu": {"activation": "relu"},
    "tanh": {"activation": "tanh"},
    "sigmoid": {"activation": "sigmoid"},
    "second pass": {"num_passes": 2},
}


@pytest.mark.parametrize("ablation", ABLATIONS)
@torch.no_grad()
def test_each_further_structure_is_where_figure_9_and_table_4_put_it(
    bert: Backbone, ablation: str
) -> None:
    adapter = trained(Ept(**RATE, bottleneck=3, **ABLATIONS[ablation]), bert, SEEDS)
    network = adapter.network
    for lane in range(3):
        row_1D = adapter.prompt_SPD[lane]
        down_DR, up_RD = network.down.weight_SIO[lane], network.up.weight_SIO[lane]
        bare_1D = row_1D @ down_DR @ up_RD
        if ablation == "layer_norm":
            scale_D, shift_D = network.norm.scale_SD[lane], network.norm.shift_SD[lane]
            expected_1D = F.layer_norm(bare_1D, bare_1D.shape[-1:], scale_D, shift_D)
        elif ablation == "residual":
            expected_1D = row_1D + bare_1D
        elif ablation == "second pass":
            expected_1D = bare_1D @ down_DR @ up_RD
        else:
            expected_1D = getattr(torch, ablation)(row_1D @ down_DR) @ up_RD
        assert (adapter.rows()[lane] - expected_1D).abs().max() <= 1e-5
    plain_SPD = torch.stack([projected(adapter, lane) for lane in range(3)])
    assert (adapter.rows() - plain_SPD).abs().max() > 1e-2


@torch.no_grad()
def test_the_copies_are_tied_and_equal_epts_row(backbone: Backbone) -> None:
    one, star = (trained(m(**RATE), backbone, SEEDS) for m in METHODS.values())
    assert [w.shape for w in star.parameters()] == [w.shape for w in one.parameters()]
    assert star.rows().shape[1] == 10
    assert torch.equal(star.rows(), one.rows().repeat(1, 10, 1))
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, star.edits(train=False))
    kept = text.mask_NT.bool()
    expected = by_hand(backbone, text, one.rows().repeat(1, 10, 1))
    assert (ours - expected)[kept].abs().max() <= 1e-5
    single = backbone.run(text, one.edits(train=False))
    assert (ours - single)[kept].abs().max() > 1e-2


def test_the_network_after_the_repetition_is_the_same_with_its_gradients(bert: Backbone) -> None:
    star = trained(EptStar(**RATE, prompt_length=4), bert, SEEDS)
    source = torch.Generator().manual_seed(1)
    direction_SPD = torch.randn(star.rows().shape, generator=source)

    def gradients(rows_SPD: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((rows_SPD * direction_SPD).sum(), [*star.parameters()]))

    ours = gradients(star.rows())
    equation_5 = gradients(star.network(star.prompt_SPD.repeat(1, 4, 1)))
    for found, expected in zip(ours, equation_5, strict=True):
        assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()
        assert expected.abs().max() > 1e-2


@pytest.mark.parametrize("method", METHODS.values())
@torch.no_grad()
def test_fused_one_row_is_stored(bert: Backbone, method: Any) -> None:
    adapter = trained(method(**RATE), bert, SEEDS)
    text = some_text(bert, lengths=(7, 12, 3, 9, 9, 5))
    ours = bert.run(text, adapter.edits(train=False))
    fused = adapter.fuse(bert)
    for weight in adapter.parameters():
        weight.neg_()  # three factors: their product turns around
    assert torch.equal(bert.run(text, fused.edits(train=False)), ours)
    assert (bert.run(text, adapter.edits(train=False)) - ours).abs().max() > 1e-2
    assert not list(fused.parameters())
    stored = [buffer.untyped_storage().nbytes() for buffer in fused.buffers()]
    assert stored == [3 * bert.shape.width * 4]


@pytest.mark.parametrize("method", METHODS.values())
def test_a_fresh_row_is_uniform_and_the_network_starts_as_torchs(
    bert: Backbone, method: Any
) -> None:
    adapter: Any = method(**RATE, bottleneck=50).attach(bert, Lanes(SEEDS, CPU))
    width = bert.shape.width
    bounds = {adapter.prompt_SPD: 0.5}
    bounds[adapter.network.down.weight_SIO] = width**-0.5
    bounds[adapter.network.up.weight_SIO] = 50**-0.5
    assert len(list(adapter.parameters())) == 3
    for weight, bound in bounds.items():
        assert 0.8 * bound < weight.abs().max().item() <= bound
        assert not torch.equal(weight[0], weight[1])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("values", "backbone_name", "count"),
    [
        ({}, "t5-small", 1_536),
        ({}, "t5-base", 2_304),
        ({}, "t5-large", 3_072),
        ({"num_passes": 2}, "t5-base", 2_304),
        ({}, "roberta-base", 2_304),
        ({"bottleneck": 1000}, "t5-base", 1_536_768),
        ({"layer_norm": True}, "t5-base", 3_840),
        ({"residual": True, "activation": "tanh"}, "t5-base", 2_304),
    ],
)
def test_it_counts_what_the_paper_says(
    name: str, values: dict[str, Any], backbone_name: str, count: int
) -> None:
    assert parameters(name, RATE | values, backbone_name, 2)[0] == count


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bottleneck", 0),
        ("num_passes", 0),
        ("prompt_length", 0),
        ("activation", "gelu"),
        ("layer_norm", 1),
        ("residual", "yes"),
    ],
)
@pytest.mark.parametrize("method", METHODS.values())
def test_values_outside_their_domain_are_refused(method: Any, field: str, value: object) -> None:
    pattern = f"^{method.__name__}: {field} must be .*, got {value!r}$"
    with pytest.raises(ValueError, match=pattern):
        method(**RATE | {field: value})
