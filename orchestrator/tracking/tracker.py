"""The thread of a driver that feeds MLflow from the outbox."""

import logging
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.store.database import open_store
from orchestrator.store.errors import StoreError
from orchestrator.tracking import environment
from orchestrator.tracking.addresses import printable, redacted

if TYPE_CHECKING:
    from orchestrator.tracking.delivery import Delivery

POLL_SECONDS = 1.0
"""Between two looks at an empty outbox; what gathers meanwhile is told in fewer requests."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0

log = logging.getLogger(__name__)


class Tracker:
    """Mirrors one sweep in MLflow. Its methods never raise, and only `close` waits."""

    def __init__(self, store_url: str, sweep_id: str, tracking_uri: str, artifacts: Path) -> None:
        """The tracker of a sweep, not started yet.

        Args:
            store_url: the trial database, which the thread opens for itself.
            sweep_id: whose messages it delivers.
            tracking_uri: MLflow's address; credentials in it are neither logged nor stored.
            artifacts: folder for pictures where MLflow's store is a local file.
        """
        self._store_url, self._sweep_id = store_url, sweep_id
        self._uri, self._artifacts = tracking_uri, artifacts
        self._closing = threading.Event()
        self._deadline = float("inf")
        # a request that hangs must not keep the driver from ending
        self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)
        self._resources = ExitStack()
        self._in_outage = False

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def close(self, timeout: float) -> int | None:
        """Deliver what can be delivered in time, and end.

        Args:
            timeout: seconds.

        Returns:
            How many messages remain, for the sweep's next driver; None if the database is gone.
        """
        # the last moments are for noting what was delivered
        self._deadline = time.monotonic() + 0.9 * timeout
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        try:
            with open_store(self._store_url, create=False) as store, store.read() as reader:
                return reader.outbox_count(self._sweep_id)
        except StoreError as error:
            log.warning("the messages for MLflow cannot be counted: %s", error)
            return None

    def _run(self) -> None:
        delivery: Delivery | None = None
        pause = FIRST_PAUSE
        while True:
            last_try = self._closing.is_set()
            try:
                delivery = delivery or self._open()
                delivered = delivery.deliver_page(self._in_time)
                self._note_success()
                pause = FIRST_PAUSE
                if not delivered and (last_try or not self._in_time()):
                    break
                if not delivered:
                    self._closing.wait(POLL_SECONDS)
            except Exception as error:  # noqa: BLE001 - nothing here may reach the driver
                self._note_failure(error)
                if last_try:
                    break
                self._closing.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self._resources.close()

    def _open(self) -> "Delivery":
        """Open the database and reach MLflow; imports mlflow, which takes seconds."""
        environment.prepare()
        from orchestrator.tracking.connection import connect, experiment_id
        from orchestrator.tracking.delivery import Delivery
        from orchestrator.tracking.runs import Runs

        with ExitStack() as opened:
            store = opened.enter_context(open_store(self._store_url, create=False))
            client = connect(self._uri)
            runs = Runs(client, experiment_id(client, self._artifacts), self._sweep_id)
            delivery = Delivery(store, runs, self._sweep_id, self._uri)
            self._resources = opened.pop_all()
        return delivery

    def _in_time(self) -> bool:
        return time.monotonic() < self._deadline

    def _note_failure(self, error: Exception) -> None:
        if self._in_outage:
            return
        self._in_outage = True
        log.warning(
            "MLflow at %s is not told for now, its messages are kept: %s",
            printable(self._uri),
            redacted(f"{type(error).__name__}: {error}", self._uri),
        )

    def _note_success(self) -> None:
        if self._in_outage:
            log.info("MLflow at %s is told again", printable(self._uri))
        self._in_outage = False
