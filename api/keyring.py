"""The keyring: the ledger's keys as a worker holds them in memory, and the thread that reads on."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Engine

from compactuary.errors import CompactuaryError
from ledger.clock import iso
from ledger.database import reading
from ledger.keys import Key, read_keys

__all__ = ["Keyring", "KeyringState"]

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyringState:
    """The keys by their public part, and how reading them fares; replaced as a whole.

    Parameters
    ----------
    keys : mapping of str to Key, or None
        None until the ledger has been read once.
    checked_ms : int or None
        When they were last read.
    error : str or None
        Why they can't be read now; those read before stay in force.
    """

    keys: Mapping[str, Key] | None = None
    checked_ms: int | None = None
    error: str | None = None

    @property
    def required(self) -> bool:
        """Whether callers need a key: wherever one was ever made, even if none is in force."""
        return bool(self.keys)

    def as_payload(self, now_ms: int) -> dict[str, Any]:
        """Return plain JSON values: how many keys there are, and nothing of any of them."""
        states = [key.state(now_ms) for key in (self.keys or {}).values()]
        return {
            "keys_required": self.required,
            "keys_in_force": states.count("in force"),
            "checked_at": iso(self.checked_ms),
            "error": self.error,
        }


@dataclass(slots=True)
class Keyring:
    """Keeps ``state.keys`` as new as the ledger, in a thread of its own.

    A refresh of large tables must not keep a revoked key alive, so this is not the refresher's.

    Parameters
    ----------
    engine : Engine
    seconds : float
        How often the keys are read.
    now_ms : callable
        The clock.
    """

    engine: Engine
    seconds: float
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    state: KeyringState = field(default_factory=KeyringState)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Read the keys at once, then go on in the background."""
        self.read()
        self._thread = threading.Thread(target=self._run, name="keyring", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def read(self) -> None:
        """Read the keys; a failure is kept in ``state`` and the keys stay as they were.

        Where the rows of known keys are gone, those keys are, but a key is still asked for.
        """
        try:
            with reading(self.engine) as connection:
                found = {key.key_id: key for key in read_keys(connection)}
        except Exception as error:  # noqa: BLE001 - any fault is told, and none may end the thread
            ours = isinstance(error, CompactuaryError)
            told = str(error) if ours else f"{type(error).__name__}: {error}"
            if self.state.error is None:
                _LOGGER.warning("the keys can't be read: %s", told)
            self.state = replace(self.state, error=told)
            return
        now_ms = self.now_ms()
        for key_id, key in (self.state.keys or {}).items():
            found.setdefault(key_id, replace(key, revoked_ms=key.revoked_ms or now_ms))
        if found != self.state.keys:
            in_force = sum(key.state(now_ms) == "in force" for key in found.values())
            _LOGGER.info("%d keys are in force", in_force)
        self.state = KeyringState(found, now_ms)

    def _run(self) -> None:
        while not self._stopped.wait(self.seconds):
            self.read()
