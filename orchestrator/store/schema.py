"""Bringing a database, when it is opened, to the revision of the schema that the code expects.

An empty database is created by the migrations, an older one upgraded, any other refused.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from sqlalchemy import Connection, Engine, inspect, text

from orchestrator.store.engines import describe, for_writing, make_lone_engine
from orchestrator.store.errors import NoDatabase, SchemaError

REVISION = "0001"
"""The revision that tables.py describes: the head of the migrations."""

_VERSION_TABLE = "alembic_version"
_ADVISORY_KEY = 8_028_075_836_749_051_713  # any 64-bit number that nobody else would choose


@dataclass(frozen=True, kw_only=True)
class Migrations:
    """A chain of migrations: its end, and the folders that hold its files."""

    head: str = REVISION
    folders: tuple[Path, ...] = (Path(__file__).parent / "migrations" / "versions",)


OURS = Migrations()


def prepare(engine: Engine, *, create: bool, migrations: Migrations = OURS) -> None:
    """Leave the database at the head of the migrations.

    Raises:
        NoDatabase: it is empty and may not be created.
        SchemaError: it belongs to something else, or to newer code.
    """
    found = _revision(engine)
    if found == migrations.head:
        return
    if found is None and not create:
        raise NoDatabase(f"{describe(engine.url)} holds no sweeps; orchestrate launch creates it")
    alone = for_writing(make_lone_engine(engine.url))
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(alone, migrations)
    else:
        with alone.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_KEY})
            _migrate(connection, _revision_seen_by(connection), migrations)


def _prepare_sqlite(engine: Engine, migrations: Migrations) -> None:
    file = Path(str(engine.url.database))
    with FileLock(f"{file}.schema-lock"):
        found = _revision(engine)
        if found == migrations.head:
            return
        if found is None:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")  # kept in the file from now on
        else:
            _refuse_unknown(found, migrations, describe(engine.url))
            _back_up(file, Path(f"{file}.{found}.bak"))
        with engine.begin() as connection:
            _migrate(connection, found, migrations)
            orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
            assert not orphans, f"the migration parted rows from what they refer to: {orphans[:3]}"


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return _revision_seen_by(connection)


def _revision_seen_by(connection: Connection) -> str | None:
    """The database's revision; None if it is empty."""
    inspector = inspect(connection)
    if inspector.has_table(_VERSION_TABLE):
        rows = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}"))
        if revisions := sorted(rows.scalars()):
            return "+".join(revisions)
    if tables := sorted(set(inspector.get_table_names()) - {_VERSION_TABLE}):
        raise SchemaError(
            f"{describe(connection.engine.url)} holds something else's tables "
            f"({', '.join(tables[:3])}) and no revision of ours; name another database"
        )
    return None


def _migrate(connection: Connection, found: str | None, migrations: Migrations) -> None:
    """Run what lies between the revision found and the head, in the connection's transaction."""
    if found == migrations.head:
        return
    if found is not None:
        _refuse_unknown(found, migrations, describe(connection.engine.url))
    # alembic takes longer to import than `orchestrate status` may take to start
    from orchestrator.store.migrations.running import upgrade

    upgrade(connection, migrations.head, migrations.folders)


def _refuse_unknown(found: str, migrations: Migrations, place: str) -> None:
    from orchestrator.store.migrations.running import known_revisions

    if found not in known_revisions(migrations.folders):
        raise SchemaError(
            f"{place} is at schema revision '{found}', this code expects '{migrations.head}'; "
            "update orchestrate or name another database"
        )


def _back_up(file: Path, copy: Path) -> None:
    """Copy the database as it is; under its final name the copy is always whole."""
    unfinished = copy.with_name(copy.name + ".part")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(unfinished)) as target:
        source.backup(target)
    os.replace(unfinished, copy)
