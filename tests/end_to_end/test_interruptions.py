"""Kills, signals and lost workers: nothing finished is lost, nothing is counted twice."""

import os
import signal
import time

import pytest
from sweeps import Sweeps, num_reports

from orchestrator.asha import Asha, rungs, tie_key
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store
from orchestrator.store.reading import Reader

pytestmark = pytest.mark.ray

LONG = (
    *("--space", "aot_fc", "--tasks", "sst2,rte", "--trials", "20", "--max-epochs", "9"),
    *("--seeds", "2", "--name", "long"),
)
WORKERS = 2


def assert_sound(reader: Reader, *, kills: int) -> None:
    """Every trial ended once, and every decision is what a replay of the rungs gives."""
    started = 0
    for study in reader.studies("long"):
        trials = reader.trials(study.id)
        assert all(trial.outcome.final for trial in trials)
        started += sum(trial.attempts for trial in trials)
        reports = reader.study_reports(study.id)
        assert len({(r.trial_id, r.seed, r.epoch) for r in reports}) == len(reports)
        assert study.eta is not None
        asha = Asha(rungs(1, study.eta, study.max_epochs), study.eta)
        for made in reader.decisions(study.id):
            key = tie_key(made.value, made.loss)
            k = int(made.trial_id.rpartition("/")[2])
            replayed = asha.judge(k, made.rung, key)
            assert replayed is not None
            assert (replayed.stop, replayed.threshold, replayed.count) == (
                made.stop,
                made.threshold,
                made.count,
            )
            asha.record(k, replayed, key)
        for trial in trials:
            budgets = {d.rung for d in reader.decisions(study.id) if d.trial_id == trial.id}
            assert budgets == {rung for rung in asha.budgets if rung <= trial.epochs} - (
                {trial.epochs} if trial.outcome.completed else set()
            )
    assert started - 40 <= kills * WORKERS


def test_a_driver_killed_twice_is_resumed_without_loss(sweeps: Sweeps) -> None:
    process = sweeps.start(*sweeps.launch_words(*LONG))
    for reports in (40, 80):  # more than two unfinished trials can have
        sweeps.wait(process, lambda store, n=reports: num_reports(store, "long") >= n)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with sweeps.store() as store, store.read() as reader:
            finished = {
                trial.id: trial for trial in reader.sweep_trials("long") if trial.outcome.final
            }
        assert finished
        process = sweeps.start("resume", "long")
    assert process.wait(120) == 0, sweeps.log()
    with sweeps.store() as store, store.read() as reader:
        assert_sound(reader, kills=2)
        after = {trial.id: trial for trial in reader.sweep_trials("long")}
        assert reader.outbox_count("long") == 0
    for trial_id, trial in finished.items():
        assert after[trial_id].attempts == trial.attempts
        assert after[trial_id].score == trial.score
    assert sweeps.run("resume", "long").returncode == 0


def test_a_signal_drains_within_seconds(sweeps: Sweeps) -> None:
    process = sweeps.start(*sweeps.launch_words(*LONG))
    sweeps.wait(process, lambda store: num_reports(store, "long") >= 20)
    process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    assert process.wait(60) == 1, sweeps.log()
    assert time.monotonic() - asked < 30
    assert "go on with: orchestrate resume long" in sweeps.log()
    with sweeps.store() as store, store.read() as reader:
        trials = reader.sweep_trials("long")
        sweep = reader.sweep("long")
    assert sweep is not None
    assert sweep.state == "interrupted"
    assert not [trial for trial in trials if trial.outcome == Outcome.RUNNING]
    assert [trial for trial in trials if trial.outcome == Outcome.PENDING]


def test_another_shell_stops_a_sweep_and_a_second_driver_is_refused(sweeps: Sweeps) -> None:
    process = sweeps.start(*sweeps.launch_words(*LONG))
    sweeps.wait(process, lambda store: num_reports(store, "long") >= 10)
    second = sweeps.run("resume", "long")
    assert second.returncode == 2
    assert str(process.pid) in second.stderr
    assert sweeps.run("stop", "lo").returncode == 0
    assert process.wait(60) == 1, sweeps.log()
    assert sweeps.json("status", "long")["sweeps"][0]["state"] == "stopped"
    done = sweeps.run("stop", "long")
    assert done.returncode == 2
    assert "is not running" in done.stderr


def test_a_killed_workers_trial_goes_on_elsewhere(sweeps: Sweeps) -> None:
    process = sweeps.start(*sweeps.launch_words(*LONG))

    def worker(store: Store) -> str | None:
        with store.read() as reader:
            running = [t for t in reader.sweep_trials("long") if t.outcome == Outcome.RUNNING]
        return next((trial.worker for trial in running if trial.worker), None)

    sweeps.wait(process, lambda store: worker(store) is not None)
    with sweeps.store() as store:
        name = worker(store)
    assert name is not None
    os.kill(int(name.partition("@")[0]), signal.SIGKILL)
    assert process.wait(120) == 0, sweeps.log()
    with sweeps.store() as store, store.read() as reader:
        assert_sound(reader, kills=1)
        again = [trial for trial in reader.sweep_trials("long") if trial.attempts > 1]
    assert len(again) <= 1
    assert all(trial.outcome.completed or trial.outcome == Outcome.STOPPED for trial in again)


def test_a_budget_lets_go(sweeps: Sweeps) -> None:
    done = sweeps.run(*sweeps.launch_words(*LONG, "--device-hours", "0.0005"))
    assert done.returncode == 0, done.stderr
    assert "0.0005 device hours are spent" in done.stdout
    assert sweeps.json("status", "long")["sweeps"][0]["state"] == "out_of_budget"
    assert sweeps.json("evp", "long")["curves"][0]["kind"] == "bounds"
