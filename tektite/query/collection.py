"""Collection: what a Python user writes dataflows with.

A collection is a description; nothing runs until it is installed. Every method returns a new collection and
checks columns and types at once, so that a mistake is reported where it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from tektite.dataflow.reduce import Groups, Made
from tektite.errors import ConflictError, IncorrectError
from tektite.expr import Expr, col, key, lift, lit, rank, text_word
from tektite.expr import type_of as expression_type
from tektite.plan import algebra as plan
from tektite.query.aggregates import ColumnAggregate
from tektite.query.group_functions import TopRows
from tektite.values import types
from tektite.values.schema import Schema

Columns = str | Sequence[str]
Keys = tuple[int, ...]
On = str | tuple[str, str] | Sequence[str | tuple[str, str]]
ROUND_LIMIT = 100_000
"""Rounds after which a loop counts as one that does not converge."""
TEXT_WORDS = 6
"""Words of a text, of seven bytes each, that rows are ordered by before the texts themselves are compared."""


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

    def _new(self, operator: plan.Operator, *others: Collection) -> Collection:
        """A collection of the engine that this one, or one of the others, belongs to. Loop variables know none."""
        engines = [c.engine for c in (self, *others) if hasattr(c, "engine")]
        if any(engine is not engines[0] for engine in engines):
            raise IncorrectError("collections of two engines cannot be combined")
        return Collection(engines[0] if engines else None, operator)

    def _other(self, other: Collection, verb: str) -> Collection:
        if not isinstance(other, Collection):
            raise IncorrectError(f"{verb} needs a collection, not {type(other).__name__}")
        return other

    def _type(self, expression: Expr) -> types.Type:
        return expression_type(expression, self.schema.positions)

    def _columns(self, names: Columns) -> tuple[int, ...]:
        names = [names] if isinstance(names, str) else list(names)
        found = tuple(self.schema.index(name) for name in names)
        if len(set(found)) < len(found):
            raise IncorrectError(f"a column is named twice in {names}")
        return found

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
        return self._project(outputs, None)

    def with_columns(self, **named: Any) -> Collection:
        """All columns, with some added or replaced by expressions."""
        new = {name: lift(value) for name, value in named.items()}
        outputs = [(name, new.pop(name, col(name))) for name in self.schema.names]
        return self._project([*outputs, *new.items()], None)

    def rename(self, **new_names: str) -> Collection:
        """The same columns under other names: `rename(new="old")`."""
        old = {self.schema.names[self.schema.index(o)]: n for n, o in new_names.items()}
        return self._project([(old.get(name, name), col(name)) for name in self.schema.names], None)

    def filter(self, predicate: Expr) -> Collection:
        """The rows for which the predicate is true; rows for which it is NULL do not pass."""
        if not isinstance(predicate, Expr):
            raise IncorrectError(f"filter takes an expression such as col('x') > 1, not {predicate!r}")
        if self._type(predicate) != types.Bool:
            raise IncorrectError(f"filter needs a bool; {predicate} is {self._type(predicate)}")
        return self._project([(name, col(name)) for name in self.schema.names], predicate)

    def _project(self, outputs: Sequence[tuple[str, Expr]], predicate: Expr | None) -> Collection:
        names = [name for name, _ in outputs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise IncorrectError(f"column {twice!r} would be there twice; name one of them differently")
        schema = Schema({name: self._type(expression) for name, expression in outputs})
        return self._new(plan.Project(schema, self.operator, tuple(e for _, e in outputs), predicate))

    def map_batches(self, function: Callable[[Any], Any], /, **columns: types.Type) -> Collection:
        """A pure Python function from an Arrow table to one with as many rows, and the columns given."""
        return self._new(plan.MapBatches(Schema(columns), self.operator, function, many=False))

    def flat_map(self, function: Callable[[Any], Any], /, **columns: types.Type) -> Collection:
        """A pure Python function from an Arrow table to (table, row numbers): any number of rows for each row given.

        >>> import numpy as np, pyarrow as pa, tektite as tk
        >>> engine = tk.Engine()
        >>> words = engine.input("words", text=tk.String)
        >>> def split(table):
        ...     lists = [text.split() for text in table["text"].to_pylist()]
        ...     rows = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        ...     return pa.table({"word": [word for found in lists for word in found]}), rows
        >>> view = engine.install("split", words.flat_map(split, word=tk.String))
        >>> words.insert([("to be or not to be",)])
        >>> _ = engine.advance()
        >>> sorted(view.rows())
        [('be',), ('be',), ('not',), ('or',), ('to',), ('to',)]
        """
        return self._new(plan.MapBatches(Schema(columns), self.operator, function, many=True))

    def concat(self, *others: Collection) -> Collection:
        """All rows of all collections: multiplicities add up. Columns go by position and must have the same types."""
        for other in others:
            self._other(other, "concat")
            if other.schema.types != self.schema.types:
                raise IncorrectError(f"concat needs the same column types: {self!r} and {other!r}")
        return self._new(plan.Concat(self.schema, (self.operator, *(o.operator for o in others))), *others)

    def negate(self) -> Collection:
        """The same rows with negated multiplicities, to be taken from another collection by `concat`."""
        return self._new(plan.Negate(self.schema, self.operator))

    def inspect(self, function: Callable[[Any], None]) -> Collection:
        """The same collection; the function sees a table of its changes (with `time` and `diff`) go by."""
        return self._new(plan.Inspect(self.schema, self.operator, function))

    # ------------------------------------------------------------------ arrangements and joins

    def arrange(self, by: Columns, title: str | None = None) -> Collection:
        """The same collection, indexed by some columns; every query that needs this index shares it. `title` is what it is
        called where arrangements are listed.
        """
        return self._new(plan.Arrange(self.schema, self.operator, self._columns(by), title))

    def consolidate(self) -> Collection:
        """The same collection, with changes that cancel each other removed on the way."""
        return self.arrange(by=self.schema.names)

    def join(self, other: Collection, on: On, how: str = "inner") -> Collection:
        """Pairs of rows that agree on some columns.

        `on` names a column, a pair (left column, right column), or a list of these. The result has the left columns
        and the right ones that are not in `on`; a name that is taken gets `_right`. `how` is inner, left, semi or anti.
        NULL equals nothing.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> hops = engine.install("hops", edges.join(edges, on=("dst", "src")).select("src", dst="dst_right"))
        >>> edges.insert([(1, 2), (2, 3)])
        >>> _ = engine.advance()
        >>> hops.rows()
        [(1, 3)]
        """
        self._other(other, "join")
        joins = {
            "inner": Collection._inner,
            "left": Collection._left,
            "semi": Collection._semi,
            "anti": Collection._anti,
        }
        if how not in joins:
            raise IncorrectError(f"join: how is inner, left, semi or anti, not {how!r}")
        left, right = self._pairs(other, on, "join")
        if any(self.schema.types[c] == types.Float for c in left):
            return self._join_on_floats(other, left, right, how)
        return joins[how](self, other, left, right)

    def _join_on_floats(self, other: Collection, left: Keys, right: Keys, how: str) -> Collection:
        """A join whose keys are compared as numbers: on key columns beside the values, in which -0.0 is 0.0."""
        mine, theirs, names = self._with_keys(other, left, right)
        others = [name for c, name in enumerate(other.schema.names) if c not in right or how in ("semi", "anti")]
        joined = mine.join(theirs.select(*others, *names), on=names, how=how)
        return joined.select(*(name for name in joined.schema.names if name not in names))

    def _with_keys(self, other: Collection, left: Keys, right: Keys) -> tuple[Collection, Collection, list[str]]:
        """Both collections with further columns, none of them a float, that are equal where the key columns are."""
        names = [f"__key_{i}" for i in range(len(left))]

        def with_keys(of: Collection, columns: Keys) -> Collection:
            found = [(col(of.schema.names[c]), of.schema.types[c]) for c in columns]
            return of.with_columns(
                **{n: rank(c) if t == types.Float else c for n, (c, t) in zip(names, found, strict=True)}
            )

        return with_keys(self, left), with_keys(other, right), names

    def _pairs(self, other: Collection, on: On, verb: str) -> tuple[Keys, Keys]:
        if isinstance(on, str) or (isinstance(on, tuple) and len(on) == 2 and all(isinstance(o, str) for o in on)):
            on = [on]  # type: ignore[list-item]
        pairs = [(o, o) if isinstance(o, str) else o for o in on]
        left = tuple(self.schema.index(a) for a, _ in pairs)
        right = tuple(other.schema.index(b) for _, b in pairs)
        for a, b in zip(left, right, strict=True):
            if self.schema.types[a] != other.schema.types[b]:
                raise IncorrectError(
                    f"{verb}: {self.schema.names[a]!r} is {self.schema.types[a]} and {other.schema.names[b]!r} is "
                    f"{other.schema.types[b]}; cast one of them"
                )
        if len(set(left)) < len(left) or len(set(right)) < len(right):
            raise IncorrectError(f"{verb}: a column is named twice in {on}")
        return left, right

    def _joined_names(self, other: Collection, right: tuple[int, ...]) -> dict[int, str]:
        """What the other's columns are called in the result."""
        names: dict[int, str] = {}
        taken = set(self.schema.names)
        for c, name in enumerate(other.schema.names):
            if c not in right:
                while name in taken:
                    name += "_right"
                taken.add(name)
                names[c] = name
        return names

    def _inner(
        self, other: Collection, left: Keys, right: Keys, nulls_match: bool = False, one_to_one: bool = False
    ) -> Collection:
        names = self._joined_names(other, right)
        columns = dict(zip(self.schema.names, self.schema.types, strict=True))
        columns |= {name: other.schema.types[c] for c, name in names.items()}
        outputs = (*((0, c) for c in range(len(self.schema.names))), *((1, c) for c in names))
        schema = Schema(columns)
        operator = plan.Join(schema, self.operator, other.operator, left, right, outputs, nulls_match, one_to_one)
        return self._new(operator, other)

    def _left(self, other: Collection, left: Keys, right: Keys, nulls_match: bool = False) -> Collection:
        matched = self._inner(other, left, right, nulls_match)
        missing = self._anti(other, left, right, nulls_match)
        nulls = {name: lit(None, other.schema.types[c]) for c, name in self._joined_names(other, right).items()}
        return matched.concat(missing.with_columns(**nulls))

    def _semi(self, other: Collection, left: Keys, right: Keys, nulls_match: bool = False) -> Collection:
        keys = other.select(*(other.schema.names[c] for c in right)).distinct()
        return self._inner(keys, left, tuple(range(len(right))), nulls_match)

    def _anti(self, other: Collection, left: Keys, right: Keys, nulls_match: bool = False) -> Collection:
        return self.concat(self._semi(other, left, right, nulls_match).negate())

    def filter_by_bound(self, column: str, op: str, bounds: Collection, bound: str, by: Columns = ()) -> Collection:
        """The rows whose `column` is <, <=, > or >= a bound that may move: the `bound` column of another collection, in
        its row with the same `by` columns.

        When a bound moves, only the rows between its old and its new place are touched. It is a join: a row is there
        once for each bound that it passes, a group without a bound is left out, and NULL, be it a value, a bound or in
        `by`, passes nothing. Both columns need one type; text has no order here.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.input("sales", shop=tk.String, amount=tk.Int)
        >>> half = sales.max("amount", by="shop").select("shop", half=tk.col("amount") // 2)
        >>> large = engine.install("large", sales.filter_by_bound("amount", ">", half, "half", by="shop"))
        >>> sales.insert([("north", 4), ("north", 6), ("south", 1), ("south", 5)])
        >>> _ = engine.advance()
        >>> sorted(large.rows())
        [('north', 4), ('north', 6), ('south', 5)]
        >>> sales.insert([("north", 9)])
        >>> _ = engine.advance()
        >>> sorted(large.rows())
        [('north', 6), ('north', 9), ('south', 5)]
        """
        if op not in ("<", "<=", ">", ">="):
            raise IncorrectError(f"filter_by_bound: op is <, <=, > or >=, not {op!r}")
        self._other(bounds, "filter_by_bound")
        left, right = self._pairs(bounds, [by] if isinstance(by, str) else list(by), "filter_by_bound")
        value, limit = self.schema.index(column), bounds.schema.index(bound)
        if value in left:
            raise IncorrectError(f"filter_by_bound: column {column!r} is constant in a group by it; join instead")
        found = (self.schema.types[value], bounds.schema.types[limit])
        if types.String in found:
            text = column if found[0] == types.String else bound
            raise IncorrectError(f"filter_by_bound: column {text!r} is text; compare numbers, dates or times")
        if not same_order(*found):
            raise IncorrectError(
                f"filter_by_bound: {column!r} is {found[0]} and {bound!r} is {found[1]}; cast one of them"
            )
        if any(self.schema.types[c] == types.Float for c in left):
            mine, theirs, names = self._with_keys(bounds, left, right)
            return mine.filter_by_bound(column, op, theirs, bound, by=names).select(*self.schema.names)
        operator = plan.RangeFilter(self.schema, self.operator, bounds.operator, left, right, value, op, limit)
        return self._new(operator, bounds)

    # ------------------------------------------------------------------ reductions

    def distinct(self) -> Collection:
        """Each row that is there, once."""
        return self.threshold(1)

    def threshold(self, times: int) -> Collection:
        """Each row that is there at least `times` times, once."""
        if not isinstance(times, int) or times < 1:
            raise IncorrectError(f"threshold takes a positive number of times, not {times!r}")
        found = self._with_float_keys(range(len(self.schema.names)))
        return self._new(plan.AtLeast(self.schema, found.operator, times))

    def _with_float_keys(self, columns: Iterable[int]) -> Collection:
        """The collection with -0.0 as 0.0 in some columns, to group by them."""
        floats = [c for c in columns if self.schema.types[c] == types.Float]
        if not floats:
            return self
        return self.with_columns(**{self.schema.names[c]: key(col(self.schema.names[c])) for c in floats})

    def count(self, by: Columns = (), name: str = "count") -> Collection:
        """The number of rows of each group."""
        from tektite.query.aggregates import count

        return self.group_by(by).agg(**{name: count()})

    def group_by(self, by: Columns = ()) -> Grouped:
        """The groups of rows that agree on some columns; without any, all rows are one group."""
        keys = self._columns(by)
        return Grouped(self._with_float_keys(keys), keys)

    def min(self, column: str, by: Columns = ()) -> Collection:
        """The least value of a column in each group, NULLs aside."""
        return self._extreme(column, by, last=False)

    def max(self, column: str, by: Columns = ()) -> Collection:
        """The greatest value of a column in each group, NULLs aside."""
        return self._extreme(column, by, last=True)

    def _extreme(self, column: str, by: Columns, last: bool) -> Collection:
        keys = [self.schema.names[c] for c in self._columns(by)]
        if column in keys:
            raise IncorrectError(f"column {column!r} is constant in a group by {keys}")
        values = self._with_float_keys(self._columns(by)).select(*keys, column).filter(col(column).is_not_null())
        if self.schema.types[self.schema.index(column)] == types.String:
            return values.top(1, column, keys, last)
        return self._new(plan.First(values.schema, values.operator, len(keys), 1, last))

    def top(self, k: int, order_by: Columns, by: Columns = (), descending: bool | Sequence[bool] = False) -> Collection:
        """The first `k` rows of each group in an order; NULLs come last.

        Rows that are equal in the ordering columns are taken in the order of their other words, whatever that is.
        """
        if not isinstance(k, int) or k < 1:
            raise IncorrectError(f"top takes a positive number of rows, not {k!r}")
        keys = [self.schema.names[c] for c in self._columns(by)]
        ordering = [order_by] if isinstance(order_by, str) else list(order_by)
        downs = [descending] * len(ordering) if isinstance(descending, bool) else list(descending)
        if len(downs) != len(ordering):
            raise IncorrectError(f"top: {len(ordering)} ordering columns but {len(downs)} directions")
        found = self._with_float_keys(self._columns(by))
        ranks: dict[str, Expr] = {}
        ties = 0
        for i, (name, down) in enumerate(zip(ordering, downs, strict=True)):
            ranks[f"__null_{i}"] = col(name).is_null()
            if self.schema.types[self.schema.index(name)] == types.String:
                ranks |= {f"__rank_{i}_{at}": rank(text_word(col(name), at), down) for at in range(TEXT_WORDS)}
                ties = len(ranks)
                break
            ranks[f"__rank_{i}"] = rank(col(name), down)
        rest = [name for name in self.schema.names if name not in keys]
        ranked = found.select(*keys, **ranks, **{name: col(name) for name in rest})
        first = self._new(plan.First(ranked.schema, ranked.operator, len(keys), k, False, ties, len(ranks)))
        nearest = first.select(*self.schema.names)
        return nearest._top_by_text(k, ordering, keys, downs) if ties else nearest

    def _top_by_text(self, k: int, ordering: list[str], keys: list[str], downs: list[bool]) -> Collection:
        """Text ids do not sort like text: of the rows that may be among the first, a group is sorted anew when it changes."""
        kinds = dict(zip(self.schema.names, self.schema.types, strict=True))
        columns = {name: kind for name, kind in kinds.items() if name not in keys}
        given = [*keys, *columns]
        order = tuple((given.index(name), down, False) for name, down in zip(ordering, downs, strict=True))
        first = TopRows(k, order, tuple(kinds[name] for name in given), len(keys))
        return self._reduce_groups(first, keys, **columns).select(*self.schema.names)

    def reduce(self, function: Callable[..., Any], by: Columns = (), **columns: types.Type) -> Collection:
        """What a pure Python function makes of each group: `function(key, rows)`.

        `rows` is a list of (row without the key columns, multiplicity); the function returns a list of tuples for the
        columns given. The result has the key columns and these.
        """
        return self._reduce(by, columns, function, together=False)

    def _reduce_groups(self, function: Callable[[Groups], Made], by: Columns, **columns: types.Type) -> Collection:
        """What a function of `tektite.query.group_functions` makes of all groups at once. It sees the key columns first."""
        return self._reduce(by, columns, function, together=True)

    def _reduce(
        self, by: Columns, columns: Mapping[str, types.Type], function: Callable[..., Any], together: bool
    ) -> Collection:
        keys = self._columns(by)
        names = [self.schema.names[c] for c in keys]
        rest = [name for name in self.schema.names if name not in names]
        source = self._with_float_keys(keys).select(*names, *rest)
        schema = Schema({n: self.schema.types[c] for n, c in zip(names, keys, strict=True)} | dict(columns))
        return self._new(plan.Reduce(schema, source.operator, len(keys), function, together))

    def explain(self) -> str:
        """How the collection would be kept up to date: its plan after all rewrites, the strategy and order of each match, and for
        every arrangement that would be read whether it is there already. Nothing is installed.

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
        """Apply `body` again and again, beginning with this collection, until nothing changes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> def step(reach):
        ...     longer = reach.join(edges, on=("dst", "src")).select("src", dst="dst_right")
        ...     return longer.concat(edges).distinct()
        >>> reach = engine.install("reach", edges.iterate(step))
        >>> edges.insert([(1, 2), (2, 3), (3, 4)])
        >>> _ = engine.advance()
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
        """
        with Loop(name, limit) as loop:
            variable = loop.variable("x", initial=self)
            result = body(variable)
            if not isinstance(result, Collection):
                raise IncorrectError(f"iterate: the body must return a collection, not {type(result).__name__}")
            variable.set(result)
            return loop.leave(result)


def same_order(one: types.Type, other: types.Type) -> bool:
    """Whether the words of two types compare as their values do: one type, or decimals of one scale."""
    if isinstance(one, types.DecimalType) and isinstance(other, types.DecimalType):
        return one.scale == other.scale
    return one == other


class Grouped:
    """Groups of rows, to be aggregated."""

    def __init__(self, collection: Collection, keys: tuple[int, ...]) -> None:
        self.collection = collection
        self.keys = keys

    def agg(self, **aggregates: ColumnAggregate) -> Collection:
        """One row for each group: the key columns, then the aggregates, all taken in one pass where they are linear.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.input("sales", shop=tk.String, amount=tk.Int)
        >>> totals = sales.group_by("shop").agg(n=tk.count(), total=tk.sum("amount"), best=tk.max("amount"))
        >>> view = engine.install("totals", totals)
        >>> sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> _ = engine.advance()
        >>> sorted(view.rows())
        [('north', 2, 7, 4), ('south', 1, 5, 5)]
        """
        from tektite.query.aggregates import build_aggregates

        return build_aggregates(self.collection, self.keys, aggregates)


_loops: ContextVar[tuple[Loop, ...]] = ContextVar("loops", default=())


class Loop:
    """A scope to iterate in, with any number of variables that may depend on each other.

    Collections from outside may be used freely inside; what is inside comes out by `leave`. A loop opened
    inside another one is nested in it.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
    >>> with tk.Loop("reach") as loop:
    ...     reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
    ...     longer = reach.join(edges, on=("dst", "src")).select("src", dst="dst_right")
    ...     reach.set(edges.concat(longer).distinct())
    ...     result = loop.leave(reach)
    >>> result
    <Collection (src: int, dst: int)>
    """

    def __init__(
        self, name: str = "loop", limit: int = ROUND_LIMIT, shared: bool = False, advice: str | None = None
    ) -> None:
        """With `shared`, collections that leave and are then arranged come from one run of the loop, whoever reads them. A loop
        that has not come to rest after `limit` rounds fails; `advice` is what its error says to do about it.
        """
        outer = _loops.get()
        parent = outer[-1]._plan if outer else None
        self._plan: plan.Loop = plan.Loop(name, limit, parent, shared, advice or plan.Loop.advice)
        self.name = name

    def __enter__(self) -> Loop:
        self._token = _loops.set((*_loops.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _loops.reset(self._token)

    def variable(
        self, name: str, /, initial: Collection | None = None, schema: Schema | None = None, **columns: types.Type
    ) -> LoopVariable:
        """A variable with the columns given, or those of its initial collection; empty in round 0 without one."""
        if schema is not None:
            columns = dict(zip(schema.names, schema.types, strict=True))
        if (initial is None) == (not columns):
            raise IncorrectError(f"variable {name!r} needs either an initial collection or columns")
        if initial is not None and self._plan.encloses(initial.operator.loop):
            raise IncorrectError(
                f"loop {self.name!r}: variable {name!r} begins with a collection that changes with the loop's own rounds; "
                "begin with one from outside"
            )
        schema = Schema(columns) if initial is None else initial.schema
        engine = getattr(initial, "engine", None)
        operator = plan.Variable(schema, name, self._plan, None if initial is None else initial.operator)
        self._plan.variables.append(operator)
        return LoopVariable(engine, operator)

    def leave(self, collection: Collection, title: str | None = None) -> Collection:
        """What a collection of this loop comes to when the loop is at rest; `title` is what its arrangement is called."""
        loop = collection.operator.loop
        if loop is not None and not loop.encloses(self._plan):
            raise IncorrectError(f"loop {self.name!r}: {collection!r} belongs to loop {loop.name!r}, leave that first")
        operator = plan.Leave(collection.schema, collection.operator, self._plan, title)
        self._plan.leaves.append(operator)
        return collection._new(operator)


class LoopVariable(Collection):
    """A collection of a loop, defined in terms of itself and others."""

    def __init__(self, engine: Any, operator: plan.Variable) -> None:
        super().__init__(engine, operator)
        self.variable = operator

    def set(self, definition: Collection) -> None:
        """Say what the variable is in the next round."""
        definitions = self.variable.of.definitions
        loop = definition.operator.loop
        if loop is not None and not loop.encloses(self.variable.of):
            raise IncorrectError(
                f"loop {self.variable.of.name!r}: the definition of {self.variable.name!r} belongs to loop {loop.name!r}; "
                "leave that first"
            )
        if self.variable in definitions:
            raise ConflictError(f"loop {self.variable.of.name!r}: variable {self.variable.name!r} is set already")
        if definition.schema.types != self.schema.types:
            raise IncorrectError(
                f"loop {self.variable.of.name!r}: variable {self.variable.name!r} is {self.schema}, but its definition "
                f"is {definition.schema}"
            )
        definitions[self.variable] = definition.operator
