"""A semi join with a relation in which each key is there at most once is an inner join, which can be ordered with the others."""

from __future__ import annotations

from tektite.expr import col
from tektite.sql.logical import Join, Names, Node, Project, conjuncts, transform
from tektite.sql.rules.decorrelate import unique


def join_unique(root: Node, names: Names) -> Node:
    """A plan with inner joins instead of semi joins where they say the same."""

    def rewrite(node: Node) -> Node:
        if not isinstance(node, Join) or node.kind != "semi":
            return node
        keys: set[str] = set()
        for part in conjuncts(node.condition):
            sides = [side for side in part.args if side.op == "col" and side.params[0] in node.right.columns]
            if part.op == "eq" and len(sides) == 1:
                keys.add(sides[0].params[0])
        if not unique(node.right, keys):
            return node
        joined = Join(node.left, node.right, "inner", node.condition)
        return Project(joined, tuple((name, col(name)) for name in node.left.columns))

    return transform(root, rewrite)
