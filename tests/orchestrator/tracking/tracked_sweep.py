"""A sweep whose trials the real core drives, so that the outbox fills as in a launch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import small_sweeps

from orchestrator import messages
from orchestrator.core import Claim, Core
from orchestrator.store.database import Store
from orchestrator.store.rows import StudyRow
from trials.spec import EvalPoint, RunPoint

RTE = small_sweeps.study(
    name="lora-rte",
    sweep="glue-lora",
    space="lora@demo",
    method="lora",
    num_trials=3,
    max_epochs=4,
    scheduler="none",
    grace=None,
    eta=None,
    space_definition=small_sweeps.STUDY.space_definition
    | {"training": {"optimizer": "adamw", "epochs": 4}},
    data={"source": "demo", "limit_train": 100},
)
COLA = replace(RTE, id="glue-lora/lora-cola", position=1, task="cola")


@dataclass
class Driven:
    """A sweep, the core that drives it, and a clock that ticks a second a look."""

    store: Store
    core: Core
    now: Callable[[], float]

    def start(self) -> None:
        with self.store.write() as tx:
            messages.sweep_started(tx, RTE.sweep_id, self.now())

    def end(self, state: str, pictures: Sequence[str] = ()) -> None:
        with self.store.write() as tx:
            messages.sweep_ended(tx, RTE.sweep_id, state, list(pictures), self.now())

    def claim(self) -> Claim:
        claim = self.core.claim()
        assert claim is not None
        return claim

    def report(self, claim: Claim, *scores: float, first: int = 1, last: bool = False) -> None:
        """One evaluation for each score, a score a seed; the last one may end the trial."""
        for epoch, score in enumerate(scores, first):
            run = RunPoint(
                seed=0,
                value=score,
                score=score,
                loss=1 - score,
                train_loss=None,
                metrics={"validation/accuracy": score},
                state="completed" if last and epoch == first + len(scores) - 1 else "running",
            )
            end = run.state == "completed"
            point = EvalPoint(epoch=epoch, runs=(run,), seconds=2.0, last=end)
            self.core.report(claim.trial_id, claim.attempt, point)

    def train(self, *scores: float) -> Claim:
        """A trial from its start to its end."""
        claim = self.claim()
        self.report(claim, *scores, last=True)
        return claim

    def say(self, kind: str, payload: dict[str, Any], at: float | None = None) -> None:
        with self.store.write() as tx:
            tx.add_outbox(RTE.sweep_id, kind, payload, self.now() if at is None else at)

    def left(self) -> int:
        with self.store.read() as reader:
            return reader.outbox_count(RTE.sweep_id)


def drive(store: Store, *studies: StudyRow) -> Driven:
    """Enter the sweep with these studies and take it up."""
    options = {"space": ["lora"], "tasks": ["rte", "cola"], "trials": 3, "patience": None}
    small_sweeps.enter(store, *studies, state="running", options=options)
    return take_up(store, 2000)


def take_up(store: Store, since: int) -> Driven:
    """What another driver of the sweep does first."""
    ticks = count(since)

    def now() -> float:
        return float(next(ticks))

    return Driven(store, Core(store, RTE.sweep_id, clock=now), now)
