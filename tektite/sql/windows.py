"""Window functions: binding them, and computing them for one partition."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite import types
from tektite.expr import Expr
from tektite.sql.known import check_arguments
from tektite.sql.logical import Node, Ordering, Project, Window, WindowCall, columns_of
from tektite.types import Type

if TYPE_CHECKING:
    from tektite.sql.clause import Clause
    from tektite.sql.query import Binder

RANKS: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", types.Int), exp.Rank: ("rank", types.Int), exp.DenseRank: ("dense_rank", types.Int),
    exp.PercentRank: ("percent_rank", types.Float), exp.CumeDist: ("cume_dist", types.Float),
}  # fmt: skip
TOTALS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Count: "count", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.LogicalAnd: "min", exp.LogicalOr: "max",
}  # fmt: skip
Frame = tuple[str, int | None, int | None]
WHOLE: Frame = ("rows", None, None)
RUNNING: Frame = ("range", None, 0)


@dataclass
class Declared:
    """A window function as found in a clause."""

    name: str
    kind: str
    arguments: list[Expr]
    by: list[Expr]
    order: list[tuple[Expr, exp.Ordered]]
    frame: Frame
    type: Type
    constants: tuple[Any, ...]


# ---------------------------------------------------------------------- binding


def declare(binder: Binder, node: exp.Window, clause: Clause) -> str:
    """Note a window function; the name of the column that will hold its result."""
    assert clause.windows is not None
    node = resolved(binder, node)
    call = node.this
    check_arguments(binder.source, call)
    arguments: list[Expr] = []
    constants: tuple[Any, ...] = ()
    kind, type = RANKS.get(call.__class__, ("", types.Int))
    if kind:
        pass
    elif isinstance(call, exp.Lag | exp.Lead):
        kind = call.key
        arguments, constants = shifted(binder, call, clause)
        type = clause.scalars.type(arguments[0], call)
    elif call.__class__ in TOTALS:
        kind = TOTALS[call.__class__]
        given = call.this
        if isinstance(given, exp.Distinct):
            raise binder.unsupported("DISTINCT in a window function", call)
        arguments = [] if given is None or isinstance(given, exp.Star) else [clause.bind(given)]
        type = total_type(binder, clause, kind, arguments, call)
    else:
        raise binder.unsupported(f"window function {call.sql('duckdb')[:40].lower()}", call)
    by = [clause.bind(tree) for tree in node.args.get("partition_by") or ()]
    ordered = node.args["order"].expressions if node.args.get("order") else []
    order = [(clause.bind(o.this), o) for o in ordered]
    name = binder.name(kind, type)
    clause.windows.append(
        Declared(name, kind, arguments, by, order, frame_of(binder, node, bool(order)), type, constants)
    )
    return name


def resolved(binder: Binder, node: exp.Window) -> exp.Window:
    """A window with what a WINDOW clause says of the name it uses."""
    alias = node.args.get("alias")
    if alias is None:
        return node
    select = node.find_ancestor(exp.Select)
    for window in (select.args.get("windows") if select is not None else None) or ():
        if window.name.lower() == alias.name.lower():
            found = window.copy()
            found.set("this", node.this)
            return found  # type: ignore[no-any-return]
    raise binder.source.error(f"there is no window {alias.name!r}", node)


def shifted(binder: Binder, call: exp.Lag | exp.Lead, clause: Clause) -> tuple[list[Expr], tuple[Any, ...]]:
    """The arguments of lag and lead: a value, and a constant offset and default."""
    offset, default = call.args.get("offset"), call.args.get("default")
    constants: list[Any] = []
    for tree, otherwise in ((offset, 1), (default, None)):
        value = None if tree is None else clause.bind(tree)
        if value is not None and value.op != "lit":
            raise binder.unsupported(f"{call.key} with an offset or default that is not a constant", call)
        constants.append(otherwise if value is None else value.params[1])
    if type(constants[0]) is not int:
        raise binder.source.error(f"{call.key}: the offset is a whole number", call)
    return [clause.bind(call.this)], tuple(constants)


def total_type(binder: Binder, clause: Clause, kind: str, arguments: list[Expr], call: exp.Expr) -> Type:
    """The type of an aggregate over a frame."""
    if kind == "count":
        return types.Int
    if not arguments:
        raise binder.source.error(f"{kind} needs a value", call)
    found = clause.scalars.type(arguments[0], call)
    if kind in ("sum", "avg") and found.kind not in ("int", "float", "decimal"):
        raise binder.source.error(f"{kind} needs numbers, not {found}", call)
    if kind == "avg":
        return types.Float
    return types.Decimal(18, found.scale) if kind == "sum" and isinstance(found, types.DecimalType) else found


def frame_of(binder: Binder, node: exp.Window, ordered: bool) -> Frame:
    """The rows around a row that its result is computed of: bounds relative to it, None for no bound."""
    spec = node.args.get("spec")
    if spec is None:
        return RUNNING if ordered else WHOLE
    kind = (spec.args.get("kind") or "").lower()
    if spec.args.get("exclude") or kind not in ("rows", "range"):
        raise binder.unsupported(f"a {kind.upper()} frame with what it says", node)

    def bound(which: str, sign: int) -> int | None:
        value, side = spec.args.get(which), (spec.args.get(f"{which}_side") or "").upper()
        if value is None or value == "CURRENT ROW":
            return 0
        if value == "UNBOUNDED":
            if (side == "PRECEDING") != (which == "start"):
                raise binder.unsupported("this frame", node)
            return None
        if not isinstance(value, exp.Literal) or value.is_string or not value.this.isdigit():
            raise binder.unsupported("a frame bound that is not a whole constant", node)
        return -int(value.this) if side == "PRECEDING" else int(value.this)

    start, end = bound("start", -1), bound("end", 1)
    if kind == "range" and not {start, end} <= {0, None}:
        raise binder.unsupported("a RANGE frame with an offset", node)
    return kind, start, end


def apply(binder: Binder, plan: Node, clause: Clause, over: Callable[[Expr], Expr]) -> Node:
    """The plan with the columns of all window functions of a clause."""
    assert clause.windows is not None
    more: list[tuple[str, Expr]] = []

    def column(expression: Expr) -> str:
        expression = over(expression)
        if expression.op == "col" and expression.params[0] in plan.columns:
            return str(expression.params[0])
        for name, known in more:
            if known.fingerprint == expression.fingerprint:
                return name
        name = binder.name("window", clause.scalars.type(expression, exp.Null()))
        more.append((name, expression))
        return name

    calls = []
    for found in clause.windows:
        order = tuple(binder.ordering(tree, column(expression)) for expression, tree in found.order)
        call = WindowCall(
            found.kind, tuple(map(column, found.arguments)), tuple(map(column, found.by)), order, found.frame,
            found.type, found.constants,
        )  # fmt: skip
        calls.append((found.name, call))
    given = Project(plan, (*columns_of(plan), *more)) if more else plan
    return Window(given, tuple(calls))


# ---------------------------------------------------------------------- computing

Row = tuple[Any, ...]


def compute(calls: Sequence[tuple[WindowCall, dict[str, int]]], rows: list[tuple[Row, int]]) -> list[Row]:
    """A partition's rows, each with the results of all calls behind it. The places say where in a row columns are."""
    plain = [row for row, count in rows for _ in range(count)]
    plain.sort(key=cmp_to_key(compare_rows))
    results: list[list[Any]] = [[] for _ in plain]
    for call, places in calls:
        order = sorted_places(plain, call.order, places)
        column = partition(call, places, [plain[at] for at in order])
        for at, value in zip(order, column, strict=True):
            results[at].append(value)
    return [(*row, *more) for row, more in zip(plain, results, strict=True)]


