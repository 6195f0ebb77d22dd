"""Sweeps of hand-made rows, and evaluations that are functions of (trial, seed, epoch)."""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from orchestrator.core import Claim, Core
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store
from orchestrator.store.rows import DecisionRow, RunRow, StudyRow, SweepRow, TrialRow
from orchestrator.store.writing import Transaction
from trials.spec import EvalPoint, RunPoint, RunState

EPOCHS = 9
STUDY = StudyRow(
    id="small/aot_fc-rte",
    sweep_id="small",
    position=0,
    space="aot_fc@demo",
    method="aot_fc",
    task="rte",
    backbone="minilm",
    metric="accuracy",
    maximize=True,
    worst=0.0,
    ceiling=1.0,
    num_trials=4,
    seeds=[0],
    max_epochs=EPOCHS,
    searcher="random",
    search_seed=0,
    scheduler="asha",
    grace=1,
    eta=3,
    space_definition={
        "method": "aot_fc",
        "name": "aot_fc@demo",
        "source": "",
        "space": {"learning_rate": {"log_uniform": [1e-4, 1e-2]}, "rank": {"choice": [16, 32]}},
        "tied": [],
        "training": {"epochs": EPOCHS},
        "seeds": None,
    },
    data={"source": "demo", "fingerprint": "rows", "model": "weights"},
)
"""Rungs at 1 and 3 epochs."""


def study(name: str = "aot_fc-rte", sweep: str = "small", **columns: Any) -> StudyRow:
    """A study of `sweep`; a minimised metric is a loss."""
    if columns.get("maximize") is False:
        columns = {"metric": "loss", "worst": 10.0, "ceiling": 0.0} | columns
    return replace(STUDY, id=f"{sweep}/{name}", sweep_id=sweep, **columns)


def enter(store: Store, *studies: StudyRow, **columns: Any) -> None:
    """Write a sweep of these studies, its trials pending; `columns` are the sweep's."""
    sweep = SweepRow(id=studies[0].sweep_id, options={}, profile="demo", created_at=1000.0)
    with store.write() as tx:
        tx.add_sweep(replace(sweep, **columns))
        for row in studies:
            tx.add_study(row)
            add_trials(tx, row)


def add_trials(tx: Transaction, row: StudyRow, first: int = 0) -> None:
    """Write a study's trials from number `first`; TPE is to choose their values."""
    trials = [
        TrialRow(
            id=f"{row.id}/{k}",
            study_id=row.id,
            k=k,
            hyperparameters=(
                None
                if row.searcher == "tpe"
                else {"learning_rate": 10.0**-k, "rank": k + 1, "batch_size": 8}
            ),
            hash=None if row.searcher == "tpe" else f"hash {k}",
        )
        for k in range(first, row.num_trials)
    ]
    tx.add_trials(trials)
    tx.add_runs(RunRow(trial_id=t.id, seed=seed) for t in trials for seed in row.seeds)


def point(
    epoch: int,
    *values: float,
    loss: float | Sequence[float | None] | None = 0.5,
    states: Sequence[RunState] = (),
    last: bool = False,
    seconds: float = 2.0,
    seeds: Sequence[int] = (),
) -> EvalPoint:
    """One evaluation with a value for each of seeds 0, 1, ..., or of those named."""
    losses = loss if isinstance(loss, Sequence) else [loss] * len(values)
    runs = tuple(
        RunPoint(
            seed=seeds[index] if seeds else index,
            value=value,
            score=value,
            loss=losses[index],
            train_loss=0.25,
            metrics={"validation/accuracy": value},
            state=states[index] if states else "completed" if last else "running",
        )
        for index, value in enumerate(values)
    )
    return EvalPoint(epoch=epoch, runs=runs, seconds=seconds, last=last)


def claim(core: Core) -> Claim:
    """The next trial, which there must be."""
    claimed = core.claim()
    assert claimed is not None
    return claimed


def report(core: Core, claimed: Claim, evaluation: EvalPoint) -> bool:
    """Whether the trial is to stop."""
    return core.report(claimed.trial_id, claimed.attempt, evaluation)


def trial(store: Store, trial_id: str) -> TrialRow:
    with store.read() as reader:
        row = reader.trial(trial_id)
    assert row is not None
    return row


def runs(store: Store, trial_id: str) -> list[RunRow]:
    with store.read() as reader:
        return reader.runs(trial_id)


def decisions(store: Store, study_id: str) -> list[DecisionRow]:
    with store.read() as reader:
        return reader.decisions(study_id)


