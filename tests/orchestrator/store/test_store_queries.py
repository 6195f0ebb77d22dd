import random
from dataclasses import replace

import pytest
from store_rows import DECISION, REPORT, STUDY, SWEEP, fill, trial

from orchestrator.outcome import Outcome
from orchestrator.store.database import Store
from orchestrator.store.errors import ConstraintViolated
from orchestrator.store.rows import RunRow


def test_rows_come_back_as_they_were_written(store: Store) -> None:
    trials = fill(store)
    with store.write() as transaction:
        transaction.add_reports([REPORT])
        transaction.add_decision(DECISION)
    with store.read() as reader:
        assert reader.sweeps() == [SWEEP]
        assert reader.sweep(SWEEP.id) == SWEEP
        assert reader.studies(SWEEP.id) == [STUDY]
        assert reader.study(STUDY.id) == STUDY
        assert reader.trials(STUDY.id) == trials
        assert reader.trial(trials[1].id) == trials[1]
        assert reader.runs(trials[0].id) == [
            RunRow(trial_id=trials[0].id, seed=seed) for seed in STUDY.seeds
        ]
        assert reader.reports(trials[0].id) == [REPORT]
        (decision,) = reader.decisions(STUDY.id)
        assert replace(decision, id=None) == DECISION


def test_outcomes_come_back_as_outcomes(store: Store) -> None:
    (row, *_) = fill(store)
    for outcome in Outcome:
        with store.write() as transaction:
            transaction.update_trial(row.id, outcome=outcome)
            found = transaction.trial(row.id)
        assert found is not None
        assert found.outcome is outcome


def test_what_is_not_there_is_none_or_empty(store: Store) -> None:
    with store.read() as reader:
        assert reader.sweeps() == []
        assert reader.sweep("x") is None
        assert reader.study("x") is None
        assert reader.trial("x") is None
        assert reader.reports("x") == []
        assert reader.outcome_counts("x") == {}
        assert reader.device_seconds("x") == 0.0
        with pytest.raises(LookupError, match="no sweep 'x'"):
            reader.stop_requested("x")


def test_an_assignment_not_chosen_yet_is_none(store: Store) -> None:
    fill(store, num_trials=0)
    with store.write() as transaction:
        transaction.add_trials([trial(0, hyperparameters=None, hash=None)])
        assert transaction.trials(STUDY.id)[0].hyperparameters is None
        transaction.update_trial(f"{STUDY.id}/0", hyperparameters={"rank": 4}, hash="h")
        assert transaction.trials(STUDY.id)[0].hyperparameters == {"rank": 4}


def test_trials_of_a_sweep_come_by_study_then_k(store: Store) -> None:
    fill(store, num_trials=0)
    first = replace(STUDY, id="glue-lora/a-first", position=-1)
    with store.write() as transaction:
        transaction.add_study(first)
        transaction.add_trials([trial(10), trial(2), trial(1, first), trial(0, first)])
        found = [(t.study_id, t.k) for t in transaction.sweep_trials(SWEEP.id)]
    assert found == [(first.id, 0), (first.id, 1), (STUDY.id, 2), (STUDY.id, 10)]


def test_reports_come_by_epoch_then_seed_whatever_their_order(store: Store) -> None:
    fill(store)
    reports = [
        replace(REPORT, trial_id=f"{STUDY.id}/{k}", epoch=epoch, seed=seed)
        for k in range(3)
        for epoch in range(1, 12)
        for seed in (0, 1, 2)
    ]
    shuffled = random.Random(0).sample(reports, len(reports))
    with store.write() as transaction:
        assert transaction.add_reports(shuffled) == len(reports)
    with store.read() as reader:
        assert reader.study_reports(STUDY.id) == reports
        assert reader.reports(f"{STUDY.id}/1") == reports[33:66]


