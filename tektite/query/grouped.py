"""Groups of a collection's rows, and what `agg` makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, type_of
from tektite.expr.other_names import advice
from tektite.plan import algebra as plan
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.aggregation import aggregate
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.query.column_aggregates import joined_parts
from tektite.query.columns import is_shown_apart
from tektite.query.derived import derived
from tektite.query.expression_aggregates import Extraction
from tektite.query.other_names import OF_GROUPS
from tektite.query.outputs import Outputs, aggregates_of
from tektite.query.own_columns import named_columns
from tektite.query.sql_methods import with_sql
from tektite.unknown_options import explains_options
from tektite.values import types
from tektite.values.schema import Schema


@explains_options
class Grouped:
    """The groups of a collection's rows, to be aggregated. Made by `Collection.group_by`.

    >>> import tektite as tk
    >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
    >>> sales.group_by("shop")
    <Grouped by (shop) of <Collection (shop: string, amount: int)>>
    """

    def __init__(self, collection: Collection, keys: Sequence[tuple[str, Expr]]) -> None:
        self.collection = collection
        self.keys = tuple(keys)

    def __repr__(self) -> str:
        return f"<Grouped by ({', '.join(name for name, _ in self.keys)}) of {self.collection!r}>"

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"groups have no {name!r}{self._instead_of(name)}")

    def _instead_of(self, name: str) -> str:
        if name in self.__dict__.get("collection", self).schema.names:
            return f"; use agg(tk.sum({name!r})) or another aggregate of the column"
        return advice(name, OF_GROUPS, type(self), "use agg(...), which takes every aggregate")

    def __getitem__(self, name: object) -> NoReturn:
        """Refused: what is computed of a column is said by `agg`."""
        raise IncorrectError(f"groups[{name!r}]: use agg(tk.sum({name!r})) or another aggregate of the column")

    def __iter__(self) -> NoReturn:
        """Refused: groups have no rows by themselves."""
        raise IncorrectError(
            "groups have no rows to go through: use agg(...).collect(), or Collection.reduce(function, by=...)"
        )

    def __len__(self) -> NoReturn:
        """Refused: groups are not counted before they are computed."""
        raise IncorrectError("groups have no length: use agg(tk.count()).count().collect()")

    def __bool__(self) -> bool:
        return True

    def agg(self, *aggregates: Expr | Sequence[Expr], **named: Expr) -> Collection:
        """One row for each group: the key columns, then the aggregates, which may be part of expressions. Linear aggregates
        (count, sum, mean) share one pass. An aggregate without a name is called like the column that it is taken of.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> totals = sales.group_by("shop").agg(
        ...     tk.col("amount").sum(), n=tk.count(), range=tk.max("amount") - tk.min("amount")
        ... )
        >>> totals
        <Collection (shop: string, amount: int, n: int, range: int)>
        >>> view = engine.install("totals", totals)
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> sorted(view.rows())
        [('north', 7, 2, 1), ('south', 5, 1, 0)]
        """
        return aggregated(self.collection, self.keys, aggregates, named)

    def count(self, name: str = "count") -> Collection:
        """The number of rows of each group.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
        >>> sales.group_by("shop").count("n").sort("shop").collect().to_pylist()
        [{'shop': 'a', 'n': 2}, {'shop': 'b', 'n': 1}]
        """
        return self.agg(Expr("aggregate", (), ("count",)).alias(name))


def aggregated(
    collection: Collection,
    keys: Sequence[tuple[str, Expr]],
    aggregates: Sequence[Any],
    named: dict[str, Any],
    always: bool = False,
) -> Collection:
    """One row for each group. Without keys there is one row, while there are rows, or `always`."""
    names = [name for name, _ in keys]
    collection, outputs = with_sql(collection, agg_outputs(collection, names, aggregates, named))
    for name, expression in outputs:
        if any(node.op in ("over", "window") for node in expression.walk()):
            raise IncorrectError(
                f"agg: {name} is {expression}, a window function, which has a value for each row: call agg(...) first, and then "
                "select(...) or with_columns(...) with .over(...)"
            )
    extraction = Extraction(collection.schema, names)
    results = [(name, extraction.over_calls(expression)) for name, expression in outputs]
    return _groups(collection, keys, extraction.calls, results, one_row(collection) if always else None)


def each_once(collection: Collection, times: int = 1) -> Collection:
    """Each row that is there so many times, once. Of equal values that differ, such as `1 month` and `30 days`, a row has the
    least of those there.
    """
    keys = [(name, col(name)) for name in collection.schema.names]
    if times == 1:
        return _groups(collection, keys, [], [], None)
    counted = _groups(collection, keys, [("#times", AggregateCall("count", None))], [("#times", col("#times"))], None)
    return project(counted, keys, col("#times") >= times)


def with_shown_keys(found: Collection, rows: Collection, keys: Sequence[str]) -> Collection:
    """Rows that begin with the keys of groups of `rows`, with the least of the equal values that each group has."""
    shown = _shown([(key, col(key)) for key in keys], rows)
    least = aggregate(rows, [(key, col(key)) for key in keys], list(shown.values()))
    joined = joined_parts([found, least], list(keys), one_to_one=False)
    return project(joined, [(name, col(shown[name][0] if name in shown else name)) for name in found.schema.names])


def _groups(
    collection: Collection,
    keys: Sequence[tuple[str, Expr]],
    calls: Sequence[tuple[str, AggregateCall]],
    results: Outputs,
    unit: Collection | None,
) -> Collection:
    """One row for each group: the keys, as they are in some row, then what is computed of aggregates."""
    shown = _shown(keys, collection)
    found = aggregate(collection, keys, [*calls, *shown.values()], unit)
    return project(found, [*((name, col(shown[name][0] if name in shown else name)) for name, _ in keys), *results])


def _shown(keys: Sequence[tuple[str, Expr]], collection: Collection) -> dict[str, tuple[str, AggregateCall]]:
    """The aggregates, with names, that give what is shown for keys of which equal ones differ."""
    positions = collection.schema.positions
    apart = [(name, key) for name, key in keys if is_shown_apart(type_of(key, positions))]
    return {name: (f"#shown {name}", AggregateCall("min", key)) for name, key in apart}


def agg_outputs(
    collection: Collection, keys: Sequence[str], aggregates: Sequence[Any], named: dict[str, Any]
) -> Outputs:
    """The aggregates that `agg` computes beside the keys, by name."""
    outputs = named_columns(collection, aggregates_of(aggregates, named), "agg")
    for name, _ in outputs:
        if name in keys:
            raise IncorrectError(f"agg: {name!r} is a key column; choose another name")
    return outputs


def one_row(collection: Collection) -> Collection:
    """A collection of exactly one row."""
    return derived(plan.Rows(Schema({"#unit": types.Int}), np.zeros((1, 1), np.int64)), collection)
