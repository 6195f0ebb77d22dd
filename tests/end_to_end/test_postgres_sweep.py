"""The same launch with PostgreSQL as the database."""

from collections.abc import Callable

import pytest
from sweeps import Sweeps

pytestmark = [pytest.mark.ray, pytest.mark.postgres]


def test_a_sweep_on_postgres_is_launched_resumed_and_read(
    sweeps: Sweeps, new_postgres_url: Callable[[], str]
) -> None:
    sweeps.environment["ORCHESTRATE_DB"] = new_postgres_url()
    words = ("--space", "aot_fc", "--tasks", "sst2", "--trials", "4", "--name", "pg")
    done = sweeps.run(*sweeps.launch_words(*words))
    assert done.returncode == 0, done.stderr
    assert sweeps.run("resume", "pg").returncode == 0
    status = sweeps.json("status", "pg")["sweeps"][0]
    assert status["state"] == "finished"
    assert len(status["studies"][0]["trials"]) == 4
    assert sweeps.json("evp", "pg")["curves"][0]["kind"] in ("bounds", "point")
    assert not (sweeps.home / "orchestrate.db").exists()
