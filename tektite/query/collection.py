"""Collection: how a Python program writes a query.

A collection describes data; nothing runs until it is installed. Every method returns a new collection. It checks columns and
types at once, so that a mistake is reported where it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, lift
from tektite.expr import type_of as expression_type
from tektite.plan import algebra as plan
from tektite.query import joins, reductions
from tektite.query.columns import Columns, column_numbers, project, with_columns, with_float_keys
from tektite.values import types
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.query.grouped import Grouped

ROUND_LIMIT = 100_000
"""Rounds after which a loop fails because it does not converge."""


class Collection:
    """A changing bag of rows with named, typed columns."""

    engine: Any

    def __init__(self, engine: Any, operator: plan.Operator) -> None:
        if engine is not None:
            self.engine = engine
        self.operator = operator

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        return self.operator.schema

    def __repr__(self) -> str:
        columns = ", ".join(f"{n}: {t}" for n, t in zip(self.schema.names, self.schema.types, strict=True))
        return f"<{type(self).__name__} ({columns})>"

    # ------------------------------------------------------------------ linear operators

    def select(self, *columns: str | Expr, **named: Any) -> Collection:
        """Columns by name, and new ones by expression.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> edges.select("dst", total=tk.col("src") + tk.col("dst"))
        <Collection (dst: int, total: int)>
        """
        outputs: list[tuple[str, Expr]] = []
        for column in columns:
            if isinstance(column, str):
                self.schema.index(column)
                outputs.append((column, col(column)))
            elif isinstance(column, Expr):
                if column.op != "col":
                    raise IncorrectError(f"select: give {column} a name, as in select(total={column})")
                outputs.append((column.params[0], column))
            else:
                raise IncorrectError(f"select takes column names and expressions, not {column!r}")
        outputs += [(name, col(value) if isinstance(value, str) else lift(value)) for name, value in named.items()]
        return derived(project(self.operator, outputs), self)

    def with_columns(self, **named: Any) -> Collection:
        """All columns. Each expression adds a column, or replaces the one of its name."""
        return derived(with_columns(self.operator, {name: lift(value) for name, value in named.items()}), self)

    def rename(self, **new_names: str) -> Collection:
        """The same columns under other names: `rename(new="old")`."""
        old = {self.schema.names[self.schema.index(o)]: n for n, o in new_names.items()}
        outputs = [(old.get(name, name), col(name)) for name in self.schema.names]
        return derived(project(self.operator, outputs), self)

    def filter(self, predicate: Expr) -> Collection:
        """The rows for which the predicate is true. Rows for which it is false or NULL are left out."""
        if not isinstance(predicate, Expr):
            raise IncorrectError(f"filter takes an expression such as col('x') > 1, not {predicate!r}")
        found = expression_type(predicate, self.schema.positions)
        if found != types.Bool:
            raise IncorrectError(f"filter needs a bool; {predicate} is {found}")
        return derived(project(self.operator, [(name, col(name)) for name in self.schema.names], predicate), self)

    def map_batches(self, function: Callable[[Any], Any], /, **columns: types.Type) -> Collection:
        """Applies a pure Python function that maps an Arrow table to one with as many rows and the columns given."""
        return derived(plan.MapBatches(Schema(columns), self.operator, function, many=False), self)

    def flat_map(self, function: Callable[[Any], Any], /, **columns: types.Type) -> Collection:
        """Applies a pure Python function that maps an Arrow table to (table, row numbers): any number of rows for each row given.

        >>> import numpy as np, pyarrow as pa, tektite as tk
        >>> engine = tk.Engine()
        >>> words = engine.input("words", text=tk.String)
        >>> def split(table):
        ...     lists = [text.split() for text in table["text"].to_pylist()]
        ...     rows = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        ...     return pa.table({"word": [word for found in lists for word in found]}), rows
        >>> view = engine.install("split", words.flat_map(split, word=tk.String))
        >>> _ = words.insert([("to be or not to be",)])
        >>> sorted(view.rows())
        [('be',), ('be',), ('not',), ('or',), ('to',), ('to',)]
        """
        return derived(plan.MapBatches(Schema(columns), self.operator, function, many=True), self)

    def concat(self, *others: Collection) -> Collection:
        """All rows of all collections; multiplicities add up. Columns are matched by position and must have the same types."""
        for other in others:
            _check_collection(other, "concat")
            if other.schema.types != self.schema.types:
                raise IncorrectError(f"concat needs the same column types: {self!r} and {other!r}")
        return derived(plan.Concat(self.schema, (self.operator, *(o.operator for o in others))), self, *others)

    def negate(self) -> Collection:
        """The same rows with negated multiplicities. Use `concat` to subtract them from another collection."""
        return derived(plan.Negate(self.schema, self.operator), self)

    def inspect(self, function: Callable[[Any], None]) -> Collection:
        """The same collection. The function is called with each table of its changes, which has columns `time` and `diff`."""
        return derived(plan.Inspect(self.schema, self.operator, function), self)

    # ------------------------------------------------------------------ arrangements and joins

    def arrange(self, by: Columns, title: str | None = None) -> Collection:
        """The same collection, indexed by some columns. All queries that need this index share it. `title` names it where
        arrangements are listed.
        """
        return derived(plan.Arrange(self.schema, self.operator, column_numbers(self.schema, by), title), self)

    def consolidate(self) -> Collection:
        """The same collection, without changes that cancel each other."""
        return self.arrange(by=self.schema.names)

    def join(self, other: Collection, on: joins.On, how: str = "inner") -> Collection:
        """Pairs of rows that agree on some columns.

        `on` is a column, a pair (left column, right column), or a list of these. NULL equals nothing. `how` is one of

        * inner: the left columns, and the right ones that are not in `on`. A name that is taken gets `_right`.
        * left: the same, and left rows without a partner, with NULL in the right columns.
        * semi: the left rows that have a partner.
        * anti: the left rows that have none.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> hops = engine.install("hops", edges.join(edges, on=("dst", "src")).select("src", dst="dst_right"))
        >>> _ = edges.insert([(1, 2), (2, 3)])
        >>> hops.rows()
        [(1, 3)]
        """
        _check_collection(other, "join")
        if how not in joins.JOINS:
            raise IncorrectError(f"join: how is inner, left, semi or anti, not {how!r}")
        mine, theirs = joins.key_pairs(self.schema, other.schema, on, "join")
        return derived(joins.join(self.operator, other.operator, mine, theirs, how), self, other)

    def filter_by_bound(self, column: str, op: str, bounds: Collection, bound: str, by: Columns = ()) -> Collection:
        """The rows whose `column` is <, <=, > or >= a bound that may move. The bound is the column `bound` of the row of
        `bounds` with the same `by` columns.

        When a bound moves, only the rows between its old and its new value are touched. The result is that of a join:

        * A row occurs once for each bound that it passes.
        * Rows of a group without a bound are left out.
        * NULL passes nothing, whether it is the value, the bound or in `by`.

        Both columns must have the same type, which must not be text.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.input("sales", shop=tk.String, amount=tk.Int)
        >>> half = sales.max("amount", by="shop").select("shop", half=tk.col("amount") // 2)
        >>> large = engine.install("large", sales.filter_by_bound("amount", ">", half, "half", by="shop"))
        >>> _ = sales.insert([("north", 4), ("north", 6), ("south", 1), ("south", 5)])
        >>> sorted(large.rows())
        [('north', 4), ('north', 6), ('south', 5)]
        >>> _ = sales.insert([("north", 9)])
        >>> sorted(large.rows())
        [('north', 6), ('north', 9), ('south', 5)]
        """
        _check_collection(bounds, "filter_by_bound")
        return derived(joins.filter_by_bound(self.operator, column, op, bounds.operator, bound, by), self, bounds)

    # ------------------------------------------------------------------ reductions

    def distinct(self) -> Collection:
        """Each row once, whatever its multiplicity."""
        return self.threshold(1)

    def threshold(self, times: int) -> Collection:
        """Each row with a multiplicity of at least `times`, once."""
        if not isinstance(times, int) or times < 1:
            raise IncorrectError(f"threshold takes a positive number of times, not {times!r}")
        return derived(reductions.at_least(self.operator, times), self)

    def count(self, by: Columns = (), name: str = "count") -> Collection:
        """The number of rows of each group."""
        from tektite.query.aggregates import count

        return self.group_by(by).agg(**{name: count()})

    def group_by(self, by: Columns = ()) -> Grouped:
        """Groups of rows that agree on some columns. Without columns, all rows are one group."""
        from tektite.query.grouped import Grouped

        keys = column_numbers(self.schema, by)
        return Grouped(derived(with_float_keys(self.operator, keys), self), keys)

    def min(self, column: str, by: Columns = ()) -> Collection:
        """The least value of a column in each group. NULL does not count."""
        return derived(reductions.extreme(self.operator, column, by, last=False), self)

    def max(self, column: str, by: Columns = ()) -> Collection:
        """The greatest value of a column in each group. NULL does not count."""
        return derived(reductions.extreme(self.operator, column, by, last=True), self)

    def top(self, k: int, order_by: Columns, by: Columns = (), descending: bool | Sequence[bool] = False) -> Collection:
        """The first `k` rows of each group in the order of some columns. NULLs come last.

        Which of several rows with equal ordering columns are chosen is unspecified, but always the same.
        """
        return derived(reductions.top(self.operator, k, order_by, by, descending), self)

    def reduce(self, function: Callable[..., Any], by: Columns = (), **columns: types.Type) -> Collection:
        """The key columns, and the columns that a pure Python function computes for each group: `function(key, rows)`.

        `rows` is a list of (row without the key columns, multiplicity). The function returns a list of tuples, one value
        for each column given.
        """
        return derived(reductions.reduce(self.operator, by, columns, function, together=False), self)

    def explain(self) -> str:
        """How the collection would be maintained: its plan after all rewrites, the strategy and order of each match, and which
        arrangements it would read, shared or made for it. Nothing is installed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> print(edges.join(edges, on=("dst", "src")).select("src", end="dst_right").explain())
        plan
          select src, end = dst#2  (about 1 rows)
            join of (src, dst), (dst, dst#2) to (src, dst#2)  (about 1 rows)
              read edges  (about 1 rows)
              read edges  (about 1 rows)
        match by strategy binary (two relations)
          join edges(src, dst), edges(dst, dst#2)
        arrangements
          edges by (src): shared, there already
          edges by (dst): shared, made for this query
        """
        if self.operator.loop is not None:
            raise IncorrectError(f"explain: the collection belongs to loop {self.operator.loop.name!r}; leave it first")
        if not hasattr(self, "engine"):
            raise IncorrectError("explain: the collection reads no input, so it belongs to no engine")
        text: str = self.engine.explain(self)
        return text

    # ------------------------------------------------------------------ loops

    def iterate(
        self, body: Callable[[Collection], Collection], limit: int = ROUND_LIMIT, name: str = "iterate"
    ) -> Collection:
        """Applies `body` repeatedly, starting with this collection, until nothing changes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> def step(reach):
        ...     longer = reach.join(edges, on=("dst", "src")).select("src", dst="dst_right")
        ...     return longer.concat(edges).distinct()
        >>> reach = engine.install("reach", edges.iterate(step))
        >>> _ = edges.insert([(1, 2), (2, 3), (3, 4)])
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
        """
        from tektite.query.loops import Loop

        with Loop(name, limit) as loop:
            variable = loop.variable("x", initial=self)
            result = body(variable)
            if not isinstance(result, Collection):
                raise IncorrectError(f"iterate: the body must return a collection, not {type(result).__name__}")
            variable.set(result)
            return loop.leave(result)


def derived(operator: plan.Operator, *sources: Collection) -> Collection:
    """A collection for an operator over some collections. It belongs to their engine; loop variables may have none."""
    engines = [source.engine for source in sources if hasattr(source, "engine")]
    if any(engine is not engines[0] for engine in engines):
        raise IncorrectError("collections of two engines cannot be combined")
    return Collection(engines[0] if engines else None, operator)


def _check_collection(found: object, verb: str) -> None:
    if not isinstance(found, Collection):
        raise IncorrectError(f"{verb} needs a collection, not {type(found).__name__}")
