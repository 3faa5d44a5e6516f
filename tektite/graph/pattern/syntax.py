"""The syntax tree of a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PropertyTerm:
    """`a.name`."""

    variable: str
    property: str

    def __str__(self) -> str:
        return f"{self.variable}.{self.property}"


@dataclass(frozen=True)
class LiteralTerm:
    """A constant."""

    value: Any


@dataclass(frozen=True)
class CallTerm:
    """An operator with its operands. `op` is a key of `conjunction.OPERATORS`."""

    op: str
    operands: tuple[Any, ...]


@dataclass(frozen=True)
class Quantifier:
    """The number of edges of a path: from `least` to `most`, without an upper bound if `most` is None."""

    least: int
    most: int | None


@dataclass(frozen=True)
class NodePattern:
    """`(a IS Person WHERE a.age > 30)`. Without labels, any."""

    variable: str
    labels: tuple[str, ...] = ()
    where: Any = None


@dataclass(frozen=True)
class EdgePattern:
    """`-[e IS Knows]->{1,3}`. The direction is out, in or any."""

    variable: str
    direction: str
    labels: tuple[str, ...] = ()
    where: Any = None
    quantifier: Quantifier | None = None
    named: bool = False


@dataclass(frozen=True)
class PathPattern:
    """Nodes, and the edges between them: one fewer."""

    nodes: tuple[NodePattern, ...]
    edges: tuple[EdgePattern, ...]


@dataclass(frozen=True)
class GraphPattern:
    """A whole GRAPH_TABLE: the paths, the condition, and the columns of the result by name."""

    graph: str | None
    paths: tuple[PathPattern, ...]
    where: Any
    columns: tuple[tuple[str | None, Any], ...] = field(default=())

    @property
    def parts(self) -> list[NodePattern | EdgePattern]:
        """All nodes and edges."""
        found: list[NodePattern | EdgePattern] = []
        for path in self.paths:
            found += [*path.nodes, *path.edges]
        return found


def conjuncts(term: Any) -> list[Any]:
    """The parts of a condition that must all be true."""
    if term is None:
        return []
    if isinstance(term, CallTerm) and term.op == "and":
        return [part for operand in term.operands for part in conjuncts(operand)]
    return [term]


def properties(term: Any) -> list[PropertyTerm]:
    """The properties that a term reads."""
    if isinstance(term, PropertyTerm):
        return [term]
    if isinstance(term, CallTerm):
        return [found for operand in term.operands for found in properties(operand)]
    return []
