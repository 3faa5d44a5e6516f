"""Statements that change tables: INSERT, UPDATE, DELETE, and the transactions around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from tektite.errors import ConflictError, IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.inputs import Input
from tektite.sql.result import Result
from tektite.sql.scope import folded
from tektite.sql.text import Source, nearest

if TYPE_CHECKING:
    from tektite.sql.session import Session


def target(session: Session, source: Source, node: exp.Table) -> Input:
    """The table that a statement changes."""
    name = folded(node.this)
    found = session.readable(name)
    if isinstance(found, Input) and not found.name.startswith("__"):
        return found
    if found is not None:
        raise source.error(f"{name!r} is a view: only tables can be changed", node, ConflictError)
    known = [n for n in session.known() if isinstance(session.readable(n), Input)]
    raise source.error(f"there is no table {name!r}: {nearest(name, known)}", node, NotFoundError)


def insert(session: Session, source: Source, tree: exp.Insert, parameters: Mapping[str, Any]) -> Result:
    """INSERT INTO table (columns) VALUES ... or a query."""
    for clause in ("conflict", "returning", "overwrite", "default", "by_name", "alternative"):
        if tree.args.get(clause):
            raise source.error(f"INSERT with {clause.upper()} is not supported", tree, UnsupportedError)
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    found = target(session, source, tree.this if schema is None else schema.this)
    names = list(found.schema.names)
    given = names if schema is None else [folded(c) for c in schema.expressions]
    for column in given:
        if column not in names:
            message = f"table {found.name!r} has no column {column!r}: {nearest(column, names)}"
            raise source.error(message, tree.this, NotFoundError)
        if given.count(column) > 1:
            raise source.error(f"column {column!r} is named twice", tree.this)
    wanted = [found.schema.types[found.schema.index(column)] for column in given]
    rows = session.select(source, tree.expression, parameters, wanted)
    table = arranged(found, rows, given)
    session.write(found, table, None)
    return Result(f"INSERT 0 {table.num_rows}")


def arranged(found: Input, rows: pa.Table, given: list[str]) -> pa.Table:
    """Rows with the table's columns and types; columns that are not given are NULL."""
    arrays = []
    for field in found.schema.arrow:
        if field.name not in given:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(given.index(field.name))
        try:
            arrays.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise IncorrectError(f"column {field.name!r} of {found.name!r} is {field.type}: {error}") from None
        except pa.ArrowNotImplementedError:
            message = f"column {field.name!r} of {found.name!r} is {field.type}, not {column.type}: cast it"
            raise IncorrectError(message) from None
    return pa.Table.from_arrays(arrays, schema=found.schema.arrow)


def delete(session: Session, source: Source, tree: exp.Delete, parameters: Mapping[str, Any]) -> Result:
    """DELETE FROM table WHERE ..."""
    for clause in ("using", "returning", "tables"):
        if tree.args.get(clause):
            raise source.error(f"DELETE with {clause.upper()} is not supported", tree, UnsupportedError)
    found = target(session, source, tree.this)
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree.this.copy()), where=tree.args.get("where"))
    rows = session.select(source, query, parameters)
    session.write(found, None, rows)
    return Result(f"DELETE {rows.num_rows}")


def update(session: Session, source: Source, tree: exp.Update, parameters: Mapping[str, Any]) -> Result:
    """UPDATE table SET column = expression WHERE ..."""
    for clause in ("from_", "returning"):
        if tree.args.get(clause):
            raise source.error(f"UPDATE with {clause.upper().strip('_')} is not supported", tree, UnsupportedError)
    found = target(session, source, tree.this)
    names = list(found.schema.names)
    changes: dict[str, exp.Expr] = {}
    for assignment in tree.expressions:
        column = folded(assignment.this.this)
        if column not in names:
            message = f"table {found.name!r} has no column {column!r}: {nearest(column, names)}"
            raise source.error(message, assignment, NotFoundError)
        changes[column] = assignment.expression
    outputs: list[exp.Expr] = [exp.column(n, quoted=True) for n in names]
    outputs += [exp.alias_(value, f"new_{column}", quoted=True) for column, value in changes.items()]
    query = exp.Select(expressions=outputs, from_=exp.From(this=tree.this.copy()), where=tree.args.get("where"))
    kinds = [*found.schema.types, *(found.schema.types[found.schema.index(column)] for column in changes)]
    rows = session.select(source, query, parameters, kinds)
    old = rows.select(list(range(len(names))))
    new = dict(zip(names, old.columns, strict=True))
    for at, column in enumerate(changes):
        new[column] = rows.column(len(names) + at)
    table = arranged(found, pa.table(list(new.values()), names=names), names)
    session.write(found, table, old)
    return Result(f"UPDATE {table.num_rows}")


# ---------------------------------------------------------------------- transactions


def begin(session: Session, source: Source, tree: exp.Transaction, parameters: Mapping[str, Any]) -> Result:
    """BEGIN: what follows closes no epoch until COMMIT."""
    if session.transaction:
        raise source.error("a transaction is open already", tree, ConflictError)
    session.transaction = True
    return Result("BEGIN")


def commit(session: Session, source: Source, tree: exp.Commit, parameters: Mapping[str, Any]) -> Result:
    """COMMIT: all changes since BEGIN become visible at once, or, if they break what a table demands, none does."""
    if not session.transaction:
        raise source.error("no transaction is open", tree, ConflictError)
    session.transaction = False
    try:
        session.commit()
    except TektiteError:
        session.forget()
        raise
    return Result("COMMIT")


def rollback(session: Session, source: Source, tree: exp.Rollback, parameters: Mapping[str, Any]) -> Result:
    """ROLLBACK: forget all changes since BEGIN."""
    if not session.transaction:
        raise source.error("no transaction is open", tree, ConflictError)
    session.transaction = False
    session.forget()
    return Result("ROLLBACK")
