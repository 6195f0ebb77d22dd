"""The trial database as the rest of the program sees it: opened once, asked in transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Self

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.store.engines import (
    describe,
    for_reading,
    for_writing,
    make_engine,
    parse_url,
    store_error,
    wrong_value,
)
from orchestrator.store.errors import NoDatabase, StoreError
from orchestrator.store.reading import Reader
from orchestrator.store.schema import prepare
from orchestrator.store.writing import Transaction


class Store:
    """An open trial database. Threads may share it, processes may not: each opens its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = for_reading(engine)
        self._writers = for_writing(engine)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """One transaction that is committed at the end of the block, or undone by an exception.

        On SQLite it waits for other writers before it begins, so what it reads stays true; one
        thread must not open a second inside the first.
        """
        with _transaction(self._writers) as connection:
            yield Transaction(connection)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """One consistent snapshot, which neither waits for writers nor keeps them waiting."""
        with _transaction(self._readers) as connection:
            yield Reader(connection)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({describe(self._engine.url)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Store holds connections and a password; pass the name of its variable")


def open_store(url: str, *, create: bool) -> Store:
    """The trial database at `url`, brought to the schema that this code expects.

    Args:
        url: `sqlite:////absolute/path.db` or `postgresql+psycopg://user@host/database`.
        create: make the database, and the folder of a file, where there is none.

    Raises:
        NoDatabase: there is none, and `create` is off.
        SchemaError: what is there is something else, or of newer code.
        StoreError: it cannot be reached.
    """
    place = parse_url(url)
    engine = make_engine(place)
    try:
        with _opening(place):
            if place.get_backend_name() == "sqlite":
                _make_room(Path(str(place.database)), create=create)
            prepare(engine, create=create)
    except StoreError:
        engine.dispose()
        raise
    return Store(engine)


def _make_room(file: Path, *, create: bool) -> None:
    """See to it that opening the file makes one only if that is wanted."""
    if create:
        file.parent.mkdir(parents=True, exist_ok=True)
    elif not file.exists():
        raise NoDatabase(f"no trial database at {file}; orchestrate launch creates it")


@contextmanager
def _opening(place: URL) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        # the cause is dropped: a driver may quote in it how the connection was asked for
        raise store_error(error, place) from None
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{describe(place)}: {error}") from error


@contextmanager
def _transaction(engine: Engine) -> Iterator[Connection]:
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        if wrong := wrong_value(error):
            raise wrong from None
        raise store_error(error, engine.url) from error
