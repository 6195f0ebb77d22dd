"""What there is: `spaces`, `methods`, `tasks`, `backbones`."""

import json as json_module
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from orchestrator.cli.app import app, example, line, out

Name = Annotated[str | None, typer.Argument(help="Show this one only, in full.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command(epilog=example("spaces aot_fc"))
def spaces(name: Name = None, json: Json = False) -> None:
    """List search spaces with their sections and sources."""
    from searchspaces.files import known_spaces, load

    rows = []
    for space in [name] if name else known_spaces():
        file = load(space)
        for section, definition in file.sections.items():
            rows.append(
                {
                    "space": f"{file.name}@{section}",
                    "method": file.method,
                    "source": definition.get("source", ""),
                }
                | ({"definition": definition} if name else {})
            )
    _show(rows, json, full=bool(name))


@app.command(epilog=example("methods aot_fc --backbone roberta-base --set rank=256"))
def methods(
    name: Name = None,
    backbone: Annotated[
        str, typer.Option(help="Count the parameters on this backbone.")
    ] = "roberta-base",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="FIELD=VALUE of the method; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """List methods; of one also its hyperparameters and how many parameters it trains."""
    import dataclasses

    from orchestrator import catalogue, fit

    if name is None:
        infos = [catalogue.method_info(each) for each in catalogue.method_names()]
        _show([{"method": i.name, "what": i.summary, "paper": i.paper} for i in infos], json)
        return
    info = catalogue.method_info(name)
    values = {"learning_rate": 1e-3} | _values(set_ or [])
    for field, default in info.hyperparameters.items():
        if default == "required" and field not in values:
            values[field] = _first(name, field)
    adapter, head = fit.parameters(name, values, backbone, num_outputs=2)
    counted = {key: value for key, value in values.items() if key != "learning_rate"}
    row = dataclasses.asdict(info) | {
        "backbone": backbone,
        "counted_with": counted,
        "adapter_parameters": adapter,
        "head_parameters": head,
    }
    _show([row], json, full=True)


@app.command(epilog=example("tasks sst2"))
def tasks(name: Name = None, json: Json = False) -> None:
    """List tasks with their columns, labels and metrics."""
    from orchestrator import catalogue

    names = catalogue.expand_tasks((name,)) if name else catalogue.task_names()
    rows = [catalogue.task_info(each) for each in names]
    if not json and len(rows) > 1:
        keys = ("task", "group", "hub_id", "metric", "labels")
        rows = [{key: row[key] for key in keys} for row in rows]
    _show(rows, json, full=len(rows) == 1)


@app.command(epilog=example("backbones roberta-base"))
def backbones(name: Name = None, json: Json = False) -> None:
    """List the backbones known by name; any Hub id or folder of their families works too."""
    from orchestrator import catalogue

    names = [name] if name else catalogue.backbone_names()
    _show([catalogue.backbone_info(each) for each in names], json, full=bool(name))


def _show(rows: list[dict[str, Any]], as_json: bool, *, full: bool = False) -> None:
    if as_json:
        typer.echo(json_module.dumps(rows[0] if full and len(rows) == 1 else rows, indent=2))
    elif full:
        for row in rows:
            for key, value in row.items():
                text = value if isinstance(value, str) else json_module.dumps(value)
                line(f"{key}: {text}")
            line("")
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for key in rows[0]:
            table.add_column(key, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row.values()))
        out.print(table)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def _values(pairs: list[str]) -> dict[str, Any]:
    """The values of FIELD=VALUE words, numbers read as such."""
    import yaml

    from orchestrator.errors import Refused

    values = {}
    for pair in pairs:
        field, equals, text = pair.partition("=")
        if not equals:
            raise Refused(f"--set {pair}: must look like rank=64")
        values[field] = yaml.safe_load(text)
    return values


def _first(method: str, field: str) -> Any:
    """The first value of a field in the method's own space, to count with."""
    from searchspaces.files import load

    file = load(method)
    space = file.space(next(iter(file.sections)), task="", family="")
    return space.draw(0, 0)[field] if field not in space.free else _least(space, field)


def _least(space: Any, field: str) -> Any:
    cells = space.free[field].cells()
    return cells[0] if cells else space.free[field].low
