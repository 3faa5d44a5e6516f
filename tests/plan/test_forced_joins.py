"""A join strategy can be forced in every language, and the answer stays the same."""

from __future__ import annotations

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (4, 4)]
TRIANGLES = sorted((a, b, c) for a, b in EDGES for d, c in EDGES if b == d and (a, c) in EDGES)
STEPS = {"binary": "  join ", "delta": "fetch edge", "hector": "by the fewest candidates of"}
each_strategy = pytest.mark.parametrize("strategy", ["binary", "delta", "hector"])


def world() -> tuple[tk.Engine, tk.Table]:
    engine = make_engine()
    edge = engine.create_table("edge", {"src": tk.Int, "dst": tk.Int})
    edge.insert(EDGES)
    engine.advance()
    return engine, edge


def forced(text: str, strategy: str) -> bool:
    """Whether an explanation names this strategy and shows its steps."""
    return f"match by strategy {strategy} (asked for)" in text and STEPS[strategy] in text


@pytest.mark.executors(stages=["delta"])
@each_strategy
def test_in_datalog(strategy: str) -> None:
    engine, edge = world()
    program = engine.datalog("triangle(a, b, c) :- edge(a, b), edge(b, c), edge(a, c).", joins=strategy)
    assert forced(program.explain("triangle", joins=True), strategy)
    assert sorted(program["triangle"].rows()) == TRIANGLES
    edge.remove([(2, 3)])
    engine.advance()
    assert sorted(program["triangle"].rows()) == sorted(t for t in TRIANGLES if (2, 3) not in (t[:2], t[1:], t[::2]))


@pytest.mark.executors(stages=["hector"])
@each_strategy
def test_in_recursive_rules(strategy: str) -> None:
    engine, _ = world()
    rules = "same(x, y) :- edge(a, x), edge(a, y).  same(x, y) :- edge(a, x), same(a, b), edge(b, y)."
    program = engine.datalog(rules, joins=strategy)
    assert forced(program.explain("same", joins=True), strategy)
    expected = engine.datalog(rules.replace("same", "other"))
    assert sorted(program["same"].rows()) == sorted(expected["other"].rows())


@each_strategy
@pytest.mark.parametrize("goal", ["full", "goal"])
def test_in_a_goal(strategy: str, goal: str) -> None:
    engine, _ = world()
    engine.datalog("triangle(a, b, c) :- edge(a, b), edge(b, c), edge(a, c).", joins=strategy)
    query = engine.query("triangle(2, ?, ?)", strategy=goal)
    if goal == "goal":
        assert f"match by strategy {strategy} (asked for)" in query.explain(joins=True)
    assert sorted(query.rows()) == sorted(t for t in TRIANGLES if t[0] == 2)


@pytest.mark.executors(stages=["binary"])
@each_strategy
def test_in_an_edn_query(strategy: str) -> None:
    engine = make_engine()
    engine.attribute("to", tk.Int)
    engine.transact([(a, "to", b) for a, b in EDGES])
    engine.advance()
    query = engine.query("[:find ?a ?b ?c :where [?a :to ?b] [?b :to ?c] [?a :to ?c]]", joins=strategy)
    assert f"match by strategy {strategy} (asked for)" in query.explain(joins=True)
    assert sorted(query.rows()) == TRIANGLES


@pytest.mark.executors("stages", spark=["hector"])
@each_strategy
def test_in_sql(strategy: str) -> None:
    engine, _ = world()
    select = (
        "SELECT x.src AS a, x.dst AS b, y.dst AS c FROM edge x, edge y, edge z "
        "WHERE x.dst = y.src AND z.src = x.src AND z.dst = y.dst"
    )
    create = f"CREATE MATERIALIZED VIEW triangle WITH (joins = '{strategy}') AS {select}"
    lines = [line for (line,) in engine.sql(f"EXPLAIN {create}")]
    assert forced("\n".join(lines), strategy)
    assert sorted(engine.sql(create).view.rows()) == TRIANGLES


def test_what_is_no_strategy_is_refused() -> None:
    engine, _ = world()
    with pytest.raises(tk.IncorrectError, match="datalog: joins is one of auto, binary, delta, hector, not 'best'"):
        engine.datalog("p(x) :- edge(x, _).", joins="best")
    with pytest.raises(tk.IncorrectError, match="query: joins is one of auto, binary, delta, hector, not 'best'"):
        engine.query("edge(1, ?)", joins="best")
    with pytest.raises(tk.IncorrectError, match="joins is one of auto, binary, delta, hector, not 'best'"):
        engine.sql("CREATE MATERIALIZED VIEW v WITH (joins = 'best') AS SELECT src FROM edge")
    with pytest.raises(tk.UnsupportedError, match="option 'colour' of CREATE VIEW is not supported"):
        engine.sql("CREATE MATERIALIZED VIEW v WITH (colour = 'red') AS SELECT src FROM edge")


def test_rules_registered_twice_must_agree_on_their_joins() -> None:
    engine, _ = world()
    engine.datalog("p(x) :- edge(x, _).", joins="delta")
    with pytest.raises(tk.ConflictError, match=r"the rules of 'p' are registered with joins='delta', not 'hector'"):
        engine.datalog("p(x) :- edge(x, _).", joins="hector")
