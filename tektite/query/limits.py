"""The first rows of an order: `sort(...).limit(...)`, `top_k` and `bottom_k`, and SQL's ORDER BY with LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, lit
from tektite.expr.aggregate_methods import directions, expressions_of
from tektite.plan import algebra as plan
from tektite.query import reductions
from tektite.query.builders import filtered
from tektite.query.collection import Collection
from tektite.query.columns import ColumnNames, column_numbers
from tektite.query.derived import derived, subtracted
from tektite.query.outputs import has_aggregate, outputs_of
from tektite.query.own_columns import named_columns
from tektite.query.reduction_methods import OrderBy
from tektite.query.row_order import sorted_rows
from tektite.query.window_calls import Ordering
from tektite.unknown_options import explains_options
from tektite.values.arguments import whole_number


@explains_options
class Sorted(Collection):
    """A collection with an order, which counts for `limit`, for `collect`, and for reading the view that it becomes. `filter`,
    `select`, `with_columns`, `drop` and `rename` keep it; whatever else is computed from it has no order.
    """

    def __init__(
        self, engine: Any, operator: plan.Operator, order: Sequence[tuple[Expr, bool, bool]],
        ordered: Collection | None = None, is_limited: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(engine, operator)
        self.order = tuple(order)
        """Expressions of the columns of `ordered`, each with whether it descends and whether NULLs come first."""
        self.ordered = Collection(engine, operator) if ordered is None else ordered
        """The same rows, with columns that the order needs and that are not selected."""
        self.is_limited = is_limited

    def limit(self, n: int, offset: int = 0) -> Sorted:
        """The first `n` rows in the order, behind the first `offset` ones.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> view = engine.install("second", sales.sort("amount", descending=True).limit(1, offset=1))
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> view.rows()
        [('north', 4)]
        """
        found = first_rows(self.ordered, self.order, (), *checked(n, offset))
        return self._shown(found, list(self.schema.names), is_limited=True)

    def filter(self, *predicates: Expr | Sequence[Expr], **equal: Any) -> Collection:
        """Some of the rows, in the same order."""
        super().filter(*predicates, **equal)  # what is not selected cannot be asked for
        return self._shown(self.ordered.filter(*predicates, **equal), list(self.schema.names))

    def select(self, *columns: str | Expr | Sequence[str | Expr], **named: Any) -> Collection:
        """Columns by name and by expression, in the same order of rows."""
        outputs = named_columns(self, outputs_of("select", self.schema, columns, named), "select")
        return self._projected(super().select(*columns, **named), outputs)

    def with_columns(self, *columns: Expr | Sequence[Expr], **named: Any) -> Collection:
        """More columns, in the same order of rows."""
        new = dict(named_columns(self, outputs_of("with_columns", self.schema, columns, named), "with_columns"))
        given = {name: col(name) for name in self.schema.names} | new
        return self._projected(super().with_columns(*columns, **named), list(given.items()))

    def rename(self, names: Mapping[str, str] | None = None, /, **new_names: str) -> Collection:
        """Columns under other names, in the same order of rows."""
        found = super().rename(names, **new_names)
        return self._projected(found, list(zip(found.schema.names, map(col, self.schema.names), strict=True)))

    def _projected(self, found: Collection, outputs: Sequence[tuple[str, Expr]]) -> Collection:
        """Other columns of the same rows. Those that the order reads go along, under names of their own where they are gone."""
        engine = self.engine
        if any(has_aggregate(value) for _, value in outputs):
            return found  # one row for all of them
        shown = {value.params[0]: col(name) for name, value in reversed(outputs) if value.op == "col"}
        if all(shown.keys() >= set(part.columns()) for part, _, _ in self.order):
            renamed = [
                (part.replaced(lambda node: shown[node.params[0]] if node.op == "col" else None), down, nulls)
                for part, down, nulls in self.order
            ]
            return Sorted(engine, found.operator, renamed, None, self.is_limited)
        kept = {f"#by{at}": part for at, (part, _, _) in enumerate(self.order)}
        ordered = self.ordered.select(**dict(outputs), **kept)
        order = [(col(f"#by{at}"), down, nulls) for at, (_, down, nulls) in enumerate(self.order)]
        return Sorted(engine, found.operator, order, ordered, self.is_limited)

    def _shown(self, ordered: Collection, names: list[str], is_limited: bool = False) -> Sorted:
        """Some of the rows of `ordered`, with the columns of this collection."""
        engine = self.engine
        limited_before = self.is_limited or is_limited
        if ordered.schema.names == tuple(names):
            return Sorted(engine, ordered.operator, self.order, None, limited_before)
        return Sorted(engine, ordered.select(names).operator, self.order, ordered, limited_before)

    def collect(self) -> pa.Table:
        """The rows in their order; see `Collection.collect`.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [2, None, 3], "y": [1, 2, 3]}).sort("x", descending=True).select("y").collect().to_pydict()
        {'y': [3, 1, 2]}
        """
        source, order = order_columns(self.ordered, self.order)
        found: pa.Table = sorted_rows(source.collect(), [(part.column, part) for part in order])
        return found.select(list(self.schema.names))


def row_order(name: str, collection: Collection) -> Callable[[pa.Table], pa.Table] | None:
    """The function that puts a table of a view's rows in the order of `sort`; None without an order. An order by something that
    is no column of the view is refused, unless it has said by a limit which rows there are.
    """
    if not isinstance(collection, Sorted):
        return None
    columns = [
        (part.params[0], Ordering(part.params[0], down, nulls))
        for part, down, nulls in collection.order
        if part.op == "col" and part.params[0] in collection.schema.names
    ]
    if len(columns) == len(collection.order):
        return lambda table: sorted_rows(table, columns)
    if collection.is_limited:
        return None
    raise IncorrectError(
        f"view {name!r}: sort(...) of a view takes its columns: keep them in select, or sort what you read"
    )


def sorted_by(collection: Collection, by: Any, descending: Any, nulls_last: Any) -> Sorted:
    """The collection with an order."""
    order = order_parts(collection, by, descending, "sort")
    if not isinstance(nulls_last, bool):
        raise IncorrectError(f"sort: nulls_last is True or False, not {nulls_last!r}")
    engine = collection.engine
    return Sorted(engine, collection.operator, [(part, down, not nulls_last) for part, down, _ in order])


def order_parts(collection: Collection, by: Any, descending: Any, verb: str) -> list[tuple[Expr, bool, bool]]:
    """An order by columns and expressions, in directions; NULLs come last."""
    parts = expressions_of(by, verb)
    if not parts:
        raise IncorrectError(f"{verb} needs columns to order by")
    for part in parts:
        if part.op == "col":
            collection.schema.index(part.params[0])
    parts = tuple([part for _, part in named_columns(collection, [("", part) for part in parts], verb)])
    return [(part, down, False) for part, down in zip(parts, directions(descending, len(parts), verb), strict=True)]


def checked(n: Any, offset: Any = 0) -> tuple[int, int]:
    """A number of rows and an offset. Raises if they are none."""
    found = whole_number(n, 0), whole_number(offset, 0)
    for number, given, what in zip(found, (n, offset), ("limit", "offset"), strict=True):
        if number is None:
            raise IncorrectError(f"limit: the {what} is a number of rows, not {given!r}")
    return found  # type: ignore[return-value]


def first_rows(
    collection: Collection, order: Sequence[tuple[Expr, bool, bool]], by: Sequence[str], limit: int, offset: int = 0
) -> Collection:
    """The rows of each group in an order by expressions, between an offset and a limit."""
    source, columns = order_columns(collection, order)
    found = limited(source, columns, by, limit, offset)
    return found if source is collection else found.select(list(collection.schema.names))


def order_columns(
    collection: Collection, order: Sequence[tuple[Expr, bool, bool]]
) -> tuple[Collection, list[Ordering]]:
    """A collection with columns for the expressions of an order, and the order by columns."""
    helpers = {f"#order{at}": part for at, (part, _, _) in enumerate(order) if part.op != "col"}
    columns = [
        Ordering(part.params[0] if part.op == "col" else f"#order{at}", down, nulls)
        for at, (part, down, nulls) in enumerate(order)
    ]
    return (collection.with_columns(**helpers) if helpers else collection), columns


def limited(
    collection: Collection, order: Sequence[Ordering], by: Sequence[str], limit: int | None, offset: int
) -> Collection:
    """The rows of each group in an order by columns, between an offset and a limit."""
    names = collection.schema.names
    if limit == 0:
        return filtered(collection, lit(False))
    columns: list[str] = []
    descending = []
    helpers = {}
    for at, part in enumerate(order):
        if part.nulls_first:
            helpers[f"#null{at}"] = col(part.column).is_not_null()
            columns.append(f"#null{at}")
            descending.append(False)
        if part.column not in columns and part.column not in by:
            columns.append(part.column)
            descending.append(part.descending)
    source = collection.with_columns(**helpers) if helpers else collection

    def top(k: int) -> Collection:
        return derived(reductions.top(source.operator, k, columns, list(by), descending), source)

    found = source if limit is None else top(offset + limit)
    if offset:
        found = subtracted(top(offset), found)
    return found.select(list(names)) if helpers else found


def first_of_groups(
    collection: Collection, k: int, by: OrderBy, per: ColumnNames, descending: bool, verb: str
) -> Collection:
    """The first `k` rows of each group in an order; see `Collection.top_k`."""
    rows = whole_number(k, 1)
    if rows is None:
        raise IncorrectError(f"{verb} takes a positive number of rows, not {k!r}")
    schema = collection.schema
    groups = [schema.names[c] for c in column_numbers(schema, per)]
    return first_rows(collection, order_parts(collection, by, descending, verb), groups, rows)
