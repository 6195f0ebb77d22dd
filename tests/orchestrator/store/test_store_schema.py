import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, Inspector, inspect
from store_rows import REPORT, SWEEP, fill

from orchestrator.store.database import Store, open_store
from orchestrator.store.engines import make_engine, parse_url
from orchestrator.store.errors import NoDatabase, SchemaError
from orchestrator.store.migrations.running import known_revisions
from orchestrator.store.schema import OURS, REVISION, Migrations, prepare
from orchestrator.store.tables import METADATA

NEXT = """
import sqlalchemy as sa
from alembic import op
revision = "0002"
down_revision = "0001"

def upgrade():
    with op.batch_alter_table("trial") as trial:
        trial.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="7"))
        trial.alter_column("worker", new_column_name="node")
"""
BROKEN = NEXT + "    raise RuntimeError('half-way')\n"


@pytest.fixture
def next_migrations(tmp_path: Path) -> Callable[[str], Migrations]:
    """Our migrations and one more, the code of which is given."""

    def add(code: str) -> Migrations:
        folder = tmp_path / "the next 100 % of versions"
        folder.mkdir(exist_ok=True)
        (folder / "0002_next.py").write_text(code)
        return Migrations(head="0002", folders=(*OURS.folders, folder))

    return add


@pytest.fixture
def engine_at() -> Iterator[Callable[[str], Engine]]:
    """Gives an engine for a URL, closed after the test."""
    engines: list[Engine] = []

    def make(url: str) -> Engine:
        engines.append(make_engine(parse_url(url)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


def test_the_revision_is_the_head_of_the_migrations() -> None:
    assert known_revisions(OURS.folders)[0] == REVISION


def test_the_migrations_build_the_tables_of_the_code(
    url: str, store: Store, engine_at: Callable[[str], Engine]
) -> None:
    with engine_at(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_keys_and_rules_are_those_of_the_code(
    tmp_path: Path, engine_at: Callable[[str], Engine]
) -> None:
    """What alembic's comparison leaves out: keys, nullability, rules on deletion."""
    migrated = engine_at(f"sqlite:///{tmp_path / 'migrated.db'}")
    direct = engine_at(f"sqlite:///{tmp_path / 'direct.db'}")
    prepare(migrated, create=True)
    METADATA.create_all(direct)
    found, wanted = _description(migrated), _description(direct)
    assert found.keys() == wanted.keys() == METADATA.tables.keys()
    assert found == wanted


def _description(engine: Engine) -> dict[str, list[Any]]:
    inspector: Inspector = inspect(engine)
    return {
        table: [
            {c["name"]: (str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)},
            inspector.get_pk_constraint(table),
            sorted(inspector.get_foreign_keys(table), key=str),
            sorted(inspector.get_unique_constraints(table), key=str),
            sorted(inspector.get_indexes(table), key=str),
        ]
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }


def test_an_older_database_is_upgraded_with_its_rows(
    url: str, next_migrations: Callable[[str], Migrations], engine_at: Callable[[str], Engine]
) -> None:
    with open_store(url, create=True) as store:
        fill(store)
        with store.write() as transaction:
            transaction.add_reports([REPORT])
    engine = engine_at(url)
    prepare(engine, create=False, migrations=next_migrations(NEXT))
    with engine.connect() as connection:
        columns = {c["name"] for c in inspect(connection).get_columns("trial")}
        assert {"priority", "node"} <= columns
        trials = connection.exec_driver_sql("SELECT k, priority FROM trial ORDER BY k").fetchall()
        assert [tuple(row) for row in trials] == [(0, 7), (1, 7), (2, 7)]
        assert connection.exec_driver_sql("SELECT count(*) FROM report").scalar() == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar() == 9


def test_on_sqlite_an_upgrade_leaves_a_copy_of_the_old_database(
    sqlite_file: Path,
    next_migrations: Callable[[str], Migrations],
    engine_at: Callable[[str], Engine],
) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store:
        fill(store)
    assert not list(sqlite_file.parent.glob("*.bak*"))
    engine = engine_at(f"sqlite:///{sqlite_file}")
    prepare(engine, create=False, migrations=next_migrations(NEXT))
    (copy,) = sqlite_file.parent.glob("*.bak*")
    assert copy.name == "trials.db.0001.bak"
    with open_store(f"sqlite:///{copy}", create=False) as store, store.read() as reader:
        assert reader.sweeps() == [SWEEP]


def test_threads_that_upgrade_at_once_do_it_once(
    sqlite_file: Path,
    next_migrations: Callable[[str], Migrations],
    engine_at: Callable[[str], Engine],
) -> None:
    url = f"sqlite:///{sqlite_file}"
    open_store(url, create=True).close()
    migrations = next_migrations(NEXT)
    barrier = Barrier(4)

    def upgrade(engine: Engine) -> None:
        barrier.wait()
        prepare(engine, create=False, migrations=migrations)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(upgrade, [engine_at(url) for _ in range(4)]))
    for file, revision in ((sqlite_file, "0002"), (Path(f"{sqlite_file}.0001.bak"), "0001")):
        with closing(sqlite3.connect(file)) as plain:
            found = plain.execute("SELECT version_num FROM alembic_version").fetchall()
        assert found == [(revision,)]


def test_after_an_upgrade_references_are_enforced_again(
    sqlite_file: Path,
    next_migrations: Callable[[str], Migrations],
    engine_at: Callable[[str], Engine],
) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store:
        fill(store)
    engine = engine_at(f"sqlite:///{sqlite_file}")
    prepare(engine, create=False, migrations=next_migrations(NEXT))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        connection.exec_driver_sql("DELETE FROM sweep")
        assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar() == 0


def test_an_upgrade_that_fails_changes_nothing(
    url: str, next_migrations: Callable[[str], Migrations], engine_at: Callable[[str], Engine]
) -> None:
    with open_store(url, create=True) as store:
        trials = fill(store)
    engine = engine_at(url)
    with pytest.raises(RuntimeError, match="half-way"):
        prepare(engine, create=False, migrations=next_migrations(BROKEN))
    with open_store(url, create=False) as store, store.read() as reader:
        assert reader.sweep_trials(SWEEP.id) == trials


def test_a_newer_database_is_refused_and_left_alone(
    url: str, next_migrations: Callable[[str], Migrations], engine_at: Callable[[str], Engine]
) -> None:
    engine = engine_at(url)
    prepare(engine, create=True, migrations=next_migrations(NEXT))
    for create in (False, True):
        with pytest.raises(
            SchemaError, match="revision '0002', this code expects '0001'; update"
        ) as caught:
            open_store(url, create=create)
    assert isinstance(caught.value, ValueError)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    assert found == "0002"


def test_a_refused_sqlite_database_is_not_copied(sqlite_file: Path) -> None:
    open_store(f"sqlite:///{sqlite_file}", create=True).close()
    with closing(sqlite3.connect(sqlite_file)) as plain, plain:
        plain.execute("UPDATE alembic_version SET version_num = 'of mlflow'")
    with pytest.raises(SchemaError, match="of mlflow"):
        open_store(f"sqlite:///{sqlite_file}", create=True)
    assert not list(sqlite_file.parent.glob("*.bak*"))


def test_a_migration_cut_off_before_its_end_leaves_an_empty_database(sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file)) as plain:
        plain.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(NoDatabase):
        open_store(f"sqlite:///{sqlite_file}", create=False)
    open_store(f"sqlite:///{sqlite_file}", create=True).close()


def test_processes_that_create_a_database_at_once_share_it(url: str) -> None:
    script = textwrap.dedent(
        """
        import sys
        from dataclasses import replace
        from store_rows import SWEEP
        from orchestrator.store.database import open_store
        import orchestrator.store.migrations.running
        name, url = sys.argv[1:]
        print("ready", flush=True)
        sys.stdin.readline()
        with open_store(url, create=True) as store, store.write() as transaction:
            transaction.add_sweep(replace(SWEEP, id=name))
        """
    )
    names = ["a", "b"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, name, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        for name in names
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    with open_store(url, create=False) as store, store.read() as reader:
        assert [sweep.id for sweep in reader.sweeps()] == names
