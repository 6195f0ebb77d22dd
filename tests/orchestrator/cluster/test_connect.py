"""Reaching a cluster, or saying why not; and how open a local one is."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.cluster.connect import connected
from orchestrator.errors import Refused


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_refused_at_once(closed_port: int, scheme: str) -> None:
    address = f"{scheme}127.0.0.1:{closed_port}"
    began = time.monotonic()
    with pytest.raises(Refused, match=f"--address {address}: .*Connection refused.* is it running"):
        connected(address).__enter__()
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("address", ["cluster", "cluster:port"])
def test_what_is_no_address_is_named_by_where_it_was_given(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(Refused, match=f"^RAY_ADDRESS {address}: cannot connect"):
        connected(None).__enter__()


LISTENING = """
import json
from orchestrator.cluster.connect import connected
with connected(None):
    import psutil  # Ray's own
    me = psutil.Process()
    found = [each for process in (me, *me.children(recursive=True))
             for each in process.net_connections("tcp") if each.status == "LISTEN"]
    print(json.dumps([each.laddr.ip for each in found]))
"""


def run(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that knows of no cluster: Ray reads its variables on import."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")} | variables
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.ray
def test_a_local_cluster_is_open_to_this_machine_only() -> None:
    done = run(LISTENING)
    assert done.returncode == 0, done.stderr
    addresses = json.loads(done.stdout)
    assert addresses
    assert set(addresses) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_a_home_that_cannot_hold_rays_token_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(LISTENING, HOME=str(tmp_path / "file"))
    assert "Refused: a local Ray cluster cannot start (" in done.stderr
    assert "can HOME and /tmp be written?" in done.stderr
