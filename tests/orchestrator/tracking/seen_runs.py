"""What MLflow shows of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow.entities import Run


class Seen:
    """The runs at an address, by the id of what they mirror."""

    def __init__(self, uri: str, sweep: str = "glue-lora") -> None:
        from mlflow import MlflowClient  # takes seconds, which collecting tests must not
        from mlflow.entities import ViewType

        self.client = MlflowClient(tracking_uri=uri)
        experiment = self.client.get_experiment_by_name("orchestrate")
        assert experiment is not None
        self.experiment = experiment
        found = self.client.search_runs(
            [experiment.experiment_id], f"tags.`orchestrate.sweep` = '{sweep}'", ViewType.ALL
        )
        self.runs: dict[str, Run] = {run.data.tags["orchestrate.id"]: run for run in found}
        assert len(self.runs) == len(found), "a run is there twice"

    def points(self, mirrored: str, key: str) -> list[tuple[int, float]]:
        run_id = self.runs[mirrored].info.run_id
        history = self.client.get_metric_history(run_id, key)
        return sorted((point.step, point.value) for point in history)

    def status(self, mirrored: str) -> str:
        return str(self.runs[mirrored].info.status)

    def tag(self, mirrored: str, key: str) -> str | None:
        value: str | None = self.runs[mirrored].data.tags.get(f"orchestrate.{key}")
        return value
