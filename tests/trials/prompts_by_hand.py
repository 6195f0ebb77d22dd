"""Prompts put before a text by hand: Hugging Face's own forward on `inputs_embeds`."""

# S lanes, N = S x b rows, T tokens, P prompt rows, D width

from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.methods.lanes import Lanes
from trials.methods.method import Adapter
from trials.methods.prompts import PromptAdapter, PromptMethod

CPU = torch.device("cpu")
AnyAdapter = TypeVar("AnyAdapter", bound=Adapter)


def trained(method: PromptMethod, backbone: Backbone, seeds: tuple[int, ...] = (0,)) -> Any:
    """An adapter as training may leave it: every weight moved."""
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    assert isinstance(adapter, PromptAdapter)
    return moved_by_noise(adapter)


@torch.no_grad()
def moved_by_noise(adapter: AnyAdapter, size: float = 0.3) -> AnyAdapter:
    """The adapter as training may leave it: no weight is where it started."""
    source = torch.Generator().manual_seed(3)
    for weight in adapter.parameters():
        weight += size * torch.randn(weight.shape, generator=source)
    return adapter


def by_hand(backbone: Backbone, text: Text, rows_SPD: Tensor) -> Tensor:
    """Hidden states of the text [N, T, D] behind each lane's rows, which take the first places."""
    rows_NPD = rows_SPD.repeat_interleave(len(text) // len(rows_SPD), 0)
    return _behind(backbone, rows_NPD, own_words(backbone, text), text)


def prompted(backbone: Backbone, rows_NPD: Tensor, words_NTD: Tensor, text: Text) -> Tensor:
    """Hidden states of the tokens of all texts, one behind the other [., D], behind rows."""
    return unpadded(_behind(backbone, rows_NPD, words_NTD, text), text)


def unpadded(h_NTD: Tensor, text: Text) -> Tensor:
    """The hidden states of tokens [., D]."""
    return h_NTD[text.mask_NT.bool()]


def own_words(backbone: Backbone, text: Text) -> Tensor:
    """The frozen word embeddings of a text [N, T, D]."""
    words: Tensor = backbone.model.get_input_embeddings().weight[text.ids_NT]
    return words


def _behind(backbone: Backbone, rows_NPD: Tensor, words_NTD: Tensor, text: Text) -> Tensor:
    length = rows_NPD.shape[1]
    mask_NT = F.pad(text.mask_NT, (length, 0), value=1)
    extra: dict[str, Tensor] = {}
    if text.types_NT is not None:
        extra["token_type_ids"] = F.pad(text.types_NT, (length, 0))
    if backbone.shape.family == "roberta":
        # left to itself it would number inputs_embeds through, padding included
        padding = backbone.model.config.pad_token_id
        extra["position_ids"] = torch.where(mask_NT > 0, mask_NT.cumsum(1) + padding, padding)
    output = backbone.model(
        inputs_embeds=torch.cat([rows_NPD, words_NTD], 1), attention_mask=mask_NT, **extra
    )
    states_NTD: Tensor = output.last_hidden_state
    return states_NTD[:, length:]
