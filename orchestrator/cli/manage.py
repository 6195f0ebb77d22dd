"""`stop`, `delete` and `doctor`."""

import shutil
from typing import Annotated

import typer

from orchestrator.cli.app import app, example, line

Sweep = Annotated[str, typer.Argument(help="The sweep, or the beginning of its name.")]


@app.command(epilog=example("stop aot_fc-glue"))
def stop(name: Sweep) -> None:
    """End a running sweep within seconds; what is unfinished waits for `resume`."""
    from orchestrator.cli.find import find_sweep
    from orchestrator.errors import Refused
    from orchestrator.home import home
    from orchestrator.store.database import open_store
    from orchestrator.store.locks import holder

    place = home()
    with open_store(place.store_url, create=False) as store:
        with store.read() as reader:
            sweep = find_sweep(reader, name)
        driver = holder(place.store_url, sweep.id, place.locks)
        if driver is None:
            raise Refused(f"sweep {sweep.id} is not running (it is {sweep.state})")
        with store.write() as tx:
            tx.update_sweep(sweep.id, stop_requested=True)
    line(f"asked {sweep.id} ({driver}) to stop; see: orchestrate status {sweep.id}")


@app.command(epilog=example("delete aot_fc-glue --yes"))
def delete(
    name: Sweep,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a sweep: its rows, its folder and its MLflow runs."""
    from orchestrator.cli.find import find_sweep
    from orchestrator.home import home
    from orchestrator.store.database import open_store
    from orchestrator.store.locks import sweep_lock
    from orchestrator.tracking import forget

    place = home()
    with open_store(place.store_url, create=False) as store:
        with store.read() as reader:
            sweep = find_sweep(reader, name)
            trials = reader.sweep_trials(sweep.id)
            studies = reader.studies(sweep.id)
        if not yes:
            typer.confirm(f"delete {sweep.id} with {len(trials)} trials?", abort=True)
        ids = [sweep.tracking_run, *(study.tracking_run for study in studies)]
        ids += [trial.tracking_run for trial in trials]
        runs = [run for run in ids if run is not None]
        with sweep_lock(place.store_url, sweep.id, place.locks):
            if runs:
                forget(place.tracking_uri, runs)
            with store.write() as tx:
                tx.delete_sweep(sweep.id)
            shutil.rmtree(place.sweep(sweep.id), ignore_errors=True)
    line(f"deleted {sweep.id}: {len(trials)} trials, {len(runs)} MLflow runs")


@app.command(epilog=example("doctor"))
def doctor(
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check install, Ray, device, database, MLflow, home folder and disk."""
    import json as json_module

    from orchestrator.cli.checks import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        if not json:
            line(f"{'ok  ' if finding.ok else 'FAIL'} {finding.what}: {finding.words}")
    if json:
        typer.echo(json_module.dumps([vars(finding) for finding in findings], indent=2))
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)
