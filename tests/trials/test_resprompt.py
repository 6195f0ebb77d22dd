"""Residual prompt tuning: the block and its passes, first values, counts, the fused rows."""

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
from trials.methods.lanes import Lanes
from trials.methods.prompts import FusedPrompt
from trials.methods.resprompt import ResPrompt

# S lanes, P prompt rows, D width

SEEDS = (0, 1, 2)
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "prompt_length": 5, "bottleneck": 6}
FUNCTIONS = {"relu": F.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}


@pytest.fixture
def bert(tiny_folders: dict[str, Any]) -> Backbone:
    return load(str(tiny_folders["bert"]), CPU)


def encoded(adapter: Any, activation: str, num_passes: int) -> Tensor:
    """g(P) of every lane, with torch's own linear layers and LayerNorm."""
    network, rows = adapter.network, []
    for lane, x_PD in enumerate(adapter.prompt_SPD):
        y_PD = x_PD
        for _ in range(num_passes):
            y_PD = F.linear(y_PD, network.down.weight_SIO[lane].T, network.down.bias_SO[lane])
            y_PD = FUNCTIONS[activation](y_PD)
            y_PD = F.linear(y_PD, network.up.weight_SIO[lane].T, network.up.bias_SO[lane])
            scale_D, shift_D = network.norm.scale_SD[lane], network.norm.shift_SD[lane]
            y_PD = F.layer_norm(y_PD, y_PD.shape[-1:], scale_D, shift_D)
        rows.append(x_PD + y_PD)
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("activation", "num_passes"), [("relu", 1), ("relu", 2), ("tanh", 1), ("sigmoid", 2)]
)
@torch.no_grad()
def test_the_rows_before_the_text_are_the_formula(
    backbone: Backbone, activation: str, num_passes: int
) -> None:
    method = ResPrompt(**VALUES, activation=activation, num_passes=num_passes)
    adapter = trained(method, backbone, SEEDS)
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, adapter.edits(train=False))
    kept = text.mask_NT.bool()
    rows_SPD = encoded(adapter, activation, num_passes)
    assert (ours - by_hand(backbone, text, rows_SPD))[kept].abs().max() <= 1e-5
    assert (ours - backbone.run(text, Edits()))[kept].abs().max() > 0.1
    other = encoded(adapter, activation, 3 - num_passes)
    assert (ours - by_hand(backbone, text, other))[kept].abs().max() > 1e-3
    bare = by_hand(backbone, text, adapter.prompt_SPD)
    assert (ours - bare)[kept].abs().max() > 0.1


def test_a_second_pass_has_no_weights_of_its_own(bert: Backbone) -> None:
    one, two = (ResPrompt(**VALUES, num_passes=n).attach(bert, Lanes(SEEDS, CPU)) for n in (1, 2))
    assert [weight.shape for weight in one.parameters()] == [w.shape for w in two.parameters()]
    assert (one.rows() - two.rows()).abs().max() > 0.1


def test_a_fresh_network_starts_as_torchs_own(bert: Backbone) -> None:
    method = ResPrompt(learning_rate=1e-3, prompt_length=5, bottleneck=50)
    adapter: Any = method.attach(bert, Lanes(SEEDS, CPU))
    network, width = adapter.network, bert.shape.width
    for layer, inputs in ((network.down, width), (network.up, 50)):
        for weight in layer.parameters():
            assert 0.8 * inputs**-0.5 < weight.abs().max().item() <= inputs**-0.5
            assert not torch.equal(weight[0], weight[1])
    assert (network.norm.scale_SD == 1).all()
    assert (network.norm.shift_SD == 0).all()
    words_VD = bert.words.weight
    for row_D in adapter.prompt_SPD.flatten(0, 1):
        assert (words_VD == row_D).all(1).any()


@torch.no_grad()
def test_fused_only_the_encoded_rows_are_left(bert: Backbone) -> None:
    adapter = trained(ResPrompt(**VALUES, num_passes=2), bert, SEEDS)
    text = some_text(bert, lengths=(7, 12, 3, 9, 9, 5))
    ours = bert.run(text, adapter.edits(train=False))
    fused = adapter.fuse(bert)
    assert isinstance(fused, FusedPrompt)
    assert torch.equal(bert.run(text, fused.edits(train=False)), ours)
    assert not list(fused.parameters())
    assert [tuple(buffer.shape) for buffer in fused.buffers()] == [(3, 5, bert.shape.width)]
    bare = FusedPrompt(adapter.prompt_SPD)
    assert (bert.run(text, bare.edits(train=False)) - ours).abs().max() > 1e-2


@pytest.mark.parametrize(
    ("bottleneck", "backbone_name", "count"),
    [
        (400, "t5-small", 416_656),
        (400, "t5-base", 624_784),
        (400, "t5-large", 832_912),
        (400, "roberta-base", 624_784),
        (128, "roberta-base", 206_720),
    ],
)
@pytest.mark.parametrize("num_passes", [1, 2])
def test_ten_rows_count_what_the_papers_say(
    bottleneck: int, backbone_name: str, count: int, num_passes: int
) -> None:
    values = VALUES | {
        "prompt_length": 10,
        "bottleneck": bottleneck,
        "num_passes": num_passes,
    }
    assert parameters("resprompt", values, backbone_name, 2)[0] == count


@pytest.mark.parametrize(
    ("field", "value"),
    [("bottleneck", 0), ("bottleneck", 1.5), ("num_passes", 0), ("activation", "gelu")],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^ResPrompt: {field} must be .*, got {value!r}$"):
        ResPrompt(**VALUES | {field: value})
