"""The typer application that the commands register with."""

import typer
from rich.console import Console

app = typer.Typer(
    name="orchestrate",
    help="Hyperparameter search for parameter-efficient fine-tuning: Ray Tune runs the trials, "
    "a database keeps every result, EVP curves compare the methods.",
    epilog="Add --debug to any command to see a full traceback. "
    "ORCHESTRATE_HOME names the folder with everything local (default ./orchestrate_home), "
    "ORCHESTRATE_DB another database, MLFLOW_TRACKING_URI another MLflow.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def line(text: str) -> None:
    """Print one line as it is: unwrapped, no markup read into it."""
    out.print(text, markup=False, soft_wrap=True)


def example(command: str) -> str:
    """The end of a command's help."""
    return f"Example: orchestrate {command}"
