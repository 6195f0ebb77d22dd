"""A plan in the database: entered once, continued, grown, or refused."""

from dataclasses import replace
from typing import Any

import pytest
from small_sweeps import claim, everything, point, report

from orchestrator.core import Core
from orchestrator.errors import Refused
from orchestrator.options import LaunchOptions
from orchestrator.outcome import Outcome
from orchestrator.plan import Plan, make_plan
from orchestrator.profiles import PROFILES
from orchestrator.recording import begin, check_data, check_same, end, record
from orchestrator.store.database import Store
from orchestrator.store.rows import SweepRow

DATA: dict[str, dict[str, Any]] = {
    task: {"source": "demo", "fingerprint": f"rows of {task}", "model": "weights"}
    for task in ("rte", "sst2")
}


def plan(**options: Any) -> Plan:
    defaults: dict[str, Any] = {"space": ("aot_fc",), "tasks": ("rte", "sst2"), "trials": 4}
    return make_plan(LaunchOptions(**{"name": "mine"} | defaults | options), PROFILES["demo"])


def write(store: Store, made: Plan, data: dict[str, dict[str, Any]] = DATA) -> None:
    with store.write() as tx:
        record(tx, made, data, {"python": "3.11"})


def sweep(store: Store) -> SweepRow:
    with store.read() as reader:
        row = reader.sweep("mine")
    assert row is not None
    return row


def test_all_rows_are_there_before_the_first_trial_starts(database: Store) -> None:
    write(database, plan(seeds=2))
    with database.read() as reader:
        studies, trials = reader.studies("mine"), reader.sweep_trials("mine")
        assert [row.id for row in studies] == ["mine/aot_fc-rte", "mine/aot_fc-sst2"]
        assert [row.data for row in studies] == [DATA["rte"], DATA["sst2"]]
        assert [(t.k, t.outcome) for t in trials] == [(k, Outcome.PENDING) for k in range(4)] * 2
        assert all(t.hyperparameters and t.hash for t in trials)
        assert [(r.seed, r.outcome) for r in reader.runs(trials[0].id)] == [
            (0, Outcome.PENDING),
            (1, Outcome.PENDING),
        ]


def test_the_same_plan_again_changes_nothing(database: Store) -> None:
    write(database, plan())
    core = Core(database, "mine")
    report(core, claim(core), point(1, 0.5))
    before = everything(database, "mine")
    write(database, plan(workers=3))
    assert everything(database, "mine") == before


@pytest.mark.parametrize("search", ["random", "tpe"])
def test_more_trials_are_added_behind_those_there_are(database: Store, search: str) -> None:
    write(database, plan(search=search))
    core = Core(database, "mine")
    report(core, claim(core), point(1, 0.5, last=True))
    with database.read() as reader:
        before = reader.sweep_trials("mine")
    write(database, plan(trials=7, search=search))
    with database.read() as reader:
        studies, trials = reader.studies("mine"), reader.sweep_trials("mine")
        assert len(reader.runs("mine/aot_fc-sst2/6")) == 1
    assert [study.num_trials for study in studies] == [7, 7]
    assert [t for t in trials if t.k < 4] == before
    assert [t.k for t in trials] == [*range(7)] * 2
    assert sweep(database).options["trials"] == 7
    assert len(Core(database, "mine").studies[0].waiting) == 6
    with pytest.raises(Refused, match=r"other options: --trials 7 \(now 4\); only --trials may"):
        write(database, plan(search=search))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"eta": 2}, "--eta 3 (now 2)"),
        ({"limit_train": 9}, "--limit-train not given (now 9)"),
        ({"tasks": ("rte",)}, "--tasks rte,sst2 (now rte)"),
        ({"eta": 2, "grace": 2}, "--eta 3 (now 2), --grace 1 (now 2)"),
        ({"trials": 3}, "--trials 4 (now 3)"),
        ({"trials": 9, "seeds": 2}, "--seeds 1 (now 2)"),
    ],
)
def test_the_same_name_with_other_options_is_refused_and_writes_nothing(
    database: Store, options: dict[str, Any], words: str
) -> None:
    write(database, plan())
    before = everything(database, "mine")
    with pytest.raises(Refused) as caught:
        write(database, plan(**options))
    assert str(caught.value) == (
        f"sweep mine exists with other options: {words}; "
        f"only --trials may grow; give another --name"
    )
    assert everything(database, "mine") == before
    assert sweep(database).options == plan().identity


def test_a_changed_space_file_is_refused_in_words(database: Store) -> None:
    write(database, plan())
    known = sweep(database)
    with pytest.raises(Refused, match="other options: --space means other values than it did;"):
        check_same(replace(known, options=known.options | {"space_definitions": "x"}), plan())


@pytest.mark.parametrize(
    ("key", "words"), [("fingerprint", "rows of task rte"), ("model", "backbone")]
)
def test_other_rows_or_weights_are_refused(database: Store, key: str, words: str) -> None:
    write(database, plan())
    other = DATA | {"rte": DATA["rte"] | {key: "another fingerprint"}}
    reason = f"study mine/aot_fc-rte: the {words} changed since it began"
    with pytest.raises(Refused, match=reason):
        write(database, plan(trials=9), other)
    with database.read() as reader:
        (study, _) = reader.studies("mine")
        assert study.num_trials == 4
        check_data(study, DATA["rte"] | {"words": "told otherwise"})


def test_a_driver_notes_when_it_begins_and_ends(database: Store) -> None:
    write(database, plan())
    for wall_seconds in (10.0, 5.0):
        with database.write() as tx:
            tx.update_sweep("mine", stop_requested=True)
            begin(tx, "mine", {"workers": 2}, {"python": "3.12"})
        row = sweep(database)
        assert (row.state, row.stop_requested, row.finished_at) == ("running", False, None)
        assert (row.execution, row.versions) == ({"workers": 2}, {"python": "3.12"})
        with database.write() as tx:
            end(tx, "mine", "interrupted", wall_seconds)
    row = sweep(database)
    assert (row.state, row.wall_seconds) == ("interrupted", 15.0)
    assert row.finished_at is not None
