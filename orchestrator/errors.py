"""The error that the command line turns into one line and exit code 2."""


class Refused(ValueError):
    """A request that cannot be met: what was asked, what is known or required, what to do."""
