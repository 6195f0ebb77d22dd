"""A trial while a worker holds it: what its reports so far add up to."""

import statistics
from dataclasses import dataclass, field

from orchestrator.asha import Decision, Key, tie_key
from orchestrator.outcome import Outcome
from orchestrator.store.rows import ReportRow, StudyRow, TrialRow
from trials.spec import EvalPoint, RunPoint, RunState

RUN_OUTCOMES: dict[RunState, Outcome] = {
    "completed": Outcome.COMPLETED,
    "completed_by_patience": Outcome.COMPLETED_BY_PATIENCE,
    "diverged": Outcome.DIVERGED,
}


@dataclass
class Live:
    """One attempt at a trial."""

    study: StudyRow
    trial_id: str
    k: int
    attempt: int
    stored: dict[tuple[int, int], ReportRow]
    """Reports of earlier attempts by (epoch, seed): the first one written is what counts."""
    reached: int
    """Epochs that an earlier attempt reached."""
    device_seconds: float
    """Spent on the trial so far, earlier attempts included."""
    best: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Best value so far and its epoch, by seed."""
    losses: dict[int, float | None] = field(default_factory=dict)
    states: dict[int, RunState] = field(default_factory=dict)
    epoch: int = 0

    @classmethod
    def of(cls, study: StudyRow, row: TrialRow, reports: list[ReportRow]) -> "Live":
        """The next attempt at a trial."""
        return cls(
            study=study,
            trial_id=row.id,
            k=row.k,
            attempt=row.attempts + 1,
            stored={(report.epoch, report.seed): report for report in reports},
            reached=row.epochs,
            device_seconds=row.device_seconds,
        )

    @property
    def score(self) -> float:
        """Median over seeds of the best value so far."""
        return statistics.median(value for value, _ in self.best.values())

    @property
    def key(self) -> Key:
        """What the trial is ordered by at a rung; larger is better."""
        losses = [loss for loss in self.losses.values() if loss is not None]
        loss = statistics.median(losses) if losses else None
        return tie_key(self.score if self.study.maximize else -self.score, loss)

    def absorb(self, point: EvalPoint, devices: float, now: float) -> list[ReportRow]:
        """Take in one evaluation; the rows that stand for it."""
        rows = [self._row(point, run, now) for run in point.runs]
        for row, run in zip(rows, point.runs, strict=True):
            if row.seed not in self.best or self._better(row.value, self.best[row.seed][0]):
                self.best[row.seed] = (row.value, point.epoch)
            self.losses[row.seed] = row.loss
            self.states[row.seed] = run.state
        self.epoch = max(self.epoch, point.epoch)
        self.device_seconds += point.seconds * devices
        return rows

    def outcome(self, point: EvalPoint, decision: Decision | None) -> Outcome | None:
        """How the trial ends with this point, if it does."""
        if point.last:
            states = set(self.states.values())
            if states == {"diverged"}:
                return Outcome.DIVERGED
            return Outcome.COMPLETED if "completed" in states else Outcome.COMPLETED_BY_PATIENCE
        return Outcome.STOPPED if decision is not None and decision.stop else None

    def run_outcome(self, seed: int, trial_outcome: Outcome | None) -> Outcome:
        """How a run ends, or ended: by itself, else with its trial."""
        by_itself = RUN_OUTCOMES.get(self.states.get(seed, "running"))
        return by_itself or trial_outcome or Outcome.RUNNING

    def _better(self, value: float, than: float) -> bool:
        return value > than if self.study.maximize else value < than

    def _row(self, point: EvalPoint, run: RunPoint, now: float) -> ReportRow:
        known = self.stored.get((point.epoch, run.seed))
        return known or ReportRow(
            trial_id=self.trial_id,
            seed=run.seed,
            epoch=point.epoch,
            attempt=self.attempt,
            value=run.value,
            score=run.score,
            loss=run.loss,
            train_loss=run.train_loss,
            metrics=run.metrics,
            seconds=point.seconds / len(point.runs),
            created_at=now,
        )
