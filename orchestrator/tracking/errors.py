"""What the tracker's parts raise; the thread lets none of it out."""

from orchestrator.errors import Refused


class TrackingError(Refused):
    """MLflow cannot be used now; the text is one line and free of passwords."""


class BadMessage(Exception):
    """A message that will never be delivered, and why."""
