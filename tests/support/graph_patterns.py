"""Random patterns of a property graph, as text and as what they come to: every assignment of nodes and edges is tried.

The twin does not read the text. It has the pattern as it was drawn, and the nodes and edges as lists.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

NODE_LABELS: dict[str, list[str]] = {"Person": ["id", "age", "name"], "City": ["id", "age", "size"]}
EDGE_LABELS: dict[str, tuple[str, str, list[str]]] = {
    "Knows": ("Person", "Person", ["since"]),
    "Likes": ("Person", "Person", []),
    "LivesIn": ("Person", "City", ["since"]),
    "Road": ("City", "City", ["km"]),
}
NUMBERS = {"id", "age", "since", "km", "size"}

Node = tuple[str, int]
Values = dict[str, Any]


@dataclass
class Store:
    """Nodes by label and key, and edges by label and ends, with their properties."""

    nodes: dict[Node, Values] = field(default_factory=dict)
    edges: dict[tuple[str, int, int], Values] = field(default_factory=dict)

    def steps(self, labels: list[str]) -> Iterator[tuple[Node, Node, str, Values]]:
        for (label, src, dst), values in self.edges.items():
            if label in labels:
                source, target, _ = EDGE_LABELS[label]
                yield (source, src), (target, dst), label, values


@dataclass
class DrawnEdge:
    """An edge of a pattern, with a condition on one property."""

    variable: str
    labels: list[str]
    direction: str
    quantifier: tuple[int, int | None] | None
    condition: tuple[str, str, int] | None

    def text(self) -> str:
        name = self.variable if self.condition or self.quantifier is None else ""
        inside = name + (f" IS {'|'.join(self.labels)}" if self.labels else "")
        if self.condition:
            inside += f" WHERE {self.variable}.{self.condition[0]} {self.condition[1]} {self.condition[2]}"
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "any": ("-", "-")}[self.direction]
        if self.quantifier is None:
            return f"{left}[{inside}]{right}"
        least, most = self.quantifier
        mark = {(0, None): "*", (1, None): "+"}.get((least, most), f"{{{least},{'' if most is None else most}}}")
        return f"{left}[{inside}]{right}{mark}"


@dataclass
class DrawnPattern:
    """Paths of node variables and edges; labels and conditions of nodes; conditions between two; the columns."""

    paths: list[tuple[list[str], list[DrawnEdge]]]
    labels: dict[str, list[str]]
    where: list[tuple[str, str, Any]]
    columns: list[str]

    def text(self) -> str:
        shown: set[str] = set()

        def node(name: str) -> str:
            label = f" IS {'|'.join(self.labels[name])}" if self.labels[name] and name not in shown else ""
            shown.add(name)
            return f"({name}{label})"

        paths = [
            node(nodes[0]) + "".join(edge.text() + node(name) for edge, name in zip(edges, nodes[1:], strict=True))
            for nodes, edges in self.paths
        ]
        where = " AND ".join(f"{left} {op} {right}" for left, op, right in self.where)
        columns = ", ".join(f"{column} AS c{at}" for at, column in enumerate(self.columns))
        return f"MATCH {', '.join(paths)}{' WHERE ' + where if where else ''} COLUMNS ({columns})"


def drawn(rng: random.Random) -> DrawnPattern:
    """A pattern of one to three edges: a path, a star, or a cycle."""
    names = ["a", "b", "c", "d"]
    many = rng.choice([0, 1, 1, 2, 2, 3])
    edges = [_edge(rng, f"e{at}") for at in range(many)]
    nodes = names[: many + 1]
    if many >= 2 and rng.random() < 0.4:
        nodes[-1] = nodes[0]  # a cycle
    elif many >= 1 and rng.random() < 0.1:
        nodes[-1] = nodes[-2]
    paths = [(nodes, edges)]
    if many >= 2 and rng.random() < 0.4:
        paths = [(nodes[:2], edges[:1]), (nodes[1:], edges[1:])]
    used = list(dict.fromkeys(nodes))
    labels: dict[str, list[str]] = {
        name: rng.choice([[], ["Person"], ["Person"], ["City"], ["Person", "City"]]) for name in used
    }
    simple = [edge.variable for edge in edges if edge.quantifier is None]
    fields = [f"{name}.{rng.choice(['id', 'age'])}" for name in used] + [f"{name}.src" for name in simple]
    where: list[tuple[str, str, Any]] = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        right = rng.choice([rng.randint(0, 4), rng.choice(fields)])
        where.append((rng.choice(fields), rng.choice(["=", "<>", "<", ">="]), right))
    columns = [rng.choice(fields) for _ in range(rng.randint(1, 3))]
    return DrawnPattern(paths, labels, where, columns)


def _edge(rng: random.Random, variable: str) -> DrawnEdge:
    labels = rng.choice([[], ["Knows"], ["Knows"], ["Road"], ["Knows", "Likes"], ["LivesIn"], ["Knows", "LivesIn"]])
    quantifier = None
    if rng.random() < 0.3 and "LivesIn" not in labels:
        quantifier = rng.choice([(0, None), (1, None), (1, 2), (2, None), (0, 2), (2, 2)])
    condition = ("src", rng.choice([">", "<"]), 1) if rng.random() < 0.2 else None
    return DrawnEdge(variable, labels, rng.choice(["out", "out", "in", "any"]), quantifier, condition)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def answer(store: Store, pattern: DrawnPattern) -> dict[tuple[Any, ...], int]:
    """The rows that match, with how often."""
    steps = [(nodes[at], edge, nodes[at + 1]) for nodes, edges in pattern.paths for at, edge in enumerate(edges)]
    names = list(dict.fromkeys(name for nodes, _ in pattern.paths for name in nodes))
    found: Counter[tuple[Any, ...]] = Counter()
    for chosen in _nodes(store, pattern, names, {}):
        for edges in _edges(store, steps, chosen, {}):
            if all(_holds(store, chosen, edges, condition) for condition in pattern.where):
                found[tuple(_value(store, chosen, edges, column) for column in pattern.columns)] += 1
    return dict(found)


def _nodes(store: Store, pattern: DrawnPattern, names: list[str], chosen: dict[str, Node]) -> Iterator[dict[str, Node]]:
    if len(chosen) == len(names):
        yield chosen
        return
    name = names[len(chosen)]
    for node in store.nodes:
        if not pattern.labels[name] or node[0] in pattern.labels[name]:
            yield from _nodes(store, pattern, names, {**chosen, name: node})


def _edges(store: Store, steps: list[Any], chosen: dict[str, Node], edges: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not steps:
        yield edges
        return
    left, edge, right = steps[0]
    u, v = chosen[left], chosen[right]
    labels = edge.labels or list(EDGE_LABELS)
    if edge.quantifier is not None:
        if _walk(store, edge, labels, u, v):
            yield from _edges(store, steps[1:], chosen, edges)
        return
    for source, target, _, values in store.steps(labels):
        fits = (edge.direction != "in" and (source, target) == (u, v)) or (
            edge.direction != "out" and (target, source) == (u, v)
        )
        if fits and _passes(edge, {**values, "src": source[1], "dst": target[1]}):
            found = {**values, "src": source[1], "dst": target[1]}
            yield from _edges(store, steps[1:], chosen, {**edges, edge.variable: found})


def _passes(edge: DrawnEdge, values: Values) -> bool:
    return edge.condition is None or COMPARE[edge.condition[1]](values[edge.condition[0]], edge.condition[2])


def _walk(store: Store, edge: DrawnEdge, labels: list[str], u: Node, v: Node) -> bool:
    if u[0] != v[0] or not any(EDGE_LABELS[label][:2] == (u[0], u[0]) for label in labels):
        return False
    pairs = set()
    for source, target, label, values in store.steps(labels):
        if EDGE_LABELS[label][:2] == (u[0], u[0]) and _passes(edge, {**values, "src": source[1], "dst": target[1]}):
            pairs |= {(source, target)} if edge.direction != "in" else set()
            pairs |= {(target, source)} if edge.direction != "out" else set()
    least, most = edge.quantifier or (1, 1)
    level = {u}
    for length in range((least + len(store.nodes) if most is None else most) + 1):
        if length >= least and v in level:
            return True
        level = {b for a, b in pairs if a in level}
    return False


def _value(store: Store, chosen: dict[str, Node], edges: dict[str, Any], term: Any) -> Any:
    if isinstance(term, int):
        return term
    name, column = term.split(".")
    if name in chosen:
        return store.nodes[chosen[name]].get(column)
    return edges[name].get(column)


def _holds(store: Store, chosen: dict[str, Node], edges: dict[str, Any], condition: tuple[str, str, Any]) -> bool:
    left, right = (_value(store, chosen, edges, condition[at]) for at in (0, 2))
    return left is not None and right is not None and COMPARE[condition[1]](left, right)
