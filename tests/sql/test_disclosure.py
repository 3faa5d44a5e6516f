"""What users are told of what they may not read: errors of rows below granted views, plans, names, prepared statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.statements.disclosure import FAILED
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

SECRET = "s777111"
SETUP = f"""
CREATE TABLE secret_wages (person varchar, note varchar); INSERT INTO secret_wages VALUES ('eve', '{SECRET}');
CREATE TABLE open_sales (shop varchar, amount int); INSERT INTO open_sales VALUES ('north', 3);
CREATE VIEW plain AS SELECT length(note) AS n, note LIKE 'never' AS is_never FROM secret_wages;
CREATE MATERIALIZED VIEW kept AS SELECT length(note) AS n FROM secret_wages;
CREATE VIEW over AS SELECT n FROM kept WHERE n > 0;
CREATE MATERIALIZED VIEW bad AS SELECT CAST(note AS int) AS n FROM secret_wages;
CREATE MATERIALIZED VIEW above AS SELECT n + 1 AS n FROM bad;
CREATE USER ann; CREATE USER bob; GRANT CREATE ON SCHEMA public TO ann, bob;
GRANT SELECT ON plain, kept, over, bad, above TO ann, bob; GRANT SELECT ON secret_wages TO bob;
GRANT ALL ON open_sales TO ann, bob;
"""
Run = Callable[..., Any]
VIEWS = ("plain", "kept", "over")
FAILING = "SELECT CAST('x' || n AS int) AS m FROM {view}"
STATEMENTS = (
    FAILING,
    "SELECT 1 FROM {view} WHERE CAST('x' || n AS int) > 0",
    "WITH q AS (" + FAILING + ") SELECT max(m) FROM q",
    "INSERT INTO open_sales SELECT 'x', m FROM (" + FAILING + ") f",
    "CREATE TABLE made AS " + FAILING,
    "DELETE FROM open_sales WHERE amount IN (" + FAILING + ")",
    "UPDATE open_sales SET amount = (SELECT max(m) FROM (" + FAILING + ") f)",
    "PREPARE p AS SELECT CAST('x' || n AS int) AS m FROM {view} WHERE n > $1; EXECUTE p(0)",
    "CREATE VIEW mine AS " + FAILING + "; SELECT * FROM mine",
    "CREATE MATERIALIZED VIEW mine AS " + FAILING + "; SELECT * FROM mine",
)


def user(engine: tk.Engine, name: str) -> Run:
    session = engine.session()
    session.sql(f"SET ROLE {name}")
    return session.sql


def small_engine() -> tuple[tk.Engine, Run, Run]:
    engine = make_engine(autocommit=True)
    engine.sql(SETUP)
    return engine, user(engine, "ann"), user(engine, "bob")


def said(run: Run, text: str) -> str:
    """The error of a statement, with all that it came from."""
    with pytest.raises(tk.TektiteError) as caught:
        run(text)
    error: BaseException | None = caught.value
    parts = []
    while error is not None:
        parts += [str(error), str(getattr(error, "details", ""))]
        error = error.__cause__
    return "\n".join(parts)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_row_of_an_error_is_for_those_who_may_read_it(statement: str, view: str) -> None:
    _, ann, bob = small_engine()
    text = statement.format(view=view)
    of_ann = said(ann, text)
    assert FAILED in of_ann
    assert SECRET not in of_ann and "eve" not in of_ann and "x7" not in of_ann
    of_bob = said(bob, text.replace("mine", "mine_of_bob").replace("made", "made_of_bob"))
    assert FAILED not in of_bob
    assert "x7" in of_bob


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM bad", "SELECT * FROM above", "SELECT count(*) FROM bad WHERE n > 3"]
)
def test_a_view_that_fails_says_why_to_those_who_may_read_below_it(statement: str) -> None:
    engine, ann, bob = small_engine()
    assert SECRET not in said(ann, statement)
    assert SECRET in said(bob, statement)
    engine.sql("REVOKE SELECT ON secret_wages FROM bob; GRANT SELECT ON secret_wages TO ann")
    assert SECRET in said(ann, statement)
    assert SECRET not in said(bob, statement)
    engine.sql(
        "ALTER TABLE secret_wages ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON secret_wages USING (person = current_user)"
    )
    assert SECRET not in said(ann, statement)


def test_the_errors_of_rows_that_a_user_reads_itself_are_told() -> None:
    engine, ann, _ = small_engine()
    assert "xnorth" in said(ann, "SELECT CAST('x' || shop AS int) FROM open_sales")
    engine.sql(
        "CREATE VIEW open_view AS SELECT shop, amount * 2 AS twice FROM open_sales; GRANT SELECT ON open_view TO ann"
    )
    assert "xnorth" in said(ann, "SELECT CAST('x' || shop AS int) FROM open_view")


@pytest.mark.parametrize("view", [*VIEWS, "bad", "above"])
@pytest.mark.parametrize("kind", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN SUBSCRIBE", "EXPLAIN (FORMAT JSON)"])
def test_plans_are_for_those_who_may_read_all_below(kind: str, view: str) -> None:
    _, ann, bob = small_engine()
    asked = f"{kind} (SELECT * FROM {view})" if "SUBSCRIBE" in kind else f"{kind} SELECT * FROM {view}"
    refusal = said(ann, asked)
    assert "permission denied" in refusal and "secret_wages" not in refusal
    if not (view in ("bad", "above") and "ANALYZE" in kind):
        assert bob(asked).rows()


def test_only_what_a_user_has_rights_to_is_named() -> None:
    engine, ann, _ = small_engine()
    engine.sql(
        "CREATE SCHEMA hidden; CREATE TABLE hidden.plans (x int); CREATE INDEX secret_index ON secret_wages (person)"
    )
    hints = (
        "SELECT * FROM secret_wage",
        "SELECT * FROM hidde.plans",
        "SELECT * FROM hidden.plan",
        "DROP TABLE secret_wage",
        "DROP INDEX secret_inde",
        "DROP SCHEMA hidde",
        "INSERT INTO secret_wage VALUES ('a', 'b')",
        "COMMENT ON TABLE secret_wage IS 'x'",
        "SUBSCRIBE secret_wage",
        "EXPLAIN SELECT * FROM secret_wage",
        "CREATE INDEX i ON secret_wage (person)",
        "ALTER TABLE secret_wage ADD COLUMN x int",
    )
    for text in hints:
        refusal = said(ann, text)
        assert "secret_wages" not in refusal and "secret_index" not in refusal, text
        assert "'hidden'" not in refusal and "plans'" not in refusal.replace("hidde.plans", ""), text
    lists = (
        "SHOW TABLES", "SHOW VIEWS", "SHOW SCHEMAS", "SHOW INDEXES", "SELECT relname FROM pg_class",
        "SELECT nspname FROM pg_namespace",
        "SELECT table_name FROM information_schema.tables", "SELECT table_name, column_name FROM information_schema.columns",
        "SELECT schema_name FROM information_schema.schemata", "SELECT tablename FROM pg_tables",
        "SELECT indexname FROM pg_indexes",
        "SELECT attname FROM pg_attribute",
    )  # fmt: skip
    for text in lists:
        found = str(ann(text).rows())
        assert not any(name in found for name in ("secret_wages", "secret_index", "hidden", "'plans'", "'note'")), text
    everything = "".join(str(engine.sql(text).rows()) for text in lists)
    assert all(name in everything for name in ("secret_wages", "secret_index", "hidden", "'plans'", "'note'"))
    with pytest.raises(PermissionDenied):
        ann("SELECT * FROM secret_wages")  # who knows the name hears that it is not theirs


def test_a_schema_is_dropped_by_its_owner_who_is_told_of_what_it_may_know() -> None:
    engine, ann, _ = small_engine()
    engine.sql("CREATE SCHEMA hers; CREATE TABLE hers.secret_plans (x int); CREATE TABLE hers.lists (x int)")
    engine.sql(
        "ALTER SCHEMA hers OWNER TO ann; GRANT SELECT ON hers.lists TO ann;"
        "CREATE SCHEMA other; CREATE TABLE other.secret_x (y int)"
    )
    refusal = said(ann, "DROP SCHEMA hers")
    assert "'hers.lists', others are in it" in refusal and "secret_plans" not in refusal
    refusal = said(ann, "DROP SCHEMA other")
    assert "permission denied" in refusal and "secret_x" not in refusal


def test_users_have_prepared_statements_of_their_own_and_those_of_superusers() -> None:
    engine, ann, bob = small_engine()
    engine.sql(
        "PREPARE shared AS SELECT amount FROM open_sales WHERE amount >= $1; PREPARE wages AS SELECT note FROM secret_wages"
    )
    ann("PREPARE q AS SELECT 'of ann' AS who")
    bob("PREPARE q AS SELECT 'of bob' AS who")
    assert (ann("EXECUTE q").rows(), bob("EXECUTE q").rows()) == ([("of ann",)], [("of bob",)])
    assert ann("EXECUTE shared(1)").rows() == bob("EXECUTE shared(1)").rows() == [(3,)]
    refusal = said(ann, "EXECUTE wages")
    assert "permission denied" in refusal and "secret_wages" not in refusal
    assert bob("EXECUTE wages").rows() == [(SECRET,)]
    for run, name in ((bob, "q_of"), (ann, "w")):
        refusal = said(run, f"EXECUTE {name}")
        assert "there are: q" in refusal and "wages" not in refusal
    assert "prepared by a superuser" in said(ann, "DEALLOCATE shared")
    ann("PREPARE shared AS SELECT 1 AS own")  # one's own comes first
    assert ann("EXECUTE shared").rows() == [(1,)]
    ann("DEALLOCATE shared; DEALLOCATE q")
    assert ann("EXECUTE shared(1)").rows() == [(3,)]
    assert bob("EXECUTE q").rows() == [("of bob",)]
    assert said(ann, "EXECUTE q")
    message = engine.sql("DROP TABLE open_sales CASCADE").message
    assert "\x1f" not in message


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE {} OWNER TO ann", "CREATE POLICY p ON {} USING (true)", "ALTER TABLE {} ENABLE ROW LEVEL SECURITY"],
)
@pytest.mark.parametrize("relation", ["system.views", "pg_catalog.pg_class", "information_schema.tables"])
def test_what_belongs_to_the_system_has_no_other_owner_and_no_policies(statement: str, relation: str) -> None:
    engine, _, _ = small_engine()
    with pytest.raises(tk.TektiteError):
        engine.sql(statement.format(relation))


def test_users_are_told_whether_they_are_superusers() -> None:
    engine, ann, _ = small_engine()
    assert engine.sql("SHOW is_superuser").rows() == [("on",)]
    assert ann("SHOW is_superuser").rows() == [("off",)]


@pytest.mark.executors("stages")
def test_views_are_read_by_the_rights_of_their_owners_at_every_depth() -> None:
    engine, ann, bob = small_engine()
    bob("CREATE VIEW of_bob AS SELECT length(note) AS n FROM secret_wages; GRANT SELECT ON of_bob TO ann")
    ann(
        "CREATE VIEW first AS SELECT n + 1 AS n FROM of_bob; CREATE MATERIALIZED VIEW second AS SELECT n + 1 AS n FROM first"
    )
    engine.sql("CREATE USER cid; CREATE MATERIALIZED VIEW third AS SELECT n + 1 AS n FROM second")
    ann("GRANT SELECT ON first, second TO cid")
    cid = user(engine, "cid")
    assert [cid(f"SELECT n FROM {view}").rows() for view in ("first", "second")] == [[(8,)], [(9,)]]
    engine.sql("REVOKE SELECT ON secret_wages FROM bob")
    for run, view in ((cid, "first"), (cid, "second"), (ann, "second"), (ann, "of_bob")):
        refusal = said(run, f"SELECT n FROM {view}")
        assert "permission denied" in refusal and "secret_wages" not in refusal and "'bob'" in refusal
    assert "'secret_wages'" in said(bob, "SELECT n FROM of_bob")
    assert engine.sql("SELECT n FROM third").rows() == [(10,)]
    engine.sql("GRANT SELECT ON secret_wages TO bob; REVOKE SELECT ON of_bob FROM ann")
    assert "permission denied" in said(cid, "SELECT n FROM second")
    assert "permission denied" in said(ann, "SELECT n FROM of_bob")
