"""The one folder with everything local, and where the databases are."""

import os
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Refused


@dataclass(frozen=True)
class Home:
    """Paths below `ORCHESTRATE_HOME`, and the addresses that the environment may move."""

    folder: Path

    @property
    def store_url(self) -> str:
        """The trial database: `ORCHESTRATE_DB`, else a SQLite file."""
        return os.environ.get("ORCHESTRATE_DB") or f"sqlite:///{self.folder / 'orchestrate.db'}"

    @property
    def tracking_uri(self) -> str:
        """MLflow's store: `MLFLOW_TRACKING_URI`, else a SQLite file."""
        configured = os.environ.get("MLFLOW_TRACKING_URI")
        return configured or f"sqlite:///{self.folder / 'mlflow.db'}"

    @property
    def artifacts(self) -> Path:
        """MLflow's artifacts, where its store is ours."""
        return self.folder / "mlartifacts"

    @property
    def cache(self) -> Path:
        """Tokenised data."""
        return self.folder / "cache"

    @property
    def locks(self) -> Path:
        """One lock file per sweep that is being driven."""
        return self.folder / "locks"

    def sweep(self, sweep_id: str) -> Path:
        """A sweep's pictures and logs."""
        return self.folder / "sweeps" / sweep_id

    def check(self) -> None:
        """Refuse a folder that could not be made or written; writes nothing.

        Raises:
            Refused: with the reason.
        """
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not there.is_dir():
            raise self._unusable(f"{there} is not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise self._unusable(f"no permission in {there}")

    def make(self) -> None:
        """Create the folder.

        Raises:
            Refused: if it cannot be written.
        """
        probe = self.folder / f".writable-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise self._unusable(str(error.strerror)) from error

    def _unusable(self, reason: str) -> Refused:
        return Refused(
            f"home folder {self.folder} cannot be written ({reason}); "
            f"set ORCHESTRATE_HOME to one that can"
        )


def home() -> Home:
    """The home folder of this process: `ORCHESTRATE_HOME`, else ./orchestrate_home."""
    return Home(Path(os.environ.get("ORCHESTRATE_HOME") or "orchestrate_home").absolute())
