"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _sweep()
    _study()
    _trial_and_run()
    _report_and_decision()
    _outbox_and_checkpoint()


def _counter() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
    )


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=op.f(f"uq_{table}_{'_'.join(columns)}"))


def _index(table: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))


def _sweep() -> None:
    op.create_table(
        "sweep",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("execution", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double()),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("wall_seconds", sa.Double(), nullable=False),
        sa.Column("tracking_run", sa.Text()),
        _key("sweep", "id"),
    )


def _study() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sweep_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("backbone", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("maximize", sa.Boolean(), nullable=False),
        sa.Column("worst", sa.Double(), nullable=False),
        sa.Column("ceiling", sa.Double(), nullable=False),
        sa.Column("num_trials", sa.Integer(), nullable=False),
        sa.Column("seeds", sa.JSON(), nullable=False),
        sa.Column("max_epochs", sa.Integer(), nullable=False),
        sa.Column("searcher", sa.Text(), nullable=False),
        sa.Column("search_seed", sa.BigInteger(), nullable=False),
        sa.Column("grid_size", sa.BigInteger()),
        sa.Column("scheduler", sa.Text(), nullable=False),
        sa.Column("grace", sa.Integer()),
        sa.Column("eta", sa.Integer()),
        sa.Column("space_definition", sa.JSON(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("tracking_run", sa.Text()),
        _key("study", "id"),
        _reference("study", "sweep_id", "sweep"),
    )
    _index("study", "sweep_id", "position")


def _trial_and_run() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("study_id", sa.Text(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("hyperparameters", sa.JSON()),
        sa.Column("hash", sa.Text()),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("epochs", sa.Integer(), nullable=False),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("random_startup", sa.Boolean(), nullable=False),
        sa.Column("claimed_at", sa.Double()),
        sa.Column("finished_at", sa.Double()),
        sa.Column("worker", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("tracking_run", sa.Text()),
        _key("trial", "id"),
        _reference("trial", "study_id", "study"),
        _unique("trial", "study_id", "k"),
    )
    _index("trial", "hash")
    _index("trial", "study_id", "outcome")
    op.create_table(
        "run",
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("best_epoch", sa.Integer()),
        _key("run", "trial_id", "seed"),
        _reference("run", "trial_id", "trial"),
    )


def _report_and_decision() -> None:
    op.create_table(
        "report",
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("loss", sa.Double()),
        sa.Column("train_loss", sa.Double()),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        _key("report", "trial_id", "seed", "epoch"),
        _reference("report", "trial_id", "trial"),
    )
    op.create_table(
        "decision",
        _counter(),
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("study_id", sa.Text(), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("loss", sa.Double()),
        sa.Column("threshold", sa.Double()),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        _key("decision", "id"),
        _reference("decision", "trial_id", "trial"),
        _reference("decision", "study_id", "study"),
        _unique("decision", "trial_id", "rung"),
    )
    _index("decision", "study_id", "id")


def _outbox_and_checkpoint() -> None:
    op.create_table(
        "outbox",
        _counter(),
        sa.Column("sweep_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        _key("outbox", "id"),
        _reference("outbox", "sweep_id", "sweep"),
        sqlite_autoincrement=True,
    )
    _index("outbox", "sweep_id", "id")
    op.create_table(
        "checkpoint",
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("num_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        _key("checkpoint", "trial_id", "epoch"),
        _reference("checkpoint", "trial_id", "trial"),
    )
