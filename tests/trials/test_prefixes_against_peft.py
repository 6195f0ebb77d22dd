"""P-Tuning v2 against PEFT's prefix tuning, an independent implementation.

Hugging Face's BERT and RoBERTa, given a cache, count the text's positions on from its length, and
PEFT leaves it at that; ours stay where they are. Here our positions are moved as theirs are. PEFT
ignores segments, so there is one.
"""

# L blocks, C 2: keys and values, P prefix length, D width, M = L C D

import dataclasses
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor
from transformers import AutoModel

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.backbones.load import load
from trials.methods.lanes import Lanes
from trials.methods.prefixes import PrefixAdapter
from trials.methods.ptuning_v2 import PTuningV2

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")

LENGTH = 5
TEXTS = {"no padding": (9, 9, 9), "right padding": (5, 12, 9)}


def peft_model(folder: Path) -> Any:
    options = {} if folder.name.startswith("deberta") else {"add_pooling_layer": False}
    model = AutoModel.from_pretrained(folder, **options)
    config = peft.PrefixTuningConfig(task_type="FEATURE_EXTRACTION", num_virtual_tokens=LENGTH)
    return peft.get_peft_model(model, config)


def with_moved_positions(backbone: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text counted on from a cache of `LENGTH`."""

    def embed(words_NTD: Tensor, mask_NT: Tensor, types_NT: Tensor | None) -> Tensor:
        if backbone.shape.family == "roberta":
            first = backbone.model.config.pad_token_id
            positions_NT = (mask_NT.cumsum(1) + LENGTH) * mask_NT + first
        else:
            positions_NT = torch.arange(LENGTH, LENGTH + mask_NT.shape[1]).expand_as(mask_NT)
        return backbone.model.embeddings(
            inputs_embeds=words_NTD, position_ids=positions_NT, token_type_ids=types_NT
        )

    monkeypatch.setattr(backbone, "embed", embed)


def with_the_same_prefix(backbone: Backbone, weight_PM: Tensor) -> PrefixAdapter:
    """Our adapter with PEFT's embedding [P, L C D] in it."""
    method = PTuningV2(learning_rate=1e-3, prompt_length=LENGTH)
    adapter = method.attach(backbone, Lanes((0,), torch.device("cpu")))
    with torch.no_grad():
        adapter.get_parameter("prefix_SLCPD").copy_(by_block(backbone, weight_PM))
    return adapter


def by_block(backbone: Backbone, weight_PM: Tensor) -> Tensor:
    """[P, L C D] -> [L, C, P, D]"""
    weight_PLCD = weight_PM.view(LENGTH, backbone.shape.num_blocks, 2, backbone.shape.width)
    return weight_PLCD.permute(1, 2, 0, 3)


def one_segment(backbone: Backbone, lengths: tuple[int, ...]) -> Text:
    return dataclasses.replace(some_text(backbone, lengths=lengths), types_NT=None)


def their_forward(model: Any, text: Text) -> Tensor:
    return model(input_ids=text.ids_NT, attention_mask=text.mask_NT).last_hidden_state


@pytest.mark.parametrize("family", ["bert", "roberta"], indirect=True)
@pytest.mark.parametrize("lengths", TEXTS.values(), ids=list(TEXTS))
def test_outputs_and_gradients_are_pefts(
    backbone: Backbone,
    folder: Path,
    lengths: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, model = one_segment(backbone, lengths), peft_model(folder)
    weight_PM = model.prompt_encoder["default"].embedding.weight
    adapter = with_the_same_prefix(backbone, weight_PM)
    unmoved = backbone.run(text, adapter.edits(train=False))
    with_moved_positions(backbone, monkeypatch)
    ours, theirs = backbone.run(text, adapter.edits(train=False)), their_forward(model, text)
    assert ((ours - theirs) * text.mask_NT[..., None]).abs().max() <= 1e-5
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1
    assert (unmoved - theirs).abs().max() > 0.1

    source = torch.Generator().manual_seed(1)
    direction = torch.randn(ours.shape, generator=source) * text.mask_NT[..., None]
    (ours * direction).sum().backward()
    (theirs * direction).sum().backward()
    gradient = adapter.get_parameter("prefix_SLCPD").grad
    assert gradient is not None
    expected = by_block(backbone, weight_PM.grad)
    assert (gradient[0] - expected).abs().max() <= 1e-5 * expected.abs().max()
    assert expected.abs().amax((1, 2, 3)).min() > 0.1


@pytest.mark.parametrize("family", ["bert", "roberta"], indirect=True)
def test_as_many_parameters_are_trained_as_peft_trains(folder: Path, backbone: Backbone) -> None:
    theirs = sum(p.numel() for p in peft_model(folder).parameters() if p.requires_grad)
    values = {"learning_rate": 1e-3, "prompt_length": LENGTH}
    ours, _ = parameters("ptuning_v2", values, str(folder), 2)
    assert ours == theirs == 2 * backbone.shape.num_blocks * LENGTH * backbone.shape.width


@pytest.mark.parametrize("family", ["deberta"], indirect=True)
def test_neither_peft_nor_we_have_prefixes_on_deberta(folder: Path) -> None:
    backbone = load(str(folder), torch.device("cpu"))
    with pytest.raises(RuntimeError, match="size of tensor"):  # its mask is longer than the text
        their_forward(peft_model(folder), one_segment(backbone, (5, 9)))
    with pytest.raises(ValueError, match=r"^PTuningV2: prompt_length .* which deberta's does not$"):
        PTuningV2(learning_rate=1e-3, prompt_length=LENGTH).check(backbone.shape)
