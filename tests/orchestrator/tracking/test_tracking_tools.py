from pathlib import Path

import pytest
from mlflow_gate import Gate
from seen_runs import Seen
from tracked_sweep import RTE, drive
from tracker_fixtures import NewTracker

from orchestrator.store.database import Store
from orchestrator.tracking import TrackingError, forget, printable, reach
from orchestrator.tracking.addresses import redacted


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://anna:secret@mlflow.org:5000/x", "https://mlflow.org:5000/x"),
        ("https://token@mlflow.org", "https://mlflow.org"),
        ("postgresql://anna:a@b@host/mlflow", "postgresql://host/mlflow"),
        ("sqlite:////home/a@b/mlflow.db", "sqlite:////home/a@b/mlflow.db"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
    ],
)
def test_an_address_is_printed_without_credentials(uri: str, shown: str) -> None:
    assert printable(uri) == shown


def test_an_error_is_printed_without_credentials() -> None:
    uri = "https://anna:s3cr%65t@mlflow.org"
    text = "API request to https://anna:s3cr%65t@mlflow.org/api\nfailed: anna, s3cret"
    assert redacted(text, uri) == "API request to https://mlflow.org/api failed: anna, ***"
    assert "tok123" not in redacted("bad key tok123", "https://tok123@mlflow.org")


def test_deleted_runs_are_gone_and_missing_ones_are_fine(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    driven.train(0.5)
    track(local).close(60)
    runs = [run.info.run_id for run in Seen(local).runs.values()]
    forget(local, [*runs, "0" * 32])
    forget(local, runs)
    assert {run.info.lifecycle_stage for run in Seen(local).runs.values()} == {"deleted"}


def test_forgetting_makes_no_database(tmp_path: Path) -> None:
    forget(f"sqlite:///{tmp_path / 'none.db'}", ["0" * 32])
    assert list(tmp_path.iterdir()) == []


def test_reach_says_who_answers_or_why_none_does(gate: Gate, local: str) -> None:
    assert reach(local).endswith(f"answers at {local}")
    uri = gate.uri.replace("//", "//anna:secret@")
    with pytest.raises(TrackingError, match=f"MLflow at {gate.uri}: ") as caught:
        reach(uri)
    assert "secret" not in str(caught.value)
    gate.open()
    assert reach(uri).endswith(f"answers at {gate.uri}")
