"""Bad SQL is refused with a message that says what is wrong and where, and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tektite as tk
from tektite.sql.catalog.catalog_lookup import FUNCTIONS
from tests.support.nightly import by_day_or_night


def refused(engine: tk.Engine, text: str, kind: type[tk.TektiteError] = tk.TektiteError) -> str:
    with pytest.raises(kind) as caught:
        engine.sql(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "pointed"),
    [
        ("SELECT nme FROM people", "nme"),
        ("SELECT id\nFROM peple", "peple"),
        ("SELECT id FROM people WHERE nosuch(id)", "nosuch"),
        ("SELECT id, wrong.name FROM people", "wrong"),
        ("SELECT max(id), histogram (id) FROM people", "histogram"),
        ("SELECT approx_count_distinct(DISTINCT id) FROM people", "approx_count_distinct"),
        ("SELECT mode(id) OVER (ORDER BY id) FROM people", "mode"),
        ("SELECT median(name) FROM people", "median"),
        ("SELECT id FROM people LIMIT (SELECT 1)", "1"),
        ("SELECT sum(id) OVER (ORDER BY id, pay RANGE 3 PRECEDING) FROM people", "3 PRECEDING"),
        ("SELECT sum(id) OVER (ORDER BY id ROWS name PRECEDING) FROM people", "name PRECEDING"),
        ("SELECT sum(id) OVER (ORDER BY id RANGE BETWEEN -3 PRECEDING AND CURRENT ROW) FROM people", "3 PRECEDING"),
        ("SELECT sum(id) OVER (ORDER BY name RANGE 3 PRECEDING) FROM people", "name RANGE"),
        ("SELECT sum(id) OVER (ORDER BY id RANGE INTERVAL '1' DAY PRECEDING) FROM people", "id RANGE"),
        ("SELECT sum(id) OVER (ORDER BY id ROWS 1.5 PRECEDING) FROM people", "1.5"),
        ("SELECT sum(id) OVER (PARTITION BY pay GROUPS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM people", "3 PRECEDING"),
        ("CREATE TABLE x (a int, b bit)", "bit"),
        ("CREATE TABLE x (a int, b decimal(40, 2))", "decimal"),
        ("CREATE TABLE x (a map(int, int))", "map"),
        ("SELECT cast(id AS bit) FROM people", "bit"),
        ("SELECT id::inet FROM people", "inet"),
        ("CREATE TABLE x (a int, PRIMARY KEY (a, b))", "b)"),
        ("CREATE TABLE x (a int, PRIMARY KEY (a, a))", "a)"),
        ("CREATE TABLE x (a int) WITH (mode = heap)", "heap"),
        ("CREATE TABLE x (a int) WITH (color = 1)", "color"),
        ("CREATE UNIQUE INDEX i ON people (id)", "UNIQUE"),
        ("DROP SEQUENCE x", "SEQUENCE"),
        ("SELECT 1;\n  COMMIT", "COMMIT"),
        ("BEGIN; BEGIN", "BEGIN"),
        ("INSERT INTO people (id, wage) VALUES (1, 2)", "wage"),
        ("INSERT INTO people (id, id) VALUES (1, 2)", "id)"),
        ("COPY people (id, wage) FROM 'x.csv'", "wage"),
        ("COPY people TO 'x.csv' (HEADER maybe)", "HEADER"),
        ("PREPARE q AS SELECT wage FROM people WHERE id = $1", "wage"),
        ("PREPARE q AS SELECT id FROM peple WHERE id = $1", "peple"),
        ("PREPARE q AS SELECT id + name FROM people WHERE id = $1", "id + name"),
        ("PREPARE q AS SELECT id FROM people WHERE id = $1 AND pay > $3", "3"),
        ("PREPARE q AS DROP TABLE people", "q AS"),
        ("PREPARE q AS SELECT id FROM people WHERE id = $1; EXECUTE q", "q"),
        ("PREPARE q AS SELECT id FROM people WHERE id = $1; EXECUTE q(1, 2)", "2)"),
        ("PREPARE q AS SELECT id FROM people WHERE id = $1; EXECUTE q(1); EXECUTE q('a')", "'a'"),
        ("EXECUTE nothing(1)", "nothing"),
        ("DEALLOCATE nothing", "nothing"),
        ("SHOW COLUMNS FROM nothing", "nothing"),
        ("INSERT INTO people VALUES (3, 'Cyd', 1);\nINSERT INTO people VALUES (3, 'Cyd', 1)", "INSERT"),
        ("SELECT 1;\nSELECT pay + 9223372036854775807 FROM people", "SELECT pay"),
        ("SELECT (SELECT max(z) FROM (WITH RECURSIVE r AS (SELECT id AS z UNION SELECT z + 1 FROM r WHERE z < 4) "
         "SELECT z FROM r) AS s) FROM people", "r AS"),
    ],
)  # fmt: skip
def test_caret_stands_under_what_is_wrong(engine: tk.Engine, text: str, pointed: str) -> None:
    *_, line, caret = refused(engine, text).splitlines()
    assert line[caret.index("^") :].startswith(pointed)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT histogram(id) FROM people", "histogram"),
        ("SELECT bit_and(id) FROM people", "bit_and"),
        ("SELECT mode(id) OVER (ORDER BY id) FROM people", "mode"),
        ("SELECT soundex(name) FROM people", "soundex"),
        ("SELECT id FROM people TABLESAMPLE 10", "TABLESAMPLE"),
        ("PIVOT people ON id USING sum(pay)", "PIVOT needs the values"),
        ("SELECT strftime(DATE '2024-01-01', '%Q')", "%Q in strftime"),
        ("SELECT quantile_cont(id, 2) FROM people", "quantile_cont"),
        ("SELECT id FROM people LIMIT (SELECT 1)", "a subquery in LIMIT"),
        ("SELECT p.id FROM people AS p POSITIONAL JOIN people AS q", "POSITIONAL JOIN"),
    ],
)
def test_what_is_refused_is_named_as_it_was_written(engine: tk.Engine, text: str, name: str) -> None:
    assert name in refused(engine, text).splitlines()[0]


@pytest.mark.parametrize(("given", "said"), [("", "0"), ("()", "0"), ("(1)", "1"), ("(1, 2, 3)", "3")])
def test_wrong_numbers_of_values_name_the_statement_and_what_it_takes(engine: tk.Engine, given: str, said: str) -> None:
    engine.sql("PREPARE paid AS SELECT name FROM people WHERE pay > $1 AND id < $2")
    message = refused(engine, f"EXECUTE paid{given}", tk.IncorrectError)
    assert f"prepared statement 'paid' takes 2 values ($1, $2), not {said}\nline 1" in message


def test_statements_whose_parameters_are_of_any_type_are_prepared(engine: tk.Engine) -> None:
    engine.sql(
        "PREPARE a AS SELECT date_trunc('day', $1) > DATE '2024-01-01' + $2, sum($3), upper($4) FROM people LIMIT $5"
    )
    assert "$6" not in refused(engine, "EXECUTE a(1)")


def test_an_overflow_names_the_view_and_the_expression(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW paid AS SELECT id, pay * 9223372036854775807 AS much FROM people")
    message = refused(engine, "SELECT * FROM paid")
    assert "'paid'" in message and "pay * 9223372036854775807" in message and message.endswith("^")


def test_nearest_name_is_offered(engine: tk.Engine) -> None:
    assert "'people'" in refused(engine, "SELECT * FROM peopel", tk.NotFoundError)
    assert "'name'" in refused(engine, "SELECT nmae FROM people", tk.NotFoundError)


def test_statement_of_a_megabyte_is_answered(engine: tk.Engine) -> None:
    numbers = ", ".join(str(10**17 + n) for n in range(by_day_or_night(55_000, 150_000)))
    text = f"SELECT id FROM people WHERE id IN (2, {numbers})"
    assert len(text) > 1_000_000
    assert engine.sql(text).rows() == [(2,)]


def test_text_of_a_megabyte_is_a_value_like_any_other(engine: tk.Engine) -> None:
    engine.sql(f"INSERT INTO people VALUES (3, '{'x' * 1_000_000}', 1)")
    assert engine.sql("SELECT length(name) FROM people WHERE id = 3").rows() == [(1_000_000,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM people WHERE " + " OR ".join(f"id = {n}" for n in range(by_day_or_night(2_000, 60_000))),
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT " + " + ".join(["id"] * by_day_or_night(3_500, 60_000)) + " AS n FROM people",
        " UNION ALL ".join(["SELECT id FROM people"] * by_day_or_night(1_000, 20_000)),
    ],
    ids=["or", "parentheses", "sum", "union"],
)
def test_nesting_without_end_is_refused_or_answered(engine: tk.Engine, text: str) -> None:
    try:
        engine.sql(text)
    except tk.TektiteError as error:
        assert len(str(error)) < 2_000
    assert engine.sql("SELECT count(*) FROM people").rows() == [(2,)]


def test_table_that_views_read_is_not_dropped(engine: tk.Engine) -> None:
    engine.sql("CREATE VIEW names AS SELECT name FROM people")
    engine.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(pay) AS pay FROM people")
    engine.sql("CREATE INDEX by_name ON people (name)")
    message = refused(engine, "DROP TABLE people", tk.ConflictError)
    assert all(reader in message for reader in ("names", "total")) and "by_name" not in message
    engine.sql("DROP VIEW names; DROP MATERIALIZED VIEW total; DROP TABLE people")  # its index goes with it
    refused(engine, "DROP INDEX by_name", tk.NotFoundError)


def test_views_are_dropped_from_the_top(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW low AS SELECT id, pay FROM people")
    engine.sql("CREATE VIEW middle AS SELECT pay FROM low")
    engine.sql("CREATE MATERIALIZED VIEW high AS SELECT max(pay) AS most FROM middle")
    assert "middle" in refused(engine, "DROP MATERIALIZED VIEW low", tk.ConflictError)
    assert "high" in refused(engine, "DROP VIEW middle", tk.ConflictError)
    assert engine.view("high").rows() == [(900,)]
    engine.sql("DROP MATERIALIZED VIEW high; DROP VIEW middle; DROP MATERIALIZED VIEW low")


def test_definition_in_a_circle_is_refused(engine: tk.Engine) -> None:
    refused(engine, "CREATE VIEW ring AS SELECT * FROM ring")
    engine.sql("CREATE VIEW a AS SELECT id FROM people")
    engine.sql("CREATE VIEW b AS SELECT id FROM a")
    refused(engine, "CREATE OR REPLACE VIEW a AS SELECT id FROM b")
    assert engine.sql("SELECT count(*) FROM b").rows() == [(2,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO people VALUES (1, 'again', 0)",
        "INSERT INTO people VALUES (7, 'x', 0), (7, 'y', 0)",
        "INSERT INTO people VALUES (NULL, 'x', 0)",
        "UPDATE people SET id = 1",
    ],
)
def test_row_against_the_primary_key_changes_nothing(engine: tk.Engine, text: str) -> None:
    message = refused(engine, text)
    assert "people" in message and "id" in message
    assert sorted(engine.sql("SELECT id FROM people").rows()) == [(1,), (2,)]
    engine.sql("INSERT INTO people VALUES (7, 'seven', 7)")
    assert sorted(engine.sql("SELECT id FROM people").rows()) == [(1,), (2,), (7,)]


def test_missing_parameter_is_named(engine: tk.Engine) -> None:
    assert "wanted" in refused(engine, "SELECT * FROM people WHERE id = $wanted")


def test_statements_before_the_bad_one_stand(engine: tk.Engine) -> None:
    refused(engine, "INSERT INTO people VALUES (3, 'Cleo', 1); SELECT nothing FROM people; DELETE FROM people")
    assert engine.sql("SELECT count(*) FROM people").rows() == [(3,)]


def test_views_cannot_be_changed(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW ids AS SELECT id FROM people")
    assert "ids" in refused(engine, "INSERT INTO ids VALUES (9)")
    assert "ids" in refused(engine, "DELETE FROM ids")


@pytest.mark.parametrize("text", ["", ";", "-- nothing", "/* nothing */;"])
def test_nothing_asked_is_nothing_done(engine: tk.Engine, text: str) -> None:
    assert engine.sql(text).rows() == []


@pytest.mark.parametrize("text", ["\x00", "SELECT '", 'SELECT "', "/*", "SELECT 1 +", ")", "CREATE", "SELECT * FROM"])
def test_fragments_are_refused_where_they_end(engine: tk.Engine, text: str) -> None:
    assert "^" in refused(engine, text)


def test_question_marks_are_parameters_one_by_one(engine: tk.Engine) -> None:
    engine.sql("PREPARE paid AS SELECT name FROM people WHERE pay > ? AND id < ?")
    assert engine.sql("EXECUTE paid(400, 2)").rows() == [("Ada",)]
    assert "takes 2 values" in refused(engine, "EXECUTE paid(400)")


def test_files_are_written_as_asked_or_not_at_all(engine: tk.Engine, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    engine.sql(f"COPY people TO '{path}' (FORMAT csv, HEADER true)")
    assert path.read_text().splitlines()[0] == '"id","name","pay"'
    engine.sql(f"COPY (SELECT id, name FROM people) TO '{tmp_path}/some.parquet'")
    message = refused(engine, f"COPY people FROM '{tmp_path}/some.parquet'", tk.NotFoundError)
    assert "no column 'pay'" in message
    assert "no column 'wage'" in refused(engine, f"COPY people (id, wage) FROM '{tmp_path}/some.parquet'")
    refused(engine, f"COPY people TO '{tmp_path}/nowhere/people.csv'", tk.IncorrectError)
    refused(engine, f"COPY people TO '{tmp_path}/people.json'", tk.UnsupportedError)
    (tmp_path / "empty.csv").touch()
    assert engine.sql(f"COPY people FROM '{tmp_path}/empty.csv'").message == "COPY 0"


@pytest.mark.parametrize(
    "text",
    [
        " UNION ALL ".join(f"SELECT {n} AS n" for n in range(1500)),
        "SELECT id FROM people WHERE " + " OR ".join(f"id = {n}" for n in range(3000)),
    ],
    ids=["union", "disjunction"],
)
def test_long_chains_are_answered(engine: tk.Engine, text: str) -> None:
    assert engine.sql(text).rows()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "CASE WHEN id = 1 THEN " * 5000 + "1" + " END" * 5000 + " FROM people",
        "SELECT " + " * ".join(["id"] * 10000) + " FROM people",
        "SELECT " + "upper(" * 5000 + "name" + ")" * 5000 + " FROM people",
    ],
    ids=["parentheses", "case", "product", "calls"],
)
def test_what_nests_too_deeply_is_refused_and_harms_nobody(engine: tk.Engine, text: str) -> None:
    assert "nested too deeply" in refused(engine, text, tk.UnsupportedError)
    assert engine.sql("SELECT count(*) FROM people").rows() == [(2,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COPY people FROM 'x.csv' (FORMAT 'c+(sv')", "the format is csv or parquet, not 'c+(sv'"),
        ("COPY people FROM 'x.csv' (\"a(\" 1)", "option A( is not supported"),
        ('CREATE TABLE u (a INT) WITH ("x[" = 1)', "option 'x[' of CREATE TABLE is not supported"),
        ("CREATE MATERIALIZED VIEW v WITH (\"j*(\" = 'a') AS SELECT 1", "option 'j*(' of CREATE VIEW is not supported"),
    ],
)
def test_options_of_any_characters_are_refused_by_name(engine: tk.Engine, text: str, message: str) -> None:
    assert message in refused(engine, text, tk.UnsupportedError)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,name\n1,x\nfoo,y\n", r"line 3: column 'id': invalid value 'foo' for int64"),
        ("id,name\n1,x\n2\n", "line 3: .*Expected 2 columns, got 1"),
        ('id,name\n1,"two\nlines"\n2,y,z\n', "line 4: .*Expected 2 columns, got 3"),
        ("id,name\n1,x\n\n2,\udcff\n", "line 4: .*invalid UTF8"),
        ("id,name\n1,x\n\udcff,y\n", "line 3: .*invalid value"),
        ("id,name\n1,x\n,y\n", "line 3: column 'id' of table 'people' cannot be NULL"),
    ],
)
def test_a_bad_line_of_a_file_is_named_by_its_number(engine: tk.Engine, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text(text, errors="surrogateescape")
    message = refused(
        engine, f"COPY people (id, name) FROM '{tmp_path}/some.csv' (FORMAT csv, HEADER)", tk.IncorrectError
    )
    assert re.search(said, message), message


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.isidentifier()])
def test_function_of_the_catalogs_works_without_a_value_or_says_that_it_needs_one(engine: tk.Engine, name: str) -> None:
    for read in ("people", "people, pg_catalog.pg_class"):
        try:
            engine.sql(f"SELECT {name}() FROM {read}")
        except tk.TektiteError as error:
            assert name in str(error)
