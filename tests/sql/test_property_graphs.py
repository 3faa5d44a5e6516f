"""Property graphs in SQL: what they are made of, who may read them, what is refused. tests/graph/test_patterns.py has answers."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.server import running_server

pytestmark = pytest.mark.executors("stages")

SETUP = """
CREATE TABLE person (id int PRIMARY KEY, name varchar, age int);
CREATE TABLE city (country varchar, name varchar, people int, PRIMARY KEY (country, name));
CREATE TABLE knows (a int, b int, since int);
CREATE TABLE lives (p int, country varchar, city varchar);
INSERT INTO person VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cid', NULL);
INSERT INTO city VALUES ('de', 'Bonn', 300), ('us', 'Bonn', 1);
INSERT INTO knows VALUES (1, 2, 2019), (2, 3, 2020), (3, 99, 2021);
INSERT INTO lives VALUES (1, 'de', 'Bonn'), (2, 'us', 'Bonn');
"""
GRAPH = """
CREATE PROPERTY GRAPH social
  VERTEX TABLES (person LABEL Person, city PROPERTIES (name, people AS size))
  EDGE TABLES (
    knows SOURCE KEY (a) REFERENCES person (id) DESTINATION KEY (b) REFERENCES person (id),
    lives SOURCE KEY (p) REFERENCES person
          DESTINATION KEY (city, country) REFERENCES city (name, country) NO PROPERTIES)
