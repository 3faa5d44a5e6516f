"""TUMBLE, HOP and SESSION: the rows of a table with the windows of time that they fall into, as columns window_start and
window_end.

They are read as queries: a row of TUMBLE is in the one window that its moment is in, one of HOP in as many as overlap there. A
SESSION goes on as long as the next row is at most a gap behind, and ends a gap behind its last row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr.fold import folded
from tektite.expr.interval_parts import IntervalParts
from tektite.sql.parse.parser import Plain, parse
from tektite.sql.parse.places import KEYWORD
from tektite.sql.parse.read_arguments import not_needed, written

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext
    from tektite.sql.bind.query import Binder

USES = {
    "tumble": "tumble(table, column, INTERVAL 'size')",
    "hop": "hop(table, column, INTERVAL 'every', INTERVAL 'size')",
    "session": "session(table, column, INTERVAL 'gap'), with columns behind it to tell sessions of different things apart",
}
MOST_WINDOWS = 10_000
"""Windows of HOP that a row may be in."""


def windowed_query(binder: Binder, clause: ClauseContext, node: exp.Expr, call: exp.Anonymous) -> exp.Expr:
    """The query that a call of TUMBLE or HOP means."""
    name, given = call.name.lower(), call.expressions
    simple = len(given) > 1 and isinstance(given[0], exp.Column) and isinstance(given[1], exp.Column)
    fits = len(given) >= 3 and all(isinstance(key, exp.Column) for key in given[3:]) if name == "session" else (
        len(given) == (3 if name == "tumble" else 4))  # fmt: skip
    if not fits or not simple:
        raise binder.source.error(f"{name} is written {USES[name]}", node)
    lengths = [length_of(binder, clause, tree, name) for tree in (given[2:3] if name == "session" else given[2:])]
    table = written(exp.Table(this=given[0].this.copy(), db=given[0].args.get("table")))
    moment, every, size = (written(tree) for tree in (given[1], given[2], given[-1]))
    not_needed(call)  # what it says is in the query
    if name == "session":
        return parsed(sessions(table, moment, every, [written(key) for key in given[3:]]))
    begins = f"time_bucket({every}, {bound(moment)})"
    if name == "tumble":
        return parsed(f"SELECT *, {begins} AS window_start, {begins} + {size} AS window_end FROM {table}")
    many = -(-lengths[1] // lengths[0])
    if many > MOST_WINDOWS:
        raise binder.unsupported(f"hop with {many} windows for a row (at most {MOST_WINDOWS})", node)
    begins = f"{begins} - {every} * hops.number"
    # a row without a moment is in no window: it is there once, with NULLs, as by TUMBLE and SESSION
    within = f"COALESCE({moment} < {begins} + {size}, hops.number = 0)"
    return parsed(
        f"SELECT rows.*, {begins} AS window_start, {begins} + {size} AS window_end "
        f"FROM {table} AS rows, generate_series(0, {many - 1}) AS hops(number) WHERE {within}"
    )


def bound(moment: str) -> str:
    """A moment as a bound of a window: of a date, the timestamp of its midnight, since the other bound is one, too."""
    return f"({moment} + INTERVAL '0 days')"


def sessions(table: str, moment: str, gap: str, keys: list[str]) -> str:
    """The query of SESSION: a row that is more than a gap behind the one before it begins a session, and sessions are counted.
    The columns that this needs have names that a table is not likely to have.
    """
    by = f"PARTITION BY {', '.join(keys)}" if keys else ""
    number = f"PARTITION BY {', '.join([*keys, '__session'])}"
    before = f"lag({moment}) OVER ({by} ORDER BY {moment})"
    begins = f"SELECT *, CASE WHEN {before} + {gap} >= {moment} THEN 0 ELSE 1 END AS __begins FROM {table}"
    # Rows of the same moment belong together: the frame ends with the last of them.
    count = f"sum(__begins) OVER ({by} ORDER BY {moment} RANGE UNBOUNDED PRECEDING)"
    numbered = f"SELECT *, {count} AS __session FROM ({begins}) AS counted"
    return (
        f"SELECT * EXCLUDE (__begins, __session), min({bound(moment)}) OVER ({number}) AS window_start, "
        f"max({moment}) OVER ({number}) + {gap} AS window_end FROM ({numbered}) AS sessions"
    )


def parsed(text: str) -> exp.Expr:
    """The tree of a query that no user wrote: its parts have no places."""
    (statement,) = parse(text)
    assert isinstance(statement, Plain)
    for node in statement.tree.walk():
        node.meta.pop("start", None)
        node.meta.pop(KEYWORD, None)
    return statement.tree


def length_of(binder: Binder, clause: ClauseContext, tree: exp.Expr, name: str) -> int:
    """A constant length of time that is the same everywhere, in microseconds."""
    found = clause.scalars.any(tree)
    length = folded(found.length()) if isinstance(found, IntervalParts) and found.months is None else None
    if length is None or length.op != "lit" or not isinstance(length.params[1], int) or length.params[1] <= 0:
        raise binder.source.error(f"{name} takes constant intervals of days, hours, minutes or seconds", tree)
    return length.params[1]
