"""Which log files there are: in the paths given, or in the usual folders."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compactuary.errors import SourceError

__all__ = ["ENDINGS", "log_files", "usual_folders"]

ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")


def usual_folders(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders where agents keep their logs on this machine, those that exist."""
    found: list[Path] = []
    configured = environment.get("CLAUDE_CONFIG_DIR")
    home = Path(environment.get("HOME") or Path.home())
    for base in (Path(configured) if configured else None, home / ".claude"):
        if base is not None and (base / "projects").is_dir() and base / "projects" not in found:
            found.append(base / "projects")
    return found


def log_files(paths: Sequence[Path]) -> list[Path]:
    """Return the log files in the paths given, each once, folders searched through and through.

    Within a folder the order is by name, which puts a session before its sub-agents and slices of
    a session in their order.

    Raises
    ------
    SourceError
        If a path does not exist, or a folder holds no log.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(_walk(path))
            if not inside:
                raise SourceError(
                    "no log in this folder",
                    where=str(path),
                    remedy=f"Name a folder with files that end in {', '.join(ENDINGS)}.",
                )
            files |= dict.fromkeys(inside)
        elif path.exists():
            files[path.absolute()] = None
        else:
            raise SourceError("no such file or folder", where=str(path), remedy="Check the path.")
    return list(files)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder.absolute()):
        for name in names:
            if name.endswith(ENDINGS):
                yield Path(parent, name)