"""
PATH = "GRAPH_TABLE (social MATCH (a WHERE a.name = 'ann')-[IS knows]->+(b) COLUMNS (b.name))"


@pytest.fixture
def engine() -> Any:
    with make_engine(2, autocommit=True) as made:
        made.sql(SETUP)
        made.sql(GRAPH)
        yield made


def rows(engine: tk.Engine, text: str, **values: Any) -> list[tuple[Any, ...]]:
    return sorted(engine.sql(text, values).rows(), key=repr)


def test_keys_of_several_columns_and_properties_with_other_names(engine: tk.Engine) -> None:
    text = "SELECT * FROM GRAPH_TABLE (social MATCH (p)-[IS lives]->(c) COLUMNS (p.name, c.size))"
    assert rows(engine, text) == [("ann", 300), ("bob", 1)]


def test_stars_are_the_properties_of_all_labels(engine: tk.Engine) -> None:
    text = "SELECT * FROM GRAPH_TABLE (social MATCH (a) COLUMNS (a.*)) AS g (id, name, age, size) WHERE id IS NULL OR id = 1"
    assert rows(engine, text) == [(1, "ann", 30, None), (None, "Bonn", None, 1), (None, "Bonn", None, 300)]


def test_any_expression_and_query_around(engine: tk.Engine) -> None:
    text = f"SELECT p.id, upper(g.name) AS n FROM {PATH} AS g JOIN person p ON p.name = g.name ORDER BY 1"
    assert rows(engine, text) == [(2, "BOB"), (3, "CID")]
    text = "SELECT * FROM GRAPH_TABLE (social MATCH (a IS Person) COLUMNS (coalesce(a.age, 0) / 2 AS half, length(a.name)))"
    assert rows(engine, text) == [(0.0, 3), (15.0, 3), (20.0, 3)]


def test_parameters_and_prepared_statements(engine: tk.Engine) -> None:
    walk = "SELECT * FROM GRAPH_TABLE (social MATCH (a)-[IS knows]->{{1,2}}(b) WHERE a.id = {} COLUMNS (a.id, b.name))"
    assert rows(engine, walk.format("$who"), who=1) == [(1, "bob"), (1, "cid")]
    engine.sql(f"PREPARE walk AS {walk.format('$1')}")
    engine.sql(f"PREPARE all_walks AS {walk.format('$1').replace('{1,2}', '*')}")
    assert rows(engine, "EXECUTE walk(2)") == [(2, "cid")]
    assert rows(engine, "EXECUTE all_walks(2)") == [(2, "bob"), (2, "cid")]
    engine.sql("INSERT INTO knows VALUES (2, 1, 2022)")
    assert rows(engine, "EXECUTE walk(2)") == [(2, "ann"), (2, "bob"), (2, "cid")]


def test_views_follow_their_edges_and_nodes(engine: tk.Engine) -> None:
    view = engine.sql(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {PATH}").view
    assert sorted(view.rows()) == [("bob",), ("cid",)]
    engine.sql("DELETE FROM person WHERE id = 3")
    assert view.rows() == [("bob",)]  # the edge dangles
    engine.sql("INSERT INTO person VALUES (3, 'cid', 1)")
    assert sorted(view.rows()) == [("bob",), ("cid",)]
    subscription = engine.sql(f"SUBSCRIBE (SELECT * FROM {PATH})").subscription
    other = engine.sql(f"SUBSCRIBE (SELECT * FROM {PATH.replace('ann', 'bob')})").subscription
    assert [(change.row, change.diff) for change in other.changes()] == [(("cid",), 1)]
    engine.sql("DELETE FROM knows WHERE a = 2")
    assert [(change.row, change.diff) for change in other.changes()] == [(("cid",), -1)]
    changes = [(change.row, change.diff) for change in subscription.changes()]
    assert sorted(changes[:2]) == [(("bob",), 1), (("cid",), 1)] and changes[2:] == [(("cid",), -1)]
    assert view.rows() == [("bob",)]


def test_cycles_are_matched_worst_case_optimally(engine: tk.Engine) -> None:
    cycle = "MATCH (a)-[IS knows]->(b)-[IS knows]->(c)-[IS knows]->(a) COLUMNS (a.id, b.id AS b, c.id AS c)"
    plan = engine.sql(f"EXPLAIN SELECT * FROM GRAPH_TABLE (social {cycle})").table.column(0).to_pylist()
    assert any("strategy hector (cyclic)" in line for line in plan)


def test_a_graph_and_what_reads_it_hold_each_other(engine: tk.Engine) -> None:
    engine.sql(f"CREATE VIEW w AS SELECT * FROM {PATH}")
    for text, message in (
        ("DROP TABLE knows", r"'social', 'w' read it"),
        ("ALTER TABLE knows DROP COLUMN since", r"'social', 'w' read it"),
        ("DROP PROPERTY GRAPH social", r"cannot drop property graph 'social': 'w' reads it"),
        (GRAPH.replace("CREATE", "CREATE OR REPLACE"), r"cannot replace property graph 'social': 'w' reads it"),
        ("DROP VIEW social", r"'social' is a property graph: DROP PROPERTY GRAPH drops it"),
        ("CREATE TABLE social (x int)", r"there is a property graph named 'social' already"),
        ("CREATE OR REPLACE VIEW social AS SELECT 1 AS x", r"'social' is a property graph: DROP it first"),
        (
            "DESCRIBE social",
            r"'social' is a property graph, without columns; node labels person, city; edge labels knows, lives",
        ),
        ("INSERT INTO social VALUES (1)", r"only tables can be changed"),
        ("SUBSCRIBE social", r"'social' is a property graph: read it by GRAPH_TABLE"),
        ("SELECT * FROM social", r"'social' is a property graph: read it by GRAPH_TABLE"),
    ):
        with pytest.raises(tk.TektiteError, match=message):
            engine.sql(text)
    assert ("social", "property graph", None, None) in rows(engine, "SHOW VIEWS")
    engine.sql("DROP TABLE knows CASCADE")
    assert rows(engine, "SHOW VIEWS") == []


def test_another_graph_of_the_same_name_is_another_answer(engine: tk.Engine) -> None:
    text = "SELECT * FROM GRAPH_TABLE (social MATCH (a IS Person) COLUMNS (a.name))"
    assert len(rows(engine, text)) == 3
    engine.sql("CREATE OR REPLACE PROPERTY GRAPH social VERTEX TABLES (city LABEL Person)")
    assert rows(engine, text) == [("Bonn",), ("Bonn",)]
    engine.sql("DROP PROPERTY GRAPH social")
    with pytest.raises(tk.NotFoundError, match="there is no property graph 'social'"):
        engine.sql(text)
    engine.sql("DROP PROPERTY GRAPH IF EXISTS social")


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ("(nope)", r"there is no table or view 'nope'"),
        ("(knows)", r"table 'knows' has no primary key: say KEY \(columns\)"),
        ("(person KEY (nope))", r"table 'person' has no column 'nope'"),
        ("(person, person)", r"label 'person' twice"),
        ("(person PROPERTIES (name, age AS name))", r"the property 'name' is there twice"),
        ("(social)", r"'social' is a property graph; name a table or a view"),
        ("(person", r"expected \)"),
        ("(person) EDGE TABLES (knows)", r"expected SOURCE"),
        (
            "(person) EDGE TABLES (knows SOURCE KEY (a) REFERENCES nobody DESTINATION KEY (b) REFERENCES person)",
            r"no table of nodes 'nobody'",
        ),
        (
            "(city) EDGE TABLES (knows SOURCE KEY (a) REFERENCES city DESTINATION KEY (b) REFERENCES city)",
            r"key of 'city' has 2 columns \(country, name\), not 1",
        ),
        (
            "(person) EDGE TABLES (lives SOURCE KEY (city) REFERENCES person DESTINATION KEY (p) REFERENCES person)",
            r"'city' is string, but the key 'id' of 'person' is int",
        ),
        (
            "(person) EDGE TABLES (knows SOURCE KEY (a) REFERENCES person (age) DESTINATION KEY (b) REFERENCES person)",
            r"edges lead to the key of 'person', which is id",
        ),
    ],
)
def test_wrong_graphs_are_refused_and_nothing_is_made(engine: tk.Engine, elements: str, message: str) -> None:
    with pytest.raises(tk.TektiteError, match=message):
        engine.sql(f"CREATE PROPERTY GRAPH g VERTEX TABLES {elements}")
    assert [name for name, *_ in rows(engine, "SHOW VIEWS")] == ["social"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("MATCH (a IS dog) COLUMNS (a.id)", r"no node label 'dog'"),
        ("MATCH (a)-[IS eats]->(b) COLUMNS (a.id)", r"no edge label 'eats'"),
        ("MATCH (a IS Person) COLUMNS (a.size)", r"a.size: there is no property 'size'; there are id, name, age"),
        ('MATCH (a IS Person) COLUMNS (a."#0")', r"there is no property '#0'"),
        ("MATCH (a) COLUMNS (b.id)", r"there is no 'b' in MATCH; there are a"),
        ("MATCH (a) COLUMNS (name)", r"a property is written variable.name"),
        ("MATCH (a) COLUMNS (*)", r"COLUMNS takes variable"),
        ("MATCH (a) COLUMNS (count(*) AS n)", r"an aggregate within GRAPH_TABLE is not supported"),
        (
            "MATCH (a) WHERE EXISTS (SELECT 1 FROM person) COLUMNS (a.id)",
            r"a query within GRAPH_TABLE is not supported",
        ),
        ("MATCH (a IS city)-[IS knows]->(b) COLUMNS (a.name)", r"no labels of property graph 'social' fit"),
        ("MATCH (a IS city), (a IS Person) COLUMNS (a.name)", r"'a' cannot have all the labels"),
        ("MATCH (a)-[e]->(b)-[e]->(c) COLUMNS (a.id)", r"edge variable 'e' is used twice"),
        ("MATCH (a)-[e IS knows]->*(b) COLUMNS (e.since)", r"'e' stands for many edges"),
        ("MATCH (a)-[e IS knows WHERE a.id = 1]->*(b) COLUMNS (a.id)", r"may read that edge alone"),
        ("MATCH (a)-[IS lives]->*(b) COLUMNS (a.name)", r"quantifier of an edge that leads from person to city"),
        ("MATCH (a)-[IS knows]->{40}(b) COLUMNS (a.id)", r"a quantifier of 40 edges is not supported"),
        ("MATCH (a)-[IS knows]->{3,1}(b) COLUMNS (a.id)", r"\{3,1\} has no edge to match"),
        ("MATCH (a)-> COLUMNS (a.id)", r"Expected a node"),
        ("MATCH (a)-[e]>(b) COLUMNS (a.id)", r"behind the brackets of an edge"),
        ("MATCH (a) (b) COLUMNS (a.id)", r"Expected COLUMNS"),
    ],
)
def test_wrong_patterns_are_refused_at_their_place(engine: tk.Engine, pattern: str, message: str) -> None:
    with pytest.raises(tk.TektiteError, match=message) as caught:
        engine.sql(f"SELECT * FROM GRAPH_TABLE (social {pattern})")
    assert "line 1:" in str(caught.value)


def test_a_graph_is_read_by_the_rights_of_its_owner(engine: tk.Engine) -> None:
    engine.sql("CREATE USER ann; CREATE USER bob")
    session = engine.session()
    session.sql("SET ROLE ann")
    text = f"SELECT * FROM {PATH}"
    for said in (
        text,
        f"CREATE MATERIALIZED VIEW mine AS {text}",
        "DROP PROPERTY GRAPH social",
        GRAPH.replace("social", "own"),
    ):
        with pytest.raises(tk.TektiteError, match="permission denied|owner"):
            session.sql(said)
    engine.sql("GRANT SELECT ON social TO ann")
    assert sorted(session.sql(text).rows()) == [("bob",), ("cid",)]
    with pytest.raises(tk.TektiteError, match="permission denied"):
        session.sql("SELECT * FROM knows")
    with pytest.raises(tk.TektiteError, match="a query within GRAPH_TABLE"):
        session.sql(
            "SELECT * FROM GRAPH_TABLE (social MATCH (a IS Person) COLUMNS ((SELECT max(since) FROM knows) AS s))"
        )
    session.sql("WITH knows AS (SELECT 1 AS a, 3 AS b, 0 AS since) SELECT 1 AS x")
    stolen = f"WITH person AS (SELECT 1 AS id, 'ann' AS name, 1 AS age) {text}"
    assert sorted(session.sql(stolen).rows()) == [("bob",), ("cid",)]  # the graph's tables, not those of WITH
    engine.sql("REVOKE SELECT ON social FROM ann")
    with pytest.raises(tk.TektiteError, match="permission denied"):
        session.sql(text)


def test_policies_hide_nodes_from_the_owner_of_a_graph(engine: tk.Engine) -> None:
    engine.sql("CREATE USER ann; GRANT SELECT ON person, knows TO ann")
    engine.sql("ALTER TABLE person ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON person USING (name <> 'cid')")
    engine.sql("GRANT CREATE ON SCHEMA public TO ann")
    session = engine.session()
    session.sql("SET ROLE ann")
    ends = "SOURCE KEY (a) REFERENCES person DESTINATION KEY (b) REFERENCES person"
    session.sql(f"CREATE PROPERTY GRAPH mine VERTEX TABLES (person) EDGE TABLES (knows {ends})")
    text = "SELECT * FROM GRAPH_TABLE (mine MATCH (a)-[e]->(b) COLUMNS (a.name, b.name AS b))"
    assert session.sql(text).rows() == [("ann", "bob")]
    assert sorted(engine.sql(text).rows()) == [("ann", "bob")]  # by the rights of its owner, whoever asks
    walks = "SELECT * FROM GRAPH_TABLE (mine MATCH (a)->+(b) COLUMNS (a.name, b.name AS b))"
    assert session.sql(walks).rows() == [("ann", "bob")]


def test_errors_of_rows_reach_the_reader(engine: tk.Engine) -> None:
    pattern = "MATCH (a IS Person) COLUMNS (9223372036854775806 + a.id AS x)"
    view = engine.sql(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM GRAPH_TABLE (social {pattern})").view
    with pytest.raises(tk.TektiteError, match="overflow"):
        view.rows()
    engine.sql("DELETE FROM person WHERE id > 1")
    assert view.rows() == [(9223372036854775807,)]


def test_a_server_keeps_graphs_and_what_reads_them(tmp_path: Any) -> None:
    for start in range(2):
        with (
            running_server(tmp_path / "store") as served,
            psycopg.connect(served.conninfo(), autocommit=True) as client,
        ):
            if not start:
                client.execute(SETUP)
                client.execute(GRAPH)
                client.execute(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {PATH}")
                client.execute(f"CREATE VIEW w AS SELECT * FROM {PATH}")
            for text in ("SELECT * FROM v", "SELECT * FROM w", f"SELECT * FROM {PATH}"):
                assert sorted(client.execute(text).fetchall()) == [("bob",), ("cid",)]
            walk = "SELECT * FROM GRAPH_TABLE (social MATCH (a)-[IS knows]->(b) WHERE a.id = %s COLUMNS (b.name))"
            assert client.execute(walk, (1,), binary=True).fetchall() == [("bob",)]
            kinds = client.execute(
                "SELECT relname, relkind FROM pg_class WHERE relname IN ('v', 'w', 'social')"
            ).fetchall()
            assert sorted(kinds) == [("v", "m"), ("w", "v")]
        assert "brought back" not in served.log.getvalue()
