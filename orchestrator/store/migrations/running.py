"""Alembic, called from code: no ini file, no command line."""

from collections.abc import Sequence
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection


def upgrade(connection: Connection, head: str, folders: Sequence[Path]) -> None:
    """Run the missing migrations up to `head` in the transaction that the connection is in."""
    config = _config(folders)
    config.attributes["connection"] = connection
    command.upgrade(config, head)


def known_revisions(folders: Sequence[Path]) -> list[str]:
    """The revisions in the folders, newest first."""
    script = ScriptDirectory.from_config(_config(folders))
    return [migration.revision for migration in script.walk_revisions()]


def _config(folders: Sequence[Path]) -> Config:
    config = Config()
    options = {
        "script_location": str(Path(__file__).parent),
        "path_separator": "newline",
        "version_locations": "\n".join(map(str, folders)),
    }
    for name, value in options.items():
        config.set_main_option(name, value.replace("%", "%%"))  # a path may hold a percent sign
    return config
