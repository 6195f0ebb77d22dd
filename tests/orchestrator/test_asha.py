from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.tune.schedulers.async_hyperband import _Bracket

from orchestrator.asha import Asha, Decision, rungs, tie_key


def judge(asha: Asha, trial: int, epoch: int, score: float, loss: float | None) -> Decision | None:
    """Decide and record at once."""
    key = tie_key(score, loss)
    decision = asha.judge(trial, epoch, key)
    if decision:
        asha.record(trial, decision, key)
    return decision


def stopped(decision: Decision | None) -> bool:
    return decision is not None and decision.stop


@pytest.mark.parametrize(
    ("grace", "eta", "max_epochs", "expected"),
    [
        (1, 3, 4, (1, 3)),
        (1, 3, 1, ()),
        (2, 2, 16, (2, 4, 8)),
        (1, 3, 243, (1, 3, 9, 27, 81)),
        (5, 4, 5, ()),
    ],
)
def test_rungs_are_the_powers_below_the_last_epoch(
    grace: int, eta: int, max_epochs: int, expected: tuple[int, ...]
) -> None:
    assert rungs(grace, eta, max_epochs) == expected


@pytest.mark.parametrize(("grace", "eta"), [(0, 3), (1, 1)])
def test_rungs_that_would_never_end_are_refused(grace: int, eta: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        rungs(grace, eta, 9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("eta", [2, 3, 4])
def test_distinct_scores_are_decided_as_ray_decides_them(seed: int, eta: int) -> None:
    generator = np.random.default_rng(seed)
    asha = Asha(rungs(1, eta, 30), eta)
    bracket = _Bracket(1, 30, eta, s=0, stop_last_trials=True)
    curves = np.sort(generator.random((40, 30)), axis=1)
    waiting = {trial: 1 for trial in range(40)}
    while waiting:
        trial = int(generator.choice(list(waiting)))
        epoch = waiting[trial]
        score = float(curves[trial, epoch - 1])
        ours = judge(asha, trial, epoch, score, None)
        theirs = (
            bracket.on_result(SimpleNamespace(trial_id=trial), epoch, score) == "STOP"
            if epoch < 30
            else False
        )
        assert stopped(ours) == theirs
        waiting[trial] += 1
        if theirs or epoch == 30:
            del waiting[trial]


def test_the_first_arrival_goes_on() -> None:
    decision = judge(Asha((1,), 3), 0, 1, 0.0, 9.0)
    assert decision is not None
    assert not decision.stop
    assert decision.threshold is None


def test_equal_scores_are_told_apart_by_loss_then_the_later_stops() -> None:
    asha = Asha((1,), 2)
    stops = [stopped(judge(asha, i, 1, 0.5, loss)) for i, loss in enumerate([0.7, 0.6, 0.8, 0.75])]
    assert stops == [False, False, True, True]


def test_trials_that_are_all_equal_do_not_all_go_on() -> None:
    asha = Asha((1,), 3)
    stops = [stopped(judge(asha, trial, 1, 0.0, 0.5)) for trial in range(6)]
    assert stops == [False, True, True, True, True, True]


def test_a_score_without_loss_loses_every_tie() -> None:
    asha = Asha((1,), 3)
    stops = [stopped(judge(asha, i, 1, 0.0, loss)) for i, loss in enumerate([None, None, 0.4])]
    assert stops == [False, True, False]


reports = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from([1, 2, 3, 9]),
        st.sampled_from([0.0, 0.25, 0.5, 0.75]),
        st.one_of(st.none(), st.floats(0, 2)),
    ),
    max_size=60,
)


@given(reports)
def test_a_repeated_report_changes_nothing(arrivals: list) -> None:
    asha = Asha((1, 3, 9), 3)
    first = [judge(asha, *arrival) for arrival in arrivals]
    sizes = asha.sizes()
    again = [judge(asha, trial, epoch, 0.9, 0.0) for trial, epoch, _, _ in arrivals]
    decided = {(a[0], a[1]): d for a, d in reversed(list(zip(arrivals, first, strict=True)))}
    assert again == [decided[trial, epoch] for trial, epoch, _, _ in arrivals]
    assert asha.sizes() == sizes


@given(reports, st.integers(0, 60))
def test_rungs_rebuilt_from_decisions_decide_as_if_never_interrupted(
    arrivals: list, cut: int
) -> None:
    whole, rebuilt = Asha((1, 3, 9), 3), Asha((1, 3, 9), 3)
    expected = [judge(whole, *arrival) for arrival in arrivals]
    recorded = {}
    for (trial, epoch, score, loss), decision in zip(arrivals[:cut], expected, strict=False):
        if decision:
            recorded.setdefault((trial, epoch), (decision, tie_key(score, loss)))
    for (trial, _), (decision, key) in recorded.items():
        rebuilt.record(trial, decision, key)
    assert [judge(rebuilt, *arrival) for arrival in arrivals[cut:]] == expected[cut:]
