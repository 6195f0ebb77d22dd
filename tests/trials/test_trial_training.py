"""The training loop: best checkpoint, patience, divergence, every kind of task."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from trial_specs import demo_spec, numbers, points_of, runs_of, trainer_of

from trials.methods import METHODS
from trials.run import Bench
from trials.spec import EvalPoint, RunPoint, Training
from trials.tasks.metrics import METRICS
from trials.tasks.table import TASKS
from trials.training import LOSS_CAP, Run, Trainer, usable


def assert_finite(points: list[EvalPoint]) -> None:
    for point in points:
        assert math.isfinite(point.seconds)
        assert point.seconds > 0
        for run in point.runs:
            values = [run.value, run.score, *run.metrics.values()]
            values += [loss for loss in (run.loss, run.train_loss) if loss is not None]
            assert all(math.isfinite(value) for value in values), run


def test_points_come_one_an_epoch_and_say_which_is_the_last(tiny_bert: Path, bench: Bench) -> None:
    points = points_of(demo_spec("aot_fc", tiny_bert, seeds=(4, 2), epochs=3), bench)
    assert [point.epoch for point in points] == [1, 2, 3]
    assert [point.last for point in points] == [False, False, True]
    assert [[run.seed for run in point.runs] for point in points] == [[4, 2]] * 3
    states = [[run.state for run in point.runs] for point in points]
    assert states == [["running"] * 2] * 2 + [["completed"] * 2]
    assert_finite(points)


@pytest.mark.parametrize("method", list(METHODS))
def test_training_lowers_the_loss(method: str, tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec(
        method,
        tiny_bert,
        hyperparameters={"learning_rate": 3e-3},
        epochs=16,
        head_learning_rate=1e-2,
    )
    losses = [run.train_loss for run in runs_of(points_of(spec, bench), 0)]
    assert min(losses) < losses[0] - 0.05


def test_the_score_is_the_best_value_so_far(tiny_bert: Path, bench: Bench) -> None:
    values = {"learning_rate": 2e-2}
    spec = demo_spec("aot_fc", tiny_bert, seeds=(0, 1, 2), epochs=8, hyperparameters=values)
    points = points_of(spec, bench)
    fell = 0
    for seed in spec.seeds:
        runs = runs_of(points, seed)
        best = [max(run.value for run in runs[: i + 1]) for i in range(len(runs))]
        assert [run.score for run in runs] == best
        fell += sum(run.value < run.score for run in runs)
    assert fell > 0  # or best and latest would be the same


def trainer_with(patience: int | None, epochs: int) -> Trainer:
    training = Training(patience=patience, epochs=epochs)
    return Trainer([], {}, TASKS["sst2"], training, lambda: False)


@pytest.mark.parametrize(
    ("patience", "epochs", "values", "end"),
    [
        (None, 4, [0.5, 0.4, 0.3, 0.2], "completed"),
        (1, 4, [0.5, 0.6, 0.6], "completed_by_patience"),
        (2, 9, [0.5, 0.4, 0.6, 0.6, 0.6], "completed_by_patience"),
        (2, 9, [0.0, 0.0, 0.0], "completed_by_patience"),
        (1, 4, [0.5, 0.6, 0.7, 0.6], "completed"),
    ],
)
def test_patience_counts_evaluations_without_a_better_score(
    patience: int | None, epochs: int, values: list[float], end: str
) -> None:
    trainer, run = trainer_with(patience, epochs), Run(0, 0.0)
    seen = []
    for epoch, value in enumerate(values, start=1):
        trainer._note(run, {"score": value}, epoch)
        seen.append(run.state)
    assert seen == ["running"] * (len(values) - 1) + [end]
    assert run.score == max(values)


def test_a_run_out_of_patience_leaves_and_the_others_go_on_as_alone(
    tiny_bert: Path, bench: Bench
) -> None:
    seeds = (0, 1, 2, 3)
    spec = demo_spec("aot_fc", tiny_bert, seeds=seeds, epochs=8, patience=2)
    points = points_of(spec, bench)
    ended = {seed: len(runs_of(points, seed)) for seed in seeds}
    assert len(set(ended.values())) > 1  # they left at different times
    assert len(points) == max(ended.values())
    assert points[-1].last
    assert not any(point.last for point in points[:-1])
    for seed in seeds:
        alone = runs_of(points_of(dataclasses.replace(spec, seeds=(seed,)), bench), seed)
        stacked = runs_of(points, seed)
        assert [run.state for run in stacked] == [run.state for run in alone]
        assert [run.score for run in stacked] == [run.score for run in alone]
        for ours, theirs in zip(stacked, alone, strict=True):
            assert ours.train_loss == pytest.approx(theirs.train_loss, abs=1e-5)
    states = {runs_of(points, seed)[-1].state for seed in seeds}
    assert "completed_by_patience" in states


@pytest.mark.parametrize("task", ["sst2", "cola", "stsb"])
@pytest.mark.parametrize("method", list(METHODS))
def test_an_absurd_learning_rate_diverges_to_the_worst_value(
    method: str, task: str, tiny_bert: Path, bench: Bench
) -> None:
    values = {"learning_rate": 1e30}
    spec = demo_spec(method, tiny_bert, task=task, seeds=(0, 1), hyperparameters=values)
    (point,) = points_of(spec, bench)
    worst = METRICS[TASKS[task].metric].worst
    assert [(run.state, run.value, run.score) for run in point.runs] == [
        ("diverged", worst, worst)
    ] * 2
    assert point.last
    assert all(run.metrics == {} for run in point.runs)
    assert_finite([point])
    EvalPoint.from_json(point.to_json())


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e30])
def test_a_lane_that_diverges_keeps_its_best_and_touches_no_other(
    poison: float, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("aot_fc", tiny_bert, seeds=(0, 1, 2), epochs=4)
    healthy = points_of(spec, bench)
    trainer = trainer_of(spec, bench)
    points = trainer.points()
    seen = [next(points)]
    with torch.no_grad():
        trainer.stacks[0].head.out_SDC[1, :, 0] = poison
    seen += points
    assert_finite(seen)
    first, last = runs_of(seen, 1)
    assert (last.state, last.value, last.score) == ("diverged", 0.0, first.score)
    assert first.score > 0
    assert last.loss is None or last.loss > LOSS_CAP
    assert trainer.stacks[0].lanes.seeds == [0, 2]
    for seed in (0, 2):
        assert len(runs_of(seen, seed)) == 4
        for ours, theirs in zip(runs_of(seen, seed), runs_of(healthy, seed), strict=True):
            assert (ours.score, ours.state) == (theirs.score, theirs.state)
            assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)


def test_a_loss_is_usable_up_to_the_cap() -> None:
    assert [usable(loss) for loss in (0.0, LOSS_CAP, LOSS_CAP * 1.01, math.inf, math.nan)] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("method", "task"),
    [*(("aot_fc", task) for task in TASKS), *((method, "stsb") for method in METHODS)],
)
def test_every_task_and_every_method_trains(
    method: str, task: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec(method, tiny_bert, task=task, epochs=1, limit_train=16, limit_eval=24)
    (point,) = points_of(spec, bench)
    (run,) = point.runs
    assert_finite([point])
    assert run.state == "completed"
    splits = {"validation", *TASKS[task].extra_splits}
    assert {name.split("/")[0] for name in run.metrics} == splits
    metric = METRICS[TASKS[task].metric]
    assert metric.worst <= run.value <= metric.ceiling
    assert run.loss is not None
    assert not any(name.endswith("score") for name in run.metrics)


def test_mnli_selects_on_matched_and_reports_mismatched_where_it_got_better(
    tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("aot_fc", tiny_bert, task="mnli", seeds=(0, 1), epochs=5)
    points = points_of(spec, bench)
    without = 0
    for seed in spec.seeds:
        runs = runs_of(points, seed)
        for i, run in enumerate(runs):
            better = i == 0 or run.value > runs[i - 1].score
            assert ("mismatched/accuracy" in run.metrics) == better
            assert run.value == run.metrics["validation/accuracy"]
            without += not better
    assert without > 0


def test_regression_learns_a_number(tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec("fine_tuning", tiny_bert, task="stsb", epochs=8, limit_train=64)
    spec = dataclasses.replace(spec, hyperparameters={"learning_rate": 3e-3})
    runs = runs_of(points_of(spec, bench), 0)
    assert runs[-1].train_loss < 0.7 * runs[0].train_loss
    assert runs[-1].metrics.keys() == {"validation/pearson", "validation/spearman"}


def test_fine_tuning_reports_all_its_seeds_each_epoch_and_each_equals_the_run_alone(
    tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("fine_tuning", tiny_bert, seeds=(0, 1), epochs=3, patience=2)
    points = points_of(spec, bench)
    assert [run.seed for run in points[0].runs] == [0, 1]
    for seed in spec.seeds:
        alone = points_of(dataclasses.replace(spec, seeds=(seed,)), bench)
        assert numbers(runs_of(points, seed)) == numbers(runs_of(alone, seed))
    assert numbers(runs_of(points, 0)) != numbers(runs_of(points, 1))


def test_a_point_holds_what_its_evaluation_found(tiny_bert: Path, bench: Bench) -> None:
    spec = demo_spec("aot_fc", tiny_bert, epochs=1)
    trainer = trainer_of(spec, bench)
    (point,) = trainer.points()
    (run,) = point.runs
    validation = bench.features(spec)["validation"]
    (logits_EC,) = trainer.stacks[0].predict(validation)
    labels = torch.from_numpy(validation.labels)
    expected = RunPoint(
        seed=0,
        value=float((logits_EC.argmax(1) == validation.labels).mean()),
        score=run.value,
        loss=pytest.approx(
            torch.nn.functional.cross_entropy(torch.from_numpy(logits_EC), labels).item()
        ),
        train_loss=run.train_loss,
        metrics={"validation/accuracy": run.value},
        state="completed",
    )
    assert run == expected
