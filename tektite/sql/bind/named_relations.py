"""Relations by name: tables, views, definitions, and rows given to one statement."""

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
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.schemas import name_parts
from tektite.sql.catalog.system_reads import system_name, system_scan
from tektite.sql.logical import Node, Project, Scan
from tektite.sql.parse.places import StatementText, nearest
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

Given: TypeAlias = Mapping[str, "pa.Table | Table"]
"""Tables, and rows that are there for one statement alone, by the names under which it reads them."""
HIDDEN = HIDDEN_PREFIX
"""The prefix of internal inputs and views."""


@dataclass
class Definition:
    """A view that is only a definition: its query and the names of its columns."""

    name: str
    tree: exp.Expr
    aliases: list[str]
    source: StatementText
    reads: set[str] = field(default_factory=set)
    types: tuple[Type, ...] = ()
    """The types of its columns when it was made: nothing that it reads can be replaced while it is there."""


class Reads:
    """The tables and views of an engine as one statement sees them, beside what it is given; notes what it reads."""

    def __init__(self, runner: StatementRunner, given: Given | None = None) -> None:
        self.runner = runner
        self.given = given or {}
        self.names: set[str] = set()
        self.asked: set[str] = set()
        self._contents: CatalogContents | None = None

    @property
    def reads_system(self) -> bool:
        """Whether the statement reads the system catalogs, so that it must be planned again each time."""
        return self._contents is not None

    @property
    def zone(self) -> str:
        return self.runner.settings.zone

    def contents(self) -> CatalogContents:
        if self._contents is None:
            self._contents = CatalogContents(self.runner, self.runner.settings)
        return self._contents

    def schema_of(self, written: str) -> str:
        if written in self.given:
            return ""
        found = self.runner.relation_named(written)
        if found is not None:
            return name_parts(found.name)[0]
        return "pg_catalog" if system_name(written) is not None else ""

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        given = self.given.get(name)
        if isinstance(given, pa.Table):
            return self._rows(name, given, binder)
        found = given or self.runner.relation_named(name)
        self.asked.add(name)
        system = system_name(name) if found is None else None
        if system is not None:
            return system_scan(self.contents(), binder, system)
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
