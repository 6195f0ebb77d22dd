"""The error of a task's data that the user can put right."""


class DataError(ValueError):
    """Rows are missing, unreachable or not what the task needs; the message is one line."""
