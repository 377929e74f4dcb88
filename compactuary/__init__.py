"""Tells an LLM agent, before each request, whether compacting its context now will pay."""

from compactuary.errors import CompactuaryError
from compactuary.version import VERSION

# Type checkers know the name; the module typing would take longer to import than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from compactuary.advice import Advice
    from compactuary.async_client import AsyncClient
    from compactuary.client import Client

__all__ = ["Advice", "AsyncClient", "Client", "CompactuaryError", "__version__"]

__version__ = VERSION

_MODULES = {
    "Advice": "compactuary.advice",
    "AsyncClient": "compactuary.async_client",
    "Client": "compactuary.client",
}


def __getattr__(name: str) -> object:
    """Import a client when it is first named: whoever wants the version alone pays nothing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    found: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found
