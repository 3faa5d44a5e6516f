"""Relations by name: tables, views, definitions, and rows given to one statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import HIDDEN_PREFIX, core_of
from tektite.engine.system.relations import SYSTEM
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, TektiteError
from tektite.expr import Expr, col, lit
from tektite.plan.algebra import Rows
from tektite.query.collection import Collection
from tektite.sql.access.access_control import table_object
from tektite.sql.access.policy_conditions import RIGHTS, PolicyConditions
from tektite.sql.bind.query import Binder
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.schemas import name_parts
from tektite.sql.catalog.system_reads import system_name, system_scan
from tektite.sql.logical import Node, Project, Scan
from tektite.sql.parse.places import POINTED, StatementText, nearest
from tektite.values import types
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

Given: TypeAlias = Mapping[str, "pa.Table | Collection | TargetTable"]
"""Collections, and rows that are there for one statement alone, by the names under which it reads them."""
PROTECTED = "#protected "
"""What a name in FROM begins with that means a table with all its rows, inside the condition of its policies."""
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


@dataclass(frozen=True)
class TargetTable:
    """The table that a statement changes, and the command whose policies say which of its rows the statement finds; ALL are
    found if it is empty.
    """

    table: Table
    command: str


@dataclass(frozen=True)
class ReaderIdentity:
    """For whom a statement reads: whose rights count, and who `current_user` is.

    Inside a view, the rights are those of its owner. A standing query follows the roles as they change; its user may be a column,
    where it answers many users.
    """

    name: str | None
    """Whose rights count now; None for whoever may do everything."""
    holder: Expr | None = None
    """The same as an expression, where that is not the name."""
    user: Expr | None = None
    """What `current_user` is, where it is not the user of the session."""
    is_standing: bool = False


class Reads:
    """The tables and views of an engine as one statement sees them, beside what it is given; notes what it reads."""

    def __init__(
        self, runner: StatementRunner, given: Given | None = None, reader: ReaderIdentity | None = None
    ) -> None:
        self.runner = runner
        self.given: Given = {name.lower(): found for name, found in (given or {}).items()}
        self.names: set[str] = set()
        self.asked: set[str] = set()
        self.reader = ReaderIdentity(runner.access.who()) if reader is None else reader
        self.needs: set[tuple[str | None, str]] = set()
        """Who needs which object; None is the reader that the statement began with."""
        self.reads_user = False
        """Whether the statement depends on who its user is."""
        self.secured: set[str] = set()
        """Tables whose policies were asked for, also those that count for nobody."""
        self._first = self.reader
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
        if written.lower() in self.given:
            return ""
        found = self.runner.relation_named(written)
        if found is not None:
            return name_parts(found.name)[0]
        return "pg_catalog" if system_name(written) is not None else ""

    # ------------------------------------------------------------------ for whom

    def read_for(self, reader: ReaderIdentity) -> None:
        """Read for somebody from here on."""
        self.reader = self._first = reader

    @property
    def is_gated(self) -> bool:
        """Whether somebody's rights count."""
        return self._first.name is not None

    def current_user(self) -> Expr:
        self.reads_user = True
        found = self._first.user
        return lit(self.runner.settings.user, types.String) if found is None else found

    def holder(self) -> Expr:
        """Whose rights count, as an expression."""
        found = self.reader.holder
        return lit(self.reader.name, types.String) if found is None else found

    @contextmanager
    def _reading_for(self, owner: str | None) -> Iterator[None]:
        """Read what a view reads: with the rights of its owner, and nothing of what the statement is given."""
        before, given = self.reader, self.given
        self.reader, self.given = ReaderIdentity(owner, None, None, before.is_standing), {}
        try:
            yield
        finally:
            self.reader, self.given = before, given

    def _check(self, found: Table | View | Definition, binder: Binder, node: exp.Table) -> None:
        """Refuse what the reader may not read, and note what it needs."""
        access, reader = self.runner.access, self.reader
        if not access.is_configured:
            return
        try:
            access.check_read(reader.name, found)
        except TektiteError as error:
            raise binder.source.placed(error, node) from None
        for who, object in access.needs(reader.name, found):
            is_first = reader is self._first and who == reader.name
            self.needs.add((None if is_first else who, object))

    # ------------------------------------------------------------------ relations

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        if name.startswith((PROTECTED, RIGHTS)) and name.lower() not in self.given:
            return self._hidden(name, binder)
        given = self.given.get(name.lower())
        if isinstance(given, pa.Table):
            return self._rows(name, given, binder)
        if isinstance(given, TargetTable):
            self.names.add(given.table.name)
            return self._protected(given.table, binder, given.command, node)
        if given is not None:
            if isinstance(given, Table | View):
                self.names.add(given.name)
            return scanned(name, given, binder)
        found = self.runner.relation_named(name)
        self.asked.add(name)
        system = system_name(name) if found is None else None
        if system is not None:
            return system_scan(self.contents(), binder, system)
        if found is None or name.startswith(HIDDEN):
            own = [name for name in self.given if not name.startswith("#")]
            known = list(SYSTEM) if name.startswith("system.") else [*own, *self.runner.known()]
            message = f"there is no table or view {name!r}: {nearest(name, known)}"
            raise binder.source.error(message, node, NotFoundError)
        self.names.add(found.name)
        self._check(found, binder, node)
        if isinstance(found, Definition):
            return self._defined(found, binder, node)
        if isinstance(found, Table):
            return self._protected(found, binder, "SELECT", node)
        return scanned(found.name, found, binder)

    def _hidden(self, name: str, binder: Binder) -> tuple[Node, list[str]]:
        """A table with all its rows, or a view of rights, which conditions of policies read."""
        if name.startswith(RIGHTS):
            view = self.runner.access.views.named(name.removeprefix(RIGHTS))
            return scanned(view.name, view, binder)
        table = self.runner.relation_stored(name.removeprefix(PROTECTED))
        assert isinstance(table, Table)
        return scanned(table.name, table, binder)

    def _protected(self, table: Table, binder: Binder, command: str, node: exp.Table) -> tuple[Node, list[str]]:
        """A table as the reader sees it: the rows that its policies show."""
        access, reader = self.runner.access, self.reader
        if not access.is_configured or reader.name is None:
            return scanned(table.name, table, binder)
        self.secured.add(table.name)
        if not command or not access.is_secured(table.name):
            return scanned(table.name, table, binder)
        conditions = PolicyConditions(access, table.name, reader.name, reader.is_standing, self.columns_of)
        if reader.is_standing:
            parts = [rows_where(table.name, where, by) for by, where in conditions.branches()]
        else:
            condition = conditions.seen(command)
            if condition is None:
                return scanned(table.name, table, binder)
            parts = [rows_where(table.name, [condition])]
        mark = f"policies of {table.name}"
        if mark in binder.expanding:
            raise binder.source.error(
                f"the policies of {table.name!r} read {table.name!r} itself, without end", node, ConflictError
            )
        query: exp.Expr = parts[0]
        for part in parts[1:]:
            query = exp.Union(this=query, expression=part, distinct=False)
        source, ctes, given = binder.source, binder.ctes, self.given
        binder.source, binder.ctes, self.given = StatementText(f"policies of {table.name}"), {}, {}
        binder.expanding.append(mark)
        try:
            bound = binder.query(query, None)
        except TektiteError as error:
            raise type(error)(f"in the policies of {table.name!r}: {unpointed(error)}") from None
        finally:
            binder.source, binder.ctes, self.given = source, ctes, given
            binder.expanding.pop()
        return bound.visible(), list(table.schema.names)

    def columns_of(self, name: str) -> tuple[str, ...] | None:
        """The columns of a relation by its name; None if there is no such relation."""
        found = self.runner.relation_named(name)
        if found is None or isinstance(found, Definition):
            return None if found is None else tuple(self.runner.titles(found.aliases))
        return found.schema.names

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
        owner = self.runner.access.owner(table_object(found.name))
        try:
            with self._reading_for(owner):
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


