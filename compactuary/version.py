"""The version: of the wheel, of the service, of the command."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
