"""Tree-structured Parzen estimators by Optuna: the searcher that learns from results.

Random and grid assignments are functions of (space, seed, k) and live in `searchspaces`.
"""

import warnings
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.outcome import Outcome
from orchestrator.store.rows import TrialRow
from searchspaces.distributions import Choice, Distribution, Integer, Range
from searchspaces.space import Assignment, Space

if TYPE_CHECKING:
    import optuna

STARTUP_TRIALS = 10
"""So many assignments are drawn at random before the estimator is used (Optuna's default)."""


def suggest(
    space: Space, seed: int, k: int, maximize: bool, trials: Iterable[TrialRow]
) -> tuple[Assignment, bool]:
    """Assignment k given every trial so far, and whether it is a random start-up draw.

    A function of the rows alone, so that a resumed search goes on as if never interrupted: the
    study is built anew, with stopped trials as PRUNED at their last epoch, failed ones as PRUNED
    without a value (worse than any), running ones as pending.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    stream = zlib.crc32(f"{seed}/{k}".encode())
    sampler = optuna.samplers.TPESampler(seed=stream, n_startup_trials=STARTUP_TRIALS)
    direction: Literal["maximize", "minimize"] = "maximize" if maximize else "minimize"
    study = optuna.create_study(direction=direction, sampler=sampler)
    distributions = _distributions(space)
    told = [_told(row, space, distributions) for row in trials if row.hyperparameters is not None]
    study.add_trials([trial for trial in told if trial is not None])
    finished = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    random = len(study.get_trials(deepcopy=False, states=finished)) < STARTUP_TRIALS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        asked = study.ask(distributions)
    return _assignment(space, asked.params), random


def _told(
    row: TrialRow, space: Space, distributions: dict[str, Any]
) -> "optuna.trial.FrozenTrial | None":
    from optuna.trial import TrialState, create_trial

    assert row.hyperparameters is not None
    params = _params(space, row.hyperparameters)
    if row.outcome in (Outcome.LOST, Outcome.CANCELLED):
        return None
    if not row.outcome.final:
        return create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)
    if row.outcome.completed:
        return create_trial(
            state=TrialState.COMPLETE, value=row.score, params=params, distributions=distributions
        )
    reached = row.outcome == Outcome.STOPPED and row.score is not None
    return create_trial(
        state=TrialState.PRUNED,
        params=params,
        distributions=distributions,
        intermediate_values={row.epochs: float(row.score or 0)} if reached else {},
    )


def _distributions(space: Space) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution

    free = {key: _distribution(value) for key, value in space.free.items()}
    tied = {
        f"tied {index}": CategoricalDistribution(tuple(range(len(group))))
        for index, group in enumerate(space.tied)
    }
    return free | tied


def _distribution(distribution: Distribution) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, Range):
        return FloatDistribution(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, Integer):
        return IntDistribution(distribution.low, distribution.high)
    assert isinstance(distribution, Choice)
    return CategoricalDistribution(distribution.values)


def _params(space: Space, assignment: Assignment) -> dict[str, Any]:
    params: dict[str, Any] = {key: assignment[key] for key in space.free}
    for index, group in enumerate(space.tied):
        params[f"tied {index}"] = next(
            number
            for number, values in enumerate(group)
            if all(assignment[key] == value for key, value in values.items())
        )
    return params


def _assignment(space: Space, params: dict[str, Any]) -> Assignment:
    values: Assignment = {key: params[key] for key in space.free}
    for index, group in enumerate(space.tied):
        values |= group[params[f"tied {index}"]]
    return values
