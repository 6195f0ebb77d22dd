"""Rows with every value filled in, for tests to change the few they are about."""

from dataclasses import replace
from typing import Any

from orchestrator.outcome import Outcome
from orchestrator.store.database import Store
from orchestrator.store.rows import (
    DecisionRow,
    ReportRow,
    RunRow,
    StudyRow,
    SweepRow,
    TrialRow,
)

SWEEP = SweepRow(
    id="glue-lora",
    state="running",
    options={"space": ["lora"], "tasks": ["rte"]},
    execution={"workers": 2},
    versions={"torch": "2.13.0"},
    profile="demo",
    created_at=1000.5,
    wall_seconds=2.25,
)
STUDY = StudyRow(
    id="glue-lora/lora-rte",
    sweep_id="glue-lora",
    position=0,
    space="lora@demo",
    method="lora",
    task="rte",
    backbone="minilm",
    metric="accuracy",
    maximize=True,
    worst=0.0,
    ceiling=1.0,
    num_trials=3,
    seeds=[0, 1, 2**40],
    max_epochs=9,
    searcher="random",
    search_seed=2**40,
    grid_size=2**40,
    scheduler="asha",
    grace=1,
    eta=3,
    space_definition={"learning_rate": {"log_uniform": [1e-5, 1e-1]}},
    data={"train": 100, "majority": 0.5},
)
REPORT = ReportRow(
    trial_id="glue-lora/lora-rte/0",
    seed=0,
    epoch=1,
    attempt=1,
    value=0.1 + 0.2,
    score=0.5,
    loss=0.7,
    train_loss=None,
    metrics={"accuracy": 1 / 3},
    seconds=1.5,
    created_at=1001.5,
)
DECISION = DecisionRow(
    trial_id="glue-lora/lora-rte/0",
    study_id="glue-lora/lora-rte",
    rung=1,
    value=0.5,
    loss=0.7,
    threshold=None,
    count=0,
    stop=False,
    created_at=1002.5,
)


def trial(k: int, study: StudyRow = STUDY, **columns: Any) -> TrialRow:
    row = TrialRow(
        id=f"{study.id}/{k}",
        study_id=study.id,
        k=k,
        hyperparameters={"learning_rate": 10.0**-k, "rank": k},
        hash=f"hash-{k % 2}",
    )
    return replace(row, **columns)


def fill(store: Store, *, num_trials: int = 3) -> list[TrialRow]:
    """One sweep with one study, its trials pending, with a run for each seed."""
    trials = [trial(k) for k in range(num_trials)]
    with store.write() as transaction:
        transaction.add_sweep(SWEEP)
        transaction.add_study(STUDY)
        transaction.add_trials(trials)
        transaction.add_runs(
            RunRow(trial_id=t.id, seed=seed, outcome=Outcome.PENDING)
            for t in trials
            for seed in STUDY.seeds
        )
    return trials
