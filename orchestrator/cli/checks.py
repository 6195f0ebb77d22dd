"""What `orchestrate doctor` looks at, each with what to do if it is not well."""

import shutil
import sys
from collections.abc import Callable, Iterator
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
    """Every check in turn; one that raises is a finding too."""
    place = home()
    checks: dict[str, Callable[[Home], str]] = {
        "install": _install,
        "device": _device,
        "ray": _ray,
        "home folder": _home,
        "disk": _disk,
        "database": _database,
        "mlflow": _mlflow,
        "backbone": _backbone,
    }
    for what, check in checks.items():
        try:
            yield Finding(what, True, check(place))
        except Exception as error:  # noqa: BLE001 - the check's job is to say what is wrong
            yield Finding(what, False, " ".join(str(error).split()) or type(error).__name__)


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
        return f"a local cluster starts: {cluster.cpus:g} CPUs, {cluster.gpus:g} GPUs"


def _home(place: Home) -> str:
    place.make()
    return f"{place.folder} can be written"


def _disk(place: Home) -> str:
    free = shutil.disk_usage(place.folder).free
    if free < LEAST_FREE_BYTES:
        raise RuntimeError(f"only {free / 1e9:.1f} GB free at {place.folder}; free some space")
    return f"{free / 1e9:.0f} GB free"


def _database(place: Home) -> str:
    from orchestrator.store.database import open_store

    with open_store(place.store_url, create=True) as store, store.read() as reader:
        return f"{store!r} opens, {len(reader.sweeps())} sweeps"


def _mlflow(place: Home) -> str:
    from orchestrator.tracking import reach

    return reach(place.tracking_uri)


def _backbone(place: Home) -> str:
    from orchestrator import catalogue

    return f"minilm is at hand, fingerprint {catalogue.look_at_backbone('minilm')[:12]}"
