"""HTTP/1.1 messages as bytes: requests made, answers read, without any I/O.

The standard library's own client has a time-out a read and none for the whole answer, and takes
longer to import than everything else here together.
"""

from typing import NamedTuple

from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.version import VERSION

__all__ = ["AnswerParser", "Answered", "request_bytes"]

_LONGEST_HEAD = 1 << 16
_LONGEST_BODY = 1 << 23
_REMEDY = "See whether the URL is that of the service"


class Answered(NamedTuple):
    """What a server answered.

    Parameters
    ----------
    status : int
    headers : dict of str to str
        Names in lower case; of several with one name, the last.
    body : bytes
    """

    status: int
    headers: dict[str, str]
    body: bytes


def request_bytes(
    endpoint: Endpoint,
    method: str,
    path: str,
    body: bytes | None = None,
    etag: str | None = None,
    media_type: str = "application/json",
) -> bytes:
    """Return a whole request.

    Parameters
    ----------
    path : str
        Below the endpoint's prefix, quoted.
    body : bytes, optional
    etag : str, optional
        What the caller has already, for ``If-None-Match``.
    media_type : str, default "application/json"
        Of the body.
    """
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    lines = [
        f"{method} {endpoint.prefix}{path} HTTP/1.1",
        f"Host: {host}:{endpoint.port}",
        f"User-Agent: compactuary/{VERSION}",
        "Accept: application/json",
    ]
    if endpoint.key:
        lines.append(f"Authorization: Bearer {endpoint.key}")
    if etag is not None:
        lines.append(f"If-None-Match: {etag}")
    if body is not None:
        lines += [f"Content-Type: {media_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class AnswerParser:
    """Reads one answer from bytes as they arrive.

    Attributes
    ----------
    done : bool
        Whether the answer is whole.
    reusable : bool
        Whether the connection may carry another request afterwards.
    """

    def __init__(self) -> None:
        self.done = False
        self.reusable = False
        self._status = 0
        self._headers: dict[str, str] | None = None
        self._rest = bytearray()
        self._body = bytearray()
        self._wanted: int | None = None
        self._chunked = False

    def answer(self) -> Answered:
        """Return the answer, once it is done."""
        return Answered(self._status, self._headers or {}, bytes(self._body))

    def feed(self, data: bytes) -> None:
        """Take what arrived; nothing is the end of the connection.

        Raises
        ------
        InputError
            This is no HTTP, larger than an answer can be, or cut off.
        """
        if not data:
            self._closed()
            return
        self._rest += data
        while self._headers is None:
            if not self._read_head():
                return
        if self._chunked:
            self._read_chunks()
        else:
            self._read_body()

    def _closed(self) -> None:
        until_close = self._headers is not None and self._wanted is None and not self._chunked
        if not until_close:
            raise InputError("ends half-way", where="answer", remedy=_REMEDY)
        self.done, self.reusable = True, False

    def _read_head(self) -> bool:
        """Take the head if it has arrived, whole; heads of 1xx are passed over."""
        end = self._rest.find(b"\r\n\r\n")
        if end < 0:
            if len(self._rest) > _LONGEST_HEAD or not b"HTTP/1.".startswith(bytes(self._rest[:7])):
                raise InputError("is no HTTP", where="answer", remedy=_REMEDY)
            return False
        first, *lines = self._rest[:end].decode("latin-1").split("\r\n")
        del self._rest[: end + 4]
        version, _, rest = first.partition(" ")
        status = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (status.isdigit() and len(status) == 3):
            raise InputError("is no HTTP", where="answer", value=first, remedy=_REMEDY)
        self._status = int(status)
        if self._status < 200:
            return True
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self._headers = headers
        self._frame(version, headers)
        return True

    def _frame(self, version: str, headers: dict[str, str]) -> None:
        """Find out where the body ends, and whether another answer can follow."""
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        length = headers.get("content-length")
        if self._status in (204, 304):
            self._wanted, self._chunked = 0, False
        elif length is not None and not self._chunked:
            if not (length.isascii() and length.isdigit()) or int(length[:12]) > _LONGEST_BODY:
                raise InputError("has no length", where="answer", value=length, remedy=_REMEDY)
            self._wanted = int(length)
        keeps = "close" if version == "HTTP/1.0" else "keep-alive"
        known = self._chunked or self._wanted is not None
        self.reusable = known and headers.get("connection", keeps).lower() != "close"

    def _read_body(self) -> None:
        self._body += self._rest
        self._rest.clear()
        if self._wanted is None:
            if len(self._body) > _LONGEST_BODY:
                raise InputError("does not end", where="answer", remedy=_REMEDY)
        elif len(self._body) >= self._wanted:
            self.reusable = self.reusable and len(self._body) == self._wanted
            del self._body[self._wanted :]
            self.done = True

    def _read_chunks(self) -> None:
        while (end := self._rest.find(b"\r\n")) >= 0:
            size_text = bytes(self._rest[:end]).partition(b";")[0].strip()
            try:
                size = int(size_text[:12], 16)
            except ValueError as error:
                raise InputError("has a broken chunk", where="answer", remedy=_REMEDY) from error
            if not 0 <= size <= _LONGEST_BODY - len(self._body):
                raise InputError("does not end", where="answer", remedy=_REMEDY)
            if size == 0:
                self._end_chunks(end)
                return
            if len(self._rest) < end + 2 + size + 2:
                return
            self._body += self._rest[end + 2 : end + 2 + size]
            del self._rest[: end + 2 + size + 2]
        if len(self._rest) > _LONGEST_HEAD:
            raise InputError("has a broken chunk", where="answer", remedy=_REMEDY)

    def _end_chunks(self, end: int) -> None:
        """Finish after the last chunk; a trailer costs the connection, not the answer."""
        if len(self._rest) >= end + 4:
            self.reusable = self.reusable and bytes(self._rest[end : end + 4]) == b"\r\n\r\n"
            self.reusable = self.reusable and len(self._rest) == end + 4
            self.done = True
