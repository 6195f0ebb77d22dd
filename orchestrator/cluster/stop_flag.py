"""A flag that the driver raises and workers on any node look at between two steps.

An actor in the middle of a step takes no calls, and nodes need not share a file system: so the
flag lives in an actor of its own, which a worker asks at most once a second.
"""

import time
from typing import Any

import ray

INTERVAL_SECONDS = 1.0


@ray.remote(num_cpus=0)
class _Flag:
    def __init__(self) -> None:
        self._raised = False

    def set(self) -> None:
        self._raised = True

    def is_set(self) -> bool:
        return self._raised


def make_flag(name: str) -> Any:
    """A flag that is down."""
    actor: Any = _Flag
    return actor.options(name=name, namespace="orchestrate").remote()


class StopFlag:
    """A worker's view of the flag. The question is asked ahead, so that a step never waits."""

    def __init__(self, flag: Any) -> None:
        self._flag = flag
        self._asked_at = time.monotonic()
        self._answer: Any = flag.is_set.remote()
        self._raised: bool = False

    def is_set(self) -> bool:
        """Whether the flag was up when last asked."""
        if self._raised or time.monotonic() - self._asked_at < INTERVAL_SECONDS:
            return self._raised
        ready, _ = ray.wait([self._answer], timeout=0)
        if ready:
            self._raised = self._read()
            self._answer = self._flag.is_set.remote()
            self._asked_at = time.monotonic()
        return self._raised

    def _read(self) -> bool:
        try:
            return bool(ray.get(self._answer))
        except ray.exceptions.RayActorError:
            return True  # the flag dies with its driver, and then nobody waits for the trial
