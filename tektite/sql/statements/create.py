"""Tables, views and indexes: CREATE and DROP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from tektite.client_protocol import Mode
from tektite.engine.collect import drop_if_there
from tektite.engine.core import core_of
from tektite.engine.declarations import MODES, set_defaults, table_description
from tektite.engine.declarations import create_table as declare_table
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, UnsupportedError
from tektite.plan.algebra import Read, count_uses
from tektite.query.match import STRATEGIES
from tektite.sql.access.access_control import DATABASE_OBJECT, schema_object, table_object
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.definitions import Definition, GraphDefinition
from tektite.sql.bind.functions import column_type
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import DEFAULT, SYSTEM, same_schema, schema_said, stored_name, written_name
from tektite.sql.parse.instead import CREATED, MODIFIERS, instead
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.property_graphs import KIND
from tektite.sql.parse.read_arguments import not_needed, refuse_unread, written
from tektite.sql.statements.constraints import TableConstraints
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore
    from tektite.sql.statements.runner import StatementRunner

MODIFIED = re.compile(
    r"\bCREATE\s+(?:OR\s+REPLACE\s+)?((?:\w+\s+)*\w+)\s+(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?\Z", re.IGNORECASE
)
"""The head of a statement that says more than CREATE TABLE or CREATE VIEW, up to the name."""


@dataclass
class NamedIndex:
    """A held arrangement: a view that does nothing but read it."""

    name: str
    table: str
    columns: tuple[str, ...]
    view: View


def create(runner: StatementRunner, source: StatementText, tree: exp.Create, parameters: Mapping[str, Any]) -> Result:
    """CREATE TABLE, VIEW, MATERIALIZED VIEW, INDEX, SCHEMA or PROPERTY GRAPH."""
    kind = (tree.args.get("kind") or "").upper()
    refuse_modifiers(source, tree, kind)
    if kind == "TABLE":
        return create_table(runner, source, tree, parameters)
    if kind == "VIEW":
        return create_view(runner, source, tree, parameters)
    if kind == "INDEX":
        return create_index(runner, source, tree)
    if kind == "SCHEMA":
        return create_schema(runner, source, tree)
    if kind == KIND:
        from tektite.sql.statements.property_graphs import create_property_graph  # which makes names as this file does

        return create_property_graph(runner, source, tree)
    raise source.error(f"CREATE {kind} is not supported{instead(CREATED, kind)}", source.where(kind), UnsupportedError)


def refuse_modifiers(source: StatementText, tree: exp.Create, kind: str) -> None:
    """Words between CREATE and what is created, such as TEMPORARY, are refused by name where they stand."""
    properties = tree.args.get("properties")
    given = [type(item) for item in (properties.expressions if properties else ())]
    others = [item for item in given if item not in (exp.Property, exp.MaterializedProperty)]
    if not others:
        return
    found = MODIFIED.search(source.text, source.start, source.place(tree))
    if found is None and instead(CREATED, kind):  # what stands behind its name, as RETURNS does
        raise source.error(
            f"CREATE {kind} is not supported{instead(CREATED, kind)}", source.where(kind), UnsupportedError
        )
    said = others[0].__name__.removesuffix("Property") if found is None else found.group(1)
    at = tree if found is None else found.start(1)
    known = instead(CREATED, kind) or instead(MODIFIERS, said.upper())
    raise source.error(f"CREATE {said.upper()} {kind} is not supported{known}", at, UnsupportedError)


def new_name(runner: StatementRunner, source: StatementText, tree: exp.Create, node: exp.Expr) -> str | None:
    """A name that is free, as the engine will know it; None if it is taken and the statement says IF NOT EXISTS."""
    may_exist = tree.args.get("exists")
    name = made_name(runner, source, node)
    if folded(node.this if isinstance(node, exp.Table) else node).startswith("__"):
        raise source.error(f"names that begin with __ are reserved: {name!r}", node)
    if runner.relation_stored(name) is None and name not in runner.indexes:
        return name
    stored = core_of(runner.engine).storage
    if stored is not None and name in stored.unclaimed and (tree.args.get("kind") or "").upper() == "TABLE":
        return name  # a table that was stored is declared again: the engine compares both
    if may_exist:
        return None
    kind = kind_of(runner, name)
    is_same = kind != "index" and (tree.args.get("kind") or "").upper() in ("TABLE", "VIEW")
    again = "; IF NOT EXISTS or OR REPLACE lets a statement be run again" if is_same else ""
    raise source.error(
        f"there is {'an' if kind == 'index' else 'a'} {kind} named {name!r} already{again}",
        node,
        ConflictError,
        condition="duplicate-table",
    )


def made_name(runner: StatementRunner, source: StatementText, node: exp.Expr) -> str:
    """The engine's name for a new object: in the schema that is written, or the first of the search path."""
    if not isinstance(node, exp.Table):
        return folded(node)
    said = schema_said(source, node)
    schema = said or next(iter(runner.settings.search_path), DEFAULT)
    if schema in SYSTEM:
        raise source.error(f"schema {schema!r} is the system's: nothing can be created in it", node, ConflictError)
    if schema not in runner.schema_names():
        hint = nearest(schema, runner.visible_schemas())
        raise source.error(
            f"there is no schema {schema!r}: CREATE SCHEMA makes one; {hint}",
            node,
            NotFoundError,
            condition="undefined-schema",
        )
    runner.access.check_create(runner.access.who(), schema)
    return stored_name(schema, folded(node.this))


