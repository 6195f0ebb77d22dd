"""How trials and their runs end, and what another attempt does to what is stored."""

import math

import pytest
from small_sweeps import (
    STUDY,
    check_counters,
    claim,
    decisions,
    enter,
    everything,
    point,
    report,
    runs,
    study,
    trial,
)

from orchestrator.core import MAX_DEATHS, Core
from orchestrator.live import Live
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store
from trials.spec import RunState

ENDS: list[tuple[tuple[RunState, ...], Outcome]] = [
    (("completed", "completed"), Outcome.COMPLETED),
    (("completed_by_patience", "completed_by_patience"), Outcome.COMPLETED_BY_PATIENCE),
    (("completed", "completed_by_patience"), Outcome.COMPLETED),
    (("diverged", "completed"), Outcome.COMPLETED),
    (("diverged", "completed_by_patience"), Outcome.COMPLETED_BY_PATIENCE),
    (("diverged", "diverged"), Outcome.DIVERGED),
]


@pytest.mark.parametrize(("states", "outcome"), ENDS, ids=lambda value: str(value))
def test_the_last_point_says_how_the_trial_and_its_runs_ended(
    database: Store, states: tuple[RunState, ...], outcome: Outcome
) -> None:
    enter(database, study(seeds=[0, 1]))
    ended: list[tuple[str, Outcome]] = []
    core = Core(
        database,
        "small",
        clock=lambda: 5.0,
        on_end=lambda live, outcome: ended.append((live.trial_id, outcome)),
    )
    claimed = claim(core)
    assert report(core, claimed, point(1, 0.4, 0.8, states=states, last=True))
    row = trial(database, claimed.trial_id)
    assert (row.outcome, row.epochs, row.finished_at) == (outcome, 1, 5.0)
    assert row.score == pytest.approx(0.6)
    assert [run.outcome.value for run in runs(database, claimed.trial_id)] == list(states)
    assert ended == [(claimed.trial_id, outcome)]
    assert report(core, claimed, point(1, 0.4, 0.8, states=states, last=True))
    assert core.num_failures == outcome.failure
    check_counters(core)


def test_runs_that_end_at_different_epochs_keep_their_ends_and_their_best(
    database: Store,
) -> None:
    enter(database, study(seeds=[0, 1, 2], scheduler="none", grace=None, eta=None))
    core = Core(database, "small")
    claimed = claim(core)
    going, early, wild = "running", "completed_by_patience", "diverged"
    assert not report(core, claimed, point(1, 0.5, 0.3, 0.4, states=[going, going, going]))
    assert not report(core, claimed, point(2, 0.4, 0.6, 0.0, states=[early, going, wild]))
    assert report(core, claimed, point(3, 0.5, states=["completed"], seeds=[1], last=True))
    assert [(r.outcome.value, r.score, r.best_epoch) for r in runs(database, claimed.trial_id)] == [
        (early, 0.5, 1),
        ("completed", 0.6, 2),
        (wild, 0.4, 1),
    ]
    assert trial(database, claimed.trial_id).score == 0.5


def test_a_run_that_ended_by_itself_keeps_that_when_its_trial_is_stopped(database: Store) -> None:
    enter(database, study(seeds=[0, 1, 2]))
    core = Core(database, "small")
    best = claim(core)
    for epoch in (1, 2, 3):
        assert not report(core, best, point(epoch, 0.9, 0.9, 0.9))
    claimed = claim(core)
    ends: list[RunState] = ["completed_by_patience", "running", "diverged"]
    assert not report(core, claimed, point(1, 0.9, 0.9, 0.9, loss=0.1))
    assert not report(core, claimed, point(2, 0.9, 0.9, 0.0, states=ends))
    assert report(core, claimed, point(3, 0.9, seeds=[1], loss=9.0))
    assert [r.outcome for r in runs(database, claimed.trial_id)] == [
        Outcome.COMPLETED_BY_PATIENCE,
        Outcome.STOPPED,
        Outcome.DIVERGED,
    ]


def test_a_diverged_lane_enters_a_rung_with_its_best_or_the_worst_never_as_nan(
    database: Store,
) -> None:
    enter(database, study(seeds=[0, 1]))
    core = Core(database, "small")
    claimed = claim(core)
    wild: list[RunState] = ["diverged", "running"]
    assert not report(core, claimed, point(1, 0.0, 0.6, loss=[None, 0.5], states=wild))
    assert not report(core, claimed, point(2, 0.7, seeds=[1]))
    assert not report(core, claimed, point(3, 0.7, seeds=[1]))
    made = decisions(database, STUDY.id)
    assert [(d.value, d.loss) for d in made] == [(0.3, 0.5), (0.35, 0.5)]
    again = Core(database, "small")
    rung = again.studies[0].asha
    assert rung is not None
    assert rung.sizes() == {1: 1, 3: 1}
    other = claim(core)
    assert report(core, other, point(1, 0.0, 0.0, loss=None, states=["diverged"] * 2, last=True))
    assert trial(database, other.trial_id).outcome == Outcome.DIVERGED
    assert all(math.isfinite(d.value) for d in decisions(database, STUDY.id))


