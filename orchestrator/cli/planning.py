"""The plan of a launch and what it will cost, as text or JSON."""

import json
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from orchestrator import catalogue
from orchestrator.cli.app import line, out
from orchestrator.estimate import Cost, epoch_seconds, local_speed, study_cost
from orchestrator.home import home
from orchestrator.launch import check_known, look, plan_of
from orchestrator.options import LaunchOptions
from orchestrator.plan import Plan, Study


@dataclass(frozen=True)
class Priced:
    """A study with its data, parameters and cost."""

    study: Study
    rows: dict[str, int]
    adapter_parameters: tuple[int, int]
    """Of the smallest and the largest assignment."""
    head_parameters: int
    cost: Cost


def show_plan(options: LaunchOptions, *, as_json: bool) -> None:
    """Print what a launch would do; nothing is written or started."""
    plan, why = plan_of(options)
    check_known(home(), plan, why)
    priced = price(plan)
    if as_json:
        out.print_json(json.dumps(_as_json(plan, why, priced)))
    else:
        _print(plan, why, priced)


def price(plan: Plan) -> list[Priced]:
    """Every study of a plan with what it will take."""
    data = look(plan)
    speed = local_speed()
    return [_price(plan, study, data[study.task], speed) for study in plan.studies]


def _price(plan: Plan, study: Study, data: dict[str, Any], speed: float) -> Priced:
    options = plan.options
    weights, passes = catalogue.forward_cost(study.space.method, study.backbone)
    cost = study_cost(
        study,
        grace=options.grace,
        eta=options.eta,
        asha=options.scheduler == "asha",
        epoch_seconds=epoch_seconds(study, data, weights, passes, speed),
    )
    smallest, largest, head = parameter_range(study)
    return Priced(study, data["rows"], (smallest, largest), head, cost)


def parameter_range(study: Study) -> tuple[int, int, int]:
    """Adapter parameters of the study's smallest and largest assignment, and the head's."""
    fields = catalogue.method_info(study.space.method).hyperparameters
    counts = set()
    head = 0
    outputs = catalogue.num_outputs(study.task)
    for k in range(min(study.num_trials, 64)):
        values = study.space.draw(0, k)
        own = {key: value for key, value in values.items() if key in fields}
        adapter, head = catalogue.parameters(study.space.method, own, study.backbone, outputs)
        counts.add(adapter)
    return min(counts), max(counts), head


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
                "device_seconds": round(item.cost.seconds, 1),
                "bytes": item.cost.num_bytes,
                "adapter_parameters": list(item.adapter_parameters),
                "head_parameters": item.head_parameters,
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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("study", "rows", "assignments", "seeds", "epochs <=", "expected", "parameters"):
        table.add_column(name, justify="left" if name == "study" else "right")
    for item in priced:
        low, high = item.adapter_parameters
        table.add_row(
            item.study.label,
            f"{item.rows['train']:,}",
            str(item.study.num_trials),
            str(item.study.num_seeds),
            f"{item.cost.epochs_at_most:,}",
            f"{item.cost.epochs_expected:,.0f}",
            f"{low:,}" if low == high else f"{low:,}-{high:,}",
        )
    out.print(table)
    times = plan.options.repeats
    seconds = times * sum(item.cost.seconds for item in priced)
    num_bytes = times * sum(item.cost.num_bytes for item in priced)
    again = f" in {times} independent sweeps" if times > 1 else ""
    line(
        f"about {duration(seconds)} on one CPU thread like this machine's (a GPU is far faster), "
        f"divided by the number of workers{again}; about {max(1, round(num_bytes / 1e6))} MB of "
        f"disk"
    )
    line(
        "parameters are the adapter's, from the smallest assignment to the largest; the head has "
        f"{priced[0].head_parameters:,} more"
    )
    if plan.options.scheduler == "asha":
        line("epochs expected under ASHA, if a trial's rank does not change; patience not counted")


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
