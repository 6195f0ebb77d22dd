"""The generated demo tasks: GLUE's columns, labels and metrics over made-up sentences.

A score on them says nothing about GLUE; it tells methods apart within minutes on a CPU.
"""

from random import Random
from zlib import crc32

from trials.tasks.demo_texts import MAKERS
from trials.tasks.demo_words import MATCHED, MISMATCHED
from trials.tasks.table import TASKS, Task

TRAIN_ROWS = 192
EVAL_ROWS = 128
LABEL_NOISE = 0.025
"""Share of rows with a wrong label: no trial reaches the metric's ceiling by skill."""
STSB_LEVELS = 5
STSB_SPREAD = 0.2
"""Standard deviation of a similarity around its level."""


def demo_rows(task_name: str, split: str, seed: int = 0) -> list[dict[str, object]]:
    """The rows of one split, the same at every call, with the dataset's own columns."""
    task = TASKS[task_name]
    rng = Random(f"{task_name}/{split}/{seed}")
    train = split == task.train
    words = MISMATCHED if split in task.extra_splits.values() else MATCHED
    num_classes = STSB_LEVELS if task.labels is None else len(task.labels)
    count = TRAIN_ROWS if train else EVAL_ROWS
    texts: dict[tuple[str, ...], int] = {}
    while len(texts) < count:
        label = len(texts) % num_classes
        candidate = MAKERS[task_name](rng, words, label)
        if _belongs_to_train(candidate) == train:
            texts.setdefault(candidate, label)
    examples = list(texts.items())
    rng.shuffle(examples)
    wrong = set(rng.sample(range(count), round(LABEL_NOISE * count)))
    rows: list[dict[str, object]] = []
    for i, (fields, label) in enumerate(examples):
        if i in wrong:
            label = (label + rng.randrange(1, num_classes)) % num_classes
        columns = {name: _sentence(text) for name, text in zip(task.fields, fields, strict=True)}
        rows.append({**columns, "label": _label(task, label, rng), "idx": i})
    return rows


def _belongs_to_train(texts: tuple[str, ...]) -> bool:
    """Every text is on one side for good, so no evaluation row is a training row."""
    return crc32("\n".join(texts).encode()) % 2 == 0


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _label(task: Task, level: int, rng: Random) -> int | float:
    if task.label_range is None:
        return level
    low, high = task.label_range
    value = low + (high - low) * level / (STSB_LEVELS - 1) + rng.gauss(0, STSB_SPREAD)
    return round(min(max(value, low), high), 2)
