"""The MLflow runs of one sweep: found or made, told, opened and ended. Ids are always explicit."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

from orchestrator.tracking.addresses import redacted
from orchestrator.tracking.connection import refuses
from orchestrator.tracking.updates import Description, Level, Status, Update

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Made:
    """A run whose id is not in the rows yet."""

    level: Level
    run_id: str


@dataclass(frozen=True)
class OpenRun:
    """A run that MLflow shows as running."""

    run_id: str
    id: str
    """Of the sweep, study or trial that it mirrors."""
    level: str


class Runs:
    """Used by one thread."""

    def __init__(self, client: MlflowClient, experiment_id: str, sweep_id: str) -> None:
        self._client, self._experiment_id, self._sweep_id = client, experiment_id, sweep_id
        self.made: dict[str, Made] = {}
        """By the id of what they mirror."""
        self.doubtful = True
        """Whether runs may have been made whose ids were not kept: then they are searched for."""
        self._untouched: set[str] = set()

    def exists(self, run_id: str) -> bool:
        """Whether the run is here and nobody has deleted it."""
        try:
            return bool(self._client.get_run(run_id).info.lifecycle_stage == "active")
        except MlflowException as error:
            if refuses(error):
                return False
            raise

    def id_of(self, mirrored: str) -> str | None:
        """The run that stands for something, if it was made since the rows were read."""
        made = self.made.get(mirrored)
        return made.run_id if made else None

    def add(self, wanted: Description, parent: str | None, at: int) -> str:
        """Find the run of that description, or make it; its id."""
        found = self._find(wanted.id) if self.doubtful else None
        if found is None:
            tags = wanted.tags | ({"mlflow.parentRunId": parent} if parent else {})
            run = self._client.create_run(self._experiment_id, at, tags, wanted.name)
            self._untouched.add(run.info.run_id)
        else:
            run = found
        run_id = str(run.info.run_id)
        # a found one may have been made with other values: parameters cannot change
        missing = {key: text for key, text in wanted.params.items() if key not in run.data.params}
        self._describe(run_id, missing)
        self.made[wanted.id] = Made(wanted.level, run_id)
        return run_id

    def tell(self, run_id: str, update: Update) -> None:
        """Add to a run, then give it its status."""
        points = [Metric(p.key, p.value, p.at, p.step) for p in update.points]
        tags = [RunTag(key, text) for key, text in update.tags.items()]
        if points or tags:
            self._client.log_batch(run_id, metrics=points, tags=tags)
        if update.status is not None:
            self.set_status(run_id, update.status, update.at)

    def set_status(self, run_id: str, status: Status, at: int) -> None:
        """Open a run again, or end it."""
        if status == "RUNNING":
            if run_id not in self._untouched:
                self._client.update_run(run_id, status)
        else:
            self._client.set_terminated(run_id, status, at)
            self._untouched.discard(run_id)

    def running(self) -> list[OpenRun]:
        """The runs of the sweep that MLflow shows as running."""
        wanted = f"tags.`orchestrate.sweep` = '{self._sweep_id}' and attributes.status = 'RUNNING'"
        return [
            OpenRun(
                run.info.run_id,
                run.data.tags.get("orchestrate.id", ""),
                run.data.tags.get("orchestrate.level", ""),
            )
            for run in self._search(wanted)
        ]

    def add_picture(self, run_id: str, path: Path) -> None:
        """Keep a file with a run."""
        self._client.log_artifact(run_id, str(path))

    def kept(self) -> None:
        """Note that the ids of all runs made so far are in the rows."""
        self.made.clear()
        self._untouched.clear()

    def _describe(self, run_id: str, values: dict[str, str]) -> None:
        try:
            self._client.log_batch(run_id, params=[Param(*item) for item in values.items()])
        except MlflowException as error:
            if not refuses(error):
                raise
            reason = redacted(str(error), self._client.tracking_uri)
            log.warning("MLflow refused the parameters of run %s: %s", run_id, reason)

    def _find(self, mirrored: str) -> Run | None:
        return next(self._search(f"tags.`orchestrate.id` = '{mirrored}'"), None)

    def _search(self, wanted: str) -> Iterator[Run]:
        token = None
        while True:
            page = self._client.search_runs([self._experiment_id], wanted, page_token=token)
            yield from page
            token = page.token
            if not token:
                return
