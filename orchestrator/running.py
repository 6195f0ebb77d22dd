"""Driving a recorded sweep on a connected cluster until it is finished or let go of."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import messages, recording
from orchestrator.home import Home
from orchestrator.options import LaunchOptions
from orchestrator.outcome import Outcome
from orchestrator.store.database import Store, open_store
from orchestrator.store.locks import sweep_lock
from orchestrator.versions import versions

if TYPE_CHECKING:
    from orchestrator.cluster.connect import Cluster
    from orchestrator.core import Core
    from orchestrator.live import Live
    from orchestrator.tracking import Tracker

TRACKING_SECONDS = 30.0
"""How long the end of a launch waits for the tracker to deliver what is left."""


@dataclass(frozen=True)
class View:
    """How a launch shows what happens; a silent one by default."""

    say: Callable[[str], None] = lambda text: None
    """A line for people."""
    following: Callable[["Core"], Callable[[], None]] = lambda core: lambda: None
    """Called with the core before trials start; gives what is called many times a second."""
    ended: Callable[["Live", Outcome], None] = lambda live, outcome: None
    """A trial has its outcome."""


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
    from orchestrator.tracking import Tracker

    slot = choose_slot(cluster, options.cpus_per_trial, options.gpus_per_trial)
    started = time.time()
    with store.write() as tx:
        recording.begin(tx, name, options.execution, versions())
        messages.sweep_started(tx, name, started)
    core = Core(store, name, devices_per_trial=slot.devices, on_end=view.ended)
    tracker = Tracker(home.store_url, name, home.tracking_uri, home.artifacts)
    tracker.start()
    try:
        ending = drive(
            core,
            slot,
            num_workers(cluster, slot, options.workers),
            {"cache": str(home.cache), "worker_name": f"worker of {name}"},
            Limits(options.time_limit, options.device_hours, options.max_failures),
            view.following(core),
        )
        if ending.reason != "finished":
            view.say(f"{ending.words}; go on with: orchestrate resume {name}")
    except BaseException as error:
        try:
            _end(store, name, "interrupted", started, home, tracker, view)
        except Exception as second:  # noqa: BLE001 - it must not hide why the launch failed
            error.add_note(
                f"and then, at the end of sweep {name}: {type(second).__name__}: {second}"
            )
        raise
    _end(store, name, ending.reason, started, home, tracker, view)
    return ending.reason


def _end(
    store: Store,
    name: str,
    state: str,
    started: float,
    home: Home,
    tracker: "Tracker",
    view: View,
) -> None:
    """Record how the driver let go of a sweep, draw it, and give the tracker time for the rest."""
    from orchestrator.summaries import draw_studies

    picture = picture_path(home, name)
    try:
        with store.write() as tx:
            recording.end(tx, name, state, time.time() - started)
        with store.read() as reader:
            sweep = reader.sweep(name)
            assert sweep is not None
            draw_studies(reader, sweep, reader.studies(name), picture)
        with store.write() as tx:
            messages.sweep_ended(tx, name, state, [str(picture)], time.time())
    finally:
        left = tracker.close(TRACKING_SECONDS)
    if left:
        view.say(f"{left} messages wait for MLflow; the next launch of the sweep sends them")


def deliver(home: Home, name: str) -> None:
    """Send MLflow what an earlier launch of a sweep could not."""
    from orchestrator.tracking import Tracker

    tracker = Tracker(home.store_url, name, home.tracking_uri, home.artifacts)
    tracker.start()
    tracker.close(TRACKING_SECONDS)


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
