import logging
import sqlite3
import subprocess
import sys
import traceback
from contextlib import closing
from pathlib import Path

import pytest
from store_rows import SWEEP, fill

from orchestrator.store.database import open_store
from orchestrator.store.errors import NoDatabase, SchemaError, StoreError

PASSWORD = "hunter2-secret"


def test_a_database_that_is_not_there_is_not_made_unasked(sqlite_file: Path) -> None:
    with pytest.raises(NoDatabase, match="orchestrate launch creates it") as caught:
        open_store(f"sqlite:///{sqlite_file}", create=False)
    assert isinstance(caught.value, LookupError)
    assert not sqlite_file.exists()


def test_an_empty_database_is_not_filled_unasked(url: str) -> None:
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).touch()
    with pytest.raises(NoDatabase, match="holds no sweeps"):
        open_store(url, create=False)


def test_a_database_is_made_with_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "50 % of home" / "trials.db"
    open_store(f"sqlite:///{file}", create=True).close()
    assert file.exists()


def test_opening_again_finds_what_is_there(url: str) -> None:
    with open_store(url, create=True) as store:
        fill(store)
    for create in (False, True):
        with open_store(url, create=create) as store, store.read() as reader:
            assert reader.sweep(SWEEP.id) == SWEEP


def test_a_file_that_is_no_database_is_refused_and_left_alone(sqlite_file: Path) -> None:
    content = b"once upon a time, " * 100
    sqlite_file.write_bytes(content)
    for create in (False, True):
        with pytest.raises(SchemaError, match="file is not a database; name another"):
            open_store(f"sqlite:///{sqlite_file}", create=create)
    assert sqlite_file.read_bytes() == content


def test_somebody_elses_database_is_refused_and_left_alone(sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file)) as plain:
        plain.execute("CREATE TABLE recipes (name)")
    content = sqlite_file.read_bytes()
    for create in (False, True):
        with pytest.raises(SchemaError, match=r"something else's tables \(recipes\)"):
            open_store(f"sqlite:///{sqlite_file}", create=create)
    assert sqlite_file.read_bytes() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        open_store(f"sqlite:///{tmp_path}/file/trials.db", create=True)
    with pytest.raises(StoreError, match="unable to open database file"):
        open_store(f"sqlite:///{tmp_path}", create=True)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{PASSWORD}@host/db",
        f"me:{PASSWORD}@host",
        f"postgresql://me:{PASSWORD}@host:port/db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////tmp/x.db?mode=ro",
    ],
)
def test_an_url_that_will_not_do_is_answered_with_ones_that_do(url: str) -> None:
    with pytest.raises(StoreError, match="known: sqlite:") as caught:
        open_store(url, create=True)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["postgresql", "postgresql+psycopg"])
@pytest.mark.parametrize(
    "place", ["localhost:1/trials", f"/trials?host=/nowhere/{PASSWORD[:3]}&port=1"]
)
def test_an_unreachable_server_is_named_without_the_password(
    name: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError, match="PostgreSQL database 'trials' at ") as caught:
        open_store(f"{name}://me:{PASSWORD}@{place}", create=True)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_a_store_shows_no_password(store_url_with_password: str) -> None:
    with open_store(store_url_with_password, create=True) as store:
        assert PASSWORD not in repr(store) + str(store)


@pytest.fixture
def store_url_with_password(url: str) -> str:
    return url.replace("//postgres:@", f"//postgres:{PASSWORD}@")


def test_opening_loads_no_alembic_once_the_database_is_there(sqlite_file: Path) -> None:
    url = f"sqlite:///{sqlite_file}"
    open_store(url, create=True).close()
    script = f"""
import sys
from orchestrator.store.database import open_store
from orchestrator.store.locks import holder
open_store({url!r}, create=True)
print(sorted({{"alembic", "mako", "psycopg"}} & set(sys.modules)))
"""
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert output.stdout == "[]\n"


def test_rows_and_errors_load_no_sqlalchemy() -> None:
    script = (
        "import sys, orchestrator.store.rows, orchestrator.store.errors;"
        "print('sqlalchemy' in sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert output.stdout == "False\n"
