"""`launch`, `plan` and `resume`."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.app import app, example

Cpus = Annotated[float | None, typer.Option(help="CPUs of a trial; default 1.")]
Gpus = Annotated[
    float | None,
    typer.Option(help="GPUs of a trial, 0.5 for two on one; default 1 where there are GPUs."),
]
Workers = Annotated[
    int | None, typer.Option(help="At most so many trials at a time; default what fits.")
]
Address = Annotated[
    str | None, typer.Option(help="An existing Ray cluster: auto, HOST:PORT or ray://HOST:PORT.")
]
TimeLimit = Annotated[str | None, typer.Option(help="Let go after 90s, 30m or 2h of this launch.")]
DeviceHours = Annotated[
    float | None, typer.Option(help="Let go when the sweep has used so many device hours.")
]
MaxFailures = Annotated[
    int | None, typer.Option(help="Let go when more than so many trials have failed.")
]


@app.command(epilog=example("launch --space aot_fc,head_only --tasks sst2,mrpc --trials 20"))
def launch(
    config: Annotated[
        Path | None, typer.Option(help="YAML file with these options; the command line wins.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(help="Search spaces, comma list: NAME, NAME@SECTION or ./FILE.yaml."),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Tasks and groups of tasks, comma list; glue is all eight.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Launch defaults, demo or paper; default by whether there is a GPU."),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="A known name, a Hub id or a folder.")
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(help="Folder laid out as the Hub's dataset repositories, for offline use."),
    ] = None,
    limit_train: Annotated[
        int | None, typer.Option(help="At most so many training rows, a fixed stratified subset.")
    ] = None,
    limit_eval: Annotated[
        int | None, typer.Option(help="At most so many rows of each evaluation split.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the sweep; default made from its options.")
    ] = None,
    search: Annotated[str | None, typer.Option(help="random (default), grid or tpe.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Assignments of each study; may grow in a later launch.")
    ] = None,
    search_seed: Annotated[int | None, typer.Option(help="Seed of the search; default 0.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Training seeds of each assignment, trained side by side.")
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Epochs of a trial at most.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Evaluations without improvement that end a run.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="asha (default) stops bad trials early; none.")
    ] = None,
    eta: Annotated[
        int | None, typer.Option(help="ASHA keeps about 1/eta of the trials at a rung; default 3.")
    ] = None,
    grace: Annotated[
        int | None, typer.Option(help="Epochs before ASHA may stop a trial; default 1.")
    ] = None,
    cpus_per_trial: Cpus = None,
    gpus_per_trial: Gpus = None,
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    device_hours: DeviceHours = None,
    max_failures: MaxFailures = None,
    repeats: Annotated[
        int | None, typer.Option(help="Independent sweeps with other search seeds; default 1.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and its cost, spend nothing.")
    ] = False,
) -> None:
    """Search: schedule trials, stop bad ones early, record everything; again: go on."""
    given = {key: value for key, value in locals().items() if key not in ("config", "dry_run")}
    options = _options(config, given)
    if dry_run:
        from orchestrator.cli.planning import show_plan

        show_plan(options, as_json=False)
        return
    from orchestrator.cli.following import run_launch

    raise typer.Exit(run_launch(options))


def _plan(json: bool, config: Path | None, **given: Any) -> None:
    """Show studies, assignments, epochs, time and disk of a launch; spend nothing."""
    from orchestrator.cli.planning import show_plan

    show_plan(_options(config, given), as_json=json)


def _register_plan() -> None:
    """`plan` takes the options of `launch`, `--dry-run` left aside."""
    taken = inspect.signature(launch).parameters.values()
    json = inspect.Parameter(
        "json",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--json", help="As JSON.")],
    )

    def plan(**options: Any) -> None:
        _plan(**options)

    plan.__doc__ = _plan.__doc__
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in taken if p.name != "dry_run"]
    plan.__signature__ = inspect.Signature([*parameters, json])  # type: ignore[attr-defined]  # typer reads it
    app.command("plan", epilog=example("plan --space aot_fc --tasks glue --profile paper"))(plan)


_register_plan()


@app.command(epilog=example("resume aot_fc-glue"))
def resume(
    name: Annotated[str, typer.Argument(help="The sweep, or the beginning of its name.")],
    cpus_per_trial: Cpus = None,
    gpus_per_trial: Gpus = None,
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    device_hours: DeviceHours = None,
    max_failures: MaxFailures = None,
) -> None:
    """Go on with a sweep that was interrupted; of a finished one print the table."""
    from orchestrator.cli.following import run_resume

    given = {key: value for key, value in locals().items() if key != "run_resume"}
    given.pop("name")
    raise typer.Exit(run_resume(name, _converted(given)))


def _options(config: Path | None, given: dict[str, Any]) -> Any:
    from orchestrator.options import LaunchOptions, names, read_file

    values = read_file(config) if config else {}
    values |= _converted(given)
    for key in ("space", "tasks"):
        if isinstance(values.get(key), str):
            values[key] = names(values[key])
    return LaunchOptions(**values)


def _converted(given: dict[str, Any]) -> dict[str, Any]:
    from orchestrator.options import seconds

    values = {key: value for key, value in given.items() if value is not None}
    if "time_limit" in values:
        values["time_limit"] = seconds(values["time_limit"])
    return values
