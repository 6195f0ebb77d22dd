"""What the command line asks of MLflow: whether it is there, and to forget runs."""

from collections.abc import Iterable

from orchestrator.tracking import environment


def reach(tracking_uri: str) -> str:
    """In words, which MLflow answers at the address.

    Raises:
        TrackingError: none does.
    """
    environment.prepare()
    from orchestrator.tracking.connection import say_version

    return say_version(tracking_uri)


def forget(tracking_uri: str, run_ids: Iterable[str]) -> None:
    """Delete runs as the MLflow page does (`mlflow gc` frees the space); missing ones are fine.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    environment.prepare()
    from orchestrator.tracking.connection import delete_runs

    delete_runs(tracking_uri, run_ids)
