from collections.abc import Callable
from pathlib import Path

import pytest
from sweeps import Sweeps

from orchestrator.outcome import Outcome

pytestmark = pytest.mark.ray


def test_a_launch_searches_records_tracks_and_draws(sweeps: Sweeps) -> None:
    words = sweeps.launch_words(
        *("--space", "aot_fc,head_only,fine_tuning", "--tasks", "sst2,mnli"),
        *("--trials", "3", "--seeds", "2", "--name", "first"),
    )
    done = sweeps.run(*words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "profile demo (asked for)" in lines[0]
    assert "limit-train 32" in lines[0]
    assert lines[-1] == str(sweeps.home / "sweeps" / "first" / "evp.png")
    assert Path(lines[-1]).read_bytes().startswith(b"\x89PNG")

    status = sweeps.json("status", "fir")["sweeps"][0]
    assert (status["name"], status["state"], status["profile"]) == ("first", "finished", "demo")
    assert len(status["studies"]) == 6
    trials = [trial for study in status["studies"] for trial in study["trials"]]
    assert len(trials) == 18
    assert all(Outcome(trial["outcome"]).final for trial in trials)
    assert all(trial["attempts"] == 1 for trial in trials)
    for study in status["studies"]:
        assert study["incumbent"] == max(trial["score"] for trial in study["trials"])

    curves = sweeps.json("evp", "first")["curves"]
    assert {curve["kind"] for curve in curves} <= {"bounds", "point"}
    stopped = {t["id"].rpartition("/")[0] for t in trials if t["outcome"] == Outcome.STOPPED}
    assert {curve["study"] for curve in curves if curve["kind"] == "bounds"} == stopped
    assert stopped

    table = sweeps.json("table", "first/aot_fc-sst2")["rows"]
    assert len(table) == 1
    assert table[0]["num_seeds"] == 2

    shown = sweeps.json("show", "first/aot_fc-mnli/0")
    assert len(shown["runs"]) == 2
    assert "mismatched/accuracy" in shown["reports"][0]["metrics"]
    assert sweeps.json("show", "first")["sweep"]["versions"]["ray"].startswith("2.60")
    assert sweeps.json("show", "first")["messages_waiting_for_mlflow"] == 0

    again = sweeps.run(*words)
    assert again.returncode == 0, again.stderr
    assert sweeps.json("status", "first")["sweeps"][0] == status

    other = sweeps.run(*words, "--seeds", "3")
    assert other.returncode == 2
    assert "sweep first exists with other options: --seeds 2 (now 3)" in other.stderr
    assert sweeps.run("show", "second").returncode == 2

    deleted = sweeps.run("delete", "first", "--yes")
    assert deleted.returncode == 0, deleted.stderr
    assert sweeps.json("list") == {"sweeps": []}
    assert not (sweeps.home / "sweeps" / "first").exists()


BROKEN = """
method: aot_fc
space:
  tied:
    - rank: [4, 1000000000, 4]
      learning_rate: [1.0e-3, 1.0e-3, 1.0e+30]
"""


def test_trials_that_fail_are_outcomes_and_cost_no_worker(
    sweeps: Sweeps, write_space: Callable[..., Path]
) -> None:
    space = write_space(BROKEN)
    words = ("--space", str(space), "--tasks", "sst2", "--search", "grid", "--scheduler", "none")
    done = sweeps.run(*sweeps.launch_words(*words, "--name", "broken", "--workers", "1"))
    assert done.returncode == 0, done.stderr
    study = sweeps.json("show", "broken/mine-sst2")
    assert study["outcomes"] == {"completed": 1, "diverged": 1, "out_of_memory": 1}
    trials = sweeps.json("status", "broken")["sweeps"][0]["studies"][0]["trials"]
    out_of_memory = next(t for t in trials if t["outcome"] == "out_of_memory")
    error = "\n".join(sweeps.json("show", out_of_memory["id"])["error"])
    assert "allocate" in error
    with sweeps.store() as store, store.read() as reader:
        workers = {trial.worker for trial in reader.trials("broken/mine-sst2")}
    assert len(workers) == 1
    curve = sweeps.json("evp", "broken")["curves"][0]
    assert curve["kind"] == "census"


def test_a_study_without_a_usable_trial_fails_the_launch(
    sweeps: Sweeps, write_space: Callable[..., Path]
) -> None:
    space = write_space("method: aot_fc\nspace: {rank: 1000000000, learning_rate: 1.0e-3}\n")
    words = ("--space", str(space), "--tasks", "sst2", "--trials", "2", "--name", "none")
    done = sweeps.run(*sweeps.launch_words(*words))
    assert done.returncode == 1
    assert "no usable trial in study none/mine-sst2" in done.stdout


def test_more_gpus_than_there_are_is_refused(sweeps: Sweeps) -> None:
    words = ("--space", "aot_fc", "--tasks", "sst2", "--gpus-per-trial", "1")
    done = sweeps.run(*sweeps.launch_words(*words))
    assert done.returncode == 2
    assert "--gpus-per-trial 1: the cluster at" in done.stderr
    assert "has 0 gpus" in done.stderr
    assert not sweeps.home.exists()