def scanned(name: str, found: Collection, binder: Binder) -> tuple[Node, list[str]]:
    """A table, a view or another collection with all its rows."""
    titles = list(found.schema.names)
    names = tuple(binder.name(title, type) for title, type in zip(titles, found.schema.types, strict=True))
    return Scan(name, found, names), titles


def protected_reference(name: str) -> exp.Table:
    """A table with all its rows as a member of FROM, under its own name."""
    alias = exp.TableAlias(this=exp.to_identifier(name_parts(name)[1], quoted=True))
    return exp.Table(this=exp.to_identifier(PROTECTED + name, quoted=True), alias=alias)


def rows_where(name: str, conditions: list[exp.Expr], readers: exp.Select | None = None) -> exp.Select:
    """The rows of a table that meet some conditions of its policies, for some readers."""
    table = protected_reference(name)
    own = exp.Column(this=exp.Star(), table=table.args["alias"].this.copy())
    found = exp.Select(expressions=[own], from_=exp.From(this=table))
    if readers is not None:
        alias = exp.TableAlias(this=exp.to_identifier("#readers", quoted=True))
        found.set("joins", [exp.Join(this=exp.Subquery(this=readers, alias=alias), kind="CROSS")])
    if conditions:
        found.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    return found


def unpointed(error: TektiteError) -> str:
    """The message of an error without the place that it points at."""
    return POINTED.sub("", str(error))
