"""Alembic environment and dated revisions of the ledger schema."""
