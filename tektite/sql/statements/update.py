"""UPDATE: pairs of old and new rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.bind.scope import folded
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied
from tektite.sql.statements.result import Result
from tektite.sql.statements.table_writes import Writing, default_tree, is_default
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

TIMES = "#times"
"""The column that says how often a row is there."""


def update(runner: StatementRunner, source: StatementText, tree: exp.Update, parameters: Mapping[str, Any]) -> Result:
    """UPDATE table SET column = expression, ... [FROM ...] WHERE ... [RETURNING ...]"""
    writing = Writing.of(runner, source, tree, tree.this, parameters, "UPDATE")
    changes = assignments(writing, tree.expressions)
    writing.check_reads(changes.values())
    others = tree.args.get("from_")
    if others is None:
        old, new = changed(writing, changes, exp.From(this=writing.own()), [], tree.args.get("where"))
    else:
        old, new = changed_by_match(writing, changes, others.this, tree.args.get("where"))
    return writing.write("UPDATE", new.num_rows, new, old)


def assignments(writing: Writing, trees: list[exp.Expr]) -> dict[str, exp.Expr]:
    """The columns that SET names, and their new values."""
    changes: dict[str, exp.Expr] = {}
    for tree in trees:
        pairs = [(tree.this, tree.expression)]
        if isinstance(tree.this, exp.Tuple) and isinstance(tree.expression, exp.Tuple):
            if len(tree.this.expressions) != len(tree.expression.expressions):
                raise writing.source.error("SET of a row needs as many values as columns", tree)
            pairs = list(zip(tree.this.expressions, tree.expression.expressions, strict=True))
        for column, value in pairs:
            if not isinstance(tree, exp.EQ) or not isinstance(column, exp.Column):
                message = "SET of anything but column = value is not supported"
                raise writing.source.error(message, tree, UnsupportedError)
            name = folded(column.this)
            if name not in writing.names:
                message = f"table {writing.table.name!r} has no column {name!r}: {nearest(name, writing.names)}"
                raise writing.source.error(message, column, NotFoundError, condition="undefined-column")
            if name in changes:
                raise writing.source.error(f"column {name!r} is set twice", column, condition="syntax-error")
            changes[name] = default_tree(writing.table, name) if is_default(value) else value
    return changes


def changed(
    writing: Writing,
    changes: Mapping[str, exp.Expr],
    source: exp.From,
    joins: list[exp.Expr],
    where: exp.Expr | None,
    given: Mapping[str, pa.Table] | None = None,
    times: bool = False,
) -> tuple[pa.Table, pa.Table]:
    """The rows of the table that a query finds, and what they become. With `times`, each different pair of both is found
    once, with the number that the row is there in the column of that name.
    """
    names = writing.names
    outputs = [writing.column(name) for name in names]
    outputs += [
        exp.Alias(this=copied(value), alias=exp.to_identifier(f"#new {column}", quoted=True))
        for column, value in changes.items()
    ]
    kinds = [*writing.table.schema.types, *(writing.table.schema.types[names.index(column)] for column in changes)]
    if times:
        outputs.append(writing.column(TIMES))
        kinds.append(types.Int)
    query = exp.Select(expressions=outputs, from_=source, joins=joins, where=where and copied(where))
    if times:
        query.set("distinct", exp.Distinct())
    rows = writing.select(query, kinds, given, "UPDATE")
    if times:
        old = rows.select(list(range(len(names))))
        refuse_several(writing, old)
        rows = rows.take(np.repeat(np.arange(rows.num_rows), rows.column(rows.num_columns - 1).to_numpy()))
    old = rows.select(list(range(len(names)))).rename_columns(names)
    new = dict(zip(names, old.columns, strict=True))
    for at, column in enumerate(changes):
        new[column] = rows.column(len(names) + at)
    return old, writing.arranged(pa.table(list(new.values()), names=names), names)


def changed_by_match(
    writing: Writing, changes: Mapping[str, exp.Expr], others: exp.Expr, where: exp.Expr | None
) -> tuple[pa.Table, pa.Table]:
    """The new and the old rows of UPDATE ... FROM. A row that is there several times is matched once; all its copies change."""
    names = writing.names
    keys = [writing.column(name) for name in names]
    times: exp.Expr = exp.Literal.number(1) if core_of(writing.table).unique is not None else exp.Count(this=exp.Star())
    counted = exp.Select(expressions=[*keys, exp.alias_(times, TIMES, quoted=True)], from_=exp.From(this=writing.own()))
    if core_of(writing.table).unique is None:
        counted.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    alias = exp.TableAlias(this=exp.to_identifier(writing.alias, quoted=True))
    source = exp.From(this=exp.Subquery(this=counted, alias=alias))
    return changed(writing, changes, source, [exp.Join(this=copied(others))], where, times=True)


def refuse_several(writing: Writing, old: pa.Table) -> None:
    """Refuse an update that would give one row several values."""
    words = writing.words(old.rename_columns(writing.names))
    _, first = np.unique(words, axis=1, return_index=True)
    if len(first) < old.num_rows:
        again = min(set(range(old.num_rows)) - set(first.tolist()))
        row = tuple(old.slice(again, 1).to_pylist()[0].values())
        message = (
            f"UPDATE {writing.table.name}: row {row} is matched by several rows of FROM that give it different values"
        )
        raise writing.source.error(
            message, writing.source.where("FROM"), IncorrectError, condition="cardinality-violation"
        )
