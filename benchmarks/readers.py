"""Reading of logs by format, against ``orjson.loads`` over the same bytes."""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from ledger.collector import collector_paused
from ledger.formats import DOCUMENTS, LINES, format_of
from ledger.log_file import ImportOptions, LogFile
from ledger.readers.discovery import log_files
from ledger.readers.lines import open_log

ROUNDS = 5
_LIMIT = 4_000


def unpacked(paths: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Write files without their compression, which would be timed too."""
    for number, path in enumerate(paths):
        with open_log(path) as file:
            target = folder / f"{number}-{path.name.removesuffix('.gz')}"
            target.write_bytes(file.read())
        yield target


def load(paths: Sequence[Path], *, whole: bool) -> int:
    """Parse every line, or every document, and return the bytes."""
    size = 0
    for path in paths:
        with path.open("rb") as file:
            for text in (file.read(),) if whole and path.suffix != ".jsonl" else file:
                size += len(text)
                with suppress(orjson.JSONDecodeError):  # what exporters could not parse
                    orjson.loads(text)
    return size


def read(paths: Sequence[Path], kind: str) -> int:
    """Make events of files, and return how many."""
    events = 0
    for path in paths:
        stat = path.stat()
        file = LogFile(path, kind, stat.st_size, stat.st_mtime_ns)
        options = ImportOptions(skip_corrupt=True)
        for batch in file.batches(lambda _: None, options, _LIMIT):
            events += len(batch)
        events += len(file.events)
    return events


def cpu(work: Callable[[], object]) -> float:
    """Return the median of a piece of work's processor seconds."""
    took = []
    for _ in range(ROUNDS):
        with collector_paused():
            begun = time.process_time()
            work()
            took.append(time.process_time() - begun)
    return statistics.median(took)


def report(folder: Path, target: Path) -> None:
    """Print sizes, seconds and ratios by format."""
    by_kind: dict[str, list[Path]] = defaultdict(list)
    for path in log_files([folder]):
        kind = format_of(path) or ""
        if kind in LINES | DOCUMENTS:
            by_kind[kind].append(path)
    for kind, packed in sorted(by_kind.items()):
        own = target / kind
        own.mkdir()
        paths = list(unpacked(packed, own))
        whole = kind in DOCUMENTS
        size = load(paths, whole=whole)
        loads, reads = cpu(lambda: load(paths, whole=whole)), cpu(lambda: read(paths, kind))  # noqa: B023
        print(
            f"{kind:<12} {len(paths):>5,} files {size / 1e6:6.1f} MB "
            f"{size / reads / 1e6:5.0f} MB/s: {reads / loads:4.1f} times orjson.loads",
            flush=True,
        )


def main() -> None:
    """Measure every format that a folder holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="logs of any agents")
    given = parser.parse_args()
    with TemporaryDirectory() as target:
        report(given.folder, Path(target))


if __name__ == "__main__":
    main()
