"""Policies on rows: which rows each user reads and writes, and what a subscriber sees while rights and policies change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite.sql.access.access_control import PermissionDenied
from tests.support.executors import make_engine
from tests.support.sql.roles import SETUP, accumulated, users

pytestmark = pytest.mark.executors


def test_rows_that_are_new_are_inserted_by_the_policies_for_insert() -> None:
    engine = make_engine()
    engine.sql(
        SETUP
        + """
        GRANT SELECT, INSERT, UPDATE ON docs TO ann; ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
        CREATE POLICY reads ON docs FOR SELECT USING (true); CREATE POLICY changes ON docs FOR UPDATE USING (true);
        CREATE POLICY adds ON docs FOR INSERT WITH CHECK (owner = current_user)
    """
    )
    (ann,) = users(engine, "ann")
    for number, verb in enumerate(("INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT"), 70):
        behind = " ON CONFLICT (id) DO UPDATE SET body = 'y'" if number == 73 else ""
        with pytest.raises(PermissionDenied, match="row-level security"):
            ann(f"{verb} INTO docs VALUES ({number}, 'bob', 'x'){behind}")
        ann(f"{verb} INTO docs VALUES ({number}, 'ann', 'x'){behind}")
    engine.sql("DROP POLICY changes ON docs")
    ann("INSERT INTO docs VALUES (80, 'ann', 'x') ON CONFLICT (id) DO UPDATE SET body = 'y'")
    assert engine.sql("SELECT count(*) FROM docs WHERE id >= 70").rows() == [(5,)]


def test_policies_say_which_rows_are_read_and_written() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT ALL ON docs TO PUBLIC; ALTER TABLE docs ENABLE ROW LEVEL SECURITY")
    ann, bob = users(engine, "ann", "bob")
    assert ann("SELECT * FROM docs").rows() == []  # without a policy, nobody sees a row
    engine.sql(
        "CREATE POLICY own ON docs USING (owner = current_user) WITH CHECK (owner = current_user AND body <> 'bad')"
    )
    assert ann("SELECT id FROM docs ORDER BY id").rows() == [(1,), (3,)]
    assert ann("DELETE FROM docs WHERE id = 2").message == "DELETE 0"
    assert ann("UPDATE docs SET body = 'new'").message == "UPDATE 2"
    for statement in (
        "INSERT INTO docs VALUES (5, 'bob', 'x')",
        "INSERT INTO docs VALUES (5, 'ann', 'bad')",
        "UPDATE docs SET owner = 'bob'",
        "INSERT INTO docs VALUES (2, 'ann', 'x') ON CONFLICT (id) DO UPDATE SET body = 'bad' , owner = 'bob'",
    ):
        try:
            ann(statement)
        except PermissionDenied as error:
            assert "row-level security" in str(error)
    assert bob("SELECT id, body FROM docs").rows() == [(2, "b1")]
    engine.sql("CREATE POLICY no_first ON docs AS RESTRICTIVE FOR SELECT USING (id <> 1)")
    assert ann("SELECT id FROM docs ORDER BY id").rows() == [(3,)]
    engine.sql("CREATE POLICY extra ON docs FOR SELECT TO staff USING (id = 2)")
    assert ann("SELECT id FROM docs ORDER BY id").rows() == [(3,)]
    engine.sql("GRANT staff TO ann")
    assert ann("SELECT id FROM docs ORDER BY id").rows() == [(2,), (3,)]


def test_insert_does_not_replace_a_row_that_policies_hide() -> None:
    engine = make_engine()
    engine.sql(
        "CREATE TABLE kv (k int PRIMARY KEY, owner varchar, v int) WITH (mode = upsert); INSERT INTO kv VALUES (1, 'bob', 7);"
        "CREATE USER ann; GRANT ALL ON kv TO ann; ALTER TABLE kv ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY own ON kv USING (owner = current_user)"
    )
    (ann,) = users(engine, "ann")
    with pytest.raises(PermissionDenied, match="would replace a row"):
        ann("INSERT INTO kv VALUES (1, 'ann', 8)")
    ann("INSERT INTO kv VALUES (2, 'ann', 8)")
    ann("INSERT INTO kv VALUES (2, 'ann', 9)")
    assert engine.sql("SELECT * FROM kv ORDER BY k").rows() == [(1, "bob", 7), (2, "ann", 9)]


def test_owner_is_bound_by_policies_that_are_forced() -> None:
    engine = make_engine()
    engine.sql(SETUP + "ALTER TABLE docs OWNER TO ann; ALTER TABLE docs ENABLE ROW LEVEL SECURITY")
    (ann,) = users(engine, "ann")
    followed, held = ann("SUBSCRIBE (SELECT id FROM docs)").subscription, Counter()
    assert len(accumulated(followed, held)) == len(ann("SELECT * FROM docs").rows()) == 3
    ann("CREATE POLICY own ON docs USING (owner = current_user)")
    ann("ALTER TABLE docs FORCE ROW LEVEL SECURITY")
    assert accumulated(followed, held) == {(1,): 1, (3,): 1}
    assert len(ann("SELECT * FROM docs").rows()) == 2


RULES = """
role_access(role, doc) :- may(role, doc).
role_access(role, doc) :- above(child, role), role_access(child, doc).
access(client, doc) :- client_role(client, role), role_access(role, doc).
"""


def test_rules_of_datalog_are_policies() -> None:
    """The roles of the thesis (3DF §10.1): documents are granted to roles, and to roles above them."""
    engine = make_engine()
    engine.sql(
        SETUP + "CREATE TABLE may (role varchar, doc int); CREATE TABLE above (child varchar, role varchar);"
        "CREATE TABLE client_role (client varchar, role varchar)"
    )
    engine.datalog(RULES)
    engine.view("access")
    engine.sql(
        "CREATE POLICY by_role ON docs USING (access(current_user, id)); ALTER TABLE docs ENABLE ROW LEVEL SECURITY;"
        "GRANT SELECT ON docs, access TO PUBLIC;"
        "INSERT INTO may VALUES ('clerk', 2); INSERT INTO client_role VALUES ('ann', 'boss')"
    )
    (ann,) = users(engine, "ann")
    followed, held = ann("SUBSCRIBE (SELECT id FROM docs)").subscription, Counter()
    assert accumulated(followed, held) == {}
    engine.sql("INSERT INTO above VALUES ('clerk', 'boss')")
    assert accumulated(followed, held) == {(2,): 1}
    assert ann("SELECT id FROM docs").rows() == [(2,)]
    engine.sql("DELETE FROM client_role")
    assert accumulated(followed, held) == {}


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_of_rights_show_each_subscriber_their_rows_alone(seed: int) -> None:
    """At every step, what each subscription adds up to is what the rights and the rows of that moment allow its user."""
    chance = random.Random(seed)
    engine = make_engine()
    engine.sql(
        SETUP + "GRANT SELECT ON shares TO PUBLIC; ALTER TABLE docs ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY own ON docs USING (owner = current_user);"
        "CREATE POLICY shared ON docs FOR SELECT TO staff "
        "USING (EXISTS (SELECT 1 FROM shares s WHERE s.doc = id AND s.who = current_user))"
    )
    names = ["ann", "bob", "cid"]
    asking = dict(zip(names, users(engine, *names), strict=True))
    docs = {1: "ann", 2: "bob", 3: "ann"}
    shares: set[tuple[int, str]] = set()
    granted: set[str] = set()
    staff: set[str] = set()
    followed: list[tuple[str, int, Any, Counter[Any]]] = []
    texts: Callable[[int], str] = "SUBSCRIBE (SELECT id, owner FROM docs WHERE id > {})".format

    def allowed(name: str) -> bool:
        return name in granted or ("staff" in granted and name in staff)

    def seen(name: str, least: int) -> dict[tuple[int, str], int]:
        if not allowed(name):
            return {}
        mine = {i for i, owner in docs.items() if owner == name}
        mine |= {i for i in docs if (i, name) in shares and name in staff}
        return {(i, docs[i]): 1 for i in mine if i > least}

    for _ in range(40):
        what, name = chance.randrange(8), chance.choice(names)
        number = chance.randrange(1, 9)
        if what == 0 and number not in docs:
            docs[number] = name
            engine.sql(f"INSERT INTO docs VALUES ({number}, '{name}', '')")
        elif what == 1 and docs.pop(number, None) is not None:
            engine.sql(f"DELETE FROM docs WHERE id = {number}")
        elif what == 2:
            (shares.discard if (number, name) in shares else shares.add)((number, name))
            is_new = (number, name) in shares
            engine.sql(
                f"INSERT INTO shares VALUES ({number}, '{name}')"
                if is_new
                else f"DELETE FROM shares WHERE doc = {number} AND who = '{name}'"
            )
        elif what in (3, 4):
            role = chance.choice([*names, "staff"])
            (granted.discard if role in granted else granted.add)(role)
            engine.sql(f"GRANT SELECT ON docs TO {role}" if role in granted else f"REVOKE SELECT ON docs FROM {role}")
        elif what == 5:
            (staff.discard if name in staff else staff.add)(name)
            engine.sql(f"GRANT staff TO {name}" if name in staff else f"REVOKE staff FROM {name}")
        elif what == 6 and allowed(name):
            least = chance.randrange(4)
            followed.append((name, least, asking[name](texts(least)).subscription, Counter()))
        elif what == 7 and followed:
            followed.pop(chance.randrange(len(followed)))[2].close()
        for who, least, subscription, held in followed:
            assert accumulated(subscription, held) == seen(who, least)
        for who in names:
            if allowed(who):
                assert {row: 1 for row in asking[who]("SELECT id, owner FROM docs").rows()} == seen(who, 0)
            else:
                with pytest.raises(PermissionDenied):
                    asking[who]("SELECT id, owner FROM docs")


@pytest.mark.executors("stages")
def test_changed_policies_are_told_as_changes() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT SELECT ON docs TO PUBLIC")
    (ann,) = users(engine, "ann")
    followed, held = ann("SUBSCRIBE (SELECT id FROM docs)").subscription, Counter()
    assert len(accumulated(followed, held)) == 3
    for statement, expected in (
        ("ALTER TABLE docs ENABLE ROW LEVEL SECURITY", set()),
        ("CREATE POLICY own ON docs USING (owner = current_user)", {1, 3}),
        ("ALTER POLICY own ON docs USING (owner <> current_user)", {2}),
        ("INSERT INTO docs VALUES (4, 'bob', '')", {2, 4}),
        ("DROP POLICY own ON docs", set()),
        ("ALTER TABLE docs DISABLE ROW LEVEL SECURITY", {1, 2, 3, 4}),
    ):
        engine.sql(statement)
        assert {row for (row,) in accumulated(followed, held)} == expected, statement


def test_an_update_replaces_no_row_that_a_policy_hides() -> None:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE u (id int PRIMARY KEY, o varchar) WITH (mode = 'upsert'); INSERT INTO u VALUES (1, 'a'), (2, 'b')"
    )
    engine.sql("CREATE USER a PASSWORD 'x'; GRANT ALL ON u TO a; CREATE POLICY p ON u USING (o = current_user)")
    engine.sql("ALTER TABLE u ENABLE ROW LEVEL SECURITY")
    session = engine.session()
    session.sql("SET ROLE a")
    with pytest.raises(tk.TektiteError, match="a row that the policies hide"):
        session.sql("UPDATE u SET id = 2 WHERE id = 1")
    session.sql("UPDATE u SET id = 3 WHERE id = 1")
    assert sorted(engine.sql("SELECT * FROM u").rows()) == [(2, "b"), (3, "a")]
    with pytest.raises(tk.ConflictError, match="'policy p' reads it"):
        engine.sql("ALTER TABLE u RENAME COLUMN o TO other")


def test_a_user_who_loses_rights_does_not_end_what_others_follow_when_policies_change() -> None:
    engine = make_engine()
    engine.sql(SETUP)
    engine.sql("GRANT SELECT ON docs TO ann, bob")
    ann, bob = users(engine, "ann", "bob")
    of_ann, of_bob = (run("SUBSCRIBE (SELECT id FROM docs)").subscription for run in (ann, bob))
    held: dict[str, Counter[Any]] = {"ann": Counter(), "bob": Counter()}
    engine.sql("REVOKE SELECT ON docs FROM ann")  # who was the first, by whose rights the query was planned
    engine.sql("ALTER TABLE docs ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON docs USING (owner = current_user)")
    assert accumulated(of_bob, held["bob"]) == Counter({(2,): 1})
    assert accumulated(of_ann, held["ann"]) == Counter()
    engine.sql("GRANT SELECT ON docs TO ann")
    assert accumulated(of_ann, held["ann"]) == Counter({(1,): 1, (3,): 1})
