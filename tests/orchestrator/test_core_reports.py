"""Claims, reports and ASHA's decisions."""

import pytest
from small_sweeps import (
    EPOCHS,
    STUDY,
    check_counters,
    claim,
    decisions,
    enter,
    evaluations,
    everything,
    point,
    report,
    runs,
    study,
    trial,
)

from orchestrator.asha import Asha, rungs, tie_key
from orchestrator.core import Core
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store


def test_claims_go_to_the_study_that_is_least_far_in_order_of_k(database: Store) -> None:
    enter(
        database,
        study("a-rte", num_trials=4, position=0),
        study("b-rte", num_trials=2, position=1),
    )
    core = Core(database, "small")
    claimed = [claim(core).trial_id.removeprefix("small/") for _ in range(6)]
    assert claimed == ["a-rte/0", "b-rte/0", "a-rte/1", "a-rte/2", "b-rte/1", "a-rte/3"]
    assert core.claim() is None
    assert not core.work_left


def test_a_claim_is_one_attempt_and_says_all_a_worker_needs(database: Store) -> None:
    enter(database, study(seeds=[0, 1]))
    core = Core(database, "small", clock=lambda: 77.0)
    claimed = claim(core)
    row = trial(database, claimed.trial_id)
    assert (row.outcome, row.attempts, row.claimed_at) == (Outcome.RUNNING, 1, 77.0)
    assert claimed.attempt == 1
    spec = claimed.spec
    assert (spec.method, spec.task, spec.backbone, spec.seeds) == (
        "aot_fc",
        "rte",
        "minilm",
        (0, 1),
    )
    assert spec.hyperparameters == {"learning_rate": 1.0, "rank": 1}
    assert (spec.training.epochs, spec.training.batch_size) == (EPOCHS, 8)
    assert spec.data.source == "demo"


def test_a_report_is_written_once_however_often_it_arrives(database: Store) -> None:
    enter(database, study(seeds=[0, 1]))
    core = Core(database, "small")
    first = claim(core)
    answers = [report(core, first, point(1, 0.2, 0.4)), report(core, first, point(2, 0.3, 0.3))]
    before = everything(database, "small")
    answers += [report(core, first, point(1, 0.2, 0.4)), report(core, first, point(2, 0.9, 0.9))]
    assert answers == [False] * 4
    assert everything(database, "small") == before
    check_counters(core)
    with database.read() as reader:
        stored = [(r.epoch, r.seed, r.value, r.attempt) for r in reader.reports(first.trial_id)]
    assert stored == [(1, 0, 0.2, 1), (1, 1, 0.4, 1), (2, 0, 0.3, 1), (2, 1, 0.3, 1)]
    assert trial(database, first.trial_id).device_seconds == 4.0


