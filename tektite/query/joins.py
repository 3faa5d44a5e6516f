"""Joins of two operators by key: inner, outer, semi, anti, all pairs, and by a bound that moves.

Key columns are given by position. Keys are compared as words, except floats: these are compared as numbers, through key columns
beside the values, in which -0.0 is 0.0. NULL equals nothing, unless `nulls_match`.
"""

from __future__ import annotations

from typing import Any, Literal

from tektite.errors import IncorrectError
from tektite.expr import col, lit, rank
from tektite.expr.comparisons import ORDERING, SIGNS
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers
from tektite.query.columns import (
    ColumnName,
    ColumnNames,
    column_list,
    column_numbers,
    one_column,
    project,
    select,
    with_columns,
)
from tektite.query.reductions import at_least
from tektite.values import types
from tektite.values.schema import Schema, shared_schema
from tektite.values.shared_values import shared

SUFFIX = "_right"
"""The suffix of a right column whose name the left side has too."""
JoinKind = Literal["inner", "left", "right", "full", "cross", "semi", "anti"]
"""How `Collection.join` combines rows."""
JoinKey = ColumnNames
"""One column, or a list of them."""


def key_names(key: Any, what: str) -> list[str]:
    """The columns of one side's key."""
    try:
        return column_list(key)
    except IncorrectError:
        computed = "; a key that is computed is a condition: on=a['x'] + 1 == b['y']" if "<Expr" in repr(key) else ""
        raise IncorrectError(f"{what} takes the name of a column or a list of names, not {key!r}{computed}") from None


def key_pairs(
    left: Schema, right: Schema, on: JoinKey | None, left_on: JoinKey | None, right_on: JoinKey | None, verb: str
) -> tuple[ColumnNumbers, ColumnNumbers]:
    """The columns of both sides that are to be equal. `verb` is what errors call the operation."""
    if on is None and (left_on is None or right_on is None):
        said = "on='k', or left_on='a' and right_on='b'"
        raise IncorrectError(f"{verb} needs the columns to join by: {said}; how='cross' pairs every row with every row")
    if on is not None and not (left_on is None and right_on is None):
        raise IncorrectError(f"{verb}: say either on, or left_on and right_on, not both")
    pair = next((o for o in (on, *(on if isinstance(on, list) else ())) if isinstance(o, tuple)), None)
    if pair is not None:
        if len(pair) != 2:
            raise IncorrectError(f"{verb}: on takes a column or a list of columns: on={list(pair)!r}")
        one, other = pair
        raise IncorrectError(
            f"{verb}: on={on!r} could mean two things. To compare {one!r} of the left side with {other!r} of the right side, say "
            f"left_on={one!r}, right_on={other!r}. To join by columns that both sides have, say on=[{one!r}, {other!r}]"
        )
    mine_names = key_names(left_on if on is None else on, f"{verb}: {'left_on' if on is None else 'on'}")
    their_names = key_names(right_on if on is None else on, f"{verb}: {'right_on' if on is None else 'on'}")
    if on is not None and not mine_names and verb == "join":
        raise IncorrectError("join: on names no column; how='cross' pairs every row with every row")
    if len(mine_names) != len(their_names):
        raise IncorrectError(f"{verb}: left_on has {len(mine_names)} columns and right_on {len(their_names)}")
    mine = shared(tuple([left.index(name) for name in mine_names]))
    theirs = shared(tuple([right.index(name) for name in their_names]))
    for a, b in zip(mine, theirs, strict=True):
        if left.types[a] != right.types[b]:
            raise IncorrectError(
                f"{verb}: {left.names[a]!r} is {left.types[a]} and {right.names[b]!r} is {right.types[b]}; "
                "cast one of them"
            )
    if len(set(mine)) < len(mine) or len(set(theirs)) < len(theirs):
        raise IncorrectError(
            f"{verb}: a column is named twice in {mine_names if len(set(mine)) < len(mine) else their_names}"
        )
    return mine, theirs


def joined_names(left: Schema, right: Schema, keys: ColumnNumbers, suffix: str = SUFFIX) -> dict[int, str]:
    """The names in the result of the right side's columns, except its keys. A name that is taken gets a suffix."""
    names: dict[int, str] = {}
    taken = set(left.names)
    for c, name in enumerate(right.names):
        if c not in keys:
            while name in taken:
                name += suffix
            taken.add(name)
            names[c] = name
    return names


def inner_join(
    left: plan.Operator,
    right: plan.Operator,
    mine: ColumnNumbers,
    theirs: ColumnNumbers,
    nulls_match: bool = False,
    one_to_one: bool = False,
    suffix: str = SUFFIX,
) -> plan.Operator:
    """Pairs of rows with equal keys: the left columns, then the right ones that are not keys. `one_to_one` says that each row has
    exactly one partner.
    """
    names = joined_names(left.schema, right.schema, theirs, suffix)
    columns = dict(zip(left.schema.names, left.schema.types, strict=True))
    columns |= {name: right.schema.types[c] for c, name in names.items()}
    outputs = shared((*[(0, c) for c in range(len(left.schema.names))], *[(1, c) for c in names]))
    return plan.Join(shared_schema(columns), left, right, mine, theirs, outputs, nulls_match, one_to_one)


def semi_join(
    left: plan.Operator, right: plan.Operator, mine: ColumnNumbers, theirs: ColumnNumbers, nulls_match: bool = False
) -> plan.Operator:
    """The left rows that have a partner."""
    keys = at_least(select(right, (right.schema.names[c] for c in theirs)), 1)
    return inner_join(left, keys, mine, tuple(range(len(theirs))), nulls_match)


