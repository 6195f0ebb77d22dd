from dataclasses import replace
from typing import Any

import pytest
from small_sweeps import study

from orchestrator.evp import Curve, evp
from orchestrator.evp.records import TrialRecord
from orchestrator.notes import note_of
from orchestrator.outcome import Outcome
from orchestrator.store.rows import TrialRow
from orchestrator.study_records import study_record

STUDY = study(num_trials=2, seeds=[0, 1, 2])
TRIALS = [
    TrialRow(
        id=f"{STUDY.id}/{k}",
        study_id=STUDY.id,
        k=k,
        outcome=outcome,
        score=score,
        epochs=4,
        device_seconds=2.5,
    )
    for k, (outcome, score) in enumerate([(Outcome.COMPLETED, 0.5), (Outcome.FAILED, None)])
]


def test_a_record_holds_what_the_rows_say() -> None:
    record = study_record(STUDY, TRIALS)
    assert (record.name, record.num_trials, record.num_seeds) == ("small/aot_fc-rte", 2, 3)
    assert (record.searcher, record.scheduler, record.grid_size) == ("random", "asha", None)
    assert record.trials[0] == TrialRecord(
        assignment=0, outcome=Outcome.COMPLETED, score=0.5, epochs=4, device_seconds=2.5
    )
    assert record.trials[1].outcome is Outcome.FAILED


def test_a_curve_carries_the_note() -> None:
    curve = evp(study_record(STUDY, TRIALS))
    assert isinstance(curve, Curve)
    assert curve.label.endswith(note_of(STUDY))


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (
            {"source": "demo"},
            "backbone minilm; demo data: generated tasks, scores say nothing about GLUE",
        ),
        (
            {"source": "hub", "words": "glue rte", "limit_train": 1000, "limit_eval": 500},
            "backbone minilm; data: glue rte; limit-train 1000, limit-eval 500",
        ),
        ({"source": "hub", "data_dir": "/data"}, "backbone minilm; data: /data"),
        ({}, "backbone minilm"),
    ],
)
def test_the_note_says_backbone_data_and_limits(data: dict[str, Any], note: str) -> None:
    assert note_of(replace(STUDY, data=data)) == note
