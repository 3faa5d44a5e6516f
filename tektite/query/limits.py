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
from tektite.query.derived import derived
from tektite.query.outputs import flat, outputs_of
from tektite.query.own_columns import named_columns
from tektite.query.reduction_methods import OrderBy
from tektite.query.row_order import sorted_rows
from tektite.query.window_calls import Ordering


class Sorted(Collection):
    """A collection with an order, which counts for `limit`, for `collect`, and for reading the view that it becomes. `filter`,
    `select` and `with_columns` keep it, as long as its columns are there; whatever else is computed from it has no order.
    """

    def __init__(self, engine: Any, operator: plan.Operator, order: Sequence[tuple[Expr, bool, bool]]) -> None:
        super().__init__(engine, operator)
        self.order = tuple(order)

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
        found = first_rows(self, self.order, (), *checked(n, offset))
        return Sorted(getattr(self, "engine", None), found.operator, self.order)

    def filter(self, *predicates: Expr | Sequence[Expr], **equal: Any) -> Collection:
        """Some of the rows, in the same order."""
        return self._in_order(super().filter(*predicates, **equal), {})

    def select(self, *columns: str | Expr | Sequence[str | Expr], **named: Any) -> Collection:
        """Columns by name and by expression, in the same order of rows."""
        found = super().select(*columns, **named)
        kept = {column for column in flat(columns) if isinstance(column, str)}
        changed = {name: None for name in self.schema.names if name not in kept and "*" not in kept}
        return self._in_order(found, changed)

    def with_columns(self, *columns: Expr | Sequence[Expr], **named: Any) -> Collection:
        """More columns, in the same order of rows."""
        given = outputs_of("with_columns", self.schema, columns, named)
        return self._in_order(super().with_columns(*columns, **named), dict(given))

    def _in_order(self, found: Collection, changed: Mapping[str, Any]) -> Collection:
        """A collection of the same rows in this order, unless columns that the order reads have changed or gone."""
        read = {name for part, _, _ in self.order for name in part.columns()}
        if read & changed.keys() or not read <= set(found.schema.names):
            return LostOrder(getattr(found, "engine", None), found.operator)
        return Sorted(getattr(found, "engine", None), found.operator, self.order)

    def collect(self) -> pa.Table:
        """The rows in their order; see `Collection.collect`.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [2, None, 3]}).sort("x", descending=True).collect().to_pydict()
        {'x': [3, 2, None]}
        """
        source, order = order_columns(Collection(getattr(self, "engine", None), self.operator), self.order)
        found: pa.Table = sorted_rows(source.collect(), [(part.column, part) for part in order])
        return found.select(list(self.schema.names))


class LostOrder(Collection):
    """What is computed from sorted rows without the columns that they are sorted by."""

    def limit(self, n: int, offset: int = 0) -> Collection:
        """Refused: the first rows would be any."""
        raise IncorrectError(
            "limit: the columns of sort(...) are gone or changed, so that there is no order: call limit first"
        )


def row_order(collection: Collection) -> Callable[[pa.Table], pa.Table] | None:
    """The function that puts a table of a collection's rows in the order of `sort`; None without an order by columns."""
    if not isinstance(collection, Sorted) or any(part.op != "col" for part, _, _ in collection.order):
        return None
    columns = [(part.params[0], Ordering(part.params[0], down, nulls)) for part, down, nulls in collection.order]
    return lambda table: sorted_rows(table, columns)


def sorted_by(collection: Collection, by: Any, descending: Any, nulls_last: Any) -> Sorted:
    """The collection with an order."""
    order = order_parts(collection, by, descending, "sort")
    if not isinstance(nulls_last, bool):
        raise IncorrectError(f"sort: nulls_last is True or False, not {nulls_last!r}")
    engine = getattr(collection, "engine", None)
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
    for number, what in ((n, "limit"), (offset, "offset")):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise IncorrectError(f"limit: the {what} is a number of rows, not {number!r}")
    return n, offset


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
        found = found.concat(top(offset).negate())
    return found.select(list(names)) if helpers else found


def first_of_groups(
    collection: Collection, k: int, by: OrderBy, per: ColumnNames, descending: bool, verb: str
) -> Collection:
    """The first `k` rows of each group in an order; see `Collection.top_k`."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise IncorrectError(f"{verb} takes a positive number of rows, not {k!r}")
    schema = collection.schema
    groups = [schema.names[c] for c in column_numbers(schema, per)]
    return first_rows(collection, order_parts(collection, by, descending, verb), groups, k)
