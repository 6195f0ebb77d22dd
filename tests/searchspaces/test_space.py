import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from searchspaces.files import SpaceError, known_spaces, load
from searchspaces.space import Space


def aot(task: str = "sst2", family: str = "roberta") -> Space:
    return load("aot_fc").space("aot", task=task, family=family)


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_an_assignment_is_a_function_of_space_seed_and_number() -> None:
    space, again = aot(), aot()
    draws = [space.draw(3, k) for k in range(20)]
    assert draws == [again.draw(3, k) for k in range(20)]
    assert draws != [space.draw(4, k) for k in range(20)]
    assert len({str(draw) for draw in draws}) > 10


def test_the_order_of_drawing_does_not_matter() -> None:
    space = aot()
    assert [space.draw(0, k) for k in reversed(range(9))][::-1] == [
        aot().draw(0, k) for k in range(9)
    ]


def test_two_methods_draw_independently() -> None:
    other = load("fine_tuning").space("aot", task="sst2", family="roberta")
    space = aot()
    same = [space.draw(0, k)["batch_size"] == other.draw(0, k)["batch_size"] for k in range(400)]
    assert 0.4 < sum(same) / len(same) < 0.6


def test_every_choice_is_about_equally_likely() -> None:
    space = aot()
    counts = Counter(space.draw(0, k)["rank"] for k in range(5000))
    assert set(counts) == {32, 64, 128, 256, 512}
    assert all(900 < count < 1100 for count in counts.values())


@pytest.mark.parametrize(
    ("task", "family", "cells"),
    [
        ("sst2", "roberta", 40),
        ("rte", "roberta", 160),
        ("mnli", "bert", 40),
        ("cola", "deberta", 105),
    ],
)
def test_the_papers_grid_has_the_papers_size(task: str, family: str, cells: int) -> None:
    assert aot(task, family).grid_size == cells


def test_a_grid_visits_every_cell_once_in_a_seeded_order() -> None:
    space = aot()
    cells = [space.grid_cell(1, k) for k in range(space.grid_size)]
    assert sorted(map(str, cells)) == sorted(map(str, space.grid()))
    assert cells != space.grid()
    assert cells != [space.grid_cell(2, k) for k in range(space.grid_size)]


def test_a_continuous_range_has_no_grid() -> None:
    space = load("aot_fc").space("demo", task="sst2", family="bert")
    with pytest.raises(ValueError, match="learning_rate of aot_fc@demo is a continuous range"):
        _ = space.grid_size


@pytest.mark.parametrize("name", known_spaces())
def test_every_space_names_its_source(name: str) -> None:
    file = load(name)
    for section in file.sections:
        assert file.space(section, task="rte", family="bert").source


def test_tied_values_go_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "method: adept\nspace:\n  learning_rate: 0.3\n"
        "  tied:\n    - {prompt_length: [20, 40], bottleneck: [39, 29]}\n",
    )
    space = load(path).space("own", task="rte", family="bert")
    pairs = {(d["prompt_length"], d["bottleneck"]) for d in (space.draw(0, k) for k in range(50))}
    assert pairs == {(20, 39), (40, 29)}
    assert space.grid_size == 2


def test_a_case_overrides_only_what_it_names() -> None:
    rte, sst2 = aot("rte"), aot("sst2")
    assert rte.training["epochs"] == 200
    assert sst2.training["epochs"] == 100
    assert rte.free["rank"] == sst2.free["rank"]


def test_the_section_is_the_one_wanted_else_the_first_preferred_else_the_first() -> None:
    file = load("aot_fc")
    assert file.section("demo", ["aot"]) == "demo"
    assert file.section(None, ["demo", "aot"]) == "demo"
    assert file.section(None, ["ept"]) == "aot"


@pytest.mark.parametrize("name", ["lpt", "id_spam"])
def test_a_case_may_depend_on_the_backbone(name: str) -> None:
    def layers(backbone: str) -> Any:
        space = load(name).space("id_spam", task="rte", family="roberta", backbone=backbone)
        return space.free["insertion_layer"].cells()

    for large in ("roberta-large", "FacebookAI/roberta-large"):
        assert layers(large) == tuple(range(1, 24))
    for other in ("roberta-base", "FacebookAI/roberta-base", ""):
        assert layers(other) == tuple(range(1, 12))


