"""With nothing attached, the walk is Hugging Face's own forward, to the bit."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text

TEXTS: dict[str, Callable[[Backbone], Text]] = {
    "no padding": lambda backbone: some_text(backbone, lengths=(9, 9, 9)),
    "right padding": lambda backbone: some_text(backbone, lengths=(5, 12, 9, 3)),
    "more right padding": lambda backbone: some_text(backbone, lengths=(5, 12), columns=20),
    "left padding": lambda backbone: flipped(some_text(backbone, lengths=(5, 12, 9))),
    "the longest text": lambda backbone: some_text(backbone, lengths=(backbone.shape.max_tokens,)),
}


def flipped(text: Text) -> Text:
    types_NT = None if text.types_NT is None else text.types_NT.flip(1)
    return dataclasses.replace(
        text, ids_NT=text.ids_NT.flip(1), mask_NT=text.mask_NT.flip(1), types_NT=types_NT
    )


def without_dropout(backbone: Backbone) -> None:
    for module in backbone.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


@pytest.mark.parametrize("padding", TEXTS)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("mode", ["eval", "train with dropout 0"])
def test_the_walk_equals_hugging_faces_forward_to_the_bit(
    backbone: Backbone, padding: str, attention: str, mode: str
) -> None:
    backbone.model.set_attn_implementation(attention)
    if mode != "eval":
        without_dropout(backbone)
        backbone.use_dropout(True)
        assert backbone.model.training
    text = TEXTS[padding](backbone)
    walked, expected = backbone.run(text, Edits()), own_forward(backbone, text)
    assert torch.equal(walked, expected)
    other = dataclasses.replace(text, ids_NT=text.ids_NT.roll(1, 0).roll(1, 1))
    assert (backbone.run(other, Edits()) - expected).abs().max() > 0.1


def test_padding_and_segments_have_an_effect_that_the_walk_could_have_missed(
    backbone: Backbone,
) -> None:
    text = some_text(backbone, lengths=(5, 12))
    expected = own_forward(backbone, text)
    unmasked = dataclasses.replace(text, mask_NT=torch.ones_like(text.mask_NT))
    assert (backbone.run(unmasked, Edits())[0, 0] - expected[0, 0]).abs().max() > 0.01
    if text.types_NT is not None:
        one_segment = dataclasses.replace(text, types_NT=torch.zeros_like(text.types_NT))
        assert (backbone.run(one_segment, Edits()) - expected).abs().max() > 0.01


def test_a_backbone_comes_frozen_and_without_dropout(backbone: Backbone) -> None:
    assert not any(weight.requires_grad for weight in backbone.model.parameters())
    text = some_text(backbone, lengths=(5, 12))
    first = backbone.run(text, Edits())
    assert torch.equal(first, backbone.run(text, Edits()))
    backbone.use_dropout(True)
    assert (backbone.run(text, Edits()) - first).abs().max() > 0.1
    backbone.use_dropout(False)
    assert torch.equal(first, backbone.run(text, Edits()))


def test_thawed_the_gradient_of_every_weight_is_hugging_faces_own(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(5, 12, 9))
    backbone.thaw()

    def gradients(forward: Callable[[], Tensor]) -> dict[str, Tensor]:
        backbone.model.zero_grad(set_to_none=True)
        h_NTD = forward()
        source = torch.Generator().manual_seed(1)
        direction = torch.randn(h_NTD.shape, generator=source) * text.mask_NT[..., None]
        (h_NTD * direction).sum().backward()
        return {name: weight.grad for name, weight in backbone.model.named_parameters()}

    walked = gradients(lambda: backbone.run(text, Edits()))
    expected = gradients(lambda: own_forward(backbone, text))
    assert len(walked) > 40
    for name, gradient in expected.items():
        assert torch.equal(walked[name], gradient), name
        # a key's bias moves all scores of a query alike: rounding is all that it gets
        assert gradient.abs().max() > (0 if name.endswith("key.bias") else 1e-3), name


def test_an_edit_gets_the_states_that_enter_its_block_with_text_and_words(
    backbone: Backbone,
) -> None:
    text = some_text(backbone, lengths=(5, 12))
    entered: dict[int, Tensor] = {}

    def note(index: int) -> Callable[[Tensor, Text, Tensor], Tensor]:
        def edit(h_NTD: Tensor, seen: Text, words_NTD: Tensor) -> Tensor:
            assert seen is text
            assert torch.equal(words_NTD, backbone.words(text.ids_NT))
            entered[index] = h_NTD
            return h_NTD

        return edit

    edits = Edits({index: note(index) for index in range(backbone.shape.num_blocks)})
    states = backbone.model(
        input_ids=text.ids_NT,
        attention_mask=text.mask_NT,
        **({} if text.types_NT is None else {"token_type_ids": text.types_NT}),
        output_hidden_states=True,
    ).hidden_states
    assert torch.equal(backbone.run(text, edits), states[-1])
    for index, h_NTD in entered.items():
        assert torch.equal(h_NTD, states[index])
    assert (states[1] - states[0]).abs().max() > 0.1


def test_weights_come_back_as_they_were_loaded(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(5, 12))
    before = backbone.run(text, Edits())
    kept = backbone.pretrained()
    with torch.no_grad():
        for weight in backbone.model.parameters():
            weight.add_(torch.randn(weight.shape))
    assert (backbone.run(text, Edits()) - before).abs().max() > 0.1
    backbone.load_weights(kept)
    assert torch.equal(backbone.run(text, Edits()), before)
