"""Empty trial databases, on SQLite and on a real PostgreSQL server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.store.database import Store, open_store

BACKENDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'trials.db'}"
    create: Callable[[], str] = request.getfixturevalue("new_postgres_url")
    return create()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url, create=True) as opened:
        yield opened


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """Where a SQLite database may be made."""
    return tmp_path / "trials.db"
