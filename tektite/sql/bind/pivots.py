"""PIVOT and UNPIVOT, read as queries: PIVOT groups, with one aggregate FILTER for each value; UNPIVOT is a UNION ALL of columns.

The columns of a query are known before its rows are, so PIVOT needs the values that become columns: IN (...).
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.parse.places import nearest
from tektite.sql.parse.read_arguments import copied, not_needed, written

if TYPE_CHECKING:
    from tektite.sql.bind.bound import Bound
    from tektite.sql.bind.query import Binder

VALUES_NEEDED = (
    "PIVOT needs the values that become columns, as in PIVOT t ON a IN (1, 2) USING sum(x): "
    "SELECT DISTINCT a FROM t finds them"
)


def pivoted(binder: Binder, node: exp.Expr, left: NameScope) -> Bound:
    """A member of FROM with PIVOTs and UNPIVOTs behind it."""
    pivots = node.args["pivots"]
    source = copied(node)
    for name in ("pivots", "joins"):
        source.set(name, None)
    for pivot in pivots:
        query = query_of(binder, pivot, source, left)
        source = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("pivoted")))
        not_needed(pivot)
    return binder.query(source.this, left.parent)


def alias_of(node: exp.Expr) -> exp.Expr:
    """The tree that names a member of FROM: the last PIVOT, if it has an alias, or the member itself."""
    last: exp.Expr = node.args["pivots"][-1]
    return last if last.args.get("alias") is not None else node


def statement_query(binder: Binder, node: exp.Pivot) -> exp.Expr:
    """The query that PIVOT t ON ... USING ... GROUP BY ..., or UNPIVOT t ON ... INTO NAME n VALUE v, is."""
    found = query_of(binder, node, copied(node.this), NameScope(None))
    not_needed(node)
    return found


def query_of(binder: Binder, pivot: exp.Pivot, source: exp.Expr, left: NameScope) -> exp.Expr:
    """The query that a PIVOT or UNPIVOT of a relation is."""
    everything = exp.Select(expressions=[exp.Star()], from_=exp.From(this=copied(source)))
    columns = binder.query(everything, left.parent).titles
    return unpivoted(binder, pivot, source, columns) if pivot.args.get("unpivot") else grouped(
        binder, pivot, source, columns
    )  # fmt: skip


def grouped(binder: Binder, pivot: exp.Pivot, source: exp.Expr, columns: list[str]) -> exp.Expr:
    """PIVOT: groups with an aggregate for each combination of values."""
    fields = pivot.args.get("fields") or pivot.expressions
    calls = (pivot.args.get("using") if pivot.args.get("fields") is None else pivot.expressions) or []
    calls = calls or [exp.Count(this=exp.Star())]
    values = []
    for field in fields:
        if not isinstance(field, exp.In) or not field.expressions:
            raise binder.source.error(VALUES_NEEDED, pivot, UnsupportedError)
        values.append([(field.this, value) for value in field.expressions])
    if not values:
        raise binder.source.error(VALUES_NEEDED, pivot, UnsupportedError)
    group = pivot.args.get("group")
    if group is not None:
        keys = [copied(key) for key in group.expressions]
    else:
        used = {folded(name.this) for part in (*fields, *calls) for name in part.find_all(exp.Column)
                if not isinstance(name.this, exp.Star)}  # fmt: skip
        keys = [named_column(name) for name in columns if name not in used]
    outputs: list[exp.Expr] = list(keys)
    for combination in itertools.product(*values):
        conditions = [same(column, value) for column, value in combination]
        name = "_".join(value_name(value) for _, value in combination)
        for call in calls:
            inner = call.this if isinstance(call, exp.Alias) else call
            said = folded(call.args["alias"]) if isinstance(call, exp.Alias) else written(call).lower()
            alone = len(calls) == 1 and not isinstance(call, exp.Alias)
            filtered = exp.Filter(this=copied(inner), expression=exp.Where(this=exp.and_(*conditions, copy=True)))
            outputs.append(exp.alias_(filtered, name if alone else f"{name}_{said}", quoted=True))
    made = exp.Select(expressions=outputs, from_=exp.From(this=source))
    if keys:
        made.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return made


def same(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Whether a column has a value, which may be NULL."""
    value = value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value
    return exp.NullSafeEQ(this=copied(column), expression=copied(value))


