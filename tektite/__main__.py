"""The `tektite` command, also as `python -m tektite`. A subcommand lives beside what it serves, and loads it when called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import tektite
from tektite.datalog.evaluate.command import datalog
from tektite.storage.command import app as storage

app = typer.Typer(
    name="tektite",
    help="Standing queries over changing data that share the indexes they need.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text: loading rich takes longer than all else of it
)


app.add_typer(storage, name="storage", short_help="Show, clean or repair a storage.")


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tektite {tektite.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that stand before a subcommand."""


@app.command(short_help="Compile all kernels now.")
def warm() -> None:
    """Compile all kernels into the cache now, with progress, instead of when they are first used."""
    from tektite.kernels.ready import ensure_compiled

    ensure_compiled()
    typer.echo("all kernels are compiled")


@app.command(short_help="Say what a running server could do better.")
def advise(
    url: Annotated[str, typer.Argument(help="The server to ask, such as tektite://user:password@host:5434.")],
) -> None:
    """Say what a running server could do better: indexes that nobody reads, work that is done twice, views that lag or fail."""
    with tektite.connect(url) as session:
        rows = session.sql("SELECT kind, about, message FROM system.advice ORDER BY bytes DESC, kind, about").rows()
    for kind, about, message in rows:
        typer.echo(f"{kind}: {about}\n  {message}")
    if not rows:
        typer.echo("nothing to improve")


app.command("datalog", short_help="Run a Datalog program over files of facts.")(datalog)


@app.command(short_help="Run SQL: at a prompt, from files or from a pipe.")
def sql(
    file: Annotated[
        list[Path] | None, typer.Option("-f", "--file", metavar="FILE", help="Run the statements of a file.")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option("-c", "--command", metavar="TEXT", help="Run these statements.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write results as CSV.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write results as JSON, one object a line.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Show how long each statement takes.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="How many workers maintain the views.")] = None,
    storage: Annotated[
        Path | None, typer.Option(help="Keep the tables in this folder, and begin with what is there.")
    ] = None,
) -> None:
    """Talk SQL to an engine: at a prompt, or from files (-f), from the command line (-c) or from a pipe.

    Files run before -c. A text that is not typed at a prompt ends at its first error, with exit code 1.
    """
    if csv and json:
        raise typer.BadParameter("results are written as CSV or as JSON, not as both")
    from tektite.sql.shell.command import run_texts

    form = "csv" if csv else "json" if json else "table"
    with tektite.Engine(workers, storage=storage) as engine:
        code = run_texts(engine, file or [], command or [], form, timing)
    raise typer.Exit(code)


@app.command(short_help="Run a pipeline on Spark.")
def run(
    pipeline: Annotated[
        Path, typer.Argument(help="A description in YAML, or a Python file that defines build(engine, spark).")
    ],
    metrics: Annotated[Path | None, typer.Option(help="Where to write the metrics at the end, as JSON.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Read and check the description, and run nothing.")] = False,
) -> None:
    """Run a pipeline on Spark: load, follow, keep views up to date, write their changes. Run it again to go on."""
    from tektite.spark.command import run_file

    raise typer.Exit(run_file(pipeline, tektite.Engine, metrics, check))


@app.command(short_help="Open the console of a running server.")
def console(
    attach: Annotated[
        str, typer.Option("--attach", help="The server to look into, such as tektite://host:5434.")
    ] = "tektite://localhost:5434",
    browser: Annotated[bool, typer.Option(help="Open the page in a browser, beside printing its address.")] = True,
) -> None:
    """Open the console of a running server: of `tektite serve`, or of a program that called engine.console()."""
    from tektite.client.address import find_console

    url = find_console(attach)
    typer.echo(f"the console is at {url}")
    if browser:
        import webbrowser

        webbrowser.open(url)


@app.command(short_help="Serve an engine to many clients.")
def serve(
    description: Annotated[
        Path | None,
        typer.Argument(help="A description in YAML: a pipeline, with a part `server`. Without one, an empty engine."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Where to listen. Without users that is this machine alone.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port for PostgreSQL's clients.")] = None,
    http_port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port for HTTP and WebSocket.")] = None,
    storage: Annotated[
        Path | None, typer.Option(help="Keep the tables in this folder, and begin with what is there.")
    ] = None,
    epochs: Annotated[
        str | None, typer.Option(help="When epochs close: commit, a time such as '5 ms', or explicit.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many workers maintain the views.")] = None,
    connections: Annotated[int | None, typer.Option(min=1, help="How many clients may be connected.")] = None,
    statement_seconds: Annotated[
        float | None, typer.Option(min=0, help="After how many seconds a statement is ended; 0 is never.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate for TLS, as PEM.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="The certificate's key, as PEM.")] = None,
    spans: Annotated[
        bool, typer.Option("--spans", help="Give OpenTelemetry spans of epochs, installations and requests.")
    ] = False,
    log: Annotated[str, typer.Option(help="How events are written to standard error: text or json.")] = "text",
    check: Annotated[bool, typer.Option("--check", help="Read and check the description, and serve nothing.")] = False,
) -> None:
    """Serve an engine over PostgreSQL's protocol, HTTP and WebSocket, until SIGTERM or Ctrl-C."""
    from tektite.engine.serving import check_packages

    check_packages("tektite serve")
    from tektite.server.command import serve_file

    if log not in ("text", "json"):
        raise typer.BadParameter("events are written as text or json")
    options = {
        "address": address, "port": port, "http_port": http_port, "storage": storage, "epochs": epochs, "workers": workers,
        "connections": connections, "statement_seconds": statement_seconds,
        "certificate": None if certificate is None else str(certificate),
        "private_key": None if private_key is None else str(private_key), "spans": spans or None,
    }  # fmt: skip
    raise typer.Exit(serve_file(description, options, log, check))


@app.command(short_help="Print the verifier of a password.")
def password() -> None:
    """Ask for a password, and print the verifier that a server's description holds in its place."""
    from tektite.server.command import print_verifier

    raise typer.Exit(print_verifier())


def main() -> None:
    """The entry point of the `tektite` command."""
    from tektite.errors import TektiteError

    try:
        app()
    except TektiteError as error:
        typer.echo(f"tektite: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
