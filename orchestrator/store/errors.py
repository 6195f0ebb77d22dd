"""What the store refuses or fails with; no exception of SQLAlchemy or a driver leaves this package.

StoreError
    NoDatabase            also a LookupError
    SchemaError           also a ValueError
    ConstraintViolated
    SweepLocked
"""


class StoreError(Exception):
    """The database could not do what it was asked; the text is one line and free of passwords."""


class NoDatabase(StoreError, LookupError):
    """There is no trial database at the place named."""


class SchemaError(StoreError, ValueError):
    """What is there is no trial database of a revision this code can read."""


class ConstraintViolated(StoreError):
    """A row breaks a uniqueness or a reference rule of the schema."""


class SweepLocked(StoreError):
    """Another process drives the sweep."""

    def __init__(self, sweep_id: str, holder: str) -> None:
        super().__init__(
            f"sweep '{sweep_id}' is being run by {holder}; "
            f"wait for it, or end it with: orchestrate stop {sweep_id}"
        )
        self.holder = holder
        """`pid@host`, or `another process` where that is not known."""
