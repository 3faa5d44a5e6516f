"""A semi join with a relation in which each key is there at most once is an inner join, which can be ordered with the others.

Where a table is asked for by its primary key, the keys are made distinct for that: a semi join would keep an index of the table's
rows for itself, an inner join reads the one that is there.
"""

from __future__ import annotations

from tektite.expr import col
from tektite.expr.predicates import conjuncts
from tektite.sql.logical import Distinct, Filter, Join, Names, Node, Project, Scan
from tektite.sql.rules.decorrelate import unique
from tektite.sql.walking import transform


def join_unique(root: Node, names: Names) -> Node:
    """A plan with inner joins instead of semi joins where they say the same."""

    def rewrite(node: Node) -> Node:
        if not isinstance(node, Join) or node.kind != "semi":
            return node
        keys = {right: left for left, right in equal_columns(node)}
        right = node.right
        if not unique(right, set(keys)):
            alone = len(keys) == len(conjuncts(node.condition)) and None not in keys.values()
            if not alone or not asked_by_key(node.left, {left for left in keys.values() if left is not None}):
                return node
            right = Distinct(Project(right, tuple((name, col(name)) for name in keys)))
        joined = Join(node.left, right, "inner", node.condition)
        return Project(joined, tuple((name, col(name)) for name in node.left.columns))

    return transform(root, rewrite)


def equal_columns(node: Join) -> list[tuple[str | None, str]]:
    """The columns of the right side that a join equates with something, and the left side's column, if it is one."""
    found: list[tuple[str | None, str]] = []
    for part in conjuncts(node.condition):
        sides = [side for side in part.args if side.op == "col" and side.params[0] in node.right.columns]
        if part.op == "eq" and len(sides) == 1:
            (other,) = (side for side in part.args if side is not sides[0])
            left = other.params[0] if other.op == "col" and other.params[0] in node.left.columns else None
            found.append((left, sides[0].params[0]))
    return found


def asked_by_key(node: Node, by: set[str]) -> bool:
    """Whether a relation is a table, filtered and projected as may be, and some of its columns are its primary key."""
    while isinstance(node, Filter | Project):
        if isinstance(node, Project):
            outputs = dict(node.outputs)
            by = {str(outputs[name].params[0]) for name in by if name in outputs and outputs[name].op == "col"}
        node = node.input
    return isinstance(node, Scan) and bool(node.key) and set(node.key) <= by
