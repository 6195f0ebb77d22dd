"""SQLAlchemy engines as the store wants them, and what their errors are called here.

SQLite: Python's driver opens transactions by its own rules (none before a SELECT, a deferred one
before an INSERT, which can fail half-way when two processes write). `isolation_level=None` turns
that off; the `begin` event then sends BEGIN IMMEDIATE for writers, who so queue up at the start,
and BEGIN for readers, who see one snapshot and wait for nobody in WAL mode.
"""

import json
import sqlite3
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from orchestrator.store.errors import ConstraintViolated, SchemaError, StoreError

BUSY_SECONDS = 30
KNOWN = "known: sqlite:////absolute/path.db, postgresql+psycopg://user@host/database"

# NaN in JSON is a Python dialect that PostgreSQL refuses; refuse it on SQLite as well
_to_json = partial(json.dumps, allow_nan=False, separators=(",", ":"))


def parse_url(text: str) -> URL:
    """The database's URL with its driver filled in; StoreError unless it is one we support."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        raise StoreError(f"the database's URL cannot be read; {KNOWN}") from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreError(f"no database of type '{backend}' is supported; {KNOWN}")
    if not url.database or ":memory:" in url.database or url.query:
        raise StoreError(f"a SQLite trial database is a file without options; {KNOWN}")
    return url.set(drivername="sqlite")


def describe(url: URL) -> str:
    """Where the database is, for a message: never the user's name, password or options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    host = url.host or url.query.get("host") or "localhost"
    return f"PostgreSQL database '{url.database}' at {host}" + (f":{url.port}" if url.port else "")


def make_engine(url: URL) -> Engine:
    """The engine of a store: one connection per thread that uses it at the moment."""
    if url.get_backend_name() == "postgresql":
        return _postgres(url, pool_pre_ping=True, pool_size=3, max_overflow=7)
    return _sqlite(url, foreign_keys=True)


def make_lone_engine(url: URL) -> Engine:
    """An engine whose connections close after use, for migrations and locks.

    Foreign keys are not enforced on SQLite: there, changing a table means copying and dropping it,
    which would take the rows that refer to it along.
    """
    if url.get_backend_name() == "postgresql":
        return _postgres(url, poolclass=NullPool)
    return _sqlite(url, foreign_keys=False, poolclass=NullPool)


def for_writing(engine: Engine) -> Engine:
    """The engine with transactions that write."""
    return engine.execution_options(immediate=True)


def for_reading(engine: Engine) -> Engine:
    """The engine with transactions that see one snapshot."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def wrong_value(error: SQLAlchemyError) -> BaseException | None:
    """The exception that a value to store raised by itself, before it came to the database."""
    if isinstance(error, StatementError) and not isinstance(error, DBAPIError):
        return error.orig
    return None


def store_error(error: SQLAlchemyError, url: URL) -> StoreError:
    """The error in our words: the place and the driver's first line, without the password."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    reason = lines[0]
    if url.password:
        reason = reason.replace(str(url.password), "***")
    if getattr(cause, "sqlite_errorname", None) == "SQLITE_NOTADB":
        return SchemaError(f"{describe(url)}: {reason}; name another file")
    kind = ConstraintViolated if isinstance(error, IntegrityError) else StoreError
    return kind(f"{describe(url)}: {reason}")


def _sqlite(url: URL, *, foreign_keys: bool, **options: Any) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS},
        json_serializer=_to_json,
        hide_parameters=True,
        **options,
    )

    def prepare(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        connection.execute("PRAGMA synchronous=FULL")

    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine


def _postgres(url: URL, **options: Any) -> Engine:
    try:
        return create_engine(
            url,
            connect_args={"connect_timeout": 10, "application_name": "orchestrate"},
            json_serializer=_to_json,
            hide_parameters=True,
            **options,
        )
    except ModuleNotFoundError as error:
        raise StoreError(
            "PostgreSQL needs the package psycopg; run: pip install 'orchestrate[postgres]'"
        ) from error
