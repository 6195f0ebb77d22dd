"""The oldest messages of the outbox, in groups that can be told in one go."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.store.reading import Reader
from orchestrator.store.rows import OutboxRow, StudyRow, SweepRow, TrialRow
from orchestrator.tracking.updates import Level

LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class Page:
    """Messages, and the rows that they are about."""

    messages: list[OutboxRow]
    sweep: SweepRow
    studies: dict[str, StudyRow]
    trials: dict[str, TrialRow]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Messages about one thing, in their order."""

    level: Level
    target: str
    messages: list[OutboxRow]


def read_page(reader: Reader, sweep_id: str) -> Page | None:
    """The next page; None while there are no messages."""
    messages = reader.outbox(sweep_id, LENGTH)
    sweep = reader.sweep(sweep_id)
    if not messages or sweep is None:
        return None
    wanted = dict.fromkeys(target for level, target in map(_about, messages) if level == "trial")
    trials = (reader.trial(trial_id) for trial_id in wanted)
    return Page(
        messages=messages,
        sweep=sweep,
        studies={study.id: study for study in reader.studies(sweep_id)},
        trials={trial.id: trial for trial in trials if trial is not None},
    )


def groups(messages: list[OutboxRow]) -> Iterator[Group]:
    """The messages by what they are about; none passes one about the whole sweep."""
    open_groups: dict[str, Group] = {}
    for message in messages:
        level, target = _about(message)
        if level == "sweep":
            yield from open_groups.values()
            open_groups = {}
            yield Group(level=level, target=target, messages=[message])
        else:
            new = Group(level=level, target=target, messages=[])
            open_groups.setdefault(target, new).messages.append(message)
    yield from open_groups.values()


def _about(message: OutboxRow) -> tuple[Level, str]:
    if message.kind.startswith("trial_"):
        return "trial", str(message.payload.get("trial"))
    if message.kind.startswith("study_"):
        return "study", str(message.payload.get("study"))
    return "sweep", message.sweep_id
