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

    def make(self) -> None:
        """Create the folder, or refuse with the reason why it cannot be written."""
        probe = self.folder / ".writable"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise Refused(
                f"home folder {self.folder} cannot be written ({error.strerror}); "
                f"set ORCHESTRATE_HOME to one that can"
            ) from error


def home() -> Home:
    """The home folder of this process: `ORCHESTRATE_HOME`, else ./orchestrate_home."""
    return Home(Path(os.environ.get("ORCHESTRATE_HOME") or "orchestrate_home").absolute())
