"""How a trial can end, and what each way means for its score."""

from enum import StrEnum


class Outcome(StrEnum):
    """The state of a trial or run; final ones are written when they are decided."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    """Trained to its last epoch."""
    COMPLETED_BY_PATIENCE = "completed_by_patience"
    """Its own patience rule ended it: as good as completed."""
    STOPPED = "stopped_by_scheduler"
    """ASHA ended it: its final score is unknown, at least its best so far."""
    DIVERGED = "diverged"
    OUT_OF_MEMORY = "out_of_memory"
    FAILED = "failed"
    """An exception in trial code."""
    INVALID = "invalid"
    """The assignment cannot be trained at all."""
    LOST = "lost"
    """Infrastructure, after all its attempts."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the trial will not be trained any further."""
        return self not in (Outcome.PENDING, Outcome.RUNNING)

    @property
    def completed(self) -> bool:
        """Whether the trial trained as long as its own protocol asks."""
        return self in (Outcome.COMPLETED, Outcome.COMPLETED_BY_PATIENCE)

    @property
    def failure(self) -> bool:
        """Whether the assignment is to blame, so that it counts with the worst score."""
        return self in (Outcome.DIVERGED, Outcome.OUT_OF_MEMORY, Outcome.FAILED, Outcome.INVALID)
