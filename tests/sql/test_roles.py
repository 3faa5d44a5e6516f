"""Roles and grants: what each user may do, in every kind of statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite import sql
from tektite.sql.access.access_control import PermissionDenied
from tests.support.executors import make_engine
from tests.support.sql.roles import SETUP, accumulated, users

pytestmark = pytest.mark.executors

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
