"""A stack: the lanes of a trial that go through the backbone together."""

# S lanes, b batch, N = S x b rows, E examples, D width, C outputs

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from trials.activations import Activations
from trials.backbones.backbone import Backbone
from trials.batching import to_labels, to_text
from trials.head import Head
from trials.methods.lanes import Lanes, generator
from trials.methods.method import Method
from trials.optimizer import build_optimizer, build_schedule, keep_lanes, move_state
from trials.spec import Training
from trials.tasks.batches import epoch_batches, eval_batches
from trials.tasks.features import Features

EVAL_ROWS = 128
"""Rows of an evaluation batch, over all lanes."""

Interrupt = Callable[[], bool]


class Interrupted(Exception):
    """Training was asked to end between two steps."""


class Stack:
    """Adapter, head and optimiser of some lanes, trained side by side on one backbone."""

    def __init__(
        self,
        backbone: Backbone,
        activations: Activations,
        method: Method,
        training: Training,
        seeds: Sequence[int],
        num_outputs: int,
        steps_per_epoch: int,
    ) -> None:
        self.backbone, self.training = backbone, training
        self.lanes = Lanes(seeds, backbone.device)
        self.adapter = method.attach(backbone, self.lanes)
        self.head = Head(backbone.shape.width, num_outputs, self.lanes)
        constant = self.adapter.first_block > 0 and not training.backbone_dropout
        self._activations = activations if constant else None
        self._takes_turns = method.trains_backbone
        head_rate = training.head_learning_rate or method.head_learning_rate
        groups = [
            *self.adapter.rates(method.learning_rate),
            (list(self.head.parameters()), head_rate),
        ]
        self._optimizer = build_optimizer(groups, training)
        self._schedule = build_schedule(self._optimizer, training, steps_per_epoch)
        self._rest_of_pass: list[NDArray[np.int64]] = []
        self._num_passes = 0

    def train_epoch(
        self, features: Features, epoch: int, interrupt: Interrupt
    ) -> NDArray[np.float64]:
        """Mean training loss of each lane [S] over one epoch; not finite where it diverged.

        Raises:
            Interrupted: if `interrupt()` is true before a step.
        """
        total_S, num_rows = torch.zeros(len(self.lanes), device=self.backbone.device), 0
        with self._active(train=True), self._seeded(epoch):
            for rows_Sb in self._batches(features):
                if interrupt():
                    raise Interrupted
                total_S += self._step(features, rows_Sb) * rows_Sb.shape[1]
                num_rows += rows_Sb.shape[1]
        return total_S.double().cpu().numpy() / num_rows

    def _batches(self, features: Features) -> Iterator[NDArray[np.int64]]:
        """The batches of an epoch: one pass over the data, or the next `eval_every` of passes."""
        size, num_steps = self.training.batch_size, self.training.eval_every
        while num_steps is None or num_steps > 0:
            if not self._rest_of_pass:
                self._num_passes += 1
                self._rest_of_pass = epoch_batches(
                    features.lengths, size, self._num_passes, self.lanes.order
                )
            batches = self._rest_of_pass[:num_steps]
            self._rest_of_pass = self._rest_of_pass[len(batches) :]
            yield from batches
            if num_steps is None:
                return
            num_steps -= len(batches)

    @torch.no_grad()
    def predict(self, features: Features) -> NDArray[np.float64]:
        """Outputs of every lane for every example [S, E, C]."""
        num_lanes = len(self.lanes)
        outputs: NDArray[np.float64] | None = None
        with self._active(train=False):
            for rows in eval_batches(features.lengths, max(1, EVAL_ROWS // num_lanes)):
                logits_SbC = self._forward(features, np.tile(rows, (num_lanes, 1)), train=False)
                if outputs is None:
                    outputs = np.empty((num_lanes, len(features), logits_SbC.shape[-1]))
                outputs[:, rows] = logits_SbC.double().cpu().numpy()
        assert outputs is not None
        return outputs

    def keep(self, lanes: Sequence[int]) -> None:
        """Go on with these lanes only."""
        self._optimizer.zero_grad(set_to_none=True)
        keep_lanes(self._optimizer, lanes)
        for part in (self.adapter, self.head, self.lanes):
            part.keep(lanes)
        self._rest_of_pass = [rows_Sb[list(lanes)] for rows_Sb in self._rest_of_pass]

    def _step(self, features: Features, rows_Sb: NDArray[np.int64]) -> Tensor:
        logits_SbC = self._forward(features, rows_Sb, train=True)
        labels = to_labels(features.batch(rows_Sb.reshape(-1)), self.backbone.device)
        losses_S = lane_losses(logits_SbC, labels.view(rows_Sb.shape))
        losses_S.sum().backward()  # a lane's parameters touch its own loss only
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return losses_S.detach()

    def _forward(self, features: Features, rows_Sb: NDArray[np.int64], *, train: bool) -> Tensor:
        device, rows = self.backbone.device, rows_Sb.reshape(-1)
        precision = torch.autocast(
            device.type, torch.bfloat16, enabled=self.training.precision == "bf16"
        )
        block, states_NTD = self.adapter.first_block, None
        if self._activations is not None:
            states_NTD = self._activations.entering(block, features, rows)
        with precision:
            if states_NTD is None or block < self.backbone.shape.num_blocks:
                text = to_text(features.batch(rows), device)
                edits, start = self.adapter.edits(train=train), 0 if states_NTD is None else block
                states_NTD = self.backbone.run(text, edits, start=start, states_NTD=states_NTD)
            logits_NC = self.head(states_NTD[:, 0], train=train)
        return logits_NC.float().view(*rows_Sb.shape, -1)

    @contextmanager
    def _active(self, *, train: bool) -> Iterator[None]:
        try:
            self.adapter.activate()
            if train:
                move_state(self._optimizer, self.backbone.device)
            self.backbone.use_dropout(train and self.training.backbone_dropout)
            yield
        finally:
            self.backbone.use_dropout(False)
            self._optimizer.zero_grad(set_to_none=True)
            self.adapter.release()
            if train and self._takes_turns:
                move_state(self._optimizer, "cpu")

    @contextmanager
    def _seeded(self, epoch: int) -> Iterator[None]:
        """The global generator, from which the backbone's own dropout draws, seeded meanwhile."""
        device = self.backbone.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            source = generator(self.lanes.seeds[0], f"backbone dropout, epoch {epoch}")
            torch.manual_seed(source.initial_seed())
            yield

    def trainable(self) -> Iterator[nn.Parameter]:
        """Every parameter that training changes."""
        return chain(self.adapter.trainable(), self.head.parameters())


def lane_losses(logits_SbC: Tensor, labels_Sb: Tensor) -> Tensor:
    """Mean loss of each lane [S]: cross-entropy, or squared error where the labels are real."""
    if labels_Sb.is_floating_point():
        return (logits_SbC.squeeze(-1) - labels_Sb).square().mean(1)
    losses = F.cross_entropy(logits_SbC.flatten(0, 1), labels_Sb.flatten(), reduction="none")
    return losses.view_as(labels_Sb).mean(1)
