"""What queries read by name: tables, views, definitions, and rows that are given to one statement alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.engine_core import HIDDEN_PREFIX
from tektite.engine.table import Table
from tektite.errors import ConflictError, NotFoundError, TektiteError
from tektite.expr import col
from tektite.plan.algebra import Rows
from tektite.query.collection import Collection
from tektite.sql.bind.query import Binder
from tektite.sql.logical import Node, Project, Scan
from tektite.sql.parse.places import StatementText, nearest
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

Given: TypeAlias = Mapping[str, "pa.Table | Table"]
"""Tables, and rows that are there for one statement alone, by the names under which it reads them."""
HIDDEN = HIDDEN_PREFIX
"""What the names of inputs and views begin with that are not the user's."""


@dataclass
class Definition:
    """A view that is only a definition: its query and what its columns are called."""

    name: str
    tree: exp.Expr
    aliases: list[str]
    source: StatementText
    reads: set[str] = field(default_factory=set)


class Reads:
    """The tables and views of an engine as one statement sees them, beside what it is given; notes what it reads."""

    def __init__(self, runner: StatementRunner, given: Given | None = None) -> None:
        self.runner = runner
        self.given = given or {}
        self.names: set[str] = set()
        self.asked: set[str] = set()

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        given = self.given.get(name)
        if isinstance(given, pa.Table):
            return self._rows(name, given, binder)
        found = given or self.runner.relation_named(name)
        self.asked.add(name)
        if found is None or name.startswith(HIDDEN):
            message = f"there is no table or view {name!r}: {nearest(name, self.runner.known())}"
            raise binder.source.error(message, node, NotFoundError)
        self.names.add(found.name)
        if isinstance(found, Definition):
            return self._defined(found, binder, node)
        titles = list(found.schema.names)
        names = tuple(binder.name(title, type) for title, type in zip(titles, found.schema.types, strict=True))
        return Scan(found.name, found, names), titles

    def _rows(self, name: str, table: pa.Table, binder: Binder) -> tuple[Node, list[str]]:
        """Rows that are there for the statement alone."""
        engine, schema = self.runner.engine, Schema(table.schema)
        dictionary = core_of(engine).dictionary
        with dictionary.adding():
            words = schema.encode(table, dictionary)
            dictionary.keep(words)
        rows = Collection(engine, Rows(schema, words))
        names = tuple(binder.name(title, type) for title, type in zip(schema.names, schema.types, strict=True))
        return Scan(name, rows, names), list(schema.names)

    def _defined(self, found: Definition, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        if found.name in binder.expanding:
            raise binder.source.error(f"view {found.name!r} is defined by itself", node, ConflictError)
        source, ctes = binder.source, binder.ctes
        binder.source, binder.ctes = found.source, {}
        binder.expanding.append(found.name)
        try:
            bound = binder.query(found.tree, None)
        except TektiteError as error:
            raise type(error)(f"in view {found.name!r}: {error}") from None
        finally:
            binder.source, binder.ctes = source, ctes
            binder.expanding.pop()
        return bound.visible(), binder.aliased(bound.titles, found.aliases, node)

    def now(self, binder: Binder) -> Node:
        clock = self.runner.now
        names = tuple(binder.name(n, t) for n, t in zip(clock.schema.names, clock.schema.types, strict=True))
        return Project(Scan("now()", clock, names, single=True), ((names[1], col(names[1])),))
