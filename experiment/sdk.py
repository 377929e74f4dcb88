"""A provider's SDK: there or missing, with a key or without."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any
from weakref import finalize

from compactuary.errors import CompactuaryError, InputError, MissingExtraError

__all__ = ["MOST_OUTPUT_TOKENS", "client_of", "refusals", "sdk_of"]

#: What a real model may write at once: a section or a summary.
MOST_OUTPUT_TOKENS = 8_000
#: A sweep makes a thousand requests and keeps nothing of a run that fails.
_MOST_RETRIES = 6

#: Where each provider's SDK looks for a key.
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
}


def sdk_of(provider: str, option: str = "--provider") -> ModuleType:
    """Return a provider's SDK, once it is certain that a key is set.

    Parameters
    ----------
    provider : {'anthropic', 'openai'}
        Name of the package, and of the extra that brings it.
    option : str
        What named the provider on the command line, for messages; default ``--provider``.

    Raises
    ------
    MissingExtraError
        The package is not installed.
    InputError
        No variable that holds its key is set.
    """
    try:
        sdk = import_module(provider)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{option} {provider} needs the package {provider}",
            remedy=f'Install it with: pip install "compactuary[{provider}]"',
        ) from error
    if not any(os.environ.get(name) for name in _KEYS[provider]):
        raise InputError(
            "is not set",
            where=_KEYS[provider][0],
            remedy=f"Set it to a key of {provider}'s, or run without {option}",
        )
    return sdk


def client_of(kind: Any, owner: object) -> Any:
    """Return an SDK's client; its connections stay open between requests, and end with the owner.

    Parameters
    ----------
    kind : type
        The SDK's class of clients.
    owner : object
        The model that asks through it.
    """
    client = kind(max_retries=_MOST_RETRIES)
    finalize(owner, client.close)
    return client


@contextmanager
def refusals(sdk: ModuleType, provider: str) -> Iterator[None]:
    """Turn what an SDK raises into one line.

    Raises
    ------
    CompactuaryError
        The provider refused, or can't be reached.
    """
    try:
        yield
    except sdk.APIError as error:
        told = " ".join(str(error).split())
        raise CompactuaryError(
            f"{type(error).__name__}: {told[:300]}",
            where=f"--provider {provider}",
            remedy="Check key, model and network, then run it again",
        ) from error
