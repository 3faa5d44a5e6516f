"""What users see of system relations: what is about tables and views that they may read, and their own queries; as it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.system.relations import SYSTEM
from tektite.engine.system.tables import SystemTables
from tektite.sql import runner
from tektite.sql.access.system_policies import SYSTEM_OBJECTS, SYSTEM_POLICIES
from tests.support.patience import eventually

SETUP = """
CREATE TABLE open_sales (shop varchar, amount int); INSERT INTO open_sales VALUES ('north', 3), ('south', 4);
CREATE TABLE secret_wages (person varchar, wage int); INSERT INTO secret_wages VALUES ('eve', 777111), ('dan', 5);
CREATE SCHEMA secret_schema; CREATE TABLE secret_schema.plans (x int);
CREATE TABLE letters (id int, owner varchar); INSERT INTO letters VALUES (1, 'ann'), (2, 'bob'), (3, 'bob');
CREATE MATERIALIZED VIEW open_totals AS SELECT shop, sum(amount) AS total FROM open_sales GROUP BY shop;
CREATE MATERIALIZED VIEW secret_totals AS SELECT person, sum(wage) AS total FROM secret_wages WHERE wage < 777222 GROUP BY person;
CREATE MATERIALIZED VIEW mixed AS SELECT shop, wage FROM open_sales JOIN secret_wages ON amount = wage WHERE wage <> 777333;
CREATE MATERIALIZED VIEW secret_failing AS SELECT CAST(person AS int) AS n FROM secret_wages;
CREATE INDEX open_index ON open_sales (amount); CREATE INDEX secret_index ON secret_wages (wage);
CREATE USER ann; CREATE USER bob; CREATE ROLE watcher;
GRANT SELECT ON open_sales, open_totals, mixed, letters, secret_schema.plans TO ann;
GRANT SELECT ON open_sales, secret_wages TO bob;
CREATE POLICY own ON letters USING (owner = current_user); ALTER TABLE letters ENABLE ROW LEVEL SECURITY;
"""
Run = Callable[..., Any]


def user(engine: tk.Engine, name: str) -> Run:
    session = engine.session()
    session.sql(f"SET ROLE {name}")
    return session.sql


def small_engine() -> tuple[tk.Engine, Run, Run]:
    engine = tk.Engine()
    engine.sql(SETUP)
    return engine, user(engine, "ann"), user(engine, "bob")


def quoted(name: str) -> str:
    return name if name.startswith("system.") else f'"{name}"'


def held(subscription: Any, rows: Counter[Any]) -> set[Any]:
    """The rows that a subscriber has, after what has come since the last time."""
    for change in subscription.changes():
        rows[change.row] += change.diff
    assert all(count in (0, 1) for count in rows.values()), "each row is seen once"
    return {row for row, count in rows.items() if count}


def test_every_system_relation_says_who_sees_what() -> None:
    assert SYSTEM_POLICIES.keys() == SYSTEM.keys()
    for name, policies in SYSTEM_POLICIES.items():
        assert {column for policy in policies for column in policy.hides} <= set(SYSTEM[name].columns)


def test_a_user_sees_what_is_about_what_it_may_read() -> None:
    engine, ann, bob = small_engine()
    assert sorted(ann("SELECT name, rows FROM system.views").rows()) == [("mixed", 0), ("open_totals", 2)]
    texts = dict(ann("SELECT name, definition FROM system.views").rows())
    assert "read open_sales" in texts["open_totals"]
    assert texts["mixed"] is None, "its plan would tell of a table that ann may not read"
    assert sorted(ann("SELECT name, rows, bytes > 0 FROM system.tables").rows()) == [
        ("letters", None, None),  # how many rows others have is not ann's to know; and no USAGE on secret_schema
        ("open_sales", 2, True),
    ]
    indexes = {name for (name,) in ann("SELECT name FROM system.indexes").rows()}
    assert indexes == {"mixed", "open_sales", "open_sales by (amount)", "open_totals"}
    assert ann("SELECT name, kind FROM system.dataflows WHERE kind = 'view'").rows() == [("open_totals", "view")]
    operators = ann(
        "SELECT d.name FROM system.operators o JOIN system.dataflows d ON d.id = o.dataflow WHERE d.kind = 'view'"
    )
    assert set(operators.rows()) == {("open_totals",)}
    assert ann("SELECT * FROM system.errors").rows() == [] != engine.sql("SELECT * FROM system.errors").rows()
    assert bob("SELECT name FROM system.tables ORDER BY name").rows() == [("open_sales",), ("secret_wages",)]
    assert bob("SELECT name FROM system.views").rows() == [], "bob may read the tables, and none of the views"
    engine.sql("GRANT USAGE ON SCHEMA secret_schema TO ann")
    assert ("secret_schema.plans", 0) in ann("SELECT name, rows FROM system.tables").rows()


@pytest.mark.parametrize("name", SYSTEM)
def test_nothing_of_what_a_user_may_not_read_is_told(name: str) -> None:
    engine, ann, bob = small_engine()
    following = bob("SUBSCRIBE (SELECT person FROM secret_wages WHERE wage = 777444)").subscription
    bob("PREPARE secret_statement AS SELECT person FROM secret_wages WHERE wage = 777555")
    bob("EXECUTE secret_statement")
    engine.table("system.work")
    engine.sql("INSERT INTO secret_wages VALUES ('fay', 777666); INSERT INTO open_sales VALUES ('east', 9)")
    everything = str(engine.sql(f"SELECT * FROM {quoted(name)}").rows())
    seen = ann(f"SELECT * FROM {quoted(name)}").rows()
    followed = ann(f"SUBSCRIBE {quoted(name)}").subscription
    told: Counter[Any] = Counter()
    held(followed, told)
    assert len(set(seen)) == len(seen)
    for rows in (seen, list(told)):
        found = [[value for value in row if not isinstance(value, float)] for row in rows]  # seconds have any digits
        for word in ("secret", "777", "eve"):
            assert word not in str(found), f"{word} is in what ann sees"
    if name in ("system.views", "system.operators", "system.indexes", "system.memory", "system.requirements"):
        assert "secret" in everything, "there is something to hide"
    assert following is not None


def test_a_statement_looks_at_the_engine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ann, _ = small_engine()
    query = "SELECT v.name, t.name FROM system.views v, system.tables t, system.views w WHERE v.name = w.name"
    ann(query)
    looks: list[SystemTables] = []
    refresh = SystemTables.refresh
    monkeypatch.setattr(
        SystemTables,
        "refresh",
        lambda self, only=None: (looks.append(self) if only is None else None, refresh(self, only)),
    )
    assert len(ann(query).rows()) == 2 * 2
    assert len(looks) == 1, "for all names, and for what its policies ask"
    ann(query)
    assert len(looks) == 2


def test_own_queries_are_seen_and_those_of_others_are_not() -> None:
    engine, ann, bob = small_engine()
    mine = ann("SUBSCRIBE (SELECT shop FROM open_sales WHERE amount = 5)").subscription
    other = bob("SUBSCRIBE (SELECT shop FROM open_sales WHERE amount > 5)").subscription
    query = "SELECT d.kind, q.user_name, q.uses FROM system.dataflows d JOIN system.queries q ON q.dataflow = d.id"
    assert ann(query).rows() == [("query", "ann", 1)]
    assert sorted(engine.sql(query).rows()) == [("query", "ann", 1), ("query", "bob", 1)]
    read = "SELECT count(*) FROM system.index_readers WHERE reader LIKE 'shared%'"
    assert ann(read).rows() == [(1,)]
    mine.close()
    eventually(lambda: ann(query).rows(), [])
    other.close()


def test_a_subscriber_gains_and_loses_rows_with_its_rights() -> None:
    engine, ann, _ = small_engine()
    followed = ann("SUBSCRIBE (SELECT name, definition IS NULL AS hidden FROM system.views)").subscription
    rows: Counter[Any] = Counter()
    eventually(lambda: held(followed, rows), {("mixed", True), ("open_totals", False)})
    engine.sql("GRANT SELECT ON secret_wages TO ann")
    eventually(lambda: held(followed, rows), {("mixed", False), ("open_totals", False)})
    engine.sql("REVOKE SELECT ON open_sales FROM ann")
    eventually(lambda: held(followed, rows), {("mixed", True), ("open_totals", True)})
    engine.sql("REVOKE SELECT ON mixed FROM ann")
    eventually(lambda: held(followed, rows), {("open_totals", True)})
    engine.sql("CREATE MATERIALIZED VIEW later AS SELECT shop FROM open_sales; GRANT SELECT ON later TO PUBLIC")
    eventually(lambda: held(followed, rows), {("open_totals", True), ("later", True)})
    engine.sql("DROP MATERIALIZED VIEW later; ALTER ROLE ann SUPERUSER")
    everything = {(name, False) for name in ("mixed", "open_totals", "secret_totals", "secret_failing")}
    eventually(lambda: held(followed, rows), everything)
    engine.sql("ALTER ROLE ann NOSUPERUSER BYPASSRLS")
    eventually(lambda: held(followed, rows), {("open_totals", True)})
    engine.sql("GRANT SELECT ON system.views TO watcher; GRANT watcher TO ann")
    eventually(lambda: held(followed, rows), everything)
    engine.sql("REVOKE watcher FROM ann; GRANT SELECT ON open_sales TO ann")
    eventually(lambda: held(followed, rows), {("open_totals", False)})
    engine.sql("REVOKE SELECT ON open_sales, open_totals, mixed, letters, secret_wages, secret_schema.plans FROM ann")
    eventually(lambda: held(followed, rows), set())
    engine.sql("DROP ROLE ann")
    with pytest.raises(tk.TektiteError, match="permission denied for table 'system.views'"):
        ann("SELECT * FROM system.views")


@pytest.mark.parametrize(
    "statement", ["GRANT SELECT ON system.views TO PUBLIC", "REVOKE ALL ON system.views FROM PUBLIC"]
)
def test_what_everybody_sees_of_system_relations_is_not_granted(statement: str) -> None:
    engine, ann, _ = small_engine()
    with pytest.raises(tk.TektiteError, match="everybody may read 'system.views', and sees its part"):
        engine.sql(statement)
    assert len(ann("SELECT name FROM system.views").rows()) == 2


def test_a_storage_has_no_part_in_who_sees_what_of_system_relations(tmp_path: Path) -> None:
    storage = str(tmp_path / "storage")
    with tk.Engine(storage=storage) as engine:
        engine.sql(SETUP)
    with tk.Engine(storage=storage) as engine:
        stored = {grant.object for grant in runner(engine).access.tables.grants.values()}
        assert stored and stored.isdisjoint(SYSTEM_OBJECTS), (
            "a relation that is newer than the storage is seen as all are"
        )
        ann = user(engine, "ann")
        assert sorted(ann("SELECT name, rows FROM system.tables").rows()) == [("letters", None), ("open_sales", 2)]
        rows: Counter[Any] = Counter()
        followed = ann("SUBSCRIBE (SELECT name FROM system.tables)").subscription
        eventually(lambda: held(followed, rows), {("letters",), ("open_sales",)})
        for name in SYSTEM:
            ann(f"SELECT * FROM {quoted(name)}")


def test_a_view_over_system_relations_shows_what_its_owner_may_see() -> None:
    engine, ann, _ = small_engine()
    engine.sql("GRANT CREATE ON SCHEMA public TO ann")
    ann("CREATE MATERIALIZED VIEW watched AS SELECT name FROM system.views")
    eventually(lambda: sorted(ann("SELECT * FROM watched").rows()), [("mixed",), ("open_totals",)])
    engine.sql("GRANT SELECT ON secret_totals TO ann")
    eventually(lambda: len(ann("SELECT * FROM watched").rows()), 3)


def test_advice_tells_of_nothing_that_a_user_may_not_read() -> None:
    engine, ann, _ = small_engine()
    advised = "SELECT kind, about FROM system.advice ORDER BY 1, 2"
    assert ("failing", "secret_failing") in engine.sql(advised).rows()
    engine.sql("CREATE TABLE idle (x int, y int); CREATE INDEX by_y ON idle (y); GRANT SELECT ON idle TO ann")
    assert ann(advised).rows() == [("unread", "idle by (y)")]
    engine.sql("GRANT SELECT ON secret_failing, secret_wages TO ann")
    assert ("failing", "secret_failing") in ann(advised).rows()


def test_catalogs_keep_the_texts_of_views_for_those_who_may_know_them() -> None:
    engine, ann, _ = small_engine()
    engine.sql("CREATE VIEW secret_plain AS SELECT wage FROM secret_wages; GRANT SELECT ON secret_plain TO ann")
    texts = "SELECT matviewname, definition IS NULL FROM pg_matviews UNION ALL SELECT viewname, definition IS NULL FROM pg_views"
    hidden = {("mixed", True), ("secret_plain", True), ("open_totals", False)}
    shown = set(ann(texts).rows())
    assert hidden <= shown
    assert not {"secret_totals", "secret_failing"} & {name for name, _ in shown}  # ann is not told that there are such
    assert {(name, False) for name, _ in hidden} <= set(engine.sql(texts).rows())
    sizes = (
        "SELECT relname, reltuples FROM pg_class WHERE relname IN ('secret_wages', 'open_sales', 'letters') ORDER BY 1"
    )
    assert ann(sizes).rows() == [("letters", -1.0), ("open_sales", 2.0)]


INTERNAL = (
    'SELECT * FROM "#protected secret_wages"',
    'SELECT * FROM public."#protected secret_wages"',
    'SUBSCRIBE "#protected secret_wages"',
    'SUBSCRIBE (SELECT * FROM "#arguments")',
    'SELECT * FROM "#rights readers"',
    'SELECT (SELECT max(wage) FROM "#protected secret_wages")',
    'WITH q AS (SELECT * FROM "#protected secret_wages") SELECT * FROM q',
    'PREPARE q AS SELECT * FROM "#protected secret_wages"',
    'EXPLAIN SELECT * FROM "#protected secret_wages"',
)


@pytest.mark.parametrize("statement", INTERNAL)
def test_a_text_does_not_read_what_statements_read_for_themselves(statement: str) -> None:
    _, ann, _ = small_engine()
    with pytest.raises(tk.NotFoundError, match="there is no table or view"):
        ann(statement)


def test_a_common_table_expression_stands_in_for_no_rights() -> None:
    _, ann, _ = small_engine()
    given = "WITH \"#rights readers\" AS (SELECT 'ann' AS who, 'table secret_wages' AS object)"
    for statement in (f"{given} SELECT * FROM secret_wages", f"SUBSCRIBE ({given} SELECT * FROM secret_wages)"):
        with pytest.raises(tk.TektiteError, match="permission denied"):
            ann(statement)
