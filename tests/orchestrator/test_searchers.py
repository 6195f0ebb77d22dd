"""TPE: a function of the rows, through the core and on its own."""

import math
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from small_sweeps import claim, enter, point, report, study, trial

from orchestrator.core import Core
from orchestrator.outcome import Outcome
from orchestrator.plan_rows import assignment_hash
from orchestrator.searchers import STARTUP_TRIALS, suggest
from orchestrator.store.database import Store
from orchestrator.store.rows import TrialRow
from searchspaces.distributions import Choice, Integer, Range
from searchspaces.space import Assignment, Space

SPACE = Space(
    method="aot_fc",
    name="mine@own",
    source="",
    free={
        "learning_rate": Range(1e-4, 1e-2, log=True),
        "dropout": Range(0.0, 0.5),
        "rank": Integer(1, 64),
        "activation": Choice(("gelu", "relu")),
    },
    tied=(({"a": 1, "b": 10}, {"a": 2, "b": 20}, {"a": 3, "b": 30}),),
    training={},
)
LINE = Space(
    method="aot_fc",
    name="line@own",
    source="",
    free={"x": Range(0.0, 1.0), "y": Range(0.0, 1.0)},
    tied=(),
    training={},
)


def row(
    k: int, values: Assignment | None, outcome: Outcome, score: float | None = None
) -> TrialRow:
    return TrialRow(
        id=f"small/line-rte/{k}",
        study_id="small/line-rte",
        k=k,
        hyperparameters=values,
        outcome=outcome,
        score=score,
        epochs=0 if score is None else 3,
    )


def search(
    space: Space, seed: int, budget: int, score: Callable[[Assignment], float], maximize: bool
) -> list[TrialRow]:
    """A search of so many trials, one after the other."""
    rows: list[TrialRow] = []
    for k in range(budget):
        values, _ = suggest(space, seed, k, maximize, rows)
        rows.append(row(k, values, Outcome.COMPLETED, score(values)))
    return rows


def hill(values: Assignment) -> float:
    return 1 - (float(values["x"]) - 0.7) ** 2 - (float(values["y"]) - 0.2) ** 2


def test_equal_rows_get_equal_suggestions() -> None:
    rows = search(LINE, 0, 14, hill, maximize=True)
    states = [Outcome.STOPPED, Outcome.FAILED, Outcome.RUNNING, Outcome.PENDING, Outcome.LOST]
    rows[:5] = [replace(r, outcome=o) for r, o in zip(rows, states, strict=False)]
    first = suggest(LINE, 0, 14, True, rows)
    assert suggest(LINE, 0, 14, True, [replace(r, device_seconds=9.0) for r in rows]) == first
    assert suggest(LINE, 1, 14, True, rows) != first
    assert suggest(LINE, 0, 15, True, rows) != first


def test_values_come_from_the_space_and_tied_groups_stay_together() -> None:
    for made in search(SPACE, 3, 25, lambda values: float(values["a"]), maximize=True):
        values = made.hyperparameters
        assert values is not None
        assert set(values) == set(SPACE.keys)
        assert 1e-4 <= values["learning_rate"] <= 1e-2
        assert 0 <= values["dropout"] <= 0.5
        assert isinstance(values["rank"], int)
        assert 1 <= values["rank"] <= 64
        assert values["activation"] in ("gelu", "relu")
        assert values["b"] == 10 * values["a"]


def test_the_first_ten_finished_trials_are_a_random_start() -> None:
    rows: list[TrialRow] = []
    flags = []
    for k in range(STARTUP_TRIALS + 3):
        values, random = suggest(LINE, 0, k, True, rows)
        flags.append(random)
        rows.append(row(k, values, Outcome.COMPLETED, hill(values)))
    assert flags == [True] * STARTUP_TRIALS + [False] * 3
    pending = [replace(r, outcome=Outcome.RUNNING) if r.k < 5 else r for r in rows]
    assert suggest(LINE, 0, 20, True, pending)[1], "five of thirteen are not finished"


def test_random_start_up_draws_do_not_depend_on_results() -> None:
    rows = search(LINE, 0, 9, hill, maximize=True)
    other = [replace(r, score=0.0, outcome=Outcome.STOPPED) for r in rows]
    assert suggest(LINE, 0, 9, True, rows) == suggest(LINE, 0, 9, True, other)


def test_several_that_are_out_at_once_get_different_values() -> None:
    rows = search(LINE, 0, 20, hill, maximize=True)
    for k in range(20, 26):
        values, _ = suggest(LINE, 0, k, True, rows)
        rows.append(row(k, values, Outcome.RUNNING))
    assert len({str(r.hyperparameters) for r in rows}) == len(rows)


def near(values: Assignment, centre: float) -> bool:
    return abs(float(values["x"]) - centre) < 0.2


def clustered(outcome: Outcome, score: float | None, others: float) -> list[TrialRow]:
    """Eight trials about x = 0.2 that ended like this, eight about 0.8 with a score."""
    low = [row(k, {"x": 0.16 + 0.01 * k, "y": 0.1 * k}, outcome, score) for k in range(8)]
    high = [
        row(8 + k, {"x": 0.76 + 0.01 * k, "y": 0.1 * k}, Outcome.COMPLETED, others)
        for k in range(8)
    ]
    return low + high


