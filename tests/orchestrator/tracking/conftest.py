"""A trial database, MLflow in a local file, and a real MLflow server behind a gate."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow_gate import Gate
from tracker_fixtures import Log, NewTracker

from orchestrator.store.database import Store, open_store
from orchestrator.tracking import Tracker, reach


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'trials.db'}"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with open_store(store_url, create=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of MLflow without runs: making one takes seconds."""
    file = tmp_path_factory.mktemp("mlflow") / "empty.db"
    reach(f"sqlite:///{file}")
    return file


@pytest.fixture
def local(tmp_path: Path, empty_mlflow: Path) -> str:
    """The address of MLflow in a file."""
    return f"sqlite:///{shutil.copy(empty_mlflow, tmp_path / 'mlflow.db')}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, empty_mlflow: Path) -> Iterator[int]:
    """The port of a real MLflow server."""
    folder = tmp_path_factory.mktemp("server")
    file = shutil.copy(empty_mlflow, folder / "mlflow.db")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    command = f"""-m mlflow server --host 127.0.0.1 --port {port} --workers 1
        --backend-store-uri sqlite:///{file} --artifacts-destination {folder / "artifacts"}"""
    process = subprocess.Popen(
        [sys.executable, *command.split()],
        env=os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines = list(_until(process.stdout, "Application startup complete"))
    assert process.poll() is None, lines
    threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop it
    yield port
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(30)


def _until(stream: Iterator[str], words: str) -> Iterator[str]:
    for line in stream:
        yield line
        if words in line:
            return


@pytest.fixture
def gate(server: int) -> Iterator[Gate]:
    """The way to the server, shut."""
    with Gate(server) as way:
        yield way


@pytest.fixture
def track(store_url: str, tmp_path: Path) -> Iterator[NewTracker]:
    """Starts a tracker of the sweep."""
    started: list[Tracker] = []

    def start(uri: str) -> Tracker:
        tracker = Tracker(store_url, "glue-lora", uri, tmp_path / "artifacts")
        started.append(tracker)
        tracker.start()
        return tracker

    yield start
    for tracker in started:
        tracker.close(0)


@pytest.fixture
def tracker_log() -> Iterator[Log]:
    handler = Log()
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
