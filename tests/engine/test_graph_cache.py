"""A query that comes again begins with the graph it had, and answers as one rendered afresh; nothing else of it is kept."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow.flow import Dataflow
from tektite.engine.core import core_of
from tektite.engine.graph_cache import MOST_PLANS
from tektite.expr import text
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

SCHEMA = """
    CREATE TABLE town (id int PRIMARY KEY, name varchar);
    CREATE TABLE person (id int PRIMARY KEY, town int, age int);
    CREATE TABLE visit (person int, town int, cost int) WITH (mode = '{semantics}')
"""
QUERIES = {
    "joined": "SELECT name, sum(cost) AS total FROM visit, person, town WHERE visit.person = person.id AND "
    "person.town = town.id GROUP BY name",
    "alike": "SELECT count(*) AS visits FROM visit JOIN town ON visit.town = town.id WHERE name ILIKE '%1%'",
    "above": "SELECT person, sum(cost) AS total FROM visit GROUP BY person HAVING sum(cost) > "
    "(SELECT avg(cost) * 2 FROM visit)",
    "never": "SELECT id, age FROM person WHERE NOT EXISTS (SELECT * FROM visit WHERE visit.person = person.id)",
    "dearest": "SELECT person, town, cost FROM visit ORDER BY cost DESC, person, town LIMIT 3",
    "ranked": "SELECT town, person, rank() OVER (PARTITION BY town ORDER BY cost, person) AS place FROM visit",
    "reach": "WITH RECURSIVE near(a, b) AS (SELECT person, town FROM visit UNION SELECT near.a, person.town FROM near "
    "JOIN person ON near.b = person.id) SELECT a, count(*) AS towns FROM near GROUP BY a",
}


def engine_with(semantics: str = "bag", workers: int = 1) -> tk.Engine:
    engine = make_engine(workers)
    engine.sql(SCHEMA.format(semantics=semantics))
    engine.table("town").insert([(t, f"town {t}") for t in range(12)])
    engine.table("person").insert([(p, p % 12, 20 + p % 50) for p in range(40)])
    engine.advance()
    return engine


def some_visits(pick: random.Random) -> list[tuple[int, int, int]]:
    return [(pick.randrange(40), pick.randrange(12), pick.randrange(9)) for _ in range(pick.randrange(30))]


def flow_of(engine: tk.Engine, name: str) -> Dataflow:
    return core_of(engine.view(name)).flow


def counted(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.executors(stages=["bag-2"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("semantics", ["bag", "stream"])
def test_queries_that_come_and_go_answer_as_in_an_engine_of_their_own(
    semantics: str, workers: int, executor: str
) -> None:
    """A query of the other engine is installed once, before the same rows; it never begins with a graph that was used. Where
    sweeps may run elsewhere, no graph is used again; answers are the same.
    """
    pick = random.Random(workers)
    engine = engine_with(semantics, workers)
    indexes = ["visit (person)", "visit (town)", "person (town)"] if semantics == "bag" else ["person (town)"]
    for number, columns in enumerate(indexes):
        engine.sql(f"CREATE INDEX index_{number} ON {columns}")
    others: dict[str, tk.Engine] = {}
    past: list[tuple[list[Any], list[Any]]] = []
    begun = 0
    seen: dict[str, Dataflow] = {}
    for _ in range({"threads": 60, "stages": 20, "spark": 4}[executor]):
        name = pick.choice(list(QUERIES))
        if name in others:
            engine.sql(f"DROP MATERIALIZED VIEW {name}")
            del others[name]
        else:
            engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
            begun += seen.get(name) is flow_of(engine, name)
            seen[name] = flow_of(engine, name)
            other = others[name] = engine_with(semantics)
            for new, gone in past if semantics == "bag" else ():
                other.table("visit").insert(new)
                other.table("visit").remove(gone)
                other.advance()
            other.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
        new = some_visits(pick)
        there = [row for added, _ in past for row in added]
        for _, removed in past:
            for row in removed:
                there.remove(row)
        gone = pick.sample(there, min(len(there), pick.randrange(8))) if semantics == "bag" else []
        past.append((new, gone))
        for each in (engine, *others.values()):
            each.table("visit").insert(new)
            if gone:
                each.table("visit").remove(gone)
            each.advance()
        for installed, other in others.items():
            assert counted(engine.view(installed).rows()) == counted(other.view(installed).rows()), installed
    # a window has an arrangement of its own, in its order: while it comes or goes, graphs are made anew
    assert begun > 3 if executor == "threads" else not begun


def test_a_graph_is_used_again_only_while_the_same_arrangements_are_there() -> None:
    engine = engine_with("stream")
    statement = f"CREATE MATERIALIZED VIEW v AS {QUERIES['joined']}"
    engine.sql("CREATE INDEX people ON person (town)")
    engine.sql(statement)
    first = flow_of(engine, "v")
    engine.sql("DROP MATERIALIZED VIEW v")
    engine.sql(statement)
    assert flow_of(engine, "v") is first
    engine.sql("DROP MATERIALIZED VIEW v")
    engine.sql("DROP INDEX people")
    engine.sql(statement)
    assert flow_of(engine, "v") is not first
    readers = {a.columns[0]: a.readers for a in engine.indexes(engine.table("person"))}
    assert readers["town"] == ("v",)


@pytest.mark.executors("stages", "spark")
def test_two_of_the_same_query_at_once_have_a_graph_each() -> None:
    engine = engine_with()
    for name in ("one", "two"):
        engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES['joined']}")
    assert flow_of(engine, "one") is not flow_of(engine, "two")
    engine.table("visit").insert([(1, 1, 5)])
    engine.sql("DROP MATERIALIZED VIEW one")
    engine.advance()
    engine.sql(f"CREATE MATERIALIZED VIEW three AS {QUERIES['joined']}")
    assert engine.view("three").rows() == engine.view("two").rows() == [("town 1", 5)]


def test_a_dropped_query_keeps_no_rows_and_no_memo() -> None:
    engine = engine_with("stream")
    engine.sql(f"CREATE MATERIALIZED VIEW v AS {QUERIES['alike']}; DROP MATERIALIZED VIEW v")
    before = engine.bytes
    engine.sql(f"CREATE MATERIALIZED VIEW v AS {QUERIES['alike']}")
    engine.table("visit").insert([(p, p % 12, 1) for p in range(40)])
    engine.advance()
    flow = flow_of(engine, "v")
    memos = list(text._memos[core_of(engine).dictionary].values())
    assert any(len(memo) for memo in memos)
    engine.sql("DROP MATERIALIZED VIEW v")
    assert not any(len(memo) for memo in memos)
    assert not flow.handles and not flow.traces and not flow.holds and not flow.on_swept
    while engine.idle():
        pass
    assert engine.bytes <= before


@pytest.mark.executors("stages")
def test_a_table_whose_reader_was_dropped_can_be_dropped_and_made_again() -> None:
    engine = engine_with()
    statement = f"CREATE MATERIALIZED VIEW v AS {QUERIES['joined']}"
    engine.sql(statement)
    engine.sql("DROP MATERIALIZED VIEW v; DROP TABLE visit; CREATE TABLE visit (person int, town int, cost int)")
    engine.sql("INSERT INTO visit VALUES (3, 3, 7)")
    engine.sql(statement)
    assert engine.view("v").rows() == [("town 3", 7)]


@pytest.mark.executors("stages")
def test_a_view_that_was_dropped_stays_dropped_when_its_query_comes_again() -> None:
    engine = engine_with()
    statement = f"CREATE MATERIALIZED VIEW v AS {QUERIES['joined']}"
    old = engine.sql(statement).view
    assert old is not None
    changes = row_changes(old)
    engine.sql("DROP MATERIALIZED VIEW v")
    engine.sql(statement)
    engine.sql("INSERT INTO visit VALUES (3, 3, 7)")
    with pytest.raises(tk.ConflictError, match="was dropped"):
        old.rows()
    with pytest.raises(tk.ConflictError, match="was dropped"):
        list(changes)
    assert engine.view("v").rows() == [("town 3", 7)]


def test_what_several_readers_begin_with_is_computed_once() -> None:
    seen: list[int] = []

    def doubled(table: Any) -> Any:
        seen.append(table.num_rows)
        return table.append_column("twice", [[2 * value for value in table["n"].to_pylist()]])

    with make_engine() as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        twice = numbers.map_batches(doubled, n=tk.Int, twice=tk.Int)
        pairs = twice.join(twice.select(n="twice", half="n"), on="n")
        view = engine.install("pairs", pairs)
        numbers.insert([(value,) for value in range(1, 9)])
        engine.advance()
        assert sorted(row[0] for row in view.rows()) == [2, 4, 6, 8]
        assert seen == [8]
        numbers.remove([(4,)])
        engine.advance()
        assert sorted(row[0] for row in view.rows()) == [2, 6]
        assert seen == [8, 1]


def test_a_query_that_is_built_anew_begins_with_the_graph_of_the_same_one() -> None:
    engine = tk.Engine()
    left = engine.create_table("left", {"k": tk.Int, "v": tk.Int}, order_by="k")
    right = engine.create_table("right", {"k": tk.Int, "w": tk.Int}, order_by="k")
    left.insert([(1, 2), (2, 3)])
    right.insert([(1, 5), (3, 6)])

    def install(bound: int) -> tk.View:
        return engine.install("query", left.join(right, on="k").filter(tk.col("w") > bound))

    view = install(1)
    first = flow_of(engine, "query")
    assert view.rows() == [(1, 2, 5)]
    view.drop()
    right.insert([(2, 7)])
    view = install(1)
    assert flow_of(engine, "query") is first
    assert sorted(view.rows()) == [(1, 2, 5), (2, 3, 7)]
    view.drop()
    view = install(5)
    assert flow_of(engine, "query") is not first
    assert view.rows() == [(2, 3, 7)]


def test_plans_that_are_the_same_share_a_graph_however_often_they_use_a_part() -> None:
    engine = tk.Engine()
    table = engine.create_table("t", {"k": tk.Int})
    table.insert([(1,), (2,)])

    def install() -> tk.View:
        doubled = table.select("k")
        for _ in range(40):  # a plan of 40 operators and 2**40 ways from the first to the last
            doubled = doubled.concat(doubled).distinct()
        return engine.install("query", doubled)

    view = install()
    first = flow_of(engine, "query")
    assert sorted(view.rows()) == [(1,), (2,)]
    view.drop()
    view = install()
    assert flow_of(engine, "query") is first
    assert sorted(view.rows()) == [(1,), (2,)]


def test_the_plans_that_are_kept_are_few() -> None:
    engine = tk.Engine()
    table = engine.create_table("t", {"k": tk.Int})
    for bound in range(MOST_PLANS + 10):
        engine.install("query", table.filter(tk.col("k") > bound)).drop()
    assert len(core_of(engine).catalog.graphs._recent) == MOST_PLANS
    engine.drop("t")
    assert not core_of(engine).catalog.graphs._recent
