"""Tells MLflow what a group of messages says."""

from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException

from orchestrator.store.database import Store
from orchestrator.store.rows import OutboxRow, StudyRow
from orchestrator.tracking import names
from orchestrator.tracking.descriptions import describe_study, describe_sweep, describe_trial
from orchestrator.tracking.errors import BadMessage
from orchestrator.tracking.pages import Group, Page
from orchestrator.tracking.runs import OpenRun, Runs
from orchestrator.tracking.study_updates import finished_study
from orchestrator.tracking.trial_updates import status_of, trial_update
from orchestrator.tracking.updates import Status, Update, milliseconds

_PICTURE_ATTEMPTS = 3


class Mirror:
    """The runs of one sweep as its messages and rows say they should be."""

    def __init__(self, store: Store, runs: Runs) -> None:
        self._store, self._runs = store, runs
        self._picture_failures = 0

    def apply(self, page: Page, group: Group) -> None:
        """Tell MLflow a group.

        Raises:
            BadMessage: a message is not as it should be.
            MlflowException: MLflow refuses it or cannot be reached.
        """
        if group.level == "trial":
            self._tell_trial(page, group)
            return
        for message in group.messages:
            at = milliseconds(message.created_at)
            if message.kind == "study_finished":
                self._finish_study(page, group.target, at)
            elif message.kind == "sweep_started":
                self._start_sweep(page, at)
            elif message.kind == "sweep_ended":
                self._end_sweep(page, message, at)
            else:
                raise BadMessage(f"no message '{message.kind}' is known")

    def _tell_trial(self, page: Page, group: Group) -> None:
        trial = page.trials.get(group.target)
        if trial is None:
            raise BadMessage(f"there is no trial {group.target}")
        update = trial_update(group.messages, trial)
        run_id = trial.tracking_run or self._runs.id_of(trial.id)
        if run_id is None:
            study, at = page.studies[trial.study_id], milliseconds(group.messages[0].created_at)
            parent = self._study_run(page, study, at)
            run_id = self._runs.add(describe_trial(page.sweep, study, trial), parent, at)
        self._runs.tell(run_id, update)

    def _finish_study(self, page: Page, study_id: str, at: int) -> None:
        study = page.studies.get(study_id)
        if study is None:
            raise BadMessage(f"there is no study {study_id}")
        with self._store.read() as reader:
            trials = reader.trials(study_id)
        self._runs.tell(self._study_run(page, study, at), finished_study(study, trials, at))

    def _start_sweep(self, page: Page, at: int) -> None:
        """Open the runs of what goes on; what a driver that died left open is not running."""
        sweep_run = self._sweep_run(page, at)
        state = names.tags({"state": "running"})
        self._runs.tell(sweep_run, Update(tags=state, status="RUNNING", at=at))
        for left in self._runs.running():
            if left.level == "trial":
                self._runs.set_status(left.run_id, "KILLED", at)
        with self._store.read() as reader:
            counts = reader.outcome_counts(page.sweep.id)
        for study in page.studies.values():
            run_id = study.tracking_run or self._runs.id_of(study.id)
            if run_id and not all(outcome.final for outcome in counts[study.id]):
                tags = names.tags({"outcome": "running", "num_trials": study.num_trials})
                self._runs.tell(run_id, Update(tags=tags, status="RUNNING", at=at))

    def _end_sweep(self, page: Page, message: OutboxRow, at: int) -> None:
        """Leave no run of the sweep running, then keep its pictures."""
        state = str(message.payload.get("state"))
        sweep_run = self._sweep_run(page, at)
        self._close_runs(page, at)
        status: Status = "FINISHED" if state == "finished" else "KILLED"
        update = Update(tags=names.tags({"state": state}), status=status, at=at)
        self._runs.tell(sweep_run, update)
        self._add_pictures(sweep_run, message.payload.get("pictures") or [])

    def _close_runs(self, page: Page, at: int) -> None:
        still_open = [run for run in self._runs.running() if run.level != "sweep"]
        if not still_open:
            return
        with self._store.read() as reader:
            trials = {trial.id: trial for trial in reader.sweep_trials(page.sweep.id)}
            counts = reader.outcome_counts(page.sweep.id)

        def end(run: OpenRun) -> tuple[str, Status]:
            if run.level == "study":
                ended = all(outcome.final for outcome in counts.get(run.id, {}))
                return ("finished", "FINISHED") if ended else ("pending", "KILLED")
            trial = trials.get(run.id)
            if trial is None or not trial.outcome.final:
                return "pending", "KILLED"
            return trial.outcome.value, status_of(trial.outcome)

        for run in still_open:
            outcome, status = end(run)
            tags = names.tags({"outcome": outcome})
            self._runs.tell(run.run_id, Update(tags=tags, status=status, at=at))

    def _add_pictures(self, run_id: str, pictures: list[Any]) -> None:
        """Keep the files that are there. MLflow answered just now: what fails is its file store."""
        try:
            for path in map(Path, pictures):
                if path.is_file():
                    self._runs.add_picture(run_id, path)
        except (MlflowException, OSError, ImportError) as error:
            self._picture_failures += 1
            if self._picture_failures < _PICTURE_ATTEMPTS:
                raise
            raise BadMessage(f"the pictures could not be kept: {error}") from error

    def _study_run(self, page: Page, study: StudyRow, at: int) -> str:
        known = study.tracking_run or self._runs.id_of(study.id)
        if known is not None:
            return known
        parent = self._sweep_run(page, at)
        return self._runs.add(describe_study(page.sweep, study), parent, at)

    def _sweep_run(self, page: Page, at: int) -> str:
        known = page.sweep.tracking_run or self._runs.id_of(page.sweep.id)
        studies = list(page.studies.values())
        return known or self._runs.add(describe_sweep(page.sweep, studies), None, at)
