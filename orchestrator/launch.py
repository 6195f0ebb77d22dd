"""Launching and resuming: checks before anything is written, then drives the sweep to its end."""

import dataclasses
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator import catalogue, plan_rows, profiles, recording
from orchestrator.home import Home
from orchestrator.options import LaunchOptions, of_resume
from orchestrator.plan import Plan, make_plan
from orchestrator.running import View, open_sweep, run
from orchestrator.store.database import open_store
from orchestrator.store.rows import SweepRow
from orchestrator.versions import versions

if TYPE_CHECKING:
    from orchestrator.cluster.connect import Cluster


def plan_of(options: LaunchOptions, num_gpus: float | None = None) -> tuple[Plan, str]:
    """The plan of a launch, and why it has its profile."""
    from_environment = os.environ.get("ORCHESTRATE_PROFILE")
    if num_gpus is None:
        decided = options.profile or from_environment
        num_gpus = 0 if decided else catalogue.num_local_gpus()
    profile, why = profiles.choose(options.profile, from_environment, num_gpus)
    return make_plan(options, profile), why


def look(plan: Plan) -> dict[str, dict[str, Any]]:
    """What each task's rows and the backbone's weights are, which must all be there."""
    model = catalogue.look_at_backbone(plan.studies[0].backbone)
    tasks = dict.fromkeys(study.task for study in plan.studies)
    return {task: catalogue.look_at_data(task, plan.data) | {"model": model} for task in tasks}


def repeats(plan: Plan) -> Iterator[Plan]:
    """The independent sweeps of a launch: other search seeds, other names."""
    count = plan.options.repeats
    if count == 1:
        yield plan
        return
    for number in range(count):
        options = dataclasses.replace(
            plan.options,
            name=f"{plan.name}-r{number + 1}",
            search_seed=plan.options.search_seed + number,
        )
        yield make_plan(options, plan.profile)


def launch(options: LaunchOptions, home: Home, view: View) -> list[str]:
    """Run a launch to its end; the names of its sweeps.

    Raises:
        Refused: before anything is written, for what cannot be done.
    """
    from orchestrator.cluster.connect import connected

    if options.address and not (options.profile or os.environ.get("ORCHESTRATE_PROFILE")):
        with connected(options.address) as cluster:
            plan, why = plan_of(options, cluster.gpus)
            return _launch(plan, why, home, view, cluster)
    plan, why = plan_of(options)
    if check_known(home, plan):
        return [single.name for single in repeats(plan)]
    data = look(plan)
    with connected(options.address) as cluster:
        return _launch(plan, why, home, view, cluster, data)


def _launch(
    plan: Plan,
    why: str,
    home: Home,
    view: View,
    cluster: "Cluster",
    data: dict[str, dict[str, Any]] | None = None,
) -> list[str]:
    if data is None:
        if check_known(home, plan):
            return [single.name for single in repeats(plan)]
        data = look(plan)
    _check_slot(cluster, plan.options)
    home.make()
    names = []
    for single in repeats(plan):
        view.say(first_line(single, why, cluster))
        with open_sweep(home, single.name, create=True) as store:
            with store.write() as tx:
                recording.record(tx, single, data, versions())
            run(store, single.name, single.options, home, view, cluster)
        names.append(single.name)
    return names


def resume(sweep: SweepRow, overrides: dict[str, Any], home: Home, view: View) -> None:
    """Go on with a sweep that is in the database.

    Args:
        sweep: its row.
        overrides: execution options that this launch sets anew.
        home: where everything local is.
        view: how to show what happens.

    Raises:
        Refused: if it is being driven, or its data or backbone are gone or others.
    """
    from orchestrator.cluster.connect import connected

    options = of_resume(sweep.options, sweep.execution, overrides)
    home.make()
    with open_sweep(home, sweep.id, create=False) as store:
        with store.read() as reader:
            studies = reader.studies(sweep.id)
            counts = reader.outcome_counts(sweep.id)
        for study in studies:
            if any(not outcome.final for outcome in counts[study.id]):
                seen = catalogue.look_at_data(study.task, plan_rows.data_spec(study))
                model = catalogue.look_at_backbone(study.backbone)
                recording.check_data(study, seen | {"model": model})
        with connected(options.address) as cluster:
            _check_slot(cluster, options)
            view.say(f"resuming {sweep.id} on {cluster.words}")
            run(store, sweep.id, options, home, view, cluster)


def check_known(home: Home, plan: Plan) -> bool:
    """Whether every sweep of the plan is there and finished; writes nothing.

    Raises:
        Refused: for a plan that could not be recorded, or whose name stands for another sweep.
    """
    from orchestrator.store.errors import NoDatabase

    home.check()
    done = True
    try:
        with open_store(home.store_url, create=False) as store, store.read() as reader:
            for single in repeats(plan):
                known = reader.sweep(single.name)
                if known is not None:
                    recording.check_same(known, single)
                    grown = known.options != single.identity
                    done = done and known.state == "finished" and not grown
                else:
                    done = False
    except NoDatabase:
        return False
    return done


def first_line(plan: Plan, why: str, cluster: "Cluster") -> str:
    """What a launch is about to do: profile and why, backbone, data, device."""
    data = plan.data.data_dir or (
        plan.profile.words if plan.data.source == "demo" else "rows of the Hub"
    )
    parts = [
        f"profile {plan.profile.name} ({why})",
        f"backbone {plan.studies[0].backbone}",
        f"data: {data}",
        f"limit-train {plan.options.limit_train}" if plan.options.limit_train else None,
        f"limit-eval {plan.options.limit_eval}" if plan.options.limit_eval else None,
        f"{cluster.gpus:g} GPUs" if cluster.gpus else f"{cluster.cpus:g} CPUs, no GPU",
        f"Ray dashboard {cluster.dashboard}" if cluster.dashboard else None,
    ]
    return f"sweep {plan.name}: {', '.join(part for part in parts if part)}"


def _check_slot(cluster: "Cluster", options: LaunchOptions) -> None:
    from orchestrator.cluster.connect import choose_slot

    choose_slot(cluster, options.cpus_per_trial, options.gpus_per_trial)
