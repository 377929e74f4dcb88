"""``compactuary serve``: the HTTP service."""

import os
import socket
from ipaddress import ip_address
from typing import Annotated

import typer

from api.settings import DEFAULT_PORT, REFRESH_VARIABLE, Settings, seconds_of
from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json, say
from compactuary.errors import InputError
from ledger.database import DB_VARIABLE, database_url

__all__ = ["serve_command"]


def serve_command(
    db: Db = None,
    host: Annotated[str, typer.Option(help="Loopback addresses only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen.")] = DEFAULT_PORT,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    refresh_seconds: Annotated[
        float | None,
        typer.Option(
            "--refresh-seconds",
            help=f"How often to look for new turns. Default: {REFRESH_VARIABLE}, else 0.5.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve decisions over HTTP.

    Every endpoint is described at /docs.
    """
    import uvicorn  # noqa: PLC0415 - the server's extra

    # A wrong setting is told here, not by every worker.
    if refresh_seconds is None:
        Settings.from_environment()
    else:
        seconds_of(str(refresh_seconds), "--refresh-seconds")
    _refuse_public(host)
    _refuse_taken(host, port)
    url = database_url(db)
    with open_ledger(db) as engine:
        where = engine.url.render_as_string(hide_password=True)
    os.environ[DB_VARIABLE] = url
    if refresh_seconds is not None:
        os.environ[REFRESH_VARIABLE] = str(refresh_seconds)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if as_json:
        print_json({"address": address, "ledger": where, "workers": workers})
    else:
        say(f"compactuary serves {where}\n  {address}/docs")
    uvicorn.run(
        "compactuary.asgi:app",
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="warning",
    )


def _refuse_public(host: str) -> None:
    loopback = host == "localhost"
    if not loopback:
        try:
            loopback = ip_address(host).is_loopback
        except ValueError:
            loopback = False
    if not loopback:
        raise InputError(
            "the service has no keys yet, so it listens on this machine only",
            where="--host",
            value=host,
            remedy="Use 127.0.0.1, and put a proxy that checks who asks in front of it.",
        )


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f"the port can't be used: {error.strerror}",
                where="--port",
                value=port,
                remedy="Stop what listens there, or choose another port.",
            ) from error
