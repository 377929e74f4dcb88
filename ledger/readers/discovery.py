"""Which log files there are: in the paths given, or in the usual folders."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compactuary.errors import SourceError

__all__ = ["ENDINGS", "USUAL_FOLDERS", "is_document", "log_files", "usual_folders"]

#: Where agents keep their logs: the variable that moves the base, the base in the home folder,
#: and the folders of logs in it.
USUAL_FOLDERS = (
    ("CLAUDE_CONFIG_DIR", ".claude", ("projects",)),
    ("CODEX_HOME", ".codex", ("sessions", "archived_sessions")),
    ("PI_CODING_AGENT_DIR", ".pi/agent", ("sessions",)),
    ("PI_CODING_AGENT_DIR", ".omp/agent", ("sessions",)),
    ("", ".gemini", ("tmp",)),
)
#: Endings of logs that are one JSON document, as much else is in a folder.
_DOCUMENTS = (".json", ".traj", ".json.gz", ".traj.gz")
ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz", *_DOCUMENTS)


def is_document(path: Path) -> bool:
    """Say whether a file is named like one JSON document, not like lines."""
    return path.name.endswith(_DOCUMENTS)


def usual_folders(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders where agents keep their logs on this machine, those that exist."""
    home = Path(environment.get("HOME") or Path.home())
    found: dict[Path, None] = {}
    for variable, usual, names in USUAL_FOLDERS:
        moved = environment.get(variable)
        for base in (*((Path(moved),) if moved else ()), home / usual):
            found |= {base / name: None for name in names if (base / name).is_dir()}
    return list(found)


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
