"""Launching and resuming: checks before anything is written, then drives the sweep to its end."""

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import catalogue, messages, profiles, recording
from orchestrator.home import Home
from orchestrator.options import LaunchOptions, from_row
from orchestrator.outcome import Outcome
from orchestrator.plan import Plan, make_plan
from orchestrator.store.database import Store, open_store
from orchestrator.store.locks import sweep_lock
from orchestrator.store.rows import SweepRow
from orchestrator.versions import versions

if TYPE_CHECKING:
    from orchestrator.cluster.connect import Cluster
    from orchestrator.core import Core
    from orchestrator.live import Live

TRACKING_SECONDS = 30.0
"""How long the end of a launch waits for the tracker to deliver what is left."""


@dataclass(frozen=True)
class View:
    """How a launch shows what happens; a silent one by default."""

    say: Callable[[str], None] = lambda text: None
    """A line for people."""
    following: Callable[["Core"], Any] = lambda core: None
    """Called with the core before trials start; gives what `tick` is called on."""
    ended: Callable[["Live", Outcome], None] = lambda live, outcome: None
    """A trial has its outcome."""


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


def repeats(plan: Plan, why: str) -> Iterator[Plan]:
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
    check_known(home, plan, why)
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
        check_known(home, plan, why)
        data = look(plan)
    _check_slot(cluster, plan.options)
    home.make()
    names = []
    for single in repeats(plan, why):
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

    options = dataclasses.replace(from_row(sweep.options, sweep.execution), **overrides)
    home.make()
    with open_sweep(home, sweep.id, create=False) as store:
        with store.read() as reader:
            studies = reader.studies(sweep.id)
            counts = reader.outcome_counts(sweep.id)
        for study in studies:
            if any(not outcome.final for outcome in counts[study.id]):
                spec = _data_spec(study.data)
                seen = catalogue.look_at_data(study.task, spec)
                model = catalogue.look_at_backbone(study.backbone)
                recording.check_data(study, seen | {"model": model})
        with connected(options.address) as cluster:
            _check_slot(cluster, options)
            view.say(f"resuming {sweep.id} on {cluster.words}")
            run(store, sweep.id, options, home, view, cluster)


def check_known(home: Home, plan: Plan, why: str) -> None:
    """Refuse a plan whose name stands for another sweep; writes nothing."""
    from orchestrator.store.errors import NoDatabase

    try:
        with open_store(home.store_url, create=False) as store, store.read() as reader:
            for single in repeats(plan, why):
                known = reader.sweep(single.name)
                if known is not None:
                    recording.check_same(known, single)
    except NoDatabase:
        return


@contextmanager
def open_sweep(home: Home, name: str, *, create: bool) -> Iterator[Store]:
    """The database, as the only driver of a sweep."""
    with (
        sweep_lock(home.store_url, name, home.locks),
        open_store(home.store_url, create=create) as store,
    ):
        yield store


def run(
    store: Store, name: str, options: LaunchOptions, home: Home, view: View, cluster: "Cluster"
) -> str:
    """Drive a recorded sweep until it is finished or let go of; its state then."""
    from orchestrator.cluster.connect import choose_slot, num_workers
    from orchestrator.cluster.driver import Limits, drive
    from orchestrator.core import Core
    from orchestrator.summaries import draw_studies
    from orchestrator.tracking import Tracker

    slot = choose_slot(cluster, options.cpus_per_trial, options.gpus_per_trial)
    started = time.time()
    with store.write() as tx:
        recording.begin(tx, name, options.execution, versions())
        messages.sweep_started(tx, name, started)
    core = Core(store, name, devices_per_trial=slot.devices, on_end=view.ended)
    tracker = Tracker(home.store_url, name, home.tracking_uri, home.artifacts)
    tracker.start()
    state = "interrupted"
    try:
        ending = drive(
            core,
            slot,
            num_workers(cluster, slot, options.workers),
            {"cache": str(home.cache), "worker_name": f"worker of {name}"},
            Limits(options.time_limit, options.device_hours, options.max_failures),
            view.following(core),
        )
        state = ending.reason
        if ending.reason != "finished":
            view.say(f"{ending.words}; go on with: orchestrate resume {name}")
    finally:
        picture = home.sweep(name) / "evp.png"
        with store.write() as tx:
            recording.end(tx, name, state, time.time() - started)
        with store.read() as reader:
            sweep = reader.sweep(name)
            assert sweep is not None
            draw_studies(reader, sweep, reader.studies(name), picture)
        with store.write() as tx:
            messages.sweep_ended(tx, name, state, [str(picture)], time.time())
        left = tracker.close(TRACKING_SECONDS)
        if left:
            view.say(f"{left} messages wait for MLflow; the next launch of the sweep sends them")
    return state


def first_line(plan: Plan, why: str, cluster: "Cluster") -> str:
    """What a launch is about to do: profile and why, backbone, data, device."""
    limits = [
        f"{words} {number}"
        for words, number in (
            ("limit-train", plan.options.limit_train),
            ("limit-eval", plan.options.limit_eval),
        )
        if number is not None
    ]
    data = plan.data.data_dir or (
        plan.profile.words if plan.data.source == "demo" else "rows of the Hub"
    )
    device = f"{cluster.gpus:g} GPUs" if cluster.gpus else f"{cluster.cpus:g} CPUs, no GPU"
    return (
        f"sweep {plan.name}: profile {plan.profile.name} ({why}), "
        f"backbone {plan.studies[0].backbone}, {', '.join([f'data: {data}', *limits])}, {device}"
    )


def _check_slot(cluster: "Cluster", options: LaunchOptions) -> None:
    from orchestrator.cluster.connect import choose_slot

    choose_slot(cluster, options.cpus_per_trial, options.gpus_per_trial)


def _data_spec(data: dict[str, Any]) -> Any:
    from trials.spec import DataSpec

    fields = {field.name for field in dataclasses.fields(DataSpec)}
    return DataSpec(**{key: value for key, value in data.items() if key in fields})


def unusable(store: Store, name: str) -> list[str]:
    """The studies of a sweep without a single usable trial, which is a failure of the launch."""
    with store.read() as reader:
        return [
            study.id
            for study in reader.studies(name)
            if not any(
                trial.score is not None and not trial.outcome.failure
                for trial in reader.trials(study.id)
            )
        ]


def picture_path(home: Home, name: str) -> Path:
    """Where the picture of a sweep is."""
    return home.sweep(name) / "evp.png"