def test_a_report_is_written_once_however_often_it_arrives(store: Store) -> None:
    fill(store)
    second = replace(REPORT, epoch=2)
    with store.write() as transaction:
        assert transaction.add_reports([]) == 0
        assert transaction.add_reports([REPORT]) == 1
        assert transaction.add_reports([REPORT]) == 0
    with store.write() as transaction:
        assert transaction.add_reports([replace(REPORT, attempt=2, value=0.9), second]) == 1
        assert transaction.add_reports([second, second, replace(REPORT, seed=1)]) == 1
        assert transaction.reports(REPORT.trial_id) == [REPORT, replace(REPORT, seed=1), second]


def test_a_decision_falls_once_and_decisions_keep_their_order(store: Store) -> None:
    fill(store)
    rungs = [9, 1, 3]
    with store.write() as transaction:
        for rung in rungs:
            assert transaction.add_decision(replace(DECISION, rung=rung))
        assert not transaction.add_decision(replace(DECISION, rung=1, stop=True))
    with store.read() as reader:
        decisions = reader.decisions(STUDY.id)
    assert [d.rung for d in decisions] == rungs
    assert not any(d.stop for d in decisions)
    ids = [d.id for d in decisions if d.id is not None]
    assert len(ids) == len(rungs)
    assert ids == sorted(ids)


def test_an_unknown_trial_cannot_report(store: Store) -> None:
    fill(store)
    with pytest.raises(ConstraintViolated), store.write() as transaction:
        transaction.add_reports([replace(REPORT, trial_id="x")])


def test_a_number_names_one_trial_of_a_study(store: Store) -> None:
    fill(store)
    with pytest.raises(ConstraintViolated), store.write() as transaction:
        transaction.add_trials([trial(0, id="another id")])


def test_two_trials_may_share_an_assignment(store: Store) -> None:
    hashes = [t.hash for t in fill(store)]
    assert len(set(hashes)) < len(hashes)


def test_only_the_named_columns_of_the_named_row_change(store: Store) -> None:
    (first, second, third) = fill(store)
    with store.write() as transaction:
        transaction.update_sweep(SWEEP.id, stop_requested=True, execution={"workers": 3})
        transaction.update_study(STUDY.id, num_trials=5)
        transaction.update_trial(second.id, outcome=Outcome.FAILED, error="boom", attempts=2)
        transaction.update_run(second.id, 1, score=0.5, best_epoch=3)
    with store.read() as reader:
        changed = replace(second, outcome=Outcome.FAILED, error="boom", attempts=2)
        assert reader.trials(STUDY.id) == [first, changed, third]
        assert reader.sweep(SWEEP.id) == replace(
            SWEEP, stop_requested=True, execution={"workers": 3}
        )
        assert reader.stop_requested(SWEEP.id)
        assert reader.study(STUDY.id) == replace(STUDY, num_trials=5)
        assert [r.score for r in reader.runs(second.id)] == [None, 0.5, None]


def test_an_update_names_a_row_that_exists(store: Store) -> None:
    fill(store)
    with store.write() as transaction:
        with pytest.raises(LookupError, match="no trial 'x'"):
            transaction.update_trial("x", attempts=1)
        with pytest.raises(LookupError, match=f"no run '{STUDY.id}/0', 7"):
            transaction.update_run(f"{STUDY.id}/0", 7, score=0.5)
        with pytest.raises(LookupError, match="no sweep 'x'"):
            transaction.delete_sweep("x")


@pytest.mark.parametrize("columns", [{"scroe": 0.5}, {"id": "x"}, {"study_id": "x"}, {}])
def test_an_update_names_columns_that_may_change(store: Store, columns: dict[str, object]) -> None:
    (row, *_) = fill(store)
    with store.write() as transaction:
        with pytest.raises(TypeError, match=r"known: attempts, .*, score, "):
            transaction.update_trial(row.id, **columns)
        assert transaction.trial(row.id) == row


def test_an_unknown_outcome_is_refused(store: Store) -> None:
    (row, *_) = fill(store)
    with pytest.raises(LookupError, match="terminated"), store.write() as transaction:
        transaction.update_trial(row.id, outcome="terminated")


