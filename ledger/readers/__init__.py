"""Bytes in, ledger events out: one file per log format, and what the formats share."""
