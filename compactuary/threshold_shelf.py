"""The shelf: every thresholds a client has asked about, kept fresh beside its callers."""

import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from compactuary.advice import Unanswered
from compactuary.connection import Connections
from compactuary.counters import Counters
from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.http_message import Answered, request_bytes
from compactuary.log_once import LogOnce
from compactuary.stored_thresholds import Asked, Held, file_of, held_from, load, store, touch

__all__ = ["GIVEN", "ThresholdShelf", "asked_for"]

#: What a question may say that thresholds depend on; a test holds it to the service's own.
GIVEN = (
    "context_after_tokens",
    "growth_tokens",
    "kind",
    "miss_probability",
    "prefix_tokens",
    "provider",
    "quality_cost",
    "requests_after_turn",
    "resume_probability",
    "rework_tokens",
    "rule",
    "strategy",
    "summary_model",
    "summary_output_tokens",
    "ttl",
    "unit",
    "window_tokens",
)
_NOT_COMPILED = ("weights", "cost", "saving")
_ENFORCE = "enforce"
_RETRY_SECONDS = 5.0
_FETCH_SECONDS = 10.0
#: Thresholds that nobody asked about for so long are not refreshed any more.
_FORGET_SECONDS = 3600.0
_MOST_KEPT = 256


def asked_for(role: Any, model: Any, fields: dict[str, Any]) -> Asked | None:
    """Return what thresholds a question is answered by, None where by none."""
    if not (isinstance(role, str) and role and isinstance(model, str) and model):
        return None
    if any(fields.get(name) is not None for name in _NOT_COMPILED):
        return None
    given = tuple((name, fields[name]) for name in GIVEN if fields.get(name) is not None)
    if not all(isinstance(value, str | int | float) for _, value in given):
        return None
    return Asked(role, model, given)


