"""How far sweeps are, as text and JSON."""

import datetime
from collections import Counter
from typing import Any

from rich import box
from rich.table import Table

from orchestrator.cli.app import line, out
from orchestrator.notes import note_of
from orchestrator.outcome import Outcome
from orchestrator.store.reading import Reader
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow


def status_json(reader: Reader, sweep: SweepRow, studies: list[StudyRow]) -> dict[str, Any]:
    """A sweep with its studies and trials, under the names that scripts rely on."""
    return {
        "name": sweep.id,
        "state": sweep.state,
        "profile": sweep.profile,
        "studies": [
            {
                "space": study.space,
                "method": study.method,
                "task": study.task,
                "backbone": study.backbone,
                "incumbent": incumbent(study, trials),
                "note": note_of(study),
                "trials": [_trial_json(trial) for trial in trials],
            }
            for study in studies
            for trials in [reader.trials(study.id)]
        ],
    }


def sweep_json(reader: Reader, sweep: SweepRow) -> dict[str, Any]:
    """A sweep in one line."""
    counts = _counts(reader, sweep)
    return {
        "name": sweep.id,
        "state": sweep.state,
        "profile": sweep.profile,
        "created_at": sweep.created_at,
        "studies": len(reader.studies(sweep.id)),
        "outcomes": {outcome.value: number for outcome, number in counts.items()},
    }


def print_list(reader: Reader) -> None:
    """Every sweep, a line each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("sweep", "state", "profile", "begun", "studies", "ended"):
        table.add_column(name, overflow="fold")
    for sweep in reader.sweeps():
        counts = _counts(reader, sweep)
        ended = sum(number for outcome, number in counts.items() if outcome.final)
        table.add_row(
            sweep.id,
            sweep.state,
            sweep.profile,
            _when(sweep.created_at),
            str(len(reader.studies(sweep.id))),
            f"{ended}/{sum(counts.values())}",
        )
    out.print(table)


def print_status(reader: Reader, sweep: SweepRow, studies: list[StudyRow]) -> None:
    """A sweep's studies, a line each, and what is running."""
    line(f"{sweep.id}: {sweep.state}, profile {sweep.profile}, begun {_when(sweep.created_at)}")
    line(note_of(studies[0]))
    table = studies_table("waiting", "running", "stopped", "completed", "failed", "epochs", "best")
    running: list[TrialRow] = []
    for study in studies:
        trials = reader.trials(study.id)
        counts = Counter(trial.outcome for trial in trials)
        best = incumbent(study, trials)
        running += [trial for trial in trials if trial.outcome == Outcome.RUNNING]
        table.add_row(
            study.id.partition("/")[2],
            str(counts[Outcome.PENDING]),
            str(counts[Outcome.RUNNING]),
            str(counts[Outcome.STOPPED]),
            str(sum(number for outcome, number in counts.items() if outcome.completed)),
            str(sum(number for outcome, number in counts.items() if _bad(outcome))),
            str(sum(trial.epochs for trial in trials)),
            "-" if best is None else f"{100 * best:.1f}",
        )
    out.print(table)
    for trial in running:
        score = "" if trial.score is None else f", score {100 * trial.score:.1f}"
        line(f"running: {trial.id}, attempt {trial.attempts}, epoch {trial.epochs}{score}")


def studies_table(*columns: str) -> Table:
    """An empty table with a row for each study; the names of studies are never cut."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("study", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def incumbent(study: StudyRow, trials: list[TrialRow]) -> float | None:
    """The best score of a study so far."""
    better = max if study.maximize else min
    return better((trial.score for trial in trials if trial.score is not None), default=None)


def _trial_json(trial: TrialRow) -> dict[str, Any]:
    return {
        "id": trial.id,
        "k": trial.k,
        "outcome": trial.outcome.value,
        "score": trial.score,
        "epochs": trial.epochs,
        "attempts": trial.attempts,
    }


def _bad(outcome: Outcome) -> bool:
    return outcome.failure or outcome in (Outcome.LOST, Outcome.CANCELLED)


def _counts(reader: Reader, sweep: SweepRow) -> Counter[Outcome]:
    counts: Counter[Outcome] = Counter()
    for of_study in reader.outcome_counts(sweep.id).values():
        counts.update(of_study)
    return counts


def _when(time: float) -> str:
    return datetime.datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M")
