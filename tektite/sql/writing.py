"""Statements that change tables: INSERT, UPDATE, DELETE."""

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
from tektite.types import Type

if TYPE_CHECKING:
    from tektite.sql.session import Session


NOT_IN_INSERT = {
    "conflict": ("INSERT ... ON CONFLICT", "CONFLICT"), "returning": ("INSERT ... RETURNING", "RETURNING"),
    "overwrite": ("INSERT OVERWRITE", "OVERWRITE"), "default": ("INSERT ... DEFAULT VALUES", "DEFAULT"),
    "by_name": ("INSERT ... BY NAME", "BY"), "alternative": ("INSERT OR ...", "OR"),
}  # fmt: skip
"""What an INSERT may say beside its rows, as it is written, and the word that says it."""


def target(session: Session, source: Source, node: exp.Table) -> Input:
    """The table that a statement changes."""
    if node.args.get("db"):
        raise source.error("a schema before the name of a table is not supported", node, UnsupportedError)
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
    for clause, (called, word) in NOT_IN_INSERT.items():
        if tree.args.get(clause):
            raise source.error(f"{called} is not supported", source.where(word), UnsupportedError)
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    found = target(session, source, tree.this if schema is None else schema.this)
    names = list(found.schema.names)
    given = names if schema is None else [folded(c) for c in schema.expressions]
    for at, column in enumerate(given):
        if column not in names:
            message = f"table {found.name!r} has no column {column!r}: {nearest(column, names)}"
            raise source.error(message, tree.this.expressions[at], NotFoundError)
        if column in given[:at]:
            raise source.error(f"column {column!r} is named twice", tree.this.expressions[at])
    wanted = [found.schema.types[found.schema.index(column)] for column in given]
    read_alike(tree.expression, wanted)
    try:
        rows = session.select(source, tree.expression, parameters, wanted)
    except TektiteError as error:
        raise of_target(error, "INSERT INTO", found) from None
    table = arranged(found, rows, given)
    session.write(found, table, None)
    return Result(f"INSERT 0 {table.num_rows}")


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


def sql_name(type: Type) -> str:
    """What SQL calls a type."""
    return {"int": "bigint", "float": "double", "bool": "boolean"}.get(type.kind, str(type))


def of_target(error: TektiteError, what: str, found: Input) -> TektiteError:
    """An error in the values of a statement that changes a table; it names the table, unless it points at its place."""
    said = str(error)
    return error if "\nline " in said else type(error)(f"{what} {found.name}: {said}")


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
    if tree.args.get("tables") or tree.this is None:
        raise source.error("syntax error: DELETE needs FROM")
    if tree.args.get("returning"):
        raise source.error("DELETE ... RETURNING is not supported", tree, UnsupportedError)
    found = target(session, source, tree.this)
    if tree.args.get("using"):
        tree = with_matches(tree)
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree.this.copy()), where=tree.args.get("where"))
    rows = session.select(source, query, parameters)
    session.write(found, None, rows)
    return Result(f"DELETE {rows.num_rows}")


def with_matches(tree: exp.Delete) -> exp.Delete:
    """DELETE ... USING as a DELETE of the rows for which there is a match."""
    found = tree.copy()
    first, *others = found.args["using"]
    joins = [exp.Join(this=other) for other in others]
    matches = exp.Select(
        expressions=[exp.Literal.number(1)], from_=exp.From(this=first), joins=joins, where=found.args.get("where")
    )
    found.set("using", None)
    found.set("where", exp.Where(this=exp.Exists(this=matches)))
    return found


def truncate(session: Session, source: Source, tree: exp.TruncateTable, parameters: Mapping[str, Any]) -> Result:
    """TRUNCATE table: DELETE without a condition."""
    for node in tree.expressions:
        delete(session, source, exp.Delete(this=node), parameters)
    return Result("TRUNCATE TABLE")


def update(session: Session, source: Source, tree: exp.Update, parameters: Mapping[str, Any]) -> Result:
    """UPDATE table SET column = expression WHERE ..."""
    for clause in ("from_", "returning"):
        if tree.args.get(clause):
            raise source.error(f"UPDATE ... {clause.upper().strip('_')} is not supported", tree, UnsupportedError)
    found = target(session, source, tree.this)
    names = list(found.schema.names)
    changes: dict[str, exp.Expr] = {}
    for assignment in tree.expressions:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise source.error("SET of anything but column = value is not supported", assignment, UnsupportedError)
        column = folded(assignment.this.this)
        if column not in names:
            message = f"table {found.name!r} has no column {column!r}: {nearest(column, names)}"
            raise source.error(message, assignment, NotFoundError)
        if column in changes:
            raise source.error(f"column {column!r} is set twice", assignment)
        changes[column] = assignment.expression
    outputs: list[exp.Expr] = [exp.column(n, quoted=True) for n in names]
    outputs += [exp.alias_(value, f"new_{column}", quoted=True) for column, value in changes.items()]
    query = exp.Select(expressions=outputs, from_=exp.From(this=tree.this.copy()), where=tree.args.get("where"))
    kinds = [*found.schema.types, *(found.schema.types[found.schema.index(column)] for column in changes)]
    try:
        rows = session.select(source, query, parameters, kinds)
    except TektiteError as error:
        raise of_target(error, "UPDATE", found) from None
    old = rows.select(list(range(len(names))))
    new = dict(zip(names, old.columns, strict=True))
    for at, column in enumerate(changes):
        new[column] = rows.column(len(names) + at)
    table = arranged(found, pa.table(list(new.values()), names=names), names)
    session.write(found, table, old)
    return Result(f"UPDATE {table.num_rows}")