def test_a_dead_worker_puts_its_trial_first_again_and_three_lose_it(database: Store) -> None:
    enter(database, study(seeds=[0, 1]))
    core = Core(database, "small")
    first = claim(core)
    assert not report(core, first, point(1, 0.5, 0.5))
    claimed = first
    for attempt in range(1, MAX_DEATHS + 1):
        assert (claimed.trial_id, claimed.attempt) == (first.trial_id, attempt)
        core.failed(claimed.trial_id, claimed.attempt, f"died {attempt}", Outcome.LOST)
        check_counters(core)
        row = trial(database, first.trial_id)
        assert (row.attempts, row.error) == (attempt, f"died {attempt}")
        if attempt < MAX_DEATHS:
            assert row.outcome == Outcome.PENDING
            assert core.studies[0].waiting[0] == 0
            claimed = claim(core)
    row = trial(database, first.trial_id)
    assert (row.outcome, row.score, row.epochs) == (Outcome.LOST, 0.5, 1)
    assert [run.outcome for run in runs(database, first.trial_id)] == [Outcome.LOST] * 2
    assert core.num_failures == 0
    assert claim(core).trial_id.endswith("/1")


def test_giving_a_trial_back_costs_none_of_its_chances(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    for _ in range(MAX_DEATHS):
        core.requeue_all()
        claimed = claim(core)
        assert claimed.trial_id.endswith("/0")
        core.requeue(claimed.trial_id, claimed.attempt)
        assert claim(core).attempt == claimed.attempt + 1
        core = Core(database, "small")
    claimed = claim(core)
    assert claimed.attempt == 2 * MAX_DEATHS + 1
    core.failed(claimed.trial_id, claimed.attempt, "died", Outcome.LOST)
    assert trial(database, claimed.trial_id).outcome == Outcome.PENDING
    check_counters(core)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.INVALID])
def test_an_error_of_the_trial_is_final_and_its_text_is_kept(
    database: Store, outcome: Outcome
) -> None:
    enter(database, study(seeds=[0, 1], num_trials=1))
    core = Core(database, "small", clock=lambda: 8.0)
    claimed = claim(core)
    ends: list[RunState] = ["completed_by_patience", "running"]
    assert not report(core, claimed, point(1, 0.4, 0.2, states=ends))
    core.failed(claimed.trial_id, claimed.attempt, "Error: no\nline 2", outcome)
    row = trial(database, claimed.trial_id)
    assert (row.outcome, row.error, row.finished_at) == (outcome, "Error: no\nline 2", 8.0)
    assert (row.score, row.epochs) == (pytest.approx(0.3), 1)
    assert [run.outcome for run in runs(database, claimed.trial_id)] == [
        Outcome.COMPLETED_BY_PATIENCE,
        outcome,
    ]
    assert core.num_failures == 1
    assert not core.work_left
    check_counters(core)
    check_counters(Core(database, "small"))