def create_schema(runner: StatementRunner, source: StatementText, tree: exp.Create) -> Result:
    """CREATE SCHEMA name: names of tables and views can begin with it."""
    node = tree.this
    name = same_schema(folded(node.args.get("db")))
    if not name or "." in name or name.startswith("__"):
        raise source.error("a schema has a name without dots", node)
    may_exist = tree.args.get("exists")
    if name in runner.schema_names():
        if not may_exist:
            raise source.error(f"there is a schema {name!r} already", node, ConflictError, condition="duplicate-schema")
        not_needed(tree)
    refuse_unread(source, tree)
    check_creates_schemas(runner)
    runner.schemas.add(name)
    runner.access.created(schema_object(name))
    return Result("CREATE SCHEMA")


def check_creates_schemas(runner: StatementRunner) -> None:
    """Refuse to let somebody make schemas who may not."""
    access = runner.access
    who = access.who()
    if who is not None and not (who in access.tables.roles and access.role(who).creates_schemas):
        access.check(who, "CREATE", DATABASE_OBJECT)


def kind_of(runner: StatementRunner, name: str) -> str:
    """The kind of object that a name of the engine stands for."""
    found = runner.relation_stored(name)
    if isinstance(found, GraphDefinition):
        return KIND.lower()
    return "table" if isinstance(found, Table) else "index" if name in runner.indexes else "view"


# ---------------------------------------------------------------------- tables


def create_table(
    runner: StatementRunner, source: StatementText, tree: exp.Create, parameters: Mapping[str, Any]
) -> Result:
    """CREATE TABLE name (columns, PRIMARY KEY ...) WITH (mode = ...)."""
    if tree.args.get("expression") is not None:
        return create_table_as(runner, source, tree, parameters)
    if not isinstance(tree.this, exp.Schema):
        raise source.error("CREATE TABLE needs columns, as in (id int, name varchar)", tree, UnsupportedError)
    replaced = replaceable(runner, source, tree, tree.this.this, "table")
    name = replaced or new_name(runner, source, tree, tree.this.this)
    if name is None:
        not_needed(tree)
        return Result("CREATE TABLE")
    if not tree.this.expressions:
        raise source.error(f"table {name!r} needs at least one column", tree)
    mode = mode_of(source, tree)
    columns: dict[str, Any] = {}
    for item in tree.this.expressions:
        if isinstance(item, exp.ColumnDef):
            column = folded(item.this)
            if column in columns:
                raise source.error(f"column {column!r} is declared twice", item, condition="duplicate-column")
            if item.kind is None:
                raise source.error(f"column {column!r} needs a type", item)
            columns[column] = column_type(source, item.kind)
    said = TableConstraints(runner, source, name, columns, mode == "stream")
    checks: list[tuple[exp.Expr, str]] = []
    for item in tree.this.expressions:
        if isinstance(item, exp.ColumnDef):
            checks += said.of_column(item, folded(item.this))
        else:
            said.of_table(item)
    for check, wish in checks:
        said.add_check(check, wish)
    key = said.key
    if mode == "upsert" and not key:
        raise source.error("mode upsert needs a PRIMARY KEY", source.where("upsert"))
    refuse_unread(source, tree)
    take_away(runner, replaced)
    declared = table_description(name, columns, mode, key, (), said.required, (), True)
    declared = replace(declared, checks=tuple(said.checks), uniques=tuple(said.uniques))
    with runner.access.creating(table_object(name), replaced is None):
        made = declare_table(core_of(runner.engine), name, declared, "error")
    set_defaults(core_of(made), said.defaults)
    return Result("CREATE TABLE")


