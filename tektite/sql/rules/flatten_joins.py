"""Inner joins that follow each other, with the filters and projections between them, become blocks.

In a block, tables stand as they are, so that the indexes everybody shares serve them; what was filtered or computed below a
join is tested and computed over the joined rows. A table without history is filtered below: nobody shares an index of it. What a
disjunction over several relations implies for one of them becomes a conjunct of its own.
"""

from __future__ import annotations

from functools import reduce

from tektite.engine.core import core_of
from tektite.engine.input import Input
from tektite.expr import Expr, col
from tektite.expr.predicates import TRUE, conjunction, conjuncts, reads_only
from tektite.sql.logical import Block, Filter, Join, Names, Node, Project, Scan
from tektite.sql.rules.factor_disjunctions import branches
from tektite.sql.walking import transform

LARGEST = 24
"""Relations of a block: more than people join, but not too many to be put in order. What joins more, as a chain of common table
expressions does in which each uses the one before twice, is a block of blocks, and equal ones of these are one.
"""


def flatten_joins(root: Node, names: Names) -> Node:
    """Blocks instead of trees of inner joins."""

    def rewrite(node: Node) -> Node:
        if (
            isinstance(node, Join)
            and node.kind == "inner"
            and not any(p.op == "is_same" for p in conjuncts(node.condition))
        ):
            return merged([node.left, node.right], conjuncts(node.condition))
        if isinstance(node, Filter) and isinstance(node.input, Block):
            return Block(node.input.relations, (*node.input.conjuncts, *conjuncts(node.predicate)))
        return node

    return transform(root, lambda node: implied(rewrite(node)))


def keeps_history(node: Node) -> bool:
    """Whether a node is a table or view whose indexes are shared."""
    return isinstance(node, Scan) and not (isinstance(node.collection, Input) and core_of(node.collection).is_stream)


def relations_below(node: Node) -> int:
    """How many relations a node would bring into a block."""
    if isinstance(node, Filter | Project):
        return relations_below(node.input)
    return len(node.relations) if isinstance(node, Block) else 1


def merged(nodes: list[Node], parts: list[Expr]) -> Node:
    """One block of relations, or a projection of one."""
    relations: list[Node] = []
    below: list[Expr] = []
    computed: dict[str, Expr] = {}
    too_many = sum(map(relations_below, nodes)) > LARGEST
    for node in nodes:
        while True:
            if too_many and relations_below(node) > 1:
                relations.append(node)
                break
            if isinstance(node, Block):
                relations += node.relations
                below += node.conjuncts
                break
            if isinstance(node, Filter) and keeps_history(node.input):
                below += conjuncts(node.predicate)
                node = node.input
            elif isinstance(node, Project) and dissolves(node.input):
                computed |= dict(node.outputs)
                node = node.input
            else:
                relations.append(node)
                break
    conjuncts_over = [resolved(part, computed) for part in parts]
    block = Block(tuple(relations), tuple([*(resolved(part, computed) for part in below), *conjuncts_over]))
    if all(value.op == "col" and value.params[0] == name for name, value in computed.items()):
        return block
    shown = {name: value for node in nodes for name, value in ((n, resolved(col(n), computed)) for n in node.columns)}
    return Project(block, tuple(shown.items()))


def resolved(expression: Expr, computed: dict[str, Expr]) -> Expr:
    """A scalar in terms of the columns below the projections that were taken away."""
    while True:
        found = expression.substitute(computed)
        if found.fingerprint == expression.fingerprint:
            return found
        expression = found


def dissolves(node: Node) -> bool:
    """Whether a projection over a node is better computed over the joined rows."""
    if isinstance(node, Filter | Project):
        return dissolves(node.input)
    return isinstance(node, Block) or keeps_history(node)


def implied(node: Node) -> Node:
    """A block with what its disjunctions imply for single relations."""
    if not isinstance(node, Block):
        return node
    known = {part.fingerprint for part in node.conjuncts}
    more: list[Expr] = []
    for part in node.conjuncts:
        if part.op != "or":
            continue
        parts = [conjuncts(branch) for branch in branches(part)]
        for relation in node.relations:
            if reads_only(part, relation.columns):
                continue
            own = [
                conjunction(p for p in branch if p.columns() and reads_only(p, relation.columns)) for branch in parts
            ]
            if all(branch.fingerprint != TRUE.fingerprint for branch in own):
                found = reduce(lambda a, b: a | b, own)
                if found.fingerprint not in known:
                    known.add(found.fingerprint)
                    more.append(found)
    return Block(node.relations, (*node.conjuncts, *more)) if more else node
