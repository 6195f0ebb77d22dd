"""Hugging Face's own forward of word embeddings made by hand, with rows before them."""

# N rows (lanes x batch), T tokens, P prompt rows, D width

from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.methods.method import Adapter

CPU = torch.device("cpu")
AnyAdapter = TypeVar("AnyAdapter", bound=Adapter)


def prompted(backbone: Backbone, rows_NPD: Tensor, words_NTD: Tensor, text: Text) -> Tensor:
    """Final hidden states of the tokens of all texts, one behind the other [., D]."""
    num_rows = rows_NPD.shape[1]
    types = {}
    if text.types_NT is not None:
        types = {"token_type_ids": F.pad(text.types_NT, (num_rows, 0))}
    output = backbone.model(
        inputs_embeds=torch.cat([rows_NPD, words_NTD], 1),
        attention_mask=F.pad(text.mask_NT, (num_rows, 0), value=1),
        **types,
    )
    return unpadded(output.last_hidden_state[:, num_rows:], text)


def unpadded(h_NTD: Tensor, text: Text) -> Tensor:
    """The hidden states of tokens; Hugging Face gives padding other positions than the walk."""
    return h_NTD[text.mask_NT.bool()]


def own_words(backbone: Backbone, text: Text) -> Tensor:
    """The frozen word embeddings of a text [N, T, D]."""
    return backbone.model.get_input_embeddings().weight[text.ids_NT]


@torch.no_grad()
def moved_by_noise(adapter: AnyAdapter, size: float = 0.3) -> AnyAdapter:
    """The adapter as training may leave it: no weight is where it started."""
    source = torch.Generator().manual_seed(3)
    for weight in adapter.parameters():
        weight += size * torch.randn(weight.shape, generator=source)
    return adapter
