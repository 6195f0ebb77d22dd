import numpy as np
import pytest
from evp_studies import completed, curve, study

from orchestrator.outcome import Outcome


@pytest.mark.parametrize(("num_trials", "small"), [(1, True), (9, True), (10, False)])
def test_fewer_than_ten_assignments_carry_a_warning(num_trials: int, small: bool) -> None:
    result = curve(study(*completed(*np.linspace(0.1, 0.9, num_trials))))
    assert result.n[-1] == num_trials
    assert any("is small" in warning for warning in result.warnings) is small


def test_beyond_a_fifth_of_the_trials_the_estimate_is_called_thin() -> None:
    result = curve(study(*completed(*np.linspace(0.1, 0.9, 40))))
    assert any(warning.startswith("Beyond n = 8 (N/5)") for warning in result.warnings)


def test_v_is_labelled_and_called_biased() -> None:
    result = curve(study(*completed(0.2, 0.5, 0.8)), estimator="V")
    assert result.value is not None
    assert result.value[1] == pytest.approx(19 / 30)
    assert "Dodge" in result.label
    assert any("biased low" in warning for warning in result.warnings)


def test_a_label_says_what_the_numbers_depend_on() -> None:
    trials = [*completed(0.6), (Outcome.STOPPED, 0.5), (Outcome.FAILED, None), (Outcome.LOST, None)]
    result = curve(study(*trials, num_trials=5, num_seeds=3, note="demo profile, generated tasks"))
    assert result.label == (
        "expected best score of n distinct random assignments, each trained to its end; "
        "bounds: trials without a final score at their best so far (worst value if none) "
        "and at the ceiling 1; U-statistic; unit: assignments; N = 5, n = 1..5; random search; "
        "ASHA; median over 3 seeds per assignment; best checkpoint; score: accuracy; "
        "1 stopped, 1 failed, 2 unknown; demo profile, generated tasks"
    )
