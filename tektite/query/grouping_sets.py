"""Groups by several sets of keys at once: ROLLUP, CUBE and GROUPING SETS of SQL.

Each set is aggregated on its own, with NULL for the keys that it has not got, and the results are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, lit
from tektite.expr import type_of as expression_type
from tektite.query.aggregation import aggregate
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.query.expression_aggregates import Extraction
from tektite.query.grouped import Grouped, agg_outputs, one_row


class GroupingSets(Grouped):
    """Groups by several sets of keys. Made by `Collection.rollup`, `cube` and `grouping_sets`.

    >>> import tektite as tk
    >>> sales = tk.Engine().values({"shop": ["a", "a", "b"], "amount": [3, 5, 4]})
    >>> sales.rollup("shop").agg(tk.sum("amount")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'amount': 8}, {'shop': 'b', 'amount': 4}, {'shop': None, 'amount': 12}]
    """

    def __init__(self, groups: Grouped, sets: Sequence[Sequence[str]]) -> None:
        super().__init__(groups.collection, groups.keys)
        self.sets = tuple(map(tuple, sets))

    def __repr__(self) -> str:
        shown = ", ".join(f"({', '.join(names)})" for names in self.sets)
        return f"<Grouped by {shown} of {self.collection!r}>"

    def agg(self, *aggregates: Expr | Sequence[Expr], **named: Expr) -> Collection:
        """One row for each group of each set: the key columns, NULL where the set has not got them, then the aggregates.

        >>> import tektite as tk
        >>> sales = tk.Engine().values({"shop": ["a", "b"], "item": ["cup", "cup"], "amount": [3, 4]})
        >>> sales.grouping_sets(["shop"], ["item"]).agg(tk.sum("amount")).sort("shop").collect().to_pylist()[-1]
        {'shop': None, 'item': 'cup', 'amount': 7}
        """
        names = [name for name, _ in self.keys]
        outputs = agg_outputs(self.collection, names, aggregates, named)
        extraction = Extraction(self.collection.schema, names)
        results = [(name, extraction.over_calls(expression)) for name, expression in outputs]
        positions = self.collection.schema.positions
        absent = {name: lit(None, expression_type(key, positions)) for name, key in self.keys}
        parts = []
        for wanted in self.sets:
            chosen = [(name, key) for name, key in self.keys if name in wanted]
            found = aggregate(self.collection, chosen, extraction.calls, one_row(self.collection))
            columns = [(name, col(name) if name in wanted else absent[name]) for name in names]
            parts.append(project(found, [*columns, *((name, col(name)) for name, _ in extraction.calls)]))
        together = parts[0].concat(*parts[1:])
        return project(together, [*((name, col(name)) for name in names), *results])


def rolled_up(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The sets of ROLLUP: all keys, all but the last, and so on to none."""
    return [tuple(names[:count]) for count in range(len(names), -1, -1)]


def cubed(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The sets of CUBE: every choice of keys."""
    choices = range((1 << len(names)) - 1, -1, -1)
    return [tuple(name for at, name in enumerate(names) if choice >> at & 1) for choice in choices]


def listed_sets(sets: Sequence[Any]) -> list[list[Any]]:
    """The members of each set that a program gives to `grouping_sets`."""
    found = [[part] if isinstance(part, str | Expr) else list(part) for part in sets if _is_set(part)]
    if len(found) < len(sets) or not found:
        raise IncorrectError(
            "grouping_sets takes sets of columns, as in grouping_sets(['shop', 'item'], ['shop'], []); an empty one is for "
            f"all rows; not {sets!r}"
        )
    return found


def _is_set(part: Any) -> bool:
    return isinstance(part, str | Expr | list | tuple)