class ThresholdShelf:
    """Thresholds in memory, on disk and at the server; one thread keeps them the same.

    Parameters
    ----------
    folder : Path or None
        Where they are kept on disk; None is not at all.
    refresh_seconds : float
        How often the server is asked whether they changed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connections: Connections,
        counters: Counters,
        log: LogOnce,
        folder: Path | None,
        refresh_seconds: float,
    ) -> None:
        self._endpoint, self._connections = endpoint, connections
        self._counters, self._log = counters, log
        self._folder, self._refresh_seconds = folder, refresh_seconds
        self._held: dict[Asked, Held | None] = {}
        self._modes: dict[str, str] = {}
        self._closed = False
        self.renew()

    def renew(self) -> None:
        """Begin anew in a forked process: what is known stays, the thread is another."""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted: dict[Asked, float] = {}
        self._due: dict[Asked, float] = {}

    def close(self) -> None:
        """Let the thread end."""
        self._closed = True
        self._wake.set()

    def hear_mode(self, role: str, mode: object) -> None:
        """Take note of a role's mode, as the server told it with an answer."""
        room = role in self._modes or len(self._modes) < _MOST_KEPT
        if isinstance(mode, str) and room:
            self._modes[role] = mode

    def mode_of(self, role: str, held: Held) -> str:
        """Return the mode of a role as it was last heard."""
        return self._modes.get(role, held.mode)

    def want(self, asked: Asked) -> None:
        """Have these thresholds fetched and kept fresh while they are asked about."""
        known = asked in self._wanted
        if not known and len(self._wanted) >= _MOST_KEPT:
            return
        self._wanted[asked] = time.monotonic()
        if not known or self._thread is None:
            self._start()

    def find(self, asked: Asked) -> Held | None:
        """Return the last good thresholds, from memory, else from disk."""
        if asked not in self._held:
            self._keep(asked, self._load(asked))
        return self._held.get(asked)

    def limit_of(self, model: Any) -> float | None:
        """Return the lowest hard limit known of a model, in tokens."""
        known = [
            held.thresholds.hard_limit_tokens
            for asked, held in list(self._held.items())
            if held is not None and asked.model == model
        ]
        return min((limit for limit in known if limit is not None), default=None)

    def _start(self) -> None:
        with self._lock:
            self._wake.set()
            if self._thread is not None or self._closed:
                return
            thread = threading.Thread(target=self._run, name="compactuary-thresholds", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # Too many threads, or the process is ending: the next question tries again.
                self._log.tell("no thread", f"Thresholds wait for a thread: {error}.")
            else:
                self._thread = thread

    def _run(self) -> None:
        while not self._closed:
            self._wake.clear()
            now = time.monotonic()
            for asked, used in list(self._wanted.items()):
                if now - used > _FORGET_SECONDS:
                    self._wanted.pop(asked, None)
                    self._due.pop(asked, None)
                elif self._due.get(asked, 0.0) <= now and not self._closed:
                    well = self._guarded_refresh(asked)
                    pause = self._refresh_seconds if well else _RETRY_SECONDS
                    self._due[asked] = time.monotonic() + pause
            now = time.monotonic()
            soonest = min(self._due.values(), default=now + self._refresh_seconds)
            self._wake.wait(max(0.0, soonest - now))

    def _guarded_refresh(self, asked: Asked) -> bool:
        try:
            return self._refresh(asked)
        except Exception as error:  # noqa: BLE001 - the thread must outlive a fault of its own
            self._counters.count("thresholds_failed")
            self._log.tell(("thresholds", type(error)), f"Thresholds can't be kept: {error!r}")
            return False

    def _refresh(self, asked: Asked) -> bool:
        """Ask the server whether thresholds changed; return whether it said so either way."""
        held = self.find(asked)
        mode = self._modes.get(asked.role, _ENFORCE if held is None else held.mode)
        query = urlencode([("model", asked.model), *asked.given], errors="surrogatepass")
        role = quote(asked.role, safe="", errors="surrogatepass")
        etag = None if held is None else held.etag
        request = request_bytes(
            self._endpoint, "GET", f"/thresholds/{role}?{query}", None, _header(etag)
        )
        said = self._connections.exchange(request, time.monotonic() + _FETCH_SECONDS)
        if isinstance(said, Answered) and said.status == 304 and held is not None:
            self._counters.count("thresholds_confirmed")
            changed = mode != held.mode
            held = held._replace(confirmed_at=time.time(), mode=mode)
            self._keep(asked, held)
            self._write(asked, held, changed=changed)
            return True
        fresh = _fresh(said, mode)
        if isinstance(fresh, Unanswered):
            self._counters.count("thresholds_failed")
            if fresh.code not in ("timeout", "unreachable"):
                self._log.tell(("thresholds", fresh.code), f"No thresholds: {fresh.text}.")
            return False
        self._counters.count("thresholds_fetched")
        self._keep(asked, fresh)
        self._write(asked, fresh, changed=True)
        return True

    def _keep(self, asked: Asked, held: Held | None) -> None:
        with self._lock:
            if asked not in self._held and len(self._held) >= _MOST_KEPT:
                del self._held[next(iter(self._held))]
            self._held[asked] = held

    def _load(self, asked: Asked) -> Held | None:
        if self._folder is None:
            return None
        try:
            return load(file_of(self._folder, self._endpoint, asked), asked)
        except (InputError, OSError) as error:
            self._counters.count("cache_ignored")
            self._log.tell("cache_ignored", f"Stored thresholds are ignored: {error}.")
            return None

    def _write(self, asked: Asked, held: Held, *, changed: bool) -> None:
        if self._folder is None:
            return
        try:
            file = file_of(self._folder, self._endpoint, asked)
            if changed or not file.exists():
                store(file, asked, held)
            else:
                touch(file, held.confirmed_at)
        except OSError as error:
            self._counters.count("cache_unwritten")
            self._log.tell("cache_unwritten", f"Thresholds can't be stored: {error}.")


def _header(etag: str | None) -> str | None:
    """Return an ETag that may be sent; what a file says is not to be trusted."""
    return etag if etag and etag.isascii() and etag.isprintable() else None


def _fresh(said: Answered | Unanswered, mode: str) -> Held | Unanswered:
    """Return the thresholds of an answer, or why it has none."""
    if isinstance(said, Unanswered):
        return said
    if said.status != 200:
        return Unanswered("refused", f"the server answered {said.status}")
    try:
        document = json.loads(said.body)
        told = document.get("mode")
        mode = told if isinstance(told, str) else mode
        return held_from(document, said.headers.get("etag"), mode)
    except (ValueError, AttributeError, RecursionError, InputError) as error:
        return Unanswered("garbage", f"the server's thresholds: {error}")
