"""A projection of a projection becomes one, where nothing is computed twice by that."""

from __future__ import annotations

from collections import Counter

from tektite.expr import Expr
from tektite.sql.logical import Names, Node, Project
from tektite.sql.walking import transform


def merge_projections(root: Node, names: Names) -> Node:
    """A plan in which projections do not follow each other, and none only passes on what it gets."""

    def rewrite(node: Node) -> Node:
        if not isinstance(node, Project):
            return node
        while isinstance(node.input, Project):
            inner = dict(node.input.outputs)
            uses = Counter(name for _, output in node.outputs for name in mentions(output))
            if any(count > 1 and inner[name].op not in ("col", "lit") for name, count in uses.items()):
                break
            node = Project(node.input.input, tuple((name, output.substitute(inner)) for name, output in node.outputs))
        passed = [name for name, output in node.outputs if output.op == "col" and output.params[0] == name]
        whole = len(passed) == len(node.outputs) and passed == list(node.input.columns)
        return node.input if whole else node

    return transform(root, rewrite)


def mentions(expression: Expr) -> list[str]:
    """The columns of a scalar, each as often as it is mentioned."""
    return [node.params[0] for node in expression.walk() if node.op == "col"]
