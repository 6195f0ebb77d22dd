"""One driver per sweep: a lock that its holder's death frees, whatever the death.

SQLite: a file lock in a folder that the drivers share, which the kernel holds for the process.
PostgreSQL: an advisory lock, which the server holds for a connection of its own.
"""

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout
from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from orchestrator.store.engines import make_lone_engine, parse_url, store_error
from orchestrator.store.errors import SweepLocked

PATIENCE_SECONDS = 0.5
"""How long to wait for a lock: for one who only looks, or a dead holder's connection to close."""
UNKNOWN_HOLDER = "another process"

_APPLICATION_NAME_BYTES = 63  # PostgreSQL cuts longer ones, with a warning
_LOCK_NOT_AVAILABLE = "55P03"
_HOLDER = text(
    """
    SELECT activity.application_name
    FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid)
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (lock.classid::bigint << 32) | lock.objid::bigint = :key
    """
)


def sweep_lock(store_url: str, sweep_id: str, folder: Path) -> AbstractContextManager[None]:
    """Being the only driver of the sweep, for the length of a block.

    Args:
        store_url: where the sweep is stored.
        sweep_id: the sweep.
        folder: where SQLite's lock files lie, the same for every driver; made if missing.

    Raises:
        SweepLocked: on entering, if another process holds the lock.
    """
    url = parse_url(store_url)
    if url.get_backend_name() == "sqlite":
        return _file_lock(sweep_id, _lock_file(sweep_id, folder))
    return _advisory_lock(url, sweep_id)


def holder(store_url: str, sweep_id: str, folder: Path) -> str | None:
    """Who drives the sweep, `pid@host` where that is known; None if nobody does."""
    url = parse_url(store_url)
    if url.get_backend_name() == "sqlite":
        file = _lock_file(sweep_id, folder)
        return _file_holder(file) if _is_flocked(file) else None
    with _connection(url) as connection:
        return _advisory_holder(connection, sweep_id)


def is_locked(store_url: str, sweep_id: str, folder: Path) -> bool:
    """Whether somebody drives the sweep."""
    return holder(store_url, sweep_id, folder) is not None


def _myself() -> str:
    return f"{os.getpid()}@{socket.gethostname()}"


def _lock_file(sweep_id: str, folder: Path) -> Path:
    return folder / f"{quote(sweep_id, safe='')}.lock"


def _holder_file(file: Path) -> Path:
    return file.with_suffix(".holder")


@contextmanager
def _file_lock(sweep_id: str, file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout:
        raise SweepLocked(sweep_id, _file_holder(file)) from None
    try:
        _holder_file(file).write_text(_myself())
        yield
    finally:
        _holder_file(file).unlink(missing_ok=True)
        lock.release()


def _file_holder(file: Path) -> str:
    with suppress(OSError):
        return _holder_file(file).read_text() or UNKNOWN_HOLDER
    return UNKNOWN_HOLDER


def _is_flocked(file: Path) -> bool:
    """Ask by a shared lock, so that two who ask at once do not take each other for a driver."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _connection(url: URL) -> Iterator[Connection]:
    """A connection of its own, without a transaction that would stay open."""
    engine = make_lone_engine(url).execution_options(isolation_level="AUTOCOMMIT")
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        raise store_error(error, url) from None
    with connection:
        yield connection


@contextmanager
def _advisory_lock(url: URL, sweep_id: str) -> Iterator[None]:
    with _connection(url) as connection:
        settings = {
            "application_name": _myself()[:_APPLICATION_NAME_BYTES],
            "lock_timeout": f"{PATIENCE_SECONDS * 1000:.0f}ms",
            # the server must notice within two minutes when this machine dies
            "tcp_keepalives_idle": "60",
            "tcp_keepalives_interval": "10",
            "tcp_keepalives_count": "6",
        }
        for name, value in settings.items():
            connection.execute(
                text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value}
            )
        try:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(sweep_id)})
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise store_error(error, url) from error
            found = _advisory_holder(connection, sweep_id) or UNKNOWN_HOLDER
            raise SweepLocked(sweep_id, found) from None
        yield


def _advisory_holder(connection: Connection, sweep_id: str) -> str | None:
    name = connection.execute(_HOLDER, {"key": _key(sweep_id)}).scalar()
    return None if name is None else name or UNKNOWN_HOLDER


def _key(sweep_id: str) -> int:
    """The lock's number: 64 bits of a hash, the same in every process."""
    digest = hashlib.sha256(f"orchestrate sweep {sweep_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
