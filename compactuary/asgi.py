"""The service as an ASGI app: ``uvicorn compactuary.asgi:app``."""

from api.app import create_app

__all__ = ["app"]

app = create_app()
