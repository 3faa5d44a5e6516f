"""Views that are only definitions, and property graphs: what has a name and no rows of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from tektite.sql.parse.places import StatementText
from tektite.values.types import Type


@dataclass
class Definition:
    """A view that is only a definition: its query and the names of its columns."""

    name: str
    tree: exp.Expr
    aliases: list[str]
    source: StatementText
    reads: set[str] = field(default_factory=set)
    named: frozenset[str] = frozenset()
    """The relations that it names itself and reads by the rights of its owner. The views that it names read the rest."""
    types: tuple[Type, ...] = ()
    """The types of its columns when it was made: nothing that it reads can be replaced while it is there."""


@dataclass(frozen=True)
class NodeLabel:
    """A label of nodes: its table, the columns that tell nodes apart, and the columns of its properties by their names."""

    table: str
    key: tuple[str, ...]
    properties: dict[str, str]


@dataclass(frozen=True)
class EdgeLabel:
    """A label of edges: its table, the node labels that it leads between, the columns with their keys, and its properties."""

    table: str
    source: str
    target: str
    src: tuple[str, ...]
    dst: tuple[str, ...]
    properties: dict[str, str]


@dataclass
class GraphDefinition(Definition):
    """A property graph, which GRAPH_TABLE reads by the rights of its owner, as a view is read. It has no columns."""

    nodes: dict[str, NodeLabel] = field(default_factory=dict)
    edges: dict[str, EdgeLabel] = field(default_factory=dict)
