"""What the fixtures of a tracker give."""

import logging
import threading
from collections.abc import Callable

from orchestrator.tracking import Tracker

NewTracker = Callable[[str], Tracker]
"""Starts a tracker that tells the MLflow at an address."""


class Log(logging.Handler):
    """What the tracker logs; `heard` is set by its first warning."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
        if record.levelno >= logging.WARNING:
            self.heard.set()
