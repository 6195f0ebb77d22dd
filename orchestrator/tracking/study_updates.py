"""What the run of a study is told when its last trial has ended: the best score and the curve."""

from orchestrator.evp import Curve, Refusal, evp
from orchestrator.store.rows import StudyRow, TrialRow
from orchestrator.study_records import study_record
from orchestrator.tracking import names
from orchestrator.tracking.updates import Point, Update


def finished_study(study: StudyRow, trials: list[TrialRow], at: int) -> Update:
    """The end of a study, as its rows tell it now."""
    result = _curve(study, trials)
    points = _points(result, at) if isinstance(result, Curve) else []
    scores = [trial.score for trial in trials if trial.score is not None]
    if scores:
        best = max(scores) if study.maximize else min(scores)
        points.append(Point(key="best_score", value=best, step=0, at=at))
    words = result.label if isinstance(result, Curve) else f"no curve: {result.reason}"
    tags = names.tags({"outcome": "finished", "evp_label": words, "num_trials": study.num_trials})
    return Update(points=points, tags=tags, status="FINISHED", at=at)


def _curve(study: StudyRow, trials: list[TrialRow]) -> Curve | Refusal:
    try:
        return evp(study_record(study, trials), estimator="U")
    except ValueError as error:  # scores outside their range: MLflow shall say so
        return Refusal(study=study.id, reason=str(error))


def _points(curve: Curve, at: int) -> list[Point]:
    lines = {
        "incumbent" if curve.kind == "trace" else "evp_u": curve.value,
        "evp_lower": curve.lo,
        "evp_upper": curve.hi,
    }
    return [
        Point(key=key, value=value, step=n, at=at)
        for key, line in lines.items()
        if line is not None
        for n, value in zip(curve.n, line, strict=True)
    ]
