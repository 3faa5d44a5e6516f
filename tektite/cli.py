"""The `tektite` command. Each subcommand lives beside what it serves and loads it only when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tektite import Engine, __version__
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


@app.command()
def run(
    pipeline: Annotated[
        Path, typer.Argument(help="A description in YAML, or a Python file that defines build(engine, spark).")
    ],
    metrics: Annotated[Path | None, typer.Option(help="Where to write the metrics at the end, as JSON.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Read and check the description, and run nothing.")] = False,
) -> None:
    """Run a pipeline on Spark: load, follow, keep views up to date, write their changes. Run it again to go on."""
    from tektite.spark.command import run_file

    raise typer.Exit(run_file(pipeline, Engine, metrics, check))


def main() -> None:
    """The entry point of the `tektite` command."""
    app()
