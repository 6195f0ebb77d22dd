"""Prompt methods against Hugging Face's PEFT: same weights, same texts, same numbers.

PEFT's classes differ from the papers' methods in ways that these tests keep out of the comparison:
PEFT drops the segments of BERT's texts; its RoBERTa numbers `inputs_embeds` through, padding
included, so that positions agree only while padding comes last, where it is masked; and its
heads read position 0, a prompt row, so that what is compared is the hidden states of the text.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from prompts_by_hand import CPU, trained
from tiny_backbones import some_text
from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.load import load
from trials.methods.p_tuning_lstm import PTuningLSTM
from trials.methods.p_tuning_mlp import PTuningMLP
from trials.methods.prompt_tuning import PromptTuning

# N rows, T tokens, P prompt rows, D width

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")

LENGTH = 5
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "prompt_length": LENGTH}
ENCODER: dict[str, Any] = {"peft_type": "P_TUNING", "encoder_hidden_size": 12}

Pairs = list[tuple[nn.Parameter, int | tuple[int, int], nn.Parameter]]
"""Our parameter, where in it the weight is, PEFT's parameter."""


@pytest.fixture(params=["bert", "roberta"])
def both(request: pytest.FixtureRequest, tiny_folders: dict[str, Path]) -> tuple[Backbone, Any]:
    """A backbone for us and another with the same weights, which PEFT may wrap."""
    folder = str(tiny_folders[request.param])
    return load(folder, CPU), load(folder, CPU).model


def text_of(backbone: Backbone, lengths: tuple[int, ...] = (7, 12, 3)) -> Text:
    """Without segments, which PEFT does not take."""
    text = some_text(backbone, lengths=lengths)
    types_NT = None if text.types_NT is None else torch.zeros_like(text.types_NT)
    return dataclasses.replace(text, types_NT=types_NT)


def config_of(**options: Any) -> peft.PeftConfig:
    kind = peft.PromptEncoderConfig if "peft_type" in options else peft.PromptTuningConfig
    options.pop("peft_type", None)
    return kind(
        task_type="FEATURE_EXTRACTION",
        num_virtual_tokens=LENGTH,
        num_transformer_submodules=1,
        **options,
    )


def linear_pairs(ours: Any, theirs: nn.Linear) -> Pairs:
    return [(ours.weight_SIO, 0, theirs.weight), (ours.bias_SO, 0, theirs.bias)]


def prompt_pairs(adapter: Any, encoder: Any) -> Pairs:
    return [(adapter.prompt_SPD, 0, encoder.embedding.weight)]


def mlp_pairs(adapter: Any, encoder: Any) -> Pairs:
    layers = zip(adapter.network, encoder.mlp_head, strict=True)
    pairs = [linear_pairs(*pair) for pair in layers if isinstance(pair[1], nn.Linear)]
    return sum(pairs, prompt_pairs(adapter, encoder))


def lstm_pairs(adapter: Any, encoder: Any) -> Pairs:
    pairs = prompt_pairs(adapter, encoder)
    for number in (0, 1):
        layer = adapter.network[number]
        for way, suffix in enumerate(("", "_reverse")):
            for name, weight in (
                ("weight_ih", layer.input_SKIG),
                ("weight_hh", layer.hidden_SKHG),
                ("bias_ih", layer.input_bias_SKG),
                ("bias_hh", layer.hidden_bias_SKG),
            ):
                theirs = getattr(encoder.lstm_head, f"{name}_l{number}{suffix}")
                pairs.append((weight, (0, way), theirs))
    pairs += linear_pairs(adapter.network[2], encoder.mlp_head[0])
    return pairs + linear_pairs(adapter.network[4], encoder.mlp_head[2])


CASES: dict[str, tuple[Any, dict[str, Any], Callable[[Any, Any], Pairs]]] = {
    "prompt_tuning": (PromptTuning(**VALUES), {}, prompt_pairs),
    "p_tuning_mlp": (
        PTuningMLP(**VALUES, hidden_width=12),
        {**ENCODER, "encoder_reparameterization_type": "MLP"},
        mlp_pairs,
    ),
    "p_tuning_lstm": (
        PTuningLSTM(**VALUES, hidden_width=12),
        {**ENCODER, "encoder_reparameterization_type": "LSTM"},
        lstm_pairs,
    ),
}


