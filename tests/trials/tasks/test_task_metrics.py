import warnings

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from trials.tasks.metrics import METRICS, majority_score
from trials.tasks.table import TASKS

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(50, 2))
CLASSES = RNG.integers(2, size=50)
VALUES = RNG.normal(size=(50, 1))
SIMILARITIES = VALUES[:, 0] + RNG.normal(size=50)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_accuracy_is_sklearns() -> None:
    expected = accuracy_score(CLASSES, LOGITS.argmax(axis=1))
    assert METRICS["accuracy"].compute(LOGITS, CLASSES) == {
        "score": pytest.approx(expected),
        "accuracy": pytest.approx(expected),
    }


def test_accuracy_counts_three_classes() -> None:
    logits = np.eye(3)[[0, 1, 2, 2]]
    assert METRICS["accuracy"].compute(logits, np.array([0, 1, 2, 0]))["score"] == 0.75


def test_matthews_is_sklearns() -> None:
    expected = matthews_corrcoef(CLASSES, LOGITS.argmax(axis=1))
    assert METRICS["matthews"].compute(LOGITS, CLASSES)["score"] == pytest.approx(expected)


def test_accuracy_f1_averages_its_parts() -> None:
    chosen = LOGITS.argmax(axis=1)
    accuracy, f1 = accuracy_score(CLASSES, chosen), f1_score(CLASSES, chosen)
    assert METRICS["accuracy_f1"].compute(LOGITS, CLASSES) == {
        "score": pytest.approx((accuracy + f1) / 2),
        "accuracy": pytest.approx(accuracy),
        "f1": pytest.approx(f1),
    }


def test_pearson_spearman_averages_scipys() -> None:
    pearson = pearsonr(VALUES[:, 0], SIMILARITIES).statistic
    spearman = spearmanr(VALUES[:, 0], SIMILARITIES).statistic
    assert METRICS["pearson_spearman"].compute(VALUES, SIMILARITIES) == {
        "score": pytest.approx((pearson + spearman) / 2),
        "pearson": pytest.approx(pearson),
        "spearman": pytest.approx(spearman),
    }


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("rows", [1, 4])
def test_constant_predictions_and_labels_give_finite_values_within_the_bounds(
    metric, label: int, rows: int
) -> None:
    for predictions in (np.zeros((rows, 2)), np.eye(2)[[1] * rows]):
        values = metric.compute(predictions, np.full(rows, label))
        assert next(iter(values)) == "score"
        assert all(np.isfinite(value) for value in values.values())
        assert metric.worst <= values["score"] <= metric.ceiling


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_not_finite_give_finite_values(metric, bad: float) -> None:
    predictions = LOGITS.copy()
    predictions[3] = bad
    assert all(np.isfinite(value) for value in metric.compute(predictions, CLASSES).values())


def test_nearly_constant_values_give_a_finite_correlation() -> None:
    values = np.full((4, 1), 1e10)
    values[0] += 1e-5
    assert np.isfinite(METRICS["pearson_spearman"].compute(values, np.arange(4.0))["score"])


@pytest.mark.parametrize(
    ("metric", "worst"),
    [("accuracy", 0), ("matthews", -1), ("accuracy_f1", 0), ("pearson_spearman", -1)],
)
def test_each_metric_declares_its_bounds(metric: str, worst: float) -> None:
    assert (METRICS[metric].worst, METRICS[metric].ceiling) == (worst, 1)
    assert METRICS[metric].maximize


def test_the_majority_class_comes_from_the_training_rows() -> None:
    assert majority_score(TASKS["rte"], [1, 1, 0], [0, 0, 0, 1]) == 0.25


def test_the_majority_scores_nothing_under_a_correlation() -> None:
    assert majority_score(TASKS["cola"], [1, 1, 0], [0, 1, 1]) == 0
    assert majority_score(TASKS["stsb"], [1.0, 2.0, 4.5], [0.0, 3.0, 5.0]) == 0


def test_the_majority_of_paraphrases_counts_accuracy_and_f1() -> None:
    assert majority_score(TASKS["mrpc"], [1, 1, 0], [1, 0]) == pytest.approx((0.5 + 2 / 3) / 2)
