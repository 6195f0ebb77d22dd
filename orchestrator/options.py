"""What a launch can be asked for: from the command line, from a file, or from a sweep's row."""

import dataclasses
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml

from orchestrator.errors import Refused


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Every option of `launch`; None means the profile's or the search space's default."""

    # what the sweep is
    space: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    profile: str | None = None
    backbone: str | None = None
    data_dir: str | None = None
    limit_train: int | None = None
    limit_eval: int | None = None
    search: str = "random"
    trials: int | None = None
    search_seed: int = 0
    seeds: int | None = None
    max_epochs: int | None = None
    patience: int | None = None
    scheduler: str = "asha"
    eta: int = 3
    grace: int = 1
    # how it is run: may differ from one launch of the sweep to the next
    name: str | None = None
    cpus_per_trial: float | None = None
    gpus_per_trial: float | None = None
    workers: int | None = None
    address: str | None = None
    time_limit: float | None = None
    """Seconds."""
    device_hours: float | None = None
    max_failures: int | None = None
    repeats: int = 1

    def __post_init__(self) -> None:
        for name, known in (("search", SEARCHES), ("scheduler", SCHEDULERS)):
            if getattr(self, name) not in known:
                raise Refused(
                    f"--{name} {getattr(self, name)}: no such one; known: {', '.join(known)}"
                )
        for name, (least, strict) in _LEAST.items():
            value = getattr(self, name)
            if value is None or least < value < math.inf or (value == least and not strict):
                continue
            raise Refused(
                f"{option(name)} {value:g}: must be "
                f"{'more than' if strict else 'at least'} {least:g}"
                f"{' and finite' if value == math.inf else ''}"
            )
        if self.gpus_per_trial and self.gpus_per_trial > 1 and self.gpus_per_trial % 1:
            raise Refused(
                f"--gpus-per-trial {self.gpus_per_trial:g}: must be a fraction of one GPU or whole"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """The options that define the sweep."""
        values = dataclasses.asdict(self)
        return {name: values[name] for name in values.keys() - EXECUTION}

    @property
    def execution(self) -> dict[str, Any]:
        """The options that may differ between launches of the sweep."""
        values = dataclasses.asdict(self)
        return {name: values[name] for name in EXECUTION}


EXECUTION = frozenset(
    (
        "name",
        "cpus_per_trial",
        "gpus_per_trial",
        "workers",
        "address",
        "time_limit",
        "device_hours",
        "max_failures",
        "repeats",
    )
)
_LIMITS = frozenset(("time_limit", "device_hours", "max_failures"))
SEARCHES = ("random", "grid", "tpe")
SCHEDULERS = ("asha", "none")
_LEAST: dict[str, tuple[float, bool]] = {
    "limit_train": (1, False),
    "limit_eval": (1, False),
    "trials": (1, False),
    "search_seed": (0, False),
    "seeds": (1, False),
    "max_epochs": (1, False),
    "patience": (1, False),
    "eta": (2, False),
    "grace": (1, False),
    "cpus_per_trial": (0, True),
    "gpus_per_trial": (0, False),
    "workers": (1, False),
    "time_limit": (0, True),
    "device_hours": (0, True),
    "max_failures": (0, False),
    "repeats": (1, False),
}

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}


def option(field: str) -> str:
    """The command-line option of a field."""
    return "--" + field.replace("_", "-")


def seconds(duration: str) -> float:
    """Seconds of `90s`, `30m`, `2h` or `1h30m`.

    Raises:
        Refused: for anything else.
    """
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise Refused(f"duration {duration!r}: must look like 90s, 30m, 2h or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def read_file(path: Path) -> dict[str, Any]:
    """The options that a launch file sets, by field name.

    Raises:
        Refused: if it cannot be read, or sets what is no option or no value of one.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"--config {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise Refused(f"{path.name}{place}: {getattr(error, 'problem', 'not UTF-8')}") from error
    if not isinstance(content, dict):
        raise Refused(f"{path.name}: needs names of launch options with values")
    fields = {field.name: field for field in dataclasses.fields(LaunchOptions)}
    values = {}
    for key, value in content.items():
        name = str(key).removeprefix("--").replace("-", "_")
        if name not in fields:
            known = ", ".join(sorted(field.replace("_", "-") for field in fields))
            raise Refused(f"{path.name}, key {key!r}: no launch option; known: {known}")
        values[name] = _value(f"{path.name}, key {key!r}", fields[name], value)
    return values


def _value(where: str, field: dataclasses.Field[Any], value: object) -> object:
    kinds = get_args(field.type) or (field.type,)
    if get_origin(field.type) is tuple:
        items = list(names(value)) if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise Refused(f"{where}: needs a name or a list of names, got {value!r}")
        return tuple(item.strip() for item in items)
    if field.name == "time_limit" and isinstance(value, str):
        return seconds(value)
    if isinstance(value, bool) or not isinstance(value, (*_classes(kinds),)):
        wanted = " or ".join(kind.__name__ for kind in _classes(kinds))
        raise Refused(f"{where}: needs {wanted}, got {value!r}")
    return value


def _classes(kinds: tuple[Any, ...]) -> list[type]:
    classes = [kind for kind in kinds if isinstance(kind, type) and kind is not type(None)]
    return [*classes, int] if float in classes else classes


def names(text: str | None) -> tuple[str, ...]:
    """The names in a comma list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def from_row(options: dict[str, Any], execution: dict[str, Any]) -> LaunchOptions:
    """The options that a sweep's row holds."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in (options | execution).items()
        if name in FIELDS
    }
    return LaunchOptions(**values)


def of_resume(
    options: dict[str, Any], execution: dict[str, Any], overrides: dict[str, Any]
) -> LaunchOptions:
    """The options of a sweep's row, for another launch of it that sets some anew.

    The limits of the launch before are dropped: those that ended it would end this one at once.
    """
    kept = {name: value for name, value in execution.items() if name not in _LIMITS}
    return dataclasses.replace(from_row(options, kept), **overrides)


FIELDS = frozenset(field.name for field in dataclasses.fields(LaunchOptions))
