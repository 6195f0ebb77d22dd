"""Constant activations: what nothing trainable precedes is computed once per example.

They depend on the backbone and the data alone, so they outlive the trial.
"""

# E examples, N rows, T tokens, M tokens of all examples, D width

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.batching import to_text
from trials.tasks.batches import eval_batches
from trials.tasks.features import Features

ROWS_AT_ONCE = 128


@dataclass
class Kept:
    """The states of a split that enter one block, without padding."""

    states_MD: Tensor
    offsets: NDArray[np.int64]
    """[E + 1] where the states of each example begin."""
    trial: int
    """The last trial that used them."""


class Activations:
    """What enters the blocks above which trials train, under the unchanged backbone.

    Of what leaves the last block only the first token is kept: the head reads no other.
    """

    def __init__(self, backbone: Backbone, max_bytes: int = 2 << 30) -> None:
        self._backbone = backbone
        self._max_bytes = max_bytes
        self._kept: WeakKeyDictionary[Features, dict[int, Kept]] = WeakKeyDictionary()
        self._trial = 0

    def begin_trial(self) -> None:
        """From now on all that was kept may go where room is needed, the least recent first.

        What the running trial uses stays: its splits would drive each other out in every epoch.
        """
        self._trial += 1

    def entering(self, block: int, features: Features, rows: NDArray[np.integer]) -> Tensor | None:
        """States of the examples with these numbers [N, T, D], padded on the right with zeros.

        None if those of the whole split would take too much memory.
        """
        kept = self._find(block, features)
        if kept is None:
            return None
        places_NT, mask_NT = _places(kept.offsets, rows)
        device = kept.states_MD.device
        states_NTD = kept.states_MD[torch.from_numpy(places_NT).to(device)]
        padding_NT = torch.from_numpy(~mask_NT).to(device)
        return states_NTD.masked_fill_(padding_NT.unsqueeze(2), 0)

    def _find(self, block: int, features: Features) -> Kept | None:
        blocks = self._kept.setdefault(features, {})
        if block not in blocks:
            whole = block < len(self._backbone.blocks)
            offsets = features.offsets if whole else np.arange(len(features) + 1)
            if not self._make_room(int(offsets[-1]) * self._backbone.shape.width * 4):
                return None
            blocks[block] = Kept(self._compute(block, features, offsets), offsets, self._trial)
        blocks[block].trial = self._trial
        return blocks[block]

    def _make_room(self, num_bytes: int) -> bool:
        """Drop what is needed for so many bytes; false, and nothing dropped, if it cannot do."""
        room = self._max_bytes - num_bytes
        held = [
            (kept.trial, kept.states_MD.nbytes, block, blocks)
            for blocks in self._kept.values()
            for block, kept in blocks.items()
        ]
        if sum(size for trial, size, *_ in held if trial == self._trial) > room:
            return False
        total = sum(size for _, size, *_ in held)
        for _, size, block, blocks in sorted(held, key=lambda entry: entry[0]):
            if total <= room:
                break
            del blocks[block]
            total -= size
        return True

    @torch.no_grad()
    def _compute(self, block: int, features: Features, offsets: NDArray[np.int64]) -> Tensor:
        backbone = self._backbone
        states_MD = torch.empty(int(offsets[-1]), backbone.shape.width, device=backbone.device)
        for rows in eval_batches(features.lengths, ROWS_AT_ONCE):
            text = to_text(features.batch(rows), backbone.device)
            h_NTD = backbone.run(text, Edits(), stop=block)
            places_NT, mask_NT = _places(offsets, rows)
            h_NTD = h_NTD[:, : mask_NT.shape[1]]
            states_MD[torch.from_numpy(places_NT[mask_NT])] = h_NTD[torch.from_numpy(mask_NT)]
        return states_MD


def _places(
    offsets: NDArray[np.int64], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the states of each of these examples are [N, T], and which are not padding."""
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    columns = np.arange(lengths.max())
    mask_NT = columns < lengths[:, None]
    return np.where(mask_NT, starts[:, None] + columns, 0), mask_NT
