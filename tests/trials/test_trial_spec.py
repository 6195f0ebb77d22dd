"""The records that cross a process border come back equal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trials.spec import DataSpec, EvalPoint, RunPoint, Training, TrialSpec

finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(1, 10**6)
scalars = st.one_of(st.integers(), finite, st.text(), st.booleans())

data_specs = st.builds(
    DataSpec,
    source=st.sampled_from(["demo", "hub"]),
    data_dir=st.none() | st.text(),
    limit_train=st.none() | counts,
    limit_eval=st.none() | counts,
)
trainings = st.builds(
    Training,
    optimizer=st.sampled_from(["adam", "adamw"]),
    schedule=st.sampled_from(["constant", "linear"]),
    warmup_ratio=st.floats(0, 1, exclude_max=True),
    weight_decay=st.floats(0, 10),
    batch_size=counts,
    epochs=counts,
    patience=st.none() | counts,
    max_length=counts,
    backbone_dropout=st.booleans(),
    precision=st.sampled_from(["fp32", "bf16"]),
)
trial_specs = st.builds(
    TrialSpec,
    trial=st.text(),
    task=st.text(),
    backbone=st.text(),
    method=st.text(),
    hyperparameters=st.dictionaries(st.text(), scalars, max_size=4),
    training=trainings,
    seeds=st.lists(st.integers(), max_size=4).map(tuple),
    data=data_specs,
)
run_points = st.builds(
    RunPoint,
    seed=st.integers(),
    value=finite,
    score=finite,
    loss=st.none() | finite,
    train_loss=st.none() | finite,
    metrics=st.dictionaries(st.text(), finite, max_size=3),
    state=st.sampled_from(["running", "completed", "completed_by_patience", "diverged"]),
)
eval_points = st.builds(
    EvalPoint,
    epoch=counts,
    runs=st.lists(run_points, max_size=3).map(tuple),
    seconds=finite,
    last=st.booleans(),
)


@given(trial_specs)
def test_a_trial_spec_travels_as_json(spec: TrialSpec) -> None:
    assert TrialSpec.from_json(spec.to_json()) == spec
    assert isinstance(json.loads(spec.to_json()), dict)


@given(eval_points)
def test_an_eval_point_travels_as_json(point: EvalPoint) -> None:
    assert EvalPoint.from_json(point.to_json()) == point


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("batch_size", 0, "batch_size must be at least 1, got 0"),
        ("epochs", -1, "epochs must be at least 1, got -1"),
        ("max_length", 0, "max_length must be at least 1, got 0"),
        ("patience", 0, "patience must be at least 1, got 0"),
        ("warmup_ratio", 1.0, r"warmup_ratio must lie in \[0, 1\), got 1.0"),
        ("warmup_ratio", float("nan"), r"warmup_ratio must lie in \[0, 1\), got nan"),
        ("weight_decay", -0.1, "weight_decay must not be negative, got -0.1"),
        ("optimizer", "sgd", "optimizer must be one of adam, adamw, got 'sgd'"),
        ("schedule", "cosine", "schedule must be one of constant, linear, got 'cosine'"),
        ("precision", "fp16", "precision must be one of fp32, bf16, got 'fp16'"),
    ],
)
def test_a_protocol_outside_its_domain_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**{field: value})