def test_a_report_of_an_attempt_that_is_over_is_dropped_and_says_stop(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    old = claim(core)
    core.requeue(old.trial_id, old.attempt)
    new = claim(core)
    assert new.trial_id == old.trial_id
    before = everything(database, "small")
    assert report(core, old, point(1, 0.5))
    core.failed(old.trial_id, old.attempt, "late", Outcome.FAILED)
    core.requeue(old.trial_id, old.attempt)
    assert everything(database, "small") == before
    assert not report(core, new, point(1, 0.5))


def test_a_report_of_an_unknown_trial_is_dropped_and_says_stop(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    before = everything(database, "small")
    assert core.report("small/aot_fc-rte/99", 1, point(1, 0.5))
    assert core.report("other/aot_fc-rte/0", 1, point(1, 0.5))
    assert everything(database, "small") == before


def test_a_trial_below_the_threshold_is_stopped_and_the_decision_is_a_row(
    database: Store,
) -> None:
    enter(database, study())
    core = Core(database, "small")
    good, bad = claim(core), claim(core)
    assert not report(core, good, point(1, 0.8, loss=0.1))
    assert report(core, bad, point(1, 0.2, loss=None))
    made = [
        (row.trial_id[-1], row.rung, row.value, row.loss, row.threshold, row.count, row.stop)
        for row in decisions(database, STUDY.id)
    ]
    assert made == [
        ("0", 1, 0.8, 0.1, None, 0, False),
        ("1", 1, 0.2, None, 0.8, 1, True),
    ]
    row = trial(database, bad.trial_id)
    assert (row.outcome, row.score, row.epochs) == (Outcome.STOPPED, 0.2, 1)
    assert [run.outcome for run in runs(database, bad.trial_id)] == [Outcome.STOPPED]
    assert [run.outcome for run in runs(database, good.trial_id)] == [Outcome.RUNNING]
    check_counters(core)


@pytest.mark.parametrize("maximize", [True, False])
def test_decisions_equal_a_replay_of_the_rungs_in_order_of_id(
    database: Store, maximize: bool
) -> None:
    row = study(num_trials=20, seeds=[0, 1, 2], maximize=maximize)
    enter(database, row)
    core = Core(database, "small")
    while core.work_left:
        claimed = claim(core)
        for evaluation in evaluations(row, int(claimed.trial_id.rpartition("/")[2])):
            if report(core, claimed, evaluation):
                break
    made = decisions(database, row.id)
    assert {d.rung for d in made} == {1, 3}
    assert {d.stop for d in made} == {True, False}
    sign = 1 if maximize else -1
    ladder = Asha(rungs(1, 3, EPOCHS), 3)
    for d in made:
        k = int(d.trial_id.rpartition("/")[2])
        key = tie_key(sign * d.value, d.loss)
        again = ladder.judge(k, d.rung, key)
        assert again is not None
        threshold = None if again.threshold is None else sign * again.threshold
        assert (again.stop, threshold, again.count) == (d.stop, d.threshold, d.count)
        ladder.record(k, again, key)
    check_counters(core)


def test_scores_of_different_studies_never_meet(database: Store) -> None:
    enter(database, study("a-rte", position=0), study("b-rte", position=1))
    core = Core(database, "small")
    good, bad = claim(core), claim(core)
    assert not report(core, good, point(1, 0.9))
    assert not report(core, bad, point(1, 0.1))
    assert [d.threshold for d in decisions(database, "small/b-rte")] == [None]


def test_the_median_over_seeds_is_what_is_compared(database: Store) -> None:
    enter(database, study(seeds=[0, 1, 2]))
    core = Core(database, "small")
    assert not report(core, claim(core), point(1, 0.5, 0.6, 0.55))
    assert report(core, claim(core), point(1, 0.99, 0.5, 0.54))  # a better mean and maximum
    assert not report(core, claim(core), point(1, 0.0, 0.56, 0.57))
    assert [d.value for d in decisions(database, STUDY.id)] == [0.55, 0.54, 0.56]


def test_the_score_so_far_is_compared_not_the_last_value(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    for values in ([0.5, 0.5, 0.5], [0.6, 0.1, 0.2]):
        claimed = claim(core)
        for epoch, value in enumerate(values, 1):
            assert not report(core, claimed, point(epoch, value))
    assert [d.value for d in decisions(database, STUDY.id) if d.rung == 3] == [0.5, 0.6]


def test_equal_scores_are_told_apart_by_loss(database: Store) -> None:
    enter(database, study())
    core = Core(database, "small")
    answers = [
        report(core, claim(core), point(1, 0.5, loss=loss)) for loss in (0.5, 0.4, 0.6, None)
    ]
    assert answers == [False, False, True, True]


def test_a_minimised_metric_is_mirrored_in_everything(database: Store) -> None:
    enter(database, study(seeds=[0, 1], maximize=False))
    core = Core(database, "small")
    good, bad = claim(core), claim(core)
    assert not report(core, good, point(1, 0.2, 0.4))
    assert not report(core, good, point(2, 0.9, 0.1))
    assert report(core, bad, point(1, 0.5, 0.5))
    second = decisions(database, STUDY.id)[1]
    assert (second.value, second.stop) == (0.5, True)
    assert second.threshold == pytest.approx(0.3)
    assert core.studies[0].best == trial(database, good.trial_id).score == pytest.approx(0.15)
    assert [(r.score, r.best_epoch) for r in runs(database, good.trial_id)] == [(0.2, 1), (0.1, 2)]
    check_counters(Core(database, "small"))


def test_without_a_scheduler_nothing_is_judged(database: Store) -> None:
    enter(database, study(scheduler="none", grace=None, eta=None))
    core = Core(database, "small")
    assert not report(core, claim(core), point(1, 0.9))
    assert not report(core, claim(core), point(1, 0.1))
    assert decisions(database, STUDY.id) == []


def test_the_tracker_is_told_each_thing_once_in_the_transaction_of_what_it_tells(
    database: Store,
) -> None:
    enter(database, study(num_trials=2))
    core = Core(database, "small")
    first, second = claim(core), claim(core)
    report(core, first, point(1, 0.8))
    report(core, first, point(1, 0.8))
    report(core, second, point(1, 0.2))
    report(core, first, point(2, 0.9, last=True))
    with database.read() as reader:
        told = [(row.kind, row.payload.get("trial", "")[-1:]) for row in reader.outbox("small", 99)]
    assert told == [
        ("trial_started", "0"),
        ("trial_started", "1"),
        ("trial_reported", "0"),
        ("trial_reported", "1"),
        ("trial_finished", "1"),
        ("trial_reported", "0"),
        ("trial_finished", "0"),
        ("study_finished", ""),
    ]
