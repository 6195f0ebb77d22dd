"""Keeping Ray Tune's memory flat: it holds every finished trial for ever, so they are dropped.

Touches private names of `TuneController` in Ray 2.60, which is why Ray is pinned; `can_drop`
looks for them first, and without them trials are kept (about 2.5 MiB per 100).
"""

from collections.abc import Iterable
from typing import Any

_CONTAINERS = ("_stopped_trials", "_failed_trials", "_live_trials", "_trials_to_cache")
_OTHERS = ("_trials", "_trial_metadata", "_trial_to_actor", "_resetting_trials")


def can_drop(controller: Any) -> bool:
    """Whether this controller has the containers that `drop` edits."""
    return all(hasattr(controller, name) for name in (*_CONTAINERS, *_OTHERS))


def drop(controller: Any, finished: Iterable[Any]) -> list[Any]:
    """Remove finished trials that no actor holds any more; those that have to stay for now."""
    trials = list(finished)
    gone = {trial for trial in trials if _is_free(controller, trial)}
    controller._trials[:] = [trial for trial in controller._trials if trial not in gone]
    for name in _CONTAINERS:
        container: set[Any] = getattr(controller, name)
        container -= gone
    for trial in gone:
        controller._trial_metadata.pop(trial.trial_id, None)
    return [trial for trial in trials if trial not in gone]


def _is_free(controller: Any, trial: Any) -> bool:
    return (
        trial.is_finished()
        and trial not in controller._trial_to_actor
        and trial not in controller._resetting_trials
    )
