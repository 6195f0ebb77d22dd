"""Imports go one way (the walk of one number has no way back)."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("searchspaces", "trials", "orchestrator", "dashboards")

ONLY_IN = {
    "ray": "orchestrator/cluster/",
    "sqlalchemy": "orchestrator/store/",
    "alembic": "orchestrator/store/",
    "mlflow": "orchestrator/tracking/",
    "typer": "orchestrator/cli/",
    "optuna": "orchestrator/searchers.py",
    "datasets": "trials/",
    "transformers": "trials/",
}
"""Each library has its one place."""

MAY_IMPORT_TRIALS = (
    "orchestrator/cluster/worker.py",
    "orchestrator/catalogue.py",
    "orchestrator/fit.py",
)

HEAVY = ("torch", "transformers", "datasets", "ray", "mlflow", "scipy", "matplotlib", "sklearn")


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield f"{node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    place = str(path.relative_to(ROOT))
    package = place.partition("/")[0]
    for name in imports(path):
        if package == "searchspaces":
            assert not any(within(name, other) for other in PACKAGES[1:]), name
        if package == "trials":
            assert not within(name, "orchestrator"), name
            assert not within(name, "searchspaces"), name
        if within(name, "trials") and package == "orchestrator":
            light = any(within(name, m) for m in ("trials.spec", "trials.backbones.shape"))
            allowed = light or name == "trials"
            assert allowed or place in MAY_IMPORT_TRIALS, f"{name} in {place}"
        assert not within(name, "dashboards") or package == "dashboards", name
        for library, home in ONLY_IN.items():
            assert not within(name, library) or place.startswith(home), f"{name} in {place}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_fits_in_a_head(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 250


@pytest.mark.parametrize(
    "module",
    [
        "orchestrator.cli.launching",
        "orchestrator.cli.reading",
        "orchestrator.cli.manage",
        "orchestrator.cli.catalogue",
        "orchestrator.cli.status",
        "orchestrator.store.database",
        "orchestrator.summaries",
        "orchestrator.tracking",
        "trials.spec",
    ],
)
def test_a_command_starts_without_heavy_libraries(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
