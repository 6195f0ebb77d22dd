"""The commands that read the database: `status`, `list`, `table`, `evp`, `show`."""

import json as json_module
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.app import app, example, line, out

if TYPE_CHECKING:
    from orchestrator.store.reading import Reader

Name = Annotated[
    str | None,
    typer.Argument(help="Sweep, or sweep/study; a unique beginning will do. Default: the newest."),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command(epilog=example("status aot_fc-glue --json"))
def status(name: Name = None, json: Json = False) -> None:
    """Show how far a sweep is: trials by outcome, best scores."""
    from orchestrator.cli.find import find_studies
    from orchestrator.cli.status import print_status, status_json

    with reader() as database:
        sweep, studies = find_studies(database, name)
        if json:
            print_json({"sweeps": [status_json(database, sweep, studies)]})
        else:
            print_status(database, sweep, studies)


@app.command("list", epilog=example("list"))
def list_sweeps(json: Json = False) -> None:
    """List every sweep with its state."""
    from orchestrator.cli.status import print_list, sweep_json

    with reader() as database:
        if json:
            print_json({"sweeps": [sweep_json(database, sweep) for sweep in database.sweeps()]})
        else:
            print_list(database)


@app.command(epilog=example("table aot_fc-glue --format markdown"))
def table(
    name: Name = None,
    json: Json = False,
    form: Annotated[str, typer.Option("--format", help="text, markdown, csv or json.")] = "text",
) -> None:
    """Show the best assignment of each study: median and deviation over seeds."""
    from orchestrator.cli.find import find_studies
    from orchestrator.errors import Refused
    from orchestrator.report import tables
    from orchestrator.summaries import study_summary

    forms = ("text", "markdown", "csv", "json")
    if form not in forms:
        raise Refused(f"--format {form}: no such one; known: {', '.join(forms)}")
    with reader() as database:
        _, studies = find_studies(database, name)
        rows = tables.to_rows([study_summary(database, study) for study in studies])
    if json or form == "json":
        print_json({"rows": tables.to_dicts(rows)})
    elif form == "text":
        out.print(tables.to_rich(rows))
    else:
        text = tables.to_csv(rows) if form == "csv" else tables.to_markdown(rows)
        typer.echo(text, nl=False)


@app.command(epilog=example("evp aot_fc-glue/aot_fc-sst2"))
def evp(
    name: Name = None,
    json: Json = False,
    estimator: Annotated[
        str, typer.Option(help="U (distinct assignments, unbiased) or V (Dodge et al. 2019).")
    ] = "U",
    output: Annotated[
        Path | None, typer.Option(help="Write the picture there, .png or .svg.")
    ] = None,
) -> None:
    """Show Expected Validation Performance: the best of n assignments, on average."""
    from orchestrator.cli.curves import curves_json, print_curves, write_picture
    from orchestrator.cli.find import find_studies
    from orchestrator.errors import Refused

    if estimator not in ("U", "V"):
        raise Refused(f"--estimator {estimator}: no such one; known: U, V")
    with reader() as database:
        sweep, studies = find_studies(database, name)
        if output is not None:
            write_picture(database, sweep, studies, output, estimator)
        if json:
            print_json({"curves": curves_json(database, studies, estimator)})
        else:
            print_curves(database, studies, estimator)
    if output is not None and not json:
        line(str(output))


@app.command(epilog=example("show aot_fc-glue/aot_fc-sst2/3"))
def show(
    name: Annotated[str, typer.Argument(help="SWEEP, SWEEP/STUDY or SWEEP/STUDY/K.")],
    json: Json = False,
) -> None:
    """Show all that is recorded of a sweep, a study or a trial."""
    from orchestrator.cli.showing import described, print_described

    with reader() as database:
        content = described(database, name)
    if json:
        print_json(content)
    else:
        print_described(content)


@contextmanager
def reader() -> "Iterator[Reader]":
    """The database of this home, which must exist."""
    from orchestrator.home import home
    from orchestrator.store.database import open_store

    with open_store(home().store_url, create=False) as store, store.read() as database:
        yield database


def print_json(content: object) -> None:
    """Print JSON that another program reads."""
    typer.echo(json_module.dumps(content, indent=2))
