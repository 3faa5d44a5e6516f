"""Walking logical plans: every node, the columns that a plan takes from the queries around it, predicates that may fail."""

from __future__ import annotations

from collections.abc import Iterable

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
