"""In which order the relations of a block are joined: from where changes come, along keys, the most selective first.

Changes come from a table without history, or from where keys lead to most others, or from the largest. Each further relation
is one that shares columns with those before it; one whose key is then known comes first, since it adds no rows, and among
these the one that leaves the fewest. Where keys lead through the whole block, it is kept up to date by delta pipelines; else
the engine chooses.
"""

from __future__ import annotations

from dataclasses import replace

from tektite.expr import Expr
from tektite.inputs import Input
from tektite.sql.estimates import estimate, passing
from tektite.sql.logical import Aggregate, Block, Distinct, Filter, Names, Node, Project, Scan, transform


def order_joins(root: Node, names: Names) -> Node:
    """A plan in which every block has an order."""

    def rewrite(node: Node) -> Node:
        return ordered(node) if isinstance(node, Block) and len(node.relations) > 2 else node

    return transform(root, rewrite)


def ordered(node: Block) -> Block:
    """A block with an order, and a strategy if the order follows keys."""
    sizes = [estimate(relation) for relation in node.relations]
    found = []
    for start, relation in enumerate(node.relations):
        order, by_keys = followed(node, start, sizes)
        # where keys lead everywhere is where the facts are, even while there are none
        found.append((is_stream(relation), by_keys, sizes[start], -start, order))
    _, by_keys, _, _, order = max(found)
    return replace(node, order=order, strategy="delta" if by_keys == len(order) - 1 else "auto")


def followed(node: Block, start: int, sizes: list[float]) -> tuple[tuple[int, ...], int]:
    """The order that begins with a relation, and how many of its steps follow a key."""
    relations = node.relations
    own = [[p for p in node.conjuncts if p.columns() and set(p.columns()) <= set(r.columns)] for r in relations]
    shares = [passing(parts) for parts in own]
    order = [start]
    by_keys = 0
    waiting = [at for at in range(len(relations)) if at != start]
    while waiting:
        known = {name for at in order for name in relations[at].columns}
        costs = []
        for at in waiting:
            reached = determined(relations[at], node.conjuncts, known)
            unique = bool(key_of(relations[at])) and set(key_of(relations[at])) <= reached
            costs.append((not reached, not unique, shares[at] * (1.0 if unique else sizes[at]), at))
        _, several, _, best = min(costs)
        by_keys += not several
        order.append(best)
        waiting.remove(best)
    return tuple(order), by_keys


def is_stream(node: Node) -> bool:
    """Whether a relation is a table without history, filtered and projected as may be."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan) and isinstance(node.collection, Input) and node.collection.is_stream


def determined(node: Node, conjuncts: tuple[Expr, ...], known: set[str]) -> set[str]:
    """The columns of a relation that are equal to something that is known, also by way of each other."""
    found: set[str] = set()
    equal = [tuple(part.args) for part in conjuncts if part.op == "eq"]
    grown = True
    while grown:
        grown = False
        for one, other in (*equal, *((b, a) for a, b in equal)):
            if one.op == "col" and one.params[0] not in known | found and set(other.columns()) <= known | found:
                if one.params[0] in node.columns:
                    found.add(one.params[0])
                    grown = True
                elif other.op == "col" and other.params[0] not in node.columns:
                    known = known | {one.params[0]}
                    grown = True
    return found


def key_of(node: Node) -> tuple[str, ...]:
    """Columns that tell the rows of a relation apart, where that is known."""
    match node:
        case Scan():
            return node.key
        case Filter():
            return key_of(node.input)
        case Aggregate():
            return tuple(name for name, _ in node.keys)
        case Distinct():
            return tuple(node.columns)
        case Project():
            kept = {value.params[0]: name for name, value in node.outputs if value.op == "col"}
            inner = key_of(node.input)
            return tuple(kept[name] for name in inner) if all(name in kept for name in inner) else ()
    return ()
