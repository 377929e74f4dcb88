"""``--scheduler``: workers that read logs and replay rules, here or on other machines."""

from typing import Annotated

import typer

__all__ = ["Scheduler"]

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Read and replay on other processes: 'processes' for one a core, or the address of "
        "a Dask scheduler.",
        show_default=False,
    ),
]
