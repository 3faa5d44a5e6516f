"""In which order the relations of a block are joined: from where changes come, along keys, the most selective first.

Changes come from a table without history, or from where keys lead to most others, or from the largest. Each further relation
is one that shares columns with those before it; one whose key is then known comes first, since it adds no rows, and among
these the one that leaves the fewest. Where keys lead through the whole block, it is kept up to date by delta pipelines, or
joined one at a time if filters leave so little of a stream that this keeps less; else the engine chooses.
"""

from __future__ import annotations

from dataclasses import replace

from tektite.engine.core import core_of
from tektite.engine.input import Input
from tektite.expr import Expr
from tektite.sql.bind.predicates import conjuncts
from tektite.sql.estimates import estimate, passing
from tektite.sql.logical import Aggregate, Block, Distinct, Filter, Names, Node, Project, Scan
from tektite.sql.walking import transform


def order_joins(root: Node, names: Names) -> Node:
    """A plan in which every block has an order."""

    def rewrite(node: Node) -> Node:
        return ordered(node) if isinstance(node, Block) and len(node.relations) > 1 else node

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
    # two relations are looked up in each other, whichever changes
    strategy = "delta" if by_keys == len(order) - 1 and len(order) > 2 else "auto"
    if strategy == "delta" and is_stream(node.relations[order[0]]) and narrows(node, order):
        strategy = "binary"
    return replace(node, order=order, strategy=strategy)


def followed(node: Block, start: int, sizes: list[float]) -> tuple[tuple[int, ...], int]:
    """The order that begins with a relation, and how many of its steps follow a key."""
    relations = node.relations
    shares = [share_of(relation, node.conjuncts) for relation in relations]
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


def narrows(node: Block, order: tuple[int, ...]) -> bool:
    """Whether joining one at a time keeps fewer rows than delta pipelines. These index the stream that the order begins with by
    every key that leads to it from another relation; joins index it once, and then what passed the filters so far.
    Where more than a relation's key is known, it stays with the pipelines: a join would need an index by all of that.
    """
    start = node.relations[order[0]]
    known = set(start.columns)
    ways: set[frozenset[str]] = set()
    share = kept = 1.0
    links = tuple(p for p in node.conjuncts if p.op == "eq" and all(side.columns() for side in p.args))
    linked = [pair for part in links for pair in (part.args, part.args[::-1])]
    for at in order[1:]:
        relation = node.relations[at]
        if determined(relation, links, known) != set(key_of(relation)):
            return False
        way = {n for a, b in linked if set(b.columns()) <= set(relation.columns) for n in a.columns()}
        ways.add(frozenset(way & set(start.columns)))
        share *= share_of(relation, node.conjuncts)
        kept += share if at != order[-1] else 0.0
        known |= set(relation.columns)
    ways.discard(frozenset())
    return kept < len([way for way in ways if not any(way < other for other in ways)])


def share_of(node: Node, parts: tuple[Expr, ...]) -> float:
    """Which share of a relation's rows passes its filters: those of the block, and those below it."""
    share = passing([p for p in parts if p.columns() and set(p.columns()) <= set(node.columns)])
    while isinstance(node, Filter | Project):
        if isinstance(node, Filter):
            share *= passing(conjuncts(node.predicate))
        node = node.input
    return share


def is_stream(node: Node) -> bool:
    """Whether a relation is a table without history, filtered and projected as may be."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan) and isinstance(node.collection, Input) and core_of(node.collection).is_stream


def determined(node: Node, conjuncts: tuple[Expr, ...], known: set[str]) -> set[str]:
    """The columns of a relation that are equal to something that is known, also by way of each other."""
    found: set[str] = set()
    there = set(known)
    equal = [tuple(part.args) for part in conjuncts if part.op == "eq"]
    pairs = [(a.params[0], b) for a, b in (*equal, *((b, a) for a, b in equal)) if a.op == "col"]
    grown = True
    while grown:
        grown = False
        for name, other in pairs:
            if name not in there and there.issuperset(other.columns()):
                if name in node.columns:
                    found.add(name)
                elif other.op != "col" or other.params[0] in node.columns:
                    continue
                there.add(name)
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
