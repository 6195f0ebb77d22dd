"""The mirror of sweeps in MLflow, the only place that imports mlflow.

Importing this package does not import mlflow: that takes seconds and happens in the thread.
"""

from orchestrator.tracking.addresses import printable
from orchestrator.tracking.errors import TrackingError
from orchestrator.tracking.tools import forget, reach
from orchestrator.tracking.tracker import Tracker

__all__ = ["Tracker", "TrackingError", "forget", "printable", "reach"]
