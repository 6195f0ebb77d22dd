"""From options to a plan and its rows."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import Refused
from orchestrator.launch import repeats
from orchestrator.names import check_name
from orchestrator.options import EXECUTION, LaunchOptions, from_row
from orchestrator.plan import Plan, difference, make_plan
from orchestrator.plan_rows import assignment_hash, study_row, sweep_row, trial_rows, trial_spec
from orchestrator.profiles import PROFILES
from searchspaces import files
from searchspaces.files import SpaceError

DATA = {"source": "demo", "limit_train": 50, "limit_eval": None, "fingerprint": "rows"}
OWN = """\
method: aot_fc
space:
  learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}
  rank: {choice: [8, 16]}
training: {epochs: 2}
"""


def plan(profile: str = "demo", **options: Any) -> Plan:
    defaults: dict[str, Any] = {"space": ("aot_fc",), "tasks": ("rte",)}
    return make_plan(LaunchOptions(**defaults | options), PROFILES[profile])


def rows(made: Plan) -> list[dict[str, Any]]:
    found: list[Any] = [sweep_row(made, {}, 0.0)]
    for position in range(len(made.studies)):
        found += [study_row(made, position, DATA), *trial_rows(made, position)]
    return [dataclasses.asdict(row) for row in found]


@pytest.mark.parametrize("search", ["random", "tpe"])
def test_the_same_options_give_the_same_name_and_rows(search: str) -> None:
    once, again = (plan(space=("aot_fc", "head_only"), search=search) for _ in range(2))
    assert once.name == again.name
    assert rows(once) == rows(again)
    assert json.loads(json.dumps(once.identity)) == once.identity


def test_the_profile_fills_in_what_is_not_said() -> None:
    (study,) = plan().studies
    assert (study.num_trials, study.num_seeds, study.training.epochs) == (12, 1, 4)
    assert (study.backbone, study.space.name, study.label) == (
        "minilm",
        "aot_fc@demo",
        "aot_fc-rte",
    )
    (study,) = plan("paper").studies
    assert (study.num_trials, study.num_seeds, study.training.epochs) == (40, 5, 200)
    assert (study.backbone, study.training.patience) == ("roberta-base", 20)
    assert study.space.name == "aot_fc@aot"


def test_options_win_over_profile_and_space() -> None:
    made = plan("paper", trials=3, seeds=2, max_epochs=7, patience=1, backbone="minilm")
    (study,) = made.studies
    assert (study.num_trials, study.num_seeds, study.backbone) == (3, 2, "minilm")
    assert (study.training.epochs, study.training.patience) == (7, 1)


def test_a_value_of_the_profile_said_aloud_makes_no_other_sweep() -> None:
    said = plan(trials=12, seeds=1, max_epochs=4, backbone="minilm", profile="demo")
    assert said.name == plan().name


def test_a_grid_is_its_space_file_s_number_of_cells() -> None:
    sizes = {
        (task, scheduler): study.num_trials
        for scheduler in ("none", "asha")
        for task in ("sst2", "rte")
        for study in plan("paper", tasks=(task,), search="grid", scheduler=scheduler).studies
    }
    assert sizes == {
        ("sst2", "none"): 40,
        ("rte", "none"): 160,
        ("sst2", "asha"): 40,
        ("rte", "asha"): 160,
    }
    made = plan("paper", search="grid")
    cells = [assignment_hash(row.hyperparameters or {}) for row in trial_rows(made, 0)]
    assert len(set(cells)) == 160
    (some,) = plan("paper", search="grid", trials=30).studies
    assert (some.num_trials, some.grid_size) == (30, 160)
    (all_of_it,) = plan("paper", search="grid", trials=500).studies
    assert all_of_it.num_trials == 160


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("space", ("aot_fc@aot",)),
        ("tasks", ("rte", "sst2")),
        ("backbone", "roberta-base"),
        ("data_dir", "/data"),
        ("limit_train", 10),
        ("limit_eval", 10),
        ("search", "tpe"),
        ("search_seed", 1),
        ("seeds", 2),
        ("max_epochs", 3),
        ("patience", 2),
        ("scheduler", "none"),
        ("eta", 2),
        ("grace", 2),
        ("trials", 5),
    ],
)
def test_another_option_makes_another_sweep_and_the_difference_names_it(
    option: str, value: object
) -> None:
    known, asked = plan(), plan(**{option: value})
    assert known.name != asked.name
    assert difference(known.identity, asked.identity) == [option]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("workers", 3),
        ("address", "auto"),
        ("time_limit", 60.0),
        ("device_hours", 1.0),
        ("max_failures", 2),
        ("cpus_per_trial", 2.0),
        ("gpus_per_trial", 0.5),
        ("repeats", 2),
    ],
)
def test_how_a_sweep_is_run_does_not_change_what_it_is(option: str, value: object) -> None:
    known, asked = plan(), plan(**{option: value})
    assert known.name == asked.name
    assert known.identity == asked.identity
    assert sweep_row(asked, {}, 0.0).execution[option] == value
    assert option in EXECUTION


def test_a_row_gives_its_options_back() -> None:
    made = plan(space=("aot_fc", "head_only"), workers=2, name="mine")
    row = sweep_row(made, {}, 0.0)
    stored = json.loads(json.dumps(dataclasses.asdict(row)))
    assert from_row(stored["options"], stored["execution"]) == made.options


@pytest.mark.parametrize(
    ("known", "asked", "allowed"),
    [(12, 20, True), (12, 12, True), (12, 5, False), (None, 20, True), (None, 5, False)],
)
def test_only_the_number_of_trials_may_change_and_only_grow(
    known: int | None, asked: int, allowed: bool
) -> None:
    changed = difference(plan(trials=known).identity, plan(trials=asked).identity)
    assert changed == ([] if allowed else ["trials"])


def test_a_grid_without_a_number_of_trials_has_all_its_cells() -> None:
    part, whole = (plan("paper", search="grid", trials=n).identity for n in (10, None))
    assert difference(part, whole) == []
    assert difference(whole, part) == ["trials"]


def test_more_trials_add_rows_and_change_none() -> None:
    few, many = plan(name="mine", trials=5), plan(name="mine", trials=9)
    before, after = list(trial_rows(few, 0)), list(trial_rows(many, 0))
    assert after[:5] == before
    assert list(trial_rows(many, 0, first=5)) == after[5:]
    assert [row.k for row in after] == list(range(9))


def test_what_a_space_file_says_is_part_of_the_sweep(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(OWN)
    known = plan(space=(str(file),))
    file.write_text(OWN.replace("[8, 16]", "[8, 32]"))
    asked = plan(space=(str(file),))
    assert known.name != asked.name
    assert difference(known.identity, asked.identity) == ["space_definitions"]
    file.write_text(OWN.replace("epochs: 2", "epochs: 2, weight_decay: 0.1"))
    assert difference(known.identity, plan(space=(str(file),)).identity) == ["space_definitions"]


def test_a_worker_is_given_method_fields_and_training_fields_apart() -> None:
    made = plan("paper", seeds=2, limit_train=50)
    row = study_row(made, 0, DATA)
    stored = dataclasses.replace(row, **json.loads(json.dumps(dataclasses.asdict(row))))
    first = next(trial_rows(made, 0))
    assert first.hyperparameters is not None
    spec = trial_spec(stored, first.id, first.hyperparameters)
    assert spec.hyperparameters.keys() == {"rank", "learning_rate"}
    assert spec.training.batch_size == first.hyperparameters["batch_size"]
    assert (spec.training.epochs, spec.training.patience, spec.seeds) == (200, 20, (0, 1))
    assert (spec.method, spec.task, spec.backbone) == ("aot_fc", "rte", "roberta-base")
    assert (spec.data.source, spec.data.limit_train) == ("demo", 50)
    assert type(spec).from_json(spec.to_json()) == spec


def test_rows_say_what_their_numbers_mean() -> None:
    made = plan(tasks=("cola", "mrpc"), name="mine", seeds=3)
    first, second = (study_row(made, position, DATA) for position in range(2))
    assert (first.id, second.id) == ("mine/aot_fc-cola", "mine/aot_fc-mrpc")
    assert (first.metric, first.worst, first.ceiling) == ("matthews", -1.0, 1.0)
    assert (second.metric, second.worst, second.maximize) == ("accuracy_f1", 0.0, True)
    assert (first.grace, first.eta, first.max_epochs, first.seeds) == (1, 3, 4, [0, 1, 2])
    alone = study_row(plan(scheduler="none"), 0, DATA)
    assert (alone.grace, alone.eta) == (None, None)
    assert [row.id for row in trial_rows(made, 1)][:2] == [
        "mine/aot_fc-mrpc/0",
        "mine/aot_fc-mrpc/1",
    ]


def test_tpe_rows_wait_for_their_values() -> None:
    made = plan(search="tpe")
    assert {(row.hyperparameters, row.hash) for row in trial_rows(made, 0)} == {(None, None)}


def test_tasks_of_one_study_differ_in_their_space_where_the_file_says_so() -> None:
    made = plan("paper", tasks=("rte", "mnli", "qnli"))
    assert [study.training.epochs for study in made.studies] == [200, 5, 10]


def test_a_space_file_may_say_other_values_for_deberta() -> None:
    file = files.load("aot_fc")
    deberta, other = (
        file.space("aot", task="sst2", family=family) for family in ("deberta", "roberta")
    )
    assert (deberta.grid_size, other.grid_size) == (5 * 7 * 3, 40)
    assert (deberta.seeds, other.seeds) == (1, 5)


def test_two_sections_of_one_file_are_two_studies() -> None:
    made = plan(space=("aot_fc@demo", "aot_fc@aot"))
    assert [study.label for study in made.studies] == ["aot_fc@demo-rte", "aot_fc@aot-rte"]


def test_groups_of_tasks_are_spelled_out_once() -> None:
    made = plan(tasks=("glue", "rte"))
    assert [study.task for study in made.studies] == [
        *("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"),
    ]


def test_where_the_rows_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan().data.source == "demo"
    assert plan("paper").data.source == "hub"
    monkeypatch.chdir(tmp_path)
    data = plan(data_dir="rows").data
    assert (data.source, data.data_dir) == ("hub", str(tmp_path / "rows"))


def test_repeats_are_sweeps_of_their_own() -> None:
    made = plan(repeats=3, search_seed=4)
    several = list(repeats(made))
    assert [each.name for each in several] == [f"{made.name}-r{n}" for n in (1, 2, 3)]
    assert [each.options.search_seed for each in several] == [4, 5, 6]
    draws = [[row.hyperparameters for row in trial_rows(each, 0)] for each in several]
    assert draws[0] != draws[1] != draws[2]
    alone = plan()
    assert list(repeats(alone)) == [alone]


@pytest.mark.parametrize(
    "spaces", [("aot_fc",), ("aot_fc", "head_only", "fine_tuning"), ("aot_fc@aot", "aot_fc@demo")]
)
@pytest.mark.parametrize("tasks", [("glue",), ("rte", "sst2")])
def test_a_generated_name_is_a_valid_name(spaces: tuple[str, ...], tasks: tuple[str, ...]) -> None:
    name = plan(space=spaces, tasks=tasks).name
    assert check_name(name) == name
    assert name.startswith("aot_fc")


def test_a_space_file_with_a_long_name_has_a_valid_name_too(tmp_path: Path) -> None:
    file = tmp_path / f"{'long' * 18}.yaml"
    file.write_text(OWN)
    name = plan(space=(str(file),)).name
    assert check_name(name) == name


def refusal(tmp_path: Path, text: str, **options: Any) -> str:
    """Why a space file is refused, in one line."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises((Refused, SpaceError)) as caught:
        plan(space=(str(file),), **options)
    reason = str(caught.value)
    assert "\n" not in reason
    return reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "rank:",
            "rnak:",
            "space mine@own, key 'rnak': aot_fc has no such hyperparameter; known: ",
        ),
        ("epochs: 2", "epoch: 2", "space mine@own, key 'epoch': aot_fc has no such hyper"),
        (
            "rank: {choice: [8, 16]}",
            "rank: 8\n  epochs: {choice: [1, 5]}",
            "space mine@own, key 'epochs': how long trials train is not searched",
        ),
        ("epochs: 2", "rank: 2", "space mine@own, key 'rank': aot_fc has no such hyper"),
        ("[8, 16]", "[0]", "space mine@own: AotFC: rank must be at least 1, got 0"),
        ("[8, 16]", "[8.5]", "space mine@own, key 'rank': needs a whole number, got 8.5"),
        ("[8, 16]", "[big]", "space mine@own, key 'rank': needs a whole number, got 'big'"),
        ("[8, 16]", "[true]", "space mine@own, key 'rank': needs a whole number, got True"),
        ("  rank: {choice: [8, 16]}\n", "", "space mine@own: aot_fc needs a value for 'rank'"),
        ("epochs: 2", "epochs: 0", "space mine@own, training: epochs must be at least 1, got 0"),
        (
            "epochs: 2",
            "epochs: 2.5",
            "space mine@own, training, key 'epochs': needs a whole number, got 2.5",
        ),
        ("epochs: 2", "schedule: cosine", "training: schedule must be one of constant, linear"),
        (
            "epochs: 2",
            "patience: often",
            "key 'patience': needs a whole number or null, got 'often'",
        ),
        ("aot_fc", "aot_fd", "no method 'aot_fd'; known: "),
        ("[8, 16]", "[8, 1e-4]", "section 'own', key 'rank': '1e-4' is text in YAML"),
    ],
)
@pytest.mark.parametrize("search", ["random", "tpe"])
def test_a_space_that_does_not_fit_is_refused(
    tmp_path: Path, old: str, new: str, reason: str, search: str
) -> None:
    assert old in OWN
    assert reason in refusal(tmp_path, OWN.replace(old, new), search=search)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("dropout: {uniform: [0.0, 1.5]}", "AotFC: dropout must be in [0, 1), got 1.5"),
        ("dropout: {uniform: [-0.01, 0.5]}", "AotFC: dropout must be in [0, 1), got -0.01"),
        ("activation: {choice: [gelu, relu, tanh]}", "activation must be gelu or relu, got 'tanh'"),
        ("batch_size: {integer: [0, 1000000000]}", "batch_size must be at least 1, got 0"),
        ("warmup_ratio: {choice: [0.0, 1]}", "warmup_ratio must lie in [0, 1), got 1"),
    ],
)
def test_every_end_of_a_range_is_checked_where_results_choose_the_values(
    tmp_path: Path, key: str, reason: str
) -> None:
    text = OWN.replace("training:", f"  {key}\ntraining:")
    assert reason in refusal(tmp_path, text, search="tpe", trials=2)


