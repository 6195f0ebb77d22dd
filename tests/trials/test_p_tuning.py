"""P-Tuning's prompt encoders: the formulas against torch's own modules, lane by lane."""

from typing import Any

import pytest
import torch
from prompts_by_hand import CPU, by_hand, trained
from tiny_backbones import some_text
from torch import Tensor, nn

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.backbones.load import load
from trials.methods.lanes import Lanes
from trials.methods.p_tuning_lstm import BiLSTM, PTuningLSTM
from trials.methods.p_tuning_mlp import PTuningMLP
from trials.methods.prompts import FusedPrompt

# S lanes, P prompt rows, D width, I inputs, H hidden width

SEEDS = (0, 1, 2)
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "prompt_length": 5}
METHODS: dict[str, Any] = {"p_tuning_mlp": PTuningMLP, "p_tuning_lstm": PTuningLSTM}


@pytest.fixture
def bert(tiny_folders: dict[str, Any]) -> Backbone:
    return load(str(tiny_folders["bert"]), CPU)


def mlp_by_hand(adapter: Any, lane: int) -> Tensor:
    """The encoded rows of one lane: three layers, ReLU between them."""
    x_PD = adapter.prompt_SPD[lane]
    for index in (0, 2, 4):
        layer = adapter.network[index]
        x_PD = x_PD @ layer.weight_SIO[lane] + layer.bias_SO[lane]
        x_PD = x_PD.clamp(min=0) if index < 4 else x_PD
    return x_PD


def torch_lstm(layers: list[BiLSTM], lane: int) -> nn.LSTM:
    """torch's own bidirectional LSTM with the weights of one lane."""
    inputs, hidden = layers[0].input_SKIG.shape[2], layers[0].hidden_SKHG.shape[2]
    lstm = nn.LSTM(inputs, hidden, num_layers=len(layers), bidirectional=True, batch_first=True)
    with torch.no_grad():
        for number, layer in enumerate(layers):
            for way, suffix in enumerate(("", "_reverse")):
                for name, weight in (
                    ("weight_ih", layer.input_SKIG[lane, way].T),
                    ("weight_hh", layer.hidden_SKHG[lane, way].T),
                    ("bias_ih", layer.input_bias_SKG[lane, way]),
                    ("bias_hh", layer.hidden_bias_SKG[lane, way]),
                ):
                    getattr(lstm, f"{name}_l{number}{suffix}").copy_(weight)
    return lstm


def lstm_by_hand(adapter: Any, lane: int) -> Tensor:
    """The encoded rows of one lane: torch's LSTM, then two layers with ReLU between them."""
    lstm = torch_lstm([adapter.network[0], adapter.network[1]], lane)
    x_PH = lstm(adapter.prompt_SPD[lane : lane + 1])[0][0]
    first, second = adapter.network[2], adapter.network[4]
    x_PH = (x_PH @ first.weight_SIO[lane] + first.bias_SO[lane]).clamp(min=0)
    return x_PH @ second.weight_SIO[lane] + second.bias_SO[lane]


BY_HAND = {"p_tuning_mlp": mlp_by_hand, "p_tuning_lstm": lstm_by_hand}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("hidden_width", [0, 7])
@torch.no_grad()
def test_the_rows_before_the_text_are_the_formula(
    backbone: Backbone, name: str, hidden_width: int
) -> None:
    adapter = trained(METHODS[name](**VALUES, hidden_width=hidden_width), backbone, SEEDS)
    rows_SPD = torch.stack([BY_HAND[name](adapter, lane) for lane in range(3)])
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, adapter.edits(train=False))
    kept = text.mask_NT.bool()
    assert (ours - by_hand(backbone, text, rows_SPD))[kept].abs().max() <= 1e-5
    assert (ours - backbone.run(text, Edits()))[kept].abs().max() > 0.1
    bare = by_hand(backbone, text, adapter.prompt_SPD)
    assert (ours - bare)[kept].abs().max() > 0.1


