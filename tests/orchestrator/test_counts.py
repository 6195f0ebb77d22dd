"""The parameters of the assignments that a plan has, not of some others."""

from pathlib import Path

import pytest

from orchestrator.counts import counted, head_parameters
from orchestrator.fit import parameters
from orchestrator.options import LaunchOptions
from orchestrator.plan import assignment, make_plan
from orchestrator.profiles import PROFILES

MINE = """\
method: aot_fc
space:
  rank: {choice: [2, 4, 8]}
  learning_rate: {choice: [1.0e-3, 1.0e-2]}
training: {epochs: 2}
"""


def options(tmp_path: Path, search: str) -> LaunchOptions:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE)
    tasks = ("sst2", "mnli", "stsb")
    return LaunchOptions(space=(str(file),), tasks=tasks, search=search, search_seed=5, trials=6)


@pytest.mark.parametrize("search", ["random", "grid"])
def test_every_assignment_is_counted_with_its_own_values(tmp_path: Path, search: str) -> None:
    asked = options(tmp_path, search)
    study = make_plan(asked, PROFILES["demo"]).studies[0]
    rows = counted(study, asked)
    assert [row.k for row in rows] == list(range(6))
    assert [row.values for row in rows] == [assignment(study, asked, k) for k in range(6)]
    for row in rows:
        assert row.adapter_parameters == parameters("aot_fc", row.values, "minilm", 2)[0]
    assert len({row.adapter_parameters for row in rows}) > 1


def test_where_results_choose_the_values_both_ends_are_counted(tmp_path: Path) -> None:
    asked = options(tmp_path, "tpe")
    rows = counted(make_plan(asked, PROFILES["demo"]).studies[0], asked)
    assert {row.k for row in rows} == {None}
    assert {row.values["rank"] for row in rows} == {2, 4, 8}


def test_the_head_is_as_wide_as_its_task(tmp_path: Path) -> None:
    studies = make_plan(options(tmp_path, "random"), PROFILES["demo"]).studies
    two, three, one = (head_parameters(study) for study in studies)
    assert three - two == two - one == 384 + 1
