"""A provider's SDK: there or missing, with a key or without."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from compactuary.errors import CompactuaryError, InputError, MissingExtraError

__all__ = ["MOST_OUTPUT_TOKENS", "MOST_RETRIES", "refusals", "sdk_of"]

#: What a real model may write at once: a section or a summary.
MOST_OUTPUT_TOKENS = 8_000
#: A sweep makes a thousand requests and keeps nothing of a run that fails.
MOST_RETRIES = 6


def sdk_of(provider: str, key_variables: Sequence[str]) -> ModuleType:
    """Return a provider's SDK, once it is certain that a key is set.

    Parameters
    ----------
    provider : str
        Name of the package, and of the extra that brings it.
    key_variables : sequence of str
        Variables of the environment in which the SDK looks for a key.

    Raises
    ------
    MissingExtraError
        The package is not installed.
    InputError
        No such variable is set.
    """
    try:
        sdk = import_module(provider)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"--provider {provider} needs the package {provider}",
            remedy=f'Install it with: pip install "compactuary[{provider}]"',
        ) from error
    if not any(os.environ.get(name) for name in key_variables):
        raise InputError(
            "is not set",
            where=key_variables[0],
            remedy=f"Set it to a key of {provider}'s, or run without --provider",
        )
    return sdk


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