def test_a_number_json_does_not_know_is_refused(store: Store) -> None:
    fill(store)
    with pytest.raises(ValueError, match="not JSON compliant"), store.write() as transaction:
        transaction.add_reports([replace(REPORT, metrics={"accuracy": float("nan")})])


def test_an_error_text_may_hold_anything(store: Store) -> None:
    (row, *_) = fill(store)
    with store.write() as transaction:
        transaction.update_trial(row.id, error="log: \0 \udcff ü")
        found = transaction.trial(row.id)
    assert found is not None
    assert found.error == "log: \ufffd ? ü"


def test_messages_wait_in_order_until_they_are_delivered(store: Store) -> None:
    fill(store)
    with store.write() as transaction:
        for step in range(5):
            transaction.add_outbox(SWEEP.id, "metric", {"step": step}, 1000.0 + step)
    with store.read() as reader:
        messages = reader.outbox(SWEEP.id, limit=3)
        assert [m.payload["step"] for m in messages] == [0, 1, 2]
        assert reader.outbox_count(SWEEP.id) == 5
        assert reader.outbox_count("x") == 0
    with store.write() as transaction:
        transaction.delete_outbox([m.id for m in messages])
        transaction.delete_outbox([])
        assert [m.payload["step"] for m in transaction.outbox(SWEEP.id, limit=9)] == [3, 4]


def test_a_delivered_message_leaves_its_id_unused(store: Store) -> None:
    fill(store)
    ids = []
    for _ in range(3):
        with store.write() as transaction:
            transaction.add_outbox(SWEEP.id, "metric", {}, 0.0)
            (message,) = transaction.outbox(SWEEP.id, limit=2)
            transaction.delete_outbox([message.id])
        ids.append(message.id)
    assert ids == sorted(set(ids))


def test_sums_over_a_sweep_leave_other_sweeps_out(store: Store) -> None:
    trials = fill(store)
    other = replace(SWEEP, id="other", created_at=1.0)
    study = replace(STUDY, id="other/lora-rte", sweep_id="other")
    idle = replace(STUDY, id="glue-lora/idle", position=1)
    with store.write() as transaction:
        transaction.add_sweep(other)
        transaction.add_study(study)
        transaction.add_study(idle)
        transaction.add_trials([trial(0, study, device_seconds=100.0)])
        transaction.update_trial(trials[0].id, outcome=Outcome.COMPLETED, device_seconds=1.5)
        transaction.update_trial(trials[1].id, device_seconds=2.0)
    with store.read() as reader:
        assert reader.device_seconds(SWEEP.id) == 3.5
        assert reader.outcome_counts(SWEEP.id) == {
            STUDY.id: {Outcome.COMPLETED: 1, Outcome.PENDING: 2},
            idle.id: {},
        }
        assert [s.id for s in reader.sweeps()] == ["other", SWEEP.id]


def test_deleting_a_sweep_takes_all_that_is_its_own(store: Store) -> None:
    fill(store)
    other = replace(SWEEP, id="other")
    study = replace(STUDY, id="other/lora-rte", sweep_id="other")
    with store.write() as transaction:
        transaction.add_reports([REPORT])
        transaction.add_decision(DECISION)
        transaction.add_outbox(SWEEP.id, "metric", {}, 0.0)
        transaction.add_sweep(other)
        transaction.add_study(study)
        transaction.add_trials([trial(0, study)])
    with store.write() as transaction:
        transaction.delete_sweep(SWEEP.id)
    with store.read() as reader:
        assert reader.sweeps() == [other]
        assert reader.studies(SWEEP.id) == []
        assert reader.trials(STUDY.id) == []
        assert reader.runs(REPORT.trial_id) == []
        assert reader.reports(REPORT.trial_id) == []
        assert reader.decisions(STUDY.id) == []
        assert reader.outbox_count(SWEEP.id) == 0
        assert len(reader.trials(study.id)) == 1
