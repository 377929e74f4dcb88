"""``compactuary serve``: the HTTP service."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Annotated

import typer
from sqlalchemy import Engine

from api.logs import LOG_FORMAT_VARIABLE, LOG_LEVEL_VARIABLE, log_config
from api.settings import (
    DEFAULT_PORT,
    METRICS_VARIABLE,
    REFRESH_VARIABLE,
    TRACES_VARIABLE,
    Settings,
    seconds_of,
)
from api.traces import open_traces
from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json, say
from compactuary.errors import InputError
from ledger.database import DB_VARIABLE, database_url, reading, shown_url
from ledger.keys import read_keys
from policy.price_overlay import user_file
from policy.prices import GenaiPriceBook

__all__ = ["serve_command"]

#: What a stop gives open requests; a stream that stands still must not hold it up.
GRACE_SECONDS = 10


def serve_command(
    db: Db = None,
    host: Annotated[
        str, typer.Option(help="Where others may ask from: loopback only, until there is a key.")
    ] = "127.0.0.1",
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
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            help=f"text or json, on standard error. Default: {LOG_FORMAT_VARIABLE}, else text.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            help="error, warning, info or debug (every decision's id). "
            f"Default: {LOG_LEVEL_VARIABLE}, else warning.",
            show_default=False,
        ),
    ] = None,
    traces: Annotated[
        bool, typer.Option("--traces", help="Trace with OpenTelemetry, by its own variables.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve decisions over HTTP.

    Every endpoint is described at /docs.
    """
    import uvicorn  # noqa: PLC0415 - the server's extra

    _set_up_workers(refresh_seconds, traces=traces)
    logs = log_config(log_format, log_level, os.environ)
    url = database_url(db)
    with open_ledger(db, make=True) as engine:
        where = shown_url(engine)
        _refuse_public(host, engine)
    _refuse_taken(host, port)
    os.environ[DB_VARIABLE] = url
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if as_json:
        print_json({"address": address, "ledger": where, "workers": workers})
    else:
        say(f"compactuary serves {where}\n  {address}/docs")
    with _metrics_folder(workers):
        uvicorn.run(
            "compactuary.asgi:app",
            host=host,
            port=port,
            workers=workers,
            access_log=False,
            log_config=logs,
            log_level=None,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )


def _set_up_workers(refresh_seconds: float | None, *, traces: bool) -> None:
    """Hand the options on to the workers; a wrong setting is told here, not by each of them."""
    if refresh_seconds is not None:
        seconds_of(str(refresh_seconds), "--refresh-seconds")
        os.environ[REFRESH_VARIABLE] = str(refresh_seconds)
    if traces:
        os.environ[TRACES_VARIABLE] = "on"
    if Settings.from_environment().traces and (opened := open_traces(wanted=True)):
        opened.close()
    if user_file() is not None:
        GenaiPriceBook()


@contextmanager
def _metrics_folder(workers: int) -> Iterator[None]:
    """Give several workers a folder through which each can tell the others' metrics too."""
    if workers == 1 or os.environ.get(METRICS_VARIABLE):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="compactuary-metrics-") as folder:
        os.environ[METRICS_VARIABLE] = folder
        yield


def _refuse_public(host: str, engine: Engine) -> None:
    loopback = host == "localhost"
    if not loopback:
        try:
            loopback = ip_address(host).is_loopback
        except ValueError:
            loopback = False
    if loopback:
        return
    with reading(engine) as connection:
        if read_keys(connection):
            return
    raise InputError(
        "the ledger has no keys, so the service listens on this machine only",
        where="--host",
        value=host,
        remedy="Make one first: compactuary keys create NAME --scope SCOPE; or use 127.0.0.1.",
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
