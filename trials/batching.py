"""Batches as tensors on the device."""

import torch
from torch import Tensor

from trials.backbones.edits import Text
from trials.tasks.features import Batch


def to_text(batch: Batch, device: torch.device) -> Text:
    """The token side of a batch."""
    types, mask_NT = batch["type_ids"], torch.from_numpy(batch["mask"])
    return Text(
        ids_NT=torch.from_numpy(batch["token_ids"]).to(device),
        mask_NT=mask_NT.to(device).long(),
        types_NT=None if types is None else torch.from_numpy(types).to(device),
        lengths_N=mask_NT.sum(1),
    )


def to_labels(batch: Batch, device: torch.device) -> Tensor:
    """The labels of a batch, one for each row."""
    return torch.from_numpy(batch["labels"]).to(device)
