"""One log file → events, a batch at a time, from where an earlier import stopped."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from compactuary.errors import InputError, SourceError
from ledger.events import Event
from ledger.formats import DOCUMENTS, LINES, PLACEHOLDER
from ledger.readers import codex, gemini_cli, opencode, otel, pi, swe_agent, tau_bench
from ledger.readers.claude_code import HARNESS, ClaudeCodeReader
from ledger.readers.documents import documents
from ledger.readers.lines import fingerprint, whole_lines
from ledger.readers.tables import table_events
from ledger.recording import Recorded
from ledger.sources import Source

__all__ = ["ImportOptions", "LogFile", "SavedThread"]

#: ``thread_id -> state | None``: an agent's line of work as an earlier file left it.
SavedThread = Callable[[str], Mapping[str, Any] | None]
LineReader = ClaudeCodeReader | codex.CodexReader | pi.PiReader
#: Readers that know a log by its path.
_LINE_READERS: Mapping[str, type[codex.CodexReader | pi.PiReader]] = {
    codex.HARNESS: codex.CodexReader,
    pi.HARNESS: pi.PiReader,
}
#: Readers that are given every document of a file, and its path.
_DOCUMENT_READERS: Mapping[str, Callable[..., Iterator[Event]]] = {
    gemini_cli.HARNESS: gemini_cli.gemini_cli_events,
    opencode.HARNESS: opencode.opencode_events,
    otel.HARNESS: otel.otel_events,
    swe_agent.HARNESS: swe_agent.swe_agent_events,
    tau_bench.HARNESS: tau_bench.tau_bench_events,
}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to read.

    Parameters
    ----------
    role_by_project : bool
        Prefix roles with the folder the agent worked in.
    skip_corrupt : bool
        Read on behind a line that is not JSON, instead of refusing its file.
    reread : bool
        Read files from their beginning that shrank or were replaced.
    """

    role_by_project: bool = False
    skip_corrupt: bool = False
    reread: bool = False


@dataclass(slots=True)
class LogFile:
    """A file while it is read; what is counted here counts this import only.

    Parameters
    ----------
    path : Path
    kind : str
        The harness whose log it is, or a kind of table.
    size, mtime_ns : int
        As the file was before the first byte was read.
    known : Source, optional
        Where an earlier import stopped.
    """

    path: Path
    kind: str
    size: int
    mtime_ns: int
    known: Source | None = None
    offset: int = 0
    head_changes: bool = False
    lines: int = 0
    events: list[Event] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unknown_types: Mapping[str, int] = field(default_factory=dict)
    #: Rows of ``threads`` as this file leaves them.
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=Recorded)

    def batches(
        self, saved: SavedThread, options: ImportOptions, limit: int
    ) -> Iterator[list[Event]]:
        """Yield batches of at least ``limit`` events; what is left in the end is in ``events``.

        Raises
        ------
        SourceError
            Naming file and line, if a line can't be what the file's kind asks for.
        """
        if self.kind in LINES:
            return self._by_lines(saved, options, limit)
        if self.kind in DOCUMENTS:
            return self._by_documents(options, limit)
        return self._table(limit)

    def source(self) -> Source:
        """Return what to remember of the file once it has been read."""
        before = self.known.lines if self.known and self.kind in LINES else 0
        # Where the head may change it tells nothing about the file being the same.
        head = fingerprint(self.path, 0 if self.head_changes else self.offset)
        return Source(self.size, self.mtime_ns, self.offset, before + self.lines, head)

    def _by_lines(
        self, saved: SavedThread, options: ImportOptions, limit: int
    ) -> Iterator[list[Event]]:
        before = self.known.lines if self.known else 0
        self.offset = self.known.offset if self.known else 0
        reader = self._line_reader(saved, options)
        reader.events = self.events
        number = before
        feed, loads = reader.feed, orjson.loads
        for line, offset in whole_lines(self.path, self.offset):
            number += 1
            try:
                feed(loads(line))
            except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
                self._explain(error, line, number, options)
            self.offset = offset
            if len(reader.events) >= limit:
                yield reader.events
                self.events = reader.events = []
        self.lines = number - before
        self.unknown_types = reader.unknown_types
        self.head_changes = isinstance(reader, pi.PiReader) and reader.head_changes
        self.states = {
            thread_id: {
                "thread_id": thread_id,
                "session_id": state["session_id"],
                "state": orjson.dumps(state).decode(),
            }
            for thread_id, state in reader.flush().items()
        }

    def _line_reader(self, saved: SavedThread, options: ImportOptions) -> LineReader:
        """Return the reader of the file's kind, where an earlier import left it."""
        if self.kind == HARNESS:
            return ClaudeCodeReader(
                self.path.name.split(".")[0],
                saved,
                continued=self.offset > 0,
                role_by_project=options.role_by_project,
            )
        return _LINE_READERS[self.kind](
            str(self.path),
            saved,
            continued=self.offset > 0,
            role_by_project=options.role_by_project,
        )

    def _explain(self, error: Exception, line: bytes, number: int, options: ImportOptions) -> None:
        """Say what is wrong with a line, unless it may be passed over."""
        where = f"{self.path}:{number}" if number else str(self.path)
        if isinstance(error, orjson.JSONDecodeError):
            text = line.strip()
            if text == PLACEHOLDER or (text and options.skip_corrupt):
                self.skipped.append(where)
            elif text:
                raise SourceError(
                    "not valid JSON",
                    where=where,
                    value=line[:60].decode("utf-8", "replace"),
                    remedy="Repair or remove the line, "
                    "or read on behind such lines with --skip-corrupt.",
                ) from error
        elif isinstance(error, InputError):
            raise SourceError(
                error.problem,
                where=f"{where}: {error.where}",
                value=error.value,
                remedy=error.remedy,
            ) from error
        else:
            raise SourceError(
                f"not the shape of a {self.kind} line",
                where=where,
                value=f"{type(error).__name__}: {error}",
                remedy="Repair or remove the line.",
            ) from error

    def _by_documents(self, options: ImportOptions, limit: int) -> Iterator[list[Event]]:
        read = _DOCUMENT_READERS[self.kind]
        number = 0

        def counted() -> Iterator[Any]:
            nonlocal number
            for line, value in documents(self.path, partial(self._explain, options=options)):
                number = line
                yield value
                self.lines += 1

        try:
            for event in read(counted(), self.path, role_by_project=options.role_by_project):
                self.events.append(event)
                if len(self.events) >= limit:
                    yield self.events
                    self.events = []
        except SourceError:
            raise
        except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
            self._explain(error, b"", number, options)
        self.offset = self.size

    def _table(self, limit: int) -> Iterator[list[Event]]:
        told = 0
        for event, _line in table_events(self.path, self.kind):
            told += 1
            self.events.append(event)
            if len(self.events) >= limit:
                yield self.events
                self.events = []
        # A row of a table of turns tells of a beginning and an end.
        self.lines = told // 2 if self.kind == "turns" else told
        self.offset = self.size
