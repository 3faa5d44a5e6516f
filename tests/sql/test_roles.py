"""Roles, grants and policies: what each may do, in every kind of statement, and what a subscriber sees while rights change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite import sql
from tektite.sql import runner
from tektite.sql.access.access_control import PermissionDenied
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

SETUP = """
CREATE TABLE docs (id int PRIMARY KEY, owner varchar, body varchar);
CREATE TABLE shares (doc int, who varchar);
INSERT INTO docs VALUES (1, 'ann', 'a1'), (2, 'bob', 'b1'), (3, 'ann', 'a2');
CREATE ROLE staff; CREATE USER ann; CREATE USER bob; CREATE USER cid;
"""


def users(engine: tk.Engine, *names: str) -> list[Callable[..., Any]]:
    """What runs a statement as somebody, for each of some users."""
    found = []
    for name in names:
        session = engine.session()
        session.sql(f"SET ROLE {name}")
        found.append(session.sql)
    return found


def accumulated(subscription: Any, held: Counter[Any]) -> Counter[Any]:
    for change in subscription.changes():
        held[change.row] += change.diff
    return Counter({row: count for row, count in held.items() if count})


STATEMENTS = (
    ("SELECT", "SELECT * FROM docs"),
    ("SELECT", "SELECT count(*) FROM docs d JOIN docs e ON d.id = e.id"),
    ("SELECT", "EXPLAIN SELECT * FROM docs"),
    ("SELECT", "SUBSCRIBE docs"),
    ("SELECT", "SUBSCRIBE (SELECT id FROM docs WHERE id > 1)"),
    ("SELECT", "EXPLAIN SUBSCRIBE docs"),
    ("INSERT", "INSERT INTO docs SELECT 9, 'ann', 'x' WHERE 1 = 2"),
    ("DELETE", "DELETE FROM docs"),
    ("UPDATE", "UPDATE docs SET body = 'y'"),
    ("TRUNCATE", "TRUNCATE docs"),
)


@pytest.mark.parametrize(("privilege", "statement"), STATEMENTS)
def test_a_statement_needs_its_privilege_and_loses_it(privilege: str, statement: str) -> None:
    engine = make_engine()
    engine.sql(SETUP)
    (ann,) = users(engine, "ann")
    with pytest.raises(PermissionDenied, match=f"'ann' has no {privilege}"):
        ann(statement)
    engine.sql(f"GRANT {privilege} ON docs TO staff; GRANT staff TO ann")
    ann(statement)
    engine.sql("REVOKE staff FROM ann")
    with pytest.raises(PermissionDenied):
        ann(statement)
    engine.sql(f"GRANT {privilege} ON docs TO PUBLIC")
    ann(statement)


REFUSED = (
    ("CREATE TABLE t (x int)", "CREATE on it"),
    ("CREATE VIEW v AS SELECT 1", "CREATE on it"),
    ("CREATE SCHEMA s", "database"),
    ("DROP TABLE docs", "must be owner"),
    ("ALTER TABLE docs ALTER COLUMN body SET DEFAULT 'x'", "must be owner"),
    ("ALTER TABLE docs ENABLE ROW LEVEL SECURITY", "must be owner"),
    ("ALTER TABLE docs OWNER TO ann", "must be owner"),
    ("CREATE POLICY p ON docs USING (true)", "must be owner"),
    ("CREATE INDEX i ON docs (owner)", "must be owner"),
    ("GRANT SELECT ON docs TO bob", "GRANT OPTION"),
    ("GRANT staff TO ann", "CREATEROLE"),
    ("CREATE ROLE x", "CREATEROLE"),
    ("ALTER ROLE ann SUPERUSER", "CREATEROLE"),
    ("ALTER ROLE bob PASSWORD 'x'", "CREATEROLE"),
    ("DROP ROLE bob", "CREATEROLE"),
    ("SET ROLE bob", "no member"),
    ("SET SESSION AUTHORIZATION bob", "superuser"),
    ("CREATE TOKEN t FOR bob", "CREATEROLE"),
    ("COPY docs TO '/tmp/never'", "superuser"),
    ("REASSIGN OWNED BY bob TO ann", "no member"),
)


@pytest.mark.parametrize(("statement", "why"), REFUSED)
def test_what_is_not_granted_is_refused(statement: str, why: str) -> None:
    engine = make_engine()
    engine.sql(SETUP)
    settings = sql.runner(engine).settings_of(session := engine.session())
    settings.user = settings.login = "ann"
    settings.is_trusted = False
    with pytest.raises(PermissionDenied, match=why):
        session.sql(statement)


def test_who_may_not_read_a_table_does_not_compute_with_what_is_in_it() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT UPDATE ON docs TO ann; CREATE TABLE open (x int); GRANT SELECT ON open TO ann")
    (ann,) = users(engine, "ann")
    for value in (
        "body || '!'",
        "docs.owner",
        "(SELECT max(x) FROM open WHERE id > 0)",
        "CASE WHEN id > 1 THEN 'a' END",
    ):
        with pytest.raises(PermissionDenied, match="no SELECT"):
            ann(f"UPDATE docs SET body = {value}")
    ann("UPDATE docs SET body = 'b' || 'c'")
    ann("UPDATE docs SET body = (SELECT max(x) FROM open)")


REPLACING = (
    "INSERT INTO docs VALUES (1, 'ann', 'x') ON CONFLICT (id) DO UPDATE SET body = excluded.body RETURNING *",
    "INSERT INTO docs VALUES (1, 'ann', 'x') ON CONFLICT DO UPDATE SET body = docs.body || '!' WHERE docs.id > 0",
    "INSERT OR REPLACE INTO docs VALUES (1, 'ann', 'x')",
    "INSERT OR REPLACE INTO docs (id, body) SELECT 1, 'x'",
)


@pytest.mark.parametrize("statement", REPLACING)
def test_an_insert_that_changes_rows_needs_the_privilege_to_change_them(statement: str) -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT SELECT, INSERT ON docs TO ann")
    (ann,) = users(engine, "ann")
    before = engine.sql("SELECT * FROM docs ORDER BY id").rows()
    with pytest.raises(PermissionDenied, match="'ann' has no UPDATE"):
        ann(statement)
    assert engine.sql("SELECT * FROM docs ORDER BY id").rows() == before
    ann("INSERT INTO docs VALUES (1, 'ann', 'x') ON CONFLICT (id) DO NOTHING")
    engine.sql("GRANT UPDATE ON docs TO ann")
    ann(statement)
    assert engine.sql("SELECT * FROM docs ORDER BY id").rows() != before


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


def test_what_was_granted_to_an_owner_goes_with_owning() -> None:
    engine = make_engine()
    engine.sql(
        SETUP
        + """
        GRANT CREATE ON SCHEMA public TO ann; ALTER TABLE docs OWNER TO ann; GRANT SELECT, UPDATE ON docs TO ann, bob
    """
    )
    ann, bob = users(engine, "ann", "bob")
    ann("SELECT * FROM docs")
    engine.sql("ALTER TABLE docs OWNER TO bob")
    with pytest.raises(PermissionDenied, match="'ann' has no SELECT"):
        ann("SELECT * FROM docs")
    engine.sql("REASSIGN OWNED BY bob TO ann")
    ann("UPDATE docs SET body = 'x'")
    with pytest.raises(PermissionDenied, match="'bob' has no SELECT"):
        bob("SELECT * FROM docs")


def test_create_role_does_not_give_more_than_its_user_has() -> None:
    engine = make_engine()
    engine.sql(SETUP + "CREATE ROLE boss SUPERUSER; ALTER ROLE ann CREATEROLE")
    (ann,) = users(engine, "ann")
    ann("CREATE ROLE helper")
    ann("GRANT helper TO bob")
    for statement in (
        "CREATE ROLE x SUPERUSER",
        "GRANT boss TO ann",
        "ALTER ROLE boss PASSWORD 'x'",
        "CREATE ROLE x BYPASSRLS",
    ):
        with pytest.raises(PermissionDenied, match="superuser"):
            ann(statement)


@pytest.mark.executors("stages")
def test_view_reads_with_the_rights_of_its_owner() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT CREATE ON SCHEMA public TO ann; GRANT SELECT ON docs TO ann")
    ann, bob = users(engine, "ann", "bob")
    ann("CREATE VIEW few AS SELECT id FROM docs WHERE id > 1")
    ann("CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM docs")
    ann("GRANT SELECT ON few, many TO bob")
    assert bob("SELECT * FROM few ORDER BY id").rows() == [(2,), (3,)]
    followed, held = bob("SUBSCRIBE many").subscription, Counter()
    assert accumulated(followed, held) == {(3,): 1}
    with pytest.raises(PermissionDenied):
        bob("SELECT * FROM docs")
    engine.sql("REVOKE SELECT ON docs FROM ann")
    for statement in ("SELECT * FROM few", "SELECT * FROM many"):
        with pytest.raises(PermissionDenied, match="'ann', who owns it or a view below it, may not read all"):
            bob(statement)
    assert accumulated(followed, held) == {}
    engine.sql("GRANT SELECT ON docs TO ann; INSERT INTO docs VALUES (4, 'x', 'y')")
    assert accumulated(followed, held) == {(4,): 1}


READING_UPDATES = (
    "SET body = owner",
    "SET id = 1 / (id - 2)",
    "SET body = CAST(CAST(body AS int) AS varchar)",
    "AS d SET body = (SELECT d.owner)",
    "SET body = (SELECT max(who) FROM shares WHERE doc = docs.id)",
    "SET body = (SELECT max(owner) FROM shares)",
    "SET body = CAST(row(docs) AS varchar)",
)
BLIND_UPDATES = (
    "SET body = 'y'",
    "SET body = current_user",
    "SET body = (SELECT max(who) FROM shares)",
    "SET id = (SELECT count(*) FROM shares)",
)


def test_who_may_update_and_not_read_is_told_nothing_by_new_values() -> None:
    engine = make_engine()
    engine.sql(SETUP + "DELETE FROM docs WHERE id > 1; GRANT UPDATE ON docs TO ann; GRANT SELECT ON shares TO ann")
    (ann,) = users(engine, "ann")
    for change in BLIND_UPDATES:
        assert ann(f"UPDATE docs {change}").message == "UPDATE 1"
    for change in READING_UPDATES:
        with pytest.raises(PermissionDenied, match="'ann' has no SELECT on it"):
            ann(f"UPDATE docs {change}")
    engine.sql("GRANT SELECT ON docs TO ann")
    assert ann("UPDATE docs SET body = owner").message == "UPDATE 1"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO docs VALUES (1, 'ann', 'new') ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        "INSERT OR REPLACE INTO docs VALUES (1, 'ann', 'new')",
    ],
)
def test_insert_changes_rows_that_are_there_for_those_who_may_update(statement: str) -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT SELECT, INSERT ON docs TO ann")
    (ann,) = users(engine, "ann")
    ann("INSERT INTO docs VALUES (1, 'ann', 'new') ON CONFLICT (id) DO NOTHING")
    with pytest.raises(PermissionDenied, match="'ann' has no UPDATE on it"):
        ann(statement)
    assert engine.sql("SELECT body FROM docs WHERE id = 1").rows() == [("a1",)]
    engine.sql("GRANT UPDATE ON docs TO ann")
    assert ann(statement).message == "INSERT 0 1"


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


def test_roles_and_grants_survive_the_engine(tmp_path: Any) -> None:
    with make_engine(storage=tmp_path / "s") as engine:
        engine.sql(
            SETUP + "CREATE POLICY own ON docs USING (owner = current_user); ALTER TABLE docs ENABLE ROW LEVEL SECURITY"
        )
        engine.sql("GRANT SELECT ON docs TO staff; GRANT staff TO ann; ALTER ROLE ann PASSWORD 'x'")
        engine.sync()
    with make_engine(storage=tmp_path / "s") as engine:
        ann, bob = users(engine, "ann", "bob")
        assert ann("SELECT id FROM docs ORDER BY id").rows() == [(1,), (3,)]
        with pytest.raises(PermissionDenied):
            bob("SELECT id FROM docs")
        verifier = sql.runner(engine).access.role("ann").verifier
        assert verifier is not None and verifier.startswith("SCRAM-SHA-256$")


def test_grant_option_is_taken_back_with_what_it_gave() -> None:
    engine = make_engine()
    engine.sql(SETUP + "GRANT SELECT ON docs TO ann WITH GRANT OPTION")
    ann, bob = users(engine, "ann", "bob")
    ann("GRANT SELECT ON docs TO bob")
    bob("SELECT * FROM docs")
    with pytest.raises(tk.ConflictError, match="CASCADE"):
        engine.sql("REVOKE SELECT ON docs FROM ann")
    engine.sql("REVOKE SELECT ON docs FROM ann CASCADE")
    for ask in (ann, bob):
        with pytest.raises(PermissionDenied):
            ask("SELECT * FROM docs")


def test_role_that_owns_something_is_not_dropped() -> None:
    engine = make_engine()
    engine.sql(SETUP + "ALTER TABLE docs OWNER TO ann")
    with pytest.raises(tk.ConflictError, match="owns table docs"):
        engine.sql("DROP ROLE ann")
    engine.sql("REASSIGN OWNED BY ann TO bob; DROP ROLE ann")
    assert engine.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'docs'").rows() == [("bob",)]


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


def test_statements_that_need_no_plan_are_checked() -> None:
    """INSERT of written rows and SELECT by key are run without a plan, for those who may."""
    engine = make_engine()
    engine.sql(SETUP)
    (ann,) = users(engine, "ann")
    reading, writing = "SELECT body FROM docs WHERE id = $x", "INSERT INTO docs VALUES ({}, 'ann', 'x')".format
    for statement in (lambda: ann(reading, x=1), lambda: ann(writing(10))):
        with pytest.raises(PermissionDenied):
            statement()
    engine.sql("GRANT SELECT, INSERT ON docs TO ann")
    for number in (10, 11):
        ann(writing(number))
        assert ann(reading, x=number).rows() == [("x",)]
    engine.sql("CREATE POLICY few ON docs USING (id < 11); ALTER TABLE docs ENABLE ROW LEVEL SECURITY")
    assert [ann(reading, x=number).rows() for number in (10, 11)] == [[("x",)], []]
    with pytest.raises(PermissionDenied):
        ann(writing(12))
    engine.sql("REVOKE ALL ON docs FROM ann")
    for statement in (lambda: ann(reading, x=1), lambda: ann(writing(13))):
        with pytest.raises(PermissionDenied):
            statement()


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


def test_a_table_is_made_of_a_query_with_and_without_roles() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE c AS SELECT 1 AS a")
    engine.sql("CREATE TABLE d AS SELECT a + 1 AS b FROM c")
    assert engine.sql("SELECT a, b FROM c, d").rows() == [(1, 2)]


def test_sizes_and_texts_are_for_those_who_may_read_what_they_are_of() -> None:
    engine = make_engine()
    engine.sql(SETUP)
    engine.sql(
        "CREATE MATERIALIZED VIEW bodies AS SELECT body::int AS n FROM docs; PREPARE secret AS SELECT id FROM docs"
    )
    ann, bob = users(engine, "ann", "bob")
    engine.sql("GRANT SELECT ON docs, bodies TO ann")
    ann("PREPARE own AS SELECT body FROM docs")

    def shown(run: Callable[..., Any]) -> list[Any]:
        views = [(name, rows, error is not None) for name, _, rows, error in run("SHOW VIEWS").rows()]
        texts = sorted(run("SELECT name FROM pg_prepared_statements").rows())
        return [{name: rows for name, rows, _, _ in run("SHOW TABLES").rows()}, views, texts]

    assert shown(ann) == [{"docs": 3}, [("bodies", 0, True)], [("own",)]]
    assert shown(bob) == [{}, [], []]
    engine.sql("ALTER TABLE docs ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON docs USING (owner = current_user)")
    assert shown(ann)[0]["docs"] is None  # how many rows others have is not ann's to know
    with pytest.raises(PermissionDenied, match="superuser"):
        ann("SHOW ARRANGEMENTS")


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
