"""A batch: records as the lines of one ``POST /ingest``, and what the server says of each."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from compactuary.endpoint import Endpoint
from compactuary.http_message import Answered, request_bytes
from compactuary.records import Record

__all__ = ["MOST_BYTES", "MOST_RECORDS", "BatchSize", "Refusal", "batch_bytes", "refusals_in"]

#: As many records as the server explains refusals of, and fewer where they are long.
MOST_RECORDS = 500
MOST_BYTES = 1 << 20

_MEDIA_TYPE = "application/x-ndjson"


class Refusal(NamedTuple):
    """A record that the server will not take.

    Parameters
    ----------
    place : int
        Of the record in its batch, from 0 on.
    text : str
        Why.
    """

    place: int
    text: str


class BatchSize:
    """How many records may go together: half as many after each time-out, and slowly more again.

    Attributes
    ----------
    most : int
        Records in the next batch; 1 sends them alone. At first `MOST_RECORDS`.

    Notes
    -----
    It doubles once `MOST_RECORDS` records arrived in time since it last changed: where a server
    never takes more in time, so many records share the time-out that finds it out.
    """

    def __init__(self) -> None:
        self.most = MOST_RECORDS
        self._in_time = 0

    def too_slow(self, count: int) -> None:
        """Learn that so many records together took too long."""
        self.most, self._in_time = max(1, count // 2), 0

    def in_time(self, count: int) -> None:
        """Learn that so many records arrived, together or alone."""
        self._in_time += count
        if self._in_time >= MOST_RECORDS:
            self.most, self._in_time = min(2 * self.most, MOST_RECORDS), 0


def batch_bytes(endpoint: Endpoint, records: Sequence[Record]) -> bytes:
    """Return the whole request that tells the server of several records, in their order."""
    body = b"".join([_line(record) for record in records])
    return request_bytes(endpoint, "POST", "/ingest", body, media_type=_MEDIA_TYPE)


def _line(record: Record) -> bytes:
    told = {"event": record.kind} | ({"turn_id": record.turn_id} if record.turn_id else {})
    return json.dumps(told, separators=(",", ":")).encode()[:-1] + b"," + record.body[1:] + b"\n"


def refusals_in(said: Answered, count: int) -> list[Refusal] | None:
    """Return what the server refused of a batch, or None where the answer does not tell.

    Parameters
    ----------
    said : Answered
        With a status that says that the batch arrived.
    count : int
        Records in the batch. Each must be accounted for.
    """
    try:
        told = json.loads(said.body)
        refused = [
            Refusal(int(one["line"]) - 1, f"{one['field']} {one['problem']}. {one['remedy']}")
            for one in told["results"]
        ]
        whole = told["recorded"] + told["known"] + told["refused"] == count
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    places = {refusal.place for refusal in refused}
    if not whole or told["refused"] != len(places) or not places <= set(range(count)):
        return None
    return refused
