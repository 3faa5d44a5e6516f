"""EDN queries beyond patterns and rules: shapes of answers, maps, defaults, sources, attributes as variables, pulls."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tests.support.datalog_people import PEOPLE, declared

pytestmark = pytest.mark.executors


def with_people() -> tk.Engine:
    """An engine with the people, after an epoch in which other facts were there."""
    engine = declared()
    engine.transact('[1 :name "zoe"] [9 :name "yan"] [1 :knows 9] [9 :age 80] [4 :city "rome"] [1 :bot?] [2 :age 7]')
    engine.advance()
    return engine


def become_people(engine: tk.Engine) -> None:
    engine.transact([("retract", 9, "name"), ("retract", 1, "knows", 9), ("retract", 9, "age"), ("retract", 4, "city")])
    engine.transact([("retract", 1, "bot?")])
    engine.transact(PEOPLE)
    engine.advance()


ANSWERS: dict[str, Any] = {
    "[:find ?e . :where [?e :age 9]]": 4,
    "[:find ?e . :where [?e :age 10]]": None,
    "[:find ?n . :where [_ :name ?n]]": "ann",
    "[:find [?n ...] :where [_ :name ?n]]": ["ann", "bob", "cid", "dee"],
    "[:find [?e ?a] :where [?e :age ?a] [(> ?a 40)]]": (3, 41),
    "[:find [?e ?a] :where [?e :age ?a] [(> ?a 50)]]": None,
    "{:find [?e] :where [[?e :bot?]]}": [(4,)],
    "{:find [[?e ...]] :where [[?e :age ?a]] :with [?a]}": [1, 2, 3, 4],
    "[:find ?e :where [?e :city]]": [(1,), (2,), (3,)],
    "[:find ?e :where [?e :knows] (not [?e :bot?])]": [(1,), (2,), (2,), (3,)],
    '[:find ?e ?c :where [?e :name] [(get-else $ ?e :city "none") ?c]]': [(1, "oslo"), (2, "oslo"), (3, "bern"), (4, "none")],
    '[:find ?e :where [?e :name] [(get-else $ ?e :city "none") "none"]]': [(4,)],
    "[:find ?e (sum ?k) :where [?e :name] [(get-else $ ?e :knows 0) ?k]]": [(1, 2), (2, 4), (3, 4), (4, 0)],
    "[:find ?e :where [?e :name] [(missing? $ ?e :city)]]": [(4,)],
    "[:find ?e :where [?e :name] [(missing? $ ?e :bot?)] [(missing? $ ?e :knows)]]": [],
    "[:find ?x ?n :where [(ground [1 3 8]) [?x ...]] [?x :name ?n]]": [(1, "ann"), (3, "cid")],
    "[:find ?x ?y :where [(ground [[1 2] [5 6]]) [[?x ?y]]]]": [(1, 2), (5, 6)],
    "[:find ?x ?y :where [(ground [1 2]) [?x ?y]]]": [(1, 2)],
    "[:find (sum ?x) :where [(ground [1 2 2]) [?x ...]]]": [(3,)],
    "[:find ?a :where [3 ?a _]]": [(":age",), (":city",), (":knows",), (":name",)],
    "[:find ?a :where [4 ?a]]": [(":age",), (":bot?",), (":name",)],
    "[:find ?e ?a :where [?e ?a 30]]": [(1, ":age"), (2, ":age")],
    '[:find ?e ?a :where [?e ?a "oslo"]]': [(1, ":city"), (2, ":city")],
    "[:find ?e :where [?e _ 9]]": [(4,)],
    "[:find ?b :where [1 :_knows ?b]]": [(2,)],
    "[:find ?a ?b :where [?b :_knows ?a] [?a :age 41]]": [(3, 4)],
    "[:find (median ?a) (variance ?a) (stddev ?a) :where [_ :age ?a]]": [(30.0, 134.25, 134.25**0.5)],
    "[:find ?c (median ?a) (count ?e) :where [?e :knows] [?e :city ?c] [?e :age ?a]]": [("bern", 41.0, 1), ("oslo", 30.0, 3)],
    "[:find ?e (median ?k) :where [?e :knows ?k]]": [(1, 2.0), (2, 2.0), (3, 4.0)],
    "[:find ?a ?b :in $ $knows :where [$knows ?a ?b] [$ ?a :age 30]]": [(1, 2), (2, 1), (2, 3)],
    "[:find (pull ?e [:name]) . :where [?e :bot?]]": {":name": "dee"},
    "[:find (pull ?e [:bot? :city :db/id]) . :where [?e :bot?]]": {":bot?": True, ":db/id": 4},
    "[:find (pull ?e [*]) . :where [?e :age 41]]": {":age": 41, ":city": "bern", ":knows": [4], ":name": "cid"},
    "[:find ?a (pull ?e [:name {:knows [:name :age]}]) :where [?e :age ?a] [?e :city]]": [
        (30, {":name": "ann", ":knows": [{":name": "bob", ":age": 30}]}),
        (30, {":name": "bob", ":knows": [{":name": "ann", ":age": 30}, {":name": "cid", ":age": 41}]}),
        (41, {":name": "cid", ":knows": [{":name": "dee", ":age": 9}]}),
    ],
    "[:find (pull ?e [:name {:_knows [:name {:knows [:db/id]}]}]) . :where [?e :age 41]]": {
        ":name": "cid", ":_knows": [{":name": "bob", ":knows": [{":db/id": 1}, {":db/id": 3}]}],
    },
}  # fmt: skip


@pytest.mark.executors(
    stages=["[:find (pull ?e [:name]) . :where [?e :bot?]]", "[:find ?e :where [?e :city]]"],
)
@pytest.mark.parametrize(("text", "expected"), ANSWERS.items(), ids=ANSWERS.keys())
def test_answer_has_its_shape_and_follows_changes(text: str, expected: Any) -> None:
    with with_people() as engine:
        query = engine.query(text)
        query.answer()
        become_people(engine)
        found = query.answer()
        assert (sorted(found, key=str) if isinstance(found, list) else found) == expected
        query.drop()
        assert not [view for view in engine.views if view.startswith("query")]


def test_query_without_where_gives_its_parameters() -> None:
    with with_people() as engine:
        query = engine.query("[:find ?x ?y :in [?x ...] ?y]", x=[1, 2], y="a")
        engine.advance()
        assert sorted(query.rows()) == [(1, "a"), (2, "a")]
        query.remove(x=1)
        engine.advance()
        assert query.rows() == [(2, "a")]


def test_pull_follows_parameters() -> None:
    with with_people() as engine:
        become_people(engine)
        query = engine.query("[:find [(pull ?e [:name]) ...] :in ?e :where [?e :age]]", e=1)
        assert query.answer() == [{":name": "ann"}]
        query.insert(e=3)
        query.remove(e=1)
        engine.transact('[3 :name "carl"]')
        engine.advance()
        assert query.answer() == [{":name": "carl"}]


def test_rules_may_use_reverse_attributes_and_have_no_arguments() -> None:
    with with_people() as engine:
        become_people(engine)
        engine.datalog(
            "[(popular ?a) [?a :_knows ?b] [?b :age 30]] [(bots) [?e :bot?]] [(lonely ?e) [?e :name] (bots)]"
        )
        assert sorted(engine.view("popular").rows()) == [(1,), (2,), (3,)]
        assert len(engine.view("lonely").rows()) == 4
        engine.transact([("retract", 4, "bot?")])
        engine.advance()
        assert engine.view("lonely").rows() == []


REFUSED = {
    "[:find ?x]": "neither :where nor :in",
    "[:find ?x ?y . :where [?x :knows ?y]]": "'.' asks for one value",
    "[:find [?x ?y ...] :where [?x :knows ?y]]": "asks for the values of one variable",
    "{:find [?e] :order [?e] :where [[?e :bot?]]}": "a query has :find, :in, :with and :where, not :order",
    "{:find ?e :where [[?e :bot?]]}": ":find of a map is a vector, not [?]e",
    "{:find [?e] :where}": "a key without a value",
    "[:find ?v :where [?e :name] [(get-else $ ?e :city 3) ?v]]": "3 is not of type string, as 'city' is",
    "[:find ?v :where [?e :name] [(get-else $ ?e :city) ?v]]": "get-else is written",
    "[:find ?e :where [?e :name] [(missing? $ ?e ?a)]]": "missing[?] is written",
    "[:find ?x :where [(ground [1 2]) [[?x]]]]": "ground binds",
    "[:find ?e ?v :where [?e ?a ?v]]": "values are of type int in :.* and string in :",
    "[:find ?e :where [?e ?a 2.5]]": "there is no attribute that it may be about",
    "[:find ?e :where [3 :_bot?]]": "a reverse attribute needs a value",
    "[:find ?e :where [$people ?e :name ?v]]": "a source names a relation",
    "[:find (pull ?e [:nme]) :where [?e :bot?]]": "there is no attribute :nme: did you mean 'name'",
    "[:find (pull ?e [{:bot? [:name]}]) :where [?e :bot?]]": "attribute :bot[?] has no values to follow",
    "[:find (pull ?e :name) :where [?e :bot?]]": "a pull pattern is a vector",
    "[:find (pull ?e [:name]) (count ?e) :where [?e :bot?]]": "aggregates or pulls, not both",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=REFUSED.keys())
def test_query_is_refused_and_leaves_nothing_behind(text: str, message: str) -> None:
    with with_people() as engine:
        before = set(engine.views)
        with pytest.raises(tk.TektiteError, match=message):
            engine.query(text)
        assert set(engine.views) == before
