"""Rules are built when somebody wants them, shared by a policy, and gone with the last who wanted them."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")

RULES = """
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
loop(x) :- tc(x, x).
pair(x, y, z) :- edge(x, y), edge(y, z).
ends(x, z) :- pair(x, _, z).
fan(x, count(y)) :- edge(x, y).
wide(x) :- fan(x, n), n > 1.
even(x) :- start(x).
odd(y) :- even(x), edge(x, y).
even(y) :- odd(x), edge(x, y).
"""


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    engine.create_table("start", {"x": tk.Int}, mode="set")
    engine.datalog(RULES)
    return engine


def kept(engine: tk.Engine) -> list[str]:
    return [a.name for a in engine.indexes() if a.name not in ("edge", "start")]


def test_registering_builds_nothing(engine: tk.Engine) -> None:
    assert kept(engine) == []
    assert engine.views == ()


def test_first_interest_builds_what_it_needs_and_the_last_takes_it_away(engine: tk.Engine) -> None:
    loop = engine.view("loop")
    assert "tc by (y)" in kept(engine)
    tc = engine.view("tc")
    assert engine.view("tc") is tc
    loop.drop()
    assert kept(engine) == ["tc by (y)", "tc"]
    tc.drop()
    assert kept(engine) == []


def test_two_readers_share_one_recursion(engine: tk.Engine) -> None:
    engine.datalog("a(x, z) :- edge(x, y), tc(y, z). b(x, z) :- tc(x, y), edge(y, z).")
    views = [engine.view("a"), engine.view("b"), engine.view("loop")]
    readers = {a.name: a.readers for a in engine.indexes()}
    # The second order of columns is made from the first, not by another run of the recursion.
    assert "tc by (y)" in readers["tc by (x)"]
    assert "loop" in readers["tc by (y)"]
    for view in views:
        view.drop()
    assert kept(engine) == []


def test_mutual_recursion_is_run_once_for_all_its_predicates(engine: tk.Engine) -> None:
    even, odd = engine.view("even"), engine.view("odd")
    engine.table("edge").insert([(1, 2), (2, 3)])
    engine.table("start").insert([(1,)])
    engine.advance()
    assert (sorted(even.rows()), odd.rows()) == ([(1,), (3,)], [(2,)])
    assert core_of(even).flow is not core_of(odd).flow
    owners = {
        id(e.flow)
        for e in core_of(engine).catalog.entries
        if e.name in ("even by (x)", "odd by (y)", "even by (y)", "odd by (x)")
    }
    assert len(owners) == 1
    even.drop()
    assert odd.rows() == [(2,)]
    odd.drop()
    assert kept(engine) == []


def test_what_needs_no_state_is_derived_anew(engine: tk.Engine) -> None:
    program = engine.datalog("again(x, y, z) :- pair(x, y, z), x != z.")
    engine.view("again")
    assert not any(name.startswith("pair") for name in kept(engine))
    assert "pair: derived anew by each reader, because it needs no state" in program.explain("again")
    assert "match by strategy" in program.explain("again", joins=True)
    assert "pair" not in program.explain("again", joins=True).split("joins")[1]
    engine.table("edge").insert([(1, 2), (2, 1), (2, 3), (3, 4)])
    engine.advance()
    assert sorted(engine.view("again").rows()) == [(1, 2, 3), (2, 3, 4)]
    by_index = engine.query("[:find ?z :where (pair 1 _ ?z)]", strategy="full")
    assert by_index.multiplicities() == {(1,): 1, (3,): 1}
    assert "edge by (x): shared, there already" in by_index.explain(joins=True)
    engine.view("ends")
    engine.view("wide")
    explained = program.explain("wide")
    assert "fan: kept once and shared, because it keeps state of its own" in explained


def test_policy_can_be_overruled() -> None:
    engine = make_engine()
    engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    program = engine.datalog(RULES.replace("start(x)", "edge(x, _)"), share={"pair": True, "fan": False})
    engine.datalog("again(x, y, z) :- pair(x, y, z), x != z.")
    engine.view("again")
    assert any(name.startswith("pair by") for name in kept(engine))
    assert "pair: kept once and shared, because share={'pair': True} says so" in program.explain("again")
    engine.view("wide")
    assert not any(name.startswith("fan by") for name in kept(engine))
    with pytest.raises(tk.NotFoundError, match="no rule for 'nothing'"):
        engine.datalog("x(x) :- edge(x, _).", share={"nothing": True})


def test_order_of_building_follows_from_the_rules_alone() -> None:
    orders = []
    for wanted in (["loop", "wide", "even"], ["even", "wide", "loop"]):
        engine = make_engine()
        engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
        engine.create_table("start", {"x": tk.Int}, mode="set")
        program = engine.datalog(RULES)
        program.views(*sorted(wanted))
        orders.append([a.name for a in engine.indexes()])
    assert orders[0] == orders[1]


def test_explanation_can_show_the_joins(engine: tk.Engine) -> None:
    program = engine.datalog("tri(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).")
    assert "match by strategy hector (cyclic)" in program.explain("tri", joins=True)
    assert "edge by (x): shared, there already" in program.explain("tc", joins=True)
    assert "extend to" in engine.query("[:find ?x :where [?x :edge ?y] [?y :edge ?z] [?z :edge ?x]]").explain(
        joins=True
    )


def test_input_that_is_dropped_and_made_anew_is_read_anew(engine: tk.Engine) -> None:
    engine.table("edge").insert([(1, 2)])
    engine.advance()
    view = engine.view("tc")
    assert view.rows() == [(1, 2)]
    view.drop()
    engine.drop("edge")
    edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    edge.insert([(3, 4)])
    engine.advance()
    assert engine.view("tc").rows() == [(3, 4)]


def test_views_and_queries_of_other_kinds_are_relations_too(engine: tk.Engine) -> None:
    engine.install("twice", engine.table("edge").concat(engine.table("edge")))
    program = engine.datalog("many(count()) :- twice(_, _). one(x) :- twice(x, _).")
    engine.table("edge").insert([(1, 2), (1, 3)])
    engine.advance()
    assert program["many"].rows() == [(2,)]  # as sets
    assert program["one"].rows() == [(1,)]
    assert engine.query("[:find (count ?x) :where [?x :twice ?y]]").rows() == [(4,)]  # as they are


@pytest.mark.executors("spark")
def test_facts_in_the_text_are_there_at_once() -> None:
    engine = make_engine()
    program = engine.datalog('likes("ann", 1). likes("ann", 1). likes("bob", 2). fan(x) :- likes(x, n), n > 1.')
    assert program["fan"].rows() == [("bob",)]
    assert sorted(program["likes"].rows()) == [("ann", 1), ("bob", 2)]


def test_facts_and_an_input_of_the_same_name_add_up() -> None:
    engine = make_engine()
    program = engine.datalog(".decl edge(x: number, y: number)\n.input edge\nedge(1, 2). out(x) :- edge(x, _).")
    engine.table("edge").insert([(1, 2), (5, 6)])
    engine.advance()
    assert sorted(program["out"].rows()) == [(1,), (5,)]
