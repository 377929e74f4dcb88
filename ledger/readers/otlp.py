"""Spans of OTLP JSON: what of them tells how an agent worked."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.readers.epoch import epoch_ms
from ledger.readers.fields import text, text_or_none

__all__ = ["Span", "is_export", "spans_of"]

#: Bits of a span's flags: whether it is told where the parent is, and whether that is elsewhere.
_PARENT_TOLD, _PARENT_REMOTE = 0x100, 0x200
_ERROR_CODES = (2, "2", "STATUS_CODE_ERROR")
#: Attributes kept beside those of generative AI.
_KEPT = ("session.id", "error.type")
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """A span that has ended.

    Parameters
    ----------
    trace_id, span_id, parent_id : str
        Ids as the log writes them; no parent is None.
    parent_is_local : bool
        Whether the parent is surely a span of the same process, whose end is told sooner or later.
    start_ms, end_ms : int or None
    failed : bool
    service : str or None
        ``service.name`` of the resource.
    attributes : mapping
        Those of ``gen_ai.``, ``session.id`` and ``error.type``.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    parent_is_local: bool
    start_ms: int | None
    end_ms: int | None
    failed: bool
    service: str | None
    attributes: Mapping[str, Any]

    def named(self, *names: str) -> str | None:
        """Return the first attribute of these that is told, which must be a text."""
        for name in names:
            found = text_or_none(self.attributes.get(name), name)
            if found is not None:
                return found
        return None


def is_export(value: object) -> bool:
    """Say whether a JSON object is an export of traces."""
    return isinstance(value, dict) and isinstance(value.get("resourceSpans"), list)


def spans_of(export: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the spans of an export.

    Raises
    ------
    InputError
        Naming the field, if an id, a time or an attribute is not what it must be.
    """
    for resource in export.get("resourceSpans") or ():
        told = _attributes((resource.get("resource") or {}).get("attributes") or (), resource=True)
        service = text_or_none(told.get("service.name"), "service.name")
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                yield _span(span, service)


def _span(span: Mapping[str, Any], service: str | None) -> Span:
    flags = span.get("flags") or 0
    return Span(
        trace_id=text(span["traceId"], "traceId"),
        span_id=text(span["spanId"], "spanId"),
        parent_id=text_or_none(span.get("parentSpanId"), "parentSpanId"),
        parent_is_local=bool(flags & _PARENT_TOLD) and not flags & _PARENT_REMOTE,
        start_ms=_time(span, "startTimeUnixNano"),
        end_ms=_time(span, "endTimeUnixNano"),
        failed=(span.get("status") or {}).get("code") in _ERROR_CODES,
        service=service,
        attributes=_attributes(span.get("attributes") or ()),
    )


def _time(span: Mapping[str, Any], name: str) -> int | None:
    return epoch_ms(span.get(name), name, per_second=_NANOSECONDS)


def _attributes(told: Iterable[Mapping[str, Any]], *, resource: bool = False) -> dict[str, Any]:
    kept = {}
    for attribute in told:
        key = attribute["key"]
        if resource or key.startswith("gen_ai.") or key in _KEPT:
            kept[key] = _value(attribute.get("value") or {})
    return kept


def _value(value: Mapping[str, Any]) -> Any:
    """Return an attribute's value; 64-bit integers are written as texts."""
    for kind, inner in value.items():
        if kind == "intValue":
            return int(inner) if isinstance(inner, str) else inner
        if kind == "arrayValue":
            return [_value(item) for item in (inner or {}).get("values") or ()]
        return inner
    return None