@pytest.mark.parametrize(("num_rows", "hidden"), [(1, 4), (6, 5)])
def test_the_lanes_lstm_is_torchs_with_its_gradients(num_rows: int, hidden: int) -> None:
    lanes = Lanes(SEEDS, CPU)
    layers = [BiLSTM(lanes, 8, hidden), BiLSTM(lanes, 2 * hidden, hidden)]
    x_SPI = lanes.normal(num_rows, 8, std=1.0)
    ours_SPH = layers[1](layers[0](x_SPI))
    direction_SPH = torch.randn(ours_SPH.shape, generator=torch.Generator().manual_seed(1))
    (ours_SPH * direction_SPH).sum().backward()
    for lane in range(3):
        lstm = torch_lstm(layers, lane)
        theirs_PH = lstm(x_SPI[lane : lane + 1])[0][0]
        assert (ours_SPH[lane] - theirs_PH).abs().max() <= 1e-5
        other = (lane + 1) % 3
        assert (ours_SPH[other] - theirs_PH).abs().max() > 0.01
        (theirs_PH * direction_SPH[lane]).sum().backward()
        for number, layer in enumerate(layers):
            for way, suffix in enumerate(("", "_reverse")):
                pairs = {
                    "weight_ih": layer.input_SKIG,
                    "weight_hh": layer.hidden_SKHG,
                    "bias_ih": layer.input_bias_SKG,
                    "bias_hh": layer.hidden_bias_SKG,
                }
                for name, weight in pairs.items():
                    assert weight.grad is not None
                    expected = getattr(lstm, f"{name}_l{number}{suffix}").grad
                    found = weight.grad[lane, way]
                    found = found.T if found.dim() == 2 else found
                    assert (found - expected).abs().max() <= 1e-5
                    if num_rows > 1 or name != "weight_hh":  # no state before the only row
                        assert expected.abs().max() > 1e-3


@pytest.mark.parametrize("name", METHODS)
@torch.no_grad()
def test_fused_only_the_encoded_rows_are_left(bert: Backbone, name: str) -> None:
    adapter = trained(METHODS[name](**VALUES), bert, SEEDS)
    text = some_text(bert, lengths=(7, 12, 3, 9, 9, 5))
    ours = bert.run(text, adapter.edits(train=False))
    fused = adapter.fuse(bert)
    assert isinstance(fused, FusedPrompt)
    assert torch.equal(bert.run(text, fused.edits(train=False)), ours)
    assert not list(fused.parameters())
    assert [tuple(buffer.shape) for buffer in fused.buffers()] == [(3, 5, bert.shape.width)]
    rotated = FusedPrompt(fused.rows().roll(1, 0))
    assert (bert.run(text, rotated.edits(train=False)) - ours).abs().max() > 1e-2


@pytest.mark.parametrize("name", METHODS)
def test_a_network_starts_as_torchs_own(bert: Backbone, name: str) -> None:
    adapter: Any = METHODS[name](learning_rate=1e-3, prompt_length=5, hidden_width=50).attach(
        bert, Lanes(SEEDS, CPU)
    )
    bounds: list[tuple[Tensor, float]] = []
    for layer in adapter.network:
        if isinstance(layer, BiLSTM):
            bounds += [(weight, 50**-0.5) for weight in layer.parameters()]
        elif not isinstance(layer, nn.ReLU):
            inputs = layer.weight_SIO.shape[1]
            bounds += [(weight, inputs**-0.5) for weight in layer.parameters()]
    assert len(bounds) == {"p_tuning_mlp": 6, "p_tuning_lstm": 12}[name]
    for weight, bound in bounds:
        assert 0.8 * bound < weight.abs().max().item() <= bound
        assert not torch.equal(weight[0], weight[1])
    assert adapter.prompt_SPD.std().item() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("name", "hidden_width", "backbone_name", "count"),
    [
        ("p_tuning_mlp", 0, "t5-small", 793_088),
        ("p_tuning_mlp", 0, "t5-base", 1_779_456),
        ("p_tuning_mlp", 0, "t5-large", 3_159_040),
        ("p_tuning_lstm", 0, "t5-base", 8_279_040),
        ("p_tuning_lstm", 384, "t5-base", 8_279_040),
        ("p_tuning_lstm", 384, "roberta-base", 8_279_040),
        ("p_tuning_mlp", 768, "roberta-base", 1_779_456),
        ("p_tuning_mlp", 100, "roberta-base", 7_680 + 76_900 + 10_100 + 77_568),
    ],
)
def test_ten_rows_count_what_the_paper_says(
    name: str, hidden_width: int, backbone_name: str, count: int
) -> None:
    values = VALUES | {"prompt_length": 10, "hidden_width": hidden_width}
    assert parameters(name, values, backbone_name, 2)[0] == count


@pytest.mark.parametrize(
    ("field", "value"), [("hidden_width", -1), ("hidden_width", 1.5), ("prompt_length", 0)]
)
@pytest.mark.parametrize("method", METHODS.values())
def test_values_outside_their_domain_are_refused(method: Any, field: str, value: object) -> None:
    pattern = f"^{method.__name__}: {field} must be .*, got {value!r}$"
    with pytest.raises(ValueError, match=pattern):
        method(**VALUES | {field: value})
