"""What the experiment tracker is told, as rows of the outbox.

A message joins the transaction of what it tells, so that neither is there without the other.
"""

import statistics
from collections.abc import Mapping
from typing import Any

from orchestrator.live import Live
from orchestrator.outcome import Outcome
from orchestrator.store.rows import ReportRow
from orchestrator.store.writing import Transaction


def sweep_started(tx: Transaction, sweep_id: str, now: float) -> None:
    """A launch took the sweep up."""
    tx.add_outbox(sweep_id, "sweep_started", {}, now)


def trial_started(
    tx: Transaction, sweep_id: str, live: Live, values: Mapping[str, Any], now: float
) -> None:
    """A worker began an attempt at a trial."""
    payload = {"trial": live.trial_id, "attempt": live.attempt, "hyperparameters": dict(values)}
    tx.add_outbox(sweep_id, "trial_started", payload, now)


def trial_reported(
    tx: Transaction, sweep_id: str, live: Live, rows: list[ReportRow], now: float
) -> None:
    """A trial was evaluated: medians over its seeds."""
    metrics = {"score": live.score}
    for name in ("loss", "train_loss"):
        values = [value for row in rows if (value := getattr(row, name)) is not None]
        if values:
            metrics[name] = statistics.median(values)
    for name in dict.fromkeys(name for row in rows for name in row.metrics):
        metrics[name] = statistics.median(row.metrics[name] for row in rows if name in row.metrics)
    payload = {"trial": live.trial_id, "epoch": rows[0].epoch, "metrics": metrics}
    tx.add_outbox(sweep_id, "trial_reported", payload, now)


def trial_finished(
    tx: Transaction, sweep_id: str, live: Live, outcome: Outcome, now: float
) -> None:
    """A trial has a final outcome."""
    payload = {"trial": live.trial_id, "outcome": outcome.value}
    tx.add_outbox(sweep_id, "trial_finished", payload, now)


def study_finished(tx: Transaction, sweep_id: str, study_id: str, now: float) -> None:
    """Every trial of a study has a final outcome."""
    tx.add_outbox(sweep_id, "study_finished", {"study": study_id}, now)


def sweep_ended(
    tx: Transaction, sweep_id: str, state: str, pictures: list[str], now: float
) -> None:
    """A launch let go of the sweep: finished or not, with these pictures."""
    payload = {"state": state, "pictures": pictures}
    tx.add_outbox(sweep_id, "sweep_ended", payload, now)