def create_table_as(
    runner: StatementRunner, source: StatementText, tree: exp.Create, parameters: Mapping[str, Any]
) -> Result:
    """CREATE TABLE name [(columns)] AS query: a table with the rows that the query has now."""
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    node = tree.this if schema is None else schema.this
    replaced = replaceable(runner, source, tree, node, "table")
    name = replaced or new_name(runner, source, tree, node)
    if name is None:
        not_needed(tree)
        return Result("CREATE TABLE")
    aliases = []
    for item in schema.expressions if schema is not None else ():
        if isinstance(item, exp.ColumnDef) and (item.kind is not None or item.args.get("constraints")):
            raise source.error("CREATE TABLE AS takes names of columns, not types", item)
        aliases.append(folded(item.this if isinstance(item, exp.ColumnDef) else item))
    mode = mode_of(source, tree)
    if mode == "upsert":
        raise source.error(
            "mode upsert needs a PRIMARY KEY, which CREATE TABLE AS does not have", source.where("upsert")
        )
    rows = runner.select(source, tree.expression, parameters)
    if len(aliases) > rows.num_columns:
        raise source.error(f"{len(aliases)} names for {rows.num_columns} columns", schema)
    rows = rows.rename_columns(runner.titles([*aliases, *rows.column_names[len(aliases) :]]))
    refuse_unread(source, tree)
    core = core_of(runner.engine)
    if runner.transaction is None:
        core.check_no_callback()
        if core.storage is not None:
            core.storage.writer.admit()
    take_away(runner, replaced)
    try:
        with runner.access.creating(table_object(name), replaced is None):
            made = runner.engine.create_table(name, rows.schema, mode=mode)
        # The rows are those of the moment at which the query was answered, whatever has been committed since.
        core.sessions.current().statement_began = core.epoch
        return Result(f"CREATE TABLE {rows.num_rows}", time=runner.write(made, rows, None))
    except BaseException:  # a table without its rows is not what was asked for
        if name in core.inputs:
            take_away(runner, name)
            runner.access.dropped([table_object(name)])
        raise


def mode_of(source: StatementText, tree: exp.Create) -> Mode:
    """WITH (mode = ...), which was once called semantics. How full pages are is of no matter: there are none."""
    found = "bag"
    properties = tree.args.get("properties")
    for item in properties.expressions if properties is not None else ():
        name = item.name.lower() if isinstance(item, exp.Property) else item.key
        if name == "fillfactor" and isinstance(item, exp.Property):  # as pgbench says it
            text = item.args["value"].this
            if not str(text).isdigit():
                raise source.error(f"fillfactor is a number of per cent, not {text!r}", item)
            continue
        if name not in ("mode", "semantics"):
            raise source.error(
                f"option {name!r} of CREATE TABLE is not supported; there is: mode",
                source.where(name),
                UnsupportedError,
            )
        found = item.args["value"].name.lower()
        if found not in MODES:
            raise source.error(f"mode is one of {', '.join(MODES)}, not {found!r}", item.args["value"])
    return cast(Mode, found)


# ---------------------------------------------------------------------- views


def create_view(
    runner: StatementRunner, source: StatementText, tree: exp.Create, parameters: Mapping[str, Any]
) -> Result:
    """CREATE VIEW: a definition; CREATE MATERIALIZED VIEW: kept up to date."""
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    node = tree.this if schema is None else schema.this
    properties = tree.args.get("properties")
    materialized = any(isinstance(p, exp.MaterializedProperty) for p in (properties.expressions if properties else ()))
    what = "CREATE MATERIALIZED VIEW" if materialized else "CREATE VIEW"
    replaced = replaceable(runner, source, tree, node, "materialized view" if materialized else "view")
    query = tree.args.get("expression")
    if query is None:
        raise source.error(f"{what} needs AS and a query", tree)
    name = replaced or new_name(runner, source, tree, node)
    if name is None:
        found = runner.relation_stored(made_name(runner, source, node))
        not_needed(tree)
        return Result(what, view=found if isinstance(found, View) else None)
    aliases = [folded(c.this if isinstance(c, exp.ColumnDef) else c) for c in schema.expressions] if schema else []
    joins, keeps_plan = view_options(source, tree)
    bind = runner.bind_standing if materialized else runner.bind
    planned = bind(source, query, parameters).joined_by(joins)
    if len(aliases) > len(planned.bound.titles):
        raise source.error(f"{len(aliases)} names for {len(planned.bound.titles)} columns", tree)
    planned.bound.titles = runner.titles([*aliases, *planned.bound.titles[len(aliases) :]])
    if replaced is not None and replaced in planned.reads:
        raise source.error(f"view {replaced!r} would be defined by itself", node, ConflictError)
    refuse_unread(source, tree)
    if materialized:
        refuse_lost_order(source, query, planned.bound)
    if not materialized:
        kinds = tuple(planned.bound.plan.columns[column] for column in planned.bound.names)
        runner.definitions[name] = Definition(
            name, query, planned.bound.titles, source, planned.reads, planned.named, kinds
        )
        runner.access.created(table_object(name), replaced is None)
        return Result(what)
    take_away(runner, replaced)
    view = runner.install(name, planned)
    if keeps_plan:
        core_of(view).engine.replanner.fix_plan(core_of(view))
    runner.access.created(table_object(name), replaced is None)
    runner.view_texts[core_of(view)] = written(query)
    return Result(what, view=view)


