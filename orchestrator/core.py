"""Every decision of a sweep: which trial next, what a report means, what a failure means.

Knows no Ray. The database is the truth: each method is one transaction, memory follows once that
is committed, and a core built from the rows of an interrupted sweep goes on as if it had never
stopped.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator import messages
from orchestrator.live import Live
from orchestrator.outcome import Outcome
from orchestrator.plan_rows import assignment_hash, trial_spec
from orchestrator.searchers import suggest
from orchestrator.store.database import Store
from orchestrator.store.rows import StudyRow, TrialRow
from orchestrator.store.writing import Transaction
from orchestrator.study_state import decision_row, take_up
from searchspaces.space import Assignment, Space
from trials.spec import EvalPoint, TrialSpec

MAX_DEATHS = 3
"""A trial whose worker died so often under one driver is lost."""


@dataclass(frozen=True)
class Claim:
    """A trial handed to a worker. Whatever is said of it later must name the same attempt."""

    trial_id: str
    attempt: int
    spec: TrialSpec


class Core:
    """The decisions of one sweep, called from one thread."""

    def __init__(
        self,
        store: Store,
        sweep_id: str,
        *,
        devices_per_trial: float = 1.0,
        clock: Callable[[], float] = time.time,
        on_end: Callable[[Live, Outcome], None] = lambda live, outcome: None,
    ) -> None:
        """Take up a sweep: what an earlier driver left running waits again."""
        self.store, self.sweep_id = store, sweep_id
        self._devices, self._clock, self._on_end = devices_per_trial, clock, on_end
        self.live: dict[str, Live] = {}
        self._deaths: Counter[str] = Counter()
        with store.write() as tx:
            self.studies = [take_up(tx, row) for row in tx.studies(sweep_id)]
            self.device_seconds = tx.device_seconds(sweep_id)
        self.num_failures = sum(
            number
            for study in self.studies
            for outcome, number in study.outcomes.items()
            if outcome.failure
        )
        self._by_id = {study.row.id: study for study in self.studies}

    @property
    def work_left(self) -> bool:
        """Whether any trial waits to be claimed."""
        return any(study.waiting for study in self.studies)

    def claim(self) -> Claim | None:
        """The next trial, of the study that is least far; None if none waits."""
        waiting = [study for study in self.studies if study.waiting]
        if not waiting:
            return None
        study = min(waiting, key=lambda study: (study.share_claimed, study.row.position))
        now = self._clock()
        with self.store.write() as tx:
            row = tx.trial(f"{study.row.id}/{study.waiting[0]}")
            assert row is not None
            values = row.hyperparameters
            if values is None:
                values = _choose(tx, study.row, row)
            live = Live.of(study.row, row, tx.runs(row.id), tx.reports(row.id))
            tx.update_trial(row.id, outcome=Outcome.RUNNING, attempts=live.attempt, claimed_at=now)
            messages.trial_started(tx, self.sweep_id, live, values, now)
        study.waiting.popleft()
        study.move(Outcome.PENDING, Outcome.RUNNING)
        self.live[row.id] = live
        return Claim(row.id, live.attempt, trial_spec(study.row, row.id, values))

    def report(
        self, trial_id: str, attempt: int, point: EvalPoint, worker: str | None = None
    ) -> bool:
        """Enter one evaluation made by a worker; whether the trial is to stop now.

        A report of an attempt that is over is dropped, and so is one that arrives again.
        """
        before = self._current(trial_id, attempt)
        if before is None:
            return True
        if point.epoch <= before.arrived:
            return False
        study, now = self._by_id[before.study.id], self._clock()
        rows = before.rows(point, now)
        live = before.after(point, self._devices)
        decision = None
        if study.asha is not None and rows and not point.last:
            decision = study.asha.judge(live.k, point.epoch, live.key)
        outcome = live.outcome(point, decision)
        with self.store.write() as tx:
            tx.add_reports(rows)
            if decision is not None:
                tx.add_decision(decision_row(live, decision, now))
            self._update(tx, live, outcome, worker, now)
            if rows:
                messages.trial_reported(tx, self.sweep_id, live, rows, now)
            if outcome is not None:
                self._tell_end(tx, live, outcome, now)
        self.live[trial_id] = live
        self.device_seconds += point.seconds * self._devices
        study.note(live.score)
        if decision is not None and study.asha is not None:
            study.asha.record(live.k, decision, live.key)
        if outcome is not None:
            self._end(live, outcome)
        return outcome is not None

    def failed(
        self,
        trial_id: str,
        attempt: int,
        error: str,
        outcome: Outcome,
        worker: str | None = None,
    ) -> None:
        """Enter that a trial could not go on.

        Args:
            trial_id: the trial.
            attempt: the attempt that failed.
            error: what happened, for people.
            outcome: LOST for the infrastructure's fault, which gets further attempts; else final.
            worker: who had it, if known.
        """
        live = self._current(trial_id, attempt)
        if live is None:
            return
        if outcome == Outcome.LOST and self._deaths[trial_id] + 1 < MAX_DEATHS:
            self._wait_again(live, error)
            self._deaths[trial_id] += 1
            return
        now = self._clock()
        with self.store.write() as tx:
            tx.update_trial(trial_id, outcome=outcome, error=error, finished_at=now, worker=worker)
            for seed in live.study.seeds:
                tx.update_run(trial_id, seed, outcome=live.run_outcome(seed, outcome))
            self._tell_end(tx, live, outcome, now)
        self._end(live, outcome)

    def requeue(self, trial_id: str, attempt: int) -> None:
        """Enter that a trial was given back unfinished: it waits again."""
        live = self._current(trial_id, attempt)
        if live is not None:
            self._wait_again(live, None)

    def requeue_all(self) -> None:
        """Give back every trial that is claimed."""
        for live in list(self.live.values()):
            self._wait_again(live, None)

    def _current(self, trial_id: str, attempt: int) -> Live | None:
        live = self.live.get(trial_id)
        return live if live is not None and live.attempt == attempt else None

    def _update(
        self, tx: Transaction, live: Live, outcome: Outcome | None, worker: str | None, now: float
    ) -> None:
        columns: dict[str, object] = {
            "worker": worker,
            "device_seconds": live.device_seconds,
            "score": live.score,
            "epochs": live.epoch,
        }
        if outcome is not None:
            columns |= {"outcome": outcome, "finished_at": now, "error": None}
        tx.update_trial(live.trial_id, **columns)
        for seed, (value, epoch) in live.best.items():
            run_outcome = live.run_outcome(seed, outcome)
            tx.update_run(live.trial_id, seed, outcome=run_outcome, score=value, best_epoch=epoch)

    def _tell_end(self, tx: Transaction, live: Live, outcome: Outcome, now: float) -> None:
        messages.trial_finished(tx, self.sweep_id, live, outcome, now)
        if self._by_id[live.study.id].unfinished == 1:
            messages.study_finished(tx, self.sweep_id, live.study.id, now)

    def _wait_again(self, live: Live, error: str | None) -> None:
        with self.store.write() as tx:
            tx.update_trial(live.trial_id, outcome=Outcome.PENDING, error=error)
        del self.live[live.trial_id]
        study = self._by_id[live.study.id]
        study.waiting.appendleft(live.k)
        study.move(Outcome.RUNNING, Outcome.PENDING)

    def _end(self, live: Live, outcome: Outcome) -> None:
        self._by_id[live.study.id].move(Outcome.RUNNING, outcome)
        self.num_failures += outcome.failure
        del self.live[live.trial_id]
        self._on_end(live, outcome)


def _choose(tx: Transaction, study: StudyRow, row: TrialRow) -> Assignment:
    """Ask the searcher that learns from results for a trial's values, and keep them."""
    space = Space.from_description(study.space_definition)
    values, random = suggest(space, study.search_seed, row.k, study.maximize, tx.trials(study.id))
    tx.update_trial(
        row.id, hyperparameters=values, hash=assignment_hash(values), random_startup=random
    )
    return values
