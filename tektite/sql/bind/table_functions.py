"""Table functions of FROM: generate_series and range, the windows of time, pg_get_keywords."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, col, lit
from tektite.expr.date_functions import elapsed
from tektite.expr.fold import folded as constant
from tektite.expr.interval_parts import IntervalParts
from tektite.expr.literals import literal_value
from tektite.sql.bind import property_graphs, time_windows
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.scope import NameScope, Relation, folded
from tektite.sql.logical import Node, Project, Series, Values
from tektite.sql.parse.dialect import Dialect
from tektite.sql.parse.instead import FUNCTIONS, instead
from tektite.sql.parse.postgres_spelling import ONE_COLUMN
from tektite.sql.parse.property_graphs import CALLED
from tektite.sql.parse.read_arguments import written
from tektite.values import types
from tektite.values.intervals import DAY

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder

MOST_NUMBERS = 10_000_000
"""Rows that generate_series and range may have: they are in memory."""
USES = {
    "range": "range(1, 10, 2), range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1 day')",
    "generate_series": "generate_series(1, 10, 2), generate_series(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1 day')",
}


def named(
    binder: Binder,
    node: exp.Expr,
    left: NameScope,
    names: Iterable[str],
    titles: list[str],
    default: str = "",
    schema: str = "",
) -> NameScope:
    """The scope of one relation under its alias, or under its name in a schema."""
    alias = node.args.get("alias")
    said = None if alias is None else alias.this
    name = default if said is None else folded(said)
    columns = [folded(c) for c in alias.columns] if alias is not None else []
    shown = binder.aliased(titles, columns, node)
    if alias is not None and alias.meta.get(ONE_COLUMN) and len(titles) != len(columns):
        found = len(titles) - len(columns) + 1
        raise binder.source.error(f"ARRAY takes a query of one column, not of {found}", node)
    catalog = node.name.lower() if schema == "pg_catalog" else ""
    return NameScope(
        left.parent, [Relation(name, list(zip(shown, names, strict=True)), schema if said is None else "", catalog)]
    )


def function(binder: Binder, node: exp.Expr, left: NameScope) -> tuple[Node, NameScope]:
    """A table function: generate_series and range, whose bounds may be columns of what is on the left; pg_get_keywords."""
    call = node.this
    if isinstance(call, exp.Anonymous) and call.name.lower() == "pg_get_keywords" and not call.expressions:
        names = [binder.name(title, types.String) for title in ("word", "catcode")]
        words = sorted(word.lower() for word in Dialect.Tokenizer.KEYWORDS if word.isalpha())
        plan: Node = Values(tuple(names), (types.String,) * 2, tuple((word, "U") for word in words))
        return plan, named(binder, node, left, names, ["word", "catcode"], "pg_get_keywords")
    if isinstance(call, exp.Anonymous) and call.name.lower() in time_windows.USES:
        query = time_windows.windowed_query(binder, ClauseContext(binder, left, call.name.lower()), node, call)
        bound = binder.query(query, None)
        return bound.visible(), named(binder, node, left, bound.names, bound.titles, call.name.lower())
    if isinstance(call, exp.Anonymous) and call.name == CALLED and "pattern" in call.args:
        return property_graphs.graph_table(binder, node, left)
    if isinstance(call, exp.Anonymous):
        from tektite.sql.bind.list_relations import json_rows

        found = json_rows(binder, node, left, call)
        if found is not None:
            return found
    if not isinstance(call, exp.GenerateSeries):
        known = instead(FUNCTIONS, binder.source.called(call))
        raise binder.unsupported(f"table function {written(call)[:40]}", node, known, "undefined-function")
    exclusive = bool(call.args.get("is_end_exclusive"))
    title = "range" if exclusive else "generate_series"
    clause = ClauseContext(binder, left, title)
    if isinstance(call.args.get("step"), exp.Interval):
        return moments(binder, node, clause, title, exclusive, left)
    values: list[Expr] = []
    for argument, default in (("start", 0), ("end", 0), ("step", 1)):
        given = call.args.get(argument)
        value = lit(default) if given is None else constant(clause.bind(given))
        kind = clause.scalars.type(value, given or node)
        if value.op == "lit" and value.params[1] is None:
            value = lit(None, types.Int)
        elif kind != types.Int:
            said = "takes whole numbers, or moments and an interval: " + USES[title]
            raise binder.source.error(f"{title} {said}, not {kind}", node)
        values.append(value)
    if values[2].op == "lit" and values[2].params[1] == 0:
        raise binder.source.error(f"{title}: the step cannot be 0", node)
    if not all(value.op == "lit" and value.params[1] is not None for value in values):
        name = binder.name(title, types.Int)
        unit = clause.attach(Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)))
        series = Series(unit, name, values[0], values[1], values[2], exclusive)
        return Project(series, ((name, col(name)),)), of_function(named(binder, node, left, [name], [title], title))
    start, end, step = (value.params[1] for value in values)
    numbers = range(start, end if exclusive else end + (1 if step > 0 else -1), step)
    if binder.first_rows is not None:  # of a query that needs no more of them
        numbers = numbers[: binder.first_rows]
    many = (numbers[-1] - start) // step + 1 if numbers else 0
    if many > MOST_NUMBERS:
        raise binder.unsupported(f"{title} of {many} numbers (at most {MOST_NUMBERS})", node)
    rows = tuple((value,) for value in numbers)
    name = binder.name(title, types.Int)
    plan = Values((name,), (types.Int,), rows)
    return plan, of_function(named(binder, node, left, [name], [title], title))


def moments(
    binder: Binder, node: exp.Expr, clause: ClauseContext, title: str, exclusive: bool, left: NameScope
) -> tuple[Node, NameScope]:
    """generate_series and range of dates or timestamps, an interval apart. Between bounds that are columns each step has the same
    length; between constants it may be months, each counted from the moment before it.
    """
    call = node.this
    step = clause.scalars.any(call.args["step"])
    assert isinstance(step, IntervalParts)
    ends = []
    for argument in ("start", "end"):
        tree = call.args.get(argument)
        value = lit(None) if tree is None else clause.bind(tree)
        kind = clause.scalars.type(value, node)
        if kind not in (types.Date, types.Timestamp) and not (value.op == "lit" and value.params[1] is None):
            raise binder.source.error(f"{title} with an interval takes dates or timestamps, not {kind}", tree or node)
        ends.append(value.cast(types.Timestamp))
    parts = [constant(lit(0) if part is None else part) for part in (step.months, step.days, step.microseconds)]
    if any(part.op != "lit" or not isinstance(part.params[1], int) for part in parts):
        raise binder.unsupported(f"{title} with a step that is not a constant interval", node)
    months, days, micros = (part.params[1] for part in parts)
    if months == days == micros == 0:
        raise binder.source.error(f"{title}: the step cannot be 0", node)
    if min(months, days, micros) < 0 < max(months, days, micros):
        raise binder.unsupported(f"{title} with a step that goes forwards and backwards", node)
    name = binder.name(title, types.Timestamp)
    first, last = (constant(end) for end in ends)
    scope = of_function(named(binder, node, left, [name], [title], title))
    if first.op == last.op == "lit":
        found: list[tuple[datetime.datetime]] = []
        at, end = (
            None if one.params[1] is None else literal_value(one.params[1], types.Timestamp) for one in (first, last)
        )
        while at is not None and end is not None and is_inside(at, end, max(months, days, micros) > 0, exclusive):
            found.append((at,))
            moved = constant(step.move(lit(at), types.Timestamp))
            if moved.op != "lit":  # beyond the last year that there is
                break
            at = literal_value(moved.params[1], types.Timestamp)
            if len(found) > MOST_NUMBERS:
                raise binder.unsupported(f"{title} of more than {MOST_NUMBERS} moments", node)
        return Values((name,), (types.Timestamp,), tuple(found)), scope
    if months:
        raise binder.unsupported(f"{title} by months between bounds that are not constants", node, ": step by days")
    origin = lit(datetime.datetime(1970, 1, 1))
    number = binder.name("microseconds", types.Int)
    unit = clause.attach(Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)))
    series = Series(
        unit, number, elapsed(ends[0], origin), elapsed(ends[1], origin), lit(days * DAY + micros), exclusive
    )
    return Project(series, ((name, origin + col(number)),)), scope


def is_inside(at: datetime.datetime, end: datetime.datetime, forwards: bool, exclusive: bool) -> bool:
    """Whether a moment is not behind the end of a series."""
    return (at < end if forwards else at > end) or (at == end and not exclusive)


def of_function(scope: NameScope) -> NameScope:
    """The scope of a function's rows."""
    for relation in scope.relations:
        relation.is_function = True
    return scope
