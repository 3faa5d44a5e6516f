"""The commands `tektite storage inspect`, `vacuum` and `repair`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from tektite.storage.manifest import ManifestState
    from tektite.storage.repair import RepairReport
    from tektite.storage.store import Store

app = typer.Typer(
    help="Look into a storage, delete what it no longer needs, mend what is damaged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Path = Annotated[str, typer.Argument(help="The folder or URL that Engine(storage=...) was given.", metavar="PATH")]


@contextmanager
def errors_explained() -> Iterator[None]:
    """Show expected errors without a traceback."""
    from tektite.errors import TektiteError

    try:
        yield
    except (TektiteError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def inspect(
    path: Path,
    verify: Annotated[bool, typer.Option("--verify", help="Read every live file and compare its checksums.")] = False,
    files: Annotated[bool, typer.Option("--files", help="List the live files as well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Say what a storage holds: tables, rows, files, positions of sources. Changes nothing."""
    with errors_explained():
        store, state = open_state(path)
        report = damage_report(store) if verify else None
        if as_json:
            print_json(store, state, report)
        else:
            print_tables(store, state, files, report)
        if report is not None and not report.sound:
            raise typer.Exit(1)


@app.command()
def vacuum(
    path: Path,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    retention: Annotated[float, typer.Option(min=0, help="Keep what was in use this many seconds ago.")] = 300.0,
) -> None:
    """Delete files that no version needs: merged away, left over by crashes, or old versions. Readers' leases count. Texts that
    no row needs go first.

    An engine that uses the storage does the same by itself, so it has to be closed first.
    """
    from tektite.storage.batchfile import FOLDER
    from tektite.storage.clean_up import find_waste
    from tektite.storage.files import Files
    from tektite.storage.manifest import Manifest
    from tektite.storage.text_sections import drop_unused_texts

    with errors_explained():
        store, _ = open_state(path)
        lock = None if dry_run else store.lock()
        manifest = Manifest.open(store)
        if not dry_run:
            gone = drop_unused_texts(manifest, Files(store))
            typer.echo(f"{gone} texts that no row needs are gone")
        waste = find_waste(store, manifest.state, retention)
        lengths = {
            f"{folder}/{name}": size for folder in (FOLDER, "manifest") for name, size in store.sizes(folder).items()
        }
        total = sum(lengths.get(name, 0) for name in waste.names)
        for name in waste.names:
            typer.echo(f"{'would delete' if dry_run else 'deleted'} {name}")
        if not dry_run:
            store.delete(waste.names)
        typer.echo(f"{len(waste.names)} files, {size_text(total)}{' (nothing was deleted)' if dry_run else ''}")
        if lock is not None:
            lock.release()


@app.command()
def repair(
    path: Path,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is wrong and what would be done.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Where nothing else helps, go back to the newest sound version.")
    ] = False,
) -> None:
    """Mend a damaged storage. Nothing durable is given up, unless --rollback says so."""
    from tektite.errors import NotFoundError
    from tektite.storage.files import Files
    from tektite.storage.manifest import Manifest
    from tektite.storage.repair import Examination
    from tektite.storage.repair import repair as mend

    with errors_explained():
        store = existing_store(path)
        if not Manifest(store).versions():
            raise NotFoundError(f"{path} is not a Tektite storage: it has no manifest")
        lock = None if dry_run else store.lock()
        done: list[str] = []
        if dry_run:
            report = Examination(store, Files(store)).report()
        else:
            report, done = mend(store, Files(store), rollback)
        for finding in report.findings:
            typer.echo(f"{finding.name}: {finding.problem}")
            typer.echo(f"    remedy: {finding.remedy or 'none without loss'}")
        for sentence in done:
            typer.echo(sentence)
        if lock is not None:
            lock.release()
        if report.sound:
            typer.echo("nothing is wrong")
        elif report.hopeless and not done:
            otherwise = (
                "no older version is there whose files are all sound"
                if rollback
                else "or give --rollback to go back to the newest version whose files are all sound"
            )
            typer.echo(f"cannot be repaired without loss: restore the named files from a backup; {otherwise}", err=True)
            raise typer.Exit(1)