def refuse_lost_order(source: StatementText, query: exp.Expr, bound: Bound) -> None:
    """Refuse a view that is to be in the order of something that is no column of it. With a LIMIT or DISTINCT ON the order says
    which rows it has; those that read it order them as they like.
    """
    order, distinct = query.args.get("order"), query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None  # of a UNION it is a truth value
    choosing = [query.args.get("limit"), query.args.get("offset"), on]
    if order is None or any(clause is not None for clause in choosing):
        return
    for ordered, tree in zip(bound.order, order.expressions, strict=False):
        if ordered.column not in bound.names:
            message = (
                "ORDER BY of a materialized view takes its columns: add this one to SELECT, or order what you read"
            )
            raise source.error(message, tree)


SWITCH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
"""Both positions of a switch, as PostgreSQL writes them."""


def view_options(source: StatementText, tree: exp.Create) -> tuple[str, bool]:
    """WITH (joins = ..., replan = ...) of a materialised view: the join strategy that is forced, and whether the view keeps its
    plan, whatever becomes of the sizes of its tables.
    """
    joins, keeps_plan = "auto", False
    properties = tree.args.get("properties")
    given = properties.expressions if properties is not None else []
    materialized = any(isinstance(item, exp.MaterializedProperty) for item in given)
    for item in given:
        if isinstance(item, exp.MaterializedProperty):
            continue
        name = item.name.lower() if isinstance(item, exp.Property) else item.key
        if name not in ("joins", "replan") or not materialized:
            raise source.error(
                f"option {name!r} of CREATE VIEW is not supported; a materialized view has: joins, replan",
                source.where(name),
                UnsupportedError,
            )
        value = item.args["value"]
        found = value.name.lower() or str(value).lower()
        if name == "replan":
            if found not in SWITCH:
                raise source.error(f"replan is on or off, not {found!r}", value)
            keeps_plan = not SWITCH[found]
        elif found not in STRATEGIES:
            raise source.error(f"joins is one of {', '.join(STRATEGIES)}, not {found!r}", value)
        else:
            joins = found
    return joins, keeps_plan


def replaceable(
    runner: StatementRunner, source: StatementText, tree: exp.Create, node: exp.Expr, kind: str
) -> str | None:
    """The name of what OR REPLACE replaces, which is of the same kind and which nobody reads; None if there is no such thing."""
    found = runner.relation_stored(made_name(runner, source, node)) if tree.args.get("replace") else None
    if found is None or found.name.startswith("__"):
        return None
    runner.access.check_owner(runner.access.who(), table_object(found.name))
    other = {Table: "table", View: "materialized view", GraphDefinition: KIND.lower()}.get(type(found), "view")
    if other != kind:
        raise source.error(f"{found.name!r} is a {other}: DROP it first", source.where("REPLACE"), ConflictError)
    if isinstance(found, Table) and runner.transaction is not None and runner.transaction.changes(found):
        message = f"cannot replace table {found.name!r}: the open transaction has changed it; COMMIT or ROLLBACK first"
        raise source.error(message, node, ConflictError)
    readers = readers_left(runner, found.name)
    if readers:
        shown = ", ".join(repr(reader) for reader in readers)
        raise source.error(
            f"cannot replace {kind} {found.name!r}: {shown} read{'s' * (len(readers) == 1)} it",
            node,
            ConflictError,
            condition="dependent-objects-still-exist",
        )
    return found.name


