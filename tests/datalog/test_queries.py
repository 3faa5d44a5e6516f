"""The EDN syntax and the attribute model: patterns, rules, parameters, multisets, what a fact written twice means."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

import tektite as tk
from tests.support.datalog_people import PEOPLE, declared
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


@pytest.fixture
def engine() -> tk.Engine:
    engine = declared()
    engine.transact(PEOPLE)
    engine.advance()
    return engine


QUERIES = {
    "[:find ?a ?b :where [?a :knows ?b]]": [(1, 2), (2, 1), (2, 3), (3, 4)],
    "[:find ?b :where [2 :knows ?b]]": [(1,), (3,)],
    "[:find ?a :where [?a :knows 4]]": [(3,)],
    "[:find ?a :where [?a :knows _]]": [(1,), (2,), (2,), (3,)],
    "[:find ?a ?b :where [?a :knows ?b] [?b :knows ?a]]": [(1, 2), (2, 1)],
    '[:find ?n :where [?a :name "bob"] [?a :knows ?b] [?b :name ?n]]': [("ann",), ("cid",)],
    "[:find ?e :where [?e :bot?]]": [(4,)],
    "[:find ?n :where [?e :name ?n] (not [?e :bot?])]": [("ann",), ("bob",), ("cid",)],
    "[:find ?e :where [?e :name _] (not [?e :knows ?x] [?x :bot?])]": [(1,), (2,), (4,)],
    "[:find ?e :where [?e :age ?a] [(< ?a 40)] [(not= ?a 9)]]": [(1,), (2,)],
    "[:find ?e ?twice :where [?e :age ?a] [(* ?a 2) ?twice] [(> ?twice 70)]]": [(3, 82)],
    '[:find ?e :where (or [?e :city "bern"] [?e :bot?])]': [(3,), (4,)],
    '[:find ?e :where [?e :age ?a] (or (and [?e :city "oslo"] [(= ?a 30)]) [?e :bot?])]': [(1,), (2,), (4,)],
    "[:find ?e :where [?e :knows _] (or-join [?e] [?e :bot?] (and [?e :knows ?x] [?x :bot?]))]": [(3,)],
    "[:find ?city (sum ?a) :where [?e :city ?city] [?e :age ?a]]": [("bern", 41), ("oslo", 60)],
    "[:find ?city (sum ?a) :with ?e :where [?e :city ?city] [?e :age ?a]]": [("bern", 41), ("oslo", 60)],
    "[:find (count ?e) (min ?a) (max ?a) (avg ?a) :where [?e :age ?a]]": [(4, 9, 41, 27.5)],
    "[:find (count-distinct ?a) :where [_ :age ?a]]": [(3,)],
    "[:find ?a :where [_ :age ?a]]": [(9,), (30,), (30,), (41,)],
    '[:find ?e ?x :where [?e :bot?] [(+ 1 2 3) ?x]]': [(4, 6)],
}  # fmt: skip


ON_EVERY_EXECUTOR = [
    "[:find ?e :where [?e :bot?]]",
    "[:find (count ?e) (min ?a) (max ?a) (avg ?a) :where [?e :age ?a]]",
]


@pytest.mark.executors(stages=ON_EVERY_EXECUTOR)
@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=QUERIES.keys())
def test_query_finds(engine: tk.Engine, query: str, expected: list[tuple[object, ...]]) -> None:
    assert sorted(engine.query(query).rows()) == expected


@pytest.mark.executors("stages", "spark")
def test_queries_follow_changes(engine: tk.Engine) -> None:
    query = engine.query("[:find ?n :where [?e :name ?n] [?e :knows ?f] (not [?f :bot?])]")
    assert query.multiplicities() == {("ann",): 1, ("bob",): 2}
    engine.transact([("retract", 4, "bot?"), (1, "knows", 3), (":db/retract", 2, ":knows", 1), (2, "name", "rob")])
    engine.advance()
    assert query.multiplicities() == {("ann",): 2, ("rob",): 1, ("cid",): 1}


def test_rules_in_edn_and_in_textbook_syntax_agree() -> None:
    edn = """
    [(friend ?a ?b) [?a :knows ?b]]
    [(friend ?a ?b) [?b :knows ?a]]
    [(circle ?a ?b) (friend ?a ?b)]
    [(circle ?a ?c) (circle ?a ?b) (friend ?b ?c)]
    [(stranger ?a ?b) [?a :person?] [?b :person?] (not (circle ?a ?b)) [(not= ?a ?b)]]
    [(reach ?a (count ?b)) (circle ?a ?b)]
    [(odd ?a) [?a :person?] (or (and [?a :knows ?x] [(= ?x 1)]) (not [?a :knows _]))]
    """
    textbook = """
    friend(a, b) :- knows(a, b).
    friend(a, b) :- knows(b, a).
    circle(a, b) :- friend(a, b).
    circle(a, c) :- circle(a, b), friend(b, c).
    stranger(a, b) :- person(a), person(b), !circle(a, b), a != b.
    reach(a, count(b)) :- circle(a, b).
    odd(a) :- person(a), (knows(a, x), x = 1; !knows(a, _)).
    """
    rng = random.Random(1)
    engines = [make_engine(), make_engine()]
    engines[0].attribute("knows", tk.Int)
    engines[0].attribute("person?")
    engines[1].create_table("knows", {"e": tk.Int, "v": tk.Int}, mode="set")
    engines[1].create_table("person", {"e": tk.Int}, mode="set")
    programs = [engines[0].datalog(edn), engines[1].datalog(textbook)]
    names = ("friend", "circle", "stranger", "reach", "odd")
    views = [program.views(*names) for program in programs]
    facts: set[tuple[int, int]] = set()
    for engine, name in zip(engines, ("person?", "person"), strict=True):
        engine.table(name).insert([(i,) for i in range(6)])
    for _ in range(5):
        for _ in range(3):
            row = (rng.randrange(6), rng.randrange(6))
            for engine in engines:
                (engine.table("knows").remove if row in facts else engine.table("knows").insert)([row])
            facts ^= {row}
        for engine in engines:
            engine.advance()
        for one, other in zip(*views, strict=True):
            assert sorted(one.rows()) == sorted(other.rows()), one.name


def test_parameters_may_be_values_tuples_and_lists(engine: tk.Engine) -> None:
    scalar = engine.query("[:find ?n :in $ ?e :where [?e :name ?n]]", e=3)
    assert scalar.rows() == [("cid",)]
    several = engine.query("[:find ?n :in [?e ...] :where [?e :name ?n]]", e=[1, 2])
    assert sorted(several.rows()) == [("ann",), ("bob",)]
    pairs = engine.query("[:find ?n ?k :in [[?e ?k]] :where [?e :name ?n]]", e_k=[(1, "x"), (4, "y")])
    assert sorted(pairs.rows()) == [("ann", "x"), ("dee", "y")]
    several.insert(e=4)
    several.remove(e=1)
    engine.advance()
    assert sorted(several.rows()) == [("bob",), ("dee",)]


MODES: dict[str, tuple[dict[str, Any], dict[object, int]]] = {
    "bag": ({"mode": "bag"}, {(1, 5): 2, (1, 6): 1}),
    "set": ({"mode": "set"}, {(1, 5): 1, (1, 6): 1}),
    "many": ({"cardinality": "many"}, {(1, 5): 1, (1, 6): 1}),
    "one": ({"cardinality": "one"}, {(1, 6): 1}),
    "upsert": ({"mode": "upsert"}, {(1, 6): 1}),
}


@pytest.mark.executors(stages=["bag", "many"])
@pytest.mark.parametrize("case", MODES)
def test_fact_written_twice_means_what_the_attribute_says(case: str) -> None:
    options, expected = MODES[case]
    engine = make_engine()
    engine.attribute("a", tk.Int, **options)
    engine.transact([(1, "a", 5)])
    engine.transact([(1, "a", 5), (1, "a", 6)])
    engine.advance()
    query = engine.query("[:find ?e ?v :where [?e :a ?v]]")
    assert query.multiplicities() == expected
    engine.transact([("retract", 1, "a", 6)])
    engine.advance()
    assert query.multiplicities() == {row: n for row, n in expected.items() if row != (1, 6)}


def test_attribute_is_kept_forward_and_in_reverse_for_life() -> None:
    engine = make_engine()
    knows = engine.attribute("knows", tk.Int)
    bot = engine.attribute("bot?")
    kept = [(a.name, a.columns) for a in engine.indexes()]
    assert kept == [("knows", ("e", "v")), ("knows by (v)", ("v", "e")), ("bot?", ("e",))]
    with engine.query("[:find ?a ?c :where [?a :knows ?b] [?b :knows ?c]]"):
        assert [(a.name, a.columns) for a in engine.indexes()] == [*kept, ("query 1", ("a", "c"))]
        with pytest.raises(tk.ConflictError, match="'query 1' reads it"):
            knows.drop()
    assert [(a.name, a.columns) for a in engine.indexes()] == kept
    bot.drop()
    knows.drop()
    assert engine.indexes() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cardinality": "two"}, "one or many"),
        ({"mode": "lossy"}, "mode is one of bag, set, upsert, append, not 'lossy'"),
        ({"cardinality": "one", "mode": "bag"}, "is not mode 'bag'"),
    ],
)
def test_attribute_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(tk.IncorrectError, match=message):
        make_engine().attribute("a", tk.Int, **options)


def test_property_cannot_have_one_value() -> None:
    with pytest.raises(tk.IncorrectError, match="no value that another could replace"):
        make_engine().attribute("bot?", cardinality="one")


def test_constants_are_looked_up_in_the_indexes_that_are_there(engine: tk.Engine) -> None:
    patterns = {
        "[:find ?b :where [2 :knows ?b]]": "knows by (e): shared, there already",
        "[:find ?a :where [?a :knows 3]]": "knows by (v): shared, there already",
        "[:find ?n :where [2 :knows 3] [3 :name ?n]]": "knows by (e): shared, there already",
    }
    for text, index in patterns.items():
        explained = engine.query(text).explain(joins=True)
        assert index in explained
        assert "project(knows)" not in explained


@pytest.mark.executors(stages=["[?e :m ?m] [(> ?m 2)]-expected0"])
@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("[?e :m ?m] [(> ?m 2)]", [3]),
        ("[?e :m ?m] [(> ?m 2.1)]", [3]),
        ("[?e :m ?m] [(>= 2.001 ?m)]", [1, 2]),
        ("[?e :m ?m] [(= ?m 1.5)]", [1]),
        ("[?e :m ?m] [(!= ?m 1.555)]", [1, 2, 3]),
        ("[?e :m ?m] (not [?e :m 2])", [1, 3]),
        ("[?e :m 1.5]", [1]),
        ("[?e :m 2]", [2]),
    ],
)
def test_numbers_are_written_for_decimals(clause: str, expected: list[int]) -> None:
    engine = make_engine()
    engine.attribute("m", tk.Decimal(10, 2))
    engine.transact([(1, "m", Decimal("1.50")), (2, "m", Decimal("2.00")), (3, "m", Decimal("2.25"))])
    engine.advance()
    assert sorted(engine.query(f"[:find ?e :where {clause}]").rows()) == [(e,) for e in expected]


@pytest.mark.parametrize("constant", ["1.555", '"1.5"', "123456789", "1e400"])
def test_constant_that_is_no_value_of_a_decimal_is_refused(constant: str) -> None:
    engine = make_engine()
    engine.attribute("m", tk.Decimal(10, 2))
    with pytest.raises(tk.IncorrectError, match=r"but the column is decimal\(10, 2\)"):
        engine.query(f"[:find ?e :where [?e :m {constant}]]")


def test_retraction_from_an_attribute_of_one_value_goes_by_the_entity() -> None:
    engine = make_engine()
    engine.attribute("age", tk.Int, cardinality="one")
    engine.attribute("knows", tk.Int)
    engine.transact([(e, "age", 10 * e) for e in (1, 2, 3, 4)])
    engine.advance()
    engine.transact([("retract", 1, "age"), ("retract", 2, "age", 99)])
    engine.transact("[:db/retract 3 :age]")
    engine.advance()
    assert engine.query("[:find ?e ?v :where [?e :age ?v]]").rows() == [(4, 40)]
    with pytest.raises(tk.IncorrectError, match="takes a value"):
        engine.transact([("retract", 4, "age"), ("retract", 1, "knows")])
    with pytest.raises(tk.IncorrectError, match="expected int"):
        engine.transact([("retract", 4, "age"), ("retract", 4, "age", "old")])
    with pytest.raises(tk.IncorrectError, match="takes a value"):
        engine.transact([(4, "age")])
    engine.advance()
    assert engine.query("[:find ?e ?v :where [?e :age ?v]]").rows() == [(4, 40)]


def test_or_join_of_one_branch_shares_the_variables_it_lists_alone() -> None:
    with make_engine() as engine:
        engine.attribute("knows", tk.Int)
        engine.attribute("age", tk.Int, cardinality="one")
        engine.transact("[1 :knows 2] [1 :knows 3] [2 :knows 3] [1 :age 30] [2 :age 41] [3 :age 5]")
        engine.advance()
        query = engine.query("[:find ?e ?x :where [?e :age ?x] (or-join [?e] [?e :knows ?x])]")
        assert sorted(query.rows()) == [(1, 30), (2, 41)]
        with pytest.raises(tk.IncorrectError, match="variable 'x' in the head is not bound"):
            engine.query("[:find ?x :where (or-join [] [?x :age 30])]")


@pytest.mark.parametrize(
    "clause", ["(or)", "(and)", "(not)", "(or-join [?x])", "(not-join [?x])", "(or (and) [?x :age 1])"]
)
def test_combination_of_no_clauses_is_refused(clause: str) -> None:
    with make_engine() as engine:
        engine.attribute("age", tk.Int)
        with pytest.raises(tk.IncorrectError, match="without a clause|needs at least one clause"):
            engine.query(f"[:find ?x :where [?x :age 30] {clause}]")
        with pytest.raises(tk.IncorrectError, match="without a clause|needs at least one clause"):
            engine.datalog(f"[(p ?x) [?x :age 30] {clause}]")


@pytest.mark.parametrize("given", ["?x ?x", "[[?x ?x]]", "?x [?x ...]"])
def test_parameter_that_is_named_twice_is_refused(given: str) -> None:
    with make_engine() as engine:
        engine.attribute("age", tk.Int)
        with pytest.raises(tk.IncorrectError, match=r":in has \?x twice"):
            engine.query(f"[:find ?e :in {given} :where [?e :age ?x]]")
