"""The expected best of n trials from the scores of N finished ones; arrays in, arrays out.

With the scores sorted, y_(1) <= ... <= y_(N), and the highest one best:

    U_n = sum_i y_(i) C(i-1, n-1) / C(N, n)              best of n distinct trials, n <= N
    V_n = sum_i y_(i) [(i/N)^n - ((i-1)/N)^n]            best of n draws with replacement

Private to the package: `dispatch` alone knows for which trials these are right.

Source: U is Tang et al. 2020, V is Dodge et al. 2019 (arXiv:1909.03004).
"""

from typing import Literal, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

# N trials, K numbers of trials, W top order statistics

Estimator = Literal["U", "V"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The order statistics left out of a window weigh less than exp(-_CUT) together.
_CUT = 45.0
_NUM_DENSE = 200
_NUM_SPACED = 150


def n_grid(num_trials: int) -> Ints:
    """[K] the n at which a curve is computed: all up to 200, then about 150 spaced to N."""
    dense = np.arange(1, min(num_trials, _NUM_DENSE) + 1)
    if num_trials <= _NUM_DENSE:
        return dense
    spaced = np.geomspace(_NUM_DENSE, num_trials, _NUM_SPACED + 1).round().astype(np.int64)
    return np.unique(np.concatenate([dense, spaced, [num_trials]]))


def expected_best(
    scores: ArrayLike, n: ArrayLike, *, maximize: bool, estimator: Estimator = "U"
) -> Floats:
    """Expected best of n of the observed scores, for each n.

    Args:
        scores: [..., N] finite final scores, N >= 1; leading axes are separate samples.
        n: [K] numbers of trials, at least 1; at most N for U.
        maximize: whether the highest score is the best one.
        estimator: U, or V (biased low).

    Returns:
        [..., K] in the units of `scores`.

    Raises:
        ValueError: if there is no score, one is not finite, or an n is out of range.
    """
    samples = np.asarray(scores, dtype=np.float64)
    sizes = np.atleast_1d(np.asarray(n, dtype=np.int64))
    _check(samples, sizes, estimator)
    ordered = np.sort(samples if maximize else -samples, axis=-1)
    num_trials = ordered.shape[-1]
    best = np.empty((*ordered.shape[:-1], len(sizes)))
    for position, size in enumerate(sizes.tolist()):
        weights = top_weights(num_trials, size, estimator)
        best[..., position] = ordered[..., num_trials - len(weights) :] @ weights
    # A mean lies between its terms; rounding of the weights must not carry it past the ceiling.
    best = np.clip(best, ordered[..., :1], ordered[..., -1:])
    return best if maximize else np.negative(best)


def top_weights(num_trials: int, n: int, estimator: Estimator) -> Floats:
    """[W] weights of the W highest order statistics, ascending; the others weigh nothing."""
    window = min(num_trials, int(np.ceil(_CUT * num_trials / n)) + 1)
    if estimator == "U":
        return _u_weights(num_trials, n, window)
    if estimator == "V":
        return _v_weights(num_trials, n, window)
    assert_never(estimator)


def running_best(scores: ArrayLike, *, maximize: bool) -> Floats:
    """[N] the best of the first n scores, in the order given."""
    ordered = np.asarray(scores, dtype=np.float64)
    return np.maximum.accumulate(ordered) if maximize else np.minimum.accumulate(ordered)


def _u_weights(num_trials: int, n: int, window: int) -> Floats:
    """Downward recurrence w_N = n/N, w_i = w_(i+1) (i-n+1)/i: ratios of binomials overflow."""
    ranks = np.arange(num_trials - 1, num_trials - window, -1)
    descending = np.empty(window)
    descending[0] = n / num_trials
    # Below rank n the factor would turn negative; the weight is 0 from there on.
    descending[1:] = np.maximum(ranks - (n - 1), 0) / ranks
    weights: Floats = np.cumprod(descending, dtype=np.float64)[::-1]
    return weights


def _v_weights(num_trials: int, n: int, window: int) -> Floats:
    """(i/N)^n (1 - (1-1/i)^n), as exponentials: the plain difference cancels."""
    ranks = np.arange(num_trials - window + 1, num_trials + 1)
    with np.errstate(divide="ignore"):  # rank 1: log(0), whose exponential is the 0 wanted
        share_below = -np.expm1(n * np.log1p(-1.0 / ranks))
    weights: Floats = np.exp(n * np.log1p((ranks - num_trials) / num_trials)) * share_below
    return weights


def _check(samples: Floats, sizes: Ints, estimator: Estimator) -> None:
    if samples.ndim == 0 or samples.shape[-1] == 0:
        raise ValueError("no assignments: the best of n needs at least one score")
    if not np.isfinite(samples).all():
        raise ValueError(f"scores must be finite, got {samples[~np.isfinite(samples)][0]}")
    num_trials = samples.shape[-1]
    if len(sizes) and sizes.min() < 1:
        raise ValueError(f"n < 1: n must be at least 1, got {sizes.min()}")
    if estimator == "U" and len(sizes) and sizes.max() > num_trials:
        raise ValueError(f"n > N: U needs n <= {num_trials} (the scores), got {sizes.max()}")