def test_a_trial_that_ends_well_has_no_error_of_an_earlier_attempt(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    claimed = claim(core)
    core.failed(claimed.trial_id, claimed.attempt, "died", Outcome.LOST)
    assert report(core, claim(core), point(1, 0.4, last=True))
    row = trial(database, claimed.trial_id)
    assert (row.outcome, row.error, row.attempts) == (Outcome.COMPLETED, None, 2)


def test_device_seconds_add_up_over_attempts_and_devices(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small", devices_per_trial=0.5)
    claimed = claim(core)
    report(core, claimed, point(1, 0.4, seconds=4))
    report(core, claimed, point(2, 0.4, seconds=6))
    core.requeue(claimed.trial_id, claimed.attempt)
    report(core, claim(core), point(1, 0.4, seconds=10))
    assert trial(database, claimed.trial_id).device_seconds == core.device_seconds == 10
    assert Core(database, "small").device_seconds == 10


class TestAnotherAttempt:
    """A trial whose first attempt has reported three epochs starts from its first epoch again."""

    @pytest.fixture
    def core(self, database: Store) -> Core:
        enter(database, study(seeds=[0, 1]))
        core = Core(database, "small", clock=lambda: 1.0)
        claimed = claim(core)
        ends: list[RunState] = ["running", "completed_by_patience"]
        assert not report(core, claimed, point(1, 0.2, 0.8, loss=0.9))
        assert not report(core, claimed, point(2, 0.6, 0.1, states=ends, loss=[0.7, 0.3]))
        assert not report(core, claimed, point(3, 0.5, seeds=[0], loss=0.5))
        return Core(database, "small", clock=lambda: 2.0)

    def test_its_repeated_reports_change_nothing_that_is_stored(
        self, core: Core, database: Store
    ) -> None:
        claimed = claim(core)
        assert (claimed.trial_id, claimed.attempt) == ("small/aot_fc-rte/0", 2)
        with database.read() as reader:
            told = reader.outbox_count("small")
        time = ("device_seconds",)
        before = everything(database, "small", but=time)
        # not even where it computes other numbers than before
        assert not report(core, claimed, point(1, 0.9, 0.1, loss=0.0))
        assert everything(database, "small", but=time) == before
        assert not report(core, claimed, point(2, 0.1, 0.9))
        assert not report(core, claimed, point(3, 0.95, seeds=[0]))
        assert everything(database, "small", but=time) == before
        with database.read() as reader:
            assert reader.outbox_count("small") == told
        assert trial(database, claimed.trial_id).device_seconds == 12
        check_counters(core)

    def test_it_goes_on_with_what_was_reported(self, core: Core, database: Store) -> None:
        claimed = claim(core)
        for epoch in (1, 2, 3):
            report(core, claimed, point(epoch, 0.0, seeds=[0]))
        assert not report(core, claimed, point(4, 0.55, seeds=[0]))
        row = trial(database, claimed.trial_id)
        assert (row.score, row.epochs) == (pytest.approx(0.7), 4)
        assert [(r.score, r.best_epoch) for r in runs(database, claimed.trial_id)] == [
            (0.6, 2),
            (0.8, 1),
        ]
        assert report(core, claimed, point(5, 0.7, seeds=[0], last=True))
        assert [r.outcome for r in runs(database, claimed.trial_id)] == [
            Outcome.COMPLETED,
            Outcome.COMPLETED_BY_PATIENCE,
        ]
        assert trial(database, claimed.trial_id).outcome == Outcome.COMPLETED

    def test_it_may_begin_at_a_later_epoch_as_from_a_checkpoint(
        self, core: Core, database: Store
    ) -> None:
        claimed = claim(core)
        assert not report(core, claimed, point(4, 0.3, seeds=[0]))
        assert trial(database, claimed.trial_id).score == pytest.approx(0.7)
        check_counters(core)

    def test_it_is_compared_by_all_its_losses(self, core: Core, database: Store) -> None:
        claim(core)
        live: Live = core.live["small/aot_fc-rte/0"]
        assert live.key == (pytest.approx(0.7), pytest.approx(-0.4))

    def test_it_may_end_earlier_than_the_one_before(self, core: Core, database: Store) -> None:
        claimed = claim(core)
        ends: list[RunState] = ["completed_by_patience", "completed_by_patience"]
        assert report(core, claimed, point(1, 0.1, 0.1, states=ends, last=True))
        row = trial(database, claimed.trial_id)
        assert (row.outcome, row.epochs) == (Outcome.COMPLETED_BY_PATIENCE, 3)
        assert row.score == pytest.approx(0.7)
        check_counters(core)

    def test_its_failure_leaves_the_run_that_had_ended(self, core: Core, database: Store) -> None:
        claimed = claim(core)
        report(core, claimed, point(1, 0.2, 0.8))
        core.failed(claimed.trial_id, claimed.attempt, "out", Outcome.OUT_OF_MEMORY)
        assert [r.outcome for r in runs(database, claimed.trial_id)] == [
            Outcome.OUT_OF_MEMORY,
            Outcome.COMPLETED_BY_PATIENCE,
        ]


def test_a_trial_that_was_begun_goes_before_those_that_were_not(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    assert [claim(core).trial_id[-1] for _ in range(3)] == ["0", "1", "2"]
    core.failed("small/aot_fc-rte/0", 1, "no", Outcome.FAILED)
    again = Core(database, "small")
    assert [claim(again).trial_id[-1] for _ in range(3)] == ["1", "2", "3"]


def test_a_core_on_a_finished_sweep_has_no_work_left(database: Store) -> None:
    enter(database, study(num_trials=1))
    core = Core(database, "small")
    report(core, claim(core), point(1, 0.4, last=True))
    again = Core(database, "small")
    assert not again.work_left
    assert again.claim() is None
    assert again.studies[0].best == 0.4
    assert again.studies[0].unfinished == 0
