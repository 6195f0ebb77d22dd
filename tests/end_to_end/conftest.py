import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sweeps import Sweeps
from tiny_backbones import write_tiny

BIN = Path(sys.executable).parent


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Address of one Ray cluster with two CPUs for the whole test run."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    command = [BIN / "ray", "start", "--head", "--block", "--port=0", "--num-cpus=2"]
    options = ["--node-ip-address=127.0.0.1", "--include-dashboard=false", "--disable-usage-stats"]
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    address = None
    for line in process.stdout:
        lines.append(line)
        if found := re.search(r"--address='([\d.]+:\d+)'", line):
            address = found[1]
        if "--block" in line:
            break
    assert address, "".join(lines)
    threading.Thread(target=process.stdout.read, daemon=True).start()
    yield address
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny("bert", tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture
def sweeps(cluster: str, tiny_backbone: Path, tmp_path: Path) -> Sweeps:
    """The command line on the shared cluster, with a home of its own."""
    return Sweeps(tmp_path / "home", tiny_backbone, cluster)


@pytest.fixture
def write_space(tmp_path: Path) -> Callable[..., Path]:
    """Writes a search space file."""

    def write(text: str, name: str = "mine.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
