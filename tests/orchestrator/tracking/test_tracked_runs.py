from dataclasses import replace
from pathlib import Path

import pytest
from seen_runs import Seen
from small_sweeps import add_trials
from tracked_sweep import COLA, RTE, drive, take_up
from tracker_fixtures import NewTracker

from orchestrator.outcome import Outcome
from orchestrator.store.database import Store

TRIAL = f"{RTE.id}/0"


def test_runs_nest_as_sweep_study_trial(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE, COLA)
    driven.start()
    driven.train(0.5, 0.6)
    driven.train(0.7)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.runs.keys() == {"glue-lora", RTE.id, COLA.id, TRIAL, f"{COLA.id}/0"}
    ids = {mirrored: run.info.run_id for mirrored, run in seen.runs.items()}
    parents = {id_: run.data.tags.get("mlflow.parentRunId") for id_, run in seen.runs.items()}
    assert parents == {
        "glue-lora": None,
        RTE.id: ids["glue-lora"],
        COLA.id: ids["glue-lora"],
        TRIAL: ids[RTE.id],
        f"{COLA.id}/0": ids[COLA.id],
    }
    names = {run.info.run_name for run in seen.runs.values()}
    assert names == {"glue-lora", "lora-rte", "lora-cola", "lora-rte/0", "lora-cola/0"}


def test_the_rows_know_their_runs(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    driven.train(0.5)
    track(local).close(60)
    runs = Seen(local).runs
    with store.read() as reader:
        (sweep,), (study,), trials = reader.sweeps(), reader.studies("glue-lora"), reader.trials
        assert sweep.tracking_run == runs["glue-lora"].info.run_id
        assert study.tracking_run == runs[RTE.id].info.run_id
        assert [t.tracking_run for t in trials(RTE.id)] == [runs[TRIAL].info.run_id, None, None]


def test_runs_carry_what_they_are_found_by(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE, COLA)
    driven.start()
    driven.train(0.5)
    track(local).close(60)
    seen = Seen(local)
    tags = seen.runs[TRIAL].data.tags
    assert {key: text for key, text in tags.items() if key.startswith("orchestrate.")} == {
        "orchestrate.id": TRIAL,
        "orchestrate.level": "trial",
        "orchestrate.sweep": "glue-lora",
        "orchestrate.profile": "demo",
        "orchestrate.space": "lora@demo",
        "orchestrate.method": "lora",
        "orchestrate.task": "rte",
        "orchestrate.backbone": "minilm",
        "orchestrate.attempt": "1",
        "orchestrate.outcome": "completed",
        "orchestrate.note": "backbone minilm; demo data: generated tasks, scores say nothing "
        "about GLUE; limit-train 100",
    }
    assert seen.tag("glue-lora", "task") == "rte, cola"
    assert seen.tag("glue-lora", "level") == "sweep"


def test_parameters_are_flat(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    driven.train(0.5)
    track(local).close(60)
    runs = Seen(local).runs
    assert runs["glue-lora"].data.params == {"space": "lora", "tasks": "rte, cola", "trials": "3"}
    study = runs[RTE.id].data.params
    assert study["training.optimizer"] == "adamw"
    assert study["data.limit_train"] == "100"
    assert (study["space"], study["max_epochs"], study["seeds"]) == ("lora@demo", "4", "0")
    assert "grace" not in study
    assert runs[TRIAL].data.params == {
        "k": "0",
        "seeds": "0",
        "learning_rate": "1.0",
        "rank": "1",
        "batch_size": "8",
    }


def test_metrics_have_the_epoch_as_their_step(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    driven.train(0.5, 0.75, 0.625)
    track(local).close(60)
    seen = Seen(local)
    accuracy = [(1, 0.5), (2, 0.75), (3, 0.625)]
    assert seen.points(TRIAL, "validation/accuracy") == accuracy
    assert seen.points(TRIAL, "loss") == [(1, 0.5), (2, 0.25), (3, 0.375)]
    assert set(seen.points(TRIAL, "score")) == {(1, 0.5), (2, 0.75), (3, 0.75)}
    metrics = seen.runs[TRIAL].data.metrics
    assert (metrics["score"], metrics["epochs"], metrics["device_seconds"]) == (0.75, 3.0, 6.0)
    history = seen.client.get_metric_history(seen.runs[TRIAL].info.run_id, "loss")
    with store.read() as reader:
        reported = [int(1000 * row.created_at) for row in reader.reports(TRIAL)]
    assert [point.timestamp for point in history] == reported


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.DIVERGED, "FAILED"),
        (Outcome.OUT_OF_MEMORY, "FAILED"),
        (Outcome.FAILED, "FAILED"),
        (Outcome.INVALID, "FAILED"),
        (Outcome.CANCELLED, "KILLED"),
    ],
)
def test_a_trial_that_ends_badly_has_that_status(
    outcome: Outcome, status: str, store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, RTE)
    claim = driven.claim()
    driven.core.failed(claim.trial_id, claim.attempt, "an error", outcome)
    track(local).close(60)
    seen = Seen(local)
    assert (seen.status(TRIAL), seen.tag(TRIAL, "outcome")) == (status, outcome.value)


