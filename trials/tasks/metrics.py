"""Selection metrics: predictions and labels in, finite fractions out.

scikit-learn and scipy are imported inside the functions: a metric's worst value is needed by
commands that must start fast.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trials.tasks.table import Task

# N examples, C classes
Predictions = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]] | NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How a task is scored."""

    name: str
    worst: float
    """The value that a failed run counts as."""
    ceiling: float
    maximize: bool = True
    compute: Callable[[Predictions, Labels], dict[str, float]]
    """[N, C] logits or [N, 1] values and [N] labels -> `score`, the value to select by, then
    every part of it by name."""


def majority_score(task: Task, train_labels: ArrayLike, validation_labels: ArrayLike) -> float:
    """What the best constant prediction scores on the validation rows.

    The constant is the commonest class of the training rows; for regression it is their mean.
    """
    train, validation = np.asarray(train_labels), np.asarray(validation_labels)
    if task.labels is None:
        predictions = np.full((len(validation), 1), train.mean())
    else:
        counts = np.bincount(train, minlength=len(task.labels))
        predictions = np.tile(np.eye(len(task.labels))[counts.argmax()], (len(validation), 1))
    return METRICS[task.metric].compute(predictions, validation)["score"]


def _accuracy(predictions: Predictions, labels: Labels) -> dict[str, float]:
    accuracy = float(np.mean(predictions.argmax(axis=1) == labels))
    return {"score": accuracy, "accuracy": accuracy}


def _matthews(predictions: Predictions, labels: Labels) -> dict[str, float]:
    from sklearn.metrics import matthews_corrcoef

    classes = predictions.argmax(axis=1)
    # 0 by definition; scikit-learn says so too, with a warning
    constant = np.ptp(classes) == 0 or np.ptp(labels) == 0
    matthews = 0.0 if constant else float(matthews_corrcoef(labels, classes))
    return {"score": matthews, "matthews": matthews}


def _accuracy_f1(predictions: Predictions, labels: Labels) -> dict[str, float]:
    from sklearn.metrics import f1_score

    accuracy = _accuracy(predictions, labels)["accuracy"]
    f1 = float(f1_score(labels, predictions.argmax(axis=1), pos_label=1, zero_division=0))
    return {"score": (accuracy + f1) / 2, "accuracy": accuracy, "f1": f1}


def _pearson_spearman(predictions: Predictions, labels: Labels) -> dict[str, float]:
    from scipy.stats import pearsonr, spearmanr

    values = predictions[:, 0]
    pearson = _correlation(pearsonr, values, labels)
    spearman = _correlation(spearmanr, values, labels)
    return {"score": (pearson + spearman) / 2, "pearson": pearson, "spearman": spearman}


def _correlation(
    function: Callable[..., Any], values: NDArray[np.floating[Any]], labels: Labels
) -> float:
    """The correlation, or 0 where it is not defined (a constant, a value that is not finite)."""
    from scipy.stats import ConstantInputWarning, NearConstantInputWarning

    if len(values) < 2 or not np.isfinite(values).all():
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        warnings.simplefilter("ignore", NearConstantInputWarning)
        correlation = float(function(values, labels).statistic)
    return correlation if np.isfinite(correlation) else 0.0


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="accuracy", worst=0.0, ceiling=1.0, compute=_accuracy),
        Metric(name="matthews", worst=-1.0, ceiling=1.0, compute=_matthews),
        Metric(name="accuracy_f1", worst=0.0, ceiling=1.0, compute=_accuracy_f1),
        Metric(name="pearson_spearman", worst=-1.0, ceiling=1.0, compute=_pearson_spearman),
    )
}
