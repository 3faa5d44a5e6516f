"""StatementRunner: SQL's state of an engine. It runs each statement.

Statements that change tables close an epoch each, unless they stand between BEGIN and COMMIT; queries answer as of the
last closed epoch, and see what their transaction has changed.
"""

from __future__ import annotations

import datetime
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.session import Session, Transaction
from tektite.engine.table import Table
from tektite.engine.table_edits import check_moved_keys
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, TektiteError, UnsupportedError
from tektite.expr import Expr, col, lit
from tektite.expr.fold import computed
from tektite.expr.fold import folded as folded_constant
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.query.limits import Sorted
from tektite.query.row_order import sorted_rows
from tektite.sql.access.access_control import AccessControl
from tektite.sql.access.allowances import Allowance
from tektite.sql.bind.bound import nothing
from tektite.sql.bind.definitions import Definition, GraphDefinition
from tektite.sql.bind.named_relations import HIDDEN, Given, ReaderIdentity, Reads
from tektite.sql.bind.query import Binder
from tektite.sql.catalog import catalog_lookup
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.pg_types import REGISTERED
from tektite.sql.catalog.schemas import DEFAULT, SYSTEM, implied_schemas, only_table, stored_name
from tektite.sql.catalog.settings import SessionSettings
from tektite.sql.logical import Node, outer_columns
from tektite.sql.lower.lower import Lowering
from tektite.sql.parse import parser
from tektite.sql.parse.connector_statements import CreateConnector, DropConnector
from tektite.sql.parse.depth_limit import deep_calls
from tektite.sql.parse.instead import STATEMENTS, instead
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.statements import (
    create,
    explain,
    prepared,
    session_settings,
    show,
    transactions,
)
from tektite.sql.statements.columns import cast_columns, unique_titles
from tektite.sql.statements.connector_runner import ConnectorRunner
from tektite.sql.statements.direct_texts import DirectTexts
from tektite.sql.statements.disclosure import disclosed_error, names_in
from tektite.sql.statements.handlers import ACCESS_HANDLERS, HANDLERS, WRITING
from tektite.sql.statements.parametrised import parametrised
from tektite.sql.statements.pauses import copied_beside_others, pauses_for, pauses_of
from tektite.sql.statements.result import Result
from tektite.sql.statements.shared_queries import SharedQueries
from tektite.sql.statements.shown_zone import in_zone
from tektite.sql.statements.statement_cache import Planned, Remembered, carries_data
from tektite.values import types
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.engine.engine import Engine


SETTING = (parser.SetModes, parser.SetSetting, parser.Savepoint, parser.Nothing, parser.Show)
"""Statements that are no queries: a transaction that has only run such can still be told what it may do."""


