"""A driver that dies at any point, and a database that fails at any statement."""

import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from small_sweeps import (
    EPOCHS,
    check_counters,
    claim,
    decisions,
    enter,
    evaluations,
    everything,
    natural_end,
    point,
    report,
    score_after,
    study,
    trial,
)

from orchestrator.asha import Asha, rungs, tie_key
from orchestrator.core import Claim, Core
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store, open_store
from orchestrator.store.errors import StoreError
from orchestrator.store.rows import StudyRow
from trials.spec import EvalPoint

WORKERS = 3
USER_ERROR = ("b-rte", 5, 2)
"""Trial 5 of study b raises in its second epoch."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    """One database for hundreds of sweeps, in memory if the system has a folder there."""
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder,
        open_store(f"sqlite:///{folder}/trials.db", create=True) as store,
    ):
        yield store


def two_studies(sweep: str, num_trials: int = 8) -> list[StudyRow]:
    return [
        study("a-rte", sweep, position=0, num_trials=num_trials, seeds=[0, 1]),
        study(
            "b-rte",
            sweep,
            position=1,
            num_trials=num_trials,
            seeds=[0],
            maximize=False,
            eta=2,
        ),
    ]


class Drive:
    """Three virtual workers on a sweep; its core is thrown away now and then."""

    def __init__(self, store: Store, sweep: str, seed: int, *, kills: bool) -> None:
        self.store, self.sweep, self.kills = store, sweep, kills
        self.random = random.Random(seed)
        self.studies = {row.id: row for row in two_studies(sweep)}
        enter(store, *self.studies.values())
        self.busy: list[tuple[Claim, list[EvalPoint]]] = []
        self.gone: list[Claim] = []
        self.interrupted = 0
        self.num_kills = 0
        self.core = Core(store, sweep)

    def run(self) -> None:
        while self.core.work_left or self.busy:
            if self.random.random() < 0.04:
                check_counters(self.core)
            if self.kills:
                self.trouble()
            if self.core.work_left and len(self.busy) < WORKERS and self.random.random() < 0.5:
                claimed = claim(self.core)
                study_id, _, k = claimed.trial_id.rpartition("/")
                self.busy.append((claimed, evaluations(self.studies[study_id], int(k))))
            elif self.busy:
                self.step(self.random.randrange(len(self.busy)))
        check_counters(self.core)

    def step(self, worker: int) -> None:
        claimed, points = self.busy[worker]
        name, k = claimed.trial_id.split("/")[1:]
        if (name, int(k), points[0].epoch) == USER_ERROR:
            self.core.failed(claimed.trial_id, claimed.attempt, "ValueError", Outcome.FAILED)
            stop = True
        else:
            stop = report(self.core, claimed, points[0])
            assert stop or len(points) > 1, "a trial must not run out of evaluations"
        del points[0]
        if stop:
            self.gone.append(claimed)
            del self.busy[worker]

    def trouble(self) -> None:
        dice = self.random.random()
        if dice < 0.03:  # kill -9
            self.interrupted += len(self.busy)
            self.num_kills += 1
            self.gone += [claimed for claimed, _ in self.busy]
            self.busy.clear()
            self.core = Core(self.store, self.sweep)
        elif dice < 0.05 and self.busy:  # a worker gives up, as in a drain
            claimed, _ = self.busy.pop(self.random.randrange(len(self.busy)))
            self.core.requeue(claimed.trial_id, claimed.attempt)
            self.interrupted += 1
            self.gone.append(claimed)
        elif dice < 0.08 and self.gone:  # a late report of an attempt that is over
            claimed = self.random.choice(self.gone)
            assert report(self.core, claimed, point(self.random.randint(1, EPOCHS), 0.99))
        elif dice < 0.11 and self.busy:  # a report that arrives again
            claimed, points = self.random.choice(self.busy)
            if points[0].epoch > 1:
                study_id, _, k = claimed.trial_id.rpartition("/")
                past = evaluations(self.studies[study_id], int(k))[points[0].epoch - 2]
                assert not report(self.core, claimed, past)


def check_rows(store: Store, row: StudyRow) -> None:
    """Trials, runs and reports of a finished study are those of its made-up evaluations."""
    with store.read() as reader:
        trials = reader.trials(row.id)
        reports = Counter((r.trial_id, r.seed, r.epoch) for r in reader.study_reports(row.id))
        runs = {t.id: reader.runs(t.id) for t in trials}
    assert [t.k for t in trials] == list(range(row.num_trials))
    expected = Counter()
    for t in trials:
        points = evaluations(row, t.k)[: t.epochs]
        expected.update((t.id, run.seed, p.epoch) for p in points for run in p.runs)
        if t.outcome == Outcome.FAILED:
            assert (t.study_id.split("/")[1], t.k, t.epochs + 1) == USER_ERROR
        elif t.outcome != Outcome.STOPPED:
            assert t.outcome == natural_end(row, t.k)
            assert t.epochs == len(evaluations(row, t.k))
        assert t.score == (score_after(row, t.k, t.epochs) if t.epochs else None)
        scores = [run.score for run in runs[t.id] if run.score is not None]
        assert t.score == (statistics.median(scores) if scores else None)
        assert all(run.outcome.final for run in runs[t.id])
    assert reports == expected


def check_decisions(store: Store, row: StudyRow) -> None:
    """Decisions are ASHA's own in their order, one for each trial at each rung it trained past."""
    sign = 1 if row.maximize else -1
    assert row.eta is not None
    ladder = Asha(rungs(1, row.eta, row.max_epochs), row.eta)
    with store.read() as reader:
        trials = {t.id: t for t in reader.trials(row.id)}
    made = decisions(store, row.id)
    for d in made:
        k = trials[d.trial_id].k
        assert d.value == score_after(row, k, d.rung)
        key = tie_key(sign * d.value, d.loss)
        again = ladder.judge(k, d.rung, key)
        assert again is not None
        threshold = None if again.threshold is None else sign * again.threshold
        assert (again.stop, threshold, again.count) == (d.stop, d.threshold, d.count)
        ladder.record(k, again, key)
        ended_there = trials[d.trial_id].epochs == d.rung
        assert d.stop == (ended_there and trials[d.trial_id].outcome == Outcome.STOPPED)
    expected = {
        (t.id, rung)
        for t in trials.values()
        for rung in ladder.budgets
        if rung < t.epochs or (rung == t.epochs and not evaluations(row, t.k)[rung - 1].last)
    }
    assert Counter((d.trial_id, d.rung) for d in made) == Counter(expected)


