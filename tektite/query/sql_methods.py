"""The methods of `Collection` that are read as SQL: `sql` itself, windows of time, and ASOF joins.

What SQL's binder knows how to write as a query is not written a second time in Python: these methods are the same query, by the
same plan.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.expr.durations import fixed_duration
from tektite.plan.names import free_name
from tektite.query import joins
from tektite.query.columns import ColumnName, ColumnNames, column_numbers, one_column
from tektite.query.derived import check_collection
from tektite.query.outputs import Outputs
from tektite.unknown_options import explains_options
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.query.collection import Collection

BOUNDS = ("window_start", "window_end")
"""The columns that windows of time add."""
COMPARED = {("backward", True): ">=", ("backward", False): ">", ("forward", True): "<=", ("forward", False): "<"}
"""How the left moment compares with the right one that it is joined with."""


@explains_options
class SqlMethods:
    """Methods of collections that take SQL."""

    engine: Any

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        raise NotImplementedError

    def sql(self, query: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> Collection:
        """A query of SQL over this collection, which it calls `self`, and over the tables and views of the engine. `params` are
        those of `Engine.sql`. The result is a collection like any other: the plan is the one that methods would make.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "item": str, "amount": int})
        >>> large = sales.filter(tk.col("amount") > 3)
        >>> totals = large.sql("SELECT shop, item, sum(amount) AS total FROM self GROUP BY ROLLUP (shop, item)")
        >>> view = engine.install("totals", totals.filter(tk.col("total") < 9))
        >>> _ = sales.insert([("north", "cup", 4), ("north", "jug", 5), ("north", "pan", 1)])
        >>> sorted(view.rows())
        [('north', 'cup', 4), ('north', 'jug', 5)]
        """
        return queried(self, "sql", query, {}, params, named)

    def tumble(self, column: ColumnName, every: str | datetime.timedelta) -> Collection:
        """Each row with the window of time that its date or timestamp is in, as columns `window_start` and `window_end`, which
        are timestamps, with a zone if the column has one. Windows follow one another: `tumble("at", "15m")`. It is SQL's `FROM
        tumble(...)`.

        >>> import datetime as dt, tektite as tk
        >>> clicks = tk.Engine().values({"at": [dt.datetime(2026, 1, 1, 9, minute) for minute in (3, 14, 15)]})
        >>> windows = clicks.tumble("at", "15m").group_by("window_start").agg(n=tk.count())
        >>> [(row["window_start"].minute, row["n"]) for row in windows.sort("window_start").collect().to_pylist()]
        [(0, 2), (15, 1)]
        """
        return _windows(self, "tumble", column, [every])

    def hop(self, column: ColumnName, every: str | datetime.timedelta, size: str | datetime.timedelta) -> Collection:
        """Each row once for each window of time that it is in, as columns `window_start` and `window_end`. A window begins
        `every` so often and is `size` long: `hop("at", "5m", "15m")`. It is SQL's `FROM hop(...)`, Polars' `group_by_dynamic`.

        >>> import datetime as dt, tektite as tk
        >>> clicks = tk.Engine().values({"at": [dt.datetime(2026, 1, 1, 9, minute) for minute in (3, 14)]})
        >>> windows = clicks.hop("at", "10m", "20m").group_by("window_start").agg(n=tk.count())
        >>> [(row["window_start"].minute, row["n"]) for row in windows.sort("window_start").collect().to_pylist()]
        [(50, 1), (0, 2), (10, 1)]
        """
        return _windows(self, "hop", column, [every, size])

    def session(self, column: ColumnName, gap: str | datetime.timedelta, by: ColumnNames = ()) -> Collection:
        """Each row with its session, as columns `window_start` and `window_end`. A session goes on as long as the next row is at
        most a `gap` behind, and ends a gap behind its last row; rows that differ in `by` have sessions of their own. It is SQL's
        `FROM session(...)`.

        >>> import datetime as dt, tektite as tk
        >>> clicks = tk.Engine().values({"at": [dt.datetime(2026, 1, 1, 9, minute) for minute in (3, 8, 30)]})
        >>> sessions = clicks.session("at", "10m").group_by("window_start").agg(n=tk.count())
        >>> [(row["window_start"].minute, row["n"]) for row in sessions.sort("window_start").collect().to_pylist()]
        [(3, 2), (30, 1)]
        """
        return _windows(self, "session", column, [gap], by)

    def join_asof(
        self,
        other: Collection,
        on: str | None = None,
        *,
        left_on: str | None = None,
        right_on: str | None = None,
        by: joins.JoinKey = (),
        strategy: Literal["backward", "forward"] = "backward",
        how: Literal["left", "inner"] = "left",
        allow_exact_matches: bool = True,
        suffix: str = joins.SUFFIX,
    ) -> Collection:
        """Each row with the one row of the other collection that is nearest before it, or behind it (`strategy="forward"`), in
        the order of a column, among those that agree in the columns `by`. Rows without one have NULL in the right columns, or are
        left out (`how="inner"`). The right keys are not in the result, except a `right_on` of another name. It is ASOF JOIN.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> trades = engine.create_table("trades", {"stock": str, "at": int, "amount": int})
        >>> quotes = engine.create_table("quotes", {"stock": str, "at": int, "price": float})
        >>> view = engine.install("priced", trades.join_asof(quotes, on="at", by="stock"))
        >>> _ = quotes.insert([("A", 1, 9.5), ("A", 5, 9.75)])
        >>> _ = trades.insert([("A", 4, 10), ("B", 6, 20)])
        >>> sorted(view.rows())
        [('A', 4, 10, 9.5), ('B', 6, 20, None)]
        """
        check_collection(other, "join_asof")
        for name, found, known in (("strategy", strategy, ("backward", "forward")), ("how", how, ("left", "inner"))):
            if found not in known:
                raise IncorrectError(f"join_asof: {name} is {known[0]!r} or {known[1]!r}, not {found!r}")
        moments = joins.key_pairs(self.schema, other.schema, on, left_on, right_on, "join_asof")
        if len(moments[0]) != 1:
            raise IncorrectError(
                f"join_asof compares one column of each side; columns that are to be equal are by=, not on={on!r}"
            )
        equal = joins.key_pairs(self.schema, other.schema, by, None, None, "join_asof: by") if by else ((), ())
        names, theirs = self.schema.names, other.schema.names
        same = names[moments[0][0]] == theirs[moments[1][0]]
        kept = joins.joined_names(self.schema, other.schema, (*equal[1], *(moments[1] if same else ())), suffix)
        columns = [f"a.{quoted(name)}" for name in names]
        columns += [f"b.{quoted(theirs[at])} AS {quoted(name)}" for at, name in kept.items()]
        on_sql = [f"a.{quoted(names[a])} = b.{quoted(theirs[b])}" for a, b in zip(*equal, strict=True)]
        compared = COMPARED[strategy, bool(allow_exact_matches)]
        on_sql.append(f"a.{quoted(names[moments[0][0]])} {compared} b.{quoted(theirs[moments[1][0]])}")
        query = (
            f"SELECT {', '.join(columns)} FROM self AS a ASOF {'LEFT ' if how == 'left' else ''}JOIN other AS b "
            f"ON {' AND '.join(on_sql)}"
        )
        return queried(self, "join_asof", query, {"other": other})


def queried(
    collection: Any,
    what: str,
    query: str,
    others: Mapping[str, Collection],
    params: Sequence[Any] | Mapping[str, Any] = (),
    named: Mapping[str, Any] | None = None,
) -> Collection:
    """A query of SQL over a collection and others."""
    if collection.engine is None:
        raise IncorrectError(f"{what}: the collection reads no table, so it belongs to no engine")
    given = {"self": collection, **others}
    found: Collection = collection.engine.from_sql(query, params, collections=given, **(named or {}))
    return found


def with_sql(collection: Any, outputs: Outputs) -> tuple[Collection, Outputs]:
    """The collection with a column for each part of some expressions that SQL computes, the time and `sql_expr`, and the
    expressions over these columns.
    """
    texts: dict[str, str] = {}
    for node in (node for _, expression in outputs for node in expression.walk() if node.op in ("now", "sql_expr")):
        text = _sql_of(node)
        if text not in texts:
            texts[text] = free_name(node.op, {*collection.schema.names, *texts.values()})
    if not texts:
        return collection, outputs
    columns = ", ".join(f"({text}) AS {quoted(name)}" for text, name in texts.items())
    wider = queried(collection, "sql_expr", f"SELECT *, {columns} FROM self", {})

    def column(node: Expr) -> Expr | None:
        return col(texts[_sql_of(node)]) if node.op in ("now", "sql_expr") else None

    return wider, [(output, expression.replaced(column)) for output, expression in outputs]


def _sql_of(node: Expr) -> str:
    """The expression of SQL that a node stands for."""
    return "now()" if node.op == "now" else str(node.params[0])


def _windows(collection: Any, what: str, at: ColumnName, lengths: Sequence[Any], by: ColumnNames = ()) -> Collection:
    """The rows with the windows of time that they are in."""
    schema: Schema = collection.schema
    column = one_column(schema, at)
    kind = schema.types[schema.index(column)]
    if kind.kind not in ("date", "timestamp", "timestamptz"):
        raise IncorrectError(f"{what}: column {column!r} is {kind}, not a date or a timestamp")
    for name in BOUNDS:
        if name in schema.names:
            raise IncorrectError(f"{what}: there is a column {name!r} already; rename it")
    keys = [quoted(schema.names[at]) for at in column_numbers(schema, by)]
    spans = [fixed_duration(length, what).sql() for length in lengths]
    return queried(collection, what, f"SELECT * FROM {what}(self, {', '.join([quoted(column), *spans, *keys])})", {})


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
