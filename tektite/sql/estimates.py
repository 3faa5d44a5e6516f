"""How many rows a plan is likely to have: the tables' sizes as they are, and rules of thumb for what becomes of them.

The figures choose between orders of joins and are shown by EXPLAIN; no answer depends on them.
"""

from __future__ import annotations

from tektite.engine.core import core_of
from tektite.engine.input import Input
from tektite.engine.view import View
from tektite.expr import Expr
from tektite.sql.bind.predicates import conjuncts
from tektite.sql.logical import Aggregate, Block, Bounded, Distinct, Filter, Join, Node, Scan, Top, Union, Values

SELECTIVITY = {"eq": 0.05, "isin": 0.1, "like": 0.1, "ilike": 0.1, "startswith": 0.1, "lt": 0.4, "le": 0.4, "gt": 0.4,
               "ge": 0.4, "is_null": 0.05, "ne": 0.95}  # fmt: skip
"""Which share of the rows passes a comparison; a half where it is not said."""


def rows_of(node: Scan) -> float:
    """The rows that a table or view holds."""
    found = node.collection
    if node.single:
        return 1.0
    return float(max(core_of(found).trace.rows, 1)) if isinstance(found, Input | View) else 1000.0


def selectivity(part: Expr) -> float:
    """Which share of the rows passes a conjunct."""
    if part.op == "or":
        return min(1.0, sum(selectivity(arg) for arg in part.args))
    if part.op == "and":
        return selectivity(part.args[0]) * selectivity(part.args[1])
    if part.op == "not":
        return 1 - selectivity(part.args[0])
    return SELECTIVITY.get(part.op, 0.5)


def passing(parts: list[Expr]) -> float:
    """Which share of the rows passes all conjuncts."""
    share = 1.0
    for part in parts:
        share *= selectivity(part)
    return share


def estimate(node: Node) -> float:
    """About how many rows a plan has; at least one."""
    return max(1.0, _estimate(node))


def _estimate(node: Node) -> float:
    match node:
        case Scan():
            return rows_of(node)
        case Values():
            return float(len(node.rows))
        case Filter():
            return estimate(node.input) * passing(conjuncts(node.predicate))
        case Join():
            return _joined(node)
        case Block():
            return _block(node)
        case Bounded():
            return estimate(node.left) * 0.4
        case Aggregate():
            return 1.0 if not node.keys else float(estimate(node.input) ** (0.8 if len(node.keys) < 3 else 0.9))
        case Distinct():
            return float(estimate(node.input) ** 0.9)
        case Top():
            given = estimate(node.input)
            return given if node.limit is None or node.by else min(given, float(node.limit))
        case Union():
            return sum(estimate(part) for part in node.parts)
    return max((estimate(given) for given in node.inputs), default=1000.0)


def _joined(node: Join) -> float:
    left, right = estimate(node.left), estimate(node.right)
    if node.kind in ("semi", "anti"):
        return left / 2
    equal = any(part.op in ("eq", "is_same") for part in conjuncts(node.condition))
    return max(left, right) if equal else left * right


def _block(node: Block) -> float:
    """The largest relation, with what the filters leave: joins mostly follow keys."""
    sizes = []
    linked = 0
    share = 1.0
    for relation in node.relations:
        own = [part for part in node.conjuncts if set(part.columns()) <= set(relation.columns)]
        sizes.append(estimate(relation))
        share *= passing(own)
    for part in node.conjuncts:
        reached = [r for r in node.relations if set(part.columns()) & set(r.columns)]
        linked += len(reached) > 1 and part.op == "eq"
        if len(reached) > 1 and part.op != "eq":
            share *= selectivity(part)
    sizes.sort(reverse=True)
    rows = sizes[0]
    for size in sizes[1 : max(1, len(sizes) - linked)]:
        rows *= size
    return rows * share
