"""Folders of Datalog programs with the answers they must give, in the manner of Soufflé's own tests.

A folder `name` has

    name.dl         the program
    facts/          what its .input directives read
    P.csv, ...      what it writes for each .output, line for line
    name.out        what it prints; nothing, if there is no such file
    name.err        a regular expression; then the program is refused with a message in which the expression is found
    name.goals      goals, each with its answers: `p(1, ?) = (1, 2) (1, 3)`, the facts in any order
    functors.py     its functors

`run` runs it by `tektite datalog`, and compares the files. `maintained` gives the same facts to an engine in several epochs,
in which some go again, and compares every .output predicate and every goal with the files.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import tektite as tk
from tektite.__main__ import app
from tektite.datalog.evaluate.command import python_functions
from tektite.datalog.evaluate.program import Program
from tektite.datalog.evaluate.relation_files import RelationFile, relation_file
from tests.support.executors import make_engine

FOLDER = Path(__file__).parents[1] / "datalog" / "programs"
STRATEGIES = ("auto", "goal", "full")
JOINS = ("auto", "binary", "delta", "hector")


@dataclass(frozen=True)
class ProgramFolder:
    """One folder."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def program(self) -> Path:
        return self.path / f"{self.name}.dl"

    def text(self, ending: str) -> str:
        """The text of one of the files that are named like the folder; empty if there is none."""
        file = self.path / f"{self.name}.{ending}"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @property
    def refused(self) -> str:
        """What the message must have, if the program is refused."""
        return self.text("err").strip()

    @property
    def functors(self) -> Path | None:
        file = self.path / "functors.py"
        return file if file.exists() else None

    @property
    def written(self) -> dict[str, str]:
        """The files that the program must write."""
        return {file.name: file.read_text(encoding="utf-8") for file in sorted(self.path.glob("*.csv"))}

    @property
    def goals(self) -> dict[str, list[str]]:
        """The goals, each with its answers in order."""
        found = {}
        for line in self.text("goals").splitlines():
            if line.strip() and not line.startswith("//"):
                goal, _, answers = line.rpartition(" =")
                found[goal.strip()] = sorted(re.findall(r"\([^()]*\)", answers))
        return found


def folders() -> list[ProgramFolder]:
    """All folders."""
    return [ProgramFolder(path) for path in sorted(FOLDER.iterdir()) if path.is_dir()]


def run(folder: ProgramFolder, scratch: Path) -> list[str]:
    """What is wrong with a folder's program as `tektite datalog` runs it."""
    options = ["-l", str(folder.functors)] if folder.functors else []
    result = CliRunner().invoke(
        app, ["datalog", str(folder.program), "-F", str(folder.path / "facts"), "-D", str(scratch), "--quiet", *options]
    )
    if folder.refused:
        if result.exit_code == 0:
            return ["the program is not refused"]
        return [] if re.search(folder.refused, result.stderr) else [f"the message is {result.stderr}"]
    if result.exit_code != 0:
        return [result.stderr or repr(result.exception)]
    found = {file.name: file.read_text(encoding="utf-8") for file in sorted(scratch.iterdir())}
    faults = [] if result.stdout == folder.text("out") else [f"it prints {result.stdout!r}"]
    return faults + differences(found, folder.written)


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    faults = [f"it writes {name}" for name in sorted(found.keys() ^ expected.keys())]
    for name in sorted(found.keys() & expected.keys()):
        if found[name] != expected[name]:
            faults.append(f"{name} is {found[name]!r} instead of {expected[name]!r}")
    return faults


def maintained(folder: ProgramFolder, scratch: Path, workers: int = 1) -> list[str]:
    """What is wrong with the program's answers after epochs in which facts came and went, and with its goals."""
    rng = random.Random(folder.name)
    with make_engine(workers=workers) as engine:
        program = engine.datalog(
            folder.program.read_text(encoding="utf-8"),
            source=str(folder.program),
            functors=python_functions(folder.functors),
        )
        files = files_of(program)
        facts = {f.directive.predicate: rows_of(engine, f, folder) for f in files if f.directive.kind == "input"}
        outputs = [f for f in files if f.directive.kind == "output" and f.kind == "file"]
        asked: list[tuple[str, dict[str, Any]]] = [
            (goal, {"strategy": strategy, "joins": rng.choice(JOINS)})
            for goal in folder.goals
            for strategy in STRATEGIES
        ]
        early = [(goal, how, engine.query(goal, **how)) for goal, how in asked[::2]]
        wanted = [name for name in program.outputs if program.store.known(name)]
        views = dict(zip(wanted, program.views(*wanted), strict=True))
        for epoch in range(3):
            for name, rows in facts.items():
                change(engine.table(name), rows, epoch)
            engine.advance()
        for one in outputs:
            view = views[one.directive.predicate]
            one.write(scratch, view.snapshot(), view.schema)
        found = {file.name: file.read_text(encoding="utf-8") for file in sorted(scratch.iterdir())}
        faults = differences(found, folder.written)
        late = [(goal, how, engine.query(goal, **how)) for goal, how in asked[1::2]]
        for goal, how, query in (*early, *late):
            answers = sorted(shown(row) for row in query.rows())
            if answers != folder.goals[goal]:
                faults.append(f"{goal} {how} gives {answers}")
    return faults


def files_of(program: Program) -> list[RelationFile]:
    declared = {d.predicate: d for d in program.text.declarations}
    structures = {s.name: s for s in program.text.structures}
    return [relation_file(d, declared.get(d.predicate), structures) for d in program.text.directives]


def rows_of(engine: tk.Engine, file: RelationFile, folder: ProgramFolder) -> list[tuple[Any, ...]]:
    table = file.read(folder.path / "facts", engine.table(file.directive.predicate).schema)
    return sorted({tuple(row.values()) for row in table.to_pylist()})


def change(table: tk.Table, rows: list[tuple[Any, ...]], epoch: int) -> None:
    """One of three epochs: half of the facts; then the other half instead; then all."""
    if epoch == 0:
        table.insert(rows[::2])
    elif epoch == 1:
        table.remove(rows[::2])
        table.insert(rows[1::2])
    else:
        table.insert(rows[::2])


def shown(row: tuple[Any, ...]) -> str:
    return f"({', '.join(str(value) for value in row)})"