def compare_rows(one: Row, other: Row) -> int:
    """Any fixed order of rows, so that ties are broken the same way each time."""
    for a, b in zip(one, other, strict=True):
        if a is None or b is None:
            if (a is None) != (b is None):
                return 1 if a is None else -1
        elif a != b and not (a != a and b != b):
            return -1 if a < b or b != b else 1
    return 0


def sorted_places(rows: list[Row], order: Sequence[Ordering], places: dict[str, int]) -> list[int]:
    """The numbers of the rows in an order."""
    found = list(range(len(rows)))
    for ordering in reversed(order):
        at = places[ordering.column]
        absent = [i for i in found if rows[i][at] is None]
        present = [i for i in found if rows[i][at] is not None]
        # NaN is greater than every other number
        present.sort(key=lambda i: (rows[i][at] != rows[i][at], rows[i][at]), reverse=ordering.descending)
        found = absent + present if ordering.nulls_first else present + absent
    return found


def partition(call: WindowCall, places: dict[str, int], rows: list[Row]) -> list[Any]:
    """The results of one call for the rows of a partition, which are in its order."""
    total = len(rows)
    keys = [tuple(repr(row[places[o.column]]) for o in call.order) for row in rows]
    groups: list[int] = []  # where each group of peers begins
    for at, key in enumerate(keys):
        if at == 0 or key != keys[at - 1]:
            groups.append(at)
    group_of = [bisect_right(groups, at) - 1 for at in range(total)]
    first = [groups[g] for g in group_of]
    last = [groups[g + 1] if g + 1 < len(groups) else total for g in group_of]
    match call.kind:
        case "row_number":
            return list(range(1, total + 1))
        case "rank":
            return [at + 1 for at in first]
        case "dense_rank":
            return [g + 1 for g in group_of]
        case "percent_rank":
            return [at / (total - 1) if total > 1 else 0.0 for at in first]
        case "cume_dist":
            return [at / total for at in last]
    values = [row[places[call.arguments[0]]] for row in rows] if call.arguments else [1] * total
    if call.kind in ("lag", "lead"):
        offset, default = call.constants
        by = offset if call.kind == "lead" else -offset
        return [values[at + by] if 0 <= at + by < total else default for at in range(total)]
    kind, start, end = call.frame
    results: list[Any] = []
    known: dict[tuple[int, int], Any] = {}
    for at in range(total):
        if kind == "rows":
            low = 0 if start is None else max(0, at + start)
            high = total if end is None else min(total, at + end + 1)
        else:
            low = 0 if start is None else first[at]
            high = total if end is None else last[at]
        low = min(low, total)
        span = (low, max(low, high))
        if span not in known:
            known[span] = reduced(call.kind, values[span[0] : span[1]], call.type)
        results.append(known[span])
    return results


def reduced(kind: str, values: list[Any], type: Type) -> Any:
    """An aggregate of the values in a frame."""
    if kind == "first_value":
        return values[0] if values else None
    if kind == "last_value":
        return values[-1] if values else None
    present = [value for value in values if value is not None]
    if kind == "count":
        return len(present)
    if not present:
        return None
    if kind in ("min", "max"):
        present.sort(key=lambda value: (value != value, value))
        return present[0 if kind == "min" else -1]
    if isinstance(present[0], float):
        whole = math.fsum(present) if all(map(math.isfinite, present)) else sum(present)
        return whole if kind == "sum" else whole / len(present)
    exact = sum(present, Decimal(0) if isinstance(present[0], Decimal) else 0)
    return exact if kind == "sum" else float(Decimal(exact) / len(present))
