"""Columns that nothing reads are not carried along: not computed, not joined, not kept in state.

A table in a join stays whole, because its index is shared; the join puts out what is read.
"""

from __future__ import annotations

from dataclasses import replace

from tektite.expr import col
from tektite.sql.logical import (
    Aggregate,
    Block,
    Compare,
    Distinct,
    Fixpoint,
    Join,
    Names,
    Node,
    Once,
    Project,
    Solution,
    Top,
    Union,
    Window,
)
from tektite.sql.rules.flatten_joins import keeps_history


def prune_columns(root: Node, names: Names) -> Node:
    """A plan without columns that are not read."""
    needed = needs(root)
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        found = done.get(id(node))
        if found is None:
            inputs = [visit(given) for given in node.inputs]
            found = done[id(node)] = rebuilt(node, inputs, needed[id(node)])
        return found

    return visit(root)


def parents_first(root: Node) -> list[Node]:
    """Every node after all that read it."""
    found: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for given in node.inputs:
                visit(given)
            found.append(node)

    visit(root)
    return found[::-1]


def needs(root: Node) -> dict[int, set[str]]:
    """Which columns of each node are read, by whichever reader."""
    needed: dict[int, set[str]] = {id(root): set(root.columns)}
    for node in parents_first(root):
        here = needed[id(node)]
        for given, wanted in zip(node.inputs, wanted_of_inputs(node, here), strict=True):
            needed[id(given)] = needed.get(id(given), set()) | wanted & set(given.columns)
    return needed


def wanted_of_inputs(node: Node, here: set[str]) -> list[set[str]]:
    """What a node of which some columns are read reads of each input."""
    match node:
        case Project():
            kept = [output for name, output in node.outputs if name in here] or [node.outputs[0][1]]
            return [{name for output in kept for name in output.columns()}]
        case Aggregate():
            kept_calls = tuple(call for call in node.calls if call[0] in here)
            return [replace(node, calls=kept_calls).used]
        case Window():
            return [here | {c for name, call in node.calls if name in here for c in call.columns}]
        case Distinct() | Compare() | Fixpoint() | Solution():
            return [set(given.columns) for given in node.inputs]
        case Union():
            places = [at for at, name in enumerate(node.names) if name in here] or [0]
            return [{list(part.columns)[at] for at in places} for part in node.parts]
    return [here | node.used for _ in node.inputs]


def narrowed(node: Node, wanted: set[str]) -> Node:
    """A node with only the columns that are wanted; a table stays whole."""
    kept = [name for name in node.columns if name in wanted]
    if len(kept) == len(node.columns) or keeps_history(node):
        return node
    return Project(node, tuple((name, col(name)) for name in kept or list(node.columns)[:1]))


def rebuilt(node: Node, inputs: list[Node], here: set[str]) -> Node:
    """A node over pruned inputs, with only the columns that are read."""
    wanted = wanted_of_inputs(node, here)
    match node:
        case Project():
            kept = tuple(pair for pair in node.outputs if pair[0] in here) or node.outputs[:1]
            return Project(inputs[0], kept)
        case Aggregate():
            return replace(node, input=inputs[0], calls=tuple(call for call in node.calls if call[0] in here))
        case Window():
            calls = tuple(call for call in node.calls if call[0] in here)
            return Window(narrowed(inputs[0], wanted[0]), calls) if calls else inputs[0]
        case Union():
            places = [at for at, name in enumerate(node.names) if name in here] or [0]
            parts = []
            for part, old in zip(inputs, node.parts, strict=True):
                columns = [list(old.columns)[at] for at in places]
                parts.append(
                    part if list(part.columns) == columns else Project(part, tuple((c, col(c)) for c in columns))
                )
            return Union(tuple(parts), tuple(node.names[at] for at in places))
        case Distinct() | Compare() | Fixpoint() | Solution():
            exact = []
            for given, old in zip(inputs, node.inputs, strict=True):
                columns = list(old.columns)
                same = list(given.columns) == columns
                exact.append(given if same else Project(given, tuple((c, col(c)) for c in columns)))
            return node.with_inputs(*exact)
        case Join():
            joined = node.with_inputs(*(narrowed(g, w) for g, w in zip(inputs, wanted, strict=True)))
            return narrowed(joined, here)
        case Block():
            relations = tuple(narrowed(g, w) for g, w in zip(inputs, wanted, strict=True))
            available = [name for relation in relations for name in relation.columns]
            return replace(
                node, relations=relations, outputs=tuple(n for n in available if n in here) or (available[0],)
            )
        case Top() | Once():
            return node.with_inputs(*(narrowed(g, w) for g, w in zip(inputs, wanted, strict=True)))
    return node.with_inputs(*inputs) if inputs else node