def value_name(value: exp.Expr) -> str:
    """The name of a value's column."""
    if isinstance(value, exp.PivotAlias | exp.Alias):
        return folded(value.args["alias"]) if isinstance(value.args["alias"], exp.Identifier) else value.alias
    return str(value.this) if isinstance(value, exp.Literal) else written(value)


def named_column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def unpivoted(binder: Binder, pivot: exp.Pivot, source: exp.Expr, columns: list[str]) -> exp.Expr:
    """UNPIVOT: a row for each column, with its name and its value; NULLs only where they are asked for."""
    if pivot.args.get("fields"):
        if len(pivot.args["fields"]) != 1 or len(pivot.expressions) != 1:
            raise binder.unsupported("UNPIVOT into several values", pivot)
        field = pivot.args["fields"][0]
        name, value, chosen = folded(field.this), folded(pivot.expressions[0]), field.expressions
    else:
        into = pivot.args.get("into")
        name, value = "name", "value"
        if into is not None:
            if not isinstance(into.this, exp.Expr):
                raise binder.source.syntax_error("INTO takes two names, as in INTO NAME month VALUE sales", pivot)
            if len(into.expressions) != 1:
                raise binder.unsupported("UNPIVOT into several values", pivot)
            name, value = folded(into.this.this), folded(into.expressions[0].this)
        chosen = pivot.expressions
    found: list[tuple[str, str]] = []
    for tree in chosen:
        found += chosen_columns(binder, tree, columns)
    if not found:
        raise binder.source.error("UNPIVOT needs the columns that become rows, as in UNPIVOT t ON a, b", pivot)
    taken = {column for column, _ in found}
    kept = [column for column in columns if column not in taken]
    for new in (name, value):
        if new in kept:
            raise binder.source.error(
                f"UNPIVOT: there is a column {new!r} already", pivot, condition="duplicate-column"
            )
    parts: list[exp.Expr] = []
    for column, shown in found:
        outputs: list[exp.Expr] = [named_column(one) for one in kept]
        outputs.append(exp.alias_(exp.Literal.string(shown), name, quoted=True))
        outputs.append(exp.alias_(named_column(column), value, quoted=True))
        part = exp.Select(expressions=outputs, from_=exp.From(this=copied(source)))
        if not pivot.args.get("include_nulls"):
            missing = exp.Is(this=named_column(column), expression=exp.Null())
            part.set("where", exp.Where(this=exp.Not(this=missing)))
        parts.append(part)
    made: exp.Expr = parts[0]
    return functools.reduce(lambda one, other: exp.Union(this=one, expression=other, distinct=False), parts[1:], made)


def chosen_columns(binder: Binder, tree: exp.Expr, columns: list[str]) -> list[tuple[str, str]]:
    """The columns that a member of UNPIVOT names, each with what it is called in the rows."""
    if isinstance(tree, exp.Columns | exp.Star):
        star = tree.this if isinstance(tree, exp.Columns) else tree
        if not isinstance(star, exp.Star):
            raise binder.unsupported("COLUMNS of anything but * in UNPIVOT", tree)
        left_out = {folded(c.this if isinstance(c, exp.Column) else c) for c in star.args.get("except_") or ()}
        return [(column, column) for column in columns if column not in left_out]
    inner = tree.this if isinstance(tree, exp.PivotAlias | exp.Alias) else tree
    if not isinstance(inner, exp.Column):
        raise binder.unsupported("UNPIVOT of anything but columns", tree)
    column = folded(inner.this)
    if column not in columns:
        raise binder.source.error(
            f"UNPIVOT: there is no column {column!r}: {nearest(column, columns)}", tree, condition="undefined-column"
        )
    return [(column, value_name(tree) if inner is not tree else column)]
