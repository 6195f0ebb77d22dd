"""Bad input: one line that says what was asked and what to do, exit code 2, nothing written."""

from pathlib import Path

import pytest

from orchestrator.cli.run import run

MINE = "method: aot_fc\nspace: {learning_rate: 1.0e-3, %s}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("ORCHESTRATE_HOME", str(folder))
    monkeypatch.delenv("ORCHESTRATE_DB", raising=False)
    monkeypatch.delenv("ORCHESTRATE_PROFILE", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return folder


DEMO = ["launch", "--profile", "demo", "--space", "aot_fc", "--tasks", "sst2"]

REFUSED = {
    "unknown space": (
        ["launch", "--space", "aot_fd", "--tasks", "sst2"],
        "no search space named 'aot_fd'; known: ",
    ),
    "unknown section": ([*DEMO, "--space", "aot_fc@ept"], "aot_fc.yaml has no section 'ept'"),
    "unknown task": ([*DEMO, "--tasks", "sst3"], "no task 'sst3'; known: cola, sst2"),
    "unknown backbone": ([*DEMO, "--backbone", "bertt"], "no backbone 'bertt'; known: minilm"),
    "unknown profile": ([*DEMO, "--profile", "big"], "no profile 'big'; known: demo, paper"),
    "unknown search": ([*DEMO, "--search", "best"], "--search best: no such one; known: random"),
    "unknown scheduler": ([*DEMO, "--scheduler", "pbt"], "--scheduler pbt: no such one"),
    "no space": (["launch", "--tasks", "sst2"], "launch needs --space"),
    "no tasks": (["launch", "--space", "aot_fc"], "launch needs --tasks"),
    "zero trials": ([*DEMO, "--trials", "0"], "--trials 0: must be at least 1"),
    "text for a number": ([*DEMO, "--trials", "many"], "Invalid value for '--trials'"),
    "eta of one": ([*DEMO, "--eta", "1"], "--eta 1: must be at least 2"),
    "a duration without unit": ([*DEMO, "--time-limit", "90"], "duration '90': must look like 90s"),
    "one and a half GPUs": ([*DEMO, "--gpus-per-trial", "1.5"], "--gpus-per-trial 1.5: must be"),
    "no such option": ([*DEMO, "--epochs", "3"], "No such option: --epochs"),
    "no such command": (["lanch"], "No such command 'lanch'"),
    "a bad name": ([*DEMO, "--name", "a/b"], "--name 'a/b': must be 1 to 80 letters"),
    "a continuous grid": ([*DEMO, "--search", "grid"], "is a continuous range; use --search"),
    "no such config file": ([*DEMO, "--config", "no.yaml"], "--config no.yaml: No such file"),
    "a Hub id without network": (
        [*DEMO, "--backbone", "google-bert/bert-base-cased"],
        "cannot get backbone google-bert/bert-base-cased from the Hub",
    ),
    "Hub data without network": (
        [*DEMO, "--profile", "paper", "--backbone", "minilm"],
        "--data-dir",
    ),
    "a data folder that is not there": ([*DEMO, "--data-dir", "nowhere"], "nowhere"),
    "status of nothing": (["status"], "no trial database at"),
    "show of nothing": (["show", "x"], "no trial database at"),
    "resume of nothing": (["resume", "x"], "no trial database at"),
    "evp of nothing": (["evp", "x"], "no trial database at"),
    "an estimator": (["evp", "x", "--estimator", "W"], "--estimator W: no such one; known: U, V"),
    "a format": (["table", "--format", "pdf"], "--format pdf: no such one; known: text"),
    "a method": (["methods", "lorra"], "no method 'lorra'; known: "),
    "a method's value": (["methods", "aot_fc", "--set", "rank=0"], "rank must be at least 1"),
    "a pair": (["methods", "aot_fc", "--set", "rank"], "--set rank: must look like rank=64"),
    "a task's name": (["tasks", "sst3"], "no task 'sst3'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_line(
    case: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, reason = REFUSED[case]
    code = run(arguments)
    captured = capsys.readouterr()
    assert reason in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert code == 2
    assert captured.out == ""
    assert not home.exists()


SPACES = {
    "a value out of its domain": (MINE % "rank: 0", "rank must be at least 1, got 0"),
    "a key that is no field": (MINE % "rnk: 8", "aot_fc has no such hyperparameter; known: "),
    "a field that is missing": (MINE % "dropout: 0.1", "aot_fc needs a value for 'rank'"),
    "a method that is not there": ("method: lorra\nspace: {rank: 8}\n", "no method 'lorra'"),
    "YAML that ends too early": ("method: aot_fc\nspace: {rank: 8\n", "mine.yaml, line"),
    "a protocol that is none": (
        MINE % "rank: 8" + "training: {optimizer: sgd}\n",
        "optimizer must be one of adam, adamw, got 'sgd'",
    ),
}


@pytest.mark.parametrize("case", SPACES)
def test_a_space_that_cannot_be_trained_is_refused(
    case: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reason = SPACES[case]
    Path("mine.yaml").write_text(text)
    assert run([*DEMO, "--space", "./mine.yaml"]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORCHESTRATE_HOME", str(tmp_path / "file" / "home"))
    assert run([*DEMO, "--workers", "1"]) == 2
    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "set ORCHESTRATE_HOME to one that can" in error


def test_a_database_of_another_program_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "orchestrate.db").write_text("this is not a database, it is a text of some length")
    assert run(["status"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_debug_shows_the_traceback(home: Path) -> None:
    with pytest.raises(LookupError):
        run(["status", "--debug"])


def test_a_plan_spends_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--space", "aot_fc", "--tasks", "sst2,rte", "--profile", "demo"]) == 0
    text = capsys.readouterr().out
    assert "aot_fc-sst2" in text
    assert "aot_fc-rte" in text
    assert not home.exists()


def test_a_dry_run_is_the_plan(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*DEMO, "--dry-run"]) == 0
    dry = capsys.readouterr().out
    assert run(["plan", *DEMO[1:]]) == 0
    assert [line for line in dry.splitlines() if "about" not in line] == [
        line for line in capsys.readouterr().out.splitlines() if "about" not in line
    ]
    assert not home.exists()
