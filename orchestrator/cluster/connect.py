"""Reaching a Ray cluster, or starting a local one, and fitting the trials onto it."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import Refused
from orchestrator.reachable import check_listens

_TUNE_SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "1e12",  # the database is the truth, not Tune's snapshots
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_MAX_PENDING_TRIALS_PG": "10000",  # the core hands out one trial a worker, however many
    "TUNE_WARN_THRESHOLD_S": "10",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
}
_LOCAL_CLUSTER = {"address": "local", "include_dashboard": True}
_FOR_WORKERS = (
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_CACHE",
    "HF_DATASETS_OFFLINE",
    "HF_TOKEN",
    "HF_ENDPOINT",
)


@dataclass(frozen=True)
class Slot:
    """What one trial gets; the same for every trial of a launch, so that workers stay warm."""

    cpus: float
    gpus: float

    @property
    def bundle(self) -> dict[str, float]:
        """As Ray asks for it."""
        return {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})

    @property
    def devices(self) -> float:
        """Devices that a second of the trial costs: GPUs, else one for the CPU slot."""
        return self.gpus or 1.0


@dataclass(frozen=True)
class Cluster:
    """A connected cluster."""

    cpus: float
    gpus: float
    dashboard: str | None
    words: str


@contextmanager
def connected(address: str | None) -> Iterator[Cluster]:
    """Connected to the cluster at `address`, or to a local one that ends with the block.

    Raises:
        Refused: if there is no cluster at the address, or it does not take the token.
    """
    where = f"--address {address}" if address else f"RAY_ADDRESS {os.environ.get('RAY_ADDRESS')}"
    address = address or os.environ.get("RAY_ADDRESS")
    os.environ.update(_TUNE_SETTINGS)
    if not address:
        # read on import: else Ray takes the machine's outer address and listens on every one
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    import ray

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # without an address Ray would look for a cluster of somebody else's on this machine
    place: dict[str, Any] = {"address": address} if address else _LOCAL_CLUSTER
    try:
        if address:
            check_listens(address)
        with _without_stderr():
            context = ray.init(
                **place,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                runtime_env={"env_vars": _worker_variables()},
                namespace="orchestrate",
            )
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise Refused(
            f"{where}: cannot connect ({reason}); is it running, and is RAY_AUTH_TOKEN its token?"
            if address
            else f"a local Ray cluster cannot start ({reason}); can HOME and /tmp be written?"
        ) from error
    try:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray's
        yield Cluster(
            cpus=resources.get("CPU", 0),
            gpus=resources.get("GPU", 0),
            dashboard=f"http://{context.dashboard_url}" if context.dashboard_url else None,
            words=f"the cluster at {address}" if address else "this machine",
        )
    finally:
        ray.shutdown()


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Ray's native library repeats there, many times, what its exception says once."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _worker_variables() -> dict[str, str]:
    """What workers inherit of our environment: Ray passes on almost nothing by itself."""
    variables = {name: os.environ[name] for name in _FOR_WORKERS if name in os.environ}
    return variables | {"TOKENIZERS_PARALLELISM": "false"}


def choose_slot(cluster: Cluster, cpus: float | None, gpus: float | None) -> Slot:
    """What a trial gets: as asked, else one GPU where there are GPUs, and one CPU.

    Raises:
        Refused: if the cluster has not that much in all.
    """
    slot = Slot(
        cpus=1.0 if cpus is None else cpus,
        gpus=(1.0 if cluster.gpus else 0.0) if gpus is None else gpus,
    )
    for name, asked, there in (
        ("gpus", slot.gpus, cluster.gpus),
        ("cpus", slot.cpus, cluster.cpus),
    ):
        if asked > there:
            raise Refused(
                f"--{name}-per-trial {asked:g}: {cluster.words} has {there:g} {name}; "
                f"ask for at most that many"
            )
    return slot


def num_workers(cluster: Cluster, slot: Slot, most: int | None) -> int:
    """How many trials run at a time: as many as fit, at most `most`."""
    fits = [cluster.cpus // slot.cpus] + ([cluster.gpus // slot.gpus] if slot.gpus else [])
    if slot.gpus and slot.gpus < 1:
        fits[-1] = cluster.gpus * (1 // slot.gpus)
    fitting = max(1, int(min(fits)))
    return min(fitting, most) if most else fitting
