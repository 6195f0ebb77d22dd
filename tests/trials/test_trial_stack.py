"""What a stack costs and how lanes leave it: passes, schedules, precision, interrupts."""

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from trial_specs import demo_spec, numbers, points_of, runs_of, stack_of, trainer_of

from trials.activations import Activations
from trials.methods import METHODS
from trials.optimizer import build_optimizer, build_schedule
from trials.run import Bench, run_trial
from trials.spec import Training, TrialSpec
from trials.stack import Interrupted

SST2_STEPS = 4
"""Of 32 rows in batches of 8."""


@contextmanager
def counted_passes(bench: Bench, spec: TrialSpec) -> Iterator[list[int]]:
    """Rows of each pass through the backbone's first block meanwhile."""
    rows: list[int] = []
    block = bench.backbone(spec.backbone).backbone.blocks[0]
    handle = block.register_forward_hook(lambda _, args, __: rows.append(len(args[0])))
    yield rows
    handle.remove()


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_a_training_step_is_one_pass_through_the_backbone_whatever_the_seeds(
    tiny_bert: Path, bench: Bench, seeds: tuple[int, ...]
) -> None:
    spec = demo_spec("aot_fc", tiny_bert, seeds=seeds, batch_size=8)
    stack = stack_of(spec, bench)
    features = bench.features(spec)
    with counted_passes(bench, spec) as rows:
        stack.train_epoch(features["train"], 1, lambda: False)
    assert rows == [8 * len(seeds)] * SST2_STEPS
    with counted_passes(bench, spec) as rows:
        outputs = stack.predict(features["validation"])
    assert sum(rows) == 32 * len(seeds)
    assert outputs.shape == (len(seeds), 32, 2)


