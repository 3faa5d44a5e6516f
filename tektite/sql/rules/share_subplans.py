"""Parts of a plan that say the same, whatever their columns are called, become one part that is read twice."""

from __future__ import annotations

from typing import Any

from tektite.expr import Expr, col
from tektite.sql.logical import (
    Aggregate,
    Block,
    Compare,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Names,
    Node,
    Once,
    Project,
    RangeFilter,
    Recall,
    Scan,
    Solution,
    Top,
    Union,
    Values,
    Window,
)
from tektite.sql.walking import transform

WORTHWHILE = (Aggregate, Block, RangeFilter, Distinct, Join, Once, Top, Window)
"""Operators that keep state: what lies between them is computed anew more cheaply than it is shared."""


def share_subplans(root: Node, names: Names) -> Node:
    """A plan in which equal parts are one."""
    numbers: dict[Any, int] = {}
    known: dict[int, int] = {}
    first: dict[int, Node] = {}
    kept: list[Node] = []  # so that no node's id is used again

    def rewrite(node: Node) -> Node:
        description = (*describe(node, known), tuple(node.columns.values()))
        number = numbers.setdefault(description, len(numbers))
        known[id(node)] = number
        kept.append(node)
        original = first.setdefault(number, node)
        if original is node or not isinstance(node, WORTHWHILE):
            return node
        pairs = zip(node.columns, original.columns, strict=True)
        again = Project(original, tuple((new, col(old)) for new, old in pairs))
        known[id(again)] = number
        kept.append(again)
        return again

    return transform(root, rewrite)


def describe(node: Node, known: dict[int, int]) -> tuple[Any, ...]:
    """What a node says, in words that do not depend on what its columns are called."""
    inputs = tuple(known[id(given)] for given in node.inputs)
    places = {name: f"{i}.{at}" for i, given in enumerate(node.inputs) for at, name in enumerate(given.columns)}
    columns = {name: col(place) for name, place in places.items()}

    def scalar(expression: Expr) -> Any:
        return expression.substitute(columns).fingerprint

    kind = type(node).__name__
    match node:
        case Scan():
            return (kind, node.collection.operator.fingerprint)
        case Recall():
            return (kind, id(node.variable))
        case Values() | Fixpoint():
            return (kind, id(node))
        case Solution():
            return (kind, inputs, id(node.variable))
        case Filter():
            return (kind, inputs, scalar(node.predicate))
        case Project():
            return (kind, inputs, tuple(scalar(output) for _, output in node.outputs))
        case Join():
            return (kind, inputs, node.kind, scalar(node.condition))
        case Block():
            return (kind, inputs, tuple(map(scalar, node.conjuncts)), tuple(places[name] for name in node.columns))
        case RangeFilter():
            keys = tuple((places[a], places[b]) for a, b in node.keys)
            return (kind, inputs, keys, places[node.column], node.comparison, places[node.bound])
        case Aggregate():
            keys = tuple(scalar(key) for _, key in node.keys)
            return (kind, inputs, keys, tuple(call.printed(scalar) for _, call in node.calls))
        case Distinct() | Union():
            return (kind, inputs)
        case Compare():
            return (kind, inputs, node.kind, node.every)
        case Once():
            return (kind, inputs, tuple(places[name] for name in node.by))
        case Top():
            order = tuple((places[o.column], o.descending, o.nulls_first) for o in node.order)
            return (kind, inputs, tuple(places[name] for name in node.by), order, node.limit, node.offset)
    return (kind, id(node))
