"""Questions about methods, tasks and backbones."""

from pathlib import Path

import pytest

from orchestrator import catalogue, fit
from orchestrator.errors import Refused
from searchspaces.files import known_spaces, load
from trials.spec import DataSpec


def test_every_method_has_a_space_and_every_space_a_method() -> None:
    assert {load(name).method for name in known_spaces()} == set(catalogue.method_names())


@pytest.mark.parametrize("name", catalogue.method_names())
def test_a_method_says_what_it_needs(name: str) -> None:
    info = catalogue.method_info(name)
    assert info.name == name
    assert info.summary
    assert info.hyperparameters["learning_rate"] == "required"


def test_defaults_are_shown_as_python_writes_them() -> None:
    fields = catalogue.method_info("aot_fc").hyperparameters
    assert fields["rank"] == "required"
    assert fields["dropout"] == "0.1"
    assert fields["activation"] == "'gelu'"


def test_parameters_are_counted_from_shapes_alone() -> None:
    width, num_blocks, rank = 768, 12, 8
    adapter, head = fit.parameters(
        "aot_fc", {"rank": rank, "learning_rate": 1.0}, "roberta-base", num_outputs=3
    )
    assert adapter == num_blocks * (width * rank + rank + rank * width + width)
    assert head > 3 * width
    none, same = fit.parameters("head_only", {"learning_rate": 1.0}, "roberta-base", 3)
    assert (none, same) == (0, head)
    whole, _ = fit.parameters("fine_tuning", {"learning_rate": 1.0}, "roberta-base", 3)
    assert whole == catalogue.backbone_info("roberta-base")["parameters"]


@pytest.mark.parametrize(
    ("method", "values", "backbone", "reason"),
    [
        ("lorra", {}, "minilm", "no method 'lorra'; known: .*aot_fc"),
        ("aot_fc", {"rank": 0, "learning_rate": 1.0}, "minilm", "rank must be at least 1, got 0"),
        ("head_only", {"learning_rate": 1.0}, "bertt", "no backbone 'bertt'; known: minilm"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    method: str, values: dict[str, float], backbone: str, reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        fit.parameters(method, values, backbone, 2)


def test_tasks_and_groups_are_expanded_in_the_order_asked() -> None:
    assert catalogue.expand_tasks(("sst2", "rte", "sst2")) == ["sst2", "rte"]
    assert catalogue.expand_tasks(("rte", "glue"))[:2] == ["rte", "cola"]
    assert len(catalogue.expand_tasks(("glue",))) == 8
    with pytest.raises(Refused, match=r"no task .sst3.; known: cola, .*; groups: glue"):
        catalogue.expand_tasks(("sst3",))


@pytest.mark.parametrize("task", catalogue.task_names())
def test_a_task_says_how_it_is_scored(task: str) -> None:
    info, metric = catalogue.task_info(task), catalogue.metric(task)
    assert info["metric"] == metric.name
    assert metric.worst < metric.ceiling
    assert catalogue.num_outputs(task) == len(info["labels"] or [1])


def test_demo_rows_are_looked_at_without_network() -> None:
    data = DataSpec(source="demo", limit_train=40, limit_eval=20)
    seen = catalogue.look_at_data("rte", data)
    assert seen["rows"] == {"train": 40, "validation": 20}
    assert (seen["source"], seen["limit_train"]) == ("demo", 40)
    assert 0.5 <= seen["majority"] < 1
    assert seen["mean_tokens"] > 3
    assert seen == catalogue.look_at_data("rte", data)
    assert seen["fingerprint"] != catalogue.look_at_data("sst2", data)["fingerprint"]


def test_rows_that_cannot_be_had_are_refused(tmp_path: Path) -> None:
    data = DataSpec(source="hub", data_dir=str(tmp_path / "nowhere"))
    with pytest.raises(Refused, match="nowhere"):
        catalogue.look_at_data("rte", data)


def test_a_backbone_s_folder_is_an_absolute_path_and_a_name_stays_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert catalogue.local_path("./mine") == str(tmp_path / "mine")
    assert catalogue.local_path("minilm") == "minilm"
    assert catalogue.local_path("FacebookAI/roberta-base") == "FacebookAI/roberta-base"
    with pytest.raises(Refused, match="no backbone 'nowhere'; known: "):
        catalogue.local_path("nowhere")


def test_a_training_step_of_a_whole_backbone_costs_a_third_more() -> None:
    frozen, whole = (
        catalogue.forward_cost(method, "roberta-base") for method in ("aot_fc", "fine_tuning")
    )
    assert frozen[0] == whole[0] < catalogue.backbone_info("roberta-base")["parameters"]
    assert (frozen[1], whole[1]) == (2, 3)


AOT_TABLE_1 = {
    "fine_tuning": (False, True, False),
    "lora": (True, False, True),
    "adapters": (True, False, True),
    "bitfit": (True, True, True),
    "ptuning_v1": (True, False, True),
    "ptuning_v2": (True, False, True),
    "aot_fc": (True, True, True),
    "aot_kron": (True, True, True),
}
"""Parameter efficient, zero cost, multi-task inference."""


@pytest.mark.parametrize("method", list(AOT_TABLE_1))
def test_what_a_method_costs_is_the_table_of_aot(method: str) -> None:
    info = catalogue.method_info(method)
    found = (info.parameter_efficient, info.zero_cost, info.multi_task)
    assert found == AOT_TABLE_1[method]
    assert info.joins_weights is (method == "lora")  # the table's row of LoRA fused