def anti_join(
    left: plan.Operator, right: plan.Operator, mine: ColumnNumbers, theirs: ColumnNumbers, nulls_match: bool = False
) -> plan.Operator:
    """The left rows without a partner."""
    partnered = semi_join(left, right, mine, theirs, nulls_match)
    return plan.Concat(left.schema, (left, plan.Negate(partnered.schema, partnered)))


def cross_join(left: plan.Operator, right: plan.Operator, suffix: str = SUFFIX) -> plan.Operator:
    """All pairs of rows."""
    names = joined_names(left.schema, right.schema, (), suffix)
    columns = dict(zip(left.schema.names, left.schema.types, strict=True))
    columns |= {name: right.schema.types[c] for c, name in names.items()}
    clauses = (plan.Clause(left, left.schema.names), plan.Clause(right, tuple(names.values())))
    return plan.Match(Schema(columns), clauses, (), (), "auto")


def join(
    left: plan.Operator,
    right: plan.Operator,
    mine: ColumnNumbers,
    theirs: ColumnNumbers,
    how: JoinKind,
    suffix: str = SUFFIX,
) -> plan.Operator:
    """A join by keys; see `Collection.join`. Rows without a partner have NULL in the other side's columns, and their own key."""
    if how == "semi" or how == "anti":
        return _by_keys(left, right, mine, theirs, how, suffix)
    matched = _by_keys(left, right, mine, theirs, "inner", suffix)
    parts = [matched]
    names = joined_names(left.schema, right.schema, theirs, suffix)
    if how in ("left", "full"):
        missing = _by_keys(left, right, mine, theirs, "anti", suffix)
        parts.append(with_columns(missing, {name: lit(None, right.schema.types[c]) for c, name in names.items()}))
    if how in ("right", "full"):
        missing = _by_keys(right, left, theirs, mine, "anti", suffix)
        keys = {left.schema.names[a]: col(right.schema.names[b]) for a, b in zip(mine, theirs, strict=True)}
        known = keys | {name: col(right.schema.names[c]) for c, name in names.items()}
        columns = zip(matched.schema.names, matched.schema.types, strict=True)
        parts.append(project(missing, [(n, known.get(n, lit(None, type))) for n, type in columns]))
    return matched if len(parts) == 1 else plan.Concat(matched.schema, tuple(parts))


def _by_keys(
    left: plan.Operator, right: plan.Operator, mine: ColumnNumbers, theirs: ColumnNumbers, how: str, suffix: str
) -> plan.Operator:
    """An inner, semi or anti join, in which floats are compared as numbers."""
    floats = any(left.schema.types[c].has_keys for c in mine)
    names: list[str] = []
    if floats:
        old = right.schema.names
        left, right, names = _with_keys(left, right, mine, theirs)
        kept = [name for c, name in enumerate(old) if c not in theirs] if how == "inner" else []
        right = select(right, [*kept, *names])
        mine, theirs = column_numbers(left.schema, names), column_numbers(right.schema, names)
    if how == "inner":
        joined = inner_join(left, right, mine, theirs, suffix=suffix)
    else:
        joined = (semi_join if how == "semi" else anti_join)(left, right, mine, theirs)
    return select(joined, [name for name in joined.schema.names if name not in names]) if floats else joined


def _with_keys(
    left: plan.Operator, right: plan.Operator, mine: ColumnNumbers, theirs: ColumnNumbers
) -> tuple[plan.Operator, plan.Operator, list[str]]:
    """Both operators with further columns, none of them a float, that are equal where the key columns are."""
    names = [f"__key_{i}" for i in range(len(mine))]

    def with_keys(operator: plan.Operator, columns: ColumnNumbers) -> plan.Operator:
        schema = operator.schema
        found = [(col(schema.names[c]), schema.types[c]) for c in columns]
        return with_columns(operator, {n: rank(c) if t.has_keys else c for n, (c, t) in zip(names, found, strict=True)})

    return with_keys(left, mine), with_keys(right, theirs), names


def filter_by_bound(
    rows: plan.Operator, column: ColumnName, op: str, bounds: plan.Operator, bound: ColumnName, by: ColumnNames
) -> plan.Operator:
    """The rows whose column passes the bound of their group (see `Collection.filter_by_bound`)."""
    if op not in [SIGNS[comparison] for comparison in ORDERING]:
        raise IncorrectError(f"filter_by_bound: op is <, <=, > or >=, not {op!r}")
    schema, limits = rows.schema, bounds.schema
    column, bound = one_column(schema, column), one_column(limits, bound)
    mine, theirs = key_pairs(schema, limits, column_list(by), None, None, "filter_by_bound")
    value, limit = schema.index(column), limits.index(bound)
    if value in mine:
        raise IncorrectError(f"filter_by_bound: column {column!r} is constant in a group by it; join instead")
    found = (schema.types[value], limits.types[limit])
    if found[0].interned or found[1].interned:
        text = column if found[0].interned else bound
        raise IncorrectError(f"filter_by_bound: column {text!r} is text; compare numbers, dates or times")
    if not same_order(*found):
        raise IncorrectError(f"filter_by_bound: {column!r} is {found[0]} and {bound!r} is {found[1]}; cast one of them")
    if any(schema.types[c].has_keys for c in mine):
        left, right, names = _with_keys(rows, bounds, mine, theirs)
        return select(filter_by_bound(left, column, op, right, bound, names), schema.names)
    return plan.RangeFilter(schema, rows, bounds, mine, theirs, value, op, limit)


def same_order(one: types.Type, other: types.Type) -> bool:
    """Whether the words of two types compare as their values do: one type, or decimals of one scale."""
    if isinstance(one, types.DecimalType) and isinstance(other, types.DecimalType):
        return one.scale == other.scale
    return one == other
