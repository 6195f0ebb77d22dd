"""What Tune asks while it executes: which trial next, and what a result means.

Every answer comes from the core. An error in a hook would end the experiment without a word, so
it is kept for the driver and the experiment is told to end.
"""

from typing import Any

from ray.exceptions import RayActorError, RayTaskError
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search.search_algorithm import SearchAlgorithm

from orchestrator.cluster.tune_memory import can_drop, drop
from orchestrator.core import Core
from orchestrator.outcome import Outcome
from trials.spec import EvalPoint

DROP_AT = 64
"""Finished trials are let go of in groups of this size."""


class Unpicklable:
    """Keeps Tune from copying or pickling what holds the database."""

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return (object, ())


class Session(Unpicklable):
    """What the hooks share: the core, which trials are out, and whether to wind down."""

    def __init__(self, core: Core, num_workers: int, worker_config: dict[str, Any]) -> None:
        self.core, self.num_workers, self.worker_config = core, num_workers, worker_config
        self.draining = False
        """No trial is handed out any more; those that run give up at their next step."""
        self.error: BaseException | None = None
        """An error of ours in a hook."""
        self.out: dict[str, tuple[str, int]] = {}
        """Tune's trial id -> trial and attempt of ours."""

    def fail(self, error: BaseException) -> None:
        """Keep an error of ours and wind down."""
        self.error = self.error or error
        self.draining = True


class OurTrial(Trial):
    """A Tune trial that keeps the exception that ended it, which the hooks are not given."""

    def handle_error(self, exc: Any = None) -> None:
        """Called by Tune when the trial's actor died or its step raised."""
        self.ended_by = exc
        super().handle_error(exc)


class Source(Unpicklable, SearchAlgorithm):
    """Hands out as many trials as there are workers: a spare one would starve behind newer ones."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fixed: dict[str, Any] = {}
        self._resources: Any = None

    def set_search_properties(self, *args: object, **kwargs: object) -> bool:
        """Nothing to set: the core has it all."""
        return True

    def add_configurations(self, experiments: Any) -> None:
        """Take from Tune what every trial of the experiment has in common."""
        experiment = experiments[0] if isinstance(experiments, list) else experiments
        spec = experiment.spec
        self._fixed = {
            "trainable_name": spec["run"],
            "storage": spec["storage"],
            "checkpoint_config": spec["checkpoint_config"],
            "max_failures": 0,  # the core alone retries
            "placement_group_factory": spec.get("resources_per_trial"),
        }

    def next_trial(self) -> Trial | None:
        """The next trial if a worker is free for it."""
        session = self._session
        if session.draining or len(session.out) >= session.num_workers:
            return None
        try:
            claim = session.core.claim()
        except Exception as error:  # noqa: BLE001 - kept for the driver, which raises it
            session.fail(error)
            return None
        if claim is None:
            return None
        trial = OurTrial(
            config={**session.worker_config, "spec": claim.spec.to_json()},
            trial_id=f"{claim.trial_id.replace('/', '_')}-{claim.attempt}",
            **self._fixed,
        )
        _share_folder(trial)
        session.out[trial.trial_id] = (claim.trial_id, claim.attempt)
        return trial

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """A worker is free again."""
        self._session.out.pop(trial_id, None)

    def is_finished(self) -> bool:
        """Whether nothing runs and nothing will."""
        session = self._session
        return not session.out and (session.draining or not session.core.work_left)


def _share_folder(trial: Any) -> None:
    """One folder for all trials; Tune would make one for each."""
    trial.relative_logdir = trial.storage.trial_dir_name = "trials"


class Judge(Unpicklable, TrialScheduler):
    """Enters every result with the core and passes its decision on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._finished: list[Trial] = []
        self._drops: bool | None = None

    def on_trial_add(self, controller: Any, trial: Trial) -> None:
        """Nothing to note: the core has claimed it."""

    def on_trial_result(self, controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Enter a result; whether its trial goes on."""
        session = self._session
        ours = session.out.get(trial.trial_id)
        if ours is None:
            return str(self.STOP)
        try:
            stop = self._enter(*ours, result)
        except Exception as error:  # noqa: BLE001 - kept for the driver, which raises it
            session.fail(error)
            return str(self.STOP)
        return str(self.STOP if stop else self.CONTINUE)

    def _enter(self, trial_id: str, attempt: int, result: dict[str, Any]) -> bool:
        session = self._session
        worker = result["worker"]
        if result["kind"] == "point":
            point = EvalPoint.from_json(result["point"])
            stop = session.core.report(trial_id, attempt, point, worker)
            if session.draining and not stop:
                session.core.requeue(trial_id, attempt)
                return True
            return stop
        if result["kind"] == "interrupted":
            session.core.requeue(trial_id, attempt)
        else:
            outcome = Outcome(result["outcome"])
            session.core.failed(trial_id, attempt, result["error"], outcome, worker)
        return True

    def on_trial_error(self, controller: Any, trial: Trial) -> None:
        """A worker died, or could not report: requeue its trial, or end it."""
        self._note(controller, trial)
        ours = self._session.out.get(trial.trial_id)
        if ours is None:
            return
        error = getattr(trial, "ended_by", None)
        outcome = Outcome.LOST if _is_infrastructure(error) else Outcome.FAILED
        try:
            self._session.core.failed(*ours, f"{type(error).__name__}: {error}", outcome)
        except Exception as failure:  # noqa: BLE001 - kept for the driver, which raises it
            self._session.fail(failure)

    def on_trial_complete(self, controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """A trial was stopped as we asked."""
        self._note(controller, trial)

    def on_trial_remove(self, controller: Any, trial: Trial) -> None:
        """A trial was stopped before it reported."""
        self._note(controller, trial)

    def choose_trial_to_run(self, controller: Any) -> None:
        """Called once a loop; Tune starts pending trials by itself, so this only tidies up."""
        if self._drops is None:
            self._drops = can_drop(controller)
        if self._drops and len(self._finished) >= DROP_AT:
            self._finished = drop(controller, self._finished)
        if self._session.draining:
            for trial in list(controller.get_live_trials()):
                if trial.status == Trial.PENDING:
                    self._give_back(controller, trial)

    def _give_back(self, controller: Any, trial: Trial) -> None:
        if ours := self._session.out.get(trial.trial_id):
            self._session.core.requeue(*ours)
        controller.stop_trial(trial)

    def _note(self, controller: Any, trial: Trial) -> None:
        self._finished.append(trial)

    def debug_string(self) -> str:
        """Nothing: the sweep's own display says more."""
        return ""


def _is_infrastructure(error: object) -> bool:
    if isinstance(error, RayTaskError):
        cause: Any = error
        error = cause.as_instanceof_cause()
    return isinstance(error, RayActorError)
