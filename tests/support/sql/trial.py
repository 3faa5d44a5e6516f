"""Try a case: maintain its queries through its epochs and compare each with DuckDB after every one.

A fault that is found is made small again before it is reported: fewer epochs, fewer statements, fewer rows, and a query
with everything left out that the fault does not need.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import duckdb
import sqlglot
from sqlglot import exp

import tektite as tk
from tests.support.executors import make_engine
from tests.support.sql.oracle import Oracle, difference
from tests.support.sql.worlds import Case, Table


@dataclass(frozen=True)
class Fault:
    """What is wrong with a query's view: a wrong answer, an unsupported construct, or an error."""

    query: int
    epoch: int
    kind: str
    message: str

    def like(self, other: Fault) -> bool:
        """Whether two faults are of one kind, so that a smaller case shows the same."""
        return self.kind == other.kind and (self.kind == "wrong" or gist(self.message) == gist(other.message))


def gist(message: str) -> str:
    """An error's message without the names and numbers in it."""
    return re.sub(r"'[^']*'|-?\d+", "", message.splitlines()[0])[:60] if message else ""


def try_case(case: Case, workers: int = 1) -> tuple[list[Fault], int]:
    """The faults of a case, at most one a query; and how many of its queries DuckDB could answer in every epoch."""
    oracle = Oracle()
    faults: dict[int, Fault] = {}
    refused: set[int] = set()
    with make_engine(workers=workers) as engine:
        try:
            for table in case.tables:
                oracle.execute(replace(table, keyed=False).create)
                engine.sql(table.create)
            for epoch, statements in enumerate(case.epochs):
                for number, query in enumerate(case.queries):
                    if case.installs[number] == epoch:
                        try:
                            oracle.rows(query)
                            engine.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
                        except duckdb.Error:
                            refused.add(number)
                        except Exception as error:
                            faults[number] = fault_of(number, epoch, error)
                for statement in statements:
                    oracle.execute(statement)
                    engine.sql(statement)
                engine.advance()
                for number, query in enumerate(case.queries):
                    if case.installs[number] <= epoch and number not in faults and number not in refused:
                        try:
                            theirs = oracle.rows(query)
                        except duckdb.Error:
                            refused.add(number)
                            continue
                        try:
                            found = difference(engine.view(f"v{number}").rows(), theirs)
                        except Exception as error:
                            faults[number] = fault_of(number, epoch, error)
                            continue
                        if found is not None:
                            faults[number] = Fault(number, epoch, "wrong", found)
        finally:
            oracle.close()
    return [fault for number, fault in sorted(faults.items()) if number not in refused], len(case.queries) - len(
        refused
    )


def fault_of(number: int, epoch: int, error: Exception) -> Fault:
    kind = "unsupported" if isinstance(error, tk.UnsupportedError) else type(error).__name__
    return Fault(number, epoch, kind, str(error))


# ---------------------------------------------------------------------- making a fault small


def reduced(case: Case, fault: Fault, seconds: float = 20.0) -> tuple[Case, Fault]:
    """A smaller case with a fault of the same kind."""
    deadline = time.monotonic() + seconds
    best, known = case, fault
    found = seen(best, known)
    if found is None:
        return case, fault
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in smaller(best):
            if time.monotonic() > deadline:
                break
            found = seen(candidate, known)
            if found is not None:
                best, known, progress = candidate, found, True
                break
    return best, known


def seen(case: Case, fault: Fault) -> Fault | None:
    """The fault of a case of one query, if it is like the one that is looked for."""
    try:
        faults, _ = try_case(case)
    except Exception:
        return None
    return next((found for found in faults if found.like(fault)), None)


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are a step smaller: those that leave out most come first."""
    (query,) = case.queries
    everything = [statement for epoch in case.epochs for statement in epoch]
    if case.installs != [0]:
        yield replace(case, installs=[0])
    if len(case.epochs) > 1:
        for last in range(1, len(case.epochs)):
            yield replace(case, epochs=case.epochs[:last], installs=[min(case.installs[0], last - 1)])
        yield replace(case, epochs=[everything], installs=[0])
    for table in case.tables:
        if table.name not in query:
            others = [[s for s in epoch if f" {table.name} " not in f"{s} "] for epoch in case.epochs]
            yield replace(case, tables=[t for t in case.tables if t is not table], epochs=others)
    for text in simpler(query):
        yield replace(case, queries=[text])
    for number, epoch in enumerate(case.epochs):
        for place, statement in enumerate(epoch):
            for less in [[], *([s] for s in fewer_rows(statement))]:
                changed = [*epoch[:place], *less, *epoch[place + 1 :]]
                yield replace(case, epochs=[*case.epochs[:number], changed, *case.epochs[number + 1 :]])


def fewer_rows(statement: str) -> Iterator[str]:
    """An INSERT with half of its rows, or without one of them."""
    if not statement.startswith("INSERT"):
        return
    head, _, values = statement.partition(" VALUES ")
    rows = [f"({row})" for row in values[1:-1].split("), (")] if values.startswith("(") else []
    if len(rows) > 1:
        half = len(rows) // 2
        yield f"{head} VALUES {', '.join(rows[:half])}"
        yield f"{head} VALUES {', '.join(rows[half:])}"
        for place in range(len(rows)):
            yield f"{head} VALUES {', '.join(rows[:place] + rows[place + 1 :])}"


def simpler(query: str) -> Iterator[str]:
    """Queries with something left out: a clause, a join, a column, one side of an operator, a subquery's surroundings."""
    tree = sqlglot.parse_one(query, read="duckdb")
    nodes = list(tree.walk())
    for place, node in enumerate(nodes):
        for edit in edits(node):
            copy = tree.copy()
            target = list(copy.walk())[place]
            yield (edit(target) or copy).sql("duckdb")


Edit = Callable[[exp.Expression], exp.Expression | None]


def edits(node: exp.Expression) -> Iterator[Edit]:
    """Ways to simplify one node of a tree in place; one that returns a node makes that the whole query."""
    if isinstance(node, exp.Query) and node.parent is not None:
        yield lambda target: target.copy()
    if isinstance(node, exp.SetOperation):
        yield lambda target: swap(target, target.this)
        yield lambda target: swap(target, target.expression)
    if isinstance(node, exp.Select):
        for clause in ("where", "having", "group", "order", "limit", "offset", "distinct", "with_"):
            if node.args.get(clause):
                yield lambda target, clause=clause: target.set(clause, None)
        for place in range(len(node.args.get("joins") or ())):
            yield lambda target, place=place: target.args["joins"].pop(place) and None
        if len(node.expressions) > 1:
            for place in range(len(node.expressions)):
                yield lambda target, place=place: target.expressions.pop(place) and None
    elif isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join):
        return
    elif isinstance(node, exp.Condition) and not isinstance(node, exp.Column | exp.Literal | exp.Boolean | exp.Null):
        for part in node.args.values():
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, exp.Condition):
                    yield lambda target, child=child: swap(target, child)
        yield lambda target: swap(target, exp.true())
        yield lambda target: swap(target, exp.Literal.number(1))


def swap(target: exp.Expression, other: exp.Expression) -> exp.Expression | None:
    """Put another node into a node's place."""
    other = other.copy()
    if target.parent is None:
        return other
    target.replace(other)
    return None


def report(case: Case, fault: Fault) -> str:
    """What a person needs to see a fault."""
    return f"{fault.kind} in epoch {fault.epoch}: {fault.message}\n{case.script()}"


__all__ = ["Case", "Fault", "Table", "reduced", "report", "try_case"]
