"""MLflow's own settings that suit a mirror, where the user has set none."""

import os

_DEFAULTS = {
    # the tracker retries by itself; a repeated create_run could make a second run
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    # an outage is one warning of ours, not a traceback for each call
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def prepare() -> None:
    """Set them; to be called before mlflow is imported."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
