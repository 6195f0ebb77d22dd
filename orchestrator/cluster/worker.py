"""The worker: a class Trainable that trains one trial after another with everything kept warm.

Tune calls `step` for each epoch and `reset_config` between trials. A trial begins lazily in its
first `step`, and whatever goes wrong in it is returned as data, so that the actor and its resident
backbone survive.
"""

import gc
import logging
import os
import platform
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ray import tune

from orchestrator.cluster.stop_flag import StopFlag
from orchestrator.outcome import Outcome

LOG_LINES = 40


class TrialWorker(tune.Trainable):
    """Trains the trials that it is given, one at a time."""

    def setup(self, config: dict[str, Any]) -> None:
        """Store the trial; nothing of it is begun."""
        import torch

        from trials.run import Bench

        self._config = config
        self._points: Iterator[Any] | None = None
        self._log = _LastLines(LOG_LINES)
        logging.getLogger("trials").addHandler(self._log)
        logging.getLogger("trials").setLevel(logging.INFO)
        torch.set_num_threads(max(1, int(config["threads"])))
        cache = config["cache"]
        self._bench = Bench(cache_dir=Path(cache) if cache else None)
        self._stop = StopFlag(config["stop_flag"])
        self._name = f"{os.getpid()}@{platform.node()}"

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next trial. Always works: Tune would hang on False."""
        self._config = new_config
        self._points = None
        return True

    def step(self) -> dict[str, Any]:
        """Train one epoch; what happened, as plain values for the driver."""
        from trials.stack import Interrupted

        about = {"worker": self._name}
        try:
            if self._points is None:
                self._points = self._begin()
            point = next(self._points)
        except Interrupted:
            self._points = None
            return about | {"kind": "interrupted"}
        except Exception as error:  # noqa: BLE001 - every error of a trial is an outcome, not ours
            self._points = None
            outcome = _outcome(error)
            text = self._describe(error)
            if outcome == Outcome.OUT_OF_MEMORY:
                del error
                self._recover()
            return about | {"kind": "failed", "outcome": outcome.value, "error": text}
        return about | {"kind": "point", "point": point.to_json()}

    def _begin(self) -> Iterator[Any]:
        from trials.run import run_trial
        from trials.spec import TrialSpec

        self._log.lines.clear()
        return run_trial(TrialSpec.from_json(self._config["spec"]), self._bench, self._stop.is_set)

    def _describe(self, error: Exception) -> str:
        trace = "".join(traceback.format_exception(error)[-6:])
        log = "\n".join(self._log.lines)
        return f"{type(error).__name__}: {error}\n\n{trace}\n{log}".strip()

    def _recover(self) -> None:
        """Give memory back; a resident backbone that no longer works costs the actor."""
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._bench.check()

    def cleanup(self) -> None:
        """Let go of the trial."""
        self._points = None

    def __repr__(self) -> str:
        return str(self._config["worker_name"])


class _LastLines(logging.Handler):
    """Keeps the last lines that were logged."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=count)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.lines.append(self.format(record))


def _outcome(error: Exception) -> Outcome:
    import torch

    text = str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in text:
        return Outcome.OUT_OF_MEMORY
    return Outcome.FAILED