def test_head_only_sends_each_example_through_the_backbone_once_for_all_trials(
    tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("head_only", tiny_bert, seeds=(0, 1, 2))
    with counted_passes(bench, spec) as rows:
        points_of(spec, bench)
    assert sum(rows) == 32 + 32
    second = dataclasses.replace(spec, hyperparameters={"learning_rate": 3e-3}, seeds=(5,))
    with counted_passes(bench, spec) as rows:
        points_of(second, bench)
    assert sum(rows) == 0


def test_head_only_gives_the_same_numbers_without_the_kept_states(
    tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("head_only", tiny_bert, seeds=(0, 1))
    kept = points_of(spec, bench)
    trainer = trainer_of(spec, bench)
    trainer.stacks[0]._activations = Activations(trainer.stacks[0].backbone, max_bytes=100)
    with counted_passes(bench, spec) as rows:
        recomputed = list(trainer.points())
    assert sum(rows) == 2 * 2 * (32 + 32)
    for ours, theirs in zip(kept, recomputed, strict=True):
        for one, other in zip(ours.runs, theirs.runs, strict=True):
            assert one.loss == pytest.approx(other.loss, abs=1e-5)
            assert one.train_loss == pytest.approx(other.train_loss, abs=1e-5)
    assert numbers(runs_of(kept, 0)) != numbers(runs_of(kept, 1))


@pytest.mark.parametrize("method", ["aot_fc", "head_only"])
def test_a_lane_that_left_was_as_if_never_there(method: str, tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec(method, tiny_bert, seeds=(0, 1, 2), epochs=4)
    trainer = trainer_of(spec, bench)
    (stack,) = trainer.stacks
    points = trainer.points()
    with counted_passes(bench, spec) as rows:
        seen = [next(points), next(points)]
        trainer.runs[0][1].state = "completed_by_patience"
        trainer.runs = [trainer._leave(stack, trainer.runs[0])]
        assert stack.lanes.seeds == [0, 2]
        assert {len(weight) for weight in stack.trainable()} == {2}
        rows.clear()
        seen += points
    assert all(count % 2 == 0 for count in rows)
    for seed in (0, 2):
        alone = points_of(dataclasses.replace(spec, seeds=(seed,)), bench)
        expected, ours = runs_of(alone, seed), runs_of(seen, seed)
        assert len(ours) == 4
        for one, other in zip(ours, expected, strict=True):
            assert (one.score, one.state) == (other.score, other.state)
            assert one.loss == pytest.approx(other.loss, abs=1e-5)
            assert one.train_loss == pytest.approx(other.train_loss, abs=1e-5)
    assert len(runs_of(seen, 1)) == 2
    assert seen[-1].last


@pytest.mark.parametrize("method", list(METHODS))
def test_an_interrupt_ends_the_trial_between_two_steps(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec(method, tiny_bert, seeds=(0, 1), epochs=3, batch_size=8)
    asked = 0

    def interrupt() -> bool:
        nonlocal asked
        asked += 1
        return asked > first_epoch + 2

    first_epoch = SST2_STEPS * (2 if method == "fine_tuning" else 1)
    points = run_trial(spec, bench, interrupt)
    assert next(points).epoch == 1
    assert asked == first_epoch
    with pytest.raises(Interrupted):
        next(points)
    assert asked == first_epoch + 3
    # the fixture shows that the backbone is the pretrained one; a later trial is not touched
    after, fresh = points_of(spec, bench), points_of(spec, Bench(bench.device))
    assert numbers(runs_of(after, 1)) == numbers(runs_of(fresh, 1))


@pytest.mark.parametrize("method", list(METHODS))
def test_an_error_inside_a_step_leaves_the_backbone_pristine(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    # with its dropout the backbone runs in every step of every method
    spec = demo_spec(method, tiny_bert, backbone_dropout=True)
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise torch.OutOfMemoryError("no memory left")

    points = run_trial(spec, bench)
    block = bench.backbone(spec.backbone).backbone.blocks[1]
    handle = block.register_forward_hook(fail)
    with pytest.raises(torch.OutOfMemoryError):
        next(points)
    handle.remove()
    bench.check()
    assert bench.num_loads == 1


@pytest.mark.parametrize("method", list(METHODS))
def test_backbone_dropout_changes_training_and_is_off_in_evaluation(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec(method, tiny_bert)
    on = dataclasses.replace(
        spec, training=dataclasses.replace(spec.training, backbone_dropout=True)
    )
    still, shaken = points_of(spec, bench)[0].runs[0], points_of(on, bench)[0].runs[0]
    assert abs(still.train_loss - shaken.train_loss) > 1e-4
    stack = stack_of(on, bench)
    validation = bench.features(on)["validation"]
    stack.train_epoch(bench.features(on)["train"], 1, lambda: False)
    outputs = stack.predict(validation)
    assert np.array_equal(outputs, stack.predict(validation))


@pytest.mark.parametrize("method", list(METHODS))
def test_half_precision_trains_and_keeps_its_weights_whole(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec(method, tiny_bert)
    half = dataclasses.replace(spec, training=dataclasses.replace(spec.training, precision="bf16"))
    stack = stack_of(half, bench)
    assert {weight.dtype for weight in stack.trainable()} == {torch.float32}
    ours, whole = points_of(half, bench)[-1].runs[0], points_of(spec, bench)[-1].runs[0]
    assert ours.train_loss == pytest.approx(whole.train_loss, abs=0.05)
    assert ours.train_loss != whole.train_loss


def test_schedules_rise_over_the_warmup_and_stay_or_fall_to_zero() -> None:
    def rates(**protocol: object) -> list[float]:
        training = Training(epochs=2, **protocol)
        optimizer = build_optimizer([([nn.Parameter(torch.zeros(1))], 0.5)], training)
        schedule = build_schedule(optimizer, training, steps_per_epoch=5)
        seen = []
        for _ in range(10):
            seen.append(optimizer.param_groups[0]["lr"] / 0.5)
            optimizer.step()
            schedule.step()
        return [*seen, optimizer.param_groups[0]["lr"] / 0.5]

    assert rates(schedule="constant") == [1.0] * 11
    assert rates(schedule="linear") == pytest.approx([1 - step / 10 for step in range(11)])
    warm = rates(schedule="constant", warmup_ratio=0.4)
    assert warm == pytest.approx([0.25, 0.5, 0.75] + [1.0] * 8)
    both = rates(schedule="linear", warmup_ratio=0.4)
    assert both == pytest.approx([0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0])


@pytest.mark.parametrize(("optimizer", "factor"), [("adam", None), ("adamw", 1 - 0.5 * 0.1)])
def test_weight_decay_is_the_optimisers_own(optimizer: str, factor: float | None) -> None:
    training = Training(optimizer=optimizer, weight_decay=0.1)
    weight = nn.Parameter(torch.tensor([2.0]))
    stepped = build_optimizer([([weight], 0.5)], training)
    weight.grad = torch.zeros(1)
    stepped.step()
    # AdamW shrinks the weight; Adam takes the decay for a gradient, of which it keeps the sign
    assert weight.item() == pytest.approx(2.0 * factor if factor else 2.0 - 0.5, rel=1e-4)


def test_the_protocol_reaches_the_training(tiny_bert: Path, bench: Bench) -> None:
    plain = demo_spec("aot_fc", tiny_bert)
    base = numbers(points_of(plain, bench)[-1].runs)
    for change in (
        {"schedule": "linear"},
        {"warmup_ratio": 0.5},
        {"optimizer": "adamw", "weight_decay": 0.1},
        {"batch_size": 4},
        {"max_length": 6},
    ):
        other = dataclasses.replace(plain, training=dataclasses.replace(plain.training, **change))
        assert numbers(points_of(other, bench)[-1].runs) != base, change


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_waiting_lane_keeps_nothing_on_the_device(tiny_bert: Path) -> None:
    bench = Bench(torch.device("cuda"))
    spec = demo_spec("fine_tuning", tiny_bert, seeds=(0, 1))
    trainer = trainer_of(spec, bench)
    next(trainer.points())
    for stack in trainer.stacks:
        states = list(stack._optimizer.state.values())
        assert len(states) > 40
        averages = [value for state in states for value in state.values() if value.dim()]
        assert {value.device.type for value in averages} == {"cpu"}
        assert all(math.isfinite(value.sum()) for value in averages)
