"""Reaching MLflow: the client, the experiment, and what its errors mean."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from orchestrator.reachable import check_listens
from orchestrator.tracking.addresses import printable, redacted
from orchestrator.tracking.errors import TrackingError

EXPERIMENT = "orchestrate"
"""Unless `MLFLOW_EXPERIMENT_NAME` names another."""

# Of the other 4xx codes, 401, 403 and 429 pass, and 404 without a resource is a wrong address.
_REFUSALS = frozenset(
    (
        "BAD_REQUEST",
        "INVALID_PARAMETER_VALUE",
        "RESOURCE_ALREADY_EXISTS",
        "RESOURCE_DOES_NOT_EXIST",
    )
)


def refuses(error: BaseException) -> bool:
    """Whether MLflow will say the same to the same request tomorrow."""
    return isinstance(error, MlflowException) and error.error_code in _REFUSALS


def connect(tracking_uri: str) -> MlflowClient:
    """A client for the address; a local database is made where there is none."""
    if file := _local_file(tracking_uri):
        file.parent.mkdir(parents=True, exist_ok=True)
    return MlflowClient(tracking_uri=tracking_uri)


def experiment_id(client: MlflowClient, artifacts: Path) -> str:
    """The id of our experiment, made where there is none.

    Args:
        client: where.
        artifacts: the folder for artifacts of a local store; a server has its own.

    Raises:
        TrackingError: somebody deleted it.
    """
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
    found = client.get_experiment_by_name(name)
    if found is None:
        local = _local_file(client.tracking_uri) is not None
        location = artifacts.absolute().as_uri() if local else None
        try:
            return str(client.create_experiment(name, artifact_location=location))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = client.get_experiment_by_name(name)  # another driver was faster
    if found is None or found.lifecycle_stage != "active":
        raise TrackingError(
            f"experiment '{name}' is deleted in MLflow; restore it, "
            "or set MLFLOW_EXPERIMENT_NAME to another"
        )
    return str(found.experiment_id)


def say_version(tracking_uri: str) -> str:
    """In words, which MLflow answers at the address."""
    with _in_our_words(tracking_uri):
        connect(tracking_uri).search_experiments(max_results=1)
    return f"mlflow {mlflow.__version__} answers at {printable(tracking_uri)}"


def delete_runs(tracking_uri: str, run_ids: Iterable[str]) -> None:
    """Delete runs; missing ones are fine."""
    file = _local_file(tracking_uri)
    if file is not None and not file.exists():
        return
    with _in_our_words(tracking_uri):
        client = connect(tracking_uri)
        for run_id in run_ids:
            try:
                client.delete_run(run_id)
            except MlflowException as error:
                if not refuses(error):
                    raise


def _local_file(tracking_uri: str) -> Path | None:
    """The file of a SQLite store; None for a server."""
    scheme = "sqlite:///"
    return Path(tracking_uri.removeprefix(scheme)) if tracking_uri.startswith(scheme) else None


@contextmanager
def _in_our_words(tracking_uri: str) -> Iterator[None]:
    try:
        if not tracking_uri.startswith("http"):  # which may go by a proxy, and fails fast
            check_listens(tracking_uri)
        yield
    except Exception as error:  # noqa: BLE001 - MLflow has no one class for being out of reach
        # the cause is dropped: it may quote the address with its password
        reason = redacted(_reason(error), tracking_uri)
        raise TrackingError(f"MLflow at {printable(tracking_uri)}: {reason}") from None


def _reason(error: Exception) -> str:
    """What the system said where clients wrapped it in pages of their own; else the error."""
    cause: BaseException = error
    while below := cause.__cause__ or cause.__context__:
        cause = below
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error)
