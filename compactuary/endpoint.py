"""The endpoint: where the service is, and the key that it is asked with."""

from os import environ
from typing import NamedTuple
from urllib.parse import urlsplit

from compactuary.errors import InputError

__all__ = ["DEFAULT_URL", "KEY_VARIABLE", "URL_VARIABLE", "Endpoint", "endpoint_of"]

URL_VARIABLE = "COMPACTUARY_URL"
KEY_VARIABLE = "COMPACTUARY_KEY"
DEFAULT_URL = "http://127.0.0.1:8338"


class Endpoint(NamedTuple):
    """A service. Its text never shows the key.

    Parameters
    ----------
    scheme : {'http', 'https'}
    host : str
        A name or an address, IPv6 without brackets.
    port : int
    prefix : str
        Path under which the service lies, without a slash at its end.
    key : str or None
        Sent as a bearer token.
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""
    key: str | None = None

    @property
    def url(self) -> str:
        """The base URL, without the key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, key={'***' if self.key else None})"


def endpoint_of(url: str | None = None, key: str | None = None) -> Endpoint:
    """Return the endpoint of a base URL.

    Parameters
    ----------
    url : str, optional
        Default: ``COMPACTUARY_URL``, else ``http://127.0.0.1:8338``.
    key : str, optional
        Default: ``COMPACTUARY_KEY``, else none.

    Raises
    ------
    InputError
        The URL is none of http or https, or the key can't be a header's value.
    """
    given = url or environ.get(URL_VARIABLE) or DEFAULT_URL
    key = key or environ.get(KEY_VARIABLE) or None
    if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
        # The value is a secret: the message must not hold it.
        remedy = "Give the key as it was printed, without a line's end"
        raise InputError("holds characters that no header may", where=KEY_VARIABLE, remedy=remedy)
    return _parsed(given)._replace(key=key)


def _parsed(url: object) -> Endpoint:
    if not isinstance(url, str):
        raise _wrong_url(url)
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError as error:
        raise _wrong_url(url) from error
    if parts.username is not None:
        raise _wrong_url(f"{scheme}://…@{host}")
    plain = url.isascii() and url.isprintable() and " " not in url
    if scheme not in ("http", "https") or not host or not plain or parts.query or parts.fragment:
        raise _wrong_url(url)
    standard = 443 if scheme == "https" else 80
    return Endpoint(scheme, host, port or standard, parts.path.rstrip("/"))


def _wrong_url(url: object) -> InputError:
    remedy = f"Give a base URL such as {DEFAULT_URL}; the key goes into {KEY_VARIABLE}"
    return InputError("is no base URL", where="url", value=url, remedy=remedy)
