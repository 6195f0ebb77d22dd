"""A trial while a worker holds it: what its reports so far add up to."""

import dataclasses
import statistics
from dataclasses import dataclass

from orchestrator.asha import Decision, Key, tie_key
from orchestrator.outcome import Outcome
from orchestrator.store.rows import ReportRow, RunRow, StudyRow, TrialRow
from trials.spec import EvalPoint


@dataclass(frozen=True, kw_only=True)
class Live:
    """One attempt at a trial, which begins with what earlier attempts have reported."""

    study: StudyRow
    trial_id: str
    k: int
    attempt: int
    epoch: int
    """Epochs that are reported, by whichever attempt."""
    arrived: int = 0
    """Epochs that this attempt has reported."""
    device_seconds: float
    """Spent on the trial so far, earlier attempts included."""
    best: dict[int, tuple[float, int]]
    """Best value so far and its epoch, by seed."""
    losses: dict[int, float | None]
    """Validation loss of the last evaluation, by seed."""
    states: dict[int, Outcome]
    """Where each run that has reported stands."""

    @classmethod
    def of(
        cls, study: StudyRow, row: TrialRow, runs: list[RunRow], reports: list[ReportRow]
    ) -> "Live":
        """The next attempt at a trial, given its runs and its reports in order of epochs."""
        return cls(
            study=study,
            trial_id=row.id,
            k=row.k,
            attempt=row.attempts + 1,
            epoch=row.epochs,
            device_seconds=row.device_seconds,
            best={
                run.seed: (run.score, run.best_epoch)
                for run in runs
                if run.score is not None and run.best_epoch is not None
            },
            losses={report.seed: report.loss for report in reports},
            states={run.seed: run.outcome for run in runs},
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

    def after(self, point: EvalPoint, devices: float) -> "Live":
        """The trial once `point` is entered.

        An epoch that an earlier attempt has reported costs its time again; nothing else of it
        counts but runs that end.
        """
        new = point.epoch > self.epoch
        better = {
            run.seed: (run.value, point.epoch)
            for run in point.runs
            if run.seed not in self.best or self._better(run.value, self.best[run.seed][0])
        }
        losses = {run.seed: run.loss for run in point.runs}
        states = {run.seed: Outcome(run.state) for run in point.runs}
        ended = {seed: state for seed, state in states.items() if state.final}
        return dataclasses.replace(
            self,
            epoch=max(self.epoch, point.epoch),
            arrived=point.epoch,
            device_seconds=self.device_seconds + point.seconds * devices,
            best=self.best | (better if new else {}),
            losses=self.losses | (losses if new else {}),
            states=self.states | (states if new else ended),
        )

    def rows(self, point: EvalPoint, now: float) -> list[ReportRow]:
        """The rows that stand for an evaluation; none for an epoch that is reported already."""
        return [
            ReportRow(
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
            for run in point.runs
            if point.epoch > self.epoch
        ]

    def outcome(self, point: EvalPoint, decision: Decision | None) -> Outcome | None:
        """How the trial ends with this point, if it does."""
        if point.last:
            states = set(self.states.values())
            if states == {Outcome.DIVERGED}:
                return Outcome.DIVERGED
            trained_fully = Outcome.COMPLETED in states
            return Outcome.COMPLETED if trained_fully else Outcome.COMPLETED_BY_PATIENCE
        return Outcome.STOPPED if decision is not None and decision.stop else None

    def run_outcome(self, seed: int, trial_outcome: Outcome | None) -> Outcome:
        """How a run ends, or ended: by itself, else with its trial."""
        by_itself = self.states.get(seed, Outcome.PENDING)
        return by_itself if by_itself.final else trial_outcome or Outcome.RUNNING

    def _better(self, value: float, than: float) -> bool:
        return value > than if self.study.maximize else value < than
