"""From the messages about a trial to what its run is told."""

from collections.abc import Iterable

from orchestrator.outcome import Outcome
from orchestrator.store.rows import OutboxRow, TrialRow
from orchestrator.tracking import names
from orchestrator.tracking.errors import BadMessage
from orchestrator.tracking.updates import Point, Status, Update, milliseconds

_LARGEST_STEP = 2**63 - 1


def status_of(outcome: Outcome) -> Status:
    """What MLflow calls a trial that ended so, or that nobody trains any more."""
    if outcome.completed or outcome is Outcome.STOPPED:
        return "FINISHED"
    return "FAILED" if outcome.failure or outcome is Outcome.LOST else "KILLED"


def trial_update(messages: Iterable[OutboxRow], trial: TrialRow) -> Update:
    """All that these messages, in their order, say of a trial.

    Raises:
        BadMessage: one of them is not as it should be.
    """
    update = Update()
    for message in messages:
        try:
            _add(update, message, trial)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadMessage(f"{type(error).__name__}: {error}") from error
    return update


def _add(update: Update, message: OutboxRow, trial: TrialRow) -> None:
    at = milliseconds(message.created_at)
    if message.kind == "trial_started":
        update.tags |= names.tags({"attempt": message.payload["attempt"], "outcome": "running"})
        update.status, update.at = "RUNNING", at
    elif message.kind == "trial_reported":
        step = message.payload["epoch"]
        _check(step)
        for key, value in message.payload["metrics"].items():
            update.points.append(Point(key=names.name(key), value=float(value), step=step, at=at))
    elif message.kind == "trial_finished":
        outcome = Outcome(message.payload["outcome"])
        update.tags |= names.tags({"outcome": outcome})
        update.points += _final(trial, at)
        update.status, update.at = status_of(outcome), at
    else:
        raise ValueError(f"no message '{message.kind}' about a trial is known")


def _check(step: object) -> None:
    if not isinstance(step, int) or not 0 <= step <= _LARGEST_STEP:
        raise ValueError(f"an epoch must be a number that fits 63 bits, got {step!r}")


def _final(trial: TrialRow, at: int) -> list[Point]:
    values = {"epochs": float(trial.epochs), "device_seconds": trial.device_seconds}
    if trial.score is not None:
        values["score"] = trial.score
    return [Point(key=key, value=value, step=trial.epochs, at=at) for key, value in values.items()]
