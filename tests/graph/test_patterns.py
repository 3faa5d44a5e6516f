"""Patterns of property graphs follow their nodes and edges: at every epoch they are what trying every assignment gives, in Python
and in SQL.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import tektite as tk
from tektite import graph
from tests.support.executors import examples, make_engine
from tests.support.graph_patterns import EDGE_LABELS, NODE_LABELS, DrawnPattern, Store, answer, drawn
from tests.support.nightly import few_of

pytestmark = pytest.mark.executors

TYPES = {"id": tk.Int, "age": tk.Int, "name": tk.String, "size": tk.Int, "since": tk.Int, "km": tk.Int}


def as_sql(found: graph.PropertyGraph) -> str:
    """The statement that makes the same graph in SQL, over the tables of one that was made in Python."""
    nodes = [f'"{one.rows.name}" KEY ({one.key}) LABEL {label}' for label, one in found.nodes.items()]
    edges = [
        f'"{one.rows.name}" SOURCE KEY ({one.src}) REFERENCES "{found.nodes[one.source].rows.name}" DESTINATION KEY ({one.dst}) '
        f'REFERENCES "{found.nodes[one.target].rows.name}" LABEL {label}'
        for label, one in found.edges.items()
    ]
    return f"CREATE PROPERTY GRAPH {found.name} VERTEX TABLES ({', '.join(nodes)}) EDGE TABLES ({', '.join(edges)})"


def in_sql(text: str) -> str:
    """A pattern as a query of SQL."""
    return f"SELECT * FROM {text if text.startswith('GRAPH_TABLE') else f'GRAPH_TABLE (social {text})'}"


class Changing:
    """A property graph that changes, and its twin."""

    def __init__(self, rng: random.Random, engine: tk.Engine) -> None:
        self.rng, self.engine, self.store = rng, engine, Store()
        self.graph = graph.PropertyGraph.create(
            engine,
            "social",
            {label: {name: TYPES[name] for name in names} for label, names in NODE_LABELS.items()},
            {
                label: (source, target, {name: TYPES[name] for name in names})
                for label, (source, target, names) in EDGE_LABELS.items()
            },
            self_loops=True,
        )

    def values(self, names: list[str]) -> dict[str, Any]:
        rng = self.rng
        return {
            name: rng.choice("xyz") if TYPES[name] == tk.String else rng.choice([None, 0, 1, 2, 3]) for name in names
        }

    def change(self, many: int) -> None:
        rng, store = self.rng, self.store
        with self.engine.transaction():
            for _ in range(many):
                if rng.random() < 0.35 or not store.nodes:
                    label = rng.choice(list(NODE_LABELS))
                    values = {**self.values(NODE_LABELS[label]), "id": rng.randint(0, 3 if label == "Person" else 2)}
                    store.nodes[label, values["id"]] = values
                    self.graph.add_nodes(label, [tuple(values[name] for name in NODE_LABELS[label])])
                    continue
                label = rng.choice(list(EDGE_LABELS))
                source, target, names = EDGE_LABELS[label]
                ends = [[key for kind, key in store.nodes if kind == end] for end in (source, target)]
                if not all(ends):
                    continue
                src, dst = map(rng.choice, ends)
                if (label, src, dst) in store.edges and rng.random() < 0.6:
                    del store.edges[label, src, dst]
                    self.graph.remove_edges(label, [(src, dst)])
                else:
                    values = self.values(names)
                    store.edges[label, src, dst] = values
                    self.graph.add_edges(label, [(src, dst, *values.values())])


@pytest.mark.executors("stages")
@pytest.mark.parametrize("seed", few_of(range(20), *range(8)))
def test_random_patterns(seed: int) -> None:
    rng = random.Random(seed)
    with make_engine(workers=seed % 3 + 1, autocommit=True) as engine:
        changing = Changing(rng, engine)
        engine.sql(as_sql(changing.graph))
        views: list[tuple[DrawnPattern, tk.View]] = []
        for at in range(examples(6)):
            pattern = drawn(rng)
            try:
                views.append((pattern, engine.install(f"v{at}", graph.graph_table(changing.graph, pattern.text()))))
            except tk.IncorrectError as error:
                assert "no labels of" in str(error) or "all the labels" in str(error), pattern.text()
                assert answer(changing.store, pattern) == {}
                with pytest.raises(tk.IncorrectError, match="no labels of|all the labels"):
                    engine.sql(in_sql(pattern.text()))
                continue
            views.append((pattern, engine.sql(f"CREATE MATERIALIZED VIEW s{at} AS {in_sql(pattern.text())}").view))
        for epoch in range(4):
            changing.change(12 if epoch == 0 else 4)
            for pattern, view in views:
                assert view.multiplicities() == answer(changing.store, pattern), (pattern.text(), epoch)


@pytest.fixture
def social() -> Any:
    engine = make_engine(2, autocommit=True)
    with engine:
        found = graph.PropertyGraph.create(
            engine,
            "social",
            {"Person": {"id": tk.Int, "name": tk.String, "age": tk.Int}, "City": {"name": tk.String, "people": tk.Int}},
            {"Knows": ("Person", "Person", {"since": tk.Int}), "LivesIn": ("Person", "City", {})},
        )
        found.add_nodes("Person", [(1, "ann", 30), (2, "bob", 40), (3, "cid", None), (4, "dan", 50)])
        found.add_nodes("City", [("Bonn", 300), ("Ulm", 100)])
        found.add_edges("Knows", [(1, 2, 2001), (2, 3, 2002), (3, 1, 2003), (3, 4, 2004)])
        found.add_edges("LivesIn", [(1, "Bonn"), (2, "Bonn"), (4, "Ulm")])
        yield found


def engine_of(found: graph.PropertyGraph) -> tk.Engine:
    engine: tk.Engine = found.nodes["Person"].rows.engine
    return engine


CASES = {
    "nodes": ("MATCH (c IS City) COLUMNS (c.name)", [("Bonn",), ("Ulm",)]),
    "a colon is a label, too": ("MATCH (c:City) COLUMNS (c.name)", [("Bonn",), ("Ulm",)]),
    "an edge": ("MATCH (a)-[e IS Knows]->(b) WHERE e.since > 2002 COLUMNS (a.id, b.id AS other)", [(3, 1), (3, 4)]),
    "against": ("MATCH (a IS Person)<-[IS Knows]-(b) WHERE a.name = 'ann' COLUMNS (b.name)", [("cid",)]),
    "any direction": (
        "MATCH (a WHERE a.id = 3)-[IS Knows]-(b) COLUMNS (b.name)",
        [("ann",), ("bob",), ("dan",)],
    ),
    "any label": ("MATCH (a IS Person)->(b) WHERE a.id = 1 COLUMNS (b.name)", [("Bonn",), ("bob",)]),
    "expressions": (
        "MATCH (a IS Person) WHERE NOT (a.age + 1 > 40 OR a.age IS NULL) COLUMNS (a.name, a.age * 2 - 1 AS twice)",
        [("ann", 59)],
    ),
    "between, in, like": (
        "MATCH (a IS Person) WHERE a.age BETWEEN 30 AND 50 AND a.id IN (2, 4, 9) AND a.name LIKE '%a%' COLUMNS (a.name)",
        [("dan",)],
    ),
    "less than a negative number": (
        "MATCH (a IS Person) WHERE a.age >-1 AND 1 <-a.age*-1 COLUMNS (a.id)",
        [(1,), (2,), (4,)],
    ),
    "a cycle": (
        "MATCH (a)-[IS Knows]->(b)-[IS Knows]->(c)-[IS Knows]->(a) COLUMNS (a.id, b.id AS b, c.id AS c)",
        [(1, 2, 3), (2, 3, 1), (3, 1, 2)],
    ),
    "two paths": (
        "MATCH (a)-[IS Knows]->(b), (a)-[IS LivesIn]->(c)<-[IS LivesIn]-(b) COLUMNS (a.name AS a, b.name AS b, c.name AS c)",
        [("ann", "bob", "Bonn")],
    ),
    "any number of edges": ("MATCH (a WHERE a.id = 1)-[IS Knows]->*(b) COLUMNS (b.id)", [(1,), (2,), (3,), (4,)]),
    "from the right": ("MATCH (a)-[IS Knows]->+(b) WHERE b.id = 4 COLUMNS (a.id)", [(1,), (2,), (3,)]),
    "exactly two": ("MATCH ANY (a WHERE a.id = 1)-[IS Knows]->{2}(b) COLUMNS (b.id)", [(3,)]),
    "up to two": ("MATCH (a WHERE a.id = 1)-[IS Knows]->{,2}(b) COLUMNS (b.id)", [(1,), (2,), (3,)]),
    "walks over some edges": (
        "MATCH (a WHERE a.id = 1)-[e IS Knows WHERE e.since < 2003]->+(b) COLUMNS (b.id)",
        [(2,), (3,)],
    ),
    "with its name around": ("GRAPH_TABLE (social MATCH (c IS City) COLUMNS (c.people))", [(100,), (300,)]),
    "quoted names and comments": ('match ("x y" is City) -- all\ncolumns ("x y".name as "n n")', [("Bonn",), ("Ulm",)]),
    "no such row": ("MATCH (a)-[IS Knows]->(a) COLUMNS (a.id)", []),
}


@pytest.mark.parametrize("name", CASES)
def test_pattern(social: graph.PropertyGraph, name: str) -> None:
    text, rows = CASES[name]
    engine = engine_of(social)
    view = engine.install("v", graph.graph_table(social, text))
    assert sorted(view.rows()) == rows
    engine.sql(as_sql(social))
    assert sorted(engine.sql(f"CREATE MATERIALIZED VIEW s AS {in_sql(text)}").view.rows()) == rows


def test_cycles_run_worst_case_optimally_over_the_indexes_that_are_there(social: graph.PropertyGraph) -> None:
    engine = engine_of(social)
    engine.install("components", graph.scc(social.graph("Knows")))
    before = [found.name for found in engine.indexes() if found.name.startswith("social_Knows")]
    text = "MATCH (a)-[IS Knows]->(b)-[IS Knows]->(c)-[IS Knows]->(a) COLUMNS (a.id, b.id AS b, c.id AS c)"
    found = graph.graph_table(social, text)
    assert "strategy hector (cyclic)" in found.explain()
    engine.install("triangles", found)
    assert [found.name for found in engine.indexes() if found.name.startswith("social_Knows")] == before


def test_graph_over_collections_leaves_out_edges_to_what_is_no_node(social: graph.PropertyGraph) -> None:
    engine = engine_of(social)
    people = social.nodes["Person"].rows.filter(tk.col("id") != 2)
    seen = graph.PropertyGraph(
        {"P": graph.NodeTable(people)}, {"K": graph.EdgeTable(social.edges["Knows"].rows, "P", "P")}, "seen"
    )
    pairs = engine.install("pairs", graph.graph_table(seen, "MATCH (a)->(b) COLUMNS (a.id, b.id AS b)"))
    reached = engine.install("reached", graph.graph_table(seen, "MATCH (a)->+(b) COLUMNS (a.id, b.id AS b)"))
    assert sorted(pairs.rows()) == sorted(reached.rows()) == [(3, 1), (3, 4)]
    with pytest.raises(tk.UnsupportedError, match="looks at collections"):
        seen.add_edges("K", [(1, 3)])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("MATCH (a IS Dog) COLUMNS (a.id)", tk.NotFoundError, r"no node label 'Dog'; it has Person, City"),
        ("MATCH (a)-[IS Eats]->(b) COLUMNS (a.id)", tk.NotFoundError, r"no edge label 'Eats'; it has Knows, LivesIn"),
        (
            "MATCH (a IS Person) COLUMNS (a.size)",
            tk.NotFoundError,
            r"a.size: there is no property 'size'; there are id, name",
        ),
        ("MATCH (a IS Person) COLUMNS (b.id)", tk.NotFoundError, r"b.id: there is no 'b' in MATCH; there are a"),
        ("MATCH (a IS Person) COLUMNS (a.id, a.id)", tk.IncorrectError, r"two columns are called 'id'"),
        ("MATCH (a IS Person) COLUMNS (a.id + 1)", tk.IncorrectError, r"needs a name: write AS name"),
        ("MATCH (a IS City)-[IS Knows]->(b) COLUMNS (a.name)", tk.IncorrectError, r"no labels of .* fit"),
        ("MATCH (a IS City), (a IS Person) COLUMNS (a.name)", tk.IncorrectError, r"'a' cannot have all the labels"),
        ("MATCH (a)-[e]->(b)-[e]->(c) COLUMNS (a.name)", tk.IncorrectError, r"edge variable 'e' is used twice"),
        ("MATCH (a)-[e IS Knows]->*(b) COLUMNS (e.since)", tk.UnsupportedError, r"'e' stands for many edges"),
        ("MATCH (a)-[IS LivesIn]->*(b) COLUMNS (a.id)", tk.UnsupportedError, r"LivesIn leads from Person to City"),
        (
            "MATCH (a)-[IS Knows]->{99}(b) COLUMNS (a.id)",
            tk.UnsupportedError,
            r"asks for 99 edges; it may count up to 32",
        ),
        ("MATCH (a)-[IS Knows]->{3,1}(b) COLUMNS (a.id)", tk.IncorrectError, r"\{3,1\} has no edge to match"),
        (
            "MATCH (a)-[e IS Knows WHERE a.id = 1]->*(b) COLUMNS (a.id)",
            tk.UnsupportedError,
            r"may read that edge alone, not a.id",
        ),
        (
            "MATCH (a IS Person COLUMNS (a.id)",
            tk.IncorrectError,
            r"line 1, column 20: this does not continue a pattern",
        ),
        ("MATCH (a) WHERE a.name = COLUMNS (a.id)", tk.IncorrectError, r"line 1, column 26"),
        ("MATCH (a IS Person) WHERE a.name > 1 COLUMNS (a.id)", tk.IncorrectError, r"name"),
        ("GRAPH_TABLE (other MATCH (a) COLUMNS (a.name))", tk.NotFoundError, r"no graph 'other'; this one is 'social'"),
        (3, tk.IncorrectError, r"a pattern is text"),
    ],
)
def test_wrong_patterns_are_refused(
    social: graph.PropertyGraph, text: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        graph.graph_table(social, text)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda g: g.add_edges("Knows", [(1, 9, 2000)]), r"Knows: the edge \(1, 9\) has dst 9, which is no Person"),
        (lambda g: g.add_edges("Knows", [(1, 1, 2000)]), r"leads from a node to itself"),
        (lambda g: g.add_edges("Knows", [(1, None, 2000)]), r"has no dst"),
        (lambda g: g.add_edges("LivesIn", [(1, "Rome")]), r"dst 'Rome', which is no City"),
        (lambda g: g.add_edges("Eats", [(1, 2)]), r"no edge label 'Eats'; it has Knows, LivesIn"),
        (lambda g: g.add_nodes("Dog", [(1,)]), r"no node label 'Dog'"),
        (
            lambda g: g.remove_nodes("Person", [4, 2]),
            r"node 2 has the edge \(2, 3, 2002\) of Knows; remove its edges first",
        ),
        (lambda g: g.graph("LivesIn"), r"LivesIn leads from Person to City"),
        (lambda g: g.graph("Knows", weight="name"), r"name"),
    ],
)
def test_wrong_writes_change_nothing(social: graph.PropertyGraph, write: Any, message: str) -> None:
    tables = [engine_of(social).table(name) for name in engine_of(social).tables]
    before = [sorted(table.rows(), key=str) for table in tables]
    with pytest.raises(tk.TektiteError, match=message):
        write(social)
    assert [sorted(table.rows(), key=str) for table in tables] == before


def test_graphs_with_wrong_labels_leave_no_table() -> None:
    with make_engine(autocommit=True) as engine:
        for nodes, edges, message in [
            ({"A": {"id": tk.Int}}, {"E": ("A", "B", {})}, r"E leads to 'B', which is no node label; there are A"),
            ({"A": {}}, {}, r"A has no column that could be its key"),
            ({"A": {"id": tk.Int}}, {"A": ("A", "A", {})}, r"A"),
        ]:
            with pytest.raises(tk.TektiteError, match=message):
                graph.PropertyGraph.create(engine, "g", nodes, edges)  # type: ignore[arg-type]
            assert engine.tables == ()
