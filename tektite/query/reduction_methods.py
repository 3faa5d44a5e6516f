"""The methods of Collection that reduce groups: distinct rows, counts, aggregates, extremes, first rows, functions of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.expr import type_of as expression_type
from tektite.former_names import former_name
from tektite.plan import algebra as plan
from tektite.query import reductions
from tektite.query.columns import ColumnName, ColumnNames, column_list, column_numbers, is_shown_apart, one_column
from tektite.query.outputs import flat, outputs_of
from tektite.query.own_columns import named_columns
from tektite.unknown_options import GROUP_OPTIONS, explains_options
from tektite.values.arguments import whole_number
from tektite.values.type_names import TypeLike, as_type

if TYPE_CHECKING:
    from tektite.query.grouped import Grouped
    from tektite.query.limits import Sorted


from tektite.query.derived import check_function, derived

if TYPE_CHECKING:
    from tektite.query.collection import Collection

OrderBy = str | Expr | Sequence[str | Expr]
"""Sort keys: a column's name, an expression, or several of them."""


@explains_options
class ReductionMethods:
    """Reductions of groups of rows."""

    operator: plan.Operator

    @property
    def _collection(self) -> Collection:
        """The collection that has these methods."""
        raise NotImplementedError

    def distinct(self) -> Collection:
        """Each row once, whatever its multiplicity.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.distinct().sort("x").collect().to_pydict()
        {'x': [1, 2, None]}
        """
        return self.threshold(1)

    def unique(self, *columns: ColumnNames, subset: ColumnNames = ()) -> Collection:
        """Each row once; or, of the rows that agree on some columns, one: which one is unspecified, but always the same.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> shops = engine.install("shops", sales.unique("shop").select("shop"))
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> sorted(shops.rows())
        [('north',), ('south',)]
        """
        names = column_list([*flat(columns), *column_list(subset)])
        if not names:
            return self.distinct()
        rest = [name for name in self._collection.schema.names if name not in names]
        column_numbers(self._collection.schema, names)
        if not rest:
            return self.distinct()
        return derived(reductions.top(self.operator, 1, [], names, False), self._collection)

    def threshold(self, times: int) -> Collection:
        """Each row with a multiplicity of at least `times`, once.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.threshold(2).collect().to_pydict()
        {'x': [2]}
        """
        least = whole_number(times, 1)
        if least is None:
            raise IncorrectError(f"threshold takes a positive number of times, not {times!r}")
        if any(map(is_shown_apart, self.operator.schema.types)):
            from tektite.query.grouped import each_once

            return each_once(self._collection, least)
        return derived(reductions.at_least(self.operator, least), self._collection)

    def count(self, by: ColumnNames = (), name: str = "count") -> Collection:
        """The number of rows of each group.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"]})
        >>> sales.count(by="shop").sort("shop").collect().to_pylist()
        [{'shop': 'a', 'count': 2}, {'shop': 'b', 'count': 1}]
        >>> sales.count().collect().to_pydict()
        {'count': [3]}
        """
        return self.group_by(by).count(name)

    def group_by(self, *by: str | Expr | Sequence[str | Expr], **named: Any) -> Grouped:
        """Groups of rows that agree on some columns and expressions. Without any, all rows are one group, which exists while
        there are rows.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "day": tk.Date, "amount": tk.Int})
        >>> sales.group_by("shop", month=tk.col("day").dt.truncate("month")).agg(total=tk.sum("amount"))
        <Collection (shop: string, month: date, total: int)>
        """
        from tektite.query.grouped import Grouped

        found = self._collection
        for name, value in named.items():
            if isinstance(value, bool) and name in GROUP_OPTIONS:
                raise IncorrectError(f"group_by has no option {name!r}: {GROUP_OPTIONS[name]}")
            if not isinstance(value, str | Expr):
                raise IncorrectError(
                    f"group_by: {name}={value!r} is a constant, which all rows agree on; a key is a column or an expression"
                )
        keys = named_columns(found, outputs_of("group_by", found.schema, by, named), "group_by")
        names = [name for name, _ in keys]
        if len(set(names)) < len(names):
            raise IncorrectError(f"a column is named twice in {names}")
        source, keys = self._collection._with_windows(keys)
        for _, expression in keys:
            expression_type(expression, source.schema.positions)
        return Grouped(source, keys)

    def rollup(self, *by: str | Expr | Sequence[str | Expr], **named: Any) -> Grouped:
        """Groups by all keys, by all but the last, and so on to one group of all rows: subtotals and a total. It is SQL's GROUP
        BY ROLLUP; keys that a row is not grouped by are NULL.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "b"], "amount": [3, 4]})
        >>> sales.rollup("shop").agg(tk.sum("amount")).sort("shop").collect().to_pydict()
        {'shop': ['a', 'b', None], 'amount': [3, 4, 7]}
        """
        from tektite.query.grouping_sets import GroupingSets, rolled_up

        groups = self.group_by(*by, **named)
        return GroupingSets(groups, rolled_up([name for name, _ in groups.keys]))

    def cube(self, *by: str | Expr | Sequence[str | Expr], **named: Any) -> Grouped:
        """Groups by every choice of the keys, down to one group of all rows. It is SQL's GROUP BY CUBE.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "b"], "item": ["cup", "cup"], "amount": [3, 4]})
        >>> sales.cube("shop", "item").agg(tk.sum("amount")).collect().num_rows
        6
        """
        from tektite.query.grouping_sets import GroupingSets, cubed

        groups = self.group_by(*by, **named)
        return GroupingSets(groups, cubed([name for name, _ in groups.keys]))

    def grouping_sets(self, *sets: Sequence[str | Expr]) -> Grouped:
        """Groups by each of some sets of keys, an empty one for a group of all rows. It is SQL's GROUP BY GROUPING SETS.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "b"], "item": ["cup", "cup"], "amount": [3, 4]})
        >>> sales.grouping_sets(["shop"], []).agg(tk.sum("amount")).sort("shop").collect().to_pydict()
        {'shop': ['a', 'b', None], 'amount': [3, 4, 7]}
        """
        from tektite.query.grouping_sets import GroupingSets, listed_sets

        chosen = listed_sets(sets)
        for member in (member for part in chosen for member in part):
            if not isinstance(member, str | Expr):
                raise IncorrectError(f"grouping_sets takes sets of columns and expressions, not {member!r}")
        known = {
            member if isinstance(member, str) else member.fingerprint: member for part in chosen for member in part
        }
        groups = self.group_by(*known.values())
        names = dict(zip(known, (name for name, _ in groups.keys), strict=True))
        return GroupingSets(
            groups, [[names[m if isinstance(m, str) else m.fingerprint] for m in part] for part in chosen]
        )

    def agg(self, *aggregates: Expr | Sequence[Expr], **named: Expr) -> Collection:
        """Aggregates of all rows, as one row; there is one even if the collection is empty, as in SQL.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> view = engine.install("total", sales.agg(tk.col("amount").sum(), n=tk.count()))
        >>> _ = engine.advance()
        >>> view.rows()
        [(None, 0)]
        >>> _ = sales.insert([("north", 3), ("south", 4)])
        >>> view.rows()
        [(7, 2)]
        """
        from tektite.query.grouped import aggregated

        return aggregated(self._collection, (), aggregates, named, always=True)

    def min(self, column: ColumnName, by: ColumnNames = ()) -> Collection:
        """The least value of a column in each group. NULL does not count.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
        >>> sales.min("amount", by="shop").sort("shop").collect().to_pylist()
        [{'shop': 'a', 'amount': 3}, {'shop': 'b', 'amount': 4}]
        """
        return self._extreme(column, by, last=False)

    def max(self, column: ColumnName, by: ColumnNames = ()) -> Collection:
        """The greatest value of a column in each group. NULL does not count.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
        >>> sales.max("amount", by="shop").sort("shop").collect().to_pylist()
        [{'shop': 'a', 'amount': 5}, {'shop': 'b', 'amount': 4}]
        """
        return self._extreme(column, by, last=True)

    def _extreme(self, column: ColumnName, by: ColumnNames, last: bool) -> Collection:
        found = derived(reductions.extreme(self.operator, column, by, last), self._collection)
        return self._with_shown_keys(found, by, one_column(self.operator.schema, column))

    def _with_shown_keys(self, found: Collection, by: ColumnNames, counted: str | None = None) -> Collection:
        """Rows that begin with the keys of groups, with keys that the groups have, from rows in which the column `counted` is not
        NULL.
        """
        schema = self.operator.schema
        keys = [schema.names[at] for at in column_numbers(schema, by)]
        if not any(is_shown_apart(schema.types[schema.index(key)]) for key in keys):
            return found
        from tektite.query.grouped import with_shown_keys

        rows = self._collection if counted is None else self._collection.filter(col(counted).is_not_null())
        return with_shown_keys(found, rows, keys)

    def top_k(self, k: int, by: OrderBy, per: ColumnNames = ()) -> Collection:
        """The `k` rows with the greatest values of some columns or expressions, of each group or of all. NULLs count as least.

        Which of several rows with equal values are chosen is unspecified, but always the same.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> largest = engine.install("largest", sales.top_k(1, by="amount", per="shop"))
        >>> smallest = engine.install("smallest", sales.bottom_k(2, by="amount"))
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> sorted(largest.rows()), sorted(smallest.rows())
        ([('north', 4), ('south', 5)], [('north', 3), ('north', 4)])
        """
        from tektite.query.limits import first_of_groups

        return first_of_groups(self._collection, k, by, per, True, "top_k")

    def bottom_k(self, k: int, by: OrderBy, per: ColumnNames = ()) -> Collection:
        """The `k` rows with the least values of some columns or expressions, of each group or of all. NULLs count as greatest.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
        >>> sales.bottom_k(1, by="amount", per="shop").sort("shop").collect().to_pylist()
        [{'shop': 'a', 'amount': 3}, {'shop': 'b', 'amount': 4}]
        """
        from tektite.query.limits import first_of_groups

        return first_of_groups(self._collection, k, by, per, False, "bottom_k")

    def sort(self, *by: str | Expr | Sequence[str | Expr], descending: bool | Sequence[bool] = False,
             nulls_last: bool = True) -> Sorted:  # fmt: skip
        """The same rows with an order, which counts for `limit`, for `collect` and for reading the view that it becomes.
        `filter`, `select`, `with_columns`, `drop` and `rename` keep it; what is computed otherwise from them has none.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
        >>> view = engine.install("first", sales.sort("shop", "amount", descending=[False, True]).limit(1))
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> view.rows()
        [('north', 4)]
        """
        from tektite.query.limits import sorted_by

        return sorted_by(self._collection, by, descending, nulls_last)

    def limit(self, n: int, offset: int = 0) -> Collection:
        """At most `n` rows: which ones is unspecified, but always the same. `sort(...).limit(n)` gives the first of an order.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.limit(2).count().collect().to_pydict()
        {'count': [2]}
        """
        from tektite.query.limits import checked, limited

        return limited(self._collection, (), (), *checked(n, offset))

    @former_name("bottom_k(k, by=, per=), or top_k for the greatest")
    def top(
        self, k: int, order_by: ColumnNames, by: ColumnNames = (), descending: bool | Sequence[bool] = False
    ) -> Collection:
        """The first `k` rows of each group in the order of some columns, the least first. NULLs come last."""
        return derived(reductions.top(self.operator, k, order_by, by, descending), self._collection)

    def reduce(self, function: Callable[..., Any], by: ColumnNames = (), **columns: TypeLike) -> Collection:
        """The key columns, and the columns that a pure Python function computes for each group: `function(key, rows)`.

        `rows` is a list of (row without the key columns, multiplicity). The function returns a list of tuples, one value
        for each column given.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
        >>> def spread(key, rows):
        ...     amounts = [row[0] for row, times in rows]
        ...     return [(max(amounts) - min(amounts),)]
        >>> sales.reduce(spread, by="shop", spread=tk.Int).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'spread': 2}, {'shop': 'b', 'spread': 0}]
        """
        check_function(function, "reduce")
        given = {name: as_type(type, f"reduce: {name}: ") for name, type in columns.items()}
        found = derived(reductions.reduce(self.operator, by, given, function, together=False), self._collection)
        return self._with_shown_keys(found, by)