def test_tied_values_are_checked_too(tmp_path: Path) -> None:
    text = OWN.replace(
        "training:", "  tied: [{dropout: [0.1, 2.0], batch_size: [8, 16]}]\ntraining:"
    )
    assert "dropout must be in [0, 1), got 2.0" in refusal(tmp_path, text, search="tpe")


def test_a_continuous_range_has_no_grid(tmp_path: Path) -> None:
    reason = refusal(tmp_path, OWN, search="grid")
    assert reason == (
        "a grid needs choices, but learning_rate of mine@own is a continuous range; "
        "use --search random or tpe"
    )


def test_a_file_whose_name_cannot_stand_in_a_study_s_is_refused_by_its_name(
    tmp_path: Path,
) -> None:
    file = tmp_path / "my space.yaml"
    file.write_text(OWN)
    with pytest.raises(Refused, match=r"^search space my space\.yaml: my space-rte: must be 1 to"):
        plan(space=(str(file),))


@pytest.mark.parametrize("search", ["random", "grid", "tpe"])
def test_a_space_with_one_assignment_has_one_trial(tmp_path: Path, search: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("method: head_only\nspace: {learning_rate: 1.0e-3}\ntraining: {epochs: 2}\n")
    (one,) = plan(space=(str(file),), search=search, trials=9).studies
    assert one.num_trials == 1
    file.write_text(file.read_text().replace("1.0e-3", "{choice: [1.0e-3, 1.0e-2]}"))
    (two,) = plan(space=(str(file),), search=search, trials=9).studies
    assert two.num_trials == (2 if search == "grid" else 9)


def test_a_space_is_named_once() -> None:
    with pytest.raises(Refused, match="--space aot_fc,aot_fc: more than one is aot_fc@demo"):
        plan(space=("aot_fc", "aot_fc"))
    with pytest.raises(Refused, match="more than one is aot_fc@demo"):
        plan(space=("aot_fc@demo", "aot_fc"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"space": ()}, "launch needs --space"),
        ({"tasks": ()}, "launch needs --tasks"),
        ({"tasks": ("rte", "sst3")}, "no task 'sst3'; known: cola, "),
        ({"backbone": "bertt"}, "no backbone 'bertt'; known: minilm"),
        ({"name": "a/b"}, "--name 'a/b': must be 1 to 80"),
    ],
)
def test_what_is_unknown_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        plan(**options)
