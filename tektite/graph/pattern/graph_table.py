"""GRAPH_TABLE: the rows that match a pattern of a property graph, as a collection."""

from __future__ import annotations

from typing import Any

import tektite as tk
from tektite.graph.pattern.conjunction import WayPlan
from tektite.graph.pattern.labels import ways
from tektite.graph.pattern.syntax import GraphPattern, PropertyTerm, conjuncts, properties
from tektite.graph.property_graph import PropertyGraph


def graph_table(graph: PropertyGraph, pattern: str) -> tk.Collection:
    """The rows that match a pattern, written as in SQL/PGQ: `MATCH (a IS Person)-[e IS Knows]->(b) WHERE ... COLUMNS (a.name,
    b.name)`.

    * A node is `(a IS Label WHERE ...)`, an edge `-[e IS Label WHERE ...]->`, `<-[...]-` or, in any direction, `-[...]-`.
      Variable, label and condition may be left out; `->`, `<-` and `-` are edges without any. `IS A|B` is one label or the other.
    * Several paths are separated by commas. A variable in several places is one node.
    * `->*`, `->+`, `->{2}`, `->{1,3}` and `->{2,}` are walks of so many edges. Each pair of ends that a walk leads between counts
      once.
    * The same node or edge may match several parts of a pattern. Every match is a row.

    Patterns with a cycle are kept up to date worst-case optimally, and walks of any length by loops from the nodes that the
    pattern allows at an end. All patterns and algorithms share the indexes of the tables.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> social = graph.PropertyGraph.create(
    ...     engine, "social", nodes={"Person": {"id": tk.Int, "name": tk.String}}, edges={"Knows": ("Person", "Person", {})}
    ... )
    >>> friends = graph.graph_table(social, '''
    ...     MATCH (a IS Person WHERE a.name = 'ann')-[IS Knows]->(b)-[IS Knows]->(c) COLUMNS (b.name AS friend, c.name AS second)
    ... ''')
    >>> view = engine.install("friends", friends)
    >>> _ = social.add_nodes("Person", [(1, "ann"), (2, "bob"), (3, "cid")])
    >>> _ = social.add_edges("Knows", [(1, 2), (2, 3)])
    >>> view.rows()
    [('bob', 'cid')]
    >>> reached = engine.install("reached", graph.graph_table(social, "MATCH (a)->+(b) WHERE a.id = 1 COLUMNS (b.id)"))
    >>> sorted(reached.rows())
    [(2,), (3,)]
    """
    from tektite.graph.pattern.grammar import parse  # the parser is loaded when it is needed

    if not isinstance(graph, PropertyGraph):
        raise tk.IncorrectError(
            f"graph_table finds patterns in a PropertyGraph, which has labels; found {type(graph).__name__}: "
            "PropertyGraph({'Node': NodeTable(nodes, 'id')}, {'Edge': EdgeTable(edges, 'Node', 'Node', 'src', 'dst')}) makes one"
        )
    found = parse(pattern)
    if found.graph is not None and found.graph != graph.name:
        raise tk.NotFoundError(f"pattern: there is no graph {found.graph!r}; this one is {graph.name!r}")
    columns = _columns(found)
    possible = ways(graph, found)
    types: dict[PropertyTerm, tk.Type] = {}
    plans = [WayPlan(graph, found, way, types) for way in possible]
    for term in _read(found):
        types[term] = _type(graph, found, term, plans)
    parts = [plan.collection(columns) for plan in plans]
    return parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]


def _columns(pattern: GraphPattern) -> dict[str, Any]:
    """The terms of the columns by their names."""
    found: dict[str, Any] = {}
    for given, term in pattern.columns:
        name = given or (term.property if isinstance(term, PropertyTerm) else None)
        if name is None:
            raise tk.IncorrectError("pattern: a column that is not a property needs a name: write AS name behind it")
        if name in found:
            raise tk.IncorrectError(f"pattern: two columns are called {name!r}; name one of them with AS")
        found[name] = term
    return found


def _read(pattern: GraphPattern) -> list[PropertyTerm]:
    """All properties that a pattern reads."""
    for edge in (edge for path in pattern.paths for edge in path.edges if edge.quantifier is not None):
        for term in properties(edge.where):
            if term.variable != edge.variable:
                raise tk.UnsupportedError(
                    f"pattern: the condition of an edge with a quantifier may read that edge alone, not {term}"
                )
    inline = [term for part in pattern.parts for term in conjuncts(part.where)]
    terms = [*conjuncts(pattern.where), *inline, *(term for _, term in pattern.columns)]
    return list(dict.fromkeys(found for term in terms for found in properties(term)))


def _type(graph: PropertyGraph, pattern: GraphPattern, term: PropertyTerm, plans: list[WayPlan]) -> tk.Type:
    """The type of a property, which must be the same in every way that has it."""
    nodes = {node.variable for path in pattern.paths for node in path.nodes}
    edges = {edge.variable: edge for path in pattern.paths for edge in path.edges}
    if term.variable not in nodes and term.variable not in edges:
        known = sorted(name for name in (*nodes, *edges) if not name.startswith("#"))
        raise tk.NotFoundError(
            f"pattern: {term}: there is no {term.variable!r} in MATCH; there are {', '.join(known) or 'none'}"
        )
    if term.variable in edges and edges[term.variable].quantifier is not None:
        outside = [*conjuncts(pattern.where), *(found for _, found in pattern.columns)]
        if any(term in properties(found) for found in outside):
            raise tk.UnsupportedError(
                f"pattern: {term}: {term.variable!r} stands for many edges, so that it has no one {term.property}; put "
                "conditions into the brackets of the edge"
            )
    found = dict.fromkeys(type for plan in plans if (type := plan.type(term)) is not None)
    if not found:
        have = dict.fromkeys(name for plan in plans for name in plan.columns_of(term.variable))
        raise tk.NotFoundError(f"pattern: {term}: there is no property {term.property!r}; there are {', '.join(have)}")
    if len(found) > 1:
        raise tk.IncorrectError(
            f"pattern: {term} is {' or '.join(map(str, found))}, by the label of {term.variable!r}; name the label"
        )
    return next(iter(found))
