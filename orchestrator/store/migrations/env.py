"""What alembic runs around the migrations: the connection and its transaction are the caller's."""

from alembic import context

from orchestrator.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite changes a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
