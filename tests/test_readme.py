"""What the README says is so."""

import re
from pathlib import Path

import pytest

from orchestrator.cli import catalogue, launching, manage, reading  # noqa: F401 - they register
from orchestrator.cli.app import app
from orchestrator.method_table import with_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_table_of_methods_is_the_generated_one() -> None:
    assert with_table(README) == README


def test_it_is_short_enough_to_read() -> None:
    assert len(README.splitlines()) <= 200


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_exists(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^orchestrate (\w+)", README, re.M))))
def test_every_command_exists(command: str) -> None:
    assert command in {info.name or info.callback.__name__ for info in app.registered_commands}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake (\w+)", README))))
def test_every_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_the_example_of_one_trial_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    assert code is not None
    fewer = code[1].replace('DataSpec(source="demo")', 'DataSpec(source="demo", limit_train=32)')
    exec(compile(fewer, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 4
