"""Carries messages from the outbox to MLflow, page by page; each at least once.

A message is deleted in the transaction that stores the ids of the runs made for it. So whatever
was made and not noted, by a driver that died, belongs to the first page of the next one, which
searches for it by its tag before it makes a run.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from mlflow.exceptions import MlflowException

from orchestrator.store.database import Store
from orchestrator.store.writing import Transaction
from orchestrator.tracking.addresses import redacted
from orchestrator.tracking.connection import refuses
from orchestrator.tracking.errors import BadMessage
from orchestrator.tracking.mirror import Mirror
from orchestrator.tracking.pages import Group, Page, groups, read_page
from orchestrator.tracking.runs import Runs

log = logging.getLogger(__name__)


class Delivery:
    """The outbox of one sweep and the MLflow it empties into."""

    def __init__(self, store: Store, runs: Runs, sweep_id: str, tracking_uri: str) -> None:
        """Take up the sweep; run ids of another MLflow, where it was mirrored before, go."""
        self._store, self._runs, self._sweep_id = store, runs, sweep_id
        self._uri = tracking_uri
        self._mirror = Mirror(store, runs)
        with store.read() as reader:
            sweep = reader.sweep(sweep_id)
        if sweep is not None and sweep.tracking_run and not runs.exists(sweep.tracking_run):
            with store.write() as tx:
                _forget_ids(tx, sweep_id)

    def deliver_page(self, go_on: Callable[[], bool]) -> int:
        """Deliver the next page, or as much of it as `go_on` allows; how many messages it was.

        Raises:
            Exception: MLflow or the database cannot be reached; what was not delivered stays.
        """
        with self._store.read() as reader:
            page = read_page(reader, self._sweep_id)
        if page is None:
            return 0
        done: list[int] = []
        try:
            for group in groups(page.messages):
                if not go_on():
                    break
                self._deliver(page, group)
                done += [message.id for message in group.messages]
            else:
                self._runs.doubtful = False
        except Exception:
            self._runs.doubtful = True  # the request that failed may have made a run
            raise
        finally:
            self._note(done)
        return len(done)

    def _deliver(self, page: Page, group: Group) -> None:
        """Tell a group; if it cannot be told, its messages one by one, without the bad ones."""
        try:
            self._mirror.apply(page, group)
        except (BadMessage, MlflowException) as error:
            if not isinstance(error, BadMessage) and not refuses(error):
                raise
            if len(group.messages) > 1:
                for message in group.messages:
                    single = Group(level=group.level, target=group.target, messages=[message])
                    self._deliver(page, single)
                return
            log.warning(
                "message %d (%s of %s) is dropped: %s",
                group.messages[0].id,
                group.messages[0].kind,
                group.target,
                redacted(str(error), self._uri),
            )

    def _note(self, done: list[int]) -> None:
        """Delete what is delivered and keep the ids of the runs, in one transaction."""
        if not done and not self._runs.made:
            return
        with self._store.write() as tx:
            for mirrored, made in self._runs.made.items():
                update = {
                    "sweep": tx.update_sweep,
                    "study": tx.update_study,
                    "trial": tx.update_trial,
                }[made.level]
                with suppress(LookupError):  # deleted meanwhile
                    update(mirrored, tracking_run=made.run_id)
            tx.delete_outbox(done)
        self._runs.kept()


def _forget_ids(tx: Transaction, sweep_id: str) -> None:
    tx.update_sweep(sweep_id, tracking_run=None)
    for study in tx.studies(sweep_id):
        tx.update_study(study.id, tracking_run=None)
    for trial in tx.sweep_trials(sweep_id):
        if trial.tracking_run is not None:
            tx.update_trial(trial.id, tracking_run=None)
