"""What `orchestrate doctor` looks at, each with what to do if it is not well."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.home import Home, home
from orchestrator.versions import versions

LEAST_FREE_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    ok: bool
    words: str


def examine() -> Iterator[Finding]:
    """Every check in turn."""
    return map(examine_one, CHECKS)


def examine_one(what: str) -> Finding:
    """One check; an error that it raises is a finding too."""
    try:
        return Finding(what, True, CHECKS[what](home()))
    except Exception as error:  # noqa: BLE001 - the check's job is to say what is wrong
        return Finding(what, False, " ".join(str(error).split()) or type(error).__name__)


def _install(place: Home) -> str:
    found = versions()
    names = ("orchestrate", "ray", "torch", "transformers", "mlflow", "optuna")
    missing = [name for name in names if found[name] is None]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)}; run: pip install orchestrate")
    return f"Python {sys.version.split()[0]}, " + ", ".join(f"{n} {found[n]}" for n in names)


def _device(place: Home) -> str:
    import torch

    if not torch.cuda.is_available():
        return "no GPU; the profile is demo unless --profile says otherwise"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return f"{len(names)} GPUs: {', '.join(names)}; the profile is paper unless --profile says so"


def _ray(place: Home) -> str:
    from orchestrator.cluster.connect import connected

    with connected(None) as cluster:
        return f"Ray runs on {cluster.words}: {cluster.cpus:g} CPUs, {cluster.gpus:g} GPUs"


def _home(place: Home) -> str:
    place.make()
    return f"{place.folder} can be written"


def _disk(place: Home) -> str:
    place.make()
    free = shutil.disk_usage(place.folder).free
    if free < LEAST_FREE_BYTES:
        raise RuntimeError(f"only {free / 1e9:.1f} GB free at {place.folder}; free some space")
    return f"{free / 1e9:.0f} GB free"


def _database(place: Home) -> str:
    from orchestrator.store.database import open_store

    with (
        _named_by("ORCHESTRATE_DB", place),
        open_store(place.store_url, create=True) as store,
        store.read() as reader,
    ):
        return f"{store!r} opens, {len(reader.sweeps())} sweeps"


def _mlflow(place: Home) -> str:
    from orchestrator.tracking import reach

    with _named_by("MLFLOW_TRACKING_URI", place):
        return reach(place.tracking_uri)


@contextmanager
def _named_by(variable: str, place: Home) -> Iterator[None]:
    """Ends what is wrong with what a variable names in what to do; without it, home holds it."""
    if not os.environ.get(variable):
        place.make()
    try:
        yield
    except Exception as error:
        if not os.environ.get(variable):
            raise
        raise RuntimeError(f"{error}; is {variable} right, and what it names running?") from error


def _backbone(place: Home) -> str:
    from orchestrator import catalogue

    return f"minilm is at hand, fingerprint {catalogue.look_at_backbone('minilm')[:12]}"


CHECKS: dict[str, Callable[[Home], str]] = {
    "install": _install,
    "device": _device,
    "ray": _ray,
    "home folder": _home,
    "disk": _disk,
    "database": _database,
    "mlflow": _mlflow,
    "backbone": _backbone,
}
