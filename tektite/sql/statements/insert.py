"""INSERT: new rows, and what happens to those whose key is there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.errors import NotFoundError, UnsupportedError
from tektite.sql.bind.functions import sql_name
from tektite.sql.bind.scope import folded
from tektite.sql.parse.internal_tables import internal_table
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied
from tektite.sql.statements.result import Result
from tektite.sql.statements.table_writes import Writing, check_write, default_tree, is_default
from tektite.sql.statements.update import assignments, changed
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

EXCLUDED = "excluded"
"""The name in ON CONFLICT of the rows that were to be inserted."""


def insert(runner: StatementRunner, source: StatementText, tree: exp.Insert, parameters: Mapping[str, Any]) -> Result:
    """INSERT INTO table (columns) VALUES ... or a query [ON CONFLICT ...] [RETURNING ...]"""
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    writing = Writing.of(runner, source, tree, tree.this if schema is None else schema.this, parameters, "INSERT")
    given = writing.names if schema is None else [folded(c) for c in schema.expressions]
    for at, column in enumerate(given):
        if column not in writing.names:
            message = f"table {writing.table.name!r} has no column {column!r}: {nearest(column, writing.names)}"
            raise source.error(message, tree.this.expressions[at], NotFoundError, condition="undefined-column")
        if column in given[:at]:
            raise source.error(
                f"column {column!r} is named twice", tree.this.expressions[at], condition="duplicate-column"
            )
    rows = new_rows(writing, given)
    conflict, alternative = tree.args.get("conflict"), tree.args.get("alternative")
    if conflict is None and alternative is None:
        return writing.write("INSERT 0", rows.num_rows, rows, None)
    if core_of(writing.table).unique is None:
        message = f"ON CONFLICT needs a PRIMARY KEY, and table {writing.table.name!r} has none"
        raise source.error(message, source.where("CONFLICT" if conflict is not None else "OR"))
    return put(writing, rows, given, conflict, alternative)


def new_rows(writing: Writing, given: list[str]) -> pa.Table:
    """The rows that the statement says. Those of VALUES keep their order, in which rows of one key follow each other."""
    query = writing.tree.expression
    schema = writing.table.schema
    wanted = [schema.types[schema.index(column)] for column in given]
    if query is None:
        raise writing.source.error("INSERT without VALUES or a query is not supported", None, UnsupportedError)
    if isinstance(query, exp.Values):
        for row in query.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            for column, cell in zip(given, cells, strict=False):
                if is_default(cell):
                    cell.replace(default_tree(writing.table, column))
    read_alike(query, wanted)
    return writing.arranged(writing.select(query, wanted, what="INSERT INTO"), given)


def read_alike(rows: exp.Expr, wanted: list[Type]) -> None:
    """Texts among values of another type, such as '2024-01-01' below a date or 'nan' below a number, say a value of the
    column's type: written as casts, they do not decide on the type of their column.
    """
    if not isinstance(rows, exp.Values):
        return
    tuples = [row.expressions for row in rows.expressions if isinstance(row, exp.Tuple)]
    for at, type in enumerate(wanted):
        cells = [row[at] for row in tuples if at < len(row)]
        texts = [cell for cell in cells if isinstance(cell, exp.Literal) and cell.is_string]
        others = sum(not isinstance(cell, exp.Null) for cell in cells) - len(texts)
        if texts and others and type.kind != "string":
            for cell in texts:
                cell.replace(exp.Cast(this=cell.copy(), to=exp.DataType.build(sql_name(type), dialect="duckdb")))


# ---------------------------------------------------------------------- ON CONFLICT


def put(
    writing: Writing, rows: pa.Table, given: list[str], conflict: exp.Expr | None, alternative: str | None
) -> Result:
    """Insert the rows whose keys are free, and let the others be or change the rows that have theirs. OR REPLACE changes the
    columns that are given. Policies have to allow all given rows to be inserted, and those that change others to be updated.
    """
    source, table = writing.source, writing.table
    key = [table.schema.names[column] for column in core_of(table).unique or ()]
    changes: dict[str, exp.Expr] | None = None
    where = None
    if conflict is not None:
        check_target(writing, conflict, key)
        if conflict.args["action"].name.upper() == "DO UPDATE":
            changes = assignments(writing, [of_new_row(writing, part) for part in conflict.expressions])
            where = conflict.args.get("where")
            where = None if where is None else of_new_row(writing, where)
    elif str(alternative).upper() == "REPLACE":
        changes = {name: writing.column(f"#{name}", EXCLUDED) for name in given if name not in key}
    elif str(alternative).upper() != "IGNORE":
        raise source.error(f"INSERT OR {alternative} is not supported", source.where("OR"), UnsupportedError)
    if changes:
        check_write(writing.runner, table, "UPDATE")
    checked = [("INSERT", rows)]
    rows = first_of_each_key(writing, rows, "DO UPDATE" if conflict is not None and changes is not None else "")
    excluded = {EXCLUDED: rows.rename_columns([f"#{name}" for name in writing.names])}
    pairs = [exp.EQ(this=writing.column(name), expression=writing.column(f"#{name}", EXCLUDED)) for name in key]
    same = exp.and_(*pairs, copy=False)
    taken = exp.Select(
        expressions=[exp.Literal.number(1)], from_=exp.From(this=writing.every()), where=exp.Where(this=same)
    )
    query = exp.Select(
        expressions=[writing.column(f"#{name}", EXCLUDED) for name in writing.names],
        from_=exp.From(this=internal_table(EXCLUDED, EXCLUDED)),
        where=exp.Where(this=exp.Not(this=exp.Exists(this=taken))),
    )
    new = writing.arranged(writing.select(query, given=excluded), writing.names)
    old = None
    if changes:
        join = exp.Join(this=internal_table(EXCLUDED, EXCLUDED), on=same.copy(), kind="INNER")
        old, updated = changed(writing, changes, exp.From(this=writing.own()), [join], where, excluded)
        new = pa.concat_tables([new, updated])
        checked.append(("UPDATE", updated))
    return writing.write("INSERT 0", new.num_rows, new, old, checked)


def check_target(writing: Writing, conflict: exp.Expr, key: list[str]) -> None:
    """Check that ON CONFLICT names the primary key."""
    if conflict.args.get("duplicate") or conflict.args.get("constraint") or conflict.args.get("index_predicate"):
        message = "ON CONFLICT of anything but the columns of the PRIMARY KEY is not supported"
        raise writing.source.error(message, writing.source.where("CONFLICT"), UnsupportedError)
    nodes = conflict.args.get("conflict_keys") or []
    named = [folded(getattr(node.this, "this", node.this) if isinstance(node, exp.Ordered) else node) for node in nodes]
    if nodes and set(named) != set(key):
        message = f"ON CONFLICT ({', '.join(named)}): the key of table {writing.table.name!r} is ({', '.join(key)})"
        raise writing.source.error(message, nodes[0])


def of_new_row(writing: Writing, tree: exp.Expr) -> exp.Expr:
    """An expression in which excluded.column means the row that was to be inserted, and a column alone the one that is there."""
    found = copied(tree)
    for column in found.find_all(exp.Column):
        if folded(column.args.get("table")).lower() == EXCLUDED:
            name = folded(column.this)
            if name not in writing.names:
                message = f"there is no column {name!r} in 'excluded': {nearest(name, writing.names)}"
                raise writing.source.error(message, column, NotFoundError, condition="undefined-column")
            column.this.set("this", f"#{name}")
            column.this.set("quoted", True)
    return found


def first_of_each_key(writing: Writing, rows: pa.Table, updating: str) -> pa.Table:
    """The rows without those whose key an earlier one has; where that would update a row twice, it is refused."""
    keys = writing.words(rows, core_of(writing.table).unique)
    _, first = np.unique(keys, axis=1, return_index=True)
    if len(first) == rows.num_rows:
        return rows
    if updating:
        message = f"ON CONFLICT {updating} would change a row twice: two of the rows given have the same key"
        raise writing.source.error(message, writing.source.where("CONFLICT"), condition="cardinality-violation")
    if writing.tree.args.get("alternative") == "REPLACE":
        _, last = np.unique(keys[:, ::-1], axis=1, return_index=True)
        first = rows.num_rows - 1 - last
    return rows.take(np.sort(first))