def test_a_retried_trial_goes_on_in_its_run(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    claim = driven.claim()
    driven.report(claim, 0.5, 0.6)
    driven.core.failed(claim.trial_id, claim.attempt, "the worker died", Outcome.LOST)
    assert track(local).close(60) == 0
    assert Seen(local).status(TRIAL) == "RUNNING"
    driven.train(0.5, 0.6, 0.7)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.tag(TRIAL, "attempt") == "2"
    assert seen.status(TRIAL) == "FINISHED"
    accuracy = {(1, 0.5), (2, 0.6), (3, 0.7)}
    assert set(seen.points(TRIAL, "validation/accuracy")) == accuracy


def test_a_finished_study_has_its_curve(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, RTE)
    for score in (0.5, 0.75, 0.25):
        driven.train(score)
    track(local).close(60)
    seen = Seen(local)
    curve = [(1, pytest.approx(0.5)), (2, pytest.approx(2 / 3)), (3, pytest.approx(0.75))]
    assert seen.points(RTE.id, "evp_u") == curve
    assert seen.runs[RTE.id].data.metrics["best_score"] == 0.75
    assert "point estimate" in (seen.tag(RTE.id, "evp_label") or "")
    assert (seen.status(RTE.id), seen.tag(RTE.id, "outcome")) == ("FINISHED", "finished")


def test_a_study_with_stopped_trials_has_bounds(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, replace(RTE, scheduler="asha", grace=1, eta=3))
    driven.train(0.75, 0.75, 0.75, 0.75)
    driven.train(0.5)
    claim = driven.claim()
    driven.report(claim, 0.25)
    track(local).close(60)
    seen = Seen(local)
    assert seen.tag(claim.trial_id, "outcome") == "stopped_by_scheduler"
    assert seen.status(claim.trial_id) == "FINISHED"
    assert seen.points(RTE.id, "evp_lower")[0] == (1, pytest.approx(0.5))
    assert seen.points(RTE.id, "evp_upper")[0] == (1, pytest.approx(0.75))
    assert len(seen.points(RTE.id, "evp_lower")) == len(seen.points(RTE.id, "evp_upper")) == 3


def test_a_tpe_study_has_its_incumbent(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, replace(RTE, searcher="tpe"))
    for score in (0.5, 0.75, 0.25):
        driven.train(score)
    track(local).close(60)
    assert Seen(local).points(RTE.id, "incumbent") == [(1, 0.5), (2, 0.75), (3, 0.75)]


def test_a_study_that_grew_gets_a_new_curve(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, replace(RTE, num_trials=1))
    driven.train(0.5)
    assert track(local).close(60) == 0
    with store.write() as tx:
        tx.update_study(RTE.id, num_trials=2)
        add_trials(tx, replace(RTE, num_trials=2), first=1)
    grown = take_up(store, 3000)
    grown.start()
    grown.train(0.75)
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.runs[RTE.id].data.metrics["evp_u"] == 0.75
    assert (1, pytest.approx(0.625)) in seen.points(RTE.id, "evp_u")
    assert seen.tag(RTE.id, "num_trials") == "2"
    assert "N = 2" in (seen.tag(RTE.id, "evp_label") or "")


def test_a_study_without_scores_says_why_it_has_no_curve(
    store: Store, local: str, track: NewTracker
) -> None:
    driven = drive(store, replace(RTE, num_trials=1))
    claim = driven.claim()
    driven.core.failed(claim.trial_id, claim.attempt, "bad values", Outcome.CANCELLED)
    track(local).close(60)
    assert "no curve: none of the 1 trials" in (Seen(local).tag(RTE.id, "evp_label") or "")


def test_nothing_runs_after_a_sweep_has_ended(
    store: Store, local: str, track: NewTracker, tmp_path: Path
) -> None:
    driven = drive(store, RTE, COLA)
    driven.start()
    claim = driven.claim()
    driven.report(claim, 0.5)
    driven.train(0.75)
    assert track(local).close(60) == 0
    driven.core.requeue_all()
    picture = tmp_path / "evp.png"
    picture.write_bytes(b"a picture")
    driven.end("interrupted", [str(picture), str(tmp_path / "missing.png")])
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert {id_: seen.status(id_) for id_ in seen.runs} == {
        "glue-lora": "KILLED",
        RTE.id: "KILLED",
        COLA.id: "KILLED",
        TRIAL: "KILLED",
        f"{COLA.id}/0": "FINISHED",
    }
    assert seen.tag("glue-lora", "state") == "interrupted"
    assert seen.tag(TRIAL, "outcome") == "pending"
    artifacts = seen.client.list_artifacts(seen.runs["glue-lora"].info.run_id)
    assert [artifact.path for artifact in artifacts] == ["evp.png"]
    assert seen.experiment.artifact_location == (tmp_path / "artifacts").as_uri()

    resumed = take_up(store, 3000)
    resumed.start()
    assert track(local).close(60) == 0
    seen = Seen(local)
    assert seen.status("glue-lora") == seen.status(RTE.id) == "RUNNING"
    assert seen.status(TRIAL) == "KILLED"
    resumed.train(0.5, 0.6)
    assert track(local).close(60) == 0
    assert Seen(local).status(TRIAL) == "FINISHED"


def test_a_finished_sweep_is_finished(store: Store, local: str, track: NewTracker) -> None:
    driven = drive(store, replace(RTE, num_trials=1))
    driven.start()
    driven.train(0.5)
    driven.end("finished")
    track(local).close(60)
    seen = Seen(local)
    assert {seen.status(id_) for id_ in seen.runs} == {"FINISHED"}
