"""A study while it is driven: what waits, what has ended, its rungs; all of it from rows."""

from collections import Counter, deque
from dataclasses import dataclass

from orchestrator.asha import Asha, Decision, rungs, tie_key
from orchestrator.live import Live
from orchestrator.outcome import Outcome
from orchestrator.store.reading import Reader
from orchestrator.store.rows import DecisionRow, StudyRow
from orchestrator.store.writing import Transaction


@dataclass
class StudyState:
    """A study while it is driven."""

    row: StudyRow
    waiting: deque[int]
    """Numbers of the trials that nobody has claimed."""
    asha: Asha | None
    outcomes: Counter[Outcome]
    """How many trials are in each state."""
    best: float | None = None
    """The best score of any trial so far."""

    @property
    def unfinished(self) -> int:
        """Trials that have no final outcome yet."""
        return self.outcomes[Outcome.PENDING] + self.outcomes[Outcome.RUNNING]

    @property
    def share_claimed(self) -> float:
        """How far it is."""
        return 1 - len(self.waiting) / self.row.num_trials

    def move(self, before: Outcome, after: Outcome) -> None:
        """Count a trial under another state."""
        self.outcomes[before] -= 1
        self.outcomes[after] += 1

    def note(self, score: float) -> None:
        """Take a trial's score into the best one."""
        better = max if self.row.maximize else min
        self.best = score if self.best is None else better(self.best, score)


def take_up(tx: Transaction, row: StudyRow) -> StudyState:
    """A study as its rows say it stands; what an earlier driver left running waits again."""
    study = StudyState(row, deque(), _rebuild_rungs(tx, row), Counter())
    trials = tx.trials(row.id)
    for trial in trials:
        outcome = trial.outcome
        if outcome == Outcome.RUNNING:
            outcome = Outcome.PENDING
            tx.update_trial(trial.id, outcome=outcome)
        study.outcomes[outcome] += 1
        if trial.score is not None:
            study.note(trial.score)
    # those that were begun go first: part of them is paid for
    waiting = (trial for trial in trials if not trial.outcome.final)
    study.waiting.extend(t.k for t in sorted(waiting, key=lambda t: (not t.attempts, t.k)))
    return study


def _rebuild_rungs(reader: Reader, row: StudyRow) -> Asha | None:
    if row.scheduler != "asha":
        return None
    assert row.grace is not None
    assert row.eta is not None
    asha = Asha(rungs(row.grace, row.eta, row.max_epochs), row.eta)
    sign = 1 if row.maximize else -1
    for made in reader.decisions(row.id):
        threshold = None if made.threshold is None else sign * made.threshold
        decision = Decision(made.rung, made.stop, threshold, made.count)
        k = int(made.trial_id.rpartition("/")[2])
        asha.record(k, decision, tie_key(sign * made.value, made.loss))
    return asha


def decision_row(live: Live, decision: Decision, now: float) -> DecisionRow:
    """A decision as it is kept, in the metric's own direction."""
    sign = 1 if live.study.maximize else -1
    loss = -live.key[1]
    return DecisionRow(
        trial_id=live.trial_id,
        study_id=live.study.id,
        rung=decision.rung,
        value=live.score,
        loss=None if loss == float("inf") else loss,
        threshold=None if decision.threshold is None else sign * decision.threshold,
        count=decision.count,
        stop=decision.stop,
        created_at=now,
    )
