"""One file per log format: bytes in, ledger events out."""