def everything(store: Store, sweep_id: str, *, but: Sequence[str] = ()) -> list[Any]:
    """Studies, trials, runs, reports and decisions of a sweep, some columns left out."""
    with store.read() as reader:
        found: list[Any] = []
        for row in reader.studies(sweep_id):
            trials = reader.trials(row.id)
            found += [row, *trials, *reader.study_reports(row.id), *reader.decisions(row.id)]
            for each in trials:
                found += reader.runs(each.id)
    return [{k: v for k, v in vars(row).items() if k not in but} for row in found]


def check_counters(core: Core) -> None:
    """What a core keeps in memory is what the rows say."""
    with core.store.read() as reader:
        for state in core.studies:
            trials = reader.trials(state.row.id)
            counted = {o: sum(t.outcome == o for t in trials) for o in Outcome}
            assert {o: n for o, n in state.outcomes.items() if n} == {
                o: n for o, n in counted.items() if n
            }
            better = max if state.row.maximize else min
            assert state.best == better(
                (t.score for t in trials if t.score is not None), default=None
            )
            waiting = {t.k for t in trials if t.outcome == Outcome.PENDING}
            assert set(state.waiting) == waiting
            assert len(state.waiting) == len(waiting)
        trials = reader.sweep_trials(core.sweep_id)
        assert math.isclose(core.device_seconds, sum(t.device_seconds for t in trials))
        assert core.num_failures == sum(t.outcome.failure for t in trials)
        running = {t.id: t.attempts for t in trials if t.outcome == Outcome.RUNNING}
        assert {live.trial_id: live.attempt for live in core.live.values()} == running


@dataclass
class Lane:
    """One seed of a made-up trial: its evaluations until it ends by itself."""

    values: list[float]
    end: RunState


def lane(row: StudyRow, k: int, seed: int) -> Lane:
    """The evaluations of one seed: learning with noise, ties, patience and divergence."""
    return _lane(row.id.partition("/")[2], k, seed, row.maximize, row.worst)


@cache
def _lane(name: str, k: int, seed: int, maximize: bool, worst: float, patience: int = 4) -> Lane:
    source = random.Random(f"{name} {k} {seed}")
    target = source.choice([0.3, 0.5, 0.7, 0.9])
    fails_at = source.randint(1, EPOCHS) if source.random() < 0.3 or k == 3 else None
    values: list[float] = []
    for epoch in range(1, EPOCHS + 1):
        if epoch == fails_at:
            return Lane([*values, worst], "diverged")
        accuracy = round(target * (1 - 0.5**epoch) + source.choice([-0.1, -0.05, 0, 0.05]), 2)
        values.append(accuracy if maximize else 1 - accuracy)
        best_epoch = 1 + values.index(max(values) if maximize else min(values))
        if epoch < EPOCHS and epoch - best_epoch >= patience:
            return Lane(values, "completed_by_patience")
    return Lane(values, "completed")


def evaluations(row: StudyRow, k: int) -> list[EvalPoint]:
    """Every evaluation of a made-up trial that nobody stops."""
    lanes = {seed: lane(row, k, seed) for seed in row.seeds}
    last = max(len(each.values) for each in lanes.values())
    return [
        EvalPoint(
            epoch=epoch,
            runs=tuple(
                RunPoint(
                    seed=seed,
                    value=each.values[epoch - 1],
                    score=each.values[epoch - 1],
                    loss=None if each.end == "diverged" and final else round(1 / (k + epoch), 2),
                    train_loss=None,
                    metrics={},
                    state=each.end if final else "running",
                )
                for seed, each in lanes.items()
                if epoch <= len(each.values)
                for final in [epoch == len(each.values)]
            ),
            seconds=1.0,
            last=epoch == last,
        )
        for epoch in range(1, last + 1)
    ]


def score_after(row: StudyRow, k: int, epochs: int) -> float:
    """Median over seeds of the best value in so many epochs."""
    better = max if row.maximize else min
    return statistics.median(better(lane(row, k, seed).values[:epochs]) for seed in row.seeds)


def natural_end(row: StudyRow, k: int) -> Outcome:
    """How a trial ends that nobody stops."""
    ends = {lane(row, k, seed).end for seed in row.seeds}
    if ends == {"diverged"}:
        return Outcome.DIVERGED
    return Outcome.COMPLETED if "completed" in ends else Outcome.COMPLETED_BY_PATIENCE