def take_away(runner: StatementRunner, name: str | None) -> None:
    """Drop the table or materialised view that another one replaces."""
    if name is not None and name not in runner.definitions:
        drop_relation(runner, name)


def drop_relation(runner: StatementRunner, name: str) -> None:
    """Drop a table or a materialized view, which nothing reads, and its indexes."""
    for index in indexes_of(runner, name):
        remove_index(runner, index)
    runner.remembered.forget(name)
    runner.engine.drop(name)
    runner.forget_reads(name)


def readers_left(runner: StatementRunner, name: str, also_of_programs: bool = False) -> list[str]:
    """All that reads something directly, but for its indexes, which go with it. Views of programs are among it if something goes
    before it; else it is refused when it is dropped.
    """
    found, own = runner.relation_stored(name), indexes_of(runner, name)
    readers = [reader for reader in runner.readers(name) if reader not in own]
    if (own or also_of_programs) and isinstance(found, Table | View):
        views = [view for view in core_of(runner.engine).views.values() if not view.name.startswith("__")]
        readers += [view.name for view in views if view.name not in readers and view_reads(view, found)]
    return readers


def view_reads(view: ViewCore, source: Table | View) -> bool:
    """Whether a view's plan reads a table or another view itself."""
    read = core_of(source)
    return any(isinstance(found, Read) and found.readable is read for found in count_uses(view.definition))


# ---------------------------------------------------------------------- indexes


def create_index(runner: StatementRunner, source: StatementText, tree: exp.Create) -> Result:
    """CREATE INDEX name ON table (columns): an arrangement that is held until the index is dropped."""
    index = tree.this
    if tree.args.get("unique"):
        message = "CREATE UNIQUE INDEX is not supported: ALTER TABLE ... ADD UNIQUE (...) says it, and keeps an index"
        raise source.error(message, source.where("UNIQUE"), UnsupportedError)
    if index.args["params"] is not None and index.args["params"].args.get("where"):
        raise source.error("an index of some rows (WHERE) is not supported", index.args["params"], UnsupportedError)
    table_name = written_name(source, index.args["table"])
    found = runner.relation_named(table_name)
    if not isinstance(found, Table | View) or found.name.startswith("__"):
        hint = nearest(table_name, runner.visible())
        raise source.error(
            f"there is no table or materialized view {table_name!r}: {hint}",
            index.args["table"],
            NotFoundError,
            condition="undefined-table",
        )
    if found.name in core_of(runner.engine).system.names():
        raise source.error(f"{found.name!r} is a system relation: no index of it is kept", tree, ConflictError)
    if core_of(found).is_stream:
        raise source.error(
            f"{found.name!r} is a stream: it keeps no history that could be indexed", tree, ConflictError
        )
    runner.access.check_owner(runner.access.who(), table_object(found.name))
    columns = []
    for part in index.args["params"].args.get("columns") or ():
        if not isinstance(part, exp.Ordered) or not isinstance(part.this, exp.Column):
            raise source.error("an index of anything but columns is not supported", part, UnsupportedError)
        column = folded(part.this.this)
        if column not in found.schema.names:
            message = f"{found.name!r} has no column {column!r}: {nearest(column, found.schema.names)}"
            raise source.error(message, part, NotFoundError, condition="undefined-column")
        if column in columns:
            raise source.error(f"an index names column {column!r} twice", part)
        columns.append(column)
    if not columns:
        raise source.error(f"CREATE INDEX needs columns, as in ON {found.name} (a, b)", tree)
    wish = index.this if index.this is not None else exp.to_identifier(f"{found.name}_{'_'.join(columns)}_index")
    name = new_name(runner, source, tree, wish)
    refuse_unread(source, tree)
    if name is not None:
        try:
            view = runner.engine.install(f"__index_{name}", found.index_by(columns), order_by=columns)
            runner.indexes[name] = NamedIndex(name, found.name, tuple(columns), view)
        except BaseException:  # a view that has no name for SQL could not be dropped
            if name not in runner.indexes:
                drop_if_there(core_of(runner.engine), f"__index_{name}")
            raise
    return Result("CREATE INDEX")


def indexes_of(runner: StatementRunner, name: str) -> list[str]:
    """The indexes of a table or a materialized view."""
    return [index.name for index in runner.indexes.values() if index.table == name]


def remove_index(runner: StatementRunner, name: str) -> None:
    """DROP INDEX."""
    drop_if_there(core_of(runner.engine), runner.indexes[name].view.name)
    del runner.indexes[name]
