"""A table that a block needs a further index of, and few rows of, is filtered first and indexed for the block alone.

Tables stand whole in blocks so that queries share their indexes. Where no index that is there serves a block, and the block's
filter leaves few rows, an index of these alone is cheaper to make and to keep than one of the whole table.
"""

from __future__ import annotations

from dataclasses import replace

from tektite.engine.input import Input
from tektite.engine.view import View
from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction
from tektite.plan.estimates import passing
from tektite.sql.logical import Block, Filter, Names, Node, Project, Scan
from tektite.sql.walking import transform

FEW = 0.2
"""The share of a table's rows up to which an index of its own pays: it is then a fifth of the size, and narrower."""


def filter_privately(root: Node, names: Names) -> Node:
    """A plan whose blocks read few rows of tables through filters of their own."""

    def rewrite(node: Node) -> Node:
        return with_filters(node) if isinstance(node, Block) else node

    return transform(root, rewrite)


def with_filters(node: Block) -> Block:
    """A block with those of its tables filtered that it needs few rows and a further index of."""
    relations = list(node.relations)
    parts = list(node.conjuncts)
    for at, relation in enumerate(relations):
        own = [part for part in parts if part.columns() and set(part.columns()) <= set(relation.columns)]
        if not isinstance(relation, Scan) or not own or passing(own) > FEW:
            continue
        rest = [part for part in parts if not any(part is other for other in own)]
        if any(served(relation, column) for column in join_columns(relation, rest)):
            continue
        read = {name for part in rest for name in part.columns()} | set(node.columns)
        kept = [name for name in relation.columns if name in read] or list(relation.columns)[:1]
        filtered = Filter(relation, conjunction(own))
        relations[at] = Project(filtered, tuple((name, col(name)) for name in kept))
        parts = rest
    return replace(node, relations=tuple(relations), conjuncts=tuple(parts))


def join_columns(relation: Scan, parts: list[Expr]) -> set[str]:
    """The columns of a table that a block equates with others."""
    found = set()
    for part in parts:
        if part.op == "eq":
            found |= {side.params[0] for side in part.args if side.op == "col" and side.params[0] in relation.columns}
    return found


def served(relation: Scan, column: str) -> bool:
    """Whether an index that begins with a column is there: the table's own, or one that somebody keeps."""
    found = relation.collection
    if not isinstance(found, Input | View):
        return True
    name = found.schema.names[relation.names.index(column)]
    return any(info.columns[:1] == (name,) for info in found.engine.arrangements(found))
