"""Scalars without columns become constants, and what constants decide is decided: TRUE AND x is x, a filter by FALSE is empty."""

from __future__ import annotations

from tektite.expr.fold import folded, is_constant
from tektite.expr.predicates import conjuncts
from tektite.sql.logical import Filter, Names, Node, Values
from tektite.sql.walking import transform


def fold_constants(root: Node, names: Names) -> Node:
    """A plan whose scalars are folded."""

    def rewrite(node: Node) -> Node:
        if any(folded(expression) is not expression for expression in node.expressions):
            node = node.with_expressions(folded)
        if isinstance(node, Filter):
            parts = conjuncts(node.predicate)
            if any(is_constant(part) for part in parts):  # TRUE is no part: it is FALSE or NULL
                return Values(tuple(node.columns), tuple(node.columns.values()), ())
            return node if parts else node.input
        return node

    return transform(root, rewrite)
