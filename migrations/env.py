"""Alembic's environment: runs revisions on the connection that ``migrations.upgrade`` opened."""

from alembic import context

from ledger.schema import metadata

connection = context.config.attributes["connection"]
# SQLite can't alter a table in place; batch mode copies it.
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
