"""The only training loop: epochs, evaluations, best checkpoint, patience, divergence."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from trials.spec import EvalPoint, RunPoint, RunState, Training
from trials.stack import Interrupt, Stack, lane_losses
from trials.tasks.features import Features
from trials.tasks.metrics import METRICS, Metric
from trials.tasks.table import Task

LOSS_CAP = 1e4
"""A mean loss above this counts as diverged."""


@dataclass
class Run:
    """The progress of one seed."""

    seed: int
    score: float
    """Best value so far; the metric's worst before the first evaluation."""
    stale: int = 0
    """Evaluations in a row without a better value."""
    state: RunState = "running"

    @property
    def goes_on(self) -> bool:
        """Whether it trains another epoch."""
        return self.state == "running"


class Trainer:
    """Trains the stacks of one trial epoch by epoch."""

    def __init__(
        self,
        stacks: list[Stack],
        features: Mapping[str, Features],
        task: Task,
        training: Training,
        interrupt: Interrupt,
    ) -> None:
        self.stacks, self.features, self.training = stacks, features, training
        self.metric: Metric = METRICS[task.metric]
        self.interrupt = interrupt
        self.runs = [
            [Run(seed, self.metric.worst) for seed in stack.lanes.seeds] for stack in stacks
        ]

    def points(self) -> Iterator[EvalPoint]:
        """One point per epoch, until no run goes on.

        Raises:
            Interrupted: if asked to end between two steps.
        """
        for epoch in range(1, self.training.epochs + 1):
            started = time.perf_counter()
            points: list[RunPoint] = []
            for stack, runs in zip(self.stacks, self.runs, strict=True):
                if runs:
                    points += self._epoch(stack, runs, epoch)
            for index, runs in enumerate(self.runs):
                self.runs[index] = self._leave(self.stacks[index], runs)
            yield EvalPoint(
                epoch=epoch,
                runs=tuple(points),
                seconds=time.perf_counter() - started,
                last=not any(self.runs),
            )
            if not any(self.runs):
                return

    def _epoch(self, stack: Stack, runs: list[Run], epoch: int) -> list[RunPoint]:
        train_losses = stack.train_epoch(self.features["train"], epoch, self.interrupt)
        outputs = stack.predict(self.features["validation"])
        labels = self.features["validation"].labels
        losses = [mean_loss(lane, labels) for lane in outputs]
        finite = [
            usable(train_loss) and usable(loss)
            for train_loss, loss in zip(train_losses, losses, strict=True)
        ]
        values = [
            self._evaluate("validation", lane) if healthy else {}
            for lane, healthy in zip(outputs, finite, strict=True)
        ]
        better = [self._note(run, value, epoch) for run, value in zip(runs, values, strict=True)]
        if any(better):
            self._extra_splits(stack, values, better)
        return [
            self._point(run, value, loss, float(train_loss))
            for run, value, loss, train_loss in zip(runs, values, losses, train_losses, strict=True)
        ]

    def _note(self, run: Run, metrics: dict[str, float], epoch: int) -> bool:
        """Enter an evaluation into the run's progress; whether it is the best so far."""
        if not metrics:
            run.state = "diverged"
            return False
        value = metrics["score"]
        better = epoch == 1 or value > run.score
        run.score = value if better else run.score
        run.stale = 0 if better else run.stale + 1
        if epoch == self.training.epochs:
            run.state = "completed"
        elif self.training.patience is not None and run.stale >= self.training.patience:
            run.state = "completed_by_patience"
        return better

    def _extra_splits(
        self, stack: Stack, values: list[dict[str, float]], better: list[bool]
    ) -> None:
        """Add the metrics of further splits where the selection metric got better."""
        for split in self.features.keys() - {"train", "validation"}:
            for lane, outputs in enumerate(stack.predict(self.features[split])):
                if better[lane]:
                    metrics = self._evaluate(split, outputs)
                    values[lane] |= {k: v for k, v in metrics.items() if k != "score"}

    def _evaluate(self, split: str, outputs: NDArray[np.float64]) -> dict[str, float]:
        metrics = self.metric.compute(outputs, self.features[split].labels)
        named = {f"{split}/{name}": v for name, v in metrics.items() if name != "score"}
        return {"score": metrics["score"], **named}

    def _point(
        self, run: Run, metrics: dict[str, float], loss: float, train_loss: float
    ) -> RunPoint:
        return RunPoint(
            seed=run.seed,
            value=metrics.get("score", self.metric.worst),
            score=run.score,
            loss=loss if math.isfinite(loss) else None,
            train_loss=train_loss if math.isfinite(train_loss) else None,
            metrics={name: value for name, value in metrics.items() if name != "score"},
            state=run.state,
        )

    @staticmethod
    def _leave(stack: Stack, runs: list[Run]) -> list[Run]:
        """Drop the lanes that ended from the stack; the runs that go on."""
        staying = [lane for lane, run in enumerate(runs) if run.goes_on]
        if staying and len(staying) < len(runs):
            stack.keep(staying)
        return [runs[lane] for lane in staying]


def usable(loss: float) -> bool:
    """Whether training may go on from this loss."""
    return math.isfinite(loss) and loss <= LOSS_CAP


def mean_loss(outputs_EC: NDArray[np.float64], labels_E: NDArray[np.generic]) -> float:
    """Mean loss of one lane over a split."""
    outputs, labels = torch.from_numpy(outputs_EC), torch.from_numpy(labels_E)
    return float(lane_losses(outputs[None], labels[None])[0])
