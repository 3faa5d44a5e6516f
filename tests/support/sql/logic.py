"""Files of SQL with the answers it must give, in the manner of sqllogictest.

A file is records with blank lines between them; `#` begins a comment line.

    statement ok                    the statement runs
    statement error <regex>         the statement fails with a message in which the expression is found
    query [nosort]                  the rows behind ---- are the answer, in any order; with nosort in this one
    onlyif tektite                  before a record: DuckDB does not know it, or differs by a documented choice

A row is a line of cells with | between them; a cell is a value as the shell shows it, NULL, or (empty) for an empty text.
Every query is also maintained as a view from where it stands in the file on, and compared with DuckDB after every later
statement; but between BEGIN and the end of a transaction queries are asked once, since views see nothing of it before it is
committed. `python -m tests.support.sql.logic FILE...` writes DuckDB's answers behind the queries that have none yet.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

import tektite as tk
from tektite.sql import runner
from tektite.sql.shell.display import text as shown
from tests.support.executors import make_engine
from tests.support.sql.oracle import Oracle, difference, is_select, top_difference

FOLDER = Path(__file__).parents[2] / "sql" / "logic"


@dataclass
class Record:
    """One record of a file."""

    line: int
    kind: str
    argument: str
    sql: str
    expected: list[str] | None = None
    ours_alone: bool = False


@dataclass
class Faults:
    """What a file found, each with its line."""

    path: Path
    found: list[str] = field(default_factory=list)

    def add(self, line: int, message: str) -> None:
        self.found.append(f"{self.path.name}:{line}: {message}")


def records(text: str) -> Iterator[Record]:
    """The records of a file's text."""
    place = 0
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [(place + n + 1, line) for n, line in enumerate(block.split("\n"))]
        place += block.count("\n") + 2
        lines = [(number, line) for number, line in lines if not line.startswith("#")]
        alone = bool(lines) and lines[0][1].strip() == "onlyif tektite"
        lines = lines[1:] if alone else lines
        if not lines or not lines[0][1].strip():
            continue
        number, head = lines[0]
        kind, _, argument = head.strip().partition(" ")
        assert kind in ("statement", "query"), f"line {number}: {head}"
        body = [line for _, line in lines[1:]]
        if "----" in body:
            cut = body.index("----")
            yield Record(
                number, kind, argument, "\n".join(body[:cut]), [line for line in body[cut + 1 :] if line], alone
            )
        else:
            yield Record(number, kind, argument, "\n".join(body), None, alone)


def row_text(row: tuple[Any, ...]) -> str:
    return " | ".join("NULL" if v is None else "(empty)" if v == "" else shown(v) for v in row)


def canonical(line: str) -> str:
    """A line of cells without the space around them, and numbers in one form."""

    def cell(text: str) -> str:
        text = text.strip()
        return f"{float(text):.9g}" if re.fullmatch(r"-?\d+\.\d+(e[+-]?\d+)?|-?\d+", text) else text

    return "|".join(cell(part) for part in line.split("|"))


def agree(found: list[str], expected: list[str], ordered: bool) -> bool:
    left, right = [canonical(line) for line in found], [canonical(line) for line in expected]
    return left == right if ordered else sorted(left) == sorted(right)


def run(path: Path) -> list[str]:
    """What is wrong with a file."""
    faults = Faults(path)
    oracle = Oracle()
    views: dict[str, str] = {}
    record = None
    with make_engine() as engine:
        for record in records(path.read_text(encoding="utf-8")):
            if record.kind == "statement":
                if re.match(r"\s*(DROP|CREATE OR REPLACE)", record.sql, re.IGNORECASE):
                    # What the file's queries read is to go: let them not stand in its way.
                    for name in views:
                        engine.sql(f"DROP MATERIALIZED VIEW {name}")
                    views.clear()
                run_statement(record, engine, oracle, faults)
                check_views(record, engine, oracle, views, faults)
            else:
                run_query(record, engine, oracle, views, faults)
        if record is not None:
            check_views(record, engine, oracle, views, faults)
    oracle.close()
    return faults.found


