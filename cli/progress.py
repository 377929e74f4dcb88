"""A progress bar over files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ledger.importing import FileReport

__all__ = ["file_progress"]


@contextmanager
def file_progress(files: int) -> Iterator[Callable[[FileReport], None]]:
    """Show a bar on standard error, and yield what advances it by one file."""
    columns = (TextColumn("reading logs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("files", total=files)
        yield lambda _report: bar.advance(task)
