"""One trial, alone: where task, backbone, method and loop meet."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from trials import methods
from trials.activations import Activations
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.load import load
from trials.methods.method import Method
from trials.spec import DataSpec, EvalPoint, TrialSpec
from trials.stack import Interrupt, Stack
from trials.tasks.batches import epoch_batches
from trials.tasks.features import Features, featurize
from trials.tasks.load import load_task
from trials.tasks.table import TASKS, Task
from trials.training import Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A backbone with what is kept for it."""

    backbone: Backbone
    activations: Activations


class Bench:
    """What stays loaded between trials: one backbone and the tokenised data used with it."""

    def __init__(self, device: torch.device | None = None, cache_dir: Path | None = None) -> None:
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.num_loads = 0
        """How often a backbone was loaded."""
        self._cache_dir = cache_dir
        self._name: str | None = None
        self._loaded: Loaded | None = None
        self._features: dict[tuple[str, DataSpec, int], dict[str, Features]] = {}

    def backbone(self, name: str) -> Loaded:
        """The backbone, loaded if it is not the resident one."""
        if self._loaded is None or self._name != name:
            self._features.clear()
            self._loaded = None  # let go of the old one first: two may not fit
            backbone = load(name, self.device)
            self._loaded, self._name = Loaded(backbone, Activations(backbone)), name
            self.num_loads += 1
        return self._loaded

    def check(self) -> None:
        """Run the resident backbone once; raises if it no longer works."""
        if self._loaded is not None:
            ones = torch.ones(1, 2, dtype=torch.long, device=self.device)
            self._loaded.backbone.run(Text(ones, ones), Edits()).sum().item()

    def features(self, spec: TrialSpec) -> dict[str, Features]:
        """Every split of the trial's task, tokenised for its backbone."""
        backbone = self.backbone(spec.backbone).backbone
        room = backbone.shape.max_tokens - build_method(spec).num_positions
        max_length = min(spec.training.max_length, room)
        key = (spec.task, spec.data, max_length)
        if key not in self._features:
            task = find_task(spec.task)
            rows = load_task(task, spec.data)
            self._features[key] = featurize(
                rows, task, backbone.tokenizer, max_length, self._cache_dir
            )
        return self._features[key]


def build_method(spec: TrialSpec) -> Method:
    """The trial's method with its hyperparameters, checked.

    Raises:
        ValueError: if the method or one of its values is unknown or outside its domain.
    """
    try:
        return methods.find(spec.method)(**spec.hyperparameters)  # type: ignore[arg-type]  # the fields differ by method
    except TypeError as error:  # a field too many or too few
        raise ValueError(f"method {spec.method}: {error}") from error


def find_task(name: str) -> Task:
    """The task of a name.

    Raises:
        ValueError: if there is none.
    """
    if name not in TASKS:
        raise ValueError(f"no task {name!r}; known: {', '.join(TASKS)}")
    return TASKS[name]


def run_trial(
    spec: TrialSpec, bench: Bench | None = None, interrupt: Interrupt = lambda: False
) -> Iterator[EvalPoint]:
    """Train one assignment with all its seeds, one point after each epoch.

    Args:
        spec: what to train.
        bench: keeps backbone and data for the next trial.
        interrupt: asked before every step; true ends the trial with `Interrupted`.

    Raises:
        ValueError: for a method, task, backbone or data that cannot be had or do not fit.
        Interrupted: if asked to end.
    """
    yield from build_trainer(spec, bench or Bench(), interrupt).points()


def build_trainer(spec: TrialSpec, bench: Bench, interrupt: Interrupt) -> Trainer:
    """Everything that a trial trains with, ready for its first epoch; raises as `run_trial`."""
    method, task = build_method(spec), find_task(spec.task)
    loaded = bench.backbone(spec.backbone)
    method.check(loaded.backbone.shape)
    features = bench.features(spec)
    lengths = features["train"].lengths
    steps = spec.training.eval_every or len(
        epoch_batches(lengths, spec.training.batch_size, 0, [torch.Generator()])
    )
    loaded.activations.begin_trial()
    groups = [(seed,) for seed in spec.seeds] if method.trains_backbone else [spec.seeds]
    stacks = [
        Stack(
            loaded.backbone,
            loaded.activations,
            method,
            spec.training,
            seeds,
            task.num_outputs,
            steps,
        )
        for seeds in groups
    ]
    log.info("%s: %s on %s with %s", spec.trial, spec.method, spec.task, spec.hyperparameters)
    return Trainer(stacks, features, task, spec.training, interrupt)
