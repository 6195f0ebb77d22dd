"""The best assignment of each study as a table: for a terminal, Markdown, CSV and JSON.

Rows carry numbers; scores are fractions. Only the terminal and Markdown show points (x 100, one
decimal) of a maximised metric; a minimised one, a loss, is shown as it is.
"""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from orchestrator.outcome import Outcome
from trials.spec import Scalar

_NUMBERS = ("score", "std", "majority", "trials", "epochs")
_SCORES = ("task", "space", "metric", *_NUMBERS)
_HEADERS = ("task", "space", "backbone", "metric", *_NUMBERS, "outcomes", "hyperparameters")


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """What is known of one study: one row of the table."""

    name: str
    space: str
    task: str
    backbone: str
    metric: str
    maximize: bool
    majority: float | None
    """Score of always answering the most frequent class."""
    best_hyperparameters: Mapping[str, Scalar] | None
    """None while no trial has a score."""
    best_scores: Mapping[int, float]
    """By seed, those of the best assignment."""
    outcomes: Mapping[Outcome, int]
    """How many trials are in each state."""
    epochs: int
    """Spent by all its trials together."""
    num_trials: int
    """Planned."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One study in a table."""

    study: str
    task: str
    space: str
    backbone: str
    metric: str
    maximize: bool
    score: float | None
    """Median over the seeds of the best assignment."""
    std: float | None
    """Standard deviation over these seeds (n - 1); None for fewer than two."""
    num_seeds: int
    majority: float | None
    hyperparameters: dict[str, Scalar]
    num_trials: int
    outcomes: dict[str, int]
    """Without the states that no trial is in."""
    epochs: int
    note: str


def to_rows(studies: Sequence[StudySummary]) -> list[Row]:
    """A row for each study, in the order given."""
    return [_row(study) for study in studies]


def to_dicts(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows as JSON objects."""
    return [asdict(row) for row in rows]


def to_csv(rows: Sequence[Row]) -> str:
    """The rows with a header line; hyperparameters and outcomes as `name=value` lists."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*Row.__dataclass_fields__], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            asdict(row)
            | {"hyperparameters": _compact(row.hyperparameters), "outcomes": _compact(row.outcomes)}
        )
    return text.getvalue()


def to_markdown(rows: Sequence[Row]) -> str:
    """The rows as one Markdown table, with the notes below it."""
    lines = [_HEADERS, tuple("---" for _ in _HEADERS)]
    lines += [tuple(_texts(row).values()) for row in rows]
    table = "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )
    return table + "".join(f"\n{note}\n" for note in _notes(rows))


def to_rich(rows: Sequence[Row]) -> Group:
    """Scores, then what they took and the hyperparameters, for a terminal of 80 columns."""
    scores, details = (
        Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0, expand=True) for _ in range(2)
    )
    for header in _SCORES:
        right = header in _NUMBERS
        scores.add_column(header, justify="right" if right else "left", overflow="fold")
    for header in ("task", "space", "backbone; trials; best hyperparameters"):
        details.add_column(header, overflow="fold", ratio=1 if ";" in header else None)
    for row in rows:
        texts = _texts(row)
        took = f"{row.backbone}; {texts['outcomes']}\n{texts['hyperparameters']}"
        # Text, since a value such as [red] is no markup.
        scores.add_row(*(Text(texts[header]) for header in _SCORES))
        details.add_row(Text(row.task), Text(row.space), Text(took))
    return Group(scores, details, *(Text(note) for note in _notes(rows)))


def _row(study: StudySummary) -> Row:
    scores = list(study.best_scores.values())
    return Row(
        study=study.name,
        task=study.task,
        space=study.space,
        backbone=study.backbone,
        metric=study.metric,
        maximize=study.maximize,
        score=statistics.median(scores) if scores else None,
        std=statistics.stdev(scores) if len(scores) > 1 else None,
        num_seeds=len(scores),
        majority=study.majority,
        hyperparameters=dict(study.best_hyperparameters or {}),
        num_trials=study.num_trials,
        outcomes={
            outcome.value: study.outcomes[outcome]
            for outcome in Outcome
            if study.outcomes.get(outcome)
        },
        epochs=study.epochs,
        note=study.note,
    )


def _texts(row: Row) -> dict[str, str]:
    """The texts of a row by header."""
    ended = sum(number for name, number in row.outcomes.items() if Outcome(name).final)
    outcomes = [f"{number} {name.replace('_', ' ')}" for name, number in row.outcomes.items()]
    texts = (
        row.task,
        row.space,
        row.backbone,
        row.metric,
        _shown(row.score, row),
        _shown(row.std, row),
        _shown(row.majority, row),
        f"{ended}/{row.num_trials}",
        str(row.epochs),
        ", ".join(outcomes) or "none yet",
        _compact(row.hyperparameters) or "no score yet",
    )
    return dict(zip(_HEADERS, texts, strict=True))


def _shown(score: float | None, row: Row) -> str:
    if score is None:
        return "-"
    return f"{100 * score:.1f}" if row.maximize else f"{score:.4f}"


def _compact(values: Mapping[str, Scalar]) -> str:
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.note for row in rows if row.note))
