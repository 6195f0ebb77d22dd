"""Whether every method learns more than its head alone, on real rows.

    python tests/benchmarks/methods_learn.py --data-dir FOLDER [--methods lora,ept] [--workers 2]

Draws assignments of each method's `demo` space, trains three seeds of each in one pass, and stops
at the first task on which its best median beats the best of `head_only` by more than the seed
noise: the square root of the two variances over seeds. Prints a row for each method as it ends.
"""

import argparse
import dataclasses
import multiprocessing
import statistics
import time
from functools import partial
from pathlib import Path

import torch

from searchspaces import files
from trials.methods import METHODS
from trials.run import Bench, run_trial
from trials.spec import TRAINING_FIELDS, DataSpec, Training, TrialSpec

TASKS = ("sst2", "mrpc", "cola")
SEEDS = (0, 1, 2)


@dataclasses.dataclass(frozen=True)
class Result:
    """One assignment's scores over seeds, in points."""

    values: dict[str, object]
    median: float
    std: float

    @property
    def words(self) -> str:
        return f"{self.median:5.1f} +- {self.std:4.1f}"


def train(method: str, task: str, k: int, data: DataSpec, bench: Bench, epochs: int) -> Result:
    """Assignment k of the method's demo space."""
    space = files.load(method).space("demo", task=task, family="bert")
    drawn = space.draw(0, k)
    protocol = {key: value for key, value in drawn.items() if key in TRAINING_FIELDS}
    spec = TrialSpec(
        trial=f"{method}-{task}/{k}",
        task=task,
        backbone="minilm",
        method=method,
        hyperparameters={k: v for k, v in drawn.items() if k not in protocol},
        training=Training(**{**space.training, **protocol, "epochs": epochs}),
        seeds=SEEDS,
        data=data,
    )
    *_, last = run_trial(spec, bench)
    scores = [100 * run.score for run in last.runs]
    return Result(drawn, statistics.median(scores), statistics.stdev(scores))


def best_of(
    method: str,
    task: str,
    data: DataSpec,
    bench: Bench,
    trials: int,
    epochs: int,
    bar: Result | None,
) -> Result:
    """The best of so many assignments, or the first that clears the bar."""
    best: Result | None = None
    for k in range(trials):
        found = train(method, task, k, data, bench, epochs)
        best = found if best is None or found.median > best.median else best
        if bar is not None and clears(best, bar):
            break
    assert best is not None
    return best


def clears(one: Result, bar: Result) -> bool:
    """Whether the difference is more than the noise of the seeds."""
    return bool(one.median - bar.median > (one.std**2 + bar.std**2) ** 0.5)


def look(
    method: str, data: DataSpec, bars: dict[str, Result], trials: int, epochs: int
) -> tuple[str, bool]:
    """One method's row, and whether it learned."""
    torch.set_num_threads(1)
    bench, started, words, learned = Bench(torch.device("cpu")), time.perf_counter(), [], False
    for task, bar in bars.items():
        best = best_of(method, task, data, bench, trials, epochs, bar)
        learned = clears(best, bar)
        words.append(f"{task} {best.words} (head_only {bar.words})")
        if learned:
            break
    verdict = "yes" if learned else "NO"
    seconds = time.perf_counter() - started
    return f"{method:14s} {verdict:3s} {'; '.join(words)}  [{seconds:.0f} s] {best.values}", learned


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--limit", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    folder = str(asked.data_dir.resolve())
    data = DataSpec(source="hub", data_dir=folder, limit_train=asked.limit, limit_eval=asked.limit)
    with multiprocessing.get_context("spawn").Pool(asked.workers) as pool:
        head = partial(control, data=data, trials=asked.trials, epochs=asked.epochs)
        bars = dict(pool.map(head, asked.tasks.split(",")))
        for task, bar in bars.items():
            print(f"head_only on {task}: {bar.words} {bar.values}", flush=True)
        one = partial(look, data=data, bars=bars, trials=asked.trials, epochs=asked.epochs)
        names = [name for name in asked.methods.split(",") if name != "head_only"]
        failed = 0
        for row, learned in pool.imap(one, names):
            print(row, flush=True)
            failed += not learned
    print(f"{len(names) - failed} of {len(names)} methods beat head_only")
    return int(failed > 0)


def control(task: str, data: DataSpec, trials: int, epochs: int) -> tuple[str, Result]:
    """The bar on a task."""
    torch.set_num_threads(1)
    bench = Bench(torch.device("cpu"))
    return task, best_of("head_only", task, data, bench, trials, epochs, None)


if __name__ == "__main__":
    raise SystemExit(main())
