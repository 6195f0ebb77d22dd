"""From the rows of a sweep to its table and its picture."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import STUDY, claim, enter, point, report, study

from orchestrator.core import Core
from orchestrator.outcome import Outcome
from orchestrator.report.incumbent import Evaluation, incumbent
from orchestrator.store.database import Store
from orchestrator.store.rows import TrialRow
from orchestrator.summaries import best_trial, draw_studies, evaluations, panel, study_summary


def trials(*scores: float | None) -> list[TrialRow]:
    return [
        TrialRow(id=f"{STUDY.id}/{k}", study_id=STUDY.id, k=k, score=score)
        for k, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("maximize", "scores", "best"),
    [
        (True, (None, 0.5, 0.7, 0.7, 0.1), 2),
        (False, (None, 0.5, 0.1, 0.7, 0.1), 2),
        (True, (0.0, None), 0),
        (False, (-0.5, 0.0), 0),
        (True, (None, None), None),
        (True, (), None),
    ],
)
def test_the_best_trial_is_the_first_with_the_best_score(
    maximize: bool, scores: tuple[float | None, ...], best: int | None
) -> None:
    found = best_trial(study(maximize=maximize), trials(*scores))
    assert (found.k if found else None) == best


def interleaved(store: Store, **columns: Any) -> Core:
    """Two trials with two seeds whose reports take turns; seed 1 of the second ends early."""
    enter(store, study(num_trials=3, seeds=[0, 1], scheduler="none", grace=None, **columns))
    times = count()
    core = Core(store, "small", clock=lambda: float(next(times)))
    first, second = claim(core), claim(core)
    report(core, first, point(1, 0.2, 0.4))
    report(core, second, point(1, 0.6, 0.8))
    report(core, second, point(2, 0.7, 0.1, states=["running", "completed_by_patience"]))
    report(core, first, point(2, 0.9, 0.3))
    report(core, second, point(3, 0.5, seeds=[0]))
    report(core, first, point(3, 0.1, 1.0, last=True))
    return core


def test_evaluations_come_in_order_of_reporting_time(database: Store) -> None:
    core = interleaved(database)
    with database.read() as reader:
        found = evaluations(reader, core.studies[0].row)
    assert [(each.assignment, each.epoch) for each in found] == [
        (0, 1),
        (1, 1),
        (1, 2),
        (0, 2),
        (1, 3),
        (0, 3),
    ]
    assert [each.score for each in found] == pytest.approx([0.3, 0.7, 0.75, 0.65, 0.75, 0.95])


@pytest.mark.parametrize(
    ("maximize", "best"),
    [
        (True, [0.3, 0.7, 0.75, 0.75, 0.75, 0.95]),
        (False, [0.3, 0.3, 0.3, 0.25, 0.25, 0.2]),
    ],
)
def test_the_incumbent_is_the_best_score_by_the_epochs_of_all_trials_together(
    database: Store, maximize: bool, best: list[float]
) -> None:
    core = interleaved(database, maximize=maximize)
    with database.read() as reader:
        drawn = panel(reader, core.studies[0].row)
    assert drawn.incumbent_epochs == (1, 2, 3, 4, 5, 6)
    assert drawn.incumbent_scores == pytest.approx(best)
    assert drawn.maximize == maximize
    assert core.studies[0].best == pytest.approx(best[-1])


def test_a_second_attempt_spends_no_epochs_twice(database: Store) -> None:
    core = interleaved(database)
    row = core.studies[0].row
    with database.read() as reader:
        before = evaluations(reader, row)
    again = Core(database, "small")
    claimed = claim(again)
    assert claimed.trial_id.endswith("/1")
    for epoch in (1, 2, 3):
        assert not report(again, claimed, point(epoch, 0.99, 0.99))
    report(again, claimed, point(4, 0.8, seeds=[0]))
    with database.read() as reader:
        after = evaluations(reader, row)
    assert after[:-1] == before
    assert after[-1] == Evaluation(assignment=1, epoch=4, score=pytest.approx(0.8))
    assert incumbent(after, maximize=True)[0] == (1, 2, 3, 4, 5, 6, 7)


def test_a_study_is_one_row_of_the_table(database: Store) -> None:
    core = interleaved(
        database, data={"source": "demo", "majority": 0.5, "limit_train": 100, "limit_eval": None}
    )
    core.failed("small/aot_fc-rte/1", 1, "no", Outcome.FAILED)
    with database.read() as reader:
        summary = study_summary(reader, core.studies[0].row)
    assert (summary.name, summary.space, summary.task) == (STUDY.id, "aot_fc@demo", "rte")
    assert (summary.metric, summary.maximize, summary.majority) == ("accuracy", True, 0.5)
    assert summary.best_hyperparameters == {"learning_rate": 1.0, "rank": 1, "batch_size": 8}
    assert summary.best_scores == {0: 0.9, 1: 1.0}
    assert dict(summary.outcomes) == {
        Outcome.COMPLETED: 1,
        Outcome.FAILED: 1,
        Outcome.PENDING: 1,
    }
    assert (summary.epochs, summary.num_trials) == (6, 3)
    assert "backbone minilm; demo data" in summary.note
    assert "limit-train 100" in summary.note


def test_a_study_without_a_report_has_a_row_too(database: Store) -> None:
    enter(database, study())
    with database.read() as reader:
        summary = study_summary(reader, study())
        drawn = panel(reader, study())
    assert summary.best_hyperparameters is None
    assert summary.best_scores == {}
    assert dict(summary.outcomes) == {Outcome.PENDING: 4}
    assert summary.epochs == 0
    assert drawn.incumbent_epochs == ()


def test_the_picture_of_studies_is_drawn_into_a_new_folder(database: Store, tmp_path: Path) -> None:
    interleaved(database)
    path = tmp_path / "sweeps" / "small" / "evp.png"
    with database.read() as reader:
        sweep = reader.sweep("small")
        assert sweep is not None
        draw_studies(reader, sweep, reader.studies("small"), path)
    assert path.read_bytes().startswith(b"\x89PNG")
