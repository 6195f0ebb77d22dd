"""Running one command line: refusals become one line and exit code 2."""

import sys

import typer

from orchestrator.cli.app import app, err
from orchestrator.errors import Refused


def run(arguments: list[str]) -> int:
    """Run a command line; its exit code: 0 done, 1 the work failed, 2 bad input or refused."""
    from orchestrator.cli import catalogue, launching, manage, reading  # noqa: F401 - registers

    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"] or ["--help"]
    try:
        code = app(arguments, prog_name="orchestrate", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        _complain("aborted")
        return 1
    except typer.TyperException as error:
        return _misused(error)
    except BrokenPipeError:
        return 1
    except Exception as error:
        if debug:
            raise
        return _refuse(error)
    return int(code or 0)


def _misused(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "orchestrate"
    reason = getattr(error, "format_message", error.__str__)()
    if reason:
        _complain(f"{reason} See: {where} --help")
    return 2


def _refuse(error: Exception) -> int:
    from orchestrator.store.errors import StoreError
    from searchspaces.files import SpaceError

    if isinstance(error, Refused | SpaceError | StoreError):
        _complain(str(error.args[0] if error.args else error))
        return 2
    _complain(f"{type(error).__name__}: {error} (--debug shows where)")
    return 1


def _complain(text: str) -> None:
    sys.stdout.flush()
    err.print(f"error: {' '.join(text.split())}", markup=False)