@pytest.mark.parametrize("seed", range(200))
def test_a_driver_killed_at_any_point_loses_nothing_and_counts_nothing_twice(
    shared: Store, seed: int
) -> None:
    drive = Drive(shared, f"killed-{seed}", seed, kills=True)
    drive.run()
    with shared.read() as reader:
        trials = reader.sweep_trials(drive.sweep)
        told = Counter(row.kind for row in reader.outbox(drive.sweep, 10_000))
    assert all(t.outcome.final for t in trials)
    started = sum(t.attempts for t in trials)
    assert started == told["trial_started"] == len(trials) + drive.interrupted
    assert told["trial_finished"] == len(trials)
    assert told["study_finished"] == 2
    assert sum(t.device_seconds for t in trials) >= sum(t.epochs for t in trials)
    for row in drive.studies.values():
        check_rows(shared, row)
        check_decisions(shared, row)


def test_without_trouble_every_trial_is_started_once(shared: Store) -> None:
    drive = Drive(shared, "calm", 0, kills=False)
    drive.run()
    with shared.read() as reader:
        trials = reader.sweep_trials(drive.sweep)
    assert [t.attempts for t in trials] == [1] * 16
    assert all(t.device_seconds == t.epochs for t in trials if t.outcome != Outcome.FAILED)
    for row in drive.studies.values():
        check_rows(shared, row)
        check_decisions(shared, row)


def test_a_core_that_is_rebuilt_between_all_calls_decides_as_one_that_lives_on(
    shared: Store,
) -> None:
    ended = []
    for sweep, rebuild in (("lives", False), ("rebuilt", True)):
        enter(shared, *two_studies(sweep))
        core = Core(shared, sweep)
        while core.work_left:
            claimed = claim(core)
            row = core.studies[claimed.trial_id.split("/")[1] == "b-rte"].row
            points = evaluations(row, int(claimed.trial_id.rpartition("/")[2]))
            for number in range(len(points)):
                if rebuild:
                    core = Core(shared, sweep)
                    assert core.work_left
                    again = claim(core)
                    assert again.trial_id == claimed.trial_id  # what was begun goes first
                    for past in points[:number]:
                        assert not report(core, again, past)
                    claimed = again
                if report(core, claimed, points[number]):
                    break
        with shared.read() as reader:
            ended.append([(t.k, t.outcome, t.score, t.epochs) for t in reader.sweep_trials(sweep)])
    assert ended[0] == ended[1]


def test_a_driver_process_killed_by_the_system_loses_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'trials.db'}"
    rows = two_studies("killed", num_trials=60)
    with open_store(url, create=True) as store:
        enter(store, *rows)
    command = [sys.executable, str(Path(__file__).with_name("killable_driver.py")), url, "killed"]
    for num_reports in ("40", "77", "101"):
        assert subprocess.run([*command, num_reports], check=False).returncode == -signal.SIGKILL
    subprocess.run(command, check=True)
    with open_store(url, create=False) as store:
        with store.read() as reader:
            trials = reader.sweep_trials("killed")
        assert 0 <= sum(t.attempts for t in trials) - len(trials) <= 3 * WORKERS
        for row in rows:
            check_rows(store, row)
            check_decisions(store, row)


