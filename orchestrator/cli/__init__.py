"""The command line: parse, call, print. Heavy imports happen inside commands."""

import sys

from orchestrator.cli.run import run


def main() -> None:
    """Entry point of `orchestrate`."""
    sys.exit(run(sys.argv[1:]))
