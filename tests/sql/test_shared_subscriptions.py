"""Subscriptions of several users share a dataflow; one that takes more than its user may, or fails, ends alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import tektite as tk
from tektite import sql
from tektite.engine.core import core_of
from tektite.sql import runner
from tests.support.executors import make_engine
from tests.support.sql.roles import SETUP, accumulated, users

pytestmark = pytest.mark.executors


@pytest.mark.executors("stages")
def test_subscriptions_that_differ_in_constants_and_users_are_one_dataflow() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT SELECT ON docs TO PUBLIC")
    shared = sql.runner(engine).shared
    followed = []
    for ask in users(engine, "ann", "bob", "cid"):
        followed += [ask(f"SUBSCRIBE (SELECT id FROM docs WHERE owner = '{o}')").subscription for o in ("ann", "bob")]
    assert [len(query.bindings) for query in shared.all()] == [6]
    assert [sorted(row for (row,), *_ in subscription.changes()) for subscription in followed] == [[1, 3], [2]] * 3
    engine.sql("INSERT INTO docs VALUES (4, 'bob', '')")
    assert [len(subscription.changes()) for subscription in followed] == [0, 1] * 3
    for subscription in followed[1:]:
        subscription.close()
    engine.sql("INSERT INTO docs VALUES (5, 'ann', '')")
    assert [len(query.bindings) for query in shared.all()] == [1]
    followed[0].close()
    shared.sweep()
    assert shared.all() == []


def test_query_that_can_fail_is_computed_alone() -> None:
    """Somebody's error is nobody else's: a query that can fail has a dataflow of its own for each set of arguments."""
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int, s varchar); INSERT INTO t VALUES (1, '10'), (2, 'x')")
    one, two = (engine.sql(f"SUBSCRIBE (SELECT s::int AS n FROM t WHERE k = {k})").subscription for k in (1, 2))
    assert [change.row for change in one.changes()] == [(10,)]
    with pytest.raises(tk.TektiteError, match="'x'"):
        two.changes()
    engine.sql("INSERT INTO t VALUES (1, '11')")
    assert [change.row for change in one.changes()] == [(11,)]
    (first, *_) = engine.sql("EXPLAIN SUBSCRIBE (SELECT s::int AS n FROM t WHERE k = 1)").rows()
    assert "alone" in first[0] and "can fail" in first[0]


def test_user_takes_no_more_than_its_limits() -> None:
    engine = make_engine()
    engine.sql(
        "CREATE TABLE n (x int); CREATE USER ann ROW LIMIT 10 QUERY LIMIT 2 MEMORY LIMIT '64 kB'; CREATE USER bob;"
        "GRANT SELECT ON n TO PUBLIC; GRANT CREATE ON SCHEMA public TO ann, bob"
    )
    engine.table("n").insert([(x,) for x in range(500)])
    engine.advance()
    ann, bob = users(engine, "ann", "bob")
    assert len(ann("SELECT x FROM n LIMIT 10").rows()) == 10
    with pytest.raises(tk.ConflictError, match="500 rows, and its user may get 10"):
        ann("SELECT x FROM n")
    assert len(bob("SELECT x FROM n").rows()) == 500
    held = ann("SUBSCRIBE (SELECT x FROM n WHERE x = 1)").subscription
    ann("CREATE MATERIALIZED VIEW few AS SELECT count(*) AS n FROM n")
    with pytest.raises(tk.ConflictError, match="2 standing queries"):
        ann("SUBSCRIBE (SELECT x FROM n WHERE x = 2)")
    held.close()
    with pytest.raises(tk.TektiteError, match="its limit is 64"):
        ann("CREATE MATERIALIZED VIEW many AS SELECT a.x AS x, b.x AS y FROM n a, n b").view.rows()
    with pytest.raises(tk.TektiteError, match="its limit is 64"):
        ann("SELECT count(*) FROM (SELECT DISTINCT a.x, b.x FROM n a, n b)")
    assert bob("SELECT count(*) FROM n").rows() == [(500,)]
    assert len(ann("SELECT n FROM few").rows()) == 1


def test_a_time_before_the_arguments_of_a_shared_query_is_refused() -> None:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE docs (id int, owner text); CREATE USER ann; CREATE USER bob; GRANT SELECT ON docs TO PUBLIC"
    )
    engine.table("docs").insert([(1, "ann"), (2, "bob")])
    ann, bob = users(engine, "ann", "bob")
    query = "SUBSCRIBE (SELECT id FROM docs WHERE owner = current_user)"
    first = ann(query).subscription
    time = first.source.time
    second = bob(query).subscription
    with pytest.raises(tk.IncorrectError, match="has been answered from time"):  # bob's rows would come twice
        second.source.subscribe(snapshot=False, since=time)
    assert first.source.subscribe(snapshot=False, since=time).changes() == []
    assert second.source.subscribe(snapshot=False, since=second.source.time).changes() == []


def test_a_query_that_takes_more_than_its_user_may_ends_alone() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE n (g int, x int); CREATE USER bob; CREATE USER eve MEMORY LIMIT '128 kB'")
    names = [f"user_{number}" for number in range(6)]
    engine.sql("; ".join(f"CREATE USER {name} MEMORY LIMIT '128 kB'" for name in names))
    engine.sql("GRANT SELECT ON n TO PUBLIC")
    query = "SUBSCRIBE (SELECT a.x AS x, b.x AS y FROM n a, n b WHERE a.g = {0} AND b.g = {0})"
    groups = dict(zip([*names, "bob", "eve"], [*range(6), 99, 99], strict=True))
    runs = dict(zip(groups, users(engine, *groups), strict=True))
    followed = {name: run(query.format(groups[name])).subscription for name, run in runs.items()}
    held: dict[str, Counter[Any]] = {name: Counter() for name in groups}

    def check(names: list[str], rows: list[tuple[int, int]]) -> None:
        for name in names:
            mine = [x for g, x in rows if g == groups[name]]
            assert accumulated(followed[name], held[name]) == Counter((x, y) for x in mine for y in mine)

    small = [(number, x) for number in range(6) for x in range(3)]
    engine.table("n").insert(small)
    check(list(groups), small)
    large = [(99, x) for x in range(300)]
    engine.table("n").insert(large)
    check([*names, "bob"], small + large)  # bob asks the same as eve, without a limit
    with pytest.raises(tk.TektiteError, match="its limit is 896"):  # of all who share
        followed["eve"].changes()
    engine.table("n").insert([(1, 7)])
    check([*names, "bob"], [*small, *large, (1, 7)])
    with pytest.raises(tk.TektiteError, match="its limit is 128"):  # alone, at once
        runs["eve"](query.format(99))
    followed["eve"] = runs["eve"](query.format(5)).subscription  # what is not too much, eve shares again
    groups["eve"], held["eve"] = 5, Counter()
    engine.table("n").insert([(5, 8)])
    check(list(groups), [*small, *large, (1, 7), (5, 8)])
    assert "alone: it kept more" in str(runs["eve"]("EXPLAIN " + query.format(99)))
    assert (
        len([shared for shared in runner(engine).shared.all() if not shared.shape.alone]) == 2
    )  # with limits, and bob's


def test_whoever_comes_last_and_takes_too_much_ends_nobody_else() -> None:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE n (g int, x int); CREATE USER ann MEMORY LIMIT '128 kB'; CREATE USER eve MEMORY LIMIT '128 kB'"
    )
    engine.sql("GRANT SELECT ON n TO PUBLIC")
    engine.table("n").insert([(1, 1), *((2, x) for x in range(600))])
    ann, eve = users(engine, "ann", "eve")
    query = "SUBSCRIBE (SELECT a.x AS x, b.x AS y FROM n a, n b WHERE a.g = {0} AND b.g = {0})"
    of_ann, held = ann(query.format(1)).subscription, Counter[Any]()
    with pytest.raises(tk.TektiteError, match="its limit is 256"):
        eve(query.format(2))
    assert accumulated(of_ann, held) == Counter([(1, 1)])
    engine.table("n").insert([(1, 2)])
    assert accumulated(of_ann, held) == Counter((x, y) for x in (1, 2) for y in (1, 2))


def test_a_prepared_statement_that_takes_more_than_its_user_may_fails_alone() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE n (g int, x int); CREATE USER ann MEMORY LIMIT '128 kB'; GRANT SELECT ON n TO PUBLIC")
    engine.table("n").insert([(1, 1), *((2, x) for x in range(600))])
    (ann,) = users(engine, "ann")
    ann("PREPARE pairs AS SELECT a.x AS x, b.x AS y FROM n a, n b WHERE a.g = $1 AND b.g = $1")
    assert ann("EXECUTE pairs(1)").rows() == [(1, 1)]
    with pytest.raises(tk.TektiteError, match="its limit is 128"):
        ann("EXECUTE pairs(2)")
    assert ann("EXECUTE pairs(1)").rows() == [(1, 1)]


def test_a_sweep_during_a_subscription_takes_nothing_away() -> None:
    """Writing the arguments gives other threads a turn, and they may sweep: what is subscribed to there is needed already."""
    engine = make_engine()
    shared = runner(engine).shared
    engine.sql("CREATE TABLE t (k int, v int)")
    engine.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    core_of(engine).hooks.before_commit.append(lambda writes: shared.sweep())
    followed = [engine.sql(f"SUBSCRIBE (SELECT v FROM t WHERE k = {k})").subscription for k in (1, 2)]
    assert [change.row for each in followed for change in each.changes()] == [(10,), (20,)]
    engine.sql("PREPARE asked AS SELECT v FROM t WHERE k = $1")
    assert engine.sql("EXECUTE asked(2)").rows() == [(20,)]
    for each in followed:
        each.close()
    engine.sql("DEALLOCATE asked")
    engine.sql("INSERT INTO t VALUES (3, 30)")
    assert not shared.all() and not core_of(engine).views


def test_whoever_changes_a_policy_is_not_the_user_of_others_queries() -> None:
    """A query that can fail shares with nobody. It is of its own user when it is made anew, too."""
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE docs (id int, owner text, code text); CREATE USER ann; CREATE USER root SUPERUSER")
    engine.sql("GRANT SELECT ON docs TO ann; ALTER TABLE docs ENABLE ROW LEVEL SECURITY")
    engine.sql("CREATE POLICY own ON docs USING (owner = current_user AND code::int > 0)")
    engine.table("docs").insert([(1, "ann", "1"), (2, "root", "1"), (3, "bob", "1")])
    ann, root = users(engine, "ann", "root")
    followed, held = ann("SUBSCRIBE (SELECT id FROM docs)").subscription, Counter[Any]()
    assert accumulated(followed, held) == Counter([(1,)])
    assert [bool(shared.shape.alone) for shared in runner(engine).shared.all()] == [True]
    root("CREATE POLICY more ON docs USING (id < 0)")
    assert accumulated(followed, held) == Counter([(1,)])
    engine.table("docs").insert([(4, "root", "1"), (5, "ann", "1")])
    assert accumulated(followed, held) == Counter([(1,), (5,)])


def test_a_query_that_is_made_anew_has_the_zone_and_the_schemas_of_whoever_asked() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (at timestamptz); CREATE TABLE b.t (at timestamptz)")
    engine.sql(
        "CREATE USER ann; CREATE USER root SUPERUSER; GRANT USAGE ON SCHEMA a, b TO ann; GRANT SELECT ON a.t, b.t TO ann"
    )
    engine.sql("ALTER TABLE a.t ENABLE ROW LEVEL SECURITY; CREATE POLICY every ON a.t USING (true)")
    engine.sql("INSERT INTO a.t VALUES ('2024-01-01 23:30:00+00'); INSERT INTO b.t VALUES ('2000-01-01 00:00:00+00')")
    ann, root = users(engine, "ann", "root")
    ann("SET search_path = a")
    ann("SET timezone = 'Asia/Tokyo'")
    root("SET search_path = b")
    followed, held = ann("SUBSCRIBE (SELECT extract(day FROM at) AS day FROM t)").subscription, Counter[Any]()
    assert accumulated(followed, held) == Counter([(2,)])
    root("CREATE POLICY more ON a.t USING (false)")
    assert accumulated(followed, held) == Counter([(2,)])
    engine.sql("INSERT INTO a.t VALUES ('2024-01-05 23:30:00+00')")
    assert accumulated(followed, held) == Counter([(2,), (6,)])


def test_a_removal_looks_at_no_other_binding() -> None:
    class NotWalked(dict[Any, int]):
        """A dictionary that is looked up, and never walked."""

        def items(self) -> Any:
            raise AssertionError("all bindings are walked")

        values = __iter__ = keys = items

    engine = make_engine()
    engine.sql("CREATE TABLE some (k int, v int)")
    engine.sql("PREPARE one(int) AS SELECT v FROM some WHERE k = $1")
    engine.sql("EXECUTE one(0)")
    sharing = runner(engine).shared
    (shared,) = [found for found in sharing.all() if "some" in found.reads]
    with core_of(engine).lock.held:
        numbers = [sharing.number_for(shared, (value,), "somebody") for value in range(100)]
        assert [sharing.number_for(shared, (value,), "somebody") for value in range(100)] == numbers
        bindings, shared.bindings = shared.bindings, NotWalked(shared.bindings)
        for number in [*numbers, *numbers[10:]]:
            sharing.release(shared, number)
        sharing.followed_by("somebody")
        shared.bindings = dict(dict.items(shared.bindings))
        assert {row[1] for row in bindings} >= set(range(100))
        assert {row[1] for row in shared.bindings if row[0] == "somebody"} == set(range(10))
        assert {number: row for row, number in shared.bindings.items()} == shared.bound
