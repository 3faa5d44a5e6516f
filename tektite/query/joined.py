"""`Collection.join`: checks what a program asks for, and chooses the join that does it."""

from __future__ import annotations

import weakref
from typing import Any, get_args

from tektite.errors import IncorrectError
from tektite.expr import Expr
from tektite.expr import type_of as expression_type
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Operator, Read
from tektite.query import joins
from tektite.query.collection import Collection
from tektite.query.columns import column_list
from tektite.query.condition_joins import join
from tektite.query.derived import derived
from tektite.query.own_columns import joined_columns
from tektite.values import types

OTHER_KINDS = {
    "outer": "full", "full_outer": "full", "fullouter": "full", "leftouter": "left", "left_outer": "left", "rightouter": "right",
    "right_outer": "right", "leftsemi": "semi", "left_semi": "semi", "leftanti": "anti", "left_anti": "anti", "any": "semi",
    "asof": "join_asof(other, on='x')", "natural": "inner",
}  # fmt: skip
"""Other libraries' names of kinds of joins."""

_PLAIN = {str, type(None)}
_JOINS: weakref.WeakValueDictionary[tuple[Any, ...], Operator] = weakref.WeakValueDictionary()
"""Plans of joins of a table or a view by what was asked for. A program that asks again while somebody has the plan gets the same,
about which the engine knows everything that it has worked out. Other collections are seldom the same when asked for again, and
ten thousand views of their joins would each be noted here.
"""


def joined(
    left: Collection,
    right: Collection,
    on: joins.JoinKey | Expr | None,
    how: joins.JoinKind,
    left_on: joins.JoinKey | None,
    right_on: joins.JoinKey | None,
    suffix: str,
) -> Collection:
    """Pairs of rows, or rows by whether they have a partner; see `Collection.join`."""
    asked_again = isinstance(left.operator, Read)
    if not asked_again or not {type(on), type(how), type(left_on), type(right_on), type(suffix)} <= _PLAIN:
        return derived(_joined(left, right, on, how, left_on, right_on, suffix).operator, left, right)
    key = (left.operator, right.operator, on, how, left_on, right_on, suffix)
    known = _JOINS.get(key)
    if known is None:
        known = _JOINS[key] = _joined(left, right, on, how, left_on, right_on, suffix).operator
    return derived(known, left, right)


def _joined(
    left: Collection,
    right: Collection,
    on: joins.JoinKey | Expr | None,
    how: joins.JoinKind,
    left_on: joins.JoinKey | None,
    right_on: joins.JoinKey | None,
    suffix: str,
) -> Collection:
    if how not in get_args(joins.JoinKind):
        known = get_args(joins.JoinKind)
        word = str(how).lower().strip().replace(" ", "_").removesuffix("_join")
        meant = word if word in known else OTHER_KINDS.get(word)
        advice = f"; write {meant}" if meant and "(" in meant else f"; write how={meant!r}" if meant else ""
        raise IncorrectError(f"join: how is one of {', '.join(known)}, not {how!r}{advice}")
    if not isinstance(suffix, str) or not suffix:
        raise IncorrectError(f"join: suffix is a text that is added to a name, not {suffix!r}")
    if how == "cross":
        if not (on is None and left_on is None and right_on is None):
            raise IncorrectError("join: how='cross' pairs every row with every row; leave on, left_on and right_on out")
        return derived(joins.cross_join(left.operator, right.operator, suffix), left, right)
    if isinstance(on, Expr) and _is_key(left, right, on):
        on = str(on.params[0])
    if isinstance(on, list) and all(isinstance(part, str) or _is_key(left, right, part) for part in on):
        on = column_list(on)
    if isinstance(on, list | tuple) and any(isinstance(part, Expr) for part in on):
        if not all(isinstance(part, Expr) for part in on):
            raise IncorrectError(
                f"join: on={on!r} has names and conditions: write a name as a condition too, a['k'] == b['k']"
            )
        on = conjunction([part for part in on if isinstance(part, Expr)])
    if isinstance(on, Expr):
        return joined_where(left, right, on, how, suffix)
    mine, theirs = joins.key_pairs(left.schema, right.schema, on, left_on, right_on, "join")
    return derived(joins.join(left.operator, right.operator, mine, theirs, how, suffix), left, right)


def _is_key(left: Collection, right: Collection, part: object) -> bool:
    """Whether an expression is a column that both sides have, and no condition."""
    name = part.params[0] if isinstance(part, Expr) and part.op == "col" else None
    return all(name in side.schema.names and side.schema[name] != types.Bool for side in (left, right))


def joined_where(left: Collection, right: Collection, condition: Expr, how: joins.JoinKind, suffix: str) -> Collection:
    """A join on any condition over the columns of the result."""
    names = joins.joined_names(left.schema, right.schema, (), suffix)
    condition = joined_columns(left, right, names, condition)
    right = right.select(**{name: right.schema.names[c] for c, name in names.items()})
    found = expression_type(condition, left.schema.positions | right.schema.positions)
    if found != types.Bool:
        raise IncorrectError(f"join: a condition is a bool; {condition} is {found}")
    if how == "right":
        return join(right, left, "left", condition).select(list(left.schema.names), list(right.schema.names))
    return join(left, right, how, condition)
