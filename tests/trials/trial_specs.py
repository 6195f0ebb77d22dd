"""Trials of the tests: hyperparameters from each method's own space, on a tiny backbone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from searchspaces import files
from trials import methods
from trials.backbones.files import shape_of
from trials.run import Bench, build_trainer, run_trial
from trials.spec import TRAINING_FIELDS, DataSpec, EvalPoint, RunPoint, Training, TrialSpec
from trials.stack import Stack
from trials.training import Trainer


def demo_spec(
    method: str,
    backbone: Path | str,
    *,
    task: str = "sst2",
    seeds: Sequence[int] = (0,),
    data_dir: Path | None = None,
    limit_train: int = 32,
    limit_eval: int = 32,
    hyperparameters: dict[str, Any] | None = None,
    **training: Any,
) -> TrialSpec:
    """The first draw of the method's demo space that the backbone takes, with these changes."""
    space = files.load(method).space("demo", task=task, family="bert")
    draws = [space.draw(0, k) for k in range(30)]
    drawn = next((draw for draw in draws if fits(method, draw, backbone)), draws[0])
    own = {key: value for key, value in drawn.items() if key not in TRAINING_FIELDS}
    protocol = {key: value for key, value in drawn.items() if key in TRAINING_FIELDS}
    return TrialSpec(
        trial="test",
        task=task,
        backbone=str(backbone),
        method=method,
        hyperparameters=own | (hyperparameters or {}),
        training=Training(**{**space.training, **protocol, "epochs": 2, **training}),
        seeds=tuple(seeds),
        data=DataSpec(
            source="demo" if data_dir is None else "hub",
            data_dir=None if data_dir is None else str(data_dir),
            limit_train=limit_train,
            limit_eval=limit_eval,
        ),
    )


def fits(method: str, drawn: dict[str, Any], backbone: Path | str) -> bool:
    """Whether a backbone takes a draw: a tiny one has fewer blocks than the spaces are made for."""
    if str(backbone) == "nowhere":
        return True
    own = {key: value for key, value in drawn.items() if key not in TRAINING_FIELDS}
    try:
        methods.find(method)(**own).check(shape_of(str(backbone)))
    except ValueError:
        return False
    return True


def trainer_of(spec: TrialSpec, bench: Bench) -> Trainer:
    return build_trainer(spec, bench, lambda: False)


def stack_of(spec: TrialSpec, bench: Bench) -> Stack:
    (stack,) = trainer_of(spec, bench).stacks
    return stack


def points_of(spec: TrialSpec, bench: Bench) -> list[EvalPoint]:
    return list(run_trial(spec, bench))


def runs_of(points: Sequence[EvalPoint], seed: int) -> list[RunPoint]:
    """The evaluations of one seed."""
    return [run for point in points for run in point.runs if run.seed == seed]


def numbers(runs: Sequence[RunPoint]) -> list[tuple[float | None, ...]]:
    """What of a run must repeat."""
    return [(run.score, run.value, run.loss, run.train_loss) for run in runs]


def assert_pristine(bench: Bench) -> None:
    assert bench._name is not None
    backbone = bench.backbone(bench._name).backbone
    stored = load_file(Path(bench._name) / "model.safetensors")
    for name, weight in backbone.model.named_parameters():
        assert torch.equal(weight, stored[name]), name
        assert not weight.requires_grad, name
        assert weight.grad is None, name
    assert not any(module.training for module in backbone.model.modules())
