"""Where a task's rows come from: the demo generator, a folder laid out as the Hub is, the Hub."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import datasets
import datasets.config
import yaml
from datasets.exceptions import DatasetsError
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # a lazy export
from huggingface_hub.utils.tqdm import disable_progress_bars

from trials import hub
from trials.spec import DataSpec
from trials.tasks.demo import demo_rows
from trials.tasks.errors import DataError
from trials.tasks.table import Task

Splits = Mapping[str, datasets.Dataset]

_UNREADABLE = (ValueError, OSError, DatasetsError, yaml.YAMLError, httpx.HTTPError)


def open_source(task: Task, data: DataSpec) -> tuple[Splits, str]:
    """Every split of the task by the dataset's own name, and the source in words."""
    datasets.disable_progress_bars()
    disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # what matters, DataError says
    if data.source == "demo":
        return _generate(task), "generated demo task"
    if data.data_dir is None:
        return _from_hub(task)
    folder = _dataset_folder(task, Path(data.data_dir))
    return _from_folder(task, folder), str(folder)


def _generate(task: Task) -> Splits:
    label = (
        datasets.Value("float32")
        if task.labels is None
        else datasets.ClassLabel(names=list(task.labels))
    )
    features = datasets.Features(
        {
            **{field: datasets.Value("string") for field in task.fields},
            "label": label,
            "idx": datasets.Value("int32"),
        }
    )
    names = (task.train, task.validation, *task.extra_splits.values())
    return {
        name: datasets.Dataset.from_list(demo_rows(task.name, name), features=features)
        for name in names
    }


def _dataset_folder(task: Task, data_dir: Path) -> Path:
    if not data_dir.is_dir():
        raise DataError(f"no data folder {data_dir} (asked for task {task.name})")
    places = [data_dir / task.hub_id, data_dir / task.hub_id.split("/")[-1]]
    for place in places:
        if place.is_dir():
            return place
    raise DataError(
        f"no dataset {task.hub_id} for task {task.name}; looked at {places[0]} and {places[1]}"
    )


def _from_folder(task: Task, folder: Path) -> Splits:
    try:
        known = datasets.get_dataset_config_names(str(folder))
        if task.config in known:
            return dict(datasets.load_dataset(str(folder), task.config))
    except _UNREADABLE as error:
        raise DataError(f"cannot read task {task.name} from {folder}: {_line(error)}") from error
    raise DataError(
        f"no config '{task.config}' in {folder} (asked for task {task.name}); "
        f"known: {', '.join(known)}"
    )


def _from_hub(task: Task) -> tuple[Splits, str]:
    online = hub.answers_for_dataset(task.hub_id)
    try:
        if online:
            splits = datasets.load_dataset(task.hub_id, task.config)
        else:
            with _offline():
                splits = datasets.load_dataset(task.hub_id, task.config)
    except _UNREADABLE as error:
        if online:
            raise DataError(
                f"cannot load {task.hub_id} {task.config} from the Hub: {_line(error)}"
            ) from error
        raise DataError(
            f"cannot reach the Hub for {task.hub_id}: give --data-dir DIR with "
            f"DIR/{task.hub_id} in it (the Hub's files: README.md and parquet)"
        ) from error
    cached = "" if online else ", from the cache (the Hub cannot be reached)"
    return dict(splits), f"{task.hub_id} {task.config}, revision {_revision(splits)}{cached}"


@contextmanager
def _offline() -> Iterator[None]:
    """`datasets` looks only into its cache meanwhile."""
    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _revision(splits: Splits) -> str:
    """The commit: `datasets` names the cache folder of a Hub dataset by it."""
    files = next(iter(splits.values())).cache_files
    return Path(files[0]["filename"]).parent.name if files else "unknown"


def _line(error: BaseException) -> str:
    # `datasets` wraps what it met while reading a file
    return " ".join(str(error.__cause__ or error).split())
