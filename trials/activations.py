"""Constant activations: what nothing trainable precedes is computed once per example.

They depend on the backbone and the data alone, so they outlive the trial.
"""

# N examples, B batch, D width

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.batching import to_text
from trials.tasks.batches import eval_batches
from trials.tasks.features import Features

ROWS_AT_ONCE = 128


class FirstTokens:
    """The final state of each example's first token under the unchanged backbone."""

    def __init__(self, backbone: Backbone, max_bytes: int = 2 << 30) -> None:
        self._backbone = backbone
        self._max_bytes = max_bytes
        self._kept: WeakKeyDictionary[Features, Tensor] = WeakKeyDictionary()

    def of(self, features: Features) -> Tensor | None:
        """[N, D] on the backbone's device; None if keeping them would take too much memory."""
        if features not in self._kept:
            num_bytes = len(features) * self._backbone.shape.width * 4
            if num_bytes + sum(kept.nbytes for kept in self._kept.values()) > self._max_bytes:
                return None
            self._kept[features] = self._compute(features)
        return self._kept[features]

    @torch.no_grad()
    def _compute(self, features: Features) -> Tensor:
        backbone = self._backbone
        states_ND = torch.empty(len(features), backbone.shape.width, device=backbone.device)
        for rows in eval_batches(features.lengths, ROWS_AT_ONCE):
            text = to_text(features.batch(rows), backbone.device)
            states_ND[torch.from_numpy(rows)] = backbone.run(text, Edits())[:, 0]
        return states_ND
