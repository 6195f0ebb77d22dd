"""Prompts put before a text by hand: Hugging Face's own forward on `inputs_embeds`."""

# S lanes, N = S x b rows, T tokens, P prompt rows, D width

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.methods.lanes import Lanes
from trials.methods.prompts import PromptAdapter, PromptMethod

CPU = torch.device("cpu")


def trained(method: PromptMethod, backbone: Backbone, seeds: tuple[int, ...] = (0,)) -> Any:
    """An adapter as training may leave it: every weight moved."""
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    assert isinstance(adapter, PromptAdapter)
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=source)
    return adapter


def by_hand(backbone: Backbone, text: Text, rows_SPD: Tensor) -> Tensor:
    """Hidden states of the text [N, T, D] behind rows that take the first positions."""
    num_lanes, length, width = rows_SPD.shape
    batch = len(text) // num_lanes
    rows_NPD = rows_SPD.unsqueeze(1).expand(-1, batch, -1, -1).reshape(-1, length, width)
    words_NTD = backbone.model.get_input_embeddings()(text.ids_NT)
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