def as_theirs(weight: Tensor) -> Tensor:
    """One lane's weight in the layout of torch's modules; prompt rows as they are."""
    return weight.T if weight.dim() == 2 else weight


@pytest.mark.parametrize("name", CASES)
def test_hidden_states_and_gradients_are_those_of_peft(
    both: tuple[Backbone, Any], name: str
) -> None:
    backbone, model = both
    method, options, pairs_of = CASES[name]
    adapter = trained(method, backbone)
    wrapped = peft.get_peft_model(model, config_of(**options)).eval()
    encoder = wrapped.prompt_encoder["default"]
    pairs = pairs_of(adapter, encoder)
    trainable = [weight for weight in wrapped.parameters() if weight.requires_grad]
    assert {id(weight) for weight in trainable} == {id(theirs) for *_, theirs in pairs}
    assert len(list(adapter.parameters())) == len({id(ours) for ours, *_ in pairs})
    assert sum(w.numel() for w in adapter.parameters()) == sum(w.numel() for w in trainable)
    text = text_of(backbone)
    kept = text.mask_NT.bool()

    def theirs_NTD() -> Tensor:
        output = wrapped(input_ids=text.ids_NT, attention_mask=text.mask_NT)
        states_NTD: Tensor = output.last_hidden_state
        assert states_NTD.shape[1] == LENGTH + text.ids_NT.shape[1]
        return states_NTD[:, LENGTH:]

    ours_NTD = backbone.run(text, adapter.edits(train=True))
    with torch.no_grad():
        before = theirs_NTD()
        assert (ours_NTD - before)[kept].abs().max() > 1e-2  # other weights, other states
        plain = backbone.run(text, Edits())
        assert (ours_NTD - plain)[kept].abs().max() > 1e-2
        for ours, place, theirs in pairs:
            weight = ours[place]
            theirs.copy_(weight if ours is adapter.prompt_SPD else as_theirs(weight))
    expected_NTD = theirs_NTD()
    assert (ours_NTD - expected_NTD)[kept].abs().max() <= 1e-5

    source = torch.Generator().manual_seed(1)
    direction = torch.randn(ours_NTD.shape, generator=source) * text.mask_NT[..., None]
    for states_NTD in (ours_NTD, expected_NTD):
        (states_NTD * direction).sum().backward()
    for ours, place, theirs in pairs:
        assert ours.grad is not None
        assert theirs.grad is not None
        found = ours.grad[place]
        found = found if ours is adapter.prompt_SPD else as_theirs(found)
        scale = theirs.grad.abs().max()
        assert scale > 1e-4
        assert (found - theirs.grad).abs().max() <= 1e-5 * max(1.0, scale.item())


def test_behind_left_padding_pefts_roberta_counts_other_positions(
    tiny_folders: dict[str, Path],
) -> None:
    """Why only padding on the right is compared above."""
    folder = str(tiny_folders["roberta"])
    backbone, model = load(folder, CPU), load(folder, CPU).model
    adapter = trained(PromptTuning(**VALUES), backbone)
    wrapped = peft.get_peft_model(model, config_of()).eval()
    with torch.no_grad():
        wrapped.prompt_encoder["default"].embedding.weight.copy_(adapter.prompt_SPD[0])
        right = text_of(backbone, (7, 12))
        left = dataclasses.replace(
            right, ids_NT=right.ids_NT.roll(5, 1), mask_NT=right.mask_NT.roll(5, 1)
        )
        left.ids_NT[1], left.mask_NT[1] = right.ids_NT[1], right.mask_NT[1]
        ours = [backbone.run(text, adapter.edits(train=False))[0] for text in (right, left)]
        theirs = [
            wrapped(input_ids=text.ids_NT, attention_mask=text.mask_NT).last_hidden_state[0, 5:]
            for text in (right, left)
        ]
    assert (ours[0][:7] - ours[1][5:]).abs().max() <= 1e-5
    assert (theirs[0][:7] - ours[0][:7]).abs().max() <= 1e-5
    assert (theirs[1][5:] - ours[1][5:]).abs().max() > 1e-2
