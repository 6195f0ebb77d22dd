"""The commands and options that exist: a further one is a decision, not an accident."""

import typer

from orchestrator.cli import catalogue, launching, manage, reading  # noqa: F401 - they register
from orchestrator.cli.app import app

LAUNCH = """config space tasks profile backbone data-dir limit-train limit-eval name search trials
search-seed seeds max-epochs patience scheduler eta grace cpus-per-trial gpus-per-trial workers
address time-limit device-hours max-failures repeats""".split()
EXECUTION = """cpus-per-trial gpus-per-trial workers address time-limit device-hours
max-failures""".split()

SURFACE = {
    "launch": [*LAUNCH, "dry-run"],
    "plan": [*LAUNCH, "json"],
    "resume": EXECUTION,
    "stop": [],
    "delete": ["yes"],
    "status": ["json"],
    "list": ["json"],
    "table": ["json", "format"],
    "evp": ["json", "estimator", "output"],
    "show": ["json"],
    "spaces": ["json"],
    "methods": ["backbone", "set", "json"],
    "tasks": ["json"],
    "backbones": ["json"],
    "doctor": ["json"],
}


def commands() -> dict[str, typer.core.TyperCommand]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined]  # it is a group


def test_the_commands_and_options_are_these() -> None:
    found = {
        name: {
            option.removeprefix("--")
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("--") and option != "--help"
        }
        for name, command in commands().items()
    }
    assert found == {name: set(options) for name, options in SURFACE.items()}


def test_every_command_shows_an_example_of_itself() -> None:
    for name, command in commands().items():
        assert command.epilog.startswith(f"Example: orchestrate {name}"), name


def test_every_option_says_what_it_is() -> None:
    for name, command in commands().items():
        for parameter in command.params:
            if parameter.name != "help":
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"
