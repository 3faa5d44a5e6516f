"""The methods of `Collection` that put collections of the same columns together: unions, intersections and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.plan import algebra as plan
from tektite.query.derived import check_collection, derived
from tektite.unknown_options import explains_options
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.query.collection import Collection


@explains_options
class SetMethods:
    """Methods that combine collections with the same columns."""

    operator: plan.Operator

    @property
    def _collection(self) -> Collection:
        """The collection that has these methods."""
        raise NotImplementedError

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        raise NotImplementedError

    def concat(self, *others: Collection) -> Collection:
        """All rows of all collections; multiplicities add up. Columns are matched by position and must have the same types.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.concat(rows.filter(tk.col("x") == 1)).sort("x").collect().to_pydict()
        {'x': [1, 1, 2, 2, None]}
        """
        for other in others:
            check_collection(other, "concat")
            if other.schema.types != self.schema.types:
                raise IncorrectError(f"concat needs the same column types: {self!r} and {other!r}")
        return derived(
            plan.Concat(self.schema, (self.operator, *(o.operator for o in others))), self._collection, *others
        )

    def union(self, *others: Collection, distinct: bool = False) -> Collection:
        """All rows of all collections, or each different row once (`distinct`, SQL's UNION). Columns are matched by name.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        >>> every, different = engine.install("every", a.union(b)), engine.install("different", a.union(b, distinct=True))
        >>> _ = a.insert([(1,), (2,)])
        >>> _ = b.insert([(2,)])
        >>> sorted(every.rows()), sorted(different.rows())
        ([(1,), (2,), (2,)], [(1,), (2,)])
        """
        from tektite.query.set_operations import by_name

        found = self.concat(*(by_name(self._collection, other, "union") for other in others))
        return found.distinct() if distinct else found

    def intersect(self, other: Collection, distinct: bool = True) -> Collection:
        """The different rows that both collections have; without `distinct`, as often as both have them (SQL's INTERSECT ALL).
        Columns are matched by name. NULL counts as equal to NULL.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> a, b = engine.values({"x": [1, 2, 2]}), engine.values({"x": [2, 2, 3]})
        >>> a.intersect(b).collect().to_pydict(), a.intersect(b, distinct=False).collect().to_pydict()
        ({'x': [2]}, {'x': [2, 2]})
        """
        from tektite.query.set_operations import by_name, compare

        return compare(self._collection, by_name(self._collection, other, "intersect"), "intersect", not distinct)

    def except_(self, other: Collection, distinct: bool = True) -> Collection:
        """The different rows that the other collection has not; without `distinct`, rows as often as they are here more often
        than there (SQL's EXCEPT ALL). Columns are matched by name. NULL counts as equal to NULL.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        >>> view = engine.install("rest", a.except_(b))
        >>> _ = a.insert([(1,), (1,), (2,)])
        >>> _ = b.insert([(2,)])
        >>> view.rows()
        [(1,)]
        """
        from tektite.query.set_operations import by_name, compare

        return compare(self._collection, by_name(self._collection, other, "except_"), "except", not distinct)

    def negate(self) -> Collection:
        """The same rows with negated multiplicities. Use `concat` to subtract them from another collection. Of rows that occur a
        negative number of times, `min` and `max` see nothing.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, 2, 2, None]})
        >>> rows.concat(rows.filter(tk.col("x") == 2).negate()).sort("x").collect().to_pydict()
        {'x': [1, None]}
        """
        return derived(plan.Negate(self.schema, self.operator, contained=False), self._collection)
