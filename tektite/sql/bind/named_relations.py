"""Relations by name: tables, views, definitions, and rows given to one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from tektite.sql.access.access_control import PermissionDenied, table_object
from tektite.sql.access.policy_conditions import PolicyConditions, SeenRows
from tektite.sql.access.rights_trees import PROTECTED, RIGHTS, protected_table
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.definitions import Definition, GraphDefinition
from tektite.sql.bind.query import Binder
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.schemas import name_parts, written_name
from tektite.sql.catalog.system_reads import system_name, system_scan
from tektite.sql.logical import Node, Project, Scan
from tektite.sql.parse.internal_tables import INTERNAL, is_internal
from tektite.sql.parse.places import POINTED, StatementText, nearest
from tektite.values import types
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

Given: TypeAlias = Mapping[str, "pa.Table | Collection | TargetTable"]
"""Collections, and rows that are there for one statement alone, by the names under which it reads them."""
HIDDEN = HIDDEN_PREFIX
"""The prefix of internal inputs and views."""


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
    """The role whose rights count; None for a superuser."""
    holder: Expr | None = None
    """The same as an expression, where that is not the name."""
    user: Expr | None = None
    """The value of `current_user`, where it is not the user of the session."""
    is_standing: bool = False


class Reads:
    """The tables and views of an engine as one statement sees them, beside what it is given; notes what it reads."""

    def __init__(
        self, runner: StatementRunner, given: Given | None = None, reader: ReaderIdentity | None = None
    ) -> None:
        self.runner = runner
        self.given: Given = {name.lower(): found for name, found in (given or {}).items()}
        self.names: set[str] = set()
        self.named: set[str] = set()
        """The names that are in the text itself, not in that of a view."""
        self.asked: set[str] = set()
        self.reader = ReaderIdentity(runner.access.who()) if reader is None else reader
        self.needs: set[tuple[str | None, str]] = set()
        """The objects that are needed, each with its reader; None is the reader that the statement began with."""
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
        """The role whose rights count, as an expression."""
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

    def _note(self, name: str) -> None:
        """Something is read."""
        self.names.add(name)
        if self.reader is self._first:
            self.named.add(name)

    # ------------------------------------------------------------------ relations

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        if is_internal(node) and name.startswith((PROTECTED, RIGHTS)):
            return self._hidden(name, binder)
        given = self.given.get(name.lower())
        if name.startswith(INTERNAL) and not is_internal(node):
            given = None
        if isinstance(given, pa.Table):
            return self._rows(name, given, binder)
        if isinstance(given, TargetTable):
            self._note(given.table.name)
            return self._protected(given.table, binder, given.command, node)
        if given is not None:
            if isinstance(given, Table | View):
                self._note(given.name)
            return scanned(name, given, binder)
        found = self.runner.relation_named(name)
        if (
            found is None and not self.runner.access.is_configured
        ):  # where there are rights, whoever asks would own the view
            found = core_of(self.runner.engine).hooks.build_view(name)
        self.asked.add(name)
        system = system_name(name) if found is None else None
        if system is not None:
            return system_scan(self.contents(), binder, system)
        if found is None or name.startswith(HIDDEN):
            own = [name for name in self.given if not name.startswith(INTERNAL)]
            known = list(SYSTEM) if name.startswith("system.") else [*own, *self.runner.visible()]
            message = f"there is no table or view {name!r}: {nearest(name, known)}"
            raise binder.source.error(message, node, NotFoundError, condition="undefined-table")
        self._note(found.name)
        self._check(found, binder, node)
        if isinstance(found, GraphDefinition):
            message = f"{name!r} is a property graph: read it by GRAPH_TABLE ({name} MATCH ... COLUMNS (...))"
            raise binder.source.error(message, node)
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
        if reader.is_standing or (access.is_system(table.name) and not access.bypasses(reader.name, table.name)):
            parts = [rows_of(table, seen) for seen in conditions.branches()]
        else:
            condition = conditions.seen(command)
            if condition is None:
                return scanned(table.name, table, binder)
            parts = [rows_of(table, SeenRows(None, [condition]))]
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
            raise error.reworded(f"in the policies of {table.name!r}: {unpointed(error)}") from None
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
            dictionary.pin(words)
        rows = Collection(engine, Rows(schema, words))
        names = tuple(binder.name(title, type) for title, type in zip(schema.names, schema.types, strict=True))
        return Scan(name, rows, names), list(schema.names)

    def _defined(self, found: Definition, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        if found.name in binder.expanding:
            raise binder.source.error(f"view {found.name!r} is defined by itself", node, ConflictError)
        bound = binder.view(found.name, lambda: self._view(found, binder, node))
        return bound.plan, bound.titles

    def _view(self, found: Definition, binder: Binder, node: exp.Table) -> Bound:
        source, ctes = binder.source, binder.ctes
        binder.source, binder.ctes = found.source, {}
        binder.expanding.append(found.name)
        owner = self.runner.access.owner(table_object(found.name))
        try:
            with self._reading_for(owner):
                bound = binder.query(found.tree, None)
        except TektiteError as error:
            is_told = not isinstance(error, PermissionDenied) or self._first.name in (None, owner)
            shown = str(error) if is_told else f"permission denied: its owner {owner!r} may not read all that it reads"
            raise error.reworded(f"in view {found.name!r}: {shown}") from None
        finally:
            binder.source, binder.ctes = source, ctes
            binder.expanding.pop()
        return Bound(bound.visible(), bound.names, binder.aliased(bound.titles, found.aliases, node))

    def graph_query(self, binder: Binder, node: exp.Table, build: Callable[[GraphDefinition], exp.Expr]) -> Bound:
        """Binds the query that `build` makes of a property graph, by the rights of the graph's owner. The query sees no names
        of the statement: its tables are never those that WITH defines.
        """
        name = written_name(binder.source, node)
        found = self.runner.relation_named(name)
        self.asked.add(name)
        if not isinstance(found, GraphDefinition):
            if found is not None and self.runner.access.knows(self.runner.access.who(), found.name):
                message = f"{name!r} is no property graph: CREATE PROPERTY GRAPH makes one of tables"
                raise binder.source.error(message, node)
            visible = set(self.runner.visible())
            known = [one.name for one in self.runner.graphs() if one.name in visible]
            raise binder.source.error(
                f"there is no property graph {name!r}: {nearest(name, known)}", node, NotFoundError
            )
        self._note(found.name)
        self._check(found, binder, node)
        query = build(found)
        owner, ctes = self.runner.access.owner(table_object(found.name)), binder.ctes
        binder.ctes = {}
        try:
            with self._reading_for(owner):
                return binder.query(query, None)
        except PermissionDenied as error:
            if self._first.name in (None, owner):
                raise
            message = f"in property graph {found.name!r}: permission denied: its owner {owner!r} may not read all that it reads"
            raise type(error)(message) from None
        finally:
            binder.ctes = ctes

    def now(self, binder: Binder) -> Node:
        clock = self.runner.now
        names = tuple(binder.name(n, t) for n, t in zip(clock.schema.names, clock.schema.types, strict=True))
        return Project(Scan("now()", clock, names, single=True), ((names[1], col(names[1])),))


def scanned(name: str, found: Collection, binder: Binder) -> tuple[Node, list[str]]:
    """A table, a view or another collection with all its rows."""
    titles = list(found.schema.names)
    names = tuple(binder.name(title, type) for title, type in zip(titles, found.schema.types, strict=True))
    return Scan(name, found, names), titles


def rows_of(table: Table, seen: SeenRows) -> exp.Select:
    """Some of the rows that a reader sees of a table."""
    relation = protected_table(table.name)
    own = relation.args["alias"].this
    columns: list[exp.Expr] = [exp.Column(this=exp.Star(), table=own.copy())]
    if seen.hides:
        columns = [shown_column(own, name, name in seen.hides) for name in table.schema.names]
    found = exp.Select(expressions=columns, from_=exp.From(this=relation))
    if seen.readers is not None:
        alias = exp.TableAlias(this=exp.to_identifier("#readers", quoted=True))
        found.set("joins", [exp.Join(this=exp.Subquery(this=seen.readers, alias=alias), kind="CROSS")])
    if seen.conditions:
        found.set("where", exp.Where(this=exp.and_(*seen.conditions, copy=False)))
    return found


def shown_column(table: exp.Identifier, name: str, is_hidden: bool) -> exp.Expr:
    """A column of a table, or NULL of its type in its place."""
    column = exp.Column(this=exp.to_identifier(name, quoted=True), table=table.copy())
    if is_hidden:
        return exp.alias_(exp.Case(ifs=[exp.If(this=exp.false(), true=column)]), name, quoted=True)
    return column


def unpointed(error: TektiteError) -> str:
    """The message of an error without the place that it points at."""
    return POINTED.sub("", str(error))
