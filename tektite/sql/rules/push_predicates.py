"""Predicates move towards the relations that they read, so that rows which will not pass are dropped early.

A filter passes through projections, unions, distincts, groups (by their keys), and into the side of a join whose
columns it reads, unless that side's rows may be filled up with NULLs. A filter over an outer join that no row filled up
with NULLs can pass makes the join an inner one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tektite.expr import Expr, col, lit
from tektite.expr.fold import never_true
from tektite.expr.predicates import conjunction, conjuncts, reads_only
from tektite.sql.logical import (
    Aggregate,
    Apply,
    Distinct,
    Filter,
    Join,
    Names,
    Node,
    Project,
    Top,
    Union,
    Window,
)
from tektite.sql.walking import may_fail, transform
from tektite.values import types


def push_predicates(root: Node, names: Names) -> Node:
    """Predicates as far down as they go."""

    def rewrite(node: Node) -> Node:
        if isinstance(node, Filter):
            return place(node.input, conjuncts(node.predicate))
        if isinstance(node, Join):
            return place_condition(node)
        return node

    return transform(root, rewrite)


def filtered(node: Node, parts: list[Expr]) -> Node:
    """A node with a filter over it, if there is anything to test."""
    if isinstance(node, Filter) and parts:
        return Filter(node.input, conjunction([*conjuncts(node.predicate), *parts]))
    return Filter(node, conjunction(parts)) if parts else node


def place(node: Node, parts: list[Expr]) -> Node:
    """The rows of a node that pass all parts, each part as far down as it goes."""
    if not parts:
        return node
    if not isinstance(node, Filter | Project | Union):
        # Below, what may fail would be tested for rows that do not come this far.
        risky = [part for part in parts if may_fail(part, node)]
        if risky:
            return filtered(place(node, [part for part in parts if not any(part is other for other in risky)]), risky)
    match node:
        case Filter():
            return place(node.input, [*conjuncts(node.predicate), *parts])
        case Project():
            inner = dict(node.outputs)
            return node.with_inputs(place(node.input, [part.substitute(inner) for part in parts]))
        case Distinct():
            return node.with_inputs(place(node.input, parts))
        case Union():
            placed = []
            for part in node.parts:
                inner = {new: col(old) for new, old in zip(node.names, part.columns, strict=True)}
                placed.append(place(part, [p.substitute(inner) for p in parts]))
            return node.with_inputs(*placed)
        case Aggregate() if node.keys:
            keys = dict(node.keys)
            down = [part for part in parts if part.columns() and reads_only(part, keys)]
            stay = [part for part in parts if not (part.columns() and reads_only(part, keys))]
            below = place(node.input, [part.substitute(keys) for part in down])
            return filtered(node.with_inputs(below), stay)
        case Window():
            shared = set.intersection(*(set(call.by) for _, call in node.calls))
            return under(node, parts, shared)
        case Top() if node.by:
            return under(node, parts, set(node.by))
        case Join():
            return through_join(node, parts)
        case Apply():
            down = [part for part in parts if part.columns() and reads_only(part, node.left.columns)]
            stay = [part for part in parts if not (part.columns() and reads_only(part, node.left.columns))]
            return filtered(node.with_inputs(place(node.left, down), node.right), stay)
    return filtered(node, parts)


def under(node: Node, parts: list[Expr], through: set[str]) -> Node:
    """Parts that read only what tells groups apart go below an operator on groups."""
    down = [part for part in parts if part.columns() and reads_only(part, through)]
    stay = [part for part in parts if not (part.columns() and reads_only(part, through))]
    (given,) = node.inputs
    return filtered(node.with_inputs(place(given, down)), stay)


def through_join(node: Join, parts: list[Expr]) -> Node:
    """Parts into the sides of a join."""
    kind = node.kind
    if kind == "inner":
        return place_condition(Join(node.left, node.right, "inner", conjunction([*conjuncts(node.condition), *parts])))
    if kind in ("left", "full"):
        rejects_right = any(rejects_nulls(part, node.right.columns) for part in parts)
        rejects_left = any(rejects_nulls(part, node.left.columns) for part in parts)
        if kind == "full" and rejects_left:
            kind = "inner" if rejects_right else "left"
        elif kind == "full" and rejects_right:
            return through_join(Join(node.right, node.left, "left", node.condition), parts)
        elif kind == "left" and rejects_right:
            kind = "inner"
        if kind != node.kind:
            return through_join(Join(node.left, node.right, kind, node.condition), parts)
    if kind == "full":
        return filtered(node, parts)
    down = [part for part in parts if reads_only(part, node.left.columns)]
    stay = [part for part in parts if not reads_only(part, node.left.columns)]
    return filtered(node.with_inputs(place(node.left, down), node.right), stay)


def place_condition(node: Join) -> Node:
    """What of a join's condition reads one side alone, as a filter on that side where that means the same."""
    parts = conjuncts(node.condition)
    left, right, stay = [], [], []
    for part in parts:
        used = part.columns()
        if may_fail(part, node.left, node.right):
            stay.append(part)
        elif used and reads_only(part, node.left.columns) and node.kind in ("inner", "semi"):
            left.append(part)
        elif used and reads_only(part, node.right.columns) and node.kind in ("inner", "semi", "anti", "left"):
            right.append(part)
        else:
            stay.append(part)
    if not left and not right:
        return node
    return Join(place(node.left, left), place(node.right, right), node.kind, conjunction(stay))


def rejects_nulls(part: Expr, columns: Iterable[str]) -> bool:
    """Whether a conjunct cannot be true where all of these columns are NULL."""
    return never_true(part.substitute({name: lit(None, types.Int) for name in columns}))