class StatementRunner:
    """SQL's view of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.definitions: dict[str, Definition] = {}
        self.indexes: dict[str, create.NamedIndex] = {}
        self.prepared: dict[str, prepared.Prepared] = {}
        self.reads: dict[str, set[str]] = {}
        """The relations that each materialised view was defined over, by the view's name."""
        self.named: dict[str, frozenset[str]] = {}
        """The relations that the texts of materialised views name; they are read by the rights of the views' owners."""
        self.view_texts: WeakKeyDictionary[ViewCore, str] = WeakKeyDictionary()
        """The queries of materialised views, as they are written."""
        self.schemas: set[str] = set()
        """The schemas that were created."""
        self.savepoints: WeakKeyDictionary[Transaction, list[tuple[str, Any]]] = WeakKeyDictionary()
        """The writes of transactions up to each savepoint, by its name, the latest last."""
        self._settings: WeakKeyDictionary[Session, SessionSettings] = WeakKeyDictionary()
        self.clock: Callable[[], datetime.datetime] = utc_now
        self._unit: Table | None = None
        self._now: Table | None = None
        self._told: datetime.datetime | None = None
        self._numbers = 0
        self.remembered = Remembered(self)
        self.access = AccessControl(self)
        self.shared = SharedQueries(self)
        self.connectors: ConnectorRunner | None = None
        """The runner of sources and sinks, if there is one."""
        self.allowance = Allowance()
        """The limits of users whose roles set none."""
        self.standing_secured: dict[str, frozenset[str]] = {}
        """The tables whose policies materialised views were installed with, by view; those of views that roles own."""
        self._direct = DirectTexts(self)

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that is open in the caller's runner, if one is."""
        return core_of(self.engine).sessions.transaction

    @property
    def settings(self) -> SessionSettings:
        """The settings of the caller's session."""
        return self.settings_of(core_of(self.engine).sessions.current())

    def settings_of(self, session: Session) -> SessionSettings:
        """The settings of a session."""
        found = self._settings.get(session)
        if found is None:
            found = self._settings[session] = SessionSettings(session)
            known = weakref.ref(found)  # settings are a value of a weak dictionary: they do not hold themselves
            found.is_super = lambda: (own := known()) is None or self.access.is_super(self.access.who_is(own))
        return found

    # ------------------------------------------------------------------ statements

    def run(self, text: str, parameters: Mapping[str, Any]) -> Result:
        """Run all statements of a text; the last one's result. A transaction that a text begins does not outlive its failure."""
        direct = self._direct.run(text, parameters)
        if direct is not None:
            return direct
        result = Result("")
        before = self.transaction
        try:
            with deep_calls():
                if parameters:
                    self.remembered.check_used(text, parameters)
                for statement in self.remembered.statements(text):
                    result = self.statement(statement, parameters)
        except BaseException:
            if self.transaction is not None and self.transaction is not before:
                self.transaction.rollback()
            raise
        return result

    def run_kept(self, statement: parser.Statement, parameters: Mapping[str, Any]) -> Result:
        """Run a statement that the caller has parsed, and may run again with other values."""
        with deep_calls():
            if isinstance(statement, parser.Plain) and carries_data(statement):
                statement = replace(statement, tree=copied_beside_others(self, statement))
            else:
                self.remembered.begin(statement)
            return self.statement(statement, parameters)

    def statement(self, statement: parser.Statement, parameters: Mapping[str, Any]) -> Result:
        """Run one statement."""
        source = statement.source
        try:
            return self._run_whole(statement, parameters)
        except RecursionError:
            raise source.error("the statement is nested too deeply", None, UnsupportedError) from None
        except TektiteError as error:
            hidden = disclosed_error(self, statement, error)
            placed = source.placed(hidden)
            if placed is error:
                raise
            raise placed from (error if hidden is error else None)

    def _run_whole(self, statement: parser.Statement, parameters: Mapping[str, Any]) -> Result:
        """Run one statement as if alone. A long query lets others change what the statement is about to write: then it is run
        again, and at last without giving others a turn.
        """
        user = (core := core_of(self.engine)).sessions.current()
        outer = user.statement_looked, user.statement_pause
        try:
            for _ in range(2):
                user.statement_began, user.statement_looked = core.epoch, False
                user.statement_pause = pauses_for(self, statement)
                try:
                    return self._run(statement, parameters)
                except transactions.Overtaken:
                    continue
            with core.lock.held, core.undisturbed():
                user.statement_began, user.statement_looked, user.statement_pause = core.epoch, False, None
                return self._run(statement, parameters)
        finally:
            user.statement_looked, user.statement_pause = outer

    def _run(self, statement: parser.Statement, parameters: Mapping[str, Any]) -> Result:
        source = statement.source
        if self.transaction is not None and not isinstance(statement, SETTING):
            self.transaction.has_queried = True
        match statement:
            case parser.Plain():
                return self._plain(statement, parameters)
            case parser.Explain():
                return explain.explain(self, statement, parameters)
            case parser.Subscribe():
                return self._subscribe(source, statement.tree, parameters)
            case parser.Show():
                return show.show(self, statement)
            case parser.Begin():
                return transactions.begin(self, statement)
            case parser.SetModes():
                return transactions.change_modes(self, statement)
            case parser.Savepoint():
                return transactions.savepoint(self, statement)
            case parser.Nothing():
                return Result(statement.what)
            case parser.Refresh():
                return show.refresh(self, statement)
            case parser.SetSetting():
                return session_settings.change(self, statement)
            case parser.Prepare():
                return prepared.prepare(self, statement)
            case parser.Execute():
                return prepared.execute(self, statement, parameters)
            case parser.Deallocate():
                return prepared.deallocate(self, statement, parameters)
        self.check_writable(source)
        if isinstance(statement, CreateConnector):
            return self.connectors_of(statement).create(statement)
        if isinstance(statement, DropConnector):
            return self.connectors_of(statement).drop(statement)
        handler = ACCESS_HANDLERS[type(statement)]
        return handler(self, statement)

    def connectors_of(self, statement: parser.Statement) -> ConnectorRunner:
        """The runner of sources and sinks, for a statement about one. Raises if there is none."""
        if self.connectors is None:
            raise statement.source.error(
                "sources and sinks are run by a server: tektite serve. A program reads files by COPY or Table.insert, and "
                "follows views by View.subscribe",
                statement.start,
                UnsupportedError,
            )
        return self.connectors

    def _plain(self, statement: parser.Plain, parameters: Mapping[str, Any]) -> Result:
        source, tree = statement.source, statement.tree
        if isinstance(tree, exp.Query | exp.Values):
            return Result("SELECT", self.select(source, tree, parameters))
        return self.run_tree(source, tree, parameters)

    def run_tree(self, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]) -> Result:
        """Run a statement that is no query."""
        for kind, handler in HANDLERS.items():
            if isinstance(tree, kind):
                if kind in WRITING:
                    self.check_writable(source)
                result = handler(self, source, tree, parameters)
                refuse_unread(source, tree)  # handlers ask before they change something; this finds one that forgot
                return result
        said = source.word(source.start).upper()
        message = f"{said or 'such a statement'} is not supported{instead(STATEMENTS, said)}"
        raise source.error(message, source.start, UnsupportedError)

    def check_writable(self, source: StatementText) -> None:
        """Refuse a statement that changes something in a transaction that only reads."""
        if self.transaction is not None:
            self.transaction.check_writable(source.word(source.start).upper())

    def _subscribe(self, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]) -> Result:
        """The changes of a view or a table, or of a query that is installed for it."""
        name = only_table(source, tree)
        found = None if name is None or self.access.who() is not None else self.relation_named(name)
        if isinstance(found, Table | View) and not found.name.startswith(HIDDEN):
            view = found if isinstance(found, View) else None
            return Result("SUBSCRIBE", view=view, subscription=found.subscribe())
        answer = self.shared.answer(parametrised(self, source, tree, parameters))
        return Result("SUBSCRIBE", subscription=answer.subscribe(), reads=tuple(names_in(self, source, tree)))

    # ------------------------------------------------------------------ queries

    def bind(self, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]) -> Planned:
        """A query, bound and decorrelated; or as it was the last time, if all that it depends on is as it was."""
        if parameters:
            return self._bind(source, tree, parameters)
        return self.remembered.plan(tree, lambda: self._bind(source, tree, parameters))

    def _bind(
        self,
        source: StatementText,
        tree: exp.Expr,
        parameters: Mapping[str, Any],
        given: Given | None = None,
        reader: ReaderIdentity | None = None,
    ) -> Planned:
        reads = Reads(self, given, reader)
        binder = Binder(source, reads, parameters, pauses := pauses_of(self))
        try:
            with outer_columns(binder.columns):
                bound = binder.query(tree, None)
                plan = decorrelate(bound.plan, binder.names)
            refuse_unread(source, tree, pauses)
            if pauses is not None:
                pauses.end()
        except UnsupportedError as error:  # of a rule, which sees no text: what it cannot do is recursion in a subquery
            raise source.placed(error, tree.find(exp.With)) from None
        except RecursionError:
            raise source.error("the query is nested too deeply", None, UnsupportedError) from None
        declared = tuple(binder.declared(col(name)) for name in bound.names)
        return Planned(
            plan, bound, reads.names, reads.asked, frozenset(reads.named), reads_system=reads.reads_system, declared=declared,
            secured=frozenset(reads.secured), reads_user=reads.reads_user,
        )  # fmt: skip

    def bind_given(self, source: StatementText, tree: exp.Expr, given: Given) -> Planned:
        """A query of our own over what is given by name."""
        return self._bind(source, tree, {}, given, ReaderIdentity(None))

    def bind_standing(self, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]) -> Planned:
        """A query that is to be kept up to date, with the rights of whoever has it installed; it follows the roles."""
        if not self.access.is_configured:
            return self.bind(source, tree, parameters)
        who, user = self.access.who(), lit(self.settings.user, types.String)
        return self._bind(source, tree, parameters, None, ReaderIdentity(who, None, user, is_standing=True))

    def bind_for(self, source: StatementText, tree: exp.Expr, reader: ReaderIdentity) -> Planned:
        """A query as somebody reads it."""
        return self._bind(source, tree, {}, None, reader)

    def collection(self, planned: Planned, hidden: bool = False) -> Collection:
        """A query as a collection, its columns under their visible names; with those that only order it, if asked."""
        outputs = list(zip(unique_titles(planned.bound.titles), planned.bound.names, strict=True))
        if hidden:
            outputs += [(o.column, o.column) for o in planned.bound.order if o.column not in planned.bound.names]
        names = tuple(title for title, _ in outputs)
        found = planned.collections.get(names)
        if found is None:
            found = self.lowered(planned.plan, planned.joins)
            if names != found.schema.names:
                found = project(found, [(title, col(name)) for title, name in outputs])
            planned.collections[names] = found
        return found

    def select(
        self,
        source: StatementText,
        tree: exp.Expr,
        parameters: Mapping[str, Any],
        wanted: Sequence[types.Type] | None = None,
        given: Given | None = None,
    ) -> pa.Table:
        """The rows of a query as of the last closed epoch, in the order asked for; cast to types, if any are wanted. It may
        read what is given by name.
        """
        core = core_of(self.engine)
        if self.transaction is None and not core.epoch:
            core.commit(WriteSet())  # there is an answer before the first epoch: that of empty tables
        planned = self.bind(source, tree, parameters) if given is None else self._bind(source, tree, parameters, given)
        found = self.collection(planned, hidden=True)
        if wanted is not None:
            visible = planned.bound.visible()
            empty = {at for at in range(len(wanted)) if at < len(visible.columns) and nothing(visible, at)}
            found = cast_columns(found, wanted, empty, source, tree, self.settings.zone)
        table = self.once(found)
        titles = unique_titles(planned.bound.titles)
        shown = dict(zip(planned.bound.names, titles, strict=True))
        found_rows = sorted_rows(table, [(shown.get(o.column, o.column), o) for o in planned.bound.order]).select(
            titles
        )
        return in_zone(self.described_rows(found_rows, planned.declared), self.settings.zone)

    def described_rows(self, rows: pa.Table, declared: tuple[str, ...]) -> pa.Table:
        """Rows whose columns say which type of PostgreSQL they have, if ours does not: as metadata `pg_type`. Oids that are shown
        as names are texts.
        """
        if not any(declared):
            return rows
        contents = CatalogContents(self, self.settings)
        for at, type in enumerate(declared):
            if type in REGISTERED and pa.types.is_integer(rows.schema.field(at).type):
                names = catalog_lookup.names_of_oids(contents, type)
                texts = [None if v is None else names.get(v, str(v)) for v in rows.column(at).to_pylist()]
                rows = rows.set_column(at, rows.schema.field(at).name, pa.array(texts, pa.string()))
            if type and not type.startswith("_pg"):
                field = rows.schema.field(at).with_metadata({"pg_type": type})
                rows = rows.set_column(at, field, rows.column(at))
        return rows

    def reader(self) -> Reads:
        """The tables and views, as one more statement sees them."""
        return Reads(self)

    def lowered(self, plan: Node, joins: str = "auto") -> Collection:
        """A decorrelated plan as a collection; `joins` forces a join strategy."""
        return Lowering(self.unit, joins).lower(plan)

    def titles(self, titles: list[str]) -> list[str]:
        """Visible names as a table can have them."""
        return unique_titles(titles)

    def constant(self, value: Expr, type: types.Type, source: StatementText, tree: exp.Expr) -> tuple[Any, types.Type]:
        """The value of an expression without columns, and its type."""
        found = folded_constant(value)
        if found.op != "lit" and type.kind in ("list", "struct"):  # with a NULL inside, or with nothing
            found = computed(found, closed=True)
        if found.op != "lit":
            raise source.error("a constant is needed here", tree)
        return found.params[1], type

    def described(self, definition: Definition) -> Schema:
        """The columns of a view that is only a definition."""
        planned = self.bind(definition.source, definition.tree, {})
        kinds = [planned.bound.plan.columns[name] for name in planned.bound.names]
        return Schema(dict(zip(unique_titles(definition.aliases), kinds, strict=True)))

    def once(self, collection: Collection) -> pa.Table:
        """The rows of a collection as of the last closed epoch, with the changes of the transaction that is open. What reads
        no table is computed here, and keeps its order.
        """
        allowed = self.allowed()
        return core_of(self.engine).collect(collection, allowed.memory, allowed.rows)

    def allowed(self) -> Allowance:
        """The limits of the user of the caller's session."""
        return self.allowed_to(self.settings.user)

    def allowed_to(self, user: str) -> Allowance:
        """The limits of a user."""
        role = self.access.tables.roles.get(user)
        if role is None:
            return self.allowance
        return Allowance(role.row_limit, role.memory_limit, role.query_limit).within(self.allowance)

    def check_queries(self, allowed: Allowance) -> None:
        """Refuse one standing query more than the user may have."""
        if allowed.queries is None:
            return
        user = self.settings.user
        owned = [o.object for o in self.access.tables.owners.values() if o.owner == user]
        views = sum(object.removeprefix("table ") in self.reads for object in owned)
        allowed.check_queries(user, views + self.shared.followed_by(user))

    def plan(self, text: str, parameters: Mapping[str, Any], given: Given | None = None) -> Collection:
        """One query as a collection. It may read what is given by name."""
        source = StatementText(text)
        statements = list(parser.parse(text))
        if len(statements) != 1 or not isinstance(statements[0], parser.Plain):
            raise source.error("one query is needed", 0)
        if parameters:
            self.remembered.check_used(text, parameters)
        source, tree = statements[0].source, statements[0].tree
        planned = self.bind(source, tree, parameters) if not given else self._bind(source, tree, parameters, given)
        return self.sorted_collection(planned, bool(tree.args.get("limit") or tree.args.get("offset")))

    def install(self, name: str, planned: Planned) -> View:
        """Keep a query up to date under a name."""
        if planned.reads_system:
            raise UnsupportedError(
                f"{name!r} reads the system catalogs, which cannot be kept up to date: CREATE VIEW makes a definition, which is "
                "read anew each time"
            )
        allowed = self.allowed()
        self.check_queries(allowed)
        view = self.engine.install(name, self.sorted_collection(planned), limit=allowed.memory)
        self.reads[name], self.named[name] = planned.reads, planned.named
        if planned.secured:
            self.standing_secured[name] = planned.secured
        return view

    def named_by(self, name: str) -> frozenset[str]:
        """The relations that the text of a view names; none for other relations."""
        found = self.definitions.get(name)
        return self.named.get(name, frozenset()) if found is None else found.named

    def forget_reads(self, name: str) -> None:
        """A view is gone."""
        self.reads.pop(name, None)
        self.named.pop(name, None)

    def sorted_collection(self, planned: Planned, is_limited: bool = True) -> Collection:
        """A query as a collection, with the order that ORDER BY gives its rows. A view of one without a limit has to have the
        columns that it is ordered by; of a materialized view its statement has checked that.
        """
        found = self.collection(planned)
        shown = dict(zip(planned.bound.names, unique_titles(planned.bound.titles), strict=True))
        bound = planned.bound.order
        if not bound:
            return found
        order = [(col(shown.get(o.column, o.column)), o.descending, o.nulls_first) for o in bound]
        return Sorted(self.engine, found.operator, order, self.collection(planned, hidden=True), is_limited)

    # ------------------------------------------------------------------ what queries stand on

    @property
    def unit(self) -> Collection:
        """A collection of exactly one row."""
        if self._unit is None:
            self._unit = core_of(self.engine).constant_input(f"{HIDDEN}unit", Schema(unit=types.Int), [(0,)])
        return self._unit

    @property
    def now(self) -> Table:
        """An input that holds the time, as of each epoch."""
        if self._now is None:
            columns = Schema(clock=types.Int, now=types.Timestamp)
            core = core_of(self.engine)
            # there is a time as of the last closed epoch, for queries to be answered at
            moment = self._told = self.clock()
            self._now = core.transient_input(f"{HIDDEN}now", columns, ["clock"], "upsert", [(0, moment)])
            core_of(self._now).is_single = True
            core.hooks.before_commit.append(self.tick)
        return self._now

    def tick(self, writes: WriteSet) -> None:
        """Let the time pass, for queries that mention it."""
        if self._now is not None:
            moment = self.clock()
            if moment != self._told:
                self._told = moment
                core_of(self._now).write([(0, moment)], None, 1, "insert", writes)

    # ------------------------------------------------------------------ changes

    def write(self, table: Table, new: pa.Table | None, old: pa.Table | None) -> int | None:
        """Take rows from a table and add others, and close an epoch, which is returned, unless a transaction is open."""
        if core_of(table).is_stream and old is not None:
            raise ConflictError(f"table {table.name!r} is a stream: rows cannot be changed or deleted")
        if new is not None and old is not None:
            check_moved_keys(core_of(table), old, new)
        return transactions.write(self, table, transactions.writes_of(new, old))

    # ------------------------------------------------------------------ names

    def known(self) -> list[str]:
        """The names of everything that can be read."""
        found = [*self.engine.tables, *self.engine.views, *self.definitions]
        return [name for name in found if not name.startswith(HIDDEN)]

    def graphs(self) -> list[GraphDefinition]:
        """The property graphs."""
        return [found for found in self.definitions.values() if isinstance(found, GraphDefinition)]

    def visible(self) -> list[str]:
        """The names of what the caller's user is told of."""
        who = self.access.who()
        return [name for name in self.known() if self.access.knows(who, name)]

    def visible_schemas(self) -> list[str]:
        """The schemas that the caller's user is told of: those it has a privilege on, and those of what it is told of."""
        who, shown = self.access.who(), {DEFAULT, *SYSTEM, *implied_schemas(self.visible())}
        return [name for name in self.schema_names() if name in shown or self.access.knows_schema(who, name)]

    def readers(self, name: str) -> list[str]:
        """The definitions, views and indexes that read something."""
        found = [d.name for d in self.definitions.values() if name in d.reads]
        found += [view.name for view in self.view_texts if not view.dropped and name in self.reads.get(view.name, ())]
        found += [index.name for index in self.indexes.values() if index.table == name]
        found += [p.name for p in self.prepared.values() if name in p.reads]
        named = {f"{HIDDEN}prepared_{p.name}" for p in self.prepared.values()}
        found += [
            "a subscription" for q in self.shared.all() if name in q.reads and q.followers and q.view.name not in named
        ]
        return list(dict.fromkeys(found))

    def schema_names(self) -> list[str]:
        """Every schema: those that were created, those that names of tables and views say, and those of the system."""
        return sorted({DEFAULT, *SYSTEM, *self.schemas, *implied_schemas(self.known())})

    def relation_named(self, written: str) -> Table | View | Definition | None:
        """The relation that a statement means by a name, in any case: without a schema, the first found in the search path."""
        schema, dot, name = written.partition(".")
        if dot:
            return self.relation_stored(stored_name(schema, name)) or self.relation_stored(written)
        for schema in self.settings.search_path:
            found = self.relation_stored(stored_name(schema, written))
            if found is not None:
                return found
        return None

    def relation_stored(self, name: str) -> Table | View | Definition | None:
        """The relation that the engine has under a name, in any case."""
        core = core_of(self.engine)
        if name in core.system.names():
            return core.system.table(name)
        if name in core.inputs or name in core.views:
            return (core.inputs if name in core.inputs else core.views)[name].facade
        if name in self.definitions:
            return self.definitions[name]
        lowered = [known for known in self.known() if known.lower() == name.lower()]
        return self.relation_stored(lowered[0]) if len(lowered) == 1 and lowered[0] != name else None


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