def test_a_case_applies_where_all_that_it_names_does(tmp_path: Path) -> None:
    case = "{task: [rte], backbone: [a, b], space: {r: 2}}"
    file = load(write(tmp_path, f"method: m\nspace: {{r: 1}}\nwhen: [{case}]"))
    for task, backbone, rank in (
        ("rte", "a", 2),
        ("rte", "b", 2),
        ("sst2", "a", 1),
        ("rte", "c", 1),
    ):
        space = file.space("own", task=task, family="bert", backbone=backbone)
        assert space.draw(0, 0) == {"r": rank}


BAD = {
    "method: m\nspace: {lr: {log_uniform: [0.01, 0.0001]}}": r"key 'lr': log_uniform needs numbers",
    "method: m\nspace: {lr: {log_uniform: [0, 1]}}": r"key 'lr': log_uniform needs 0 < low < high",
    "method: m\nspace: {lr: 1e-4}": r"key 'lr': '1e-4' is text in YAML; write it with a dot",
    "method: m\nspace: {lr: {choise: [1]}}": r"needs exactly one of choice",
    "method: m\nspace: {lr: {choice: []}}": r"choice needs a list",
    "method: m\nspace: {lr: .nan}": r"finite number",
    "method: m\nspace: {r: {integer: [1, 2.5]}}": r"integer needs whole numbers",
    "method: m\nspace: {r: 1}\nsection: x": r"unknown key 'section'",
    "space: {r: 1}": r"key 'method'",
    "method: m": r"key 'sections'",
    "method: m\nspace: {r: 1\n": r"mine.yaml, line",
    "method: m\nspace: {r: 1, r: 2}": r"key 'r' stands twice",
    "method: m\nspace: {tied: [{a: [1, 2], b: [1]}]}": r"equal lengths",
    "method: m\nspace: {a: 1, tied: [{a: [1, 2]}]}": r"both tied and free",
    "method: m\nspace: {a: 1}\nwhen: [{task: rte, space: {a: 2}}]": r"needs a list of names",
    "method: m\nspace: {a: 1}\nwhen: [{backbone: x, space: {a: 2}}]": r"backbone needs a list",
    "method: m\nspace: {a: 1}\nwhen: [{space: {a: 2}}]": r"needs task, family or backbone",
    "method: m\nspace: {a: 1}\nwhen: [{backbone: [x], space: {a: {choice: 3}}}]": r"a list of v",
    "method: m\nspace: {a: 1}\nwhen: [{task: [x], space: {a: {choice: 3}}}]": r"needs a list of v",
    "- 1": r"needs the keys",
}


@pytest.mark.parametrize(("text", "reason"), list(BAD.items()))
def test_a_malformed_file_is_refused_with_file_key_and_reason(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(SpaceError, match=reason) as caught:
        load(write(tmp_path, text))
    assert str(caught.value).startswith("mine.yaml")
    assert "\n" not in str(caught.value)


def test_an_unknown_space_names_the_known_ones() -> None:
    with pytest.raises(SpaceError, match=r"no search space named 'aot_fd'; known: .*aot_fc, "):
        load("aot_fd")


@pytest.mark.parametrize("name", known_spaces())
def test_a_space_is_its_description(name: str) -> None:
    file = load(name)
    for section in file.sections:
        space = file.space(section, task="rte", family="deberta")
        again = Space.from_description(json.loads(json.dumps(space.describe())))
        assert again == space
        assert again.draw(5, 7) == space.draw(5, 7)


def test_the_papers_seeds_differ_by_backbone() -> None:
    assert aot(family="roberta").seeds == 5
    assert aot(family="deberta").seeds == 1


def test_equal_spaces_describe_themselves_equally() -> None:
    descriptions = [aot(task).describe() for task in ("sst2", "cola", "rte")]
    assert descriptions[0] == descriptions[1] != descriptions[2]
    assert len(list(itertools.chain(*(d["space"] for d in descriptions)))) == 9
