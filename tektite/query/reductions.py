"""Reductions of an operator's groups: distinct rows, extremes, top rows, and functions of groups.

A group is the rows that agree on the key columns. Equal values are one key, as -0.0 and 0.0 are. The result begins with the key
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, key, rank, text_word
from tektite.expr.aggregate_methods import directions
from tektite.plan import algebra as plan
from tektite.query.columns import (
    ColumnName,
    ColumnNames,
    column_list,
    column_numbers,
    one_column,
    project,
    select,
    with_columns,
    with_equal_keys,
)
from tektite.query.group_functions import TopRows
from tektite.values import types
from tektite.values.schema import Schema

TEXT_WORDS = 6
"""Words of a text, of seven bytes each, that rows are ordered by before the texts themselves are compared."""


def at_least(operator: plan.Operator, times: int) -> plan.Operator:
    """Each row with a multiplicity of at least `times`, once."""
    found = with_equal_keys(operator, range(len(operator.schema.names)))
    return plan.AtLeast(operator.schema, found, times)


def extreme(operator: plan.Operator, of: ColumnName, by: ColumnNames, last: bool) -> plan.Operator:
    """The least value of a column in each group, or the greatest one (`last`). NULL does not count."""
    schema = operator.schema
    column = one_column(schema, of)
    numbers = column_numbers(schema, by)
    keys = [schema.names[c] for c in numbers]
    if column in keys:
        raise IncorrectError(f"column {column!r} is constant in a group by {keys}")
    chosen = select(with_equal_keys(operator, numbers), [*keys, column])
    values = project(chosen, [(name, col(name)) for name in chosen.schema.names], col(column).is_not_null())
    if schema.types[schema.index(column)].interned:
        return top(values, 1, column, keys, last)
    return plan.First(values.schema, values, len(keys), 1, last)


def top(
    operator: plan.Operator, k: int, order_by: ColumnNames, by: ColumnNames, descending: bool | Sequence[bool]
) -> plan.Operator:
    """The first `k` rows of each group in an order (see `Collection.top`). Rows keep their own of several equal values."""
    if not isinstance(k, int) or k < 1:
        raise IncorrectError(f"top takes a positive number of rows, not {k!r}")
    schema = operator.schema
    numbers = column_numbers(schema, by)
    told = {schema.names[c]: f"__key_{c}" for c in numbers if schema.types[c].has_keys}
    keys = [told.get(schema.names[c], schema.names[c]) for c in numbers]
    if not told:
        return _top(operator, k, column_list(order_by), keys, descending)
    wide = with_columns(operator, {told[name]: key(col(name)) for name in told})
    return select(_top(wide, k, column_list(order_by), keys, descending), schema.names)


def _top(
    operator: plan.Operator, k: int, ordering: list[str], keys: list[str], descending: bool | Sequence[bool]
) -> plan.Operator:
    """The first `k` rows of each group, where the keys have one word for equal values."""
    schema = operator.schema
    downs = directions(descending, len(ordering), "top")
    ranks: list[tuple[str, Expr]] = []
    ties = 0
    for i, (name, down) in enumerate(zip(ordering, downs, strict=True)):
        ranks.append((f"__null_{i}", col(name).is_null()))
        if schema.types[schema.index(name)].interned:
            text = key(col(name))
            ranks += [(f"__rank_{i}_{at}", rank(text_word(text, at), down)) for at in range(TEXT_WORDS)]
            ties = len(ranks)
            break
        ranks.append((f"__rank_{i}", rank(col(name), down)))
    rest = [name for name in schema.names if name not in keys]
    named = [[(name, col(name)) for name in names] for names in (keys, rest)]
    ranked = project(operator, [*named[0], *ranks, *named[1]])
    first = plan.First(ranked.schema, ranked, len(keys), k, last=False, ties=ties, order=len(ranks))
    nearest = select(first, schema.names)
    return _top_by_text(nearest, k, ordering, keys, downs) if ties else nearest


def _top_by_text(
    operator: plan.Operator, k: int, ordering: list[str], keys: list[str], downs: Sequence[bool]
) -> plan.Operator:
    """Sorts the texts themselves, because text ids do not sort like text. A group that changes is sorted anew, which is cheap:
    only the rows that may be among the first are left.
    """
    names = operator.schema.names
    kinds = dict(zip(names, operator.schema.types, strict=True))
    columns = {name: kind for name, kind in kinds.items() if name not in keys}
    given = [*keys, *columns]
    order = tuple((given.index(name), down, False) for name, down in zip(ordering, downs, strict=True))
    first = TopRows(k, order, tuple(kinds[name] for name in given), len(keys))
    return select(reduce(operator, keys, columns, first, together=True), names)


def reduce(
    operator: plan.Operator,
    by: ColumnNames,
    columns: Mapping[str, types.Type],
    function: Callable[..., Any],
    together: bool,
) -> plan.Operator:
    """The key columns, and the columns that a function computes: from one group at a time, or from many `together`."""
    schema = operator.schema
    keys = column_numbers(schema, by)
    names = [schema.names[c] for c in keys]
    rest = [name for name in schema.names if name not in names]
    source = select(with_equal_keys(operator, keys), [*names, *rest])
    result = Schema({n: schema.types[c] for n, c in zip(names, keys, strict=True)} | dict(columns))
    return plan.Reduce(result, source, len(keys), function, together)
