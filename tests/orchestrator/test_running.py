"""How a launch ends when something of ours breaks; Ray is not started."""

from pathlib import Path

import pytest
from small_sweeps import enter, study

from orchestrator.cluster.connect import Cluster
from orchestrator.core import Core
from orchestrator.home import Home
from orchestrator.options import LaunchOptions
from orchestrator.running import View, run
from orchestrator.store.database import Store


def test_the_first_error_surfaces_and_the_end_is_recorded(
    database: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATE_DB", f"sqlite:///{tmp_path / 'trials.db'}")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")  # nobody answers, at once
    enter(database, study())
    home = Home(tmp_path)
    (tmp_path / "sweeps").touch()  # no picture can be written below it
    here = Cluster(cpus=1, gpus=0, dashboard=None, words="this machine")

    def fail(core: Core) -> None:
        raise RuntimeError("the display broke")

    with pytest.raises(RuntimeError, match="the display broke") as caught:
        run(database, "small", LaunchOptions(), home, View(following=fail), here)
    notes = " ".join(caught.value.__notes__)
    assert "the end of sweep small" in notes
    assert "sweeps" in notes
    with database.read() as reader:
        sweep = reader.sweep("small")
    assert sweep is not None
    assert sweep.state == "interrupted"
