"""Tells an LLM agent, before each request, whether compacting its context now will pay."""

from compactuary.errors import CompactuaryError
from compactuary.version import VERSION

__all__ = ["CompactuaryError", "__version__"]

__version__ = VERSION
