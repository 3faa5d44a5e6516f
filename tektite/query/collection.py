"""Collection: how a Python program writes a query.

A collection describes data; nothing runs until it is installed. Every method returns a new collection. It checks columns and
types at once, so that a mistake is reported where it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.expr import type_of as expression_type
from tektite.expr.other_names import advice
from tektite.expr.predicates import conjunction
from tektite.former_names import former_name, former_options, without_former
from tektite.plan import algebra as plan
from tektite.plan.explanation import Explanation
from tektite.query import joins
from tektite.query.columns import ColumnName, ColumnNames, column_list, column_numbers, project
from tektite.query.derived import check_collection, check_function, derived
from tektite.query.other_names import METHODS, OTHERWISE
from tektite.query.outputs import (
    Outputs,
    check_no_null_comparison,
    flat,
    has_aggregate,
    no_condition,
    outputs_of,
    plain,
)
from tektite.query.own_columns import OwnColumn, named_columns
from tektite.query.reduction_methods import ReductionMethods
from tektite.query.set_methods import SetMethods
from tektite.query.sql_methods import SqlMethods, with_sql
from tektite.refused_operators import RefusesOperators
from tektite.unknown_options import FILTER_OPTIONS, check_arguments, explains_options, is_function
from tektite.values import types
from tektite.values.html import html_table
from tektite.values.schema import Schema
from tektite.values.type_names import TypeLike

if TYPE_CHECKING:
    pass

ROUND_LIMIT = 100_000
"""Rounds after which a loop fails because it does not converge."""


@explains_options
class Collection(ReductionMethods, SetMethods, SqlMethods, RefusesOperators):
    """A changing bag of rows with named, typed columns.

    >>> import tektite as tk
    >>> people = tk.Engine().values({"name": ["Ada", "Alan"], "born": [1815, 1912]})
    >>> people.filter(tk.col("born") > 1900).select("name").collect().to_pydict()
    {'name': ['Alan']}
    """

    engine: Any

    def __init__(self, engine: Any, operator: plan.Operator) -> None:
        self.engine = engine  # None for a variable of a loop that reads no input yet
        self.operator = operator

    @property
    def _collection(self) -> Collection:
        return self

    @property
    def schema(self) -> Schema:
        """Names and types of the columns.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.select("x", half=tk.col("x") / 2).schema
        Schema(x=int, half=float)
        """
        return self.operator.schema

    def __repr__(self) -> str:
        columns = ", ".join(f"{n}: {t}" for n, t in zip(self.schema.names, self.schema.types, strict=True))
        return f"<{type(self).__name__} ({columns})>"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the columns, and the plan if the collection belongs to an engine."""
        columns = list(zip(self.schema.names, self.schema.types, strict=True))
        plan_text = self.explain()._repr_html_() if self.engine is not None and self.operator.loop is None else ""
        return html_table(["column", "type"], columns, "a query, not installed") + plan_text

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            found = self.__dict__.get("operator")
            columns = () if found is None else found.schema.names
            hint = f"; the column is c[{name!r}]" if name in columns else advice(name, METHODS, type(self), OTHERWISE)
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")

    def __dir__(self) -> list[str]:
        return without_former(type(self), super().__dir__())

    @overload
    def __getitem__(self, key: str) -> Expr: ...
    @overload
    def __getitem__(self, key: Expr | list[str]) -> Collection: ...
    def __getitem__(self, key: Any) -> Any:
        """The column with this name, for expressions; a name that is not there is an error at once. As in pandas and ibis, a list
        of names is `select`, and a condition is `filter`.

        >>> import tektite as tk
        >>> orders = tk.Engine().create_table("orders", {"item": str, "amount": int})
        >>> orders[orders["amount"] > 3]
        <Collection (item: string, amount: int)>
        >>> orders[["amount"]]
        <Collection (amount: int)>
        """
        if isinstance(key, Expr):
            return self.filter(key)
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return self.select(key)
        if not isinstance(key, str):
            several = isinstance(key, tuple) and all(isinstance(name, str) for name in key)
            ways = f"c[{list(key)!r}]" if several else "limit(n, offset=) after sort(...), or filter(...)"
            raise IncorrectError(
                f"c[{key!r}]: a column is named by a text, and several by a list. "
                + (f"Write {ways}" if several else f"Rows have no numbers: use {ways}")
            )
        if key == "*" and "*" not in self.schema.names:
            raise IncorrectError("c['*']: a column is named here; all columns are select('*')")
        self.schema.index(key)
        return OwnColumn(key, self.operator)

    def __contains__(self, row: object) -> bool:
        """Whether a row is among those of a table or a view."""
        if isinstance(row, str):
            raise IncorrectError(f"{row!r} in c: rows are tuples; a column is looked for by {row!r} in c.schema.names")
        return any(row == other for other in self)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        """Refused: a query does not change."""
        name = key if isinstance(key, str) else "x"
        raise IncorrectError(
            f"c[{key!r}] = ...: a query does not change. Write c = c.with_columns({name}=...); rows of a table are changed by "
            "set(condition, x=value)"
        )

    def __delitem__(self, key: object) -> NoReturn:
        """Refused: a query does not change."""
        raise IncorrectError(f"del c[{key!r}]: a query does not change. Write c = c.drop({key!r})")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Refused: a query has no rows by itself, as tables and views have."""
        raise IncorrectError("a query has no rows to go through: collect() computes them, and create_view keeps them")

    def __len__(self) -> int:
        """Refused: a query has no rows by itself, as tables and views have."""
        raise IncorrectError("a query has no length: collect().num_rows, or create_view(name, query) and its len")

    def __bool__(self) -> bool:
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The answer as an Arrow stream, for whatever reads those: `pyarrow.table(query)`, `polars.DataFrame(query)`."""
        table: Any = self.collect()
        stream: object = table.__arrow_c_stream__(requested_schema)
        return stream

    # ------------------------------------------------------------------ linear operators

    def select(self, *columns: str | Expr | Sequence[str | Expr], **named: Any) -> Collection:
        """Columns by name, and new ones by expression. A text is the name of a column, or `"*"` for all of them; a text as a
        value is `tk.lit("text")`.

        A positional expression is called by its `alias`, or like the first column that it reads. If all expressions are
        aggregates, the result is their only row: see `agg`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> edges.select("dst", (-tk.col("src")).alias("back"), total=tk.col("src") + tk.col("dst"), start="src")
        <Collection (dst: int, back: int, total: int, start: int)>
        """
        outputs = named_columns(self, outputs_of("select", self.schema, columns, named), "select")
        if any(has_aggregate(expression) for _, expression in outputs):
            return self.agg([expression.alias(name) for name, expression in outputs])
        source, outputs = self._with_windows(outputs)
        return derived(project(source.operator, outputs), source)

    def with_columns(self, *columns: Expr | Sequence[Expr], **named: Any) -> Collection:
        """All columns. Each expression adds a column, or replaces the one of its name. As in `select`, a text is the name of a
        column.

        >>> import tektite as tk
        >>> orders = tk.Engine().create_table("orders", {"amount": tk.Int})
        >>> orders.with_columns(before="amount", amount=tk.col("amount") * 2, unit=tk.lit("EUR"))
        <Collection (amount: int, before: int, unit: string)>
        """
        outputs = named_columns(self, outputs_of("with_columns", self.schema, columns, named), "with_columns")
        names = [name for name, _ in outputs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise IncorrectError(
                f"with_columns: two columns would be called {twice!r}; name one of them with .alias(...)"
            )
        source, outputs = self._with_windows(outputs)
        added = dict(outputs)
        kept = [(name, added.pop(name, col(name))) for name in self.schema.names]
        return derived(project(source.operator, [*kept, *added.items()]), source)

    def drop(self, *columns: ColumnNames) -> Collection:
        """The other columns.

        >>> import tektite as tk
        >>> edges = tk.Engine().create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> edges.drop("src")
        <Collection (dst: int)>
        """
        if not columns:
            raise IncorrectError(
                "drop: name the columns to leave out; engine.drop_table(name) removes a table for everybody"
            )
        gone = column_numbers(self.schema, list(flat(columns)))
        if len(gone) == len(self.schema.names):
            raise IncorrectError("drop: no column would be left")
        return self.select([name for c, name in enumerate(self.schema.names) if c not in gone])

    def rename(self, names: Mapping[str, str] | None = None, /, **new_names: str) -> Collection:
        """The same columns under other names: `rename({"old": "new"})` or `rename(new="old")`.

        >>> import tektite as tk
        >>> edges = tk.Engine().create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> edges.rename({"src": "start"}).rename(end="dst")
        <Collection (start: int, end: int)>
        """
        if names is not None and not isinstance(names, Mapping):
            raise IncorrectError(f"rename takes a mapping from old to new names, or new='old', not {names!r}")
        if (
            names
            and not any(o in self.schema.names for o in names)
            and all(n in self.schema.names for n in names.values())
        ):
            raise IncorrectError(f"rename takes old names first: rename({dict((n, o) for o, n in names.items())!r})")
        old = {self.schema.names[self.schema.index(o)]: n for o, n in (names or {}).items()}
        renamed: object = new_names.get("columns")
        if isinstance(renamed, Mapping) or is_function(renamed):
            raise IncorrectError(f"rename takes the names without columns=: rename({renamed!r})")
        old |= {self.schema.names[self.schema.index(o)]: n for n, o in new_names.items()}
        outputs = [(old.get(name, name), col(name)) for name in self.schema.names]
        return derived(project(self.operator, outputs), self)

    def filter(self, *predicates: Expr | Sequence[Expr], **equal: Any) -> Collection:
        """The rows for which all predicates are true. Rows for which one is false or NULL are left out. `filter(shop="north")` is
        short for `filter(col("shop") == "north")`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> orders = engine.create_table("orders", {"item": tk.String, "amount": tk.Int})
        >>> view = engine.install("large", orders.filter(tk.col("amount") > 3, tk.col("item").is_in(["cup", "jug"])))
        >>> _ = orders.insert([("cup", 4), ("jug", 1), ("pan", 9)])
        >>> view.rows()
        [('cup', 4)]
        """
        for name in FILTER_OPTIONS.keys() & equal.keys() - set(self.schema.names):
            raise IncorrectError(f"filter has no option {name!r}: {FILTER_OPTIONS[name]}")
        given = [*flat(predicates), *(self[name] == value for name, value in equal.items())]
        if not given:
            raise IncorrectError("filter needs a predicate such as col('x') > 1")
        for predicate in given:
            if not isinstance(predicate, Expr):
                raise no_condition(self.schema, predicate)
            check_no_null_comparison(predicate)
        if any(node.op == "is_among" for predicate in given for node in predicate.walk()):
            from tektite.query.memberships import filtered

            return filtered(self, [plain(predicate) for predicate in given])
        named = named_columns(self, [("", plain(predicate)) for predicate in given], "filter")
        source, outputs = self._with_windows(named)
        for _, predicate in outputs:
            found = expression_type(predicate, source.schema.positions)
            if found != types.Bool:
                raise IncorrectError(f"filter needs a bool; {predicate} is {found}")
        columns = [(name, col(name)) for name in self.schema.names]
        return derived(project(source.operator, columns, conjunction([e for _, e in outputs])), source)

    def drop_nulls(self, *columns: ColumnNames, subset: ColumnNames = ()) -> Collection:
        """The rows without NULL, in some columns or in any.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.drop_nulls().collect().to_pydict()
        {'x': [1, 2, 2]}
        """
        names = column_list([*flat(columns), *column_list(subset)]) or list(self.schema.names)
        column_numbers(self.schema, names)
        return self.filter([col(name).is_not_null() for name in names])

    def _with_windows(self, outputs: Outputs) -> tuple[Collection, Outputs]:
        """This collection with what SQL computes and the results of window functions, and expressions over these."""
        self, outputs = with_sql(self, outputs)
        if not any(node.op == "over" for _, expression in outputs for node in expression.walk()):
            return self, outputs
        from tektite.query.windows import evaluated

        return evaluated(self, outputs)

    def map_batches(self, function: Callable[[Any], Any], /, **columns: TypeLike) -> Collection:
        """Applies a pure Python function that maps an Arrow table to one with as many rows and the columns given.

        >>> import tektite as tk
        >>> import pyarrow.compute as pc
        >>> words = tk.Engine().values({"w": ["tea", "salt"]})
        >>> titles = words.map_batches(lambda table: table.set_column(0, "w", pc.utf8_title(table["w"])), w=tk.String)
        >>> titles.collect().to_pydict()
        {'w': ['Salt', 'Tea']}
        """
        check_function(function, "map_batches")
        return derived(plan.MapBatches(Schema(columns), self.operator, function, many=False), self)

    def explode(self, *columns: ColumnNames) -> Collection:
        """Each row once for each element of its list, which takes the place of the list; a row whose list is empty or NULL goes.
        Of several columns, elements at one place are side by side: what a shorter list lacks is NULL. It is SQL's `unnest`.

        >>> import tektite as tk
        >>> posts = tk.Engine().values({"post": [1, 2], "tags": ["new,blue", "red"]})
        >>> posts.with_columns(tags=tk.col("tags").str.split(",")).explode("tags").sort("post", "tags").collect().to_pydict()
        {'post': [1, 1, 2], 'tags': ['blue', 'new', 'red']}
        """
        from tektite.query.number_series import exploded

        return exploded(self, columns)

    def flat_map(self, function: Callable[[Any], Any], /, **columns: TypeLike) -> Collection:
        """Applies a pure Python function that maps an Arrow table to (table, row numbers): any number of rows for each row given.

        >>> import numpy as np, pyarrow as pa, tektite as tk
        >>> engine = tk.Engine()
        >>> words = engine.create_table("words", {"text": tk.String})
        >>> def split(table):
        ...     lists = [text.split() for text in table["text"].to_pylist()]
        ...     rows = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        ...     return pa.table({"word": [word for found in lists for word in found]}), rows
        >>> view = engine.install("split", words.flat_map(split, word=tk.String))
        >>> _ = words.insert([("to be or not to be",)])
        >>> sorted(view.rows())
        [('be',), ('be',), ('not',), ('or',), ('to',), ('to',)]
        """
        check_function(function, "flat_map")
        return derived(plan.MapBatches(Schema(columns), self.operator, function, many=True), self)

    def inspect(self, function: Callable[[Any], None]) -> Collection:
        """The same collection. The function is called with each table of its changes, which has columns `time` and `diff`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> words = engine.create_table("words", {"w": str})
        >>> view = engine.install("seen", words.inspect(lambda changes: print(changes.to_pylist())))
        >>> _ = words.insert([("tea",)])
        [{'w': 'tea', 'time': 0, 'diff': 1}]
        >>> view.rows()
        [('tea',)]
        """
        check_function(function, "inspect")
        return derived(plan.Inspect(self.schema, self.operator, function), self)

    # ------------------------------------------------------------------ arrangements and joins

    def index_by(self, by: ColumnNames, title: str | None = None) -> Collection:
        """The same collection, read from an index by some columns, which all queries that need it share. `title` names the
        index where indexes are listed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": int, "dst": int})
        >>> view = engine.install("back", edges.index_by("dst"))
        >>> [index.name for index in engine.indexes()]
        ['edges', 'edges by (dst)', 'back']
        """
        return derived(plan.Arrange(self.schema, self.operator, column_numbers(self.schema, by), title), self)

    @former_name("index_by(...)")
    def arrange(self, by: ColumnNames, title: str | None = None) -> Collection:
        """`index_by`, by its former name."""
        return self.index_by(by, title)

    def create_index(self, by: ColumnNames) -> Any:
        """Keep a shared index by some columns, whether or not a view reads it, until it is dropped: `Engine.create_index`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> edges.create_index("dst")
        <Index edges by (dst)>
        """
        return self.engine.create_index(self, by)

    def consolidate(self) -> Collection:
        """The same collection, without changes that cancel each other.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> same = rows.concat(rows.negate()).consolidate()
        >>> same.collect().num_rows
        0
        """
        return self.index_by(self.schema.names)

    def join(
        self,
        other: Collection,
        on: joins.JoinKey | Expr | None = None,
        how: joins.JoinKind = "inner",
        *,
        left_on: joins.JoinKey | None = None,
        right_on: joins.JoinKey | None = None,
        suffix: str = joins.SUFFIX,
    ) -> Collection:
        """Pairs of rows that agree on some columns.

        `on` is a column that both sides have, or a list of them. Columns of different names are `left_on` and `right_on`. NULL
        equals nothing. `how` is one of

        | how | rows |
        |---|---|
        | inner | pairs: the left columns, and the right ones that are no keys. A name that is taken gets the `suffix` |
        | left | the same, and left rows without a partner, with NULL in the right columns |
        | right | pairs, and right rows without a partner, with NULL in the left columns |
        | full | pairs, and the rows of both sides without a partner |
        | cross | all pairs; takes no `on` |
        | semi | the left rows that have a partner |
        | anti | the left rows that have none |

        Keys are in the result once, under the left side's names, whichever side a row comes from. `on` may also be a condition
        over the columns of the result, such as `col("low") <= col("x")`: then all columns of both sides are kept.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> hops = engine.install("hops", edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right"))
        >>> ends = engine.install("ends", edges.join(edges, left_on="dst", right_on="src", how="anti"))
        >>> _ = edges.insert([(1, 2), (2, 3)])
        >>> hops.rows(), ends.rows()
        ([(1, 3)], [(2, 3)])
        """
        from tektite.query.joined import joined

        check_collection(other, "join")
        return joined(self, other, on, how, left_on, right_on, suffix)

    def filter_by_bound(
        self, column: ColumnName, op: str, bounds: Collection, bound: ColumnName, by: ColumnNames = ()
    ) -> Collection:
        """The rows whose `column` is <, <=, > or >= a bound that may move. The bound is the column `bound` of the row of
        `bounds` with the same `by` columns.

        When a bound moves, only the rows between its old and its new value are touched. The result is that of a join:

        * A row occurs once for each bound that it passes.
        * Rows of a group without a bound are left out.
        * NULL passes nothing, whether it is the value, the bound or in `by`.

        Both columns must have the same type, which must not be text.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> half = sales.max("amount", by="shop").select("shop", half=tk.col("amount") // 2)
        >>> large = engine.install("large", sales.filter_by_bound("amount", ">", half, "half", by="shop"))
        >>> _ = sales.insert([("north", 4), ("north", 6), ("south", 1), ("south", 5)])
        >>> sorted(large.rows())
        [('north', 4), ('north', 6), ('south', 5)]
        >>> _ = sales.insert([("north", 9)])
        >>> sorted(large.rows())
        [('north', 6), ('north', 9), ('south', 5)]
        """
        check_collection(bounds, "filter_by_bound")
        return derived(joins.filter_by_bound(self.operator, column, op, bounds.operator, bound, by), self, bounds)

    # ------------------------------------------------------------------ answers

    def explain(self) -> Explanation:
        """Explains how the collection would be maintained: its plan after all rewrites, the strategy and order of each match,
        and which indexes it would read, shared or made for it. Nothing is installed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> print(edges.join(edges, left_on="dst", right_on="src").select("src", end="dst_right").explain())
        plan
          select src, end = dst#2  (about 1 rows)
            join of (src, dst), (dst, dst#2) to (src, dst#2)  (about 1 rows)
              read edges  (about 1 rows)
              read edges  (about 1 rows)
        match by strategy binary (two relations)
          join edges(src, dst), edges(dst, dst#2)
        indexes
          edges by (src): shared, there already
          edges by (dst): shared, made for this query
        """
        if self.operator.loop is not None:
            raise IncorrectError(f"explain: the collection belongs to loop {self.operator.loop.name!r}; leave it first")
        if self.engine is None:
            raise IncorrectError("explain: the collection reads no table, so it belongs to no engine")
        found: Explanation = self.engine.explain(self)
        return found

    def collect(self) -> Any:
        """The rows as of the last closed epoch, as a `pyarrow.Table`: computed once, over the indexes that are there, and
        forgotten. In a transaction they include what it has written. `Engine.install` keeps them up to date instead.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> _ = edges.insert([(1, 2), (1, 3)])
        >>> edges.count(by="src").collect().to_pylist()
        [{'src': 1, 'count': 2}]
        >>> engine.views
        ()
        """
        if self.engine is None:
            raise IncorrectError("collect: the collection reads no table, so it belongs to no engine")
        return self.engine.collect(self)

    # ------------------------------------------------------------------ loops

    @former_options(limit="max_rounds")
    def iterate(
        self, body: Callable[[Collection], Collection], max_rounds: int = ROUND_LIMIT, name: str = "iterate"
    ) -> Collection:
        """Applies `body` repeatedly, starting with this collection, until nothing changes. If something still changes after
        `max_rounds` rounds, the view fails.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> def step(reach):
        ...     longer = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        ...     return longer.concat(edges).distinct()
        >>> reach = engine.install("reach", edges.iterate(step))
        >>> _ = edges.insert([(1, 2), (2, 3), (3, 4)])
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
        """
        from tektite.query.loops import Loop

        if not is_function(body):
            raise IncorrectError(f"iterate takes a function of a collection, not {body!r}")
        with Loop(name, max_rounds) as loop:
            variable = loop.variable("x", initial=self)
            check_arguments(body, (variable,), "iterate: the body takes the collection of each round")
            result = body(variable)
            if not isinstance(result, Collection):
                raise IncorrectError(f"iterate: the body must return a collection, not {type(result).__name__}")
            variable.set(result)
            return loop.leave(result)
