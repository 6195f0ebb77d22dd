"""The tables of the trial database, column for column the records of rows.py.

Constraints carry names, so that a later migration can change them on SQLite as well.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Enum,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from orchestrator.outcome import Outcome

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class LogText(TypeDecorator[str]):
    """Text from a log: what UTF-8 or PostgreSQL cannot hold becomes a replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it can be stored."""
        return value and value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _outcome() -> Enum:
    return Enum(
        Outcome,
        native_enum=False,
        validate_strings=True,
        length=32,
        values_callable=lambda outcomes: [outcome.value for outcome in outcomes],
    )


def _counter() -> Column[int]:
    # SQLite counts by itself only in a column declared INTEGER
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _parent(column: str, key: str, **options: Any) -> Column[str]:
    return Column(column, Text, ForeignKey(key, ondelete="CASCADE"), nullable=False, **options)


sweep = Table(
    "sweep",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("execution", JSON, nullable=False),
    Column("versions", JSON, nullable=False),
    Column("profile", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("stop_requested", Boolean, nullable=False),
    Column("wall_seconds", Double, nullable=False),
    Column("tracking_run", Text),
)

study = Table(
    "study",
    METADATA,
    Column("id", Text, primary_key=True),
    _parent("sweep_id", "sweep.id"),
    Column("position", Integer, nullable=False),
    Column("space", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("backbone", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("maximize", Boolean, nullable=False),
    Column("worst", Double, nullable=False),
    Column("ceiling", Double, nullable=False),
    Column("num_trials", Integer, nullable=False),
    Column("seeds", JSON, nullable=False),
    Column("max_epochs", Integer, nullable=False),
    Column("searcher", Text, nullable=False),
    Column("search_seed", BigInteger, nullable=False),
    Column("grid_size", BigInteger),
    Column("scheduler", Text, nullable=False),
    Column("grace", Integer),
    Column("eta", Integer),
    Column("space_definition", JSON, nullable=False),
    Column("data", JSON, nullable=False),
    Column("tracking_run", Text),
    Index(None, "sweep_id", "position"),
)

trial = Table(
    "trial",
    METADATA,
    Column("id", Text, primary_key=True),
    _parent("study_id", "study.id"),
    Column("k", Integer, nullable=False),
    Column("hyperparameters", JSON(none_as_null=True)),
    Column("hash", Text, index=True),
    Column("outcome", _outcome(), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("score", Double),
    Column("epochs", Integer, nullable=False),
    Column("device_seconds", Double, nullable=False),
    Column("random_startup", Boolean, nullable=False),
    Column("claimed_at", Double),
    Column("finished_at", Double),
    Column("worker", Text),
    Column("error", LogText),
    Column("tracking_run", Text),
    UniqueConstraint("study_id", "k"),
    Index(None, "study_id", "outcome"),
)

run = Table(
    "run",
    METADATA,
    _parent("trial_id", "trial.id", primary_key=True),
    Column("seed", BigInteger, primary_key=True),
    Column("outcome", _outcome(), nullable=False),
    Column("score", Double),
    Column("best_epoch", Integer),
)

# its key begins with trial_id, so it is the index by trial as well
report = Table(
    "report",
    METADATA,
    _parent("trial_id", "trial.id", primary_key=True),
    Column("seed", BigInteger, primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("value", Double, nullable=False),
    Column("score", Double, nullable=False),
    Column("loss", Double),
    Column("train_loss", Double),
    Column("metrics", JSON, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("created_at", Double, nullable=False),
)

decision = Table(
    "decision",
    METADATA,
    _counter(),
    _parent("trial_id", "trial.id"),
    _parent("study_id", "study.id"),
    Column("rung", Integer, nullable=False),
    Column("value", Double, nullable=False),
    Column("loss", Double),
    Column("threshold", Double),
    Column("count", Integer, nullable=False),
    Column("stop", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("trial_id", "rung"),
    Index(None, "study_id", "id"),
)

outbox = Table(
    "outbox",
    METADATA,
    _counter(),
    _parent("sweep_id", "sweep.id"),
    Column("kind", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "sweep_id", "id"),
    sqlite_autoincrement=True,  # delivered messages are deleted, and no later one takes their id
)

checkpoint = Table(
    "checkpoint",
    METADATA,
    _parent("trial_id", "trial.id", primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    Column("num_bytes", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
)
