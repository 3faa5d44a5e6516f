"""`tektite datalog FILE`: run a Soufflé program over fact files."""

from __future__ import annotations

import inspect
import runpy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tektite.errors import IncorrectError, NotFoundError, TektiteError


class Report:
    """Says on the terminal what is being done, and how long it took."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet

    @contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """Show a step while it runs, and its time afterwards; the block may add notes."""
        notes: list[str] = []
        start = time.perf_counter()
        if self.quiet:
            yield notes
            return
        with self.console.status(what):
            yield notes
        seconds = time.perf_counter() - start
        self.console.print(f"{seconds:8.3f} s  {what}{': ' + ', '.join(notes) if notes else ''}")


def datalog(
    file: Annotated[Path, typer.Argument(help="The program, in Soufflé's syntax.", dir_okay=False)],
    facts: Annotated[Path, typer.Option("--facts", "-F", help="The folder of the .input files.")] = Path("."),
    output: Annotated[
        str, typer.Option("--output", "-D", help="The folder for .output files; - is the terminal.")
    ] = ".",
    workers: Annotated[int, typer.Option("--workers", "--jobs", "-j", min=1, help="How many threads work.")] = 1,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--max-rounds",
            "--rounds",
            min=1,
            help="Rounds that a recursion with arithmetic may take.",
            show_default="100000",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each output is computed.")] = False,
    macros: Annotated[
        list[str] | None, typer.Option("--macro", "-M", help="A macro for the preprocessor: NAME or NAME=VALUE.")
    ] = None,
    include: Annotated[
        list[Path] | None, typer.Option("--include-dir", "-I", help="A folder of files that programs include.")
    ] = None,
    functors: Annotated[
        Path | None, typer.Option("--functors", "-l", help="A Python file with the program's functors.", dir_okay=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show results and errors only.")] = False,
) -> None:
    """Run a Datalog program: read its .input facts, derive its .output predicates, and write them.

    Files follow Soufflé's convention: NAME.facts is read from the folder of facts, NAME.csv is written to the folder of
    results, with tabs between columns. Existing programs in the supported subset run as they are.
    """
    report = Report(quiet)
    try:
        run(
            report, file, facts, None if output == "-" else Path(output), workers, rounds, explain,
            macros or [], include or [], functors,
        )  # fmt: skip
    except TektiteError as error:
        report.console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None


def run(
    report: Report,
    file: Path,
    facts: Path,
    output: Path | None,
    workers: int,
    rounds: int | None,
    explain: bool,
    macros: Sequence[str] = (),
    folders: Sequence[Path] = (),
    functors: Path | None = None,
) -> None:
    """Read, derive, write."""
    from tektite.datalog.evaluate.program import register
    from tektite.datalog.evaluate.relation_files import relation_file
    from tektite.datalog.evaluate.rule_store import rule_store
    from tektite.datalog.syntax.preprocessor import defined
    from tektite.engine.core import core_of
    from tektite.engine.engine import Engine
    from tektite.query.collection import ROUND_LIMIT

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"cannot read the program {str(file)!r}: {error}") from None
    with report.step("start"):
        engine = Engine(workers, autocommit=False)
    with engine:
        with report.step(f"read {file}") as notes:
            given = python_functions(functors)
            limit = rounds or ROUND_LIMIT
            program = register(
                rule_store(engine), text, str(file), limit, functors=given, macros=defined(macros), folders=folders
            )
            notes.append(f"{len(program.text.rules)} rules")
        for note in program.text.notes:
            if not report.quiet:
                report.console.print(note, style="yellow", markup=False, soft_wrap=True)
        declared = {d.predicate: d for d in program.text.declarations}
        structures = {s.name: s for s in program.text.structures}
        files = [relation_file(d, declared.get(d.predicate), structures) for d in program.text.directives]
        for one in files:
            if one.directive.kind == "input":
                path = one.path(facts)
                with report.step(f"load {one.directive.predicate} from {path}") as notes:
                    table = engine.table(one.directive.predicate)
                    found = one.read(facts, table.schema)
                    table.insert(found)
                    notes.append(f"{found.num_rows:,} facts")
        wanted = [name for name in program.outputs if program.store.known(name)]
        with report.step("derive") as notes:
            engine.advance()
            views = dict(zip(wanted, program.views(*wanted), strict=True))
            engine.settle()
            for view in views.values():
                if view.failure is not None:
                    raise view.failure
            notes.append(
                f"{sum(core_of(view).trace.rows for view in views.values()):,} facts in {len(views)} predicates"
            )
        if explain:
            for name in wanted:
                typer.echo(program.explain(name))
        for one in files:
            name = one.directive.predicate
            if one.directive.kind == "input":
                continue
            if name not in views:
                views[name] = engine.install(f"{name} as stored", engine.table(name))
            snapshot = views[name].snapshot()
            if one.directive.kind == "printsize":
                typer.echo(f"{name}\t{snapshot.num_rows}")
                continue
            if output is None or one.kind == "stdout":
                for line in one.on_terminal(snapshot):
                    typer.echo(line)
                continue
            with report.step(f"write {one.path(output)}") as notes:
                one.write(output, snapshot, views[name].schema)
                notes.append(f"{snapshot.num_rows:,} facts")
        if not program.outputs:
            report.console.print("nothing is written: the program has no .output", style="yellow")


def python_functions(file: Path | None) -> dict[str, Callable[..., Any]]:
    """The functions that a Python file defines, by name."""
    if file is None:
        return {}
    try:
        found = runpy.run_path(str(file))
    except Exception as error:
        raise IncorrectError(f"cannot read the functors in {str(file)!r}: {type(error).__name__}: {error}") from error
    return {name: value for name, value in found.items() if inspect.isfunction(value) and not name.startswith("_")}