def existing_store(path: str) -> Store:
    """The store at an existing path."""
    from tektite.errors import NotFoundError
    from tektite.storage.store import open_store

    store = open_store(path)
    if not store.top():
        raise NotFoundError(f"there is no storage at {path}: the folder is empty or does not exist")
    return store


def open_state(path: str) -> tuple[Store, ManifestState]:
    """A storage and its newest version."""
    from tektite.errors import NotFoundError
    from tektite.storage.manifest import Manifest

    store = existing_store(path)
    state = Manifest.open(store).state
    if not state.version:
        raise NotFoundError(f"{path} is not a Tektite storage: it has no manifest")
    return store, state


def damage_report(store: Store) -> RepairReport:
    """A report of what is wrong with a storage."""
    from tektite.storage.files import Files
    from tektite.storage.repair import Examination

    return Examination(store, Files(store)).report()


def print_json(store: Store, state: ManifestState, report: RepairReport | None) -> None:
    """Print everything that a version contains."""
    found = {"url": store.url, **state.to_json()}
    if report is not None:
        found["findings"] = [vars(finding) for finding in report.findings]
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_tables(store: Store, state: ManifestState, files: bool, report: RepairReport | None) -> None:
    """Print the same as tables."""
    from rich.console import Console

    from tektite.storage.leases import leased_versions
    from tektite.storage.manifest import describe_owner

    console = Console()
    console.print(f"[bold]{store.url}[/bold]")
    written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.written))
    console.print(f"version {state.version}, written {written}; epoch {state.epoch}; {state.shards} shard(s)")
    console.print(f"last opened for writing by {describe_owner(state.owner)}")
    console.print(arrangements_table(state))
    if state.positions:
        console.print(table_of("source", "position", rows=[[n, json.dumps(p)] for n, p in state.positions.items()]))
    if files:
        shown = [[i.name, size_text(i.length), str(len(i.sections)), str(sum(s.rows for s in i.sections))] for i in
                 state.files.values()]  # fmt: skip
        console.print(table_of("file", "size", "sections", "rows", rows=shown))
    live = sum(info.length for info in state.files.values())
    replaced = len(store.sizes("batches").keys() - state.files.keys())
    console.print(f"{len(state.files)} live files, {size_text(live)}; {replaced} others wait for deletion")
    texts = sum(section.section.rows for section in state.texts())
    console.print(f"{texts} texts in the dictionary")
    held = leased_versions(store)
    if held:
        console.print(f"readers hold the versions {', '.join(map(str, held))}")
    for finding in report.findings if report is not None else ():
        console.print(f"[red]{finding.name}: {finding.problem}[/red]")
    if report is not None and report.sound:
        console.print("every live file is sound")


def arrangements_table(state: ManifestState) -> Table:
    """A row for each stored arrangement."""
    from tektite.storage.description import InputDescription

    lives = state.batches()
    rows = []
    for name, plain in state.arrangements.items():
        kind = str(InputDescription.from_json(plain)) if plain.get("kind") == "input" else str(plain.get("kind", ""))
        sections = [live.section for (owner, _), several in lives.items() if owner == name for live in several]
        sizes = [sum(s.rows for s in sections), len(sections), size_text(sum(s.bytes for s in sections))]
        rows.append([name, kind, str(state.lows.get(name, 0)), *map(str, sizes)])
    return table_of("arrangement", "what", "open epoch", "rows", "batches", "size", rows=rows)


def table_of(*columns: str, rows: list[list[str]]) -> Table:
    from rich.table import Table

    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    return table


def size_text(size: float) -> str:
    """A number of bytes in human-readable form.

    >>> size_text(512), size_text(3 << 20)
    ('512 B', '3.0 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError
