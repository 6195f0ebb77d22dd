"""Entering a planned sweep in the database, or taking up the one that is there."""

import time
from typing import Any

from orchestrator import plan_rows
from orchestrator.errors import Refused
from orchestrator.options import option
from orchestrator.plan import Plan, difference
from orchestrator.store.rows import RunRow, StudyRow, SweepRow
from orchestrator.store.writing import Transaction


def check_same(known: SweepRow, plan: Plan) -> None:
    """Refuse a launch whose name stands for another sweep, naming the difference."""
    changed = difference(known.options, plan.identity)
    if changed:
        words = ", ".join(
            _change(key, known.options.get(key), plan.identity.get(key)) for key in changed
        )
        raise Refused(
            f"sweep {plan.name} exists with other options: {words}; "
            f"only --trials may grow; give another --name"
        )


def _change(key: str, before: object, now: object) -> str:
    if key == "space_definitions":
        return "--space means other values than it did"
    return f"{option(key)} {_words(before)} (now {_words(now)})"


def _words(value: object) -> str:
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def record(tx: Transaction, plan: Plan, data: dict[str, dict[str, Any]], versions: Any) -> None:
    """Write the sweep with all its studies and trials; of a known one what was added."""
    now = time.time()
    sweep = plan_rows.sweep_row(plan, versions, now)
    known = tx.sweep(plan.name)
    if known is None:
        tx.add_sweep(sweep)
    else:
        check_same(known, plan)
        tx.update_sweep(plan.name, options=plan.identity)
    there = {study.id: study for study in tx.studies(plan.name)}
    for position, study in enumerate(plan.studies):
        row = plan_rows.study_row(plan, position, data[study.task])
        before = there.get(row.id)
        if before is None:
            tx.add_study(row)
        else:
            check_data(before, row.data)
            if row.num_trials > before.num_trials:
                tx.update_study(row.id, num_trials=row.num_trials)
        _add_trials(tx, plan, position, row, first=before.num_trials if before else 0)


def _add_trials(tx: Transaction, plan: Plan, position: int, study: StudyRow, first: int) -> None:
    trials = list(plan_rows.trial_rows(plan, position, first))
    tx.add_trials(trials)
    tx.add_runs(RunRow(trial_id=row.id, seed=seed) for row in trials for seed in study.seeds)


def check_data(study: StudyRow, data: dict[str, Any]) -> None:
    """Refuse to go on with rows or weights that are not the ones the study began with."""
    for key, words in (("fingerprint", f"rows of task {study.task}"), ("model", "backbone")):
        if study.data.get(key) != data.get(key):
            raise Refused(
                f"study {study.id}: the {words} changed since it began "
                f"({study.data.get(key, '')[:12]} before, {data.get(key, '')[:12]} now); "
                f"launch under another --name"
            )


def begin(tx: Transaction, sweep_id: str, execution: dict[str, Any], versions: Any) -> None:
    """Note that a driver took the sweep up."""
    tx.update_sweep(
        sweep_id,
        state="running",
        execution=execution,
        versions=versions,
        stop_requested=False,
        finished_at=None,
    )


def end(tx: Transaction, sweep_id: str, state: str, wall_seconds: float) -> None:
    """Note how a driver let go of it."""
    sweep = tx.sweep(sweep_id)
    assert sweep is not None
    tx.update_sweep(
        sweep_id,
        state=state,
        finished_at=time.time(),
        wall_seconds=sweep.wall_seconds + wall_seconds,
    )
