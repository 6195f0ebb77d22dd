"""Studies to compute curves of, and what `evp` gives, checked for its type."""

from typing import Any

from orchestrator.evp import Curve, Refusal, StudyRecord, TrialRecord, evp
from orchestrator.outcome import Outcome


def study(*trials: tuple[Outcome, float | None], **changes: Any) -> StudyRecord:
    fields: dict[str, Any] = {
        "name": "demo/aot_fc-rte",
        "metric": "accuracy",
        "maximize": True,
        "worst": 0.0,
        "ceiling": 1.0,
        "searcher": "random",
        "scheduler": "asha",
        "num_trials": len(trials),
        "num_seeds": 1,
        "trials": tuple(
            TrialRecord(assignment=k, outcome=outcome, score=score)
            for k, (outcome, score) in enumerate(trials)
        ),
    }
    return StudyRecord(**fields | changes)


def completed(*scores: float) -> list[tuple[Outcome, float | None]]:
    return [(Outcome.COMPLETED, score) for score in scores]


def curve(record: StudyRecord, **options: Any) -> Curve:
    result = evp(record, **options)
    assert isinstance(result, Curve), result
    return result


def refusal(record: StudyRecord, **options: Any) -> str:
    result = evp(record, **options)
    assert isinstance(result, Refusal), result
    assert result.study == record.name
    return result.reason
