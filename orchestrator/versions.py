"""What a sweep was run with: packages, Python, the state of the code, the machine."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("orchestrate", "ray", "torch", "transformers", "datasets", "optuna", "mlflow")


def versions() -> dict[str, Any]:
    """The versions and the git state of this process, as JSON values."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "git": git_state(Path.cwd()),
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "command": " ".join(sys.argv[1:]),
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and whether there are changes on top of it; None outside a repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
