"""Changes to the trial database."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from sqlalchemy import Insert, Table, Update, bindparam, delete, insert, update

from orchestrator.store import tables
from orchestrator.store.reading import Reader
from orchestrator.store.rows import DecisionRow, ReportRow, RunRow, StudyRow, SweepRow, TrialRow

_INSERT_SWEEP = insert(tables.sweep)
_INSERT_STUDY = insert(tables.study)
_INSERT_TRIAL = insert(tables.trial)
_INSERT_RUN = insert(tables.run)
_INSERT_OUTBOX = insert(tables.outbox).inline()
_DELETE_OUTBOX = delete(tables.outbox).where(
    tables.outbox.c.id.in_(bindparam("ids", expanding=True))
)
_DELETE_SWEEP = delete(tables.sweep).where(tables.sweep.c.id == bindparam("key_id"))


def _update(table: Table) -> Update:
    """Changes one row, found by its key; which columns, the parameters say."""
    keys = (column == bindparam(f"key_{column.name}") for column in table.primary_key)
    return update(table).where(*keys)


def _changeable(table: Table) -> frozenset[str]:
    return frozenset(c.name for c in table.c if not c.primary_key and not c.foreign_keys)


_UPDATES = {
    table: (_update(table), _changeable(table))
    for table in (tables.sweep, tables.study, tables.trial, tables.run)
}


@cache
def _insert_new(dialect: str, table: Table, *keys: str) -> Insert:
    """Adds a row unless there is one with the same keys."""
    module = import_module(f"sqlalchemy.dialects.{dialect}")
    statement: Insert = module.insert(table).on_conflict_do_nothing(index_elements=keys)
    return statement.inline().execution_options(preserve_rowcount=True)


class Transaction(Reader):
    """What can be changed, within one transaction: all of it or nothing."""

    def add_sweep(self, row: SweepRow) -> None:
        """Add a sweep."""
        self._connection.execute(_INSERT_SWEEP, vars(row))

    def add_study(self, row: StudyRow) -> None:
        """Add a study to its sweep."""
        self._connection.execute(_INSERT_STUDY, vars(row))

    def add_trials(self, rows: Iterable[TrialRow]) -> None:
        """Add trials to their studies."""
        self._add(_INSERT_TRIAL, rows)

    def add_runs(self, rows: Iterable[RunRow]) -> None:
        """Add runs to their trials."""
        self._add(_INSERT_RUN, rows)

    def add_reports(self, rows: Iterable[ReportRow]) -> int:
        """Add the reports that are not there yet; gives how many those were."""
        statement = self._insert_new(tables.report, "trial_id", "seed", "epoch")
        return self._add(statement, rows)

    def add_decision(self, row: DecisionRow) -> bool:
        """Add the decision unless one has fallen about this trial and rung; tells which."""
        values = {name: value for name, value in vars(row).items() if name != "id"}
        statement = self._insert_new(tables.decision, "trial_id", "rung")
        return self._connection.execute(statement, values).rowcount == 1

    def add_outbox(
        self, sweep_id: str, kind: str, payload: dict[str, Any], created_at: float
    ) -> None:
        """Add a message to deliver."""
        self._connection.execute(
            _INSERT_OUTBOX,
            {"sweep_id": sweep_id, "kind": kind, "payload": payload, "created_at": created_at},
        )

    def delete_outbox(self, ids: Iterable[int]) -> None:
        """Forget messages that are delivered."""
        self._connection.execute(_DELETE_OUTBOX, {"ids": list(ids)})

    def delete_sweep(self, sweep_id: str) -> None:
        """Remove a sweep and everything that belongs to it."""
        if not self._connection.execute(_DELETE_SWEEP, {"key_id": sweep_id}).rowcount:
            raise LookupError(f"no sweep '{sweep_id}'")

    def update_sweep(self, sweep_id: str, /, **columns: object) -> None:
        """Change columns of a sweep."""
        self._change(tables.sweep, columns, id=sweep_id)

    def update_study(self, study_id: str, /, **columns: object) -> None:
        """Change columns of a study."""
        self._change(tables.study, columns, id=study_id)

    def update_trial(self, trial_id: str, /, **columns: object) -> None:
        """Change columns of a trial."""
        self._change(tables.trial, columns, id=trial_id)

    def update_run(self, trial_id: str, seed: int, /, **columns: object) -> None:
        """Change columns of a run."""
        self._change(tables.run, columns, trial_id=trial_id, seed=seed)

    def _change(self, table: Table, columns: dict[str, object], **key: object) -> None:
        statement, changeable = _UPDATES[table]
        if not columns or not columns.keys() <= changeable:
            unknown = ", ".join(sorted(columns.keys() - changeable)) or "none"
            raise TypeError(
                f"{table.name} has no columns to change named: {unknown}; "
                f"known: {', '.join(sorted(changeable))}"
            )
        values = {f"key_{name}": value for name, value in key.items()} | columns
        if not self._connection.execute(statement, values).rowcount:
            raise LookupError(
                f"no {table.name} {', '.join(f'{value!r}' for value in key.values())}"
            )

    def _add(self, statement: Insert, rows: Iterable[Any]) -> int:
        values = [vars(row) for row in rows]
        return self._connection.execute(statement, values).rowcount if values else 0

    def _insert_new(self, table: Table, *keys: str) -> Insert:
        return _insert_new(self._connection.dialect.name, table, *keys)
