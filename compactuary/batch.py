"""A batch: records as the lines of one ``POST /ingest``, and what the server says of each."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from compactuary.endpoint import Endpoint
from compactuary.http_message import Answered, request_bytes
from compactuary.records import Record

__all__ = ["MOST_BYTES", "MOST_RECORDS", "Refusal", "batch_bytes", "refusals_in"]

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
