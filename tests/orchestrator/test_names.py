import pytest

from orchestrator.errors import Refused
from orchestrator.names import check_name, generated, match
from orchestrator.profiles import PROFILES, choose


@pytest.mark.parametrize("name", ["a", "3rd", "lora@aot-rte+1_x.y", "x" * 80])
def test_valid_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a/b", "a b", "a\n", "ä", "x" * 81, "../a"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="must be 1 to 80 letters, digits or"):
        check_name(name)


def test_a_generated_name_is_a_function_of_what_it_names() -> None:
    name = generated(["lora"], ["glue"], {"trials": 3})
    assert name == generated(["lora"], ["glue"], {"trials": 3})
    assert name != generated(["lora"], ["glue"], {"trials": 4})
    assert name.startswith("lora-glue-")


def test_generated_names_are_valid_and_seldom_the_same() -> None:
    names = {generated(["a", "b"], ["c"] * 9, {"seed": seed}) for seed in range(500)}
    assert all(check_name(name) for name in names)
    assert len(names) > 490
    long = generated(["x" * 90], ["y" * 90, "z"], {})
    assert check_name(long) == long


KNOWN = ["lora-rte", "lora-rte-2", "lora-sst2", "aot"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("aot", "aot"), ("a", "aot"), ("lora-rte", "lora-rte"), ("lora-s", "lora-sst2")],
)
def test_a_name_is_found_by_itself_or_by_the_beginning_of_it_alone(wanted: str, found: str) -> None:
    assert match(wanted, KNOWN, "sweep") == found


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("lora", "sweep 'lora' is not unique: lora-rte, lora-rte-2, lora-sst2"),
        ("", "sweep '' is not unique: lora-rte, lora-rte-2, lora-sst2, aot"),
        ("rte", "no sweep 'rte'; known: lora-rte, lora-rte-2, lora-sst2, aot"),
    ],
)
def test_what_is_not_found_is_refused_with_what_there_is(wanted: str, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        match(wanted, KNOWN, "sweep")
    assert str(caught.value) == reason


def test_long_lists_are_cut_and_empty_ones_said() -> None:
    with pytest.raises(Refused, match=r"known: s0, .*, s7 and 4 more"):
        match("x", [f"s{n}" for n in range(12)], "sweep")
    with pytest.raises(Refused, match="no sweep 'x'; known: none yet"):
        match("x", [], "sweep")


@pytest.mark.parametrize(
    ("wanted", "environment", "gpus", "name", "why"),
    [
        ("demo", "paper", 8, "demo", "asked for"),
        (None, "paper", 0, "paper", "ORCHESTRATE_PROFILE"),
        (None, None, 1, "paper", "there is a GPU"),
        (None, None, 0.5, "paper", "there is a GPU"),
        (None, "", 0, "demo", "there is no GPU"),
    ],
)
def test_a_profile_is_asked_for_or_follows_from_the_device(
    wanted: str | None, environment: str | None, gpus: float, name: str, why: str
) -> None:
    assert choose(wanted, environment, gpus) == (PROFILES[name], why)


@pytest.mark.parametrize("arguments", [("big", None), (None, "big")])
def test_an_unknown_profile_is_refused(arguments: tuple[str | None, str | None]) -> None:
    with pytest.raises(Refused, match="no profile 'big'; known: demo, paper"):
        choose(*arguments, 1)
