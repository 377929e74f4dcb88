"""Times as the ledger keeps them: whole milliseconds since 1970-01-01 UTC."""

from datetime import UTC, datetime, timedelta

from compactuary.errors import InputError

__all__ = ["iso", "milliseconds", "moment"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(stamp: object) -> int | None:
    """Return an ISO 8601 time as milliseconds, or None where there is none.

    A time without an offset is UTC.

    Raises
    ------
    InputError
        If it is neither absent nor an ISO 8601 time.
    """
    if stamp is None or stamp == "":
        return None
    return (moment(stamp, "timestamp") - _EPOCH) // _MILLISECOND


def moment(stamp: object, where: str) -> datetime:
    """Return an ISO 8601 time with its time zone, UTC where it names none.

    Raises
    ------
    InputError
        Naming ``where``, if it is no ISO 8601 time, or one outside the years 1–9999 in UTC.
    """
    try:
        found = datetime.fromisoformat(stamp)  # type: ignore[arg-type]
        if found.tzinfo not in (UTC, None):
            found.astimezone(UTC)  # else iso could not write it later
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "not an ISO 8601 time",
            where=where,
            value=stamp,
            remedy="Write it like 2026-02-11T21:18:41.543Z.",
        ) from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def iso(at_ms: int | None) -> str | None:
    """Return milliseconds as ISO 8601 in UTC, or None."""
    if at_ms is None:
        return None
    stamp = _EPOCH + at_ms * _MILLISECOND
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
