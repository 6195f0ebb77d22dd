"""Questions to the trial database."""

from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Select, Text, bindparam, func, select

from orchestrator.outcome import Outcome
from orchestrator.store import tables
from orchestrator.store.rows import (
    DecisionRow,
    OutboxRow,
    ReportRow,
    RunRow,
    StudyRow,
    SweepRow,
    TrialRow,
)

RowT = TypeVar("RowT")

_ID = bindparam("id", type_=Text)
_SWEEPS = select(tables.sweep).order_by(tables.sweep.c.created_at, tables.sweep.c.id)
_SWEEP = select(tables.sweep).where(tables.sweep.c.id == _ID)
_STUDIES = (
    select(tables.study)
    .where(tables.study.c.sweep_id == _ID)
    .order_by(tables.study.c.position, tables.study.c.id)
)
_STUDY = select(tables.study).where(tables.study.c.id == _ID)
_TRIALS = select(tables.trial).where(tables.trial.c.study_id == _ID).order_by(tables.trial.c.k)
_SWEEP_TRIALS = (
    select(tables.trial)
    .join(tables.study)
    .where(tables.study.c.sweep_id == _ID)
    .order_by(tables.study.c.position, tables.study.c.id, tables.trial.c.k)
)
_TRIAL = select(tables.trial).where(tables.trial.c.id == _ID)
_RUNS = select(tables.run).where(tables.run.c.trial_id == _ID).order_by(tables.run.c.seed)
_REPORTS = (
    select(tables.report)
    .where(tables.report.c.trial_id == _ID)
    .order_by(tables.report.c.epoch, tables.report.c.seed)
)
_STUDY_REPORTS = (
    select(tables.report)
    .join(tables.trial)
    .where(tables.trial.c.study_id == _ID)
    .order_by(tables.trial.c.k, tables.report.c.epoch, tables.report.c.seed)
)
_DECISIONS = (
    select(tables.decision).where(tables.decision.c.study_id == _ID).order_by(tables.decision.c.id)
)
_OUTBOX = (
    select(tables.outbox)
    .where(tables.outbox.c.sweep_id == _ID)
    .order_by(tables.outbox.c.id)
    .limit(bindparam("limit"))
)
_OUTBOX_COUNT = select(func.count()).where(tables.outbox.c.sweep_id == _ID)
_DEVICE_SECONDS = (
    select(func.coalesce(func.sum(tables.trial.c.device_seconds), 0.0))
    .join_from(tables.trial, tables.study)
    .where(tables.study.c.sweep_id == _ID)
)
_OUTCOME_COUNTS = (
    select(tables.study.c.id, tables.trial.c.outcome, func.count())
    .outerjoin_from(tables.study, tables.trial)
    .where(tables.study.c.sweep_id == _ID)
    .group_by(tables.study.c.position, tables.study.c.id, tables.trial.c.outcome)
    .order_by(tables.study.c.position, tables.study.c.id)
)
_STOP_REQUESTED = select(tables.sweep.c.stop_requested).where(tables.sweep.c.id == _ID)


class Reader:
    """What can be asked, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def sweeps(self) -> list[SweepRow]:
        """All sweeps, oldest first."""
        return self._rows(SweepRow, _SWEEPS)

    def sweep(self, sweep_id: str) -> SweepRow | None:
        """The sweep, None if there is none of this name."""
        return self._row(SweepRow, _SWEEP, sweep_id)

    def studies(self, sweep_id: str) -> list[StudyRow]:
        """The studies of a sweep by position."""
        return self._rows(StudyRow, _STUDIES, id=sweep_id)

    def study(self, study_id: str) -> StudyRow | None:
        """The study, None if there is none of this id."""
        return self._row(StudyRow, _STUDY, study_id)

    def trials(self, study_id: str) -> list[TrialRow]:
        """The trials of a study by k."""
        return self._rows(TrialRow, _TRIALS, id=study_id)

    def sweep_trials(self, sweep_id: str) -> list[TrialRow]:
        """The trials of a sweep by position of their study, then k."""
        return self._rows(TrialRow, _SWEEP_TRIALS, id=sweep_id)

    def trial(self, trial_id: str) -> TrialRow | None:
        """The trial, None if there is none of this id."""
        return self._row(TrialRow, _TRIAL, trial_id)

    def runs(self, trial_id: str) -> list[RunRow]:
        """The runs of a trial by seed."""
        return self._rows(RunRow, _RUNS, id=trial_id)

    def reports(self, trial_id: str) -> list[ReportRow]:
        """The reports of a trial by epoch, then seed."""
        return self._rows(ReportRow, _REPORTS, id=trial_id)

    def study_reports(self, study_id: str) -> list[ReportRow]:
        """The reports of a study by k of their trial, then epoch, then seed."""
        return self._rows(ReportRow, _STUDY_REPORTS, id=study_id)

    def decisions(self, study_id: str) -> list[DecisionRow]:
        """The decisions of a study in the order in which they fell."""
        return self._rows(DecisionRow, _DECISIONS, id=study_id)

    def outbox(self, sweep_id: str, limit: int) -> list[OutboxRow]:
        """The oldest messages that are not delivered yet."""
        return self._rows(OutboxRow, _OUTBOX, id=sweep_id, limit=limit)

    def outbox_count(self, sweep_id: str) -> int:
        """How many messages are not delivered yet."""
        return int(self._value(_OUTBOX_COUNT, sweep_id))

    def device_seconds(self, sweep_id: str) -> float:
        """Seconds of device time that the trials of a sweep have spent."""
        return float(self._value(_DEVICE_SECONDS, sweep_id))

    def outcome_counts(self, sweep_id: str) -> dict[str, dict[Outcome, int]]:
        """How many trials of each study have each outcome; studies by position, no zeros."""
        counts: dict[str, dict[Outcome, int]] = {}
        for study_id, outcome, count in self._connection.execute(_OUTCOME_COUNTS, {"id": sweep_id}):
            of_study = counts.setdefault(study_id, {})
            if outcome is not None:  # a study without trials
                of_study[outcome] = count
        return counts

    def stop_requested(self, sweep_id: str) -> bool:
        """Whether somebody asked the sweep to stop; LookupError if there is no such sweep."""
        requested = self._value(_STOP_REQUESTED, sweep_id)
        if requested is None:
            raise LookupError(f"no sweep '{sweep_id}'")
        return bool(requested)

    def _rows(self, kind: type[RowT], query: Select[Any], **values: object) -> list[RowT]:
        found = self._connection.execute(query, values)
        return [kind(**row) for row in found.mappings()]

    def _row(self, kind: type[RowT], query: Select[Any], key: str) -> RowT | None:
        rows = self._rows(kind, query, id=key)
        return rows[0] if rows else None

    def _value(self, query: Executable, key: str) -> Any:
        return self._connection.execute(query, {"id": key}).scalar()
