"""What a launch can be asked for, and how a wrong value is refused."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import Refused
from orchestrator.options import (
    EXECUTION,
    LaunchOptions,
    from_row,
    names,
    of_resume,
    option,
    read_file,
    seconds,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("1h1m1s", 3661)],
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "90", "h", "2d", "1h 30m", "-2h", "2H", "1e3s", "2h!"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="must look like 90s, 30m, 2h or 1h30m"):
        seconds(text)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("search", "best", "no such one; known: random, grid, tpe"),
        ("scheduler", "pbt", "no such one; known: asha, none"),
        ("limit_train", 0, "must be at least 1"),
        ("limit_eval", -1, "must be at least 1"),
        ("trials", 0, "must be at least 1"),
        ("search_seed", -1, "must be at least 0"),
        ("seeds", 0, "must be at least 1"),
        ("max_epochs", 0, "must be at least 1"),
        ("patience", 0, "must be at least 1"),
        ("eta", 1, "must be at least 2"),
        ("grace", 0, "must be at least 1"),
        ("cpus_per_trial", 0.0, "must be more than 0"),
        ("gpus_per_trial", -0.5, "must be at least 0"),
        ("gpus_per_trial", 1.5, "must be a fraction of one GPU or whole"),
        ("workers", 0, "must be at least 1"),
        ("time_limit", 0.0, "must be more than 0"),
        ("device_hours", 0.0, "must be more than 0"),
        ("device_hours", math.nan, "must be more than 0"),
        ("time_limit", math.inf, "must be more than 0 and finite"),
        ("max_failures", -1, "must be at least 0"),
        ("repeats", 0, "must be at least 1"),
    ],
)
def test_a_bad_value_is_refused_with_the_option_s_name(field: str, value: Any, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        LaunchOptions(**{field: value})
    text = str(caught.value)
    assert text.startswith(f"{option(field)} {value if isinstance(value, str) else f'{value:g}'}: ")
    assert text.endswith(reason)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gpus_per_trial", 0.0),
        ("gpus_per_trial", 0.25),
        ("gpus_per_trial", 2.0),
        ("max_failures", 0),
        ("search_seed", 0),
        ("eta", 2),
    ],
)
def test_the_least_value_is_allowed(field: str, value: Any) -> None:
    assert getattr(LaunchOptions(**{field: value}), field) == value


def test_every_option_is_of_one_kind() -> None:
    options = LaunchOptions()
    fields = {field.name for field in dataclasses.fields(options)}
    assert options.identity.keys() | options.execution.keys() == fields
    assert options.execution.keys() == EXECUTION
    assert not options.identity.keys() & options.execution.keys()


def test_a_row_s_values_make_the_options_again() -> None:
    options = LaunchOptions(space=("a", "b"), tasks=("rte",), trials=3, workers=2, name="n")
    stored = options.identity | {"space": ["a", "b"], "tasks": ["rte"], "space_definitions": "x"}
    assert from_row(stored, options.execution) == options


def test_a_resume_drops_the_limits_of_the_launch_before_and_keeps_the_rest() -> None:
    launched = LaunchOptions(
        trials=7, workers=2, address="auto", time_limit=60, device_hours=0.5, max_failures=3
    )
    resumed = of_resume(launched.identity, launched.execution, {"device_hours": 2.0})
    assert resumed == LaunchOptions(trials=7, workers=2, address="auto", device_hours=2.0)
    again = of_resume(launched.identity, resumed.execution, {"workers": 1})
    assert again == LaunchOptions(trials=7, workers=1, address="auto")


def test_names_in_a_comma_list() -> None:
    assert names("a, b,,c ,") == ("a", "b", "c")
    assert names(None) == names("") == ()


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "launch.yaml"
    path.write_text(text)
    return path


def test_a_file_sets_options_by_their_names(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        """
        space: [aot_fc, ./mine.yaml]
        tasks: glue, rte
        max-epochs: 3
        --limit-train: 10
        time_limit: 1h30m
        device-hours: 2
        gpus_per_trial: 0.5
        name: mine
        """,
    )
    read = read_file(path)
    assert read == {
        "space": ("aot_fc", "./mine.yaml"),
        "tasks": ("glue", "rte"),
        "max_epochs": 3,
        "limit_train": 10,
        "time_limit": 5400,
        "device_hours": 2,
        "gpus_per_trial": 0.5,
        "name": "mine",
    }
    assert LaunchOptions(**read).name == "mine"


def test_a_number_as_time_limit_is_seconds(tmp_path: Path) -> None:
    assert read_file(file(tmp_path, "time-limit: 90")) == {"time_limit": 90}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("epochs: 3", "launch.yaml, key 'epochs': no launch option; known: address, backbone, "),
        ("trials: many", "launch.yaml, key 'trials': needs int, got 'many'"),
        ("trials: 2.5", "launch.yaml, key 'trials': needs int, got 2.5"),
        ("trials: true", "launch.yaml, key 'trials': needs int, got True"),
        ("trials:", "launch.yaml, key 'trials': needs int, got None"),
        ("device-hours: x", "launch.yaml, key 'device-hours': needs float or int, got 'x'"),
        ("name: 3", "launch.yaml, key 'name': needs str, got 3"),
        ("space: 3", "launch.yaml, key 'space': needs a name or a list of names, got 3"),
        ("tasks: [rte, 3]", "key 'tasks': needs a name or a list of names, got ['rte', 3]"),
        ("tasks: {rte: 1}", "key 'tasks': needs a name or a list of names, got {'rte': 1}"),
        ("time-limit: 2d", "duration '2d': must look like 90s"),
        ("[a, b]", "launch.yaml: needs names of launch options with values"),
        ("", "launch.yaml: needs names of launch options with values"),
        ("space: [a", "launch.yaml, line 1: "),
        ("a: 1\nb: : 2", "launch.yaml, line 2: "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(Refused) as caught:
        read_file(file(tmp_path, text))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"--config .*no\.yaml: No such file"):
        read_file(tmp_path / "no.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refused, match=r"binary\.yaml: not UTF-8"):
        read_file(tmp_path / "binary.yaml")
    with pytest.raises(Refused, match="Is a directory"):
        read_file(tmp_path)
