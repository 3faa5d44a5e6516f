"""Walking plans: every node, rewriting bottom up, the columns that a plan takes from outside, predicates that may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tektite.expr import Expr
from tektite.expr.fold import can_fail
from tektite.expr.predicates import reads_only
from tektite.sql.logical import Node


def walk(root: Node) -> Iterable[Node]:
    """Every node of a plan, once, inputs after their readers."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.inputs))


def transform(root: Node, rewrite: Callable[[Node], Node]) -> Node:
    """The plan with every node rewritten after its inputs; a node that is read twice is rewritten once."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        found = done.get(id(node))
        if found is None:
            inputs = [visit(i) for i in node.inputs]
            if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
                found = rewrite(node.with_inputs(*inputs))
            else:
                found = rewrite(node)
            done[id(node)] = found
        return found

    return visit(root)


def free_columns(root: Node) -> set[str]:
    """The columns that a plan reads but does not have: those of the queries around it."""
    used: set[str] = set()
    made: set[str] = set()
    for node in walk(root):
        used |= node.used
        made |= node.columns.keys()
        for given in node.inputs:
            made |= given.columns.keys()
    return used - made


def may_fail(part: Expr, *nodes: Node) -> bool:
    """Whether a predicate may fail on a row of some relations."""
    columns = {name: (0, type) for node in nodes for name, type in node.columns.items()}
    return reads_only(part, columns) and can_fail(part, columns)
