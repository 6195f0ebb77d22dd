"""The plan of a launch and what it will cost, as text or JSON."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import typer
from rich import box
from rich.table import Table

from orchestrator import catalogue
from orchestrator.cli.app import line, out
from orchestrator.counts import Counted, counted, head_parameters
from orchestrator.errors import Refused
from orchestrator.estimate import Cost, epoch_seconds, local_speed, study_cost
from orchestrator.home import home
from orchestrator.launch import check_known, plan_of
from orchestrator.options import LaunchOptions
from orchestrator.plan import Plan, Study

SHOWN = 40
"""Assignments listed at most."""


@dataclass(frozen=True)
class Priced:
    """A study with its data, parameters and cost."""

    study: Study
    rows: dict[str, int] | None
    """None if the data is not at hand."""
    assignments: list[Counted]
    head_parameters: int
    cost: Cost

    @property
    def adapter_parameters(self) -> tuple[int, int]:
        """Of the smallest and the largest assignment."""
        counts = [each.adapter_parameters for each in self.assignments]
        return min(counts), max(counts)


def show_plan(options: LaunchOptions, *, as_json: bool) -> None:
    """Print what a launch would do; nothing is written or started."""
    plan, why = plan_of(options)
    check_known(home(), plan)
    data, missing = _data(plan)
    speed = local_speed() if data else 0.0
    priced = [_price(plan, study, data.get(study.task), speed) for study in plan.studies]
    if as_json:
        typer.echo(json.dumps(_as_json(plan, why, priced) | {"missing": missing}, indent=2))
    else:
        _print(plan, why, priced)
        if missing:
            line(f"no time estimated, the data is not at hand: {missing}")


def _data(plan: Plan) -> tuple[dict[str, dict[str, Any]], str | None]:
    """What each task's rows are; of the Hub's, that they cannot be had is no reason to refuse."""
    tasks = dict.fromkeys(study.task for study in plan.studies)
    try:
        return {task: catalogue.look_at_data(task, plan.data) for task in tasks}, None
    except Refused as reason:
        if plan.data.source == "demo" or plan.data.data_dir is not None:
            raise
        return {}, str(reason)


def _price(plan: Plan, study: Study, data: dict[str, Any] | None, speed: float) -> Priced:
    options = plan.options
    weights, passes = catalogue.forward_cost(study.space.method, study.backbone)
    cost = study_cost(
        study,
        grace=options.grace,
        eta=options.eta,
        asha=options.scheduler == "asha",
        epoch_seconds=epoch_seconds(study, data, weights, passes, speed) if data else None,
    )
    rows = data["rows"] if data else None
    return Priced(study, rows, counted(study, options), head_parameters(study), cost)


def _as_json(plan: Plan, why: str, priced: list[Priced]) -> dict[str, Any]:
    return {
        "sweep": plan.name,
        "profile": plan.profile.name,
        "why": why,
        "backbone": plan.options.backbone,
        "studies": [
            {
                "study": item.study.label,
                "space": item.study.space.name,
                "method": item.study.space.method,
                "task": item.study.task,
                "rows": item.rows,
                "assignments": item.study.num_trials,
                "seeds": item.study.num_seeds,
                "epochs_at_most": item.cost.epochs_at_most,
                "epochs_expected": round(item.cost.epochs_expected, 1),
                "device_seconds": item.cost.seconds,
                "bytes": item.cost.num_bytes,
                "adapter_parameters": list(item.adapter_parameters),
                "head_parameters": item.head_parameters,
                "trials": [dataclasses.asdict(each) for each in item.assignments],
            }
            for item in priced
        ],
        "repeats": plan.options.repeats,
    }


def _print(plan: Plan, why: str, priced: list[Priced]) -> None:
    line(
        f"sweep {plan.name}: profile {plan.profile.name} ({why}), "
        f"backbone {plan.options.backbone}, search {plan.options.search}, "
        f"scheduler {plan.options.scheduler}"
    )
    out.print(_table(priced))
    if len(priced) == 1:
        out.print(_assignments(priced[0].assignments))
    heads = sorted({item.head_parameters for item in priced})
    line(
        "parameters are the adapter's, from the smallest assignment to the largest; the head has "
        f"{' to '.join(f'{count:,}' for count in dict.fromkeys((heads[0], heads[-1])))} more"
    )
    if plan.options.scheduler == "asha":
        line("epochs expected under ASHA, if a trial's rank does not change; patience not counted")
    line(_total(plan, priced))


def _table(priced: list[Priced]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("study", "rows", "assignments", "seeds", "epochs", "expected", "parameters"):
        right = name != "study"
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for item in priced:
        low, high = (short(count) for count in item.adapter_parameters)
        table.add_row(
            item.study.label,
            f"{item.rows['train']:,}" if item.rows else "?",
            str(item.study.num_trials),
            str(item.study.num_seeds),
            f"<= {item.cost.epochs_at_most:,}",
            f"{item.cost.epochs_expected:,.0f}",
            low if low == high else f"{low}-{high}",
        )
    return table


def _assignments(rows: list[Counted]) -> Table:
    """The first assignments of a study, a row each; all of them are in the JSON."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("trial", justify="right")
    table.add_column("values", overflow="fold")
    table.add_column("parameters", justify="right")
    for row in rows[:SHOWN]:
        values = " ".join(f"{key}={_value(value)}" for key, value in row.values.items())
        number = "?" if row.k is None else str(row.k)
        table.add_row(number, values, f"{row.adapter_parameters:,}")
    if len(rows) > SHOWN:
        table.add_row("...", f"{len(rows) - SHOWN} more: see --json", "")
    return table


def _value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _total(plan: Plan, priced: list[Priced]) -> str:
    times = plan.options.repeats
    sweeps = f" for {times} independent sweeps" if times > 1 else ""
    disk = times * sum(item.cost.num_bytes for item in priced)
    words = f"about {max(1, round(disk / 1e6))} MB of disk{sweeps}"
    seconds = [item.cost.seconds for item in priced if item.cost.seconds is not None]
    if not seconds:
        return words
    return (
        f"about {duration(times * sum(seconds))} of one CPU thread like this machine's, divided "
        f"by the number of workers (a GPU is far faster); {words}"
    )


def short(count: int) -> str:
    """A number of parameters in at most five characters."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
