"""Drives one sweep: a Ray Tune experiment over the core, until the work is done or asked to end."""

import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import ray
from ray import tune
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import RayActorError, RayTaskError
from ray.tune.execution.placement_groups import PlacementGroupFactory

from orchestrator.cluster.connect import Slot
from orchestrator.cluster.hooks import Judge, Session, Source, Unpicklable
from orchestrator.cluster.stop_flag import make_flag
from orchestrator.cluster.worker import TrialWorker
from orchestrator.core import Core

GRACE_SECONDS = 20.0
"""How long running steps may take to give up before they are cut off."""
MAX_RESTARTS = 3
"""How often the experiment is begun again after an error inside Tune."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """How driving a sweep ended."""

    reason: str
    """finished, interrupted, stopped or out_of_budget."""
    words: str


@dataclass
class Limits:
    """When to let go of a sweep before its work is done."""

    wall_seconds: float | None = None
    device_hours: float | None = None
    max_failures: int | None = None

    def reached(self, core: Core, started: float) -> str | None:
        """The limit that is reached, in words."""
        if self.wall_seconds is not None and time.monotonic() - started >= self.wall_seconds:
            return f"the time limit of {self.wall_seconds:g} s is reached"
        if self.device_hours is not None and core.device_seconds >= self.device_hours * 3600:
            return f"{self.device_hours:g} device hours are spent"
        if self.max_failures is not None and core.num_failures > self.max_failures:
            return f"more than {self.max_failures} trials failed"
        return None


class Watch(Unpicklable, tune.Stopper):
    """Decides when to wind down: signals, a request by `orchestrate stop`, limits."""

    def __init__(
        self, session: Session, flag: Any, limits: Limits, tick: Callable[[], None]
    ) -> None:
        self._session, self._flag, self._limits, self._tick = session, flag, limits, tick
        self._started = self._looked = time.monotonic()
        self._drained_at: float | None = None
        self.num_signals = 0
        self.ending: Ending | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """First signal: drain; second: cut off; third: leave at once."""
        self.num_signals += 1
        if self.num_signals >= 3:
            os._exit(130)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Tune's question whether to stop one trial: never, the scheduler answers that."""
        return False

    def stop_all(self) -> bool:
        """Tune's question, many times a second: whether to cut everything off."""
        self._tick()
        if self._drained_at is None:
            self._look()
            if self.ending is not None or self._session.error is not None:
                self._drain()
            return False
        late = time.monotonic() - self._drained_at > GRACE_SECONDS
        return self.num_signals >= 2 or late

    def _look(self) -> None:
        if self.num_signals:
            self.ending = Ending("interrupted", "interrupted")
        now = time.monotonic()
        if now - self._looked < 1.0:
            return
        self._looked = now
        core = self._session.core
        with core.store.read() as reader:
            asked = reader.stop_requested(core.sweep_id)
        if asked:
            self.ending = self.ending or Ending("stopped", "stopped on request")
        elif words := self._limits.reached(core, self._started):
            self.ending = self.ending or Ending("out_of_budget", words)

    def _drain(self) -> None:
        self._drained_at = time.monotonic()
        self._session.draining = True
        self._flag.set.remote()


def drive(
    core: Core,
    slot: Slot,
    num_workers: int,
    worker_config: dict[str, Any],
    limits: Limits,
    tick: Callable[[], None] = lambda: None,
) -> Ending:
    """Run the sweep's trials on the connected cluster; `tick` is called many times a second.

    Raises:
        Exception: an error of ours in a hook; every trial that was out waits again.
    """
    _tolerate_memory_monitor()
    flag = make_flag(f"stop-{core.sweep_id}-{os.getpid()}")
    config = {**worker_config, "stop_flag": flag, "threads": slot.cpus}
    session = Session(core, num_workers, config)
    watch = Watch(session, flag, limits, tick)
    previous = {s: signal.signal(s, watch.on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        _run_until_done(session, watch, slot)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if session.error is None:
            core.requeue_all()  # a forced stop calls no hook
        ray.kill(flag)
    if session.error is not None:
        raise session.error
    return watch.ending or Ending("finished", "finished")


def _run_until_done(session: Session, watch: Watch, slot: Slot) -> None:
    """Run the experiment, again if Tune itself failed: the database says what is left."""
    for restart in range(MAX_RESTARTS + 1):
        try:
            _run(session, watch, slot)
        except Exception:
            if session.error is not None or restart == MAX_RESTARTS:
                raise
            log.exception("Ray Tune failed; starting the experiment again")
            session.out.clear()
            session.core.requeue_all()
        else:
            return


def _run(session: Session, watch: Watch, slot: Slot) -> None:
    with tempfile.TemporaryDirectory(prefix="orchestrate-tune-") as scratch:
        tune.run(
            TrialWorker,
            name="sweep",
            search_alg=Source(session),
            scheduler=Judge(session),
            stop=watch,
            resources_per_trial=PlacementGroupFactory([slot.bundle]),
            reuse_actors=True,
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            raise_on_failed_trial=False,
            verbose=0,
            storage_path=scratch,
        )


def _tolerate_memory_monitor() -> None:
    """Let Ray's memory monitor kill a worker without ending the experiment.

    It raises an error that Tune 2.60 does not expect from an actor and dies of.
    """
    manager: Any = RayActorManager
    original = manager._actor_task_failed
    if original.__name__ == "tolerant":
        return

    def tolerant(self: Any, tracked_actor_task: Any, exception: Exception) -> Any:
        if not isinstance(exception, RayActorError | RayTaskError):
            words = f"{type(exception).__name__}: {exception}"
            exception = RayActorError(error_msg=words)
        return original(self, tracked_actor_task=tracked_actor_task, exception=exception)

    manager._actor_task_failed = tolerant
