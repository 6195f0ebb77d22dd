"""All that is recorded of a sweep, a study or a trial."""

import dataclasses
import datetime
import json
from typing import Any

from orchestrator.cli.app import line
from orchestrator.cli.find import find_any
from orchestrator.outcome import Outcome
from orchestrator.store.reading import Reader
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow

LOG_LINES = 30
_REPEATED = ("trial_id", "study_id")
"""Left out of the rows below a trial or study, which all have them."""


def described(reader: Reader, name: str) -> dict[str, Any]:
    """The rows behind a name as JSON values.

    Raises:
        Refused: if there is none.
    """
    found = find_any(reader, name)
    if isinstance(found, SweepRow):
        return _sweep(reader, found)
    if isinstance(found, StudyRow):
        return _study(reader, found)
    return _trial(reader, found)


def _sweep(reader: Reader, sweep: SweepRow) -> dict[str, Any]:
    counts = reader.outcome_counts(sweep.id)
    return {
        "sweep": dataclasses.asdict(sweep),
        "studies": {study: _words(counts[study]) for study in counts},
        "device_seconds": reader.device_seconds(sweep.id),
        "messages_waiting_for_mlflow": reader.outbox_count(sweep.id),
    }


def _study(reader: Reader, study: StudyRow) -> dict[str, Any]:
    return {
        "study": dataclasses.asdict(study),
        "outcomes": _words(reader.outcome_counts(study.sweep_id)[study.id]),
        "decisions": [dataclasses.asdict(made) for made in reader.decisions(study.id)],
    }


def _trial(reader: Reader, trial: TrialRow) -> dict[str, Any]:
    content = dataclasses.asdict(trial)
    error = content.pop("error") or ""
    decisions = [d for d in reader.decisions(trial.study_id) if d.trial_id == trial.id]
    return {
        "trial": content,
        "runs": [dataclasses.asdict(run) for run in reader.runs(trial.id)],
        "reports": [dataclasses.asdict(report) for report in reader.reports(trial.id)],
        "decisions": [dataclasses.asdict(made) for made in decisions],
        "error": error.splitlines()[-LOG_LINES:],
    }


def print_described(content: dict[str, Any]) -> None:
    """The rows as indented text, an item a line; lists of rows in compact lines."""
    for title, value in content.items():
        if title == "error":
            for text in value:
                line(f"  {text}")
            continue
        line(f"{title}:")
        _print(value, "  ")


def _print(value: object, indent: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict) and item:
                line(f"{indent}{key}:")
                _print(item, indent + "  ")
            else:
                line(f"{indent}{key}: {_text(item, key)}")
    elif isinstance(value, list):
        for item in value:
            line(f"{indent}{_text(item)}")
    else:
        line(f"{indent}{_text(value)}")


def _text(value: object, key: str = "") -> str:
    if isinstance(value, dict):
        shown = {k: v for k, v in value.items() if v is not None and k not in _REPEATED}
        return ", ".join(f"{k} {_text(v, k)}" for k, v in shown.items())
    if isinstance(value, float) and key.endswith("_at"):
        return datetime.datetime.fromtimestamp(value).isoformat(sep=" ", timespec="seconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, list) else str(value)


def _words(counts: dict[Outcome, int]) -> dict[str, int]:
    return {outcome.value: number for outcome, number in counts.items()}
