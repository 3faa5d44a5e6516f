"""Joins of two operators: inner, left, semi, anti, and by a bound that moves.

Key columns are given by position. Keys are compared as words, except floats: these are compared as numbers, through key columns
beside the values, in which -0.0 is 0.0. NULL equals nothing, unless `nulls_match`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tektite.errors import IncorrectError
from tektite.expr import col, lit, rank
from tektite.plan import algebra as plan
from tektite.query.columns import Columns, Numbers, column_numbers, select, with_columns
from tektite.query.reductions import at_least
from tektite.values import types
from tektite.values.schema import Schema

On = str | tuple[str, str] | Sequence[str | tuple[str, str]]
"""A column, a pair (left column, right column), or several of these."""


def key_pairs(left: Schema, right: Schema, on: On, verb: str) -> tuple[Numbers, Numbers]:
    """The columns of both sides that `on` pairs. `verb` is what errors call the operation."""
    if isinstance(on, str) or (isinstance(on, tuple) and len(on) == 2 and all(isinstance(o, str) for o in on)):
        on = [on]  # type: ignore[list-item]
    pairs = [(o, o) if isinstance(o, str) else o for o in on]
    mine = tuple(left.index(a) for a, _ in pairs)
    theirs = tuple(right.index(b) for _, b in pairs)
    for a, b in zip(mine, theirs, strict=True):
        if left.types[a] != right.types[b]:
            raise IncorrectError(
                f"{verb}: {left.names[a]!r} is {left.types[a]} and {right.names[b]!r} is {right.types[b]}; "
                "cast one of them"
            )
    if len(set(mine)) < len(mine) or len(set(theirs)) < len(theirs):
        raise IncorrectError(f"{verb}: a column is named twice in {on}")
    return mine, theirs


def joined_names(left: Schema, right: Schema, keys: Numbers) -> dict[int, str]:
    """The names in the result of the right side's columns, except its keys. A name that is taken gets `_right`."""
    names: dict[int, str] = {}
    taken = set(left.names)
    for c, name in enumerate(right.names):
        if c not in keys:
            while name in taken:
                name += "_right"
            taken.add(name)
            names[c] = name
    return names


def inner_join(
    left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers, nulls_match: bool = False
) -> plan.Operator:
    """Pairs of rows with equal keys: the left columns, then the right ones that are not keys."""
    names = joined_names(left.schema, right.schema, theirs)
    columns = dict(zip(left.schema.names, left.schema.types, strict=True))
    columns |= {name: right.schema.types[c] for c, name in names.items()}
    outputs = (*((0, c) for c in range(len(left.schema.names))), *((1, c) for c in names))
    return plan.Join(Schema(columns), left, right, mine, theirs, outputs, nulls_match)


def left_join(
    left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers, nulls_match: bool = False
) -> plan.Operator:
    """The inner join, and the left rows without a partner, with NULL in the right columns."""
    matched = inner_join(left, right, mine, theirs, nulls_match)
    missing = anti_join(left, right, mine, theirs, nulls_match)
    names = joined_names(left.schema, right.schema, theirs)
    nulls = {name: lit(None, right.schema.types[c]) for c, name in names.items()}
    return plan.Concat(matched.schema, (matched, with_columns(missing, nulls)))


def semi_join(
    left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers, nulls_match: bool = False
) -> plan.Operator:
    """The left rows that have a partner."""
    keys = at_least(select(right, (right.schema.names[c] for c in theirs)), 1)
    return inner_join(left, keys, mine, tuple(range(len(theirs))), nulls_match)


def anti_join(
    left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers, nulls_match: bool = False
) -> plan.Operator:
    """The left rows without a partner."""
    partnered = semi_join(left, right, mine, theirs, nulls_match)
    return plan.Concat(left.schema, (left, plan.Negate(partnered.schema, partnered)))


JOINS = {"inner": inner_join, "left": left_join, "semi": semi_join, "anti": anti_join}
"""The joins by what `Collection.join` calls them."""


def join(left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers, how: str) -> plan.Operator:
    """A join by its name in `JOINS`."""
    if not any(left.schema.types[c] == types.Float for c in mine):
        return JOINS[how](left, right, mine, theirs)
    old = right.schema.names
    left, right, names = _with_keys(left, right, mine, theirs)
    kept = [name for c, name in enumerate(old) if c not in theirs or how in ("semi", "anti")]
    right = select(right, [*kept, *names])
    joined = JOINS[how](left, right, column_numbers(left.schema, names), column_numbers(right.schema, names))
    return select(joined, [name for name in joined.schema.names if name not in names])


def _with_keys(
    left: plan.Operator, right: plan.Operator, mine: Numbers, theirs: Numbers
) -> tuple[plan.Operator, plan.Operator, list[str]]:
    """Both operators with further columns, none of them a float, that are equal where the key columns are."""
    names = [f"__key_{i}" for i in range(len(mine))]

    def with_keys(operator: plan.Operator, columns: Numbers) -> plan.Operator:
        schema = operator.schema
        found = [(col(schema.names[c]), schema.types[c]) for c in columns]
        return with_columns(
            operator, {n: rank(c) if t == types.Float else c for n, (c, t) in zip(names, found, strict=True)}
        )

    return with_keys(left, mine), with_keys(right, theirs), names


def filter_by_bound(
    rows: plan.Operator, column: str, op: str, bounds: plan.Operator, bound: str, by: Columns
) -> plan.Operator:
    """The rows whose column passes the bound of their group (see `Collection.filter_by_bound`)."""
    if op not in ("<", "<=", ">", ">="):
        raise IncorrectError(f"filter_by_bound: op is <, <=, > or >=, not {op!r}")
    schema, limits = rows.schema, bounds.schema
    mine, theirs = key_pairs(schema, limits, [by] if isinstance(by, str) else list(by), "filter_by_bound")
    value, limit = schema.index(column), limits.index(bound)
    if value in mine:
        raise IncorrectError(f"filter_by_bound: column {column!r} is constant in a group by it; join instead")
    found = (schema.types[value], limits.types[limit])
    if types.String in found:
        text = column if found[0] == types.String else bound
        raise IncorrectError(f"filter_by_bound: column {text!r} is text; compare numbers, dates or times")
    if not same_order(*found):
        raise IncorrectError(f"filter_by_bound: {column!r} is {found[0]} and {bound!r} is {found[1]}; cast one of them")
    if any(schema.types[c] == types.Float for c in mine):
        left, right, names = _with_keys(rows, bounds, mine, theirs)
        return select(filter_by_bound(left, column, op, right, bound, names), schema.names)
    return plan.RangeFilter(schema, rows, bounds, mine, theirs, value, op, limit)


def same_order(one: types.Type, other: types.Type) -> bool:
    """Whether the words of two types compare as their values do: one type, or decimals of one scale."""
    if isinstance(one, types.DecimalType) and isinstance(other, types.DecimalType):
        return one.scale == other.scale
    return one == other