def share_near(rows: list[TrialRow], centre: float, maximize: bool) -> float:
    found = [suggest(LINE, seed, 16, maximize, rows)[0] for seed in range(24)]
    return sum(near(values, centre) for values in found) / len(found)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize(
    "outcome",
    [Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.DIVERGED, Outcome.INVALID],
)
def test_a_failed_trial_is_worse_than_any_score(outcome: Outcome, maximize: bool) -> None:
    # its score so far would have been the best
    best, worst = (0.9, 0.1) if maximize else (0.1, 0.9)
    rows = clustered(outcome, best, worst)
    assert share_near(rows, 0.8, maximize) > 2 * share_near(rows, 0.2, maximize)


@pytest.mark.parametrize("maximize", [True, False])
def test_a_stopped_trial_is_worse_than_a_completed_one(maximize: bool) -> None:
    best, worst = (0.9, 0.1) if maximize else (0.1, 0.9)
    rows = clustered(Outcome.STOPPED, best, worst)
    assert share_near(rows, 0.8, maximize) > 2 * share_near(rows, 0.2, maximize)


@pytest.mark.parametrize("maximize", [True, False])
def test_among_stopped_trials_the_better_ones_are_searched(maximize: bool) -> None:
    better, worse = (0.9, 0.1) if maximize else (0.1, 0.9)
    rows = [replace(r, outcome=Outcome.STOPPED) for r in clustered(Outcome.STOPPED, worse, better)]
    assert share_near(rows, 0.8, maximize) > 2 * share_near(rows, 0.2, maximize)


def test_lost_and_cancelled_trials_are_not_told() -> None:
    rows = search(LINE, 0, 12, hill, maximize=True)
    extra = [
        row(12, {"x": 0.5, "y": 0.5}, Outcome.LOST, 0.9),
        row(13, {"x": 0.5, "y": 0.5}, Outcome.CANCELLED, 0.9),
        row(14, None, Outcome.PENDING),
    ]
    assert suggest(LINE, 0, 15, True, rows + extra) == suggest(LINE, 0, 15, True, rows)


@pytest.mark.parametrize("maximize", [True, False])
def test_thirty_trials_find_better_values_than_thirty_draws(maximize: bool) -> None:
    sign = 1 if maximize else -1
    searched, drawn = [], []
    for seed in range(6):
        rows = search(LINE, seed, 30, lambda values: sign * hill(values), maximize)
        searched.append([1 - sign * r.score for r in rows if r.score is not None])
        drawn.append([1 - hill(LINE.draw(seed, k)) for k in range(30)])
    assert statistics.mean(map(min, searched)) < 0.7 * statistics.mean(map(min, drawn))
    late = [regret for each in searched for regret in each[STARTUP_TRIALS:]]
    assert statistics.mean(late) < 0.5 * statistics.mean(map(statistics.mean, drawn))


def test_a_claim_keeps_what_was_suggested(database: Store) -> None:
    enter(database, study(searcher="tpe", num_trials=13, seeds=[0]))
    core = Core(database, "small")
    for k in range(13):
        claimed = claim(core)
        row = trial(database, claimed.trial_id)
        assert row.hyperparameters is not None
        assert claimed.spec.hyperparameters == row.hyperparameters
        assert set(row.hyperparameters) == {"learning_rate", "rank"}
        assert row.hash == assignment_hash(row.hyperparameters)
        assert row.random_startup == (k < STARTUP_TRIALS)
        assert row.outcome == Outcome.RUNNING
        report(core, claimed, point(1, 1 / (k + 1), last=True))


def test_a_second_attempt_keeps_the_values_of_the_first(database: Store) -> None:
    enter(database, study(searcher="tpe"))
    core = Core(database, "small")
    first = claim(core)
    core.failed(first.trial_id, first.attempt, "died", Outcome.LOST)
    assert claim(core).spec == first.spec
    assert claim(Core(database, "small")).spec == first.spec


def test_a_resumed_search_goes_on_with_the_same_suggestions(database: Store) -> None:
    """Two sweeps with one history, one driven by a single core, one by a core for each claim."""
    found: list[list[object]] = []
    for sweep, rebuild in (("lives", False), ("rebuilt", True)):
        enter(database, study(sweep=sweep, searcher="tpe", num_trials=18))
        core = Core(database, sweep)
        values: list[object] = []
        while core.work_left:
            if rebuild:
                core = Core(database, sweep)
            claimed = claim(core)
            rate = float(claimed.spec.hyperparameters["learning_rate"])
            values.append(claimed.spec.hyperparameters)
            accuracy = round(1 - abs(math.log10(rate) + 3) / 2, 3)
            if not report(core, claimed, point(1, accuracy)):
                report(core, claimed, point(2, accuracy, last=True))
        found.append(values)
    assert found[0] == found[1]
    with database.read() as reader:
        outcomes = Counter(t.outcome for t in reader.trials("lives/aot_fc-rte"))
    assert outcomes[Outcome.STOPPED]
    assert outcomes[Outcome.COMPLETED]
