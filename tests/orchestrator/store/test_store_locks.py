import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.store.database import open_store
from orchestrator.store.errors import StoreError, SweepLocked
from orchestrator.store.locks import holder, is_locked, sweep_lock

SCRIPT = """
import sys
from pathlib import Path
from orchestrator.store.locks import sweep_lock
url, sweep_id, folder = sys.argv[1:]
with sweep_lock(url, sweep_id, Path(folder)):
    print("held", flush=True)
    sys.stdin.readline()
"""
Driver = subprocess.Popen[str]


@pytest.fixture
def start_driver(url: str, tmp_path: Path) -> Iterator[Callable[[str], Driver]]:
    """Starts a process that holds the lock of a sweep until it is told to end."""
    drivers: list[Driver] = []

    def start(sweep_id: str) -> Driver:
        driver = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, url, sweep_id, str(tmp_path / "locks")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        drivers.append(driver)
        assert driver.stdout is not None
        assert driver.stdout.readline() == "held\n"
        return driver

    yield start
    for driver in drivers:
        driver.kill()
        driver.communicate()


def test_a_lock_is_held_for_the_length_of_its_block(url: str, tmp_path: Path) -> None:
    assert not is_locked(url, "a", tmp_path)
    with sweep_lock(url, "a", tmp_path):
        assert is_locked(url, "a", tmp_path)
        assert holder(url, "a", tmp_path) == f"{os.getpid()}@{socket.gethostname()}"
    assert holder(url, "a", tmp_path) is None
    with sweep_lock(url, "a", tmp_path):
        pass


def test_an_exception_frees_the_lock(url: str, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), sweep_lock(url, "a", tmp_path):
        _ = 1 / 0
    assert not is_locked(url, "a", tmp_path)


def test_a_second_driver_is_refused_and_told_who_the_first_is(
    url: str, tmp_path: Path, start_driver: Callable[[str], Driver]
) -> None:
    driver = start_driver("a")
    first = f"{driver.pid}@{socket.gethostname()}"
    with (
        pytest.raises(SweepLocked, match=f"'a' is being run by {first}") as caught,
        sweep_lock(url, "a", tmp_path / "locks"),
    ):
        pass
    assert caught.value.holder == first
    assert isinstance(caught.value, StoreError)
    assert holder(url, "a", tmp_path / "locks") == first
    driver.communicate("end\n")
    with sweep_lock(url, "a", tmp_path / "locks"):
        pass


def test_sweeps_have_locks_of_their_own(
    url: str, tmp_path: Path, start_driver: Callable[[str], Driver]
) -> None:
    start_driver("a/b")
    with sweep_lock(url, "a", tmp_path / "locks"), sweep_lock(url, "../c", tmp_path / "locks"):
        assert is_locked(url, "a/b", tmp_path / "locks")
        assert is_locked(url, "../c", tmp_path / "locks")
        assert not is_locked(url, "b", tmp_path / "locks")


def test_a_killed_driver_frees_its_lock(
    url: str, tmp_path: Path, start_driver: Callable[[str], Driver]
) -> None:
    driver = start_driver("a")
    driver.kill()
    driver.wait()
    with sweep_lock(url, "a", tmp_path / "locks"):
        assert holder(url, "a", tmp_path / "locks") == f"{os.getpid()}@{socket.gethostname()}"


def test_asking_leaves_no_trace(url: str, tmp_path: Path) -> None:
    assert not is_locked(url, "a", tmp_path / "locks")
    assert not (tmp_path / "locks").exists()


def test_a_locked_sweep_can_be_written_to(url: str, tmp_path: Path) -> None:
    with sweep_lock(url, "a", tmp_path), open_store(url, create=True) as store, store.write():
        assert is_locked(url, "a", tmp_path)