def run_statement(record: Record, engine: Any, oracle: Oracle, faults: Faults) -> None:
    wanted, _, pattern = record.argument.partition(" ")
    try:
        engine.sql(record.sql)
        with engine.session():  # which is nothing to a transaction that is open in another
            engine.advance()
    except tk.TektiteError as error:
        if wanted == "ok":
            faults.add(record.line, f"{type(error).__name__}: {error}")
        elif not re.search(pattern, str(error), re.IGNORECASE | re.DOTALL):
            faults.add(record.line, f"the message should have {pattern!r}: {error}")
    except Exception as error:
        faults.add(record.line, f"{type(error).__name__}: {error!r}")
    else:
        if wanted == "error":
            faults.add(record.line, "no error")
    if wanted == "ok" and not record.ours_alone:
        try:
            oracle.execute(without_keys(record.sql))
        except duckdb.Error as error:
            faults.add(record.line, f"DuckDB: {error}")


def without_keys(statement: str) -> str:
    """A CREATE TABLE for the oracle: DuckDB's keys refuse some changes within one statement."""
    return re.sub(r",\s*PRIMARY KEY\s*\([^)]*\)|\s+PRIMARY KEY", "", statement, flags=re.IGNORECASE)


def run_query(record: Record, engine: Any, oracle: Oracle, views: dict[str, str], faults: Faults) -> None:
    assert record.expected is not None, f"line {record.line}: a query without an answer"
    ordered = record.argument == "nosort"
    if not record.ours_alone:
        theirs = [row_text(row) for row in oracle.rows(record.sql)]
        if not agree(theirs, record.expected, ordered):
            faults.add(record.line, f"DuckDB answers {theirs}")
    try:
        ours = [row_text(row) for row in engine.sql(record.sql).rows()]
        if not agree(ours, record.expected, ordered):
            faults.add(record.line, f"answers {ours} instead of {record.expected}")
    except Exception as error:
        faults.add(record.line, f"{type(error).__name__}: {error}")
        return
    if runner(engine).transaction is not None:
        return
    if record.ours_alone or not record.sql.lstrip().lower().startswith(("select", "with", "values", "(")):
        return
    name = f"line_{record.line}"
    columns = ", ".join(f"c{place}" for place in range(oracle.table(record.sql).num_columns))
    try:
        engine.sql(f"CREATE MATERIALIZED VIEW {name} ({columns}) AS {record.sql}")
    except Exception as error:
        if isinstance(error, tk.TektiteError) and "ORDER BY of a materialized view" in str(error):
            return  # a view has no order by what is no column of it
        faults.add(record.line, f"as a view: {type(error).__name__}: {error}")
        return
    views[name] = record.sql
    check_views(record, engine, oracle, views, faults, [name])  # others are checked when something has changed


def check_views(
    record: Record, engine: Any, oracle: Oracle, views: dict[str, str], faults: Faults, names: list[str] | None = None
) -> None:
    """Compare views: everything that is maintained so far, or those named."""
    if runner(engine).transaction is not None:
        return
    for name, select in [(name, views[name]) for name in names or views]:
        try:
            theirs = oracle.rows(select)
        except duckdb.Error:
            continue  # what it read was dropped
        try:
            ours = engine.view(name).rows()
            if is_select(select):
                found = top_difference(ours, oracle, select, theirs)
            else:
                found = difference(ours, theirs)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found is not None:
            faults.add(record.line, f"afterwards the view of {name.replace('_', ' ')} is wrong: {found}")
            del views[name]


def complete(path: Path) -> None:
    """Write DuckDB's answers behind the queries that have none."""
    oracle = Oracle()
    text = path.read_text(encoding="utf-8")
    blocks = re.split(r"(\n[ \t]*\n)", text)
    for place, block in enumerate(blocks):
        for record in records(block):
            if record.ours_alone:
                continue
            if record.kind == "statement":
                if record.argument == "ok":
                    oracle.execute(without_keys(record.sql))
            elif record.expected is None:
                rows = [row_text(row) for row in oracle.rows(record.sql)]
                if record.argument != "nosort":
                    rows.sort()
                blocks[place] = "\n".join([block.rstrip("\n"), "----", *rows])
    path.write_text("".join(blocks).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        complete(Path(name))
