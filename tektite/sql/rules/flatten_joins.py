"""Inner joins that follow each other, with the filters between them, become one block of relations and conjuncts."""

from __future__ import annotations

from tektite.expr import Expr
from tektite.sql.logical import Block, Filter, Join, Names, Node, conjuncts, transform


def flatten_joins(root: Node, names: Names) -> Node:
    """Blocks instead of trees of inner joins."""

    def rewrite(node: Node) -> Node:
        if isinstance(node, Join) and node.kind == "inner":
            return merged([node.left, node.right], conjuncts(node.condition))
        if isinstance(node, Filter) and isinstance(node.input, Block):
            return Block(node.input.relations, (*node.input.conjuncts, *conjuncts(node.predicate)))
        return node

    return transform(root, rewrite)


def merged(nodes: list[Node], parts: list[Expr]) -> Block:
    """One block of what may be blocks themselves."""
    relations: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            relations += node.relations
            parts = [*node.conjuncts, *parts]
        else:
            relations.append(node)
    return Block(tuple(relations), tuple(parts))