@contextmanager
def failing(file: Path, statement: str) -> Iterator[None]:
    """The database refuses every such statement, in its own words."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            f"CREATE TRIGGER broken BEFORE {statement} "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        yield
        connection.execute("DROP TRIGGER broken")


STATEMENTS = [
    "INSERT ON report",
    "INSERT ON decision",
    "UPDATE ON trial",
    "UPDATE ON run",
    "INSERT ON outbox",
]


def memory(core: Core) -> object:
    """All that a core knows, but for its clock and store."""
    studies = [
        (
            list(state.waiting),
            {o: n for o, n in state.outcomes.items() if n},
            state.best,
            None if state.asha is None else state.asha.sizes(),
        )
        for state in core.studies
    ]
    return studies, dict(core.live), core.device_seconds, core.num_failures


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_report_that_cannot_be_written_leaves_rows_and_memory_as_they_were(
    database: Store, tmp_path: Path, statement: str
) -> None:
    enter(database, study(seeds=[0, 1], num_trials=3))
    core = Core(database, "small")
    good, claimed = claim(core), claim(core)
    assert not report(core, good, point(1, 0.6, 0.6, loss=0.9))
    rows, known = everything(database, "small"), memory(core)
    with failing(tmp_path / "trials.db", statement), pytest.raises(StoreError, match="is full"):
        report(core, claimed, point(1, 0.7, 0.9, loss=0.1))
    assert everything(database, "small") == rows
    assert memory(core) == known
    # the same core goes on, and so does a new one
    assert not report(core, claimed, point(1, 0.7, 0.7))
    check_counters(core)
    assert trial(database, claimed.trial_id).device_seconds == 2.0
    assert trial(database, claimed.trial_id).score == 0.7
    again = Core(database, "small")
    check_counters(again)
    assert claim(again).attempt == 2


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_end_that_cannot_be_written_is_written_by_the_next_attempt(
    database: Store, tmp_path: Path, statement: str
) -> None:
    enter(database, study(num_trials=2))
    ended: list[Outcome] = []
    core = Core(database, "small", on_end=lambda live, outcome: ended.append(outcome))
    good, bad = claim(core), claim(core)
    report(core, good, point(1, 0.6))
    with failing(tmp_path / "trials.db", statement), pytest.raises(StoreError, match="is full"):
        report(core, bad, point(1, 0.1))
    assert ended == []
    core = Core(database, "small")
    assert report(core, bad, point(1, 0.1)), "its attempt is over"
    again = claim(core)
    assert not report(core, again, point(1, 0.6))
    second = claim(core)
    assert report(core, second, point(1, 0.1))
    made = [(d.trial_id[-1], d.stop) for d in decisions(database, "small/aot_fc-rte")]
    assert made == [("0", False), ("1", True)]
    check_counters(core)


@pytest.mark.parametrize("statement", ["UPDATE ON trial", "INSERT ON outbox"])
@pytest.mark.parametrize("searcher", ["random", "tpe"])
def test_a_claim_that_cannot_be_written_is_none(
    database: Store, tmp_path: Path, statement: str, searcher: str
) -> None:
    enter(database, study(num_trials=2, searcher=searcher))
    core = Core(database, "small")
    rows, known = everything(database, "small"), memory(core)
    with failing(tmp_path / "trials.db", statement), pytest.raises(StoreError, match="is full"):
        core.claim()
    assert everything(database, "small") == rows
    assert memory(core) == known
    assert claim(core).attempt == 1


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.FAILED])
def test_a_failure_that_cannot_be_written_may_be_told_again(
    database: Store, tmp_path: Path, outcome: Outcome
) -> None:
    enter(database, study(num_trials=2))
    core = Core(database, "small")
    claimed = claim(core)
    known = memory(core)
    with failing(tmp_path / "trials.db", "UPDATE ON trial"):
        for _ in range(5):
            with pytest.raises(StoreError, match="is full"):
                core.failed(claimed.trial_id, claimed.attempt, "died", outcome)
        with pytest.raises(StoreError, match="is full"):
            core.requeue_all()
    assert memory(core) == known
    core.failed(claimed.trial_id, claimed.attempt, "died", outcome)
    expected = Outcome.PENDING if outcome == Outcome.LOST else outcome
    assert trial(database, claimed.trial_id).outcome == expected
    check_counters(core)
