import copy
import pickle
import sqlite3
import statistics
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from time import thread_time

import pytest
from store_rows import DECISION, REPORT, STUDY, SWEEP, fill, trial

from orchestrator.outcome import Outcome
from orchestrator.store.database import Store, open_store


def test_an_exception_undoes_the_whole_transaction(store: Store) -> None:
    trials = fill(store)

    def change_then_fail() -> None:
        with store.write() as transaction:
            transaction.add_reports([REPORT])
            transaction.update_trial(trials[0].id, outcome=Outcome.COMPLETED)
            transaction.delete_sweep(SWEEP.id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_then_fail()
    with store.read() as reader:
        assert reader.trials(STUDY.id) == trials
        assert reader.reports(REPORT.trial_id) == []


def test_a_store_works_on_after_a_failed_transaction(store: Store) -> None:
    for _ in range(20):  # more often than the pool has connections
        with pytest.raises(KeyboardInterrupt), store.write():
            raise KeyboardInterrupt
    fill(store)
    with store.read() as reader:
        assert reader.sweep(SWEEP.id) == SWEEP


def test_a_reader_sees_one_snapshot_and_blocks_nobody(store: Store) -> None:
    trials = fill(store)
    with store.read() as reader:
        assert reader.trials(STUDY.id) == trials
        with store.write() as transaction:
            transaction.update_trial(trials[0].id, outcome=Outcome.RUNNING)
        assert reader.trials(STUDY.id) == trials
    with store.read() as reader:
        assert reader.trials(STUDY.id)[0].outcome is Outcome.RUNNING


def test_a_writer_does_not_block_readers(store: Store) -> None:
    trials = fill(store)
    with store.write() as transaction:
        transaction.update_trial(trials[0].id, outcome=Outcome.RUNNING)
        with store.read() as reader:
            assert reader.trials(STUDY.id) == trials


def test_a_snapshot_takes_no_writes(store: Store) -> None:
    with store.read() as reader:
        assert not [name for name in dir(reader) if name.startswith(("add", "update", "delete"))]


def test_threads_share_a_store(store: Store) -> None:
    fill(store)
    barrier = Barrier(8)

    def write(seed: int) -> None:
        barrier.wait()
        for epoch in range(1, 11):
            with store.write() as transaction:
                transaction.add_reports([replace(REPORT, seed=seed, epoch=epoch)])

    threads = [Thread(target=write, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as reader:
        assert len(reader.reports(REPORT.trial_id)) == 80


def test_on_sqlite_what_a_writer_reads_stays_true(sqlite_file: Path) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store:
        (row, *_) = fill(store)
        barrier = Barrier(4)

        def count_up() -> None:
            barrier.wait()
            for _ in range(25):
                with store.write() as transaction:
                    found = transaction.trial(row.id)
                    assert found is not None
                    transaction.update_trial(row.id, attempts=found.attempts + 1)

        threads = [Thread(target=count_up) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.read() as reader:
            found = reader.trial(row.id)
        assert found is not None
        assert found.attempts == 100


def test_what_is_committed_outlives_a_killed_process(sqlite_file: Path) -> None:
    script = f"""
import os, signal
from dataclasses import replace
from store_rows import fill, REPORT
from orchestrator.store.database import open_store
store = open_store("sqlite:///{sqlite_file}", create=True)
fill(store)
with store.write() as transaction:
    transaction.add_reports([REPORT])
with store.write() as transaction:
    transaction.add_reports([replace(REPORT, epoch=2)])
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == -9
    with open_store(f"sqlite:///{sqlite_file}", create=False) as store, store.read() as reader:
        assert reader.reports(REPORT.trial_id) == [REPORT]


def test_sqlite_is_set_up_to_lose_nothing(sqlite_file: Path) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store, store.write() as transaction:
        connection = transaction._connection
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_store_is_never_copied_by_accident(store: Store, attempt: object) -> None:
    assert callable(attempt)
    with pytest.raises(TypeError, match="a Store holds connections"):
        attempt(store)


def test_a_report_takes_less_than_two_milliseconds_of_computing(sqlite_file: Path) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store:
        fill(store, num_trials=100)
        seconds = []
        for k in range(100):
            row = trial(k)
            start = thread_time()  # waking after fsync takes as long as busy cores let it
            with store.write() as transaction:
                transaction.add_reports([replace(REPORT, trial_id=row.id)])
                transaction.add_decision(replace(DECISION, trial_id=row.id))
                transaction.update_trial(row.id, outcome=Outcome.RUNNING, score=0.5, epochs=1)
                transaction.update_run(row.id, 0, score=0.5, best_epoch=1)
            seconds.append(thread_time() - start)
    assert statistics.median(seconds) < 0.002


def test_twenty_thousand_trials_are_added_in_one_go(sqlite_file: Path) -> None:
    with open_store(f"sqlite:///{sqlite_file}", create=True) as store:
        fill(store, num_trials=0)
        start = thread_time()
        with store.write() as transaction:
            transaction.add_trials(trial(k) for k in range(20_000))
        assert thread_time() - start < 4
        with closing(sqlite3.connect(sqlite_file)) as plain:
            assert plain.execute("SELECT count(*) FROM trial").fetchone() == (20_000,)
