"""The `tektite` command. Each subcommand lives beside what it serves and loads it only when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from tektite import __version__
from tektite.datalog.command import datalog
from tektite.storage.command import app as storage

app = typer.Typer(
    name="tektite",
    help="Standing queries over changing data that share the indexes they need.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


app.add_typer(storage, name="storage")


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tektite {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that stand before a subcommand."""


@app.command()
def warm() -> None:
    """Compile all kernels into the cache now, with progress, instead of when they are first used."""
    from tektite.kernels.ready import ensure_compiled

    ensure_compiled()
    typer.echo("all kernels are compiled")


app.command("datalog")(datalog)


def main() -> None:
    """The entry point of the `tektite` command."""
    app()
