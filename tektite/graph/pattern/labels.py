"""The labels that the nodes and edges of a pattern may have: every way in which edges lead between nodes of their labels.

A pattern that names all labels has one way. A node or an edge without a label, or with several, and an edge in any direction,
may have more: the answers of all ways are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tektite as tk
from tektite.graph.pattern.syntax import EdgePattern, GraphPattern, NodePattern
from tektite.graph.property_graph import PropertyGraph

MOST = 64
"""Ways that a pattern may have: each is a conjunction of its own."""


@dataclass(frozen=True)
class PatternStep:
    """An edge of a pattern between two variables, and its labels: one, or several of a quantified edge. `turned` says that it is
    followed against its direction.
    """

    edge: EdgePattern
    left: str
    right: str
    labels: tuple[str, ...] = ()
    turned: bool = False

    @property
    def again(self) -> bool:
        """Whether this is the second direction of an edge in any direction, in which a loop must not count again."""
        return self.turned and self.edge.direction == "any" and self.edge.quantifier is None


@dataclass(frozen=True)
class Way:
    """A choice of labels: the label of each node variable, and the steps."""

    nodes: dict[str, str]
    steps: tuple[PatternStep, ...]


def ways(graph: PropertyGraph, pattern: GraphPattern) -> list[Way]:
    """All choices of labels. Raises if there is none."""
    nodes = _node_labels(graph, [node for path in pattern.paths for node in path.nodes])
    steps = [
        PatternStep(edge, path.nodes[at].variable, path.nodes[at + 1].variable)
        for path in pattern.paths
        for at, edge in enumerate(path.edges)
    ]
    names = [step.edge.variable for step in steps]
    for name in names:
        if names.count(name) > 1 or name in nodes:
            raise tk.IncorrectError(f"pattern: the edge variable {name!r} is used twice; give each edge its own")
    found: list[Way] = []
    for way in _chosen(graph, steps, {}, nodes, ()):
        found.append(way)
        if len(found) > MOST:
            raise tk.UnsupportedError(
                f"pattern: its nodes and edges may have labels in more than {MOST} ways; name them, as in (a IS "
                f"{next(iter(graph.nodes))})"
            )
    if not found:
        raise tk.IncorrectError(f"pattern: no labels of {graph!r} fit: no edge label leads as the pattern does")
    return found


def _node_labels(graph: PropertyGraph, nodes: list[NodePattern]) -> dict[str, list[str]]:
    """The labels that each node variable may have."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        for label in node.labels:
            graph.node(label)
        possible = list(dict.fromkeys(node.labels or graph.nodes))
        before = found.get(node.variable, possible)
        found[node.variable] = [label for label in before if label in possible]
        if not found[node.variable]:
            raise tk.IncorrectError(f"pattern: the node {node.variable!r} cannot have all the labels that it is given")
    return found


def _chosen(
    graph: PropertyGraph,
    left: list[PatternStep],
    chosen: dict[str, str],
    nodes: dict[str, list[str]],
    steps: tuple[PatternStep, ...],
) -> Iterator[Way]:
    """Every completion of a choice: the edges first, since they decide about their nodes."""
    if left:
        step = left[0]
        for made, source, target in _labelled(graph, step):
            ends = {step.left: source, step.right: target}
            if step.left == step.right and (source != target or made.again):
                continue
            fits = all(label in nodes[name] and chosen.get(name, label) == label for name, label in ends.items())
            if fits:
                yield from _chosen(graph, left[1:], chosen | ends, nodes, (*steps, made))
        return
    free = [name for name in nodes if name not in chosen]
    if not free:
        yield Way(chosen, steps)
        return
    for label in nodes[free[0]]:
        yield from _chosen(graph, [], chosen | {free[0]: label}, nodes, steps)


def _labelled(graph: PropertyGraph, step: PatternStep) -> Iterator[tuple[PatternStep, str, str]]:
    """A step with each label that it may have, and the node labels at its left and right."""
    edge = step.edge
    for label in edge.labels:
        graph.edge(label)
    labels = tuple(dict.fromkeys(edge.labels or graph.edges))
    if edge.quantifier is not None:
        yield from _quantified(graph, step, labels)
        return
    for label in labels:
        found = graph.edge(label)
        if edge.direction in ("out", "any"):
            yield PatternStep(edge, step.left, step.right, (label,)), found.source, found.target
        if edge.direction in ("in", "any"):
            yield PatternStep(edge, step.left, step.right, (label,), turned=True), found.target, found.source


def _quantified(
    graph: PropertyGraph, step: PatternStep, labels: tuple[str, ...]
) -> Iterator[tuple[PatternStep, str, str]]:
    """A quantified edge follows all its labels that lead from a node label to the same one."""
    for label in step.edge.labels:
        found = graph.edge(label)
        if found.source != found.target:
            raise tk.UnsupportedError(
                f"pattern: {label} leads from {found.source} to {found.target}; edges with a quantifier lead between nodes of "
                "one label, so that one can follow another"
            )
    for node in graph.nodes:
        usable = tuple(label for label in labels if graph.edge(label).source == graph.edge(label).target == node)
        if usable:
            yield PatternStep(step.edge, step.left, step.right, usable, step.edge.direction == "in"), node, node
