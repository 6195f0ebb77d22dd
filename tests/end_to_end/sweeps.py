"""`orchestrate` as a user runs it: processes, a home folder, and the database they leave."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.store.database import Store, open_store
from orchestrator.store.errors import NoDatabase, StoreError

DEADLINE_SECONDS = 120.0


@dataclass
class Sweeps:
    """The command line in one home folder."""

    home: Path
    backbone: Path
    address: str
    environment: dict[str, str] = field(default_factory=dict)

    def launch_words(self, *options: str) -> list[str]:
        """A launch on the tiny backbone and few rows."""
        return [
            "launch",
            *("--profile", "demo", "--backbone", str(self.backbone), "--address", self.address),
            *("--limit-train", "32", "--limit-eval", "32", *options),
        ]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin a command; its output goes to a file beside the home folder."""
        log = self.home.with_suffix(".log").open("a")
        return subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *words],
            env=self._environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    def json(self, *words: str) -> Any:
        """What a reading command prints as JSON."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def store(self) -> Store:
        """The trial database."""
        url = self.environment.get("ORCHESTRATE_DB", f"sqlite:///{self.home / 'orchestrate.db'}")
        return open_store(url, create=False)

    def wait(self, process: subprocess.Popen[str], until: Callable[[Store], bool]) -> None:
        """Until the database says so; fails if the process ends first or the deadline passes."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            try:
                with self.store() as store:
                    while time.monotonic() < deadline:
                        if until(store):
                            return
                        assert process.poll() is None, self.log()
                        time.sleep(0.02)
            except (NoDatabase, StoreError):
                assert process.poll() is None, self.log()
                time.sleep(0.05)  # not created yet
        raise AssertionError(f"not within {DEADLINE_SECONDS} s: {self.log()}")

    def log(self) -> str:
        """What started commands printed."""
        return self.home.with_suffix(".log").read_text()

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "ORCHESTRATE_HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            **self.environment,
        }


def num_reports(store: Store, sweep: str) -> int:
    """How many epochs of all trials are recorded."""
    with store.read() as reader:
        return sum(len(reader.study_reports(study.id)) for study in reader.studies(sweep))
