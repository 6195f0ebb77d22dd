"""An empty trial database; `store/` has its own fixtures, on every kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.store.database import Store, open_store


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'trials.db'}", create=True) as opened:
        yield opened
