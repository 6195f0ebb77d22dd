import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evp.estimators import Estimator, expected_best, n_grid, running_best, top_weights

ESTIMATORS: tuple[Estimator, ...] = ("U", "V")
SCORES = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=1, max_size=12)


def curve(scores: list[float], estimator: Estimator = "U", maximize: bool = True) -> np.ndarray:
    n = np.arange(1, len(scores) + 1)
    return expected_best(scores, n, maximize=maximize, estimator=estimator)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=7))
def test_u_is_the_mean_over_all_subsets(scores: list[float]) -> None:
    expected = [
        np.mean([max(subset) for subset in itertools.combinations(scores, n)])
        for n in range(1, len(scores) + 1)
    ]
    np.testing.assert_allclose(curve(scores, "U"), expected, atol=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5))
def test_v_is_the_mean_over_all_draws_with_replacement(scores: list[float]) -> None:
    expected = [
        np.mean([max(draw) for draw in itertools.product(scores, repeat=n)])
        for n in range(1, len(scores) + 1)
    ]
    np.testing.assert_allclose(curve(scores, "V"), expected, atol=1e-12)


@given(SCORES)
def test_one_draw_is_the_mean_and_all_trials_give_the_best(scores: list[float]) -> None:
    for estimator in ESTIMATORS:
        assert curve(scores, estimator)[0] == pytest.approx(np.mean(scores), abs=1e-12)
    assert curve(scores, "U")[-1] == max(scores)


@given(SCORES)
def test_u_is_never_below_v(scores: list[float]) -> None:
    assert (curve(scores, "U") >= curve(scores, "V") - 1e-12).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(scores=SCORES)
def test_curves_do_not_fall_with_n(estimator: Estimator, scores: list[float]) -> None:
    assert (np.diff(curve(scores, estimator)) >= -1e-12).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(scores=SCORES, rise=st.floats(0, 3), which=st.integers(0, 11))
def test_curves_do_not_fall_with_any_score(
    estimator: Estimator, scores: list[float], rise: float, which: int
) -> None:
    better = list(scores)
    better[which % len(scores)] += rise
    assert (curve(better, estimator) >= curve(scores, estimator) - 1e-12).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(scores=SCORES, shift=st.floats(-3, 3), factor=st.floats(0.1, 10))
def test_curves_move_and_scale_with_the_scores(
    estimator: Estimator, scores: list[float], shift: float, factor: float
) -> None:
    moved = [factor * score + shift for score in scores]
    np.testing.assert_allclose(
        curve(moved, estimator), factor * curve(scores, estimator) + shift, atol=1e-11
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(scores=SCORES)
def test_minimising_is_the_dual_of_maximising(estimator: Estimator, scores: list[float]) -> None:
    negated = [-score for score in scores]
    assert (curve(scores, estimator, maximize=False) == -curve(negated, estimator)).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(data=st.data(), scores=SCORES)
def test_the_order_of_trials_does_not_matter(
    estimator: Estimator, data: st.DataObject, scores: list[float]
) -> None:
    shuffled = data.draw(st.permutations(scores))
    assert (curve(scores, estimator) == curve(shuffled, estimator)).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("num_trials", "n"), [(1, 1), (7, 3), (2000, 1000), (5000, 4999)])
def test_weights_sum_to_one_and_are_not_negative(
    estimator: Estimator, num_trials: int, n: int
) -> None:
    weights = top_weights(num_trials, n, estimator)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()


def test_the_window_of_a_large_sample_loses_nothing() -> None:
    size = 100_000
    n = n_grid(size)
    value = expected_best(np.arange(1, size + 1), n, maximize=True)
    np.testing.assert_allclose(value, n * (size + 1) / (n + 1), rtol=1e-12)


def test_v_of_a_large_sample_agrees_with_the_plain_difference() -> None:
    size = 3000
    n = np.array([1, 7, 40, 500, 3000])
    ranks = np.arange(1, size + 1)[:, None]
    plain = ((ranks / size) ** n - ((ranks - 1) / size) ** n).T @ (ranks[:, 0] / size)
    value = expected_best(ranks[:, 0] / size, n, maximize=True, estimator="V")
    np.testing.assert_allclose(value, plain, rtol=1e-11)


def test_samples_side_by_side_give_their_own_curves() -> None:
    samples = np.random.default_rng(0).random((3, 9))
    n = np.arange(1, 10)
    together = expected_best(samples, n, maximize=True)
    alone = [expected_best(sample, n, maximize=True) for sample in samples]
    np.testing.assert_allclose(together, alone, rtol=1e-15)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"finite, got {bad}"):
        expected_best([0.1, bad], [1], maximize=True)


def test_every_n_is_computed_up_to_200_and_spaced_ones_beyond() -> None:
    assert n_grid(12).tolist() == list(range(1, 13))
    large = n_grid(100_000)
    assert large[:200].tolist() == list(range(1, 201))
    assert large[-1] == 100_000
    assert (np.diff(large) > 0).all()
    assert 330 <= len(large) <= 355


def test_the_running_best_follows_the_direction() -> None:
    assert running_best([2, 1, 3], maximize=True).tolist() == [2, 2, 3]
    assert running_best([2, 1, 3], maximize=False).tolist() == [2, 1, 1]


@pytest.mark.parametrize("num_trials", [1, 2, 9, 30])
@pytest.mark.parametrize("maximize", [True, False])
def test_small_samples_agree_with_opda(num_trials: int, maximize: bool) -> None:
    nonparametric = pytest.importorskip("opda.nonparametric")
    scores = np.random.default_rng(num_trials).random(num_trials).round(2)
    distribution = nonparametric.EmpiricalDistribution(scores)
    n = np.arange(1, num_trials + 1)
    for estimator, theirs in (
        ("U", distribution.u_tuning_curve),
        ("V", distribution.v_tuning_curve),
    ):
        ours = expected_best(scores, n, maximize=maximize, estimator=estimator)
        np.testing.assert_allclose(ours, theirs(n, minimize=not maximize), atol=1e-12)
