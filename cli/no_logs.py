"""Files of a folder that are no logs: counted in one sentence, since a folder holds much else."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["told_no_logs"]


def told_no_logs(paths: Sequence[Path]) -> str:
    """Say how many files were passed over as no logs, and name the first; '' without any."""
    if not paths:
        return ""
    if len(paths) == 1:
        return f"skipped 1 file that is no log: {paths[0]}"
    return f"skipped {len(paths):,} files that are no logs, first {paths[0]}"
