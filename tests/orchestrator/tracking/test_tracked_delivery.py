import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from mlflow_gate import Gate
from seen_runs import Seen
from tracked_sweep import COLA, RTE, drive, take_up
from tracker_fixtures import Log, NewTracker

from orchestrator.store.database import Store
from orchestrator.tracking import Tracker, reach

TRIAL = f"{RTE.id}/0"


def test_a_tracker_delivers_while_the_driver_works(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    tracker = track(local)
    driven.train(0.5)
    driven.train(0.6)
    assert tracker.close(60) == 0
    assert driven.left() == 0
    assert len(Seen(local).runs) == 4


def test_a_tracker_closed_at_once_leaves_the_rest_to_the_next(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE, COLA)
    driven.start()
    driven.train(0.5, 0.6)
    left = track(local).close(0)
    assert left == driven.left() == 5
    driven.train(0.7)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert len(seen.runs) == 5
    assert seen.points(TRIAL, "validation/accuracy") == [(1, 0.5), (2, 0.6)]


def test_delivery_broken_off_in_a_page_goes_on_behind_it(
    store: Store, local: str, track: NewTracker, tmp_path: Path
) -> None:
    reach(local)  # settings before mlflow is imported
    from orchestrator.tracking.connection import connect, experiment_id
    from orchestrator.tracking.delivery import Delivery
    from orchestrator.tracking.runs import Runs

    driven = drive(store, RTE)
    driven.start()
    for score in (0.5, 0.6):
        driven.train(score)
    client = connect(local)
    runs = Runs(client, experiment_id(client, tmp_path / "artifacts"), "glue-lora")
    two_groups = iter([True, True, False])
    done = Delivery(store, runs, "glue-lora", local).deliver_page(lambda: next(two_groups))
    assert (done, driven.left()) == (4, 3)  # the sweep's, and the first trial's three
    assert track(local).close(60) == 0
    assert Seen(local).runs.keys() == {"glue-lora", RTE.id, TRIAL, f"{RTE.id}/1"}


def test_many_messages_go_page_by_page(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    driven.claim()
    with store.write() as tx:
        for epoch in range(1, 1301):
            payload = {"trial": TRIAL, "epoch": epoch, "metrics": {"a": 0.5, "b": 0.5, "c": 0.5}}
            tx.add_outbox("glue-lora", "trial_reported", payload, 3000.0 + epoch)
    assert track(local).close(60) == 0
    assert [step for step, _ in Seen(local).points(TRIAL, "c")] == list(range(1, 1301))


def test_a_run_whose_id_was_not_kept_is_found_again(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    driven.start()
    driven.report(driven.claim(), 0.5)
    assert track(local).close(60) == 0
    before = Seen(local)
    with store.write() as tx:  # as if the driver had died before it could note them
        tx.update_sweep("glue-lora", tracking_run=None)
        tx.update_study(RTE.id, tracking_run=None)
        tx.update_trial(TRIAL, tracking_run=None)
    resumed = take_up(store, 3000)
    resumed.start()
    resumed.train(0.5, 0.6)
    assert track(local).close(60) == 0
    after = Seen(local)  # which checks that none is there twice
    assert {id_: run.info.run_id for id_, run in after.runs.items()} == {
        id_: run.info.run_id for id_, run in before.runs.items()
    }


def test_messages_delivered_twice_change_nothing(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    driven.train(0.5, 0.6)
    with store.read() as reader:
        messages = reader.outbox("glue-lora", 100)
    track(local).close(60)
    for message in messages:
        driven.say(message.kind, message.payload, message.created_at)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.points(TRIAL, "validation/accuracy") == [(1, 0.5), (2, 0.6)]
    assert seen.status(TRIAL) == "FINISHED"


def test_another_mlflow_gets_runs_of_its_own(
    store: Store, local: str, empty_mlflow: Path, tmp_path: Path, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    driven.train(0.5)
    assert track(local).close(60) == 0
    other = f"sqlite:///{shutil.copy(empty_mlflow, tmp_path / 'other.db')}"
    driven.train(0.6)
    assert track(other).close(60) == 0
    assert Seen(other).runs.keys() == {"glue-lora", RTE.id, f"{RTE.id}/1"}


def test_a_bad_message_is_dropped_alone(
    store: Store, local: str, track: NewTracker, tracker_log: Log
) -> None:
    driven = drive(store, RTE)
    claim = driven.claim()
    driven.report(claim, 0.5)
    report = {"trial": TRIAL, "epoch": 2, "metrics": {"score": 0.6}}
    driven.say("trial_reported", report | {"metrics": {"score": "high"}})
    driven.say("trial_reported", report | {"trial": "glue-lora/none/0"})
    driven.say("trial_reported", report, at=-1.0)  # MLflow itself refuses the time
    driven.say("trial_vanished", report)
    driven.say("sweep_paused", {})
    driven.say("study_finished", {})
    driven.report(claim, 0.75, first=2, last=True)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.points(TRIAL, "validation/accuracy") == [(1, 0.5), (2, 0.75)]
    assert seen.status(TRIAL) == "FINISHED"
    assert sum("is dropped" in line for line in tracker_log.lines) == 6


def test_names_that_mlflow_refuses_are_changed(
    store: Store, local: str, track: NewTracker, tracker_log: Log
) -> None:
    driven = drive(store, RTE)
    driven.claim()
    names = ["a b", "f1 (macro)", "a//b", "/a", "../a", "", ".", "x" * 300]
    metrics = {name: 0.5 for name in names}
    driven.say("trial_reported", {"trial": TRIAL, "epoch": 1, "metrics": metrics})
    assert track(local).close(60) == 0
    assert tracker_log.lines == []
    seen = Seen(local).runs[TRIAL].data.metrics
    assert seen.keys() == {"a b", "f1 _macro_", "a__b", "_a", "_", "x" * 250}


def test_an_outage_stops_nothing_and_loses_nothing(
    store: Store, gate: Gate, track: NewTracker, tracker_log: Log, tmp_path: Path
) -> None:
    driven = drive(store, RTE)
    uri = gate.uri.replace("//", "//anna:s3cr%65t@")
    driven.start()
    driven.train(0.5)
    tracker = track(uri)
    assert tracker_log.heard.wait(60)
    driven.train(0.75)
    picture = tmp_path / "evp.png"
    picture.write_bytes(b"a picture")
    driven.end("interrupted", [str(picture)])
    assert driven.left() == 8
    gate.open()
    assert tracker.close(60) == 0
    seen = Seen(gate.uri)
    assert seen.points(TRIAL, "validation/accuracy") == [(1, 0.5)]
    assert seen.status("glue-lora") == "KILLED"
    artifacts = seen.client.list_artifacts(seen.runs["glue-lora"].info.run_id)
    assert [artifact.path for artifact in artifacts] == ["evp.png"]
    (warning,) = [line for line in tracker_log.lines if "is not told for now" in line]
    assert f"MLflow at http://127.0.0.1:{gate.port}" in warning
    assert not any(
        secret in line for line in tracker_log.lines for secret in ("anna", "s3cr%65t", "s3cret")
    )
    said = str({id_: run.data.to_dictionary() for id_, run in seen.runs.items()})
    assert not any(secret in said for secret in ("anna", "s3cr%65t", "s3cret"))


def test_a_tracker_that_never_reaches_mlflow_keeps_every_message(
    store: Store, gate: Gate, track: NewTracker, tracker_log: Log
) -> None:
    driven = drive(store, RTE)
    driven.train(0.5)
    tracker = track(gate.uri)
    assert tracker_log.heard.wait(60)
    assert tracker.close(60) == driven.left() == 3


def test_a_server_that_hangs_does_not_keep_the_driver(store: Store, track: NewTracker) -> None:
    drive(store, RTE).start()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        tracker = track(f"http://127.0.0.1:{mute.getsockname()[1]}")
        mute.accept()
        before = time.monotonic()
        assert tracker.close(0.5) == 1
        assert time.monotonic() - before < 5


def test_close_counts_without_a_start_and_without_a_database(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    drive(store, RTE).start()
    assert Tracker(store_url, "glue-lora", "http://127.0.0.1:9", tmp_path).close(1) == 1
    gone = f"sqlite:///{tmp_path / 'gone.db'}"
    assert Tracker(gone, "glue-lora", "http://127.0.0.1:9", tmp_path).close(1) is None


def test_importing_the_package_does_not_import_mlflow() -> None:
    code = "import orchestrator.tracking, sys; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
