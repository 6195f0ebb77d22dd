"""What `doctor` says where something is wrong: one short line each, with what to do."""

import time
from pathlib import Path

import pytest

from orchestrator.cli.checks import examine_one

CLOSED = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def plain_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATE_HOME", str(tmp_path / "home"))
    for variable in ("ORCHESTRATE_DB", "MLFLOW_TRACKING_URI", "RAY_ADDRESS"):
        monkeypatch.delenv(variable, raising=False)


def complaint(check: str) -> str:
    """What is wrong, said within seconds."""
    began = time.monotonic()
    finding = examine_one(check)
    assert time.monotonic() - began < 20
    assert not finding.ok
    assert "\n" not in finding.words
    assert len(finding.words) < 300
    return finding.words


@pytest.mark.parametrize("check", ["home folder", "disk", "database", "mlflow"])
def test_what_lies_in_a_home_that_cannot_be_written_says_so(
    check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ORCHESTRATE_HOME", str(tmp_path / "file" / "home"))
    words = complaint(check)
    assert "cannot be written" in words
    assert "set ORCHESTRATE_HOME to one that can" in words


@pytest.mark.parametrize(
    ("check", "variable", "value", "reason"),
    [
        (
            *("database", "ORCHESTRATE_DB", f"postgresql://me:hunter2@{CLOSED}/trials"),
            "'trials' at 127.0.0.1:1: connection failed",
        ),
        ("database", "ORCHESTRATE_DB", "garbage", "the database's URL cannot be read"),
        ("database", "ORCHESTRATE_DB", "sqlite:////proc/x.db", "unable to open database file"),
        ("mlflow", "MLFLOW_TRACKING_URI", f"http://me:hunter2@{CLOSED}", "Connection refused"),
        ("mlflow", "MLFLOW_TRACKING_URI", f"postgresql://me:hunter2@{CLOSED}/x", "refused"),
        ("ray", "RAY_ADDRESS", CLOSED, f"RAY_ADDRESS {CLOSED}: cannot connect"),
    ],
)
def test_what_is_out_of_reach_is_said_with_the_variable_that_names_it(
    check: str, variable: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    words = complaint(check)
    assert reason in words
    assert variable in words
    assert "hunter2" not in words
