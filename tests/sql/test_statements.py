"""Statements: tables and their semantics, views, indexes, transactions, subscriptions, prepared statements, files, time."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import tektite as tk
from tektite import sql
from tektite.engine.core import core_of
from tektite.engine.view_core import ViewCore
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors


def rows(engine: tk.Engine, query: str) -> list[tuple[object, ...]]:
    return engine.sql(query).rows()


@pytest.fixture
def shop() -> tk.Engine:
    engine = make_engine()
    engine.sql("CREATE TABLE items (id int PRIMARY KEY, name varchar NOT NULL, price decimal(8, 2))")
    engine.sql("INSERT INTO items VALUES (1, 'tea', 3.5), (2, 'salt', 1), (3, 'oil', NULL)")
    return engine


# -- tables ------------------------------------------------------------------------------------------------------------


def test_insert_names_columns_and_casts_values(shop: tk.Engine) -> None:
    assert shop.sql("INSERT INTO items (name, id) VALUES ('rice', 4), ('flour', 5)").message == "INSERT 0 2"
    assert rows(shop, "SELECT id, name, price FROM items WHERE id > 3 ORDER BY id") == [
        (4, "rice", None),
        (5, "flour", None),
    ]
    shop.sql("INSERT INTO items SELECT id + 10, upper(name), price * 2 FROM items WHERE price > 1")
    assert [row[0] for row in rows(shop, "SELECT name FROM items WHERE id > 10")] == ["TEA"]


@pytest.mark.executors("stages", "spark")
def test_update_and_delete_change_the_rows_that_match(shop: tk.Engine) -> None:
    view = shop.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(price) AS total, count(*) AS n FROM items").view
    assert view is not None
    assert shop.sql("UPDATE items SET price = price + 1, name = name || '!' WHERE id < 3").message == "UPDATE 2"
    assert [tuple(map(float, row)) for row in view.rows()] == [(6.5, 3.0)]
    assert shop.sql("DELETE FROM items WHERE price IS NULL").message == "DELETE 1"
    assert [int(n) for _, n in view.rows()] == [2]
    assert shop.sql("DELETE FROM items").message == "DELETE 2"
    assert view.rows() == [(None, 0)]


@pytest.mark.parametrize(
    ("semantics", "expected"),
    [
        ("bag", [(1, "a"), (1, "a"), (1, "b")]),
        ("set", [(1, "a"), (1, "b")]),
        ("append", [(1, "a"), (1, "a"), (1, "b")]),
    ],
)
def test_semantics_of_a_table(semantics: str, expected: list[tuple[int, str]]) -> None:
    engine = make_engine()
    engine.sql(f"CREATE TABLE t (k int, v varchar) WITH (mode = '{semantics}')")
    for row in ("(1, 'a')", "(1, 'a')", "(1, 'b')"):
        engine.sql(f"INSERT INTO t VALUES {row}")
    assert rows(engine, "SELECT * FROM t ORDER BY k, v") == expected


def test_upsert_replaces_the_row_with_the_key() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int PRIMARY KEY, v varchar) WITH (mode = 'upsert')")
    engine.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO t VALUES (1, 'c')")
    assert rows(engine, "SELECT * FROM t ORDER BY k") == [(1, "c"), (2, "b")]


def test_stream_is_seen_from_the_installation_on() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE s (v int) WITH (mode = 'stream')")
    engine.sql("INSERT INTO s VALUES (1)")
    view = engine.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS t FROM s").view
    engine.sql("INSERT INTO s VALUES (5)")
    engine.sql("INSERT INTO s VALUES (6)")
    assert view is not None and view.rows() == [(11,)]


def test_append_only_table_refuses_changes() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int) WITH (mode = 'append'); INSERT INTO t VALUES (1)")
    with pytest.raises(tk.ConflictError, match="'t' is append-only"):
        engine.sql("DELETE FROM t WHERE k = 1")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO items VALUES (1, 'again', 1)",
        "INSERT INTO items VALUES (7, 'one', 1), (7, 'two', 1)",
        "UPDATE items SET id = 2 WHERE id = 1",
        "UPDATE items SET id = 9",
    ],
)
def test_violated_primary_key_is_refused_and_changes_nothing(shop: tk.Engine, statement: str) -> None:
    before = rows(shop, "SELECT * FROM items ORDER BY id")
    with pytest.raises(tk.ConflictError, match="'items': there would be two rows with the key id = "):
        shop.sql(statement)
    assert rows(shop, "SELECT * FROM items ORDER BY id") == before


def test_keys_may_trade_places(shop: tk.Engine) -> None:
    shop.sql("UPDATE items SET id = 4 - id")
    assert rows(shop, "SELECT id, name FROM items ORDER BY id") == [(1, "oil"), (2, "salt"), (3, "tea")]


def test_null_in_a_required_column_is_refused(shop: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match="'name' of table 'items' cannot be NULL"):
        shop.sql("INSERT INTO items VALUES (4, NULL, 1)")


# -- transactions ------------------------------------------------------------------------------------------------------


def test_transaction_becomes_visible_at_once(shop: tk.Engine) -> None:
    view = shop.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM items").view
    assert view is not None
    changes = row_changes(view, snapshot=False)
    shop.sql("BEGIN; INSERT INTO items VALUES (4, 'a', 1); INSERT INTO items VALUES (5, 'b', 1)")
    assert view.rows() == [(3,)]
    shop.sql("COMMIT")
    assert view.rows() == [(5,)]
    assert len({change.time for change in changes}) == 1


def test_rollback_forgets_and_keys_of_the_transaction_count(shop: tk.Engine) -> None:
    shop.sql("BEGIN; INSERT INTO items VALUES (4, 'a', 1)")
    with pytest.raises(tk.ConflictError):
        shop.sql("INSERT INTO items VALUES (4, 'b', 1)")
    shop.sql("ROLLBACK; INSERT INTO items VALUES (4, 'c', 1)")
    assert rows(shop, "SELECT name FROM items WHERE id = 4") == [("c",)]
    with pytest.raises(tk.ConflictError, match="no transaction is open"):
        shop.sql("COMMIT")


# -- views and dropping ------------------------------------------------------------------------------------------------


def test_view_is_a_definition_and_is_expanded_where_it_is_read(shop: tk.Engine) -> None:
    shop.sql("CREATE VIEW cheap (item, cost) AS SELECT name, price FROM items WHERE price < 3")
    shop.sql("CREATE VIEW cheaper AS SELECT item FROM cheap WHERE cost < 2")
    assert shop.views == ()
    assert rows(shop, "SELECT * FROM cheaper") == [("salt",)]


@pytest.mark.executors("stages")
def test_snapshot_of_a_view_is_in_its_order(shop: tk.Engine) -> None:
    view = shop.sql("CREATE MATERIALIZED VIEW v AS SELECT name, price FROM items ORDER BY price DESC NULLS FIRST").view
    assert view is not None
    assert [name for name, _ in view.rows()] == ["oil", "tea", "salt"]
    shop.sql("INSERT INTO items VALUES (4, 'gold', 99)")
    assert view.snapshot()["name"].to_pylist() == ["oil", "gold", "tea", "salt"]


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("DROP TABLE b, a", ""),
        ("DROP VIEW va, vv", ""),
        ("DROP VIEW vb, nothing", ""),
        ("DROP VIEW va, vv, d", "va vv d"),
        ("DROP VIEW vb, vb", "vb"),
        ("DROP VIEW va, d CASCADE", "va vv d"),
        ("DROP TABLE a, b CASCADE", "a b va vv vb d"),
    ],
)
def test_several_are_dropped_together_in_any_order_or_none(text: str, gone: str) -> None:
    with make_engine(autocommit=True) as engine:
        engine.sql(
            "CREATE TABLE a(x int); CREATE TABLE b(x int); CREATE MATERIALIZED VIEW va AS SELECT * FROM a; "
            "CREATE MATERIALIZED VIEW vv AS SELECT * FROM va; CREATE MATERIALIZED VIEW vb AS SELECT * FROM b; "
            "CREATE VIEW d AS SELECT * FROM vv"
        )
        if gone:
            engine.sql(text)
        else:
            with pytest.raises(tk.TektiteError):
                engine.sql(text)
        left = {*engine.tables, *(row[0] for row in engine.sql("SHOW VIEWS").rows())}
        assert left == {"a", "b", "va", "vv", "vb", "d"} - set(gone.split())


def test_several_tables_stay_if_a_view_of_a_program_reads_one() -> None:
    with make_engine(autocommit=True) as engine:
        engine.sql("CREATE TABLE a(x int); CREATE TABLE b(x int)")
        engine.install("v", engine.table("a").count())
        with pytest.raises(tk.ConflictError, match="cannot drop table 'a': 'v' reads it"):
            engine.sql("DROP TABLE b, a")
        assert engine.tables == ("a", "b")


def test_drop_is_refused_while_something_reads_it(shop: tk.Engine) -> None:
    shop.sql("CREATE VIEW d AS SELECT id FROM items; CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM d")
    shop.sql("CREATE MATERIALIZED VIEW top AS SELECT n + 1 AS n FROM m")
    for statement, readers in (("DROP TABLE items", "'d', 'm'"), ("DROP VIEW d", "'m'"), ("DROP VIEW m", "'top'")):
        with pytest.raises(tk.ConflictError, match=f"cannot drop .*: {readers} read"):
            shop.sql(statement)
    shop.sql("DROP MATERIALIZED VIEW top; DROP MATERIALIZED VIEW m; DROP VIEW d; DROP TABLE items")
    assert rows(shop, "SHOW TABLES") == []
    shop.sql("DROP TABLE IF EXISTS items")


def test_definition_that_nothing_reads_is_replaced(shop: tk.Engine) -> None:
    shop.sql("CREATE VIEW d AS SELECT id FROM items; CREATE OR REPLACE VIEW d AS SELECT name FROM items WHERE id = 1")
    assert rows(shop, "SELECT * FROM d") == [("tea",)]
    with pytest.raises(tk.ConflictError, match="'d' would be defined by itself"):
        shop.sql("CREATE OR REPLACE VIEW d AS SELECT * FROM d")
    shop.sql("CREATE VIEW e AS SELECT * FROM d")
    with pytest.raises(tk.ConflictError, match="cannot replace view 'd': 'e' reads it"):
        shop.sql("CREATE OR REPLACE VIEW d AS SELECT 1 AS one")


def test_view_that_would_read_itself_does_not_exist_yet(shop: tk.Engine) -> None:
    with pytest.raises(tk.NotFoundError, match="there is no table or view 'v'"):
        shop.sql("CREATE VIEW v AS SELECT * FROM v")


# -- indexes, SHOW and EXPLAIN -----------------------------------------------------------------------------------------


def test_index_is_an_arrangement_that_queries_find(shop: tk.Engine) -> None:
    shop.sql("CREATE TABLE sales (item int, name varchar)")
    shop.sql("CREATE INDEX by_name ON items (name)")
    assert rows(shop, "SHOW INDEXES") == [("by_name", "items", "name")]
    plan = str(shop.sql("EXPLAIN SELECT price FROM items JOIN sales USING (name)"))
    assert "items by (name): shared, there already" in plan
    assert "sales by (name): shared, made for this query" in plan
    shop.sql("DROP INDEX by_name")
    assert "items by (name): shared, made for this query" in str(
        shop.sql("EXPLAIN SELECT price FROM items JOIN sales USING (name)")
    )
    assert [a.name for a in shop.indexes() if not a.name.startswith("__")] == ["items", "sales"]


def test_show_tells_what_there_is(shop: tk.Engine) -> None:
    shop.sql("CREATE VIEW d AS SELECT id + 1 AS next FROM items; CREATE MATERIALIZED VIEW m AS SELECT * FROM d")
    assert rows(shop, "SHOW TABLES") == [("items", 3, "bag", "id")]
    assert rows(shop, "SHOW VIEWS") == [("m", "materialized", 3, None), ("d", "definition", None, None)]
    assert rows(shop, "SHOW COLUMNS FROM d") == [("next", "int")]
    assert rows(shop, "SHOW COLUMNS FROM items")[2] == ("price", "decimal(8, 2)")
    assert rows(shop, "SHOW ARRANGEMENTS")[0][0] == "items"


# -- subscriptions and prepared statements -----------------------------------------------------------------------------


def test_subscription_tells_contents_and_then_changes(shop: tk.Engine) -> None:
    subscription = shop.sql("SUBSCRIBE TO (SELECT name FROM items WHERE price > 2)").subscription
    assert subscription is not None
    assert [(change.row, change.diff) for change in subscription.changes()] == [(("tea",), 1)]
    shop.sql("UPDATE items SET price = 1 WHERE name = 'tea'; INSERT INTO items VALUES (8, 'gold', 99)")
    assert sorted((change.row, change.diff) for change in subscription.changes()) == [(("gold",), 1), (("tea",), -1)]
    shop.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM items")
    (time, table) = next(iter(shop.sql("SUBSCRIBE m")))
    assert (time, table.to_pylist()) == (shop.next_epoch - 1, [{"n": 4, "diff": 1}])


def test_prepared_statement_answers_any_number_of_bindings_in_one_dataflow(shop: tk.Engine) -> None:
    shop.sql("PREPARE dear AS SELECT name, price FROM items WHERE price >= $1 AND name <> $2 ORDER BY price DESC")
    assert [row[0] for row in rows(shop, "EXECUTE dear(1, 'oil')")] == ["tea", "salt"]
    flows = len(shop.views)
    assert [row[0] for row in rows(shop, "EXECUTE dear(2.5, 'none')")] == ["tea"]
    assert [row[0] for row in rows(shop, "EXECUTE dear(0, 'tea')")] == ["salt"]
    assert len(shop.views) == flows
    shop.sql("INSERT INTO items VALUES (9, 'gold', 99)")
    assert [row[0] for row in rows(shop, "EXECUTE dear(2.5, 'none')")] == ["gold", "tea"]
    shop.sql("DEALLOCATE dear(0, 'tea')")
    with pytest.raises(tk.NotFoundError, match="not bound to these values"):
        shop.sql("DEALLOCATE dear(0, 'tea')")
    shop.sql("DEALLOCATE dear")
    with pytest.raises(tk.NotFoundError, match="no prepared statement 'dear'"):
        shop.sql("EXECUTE dear(1, 'oil')")


@pytest.mark.parametrize(
    ("query", "values", "expected"),
    [
        ("SELECT count(*) AS n, max(name) AS m FROM items WHERE price > $1", ("1000", "0"), [[(0, None)], [(2, "tea")]]),
        ("SELECT name FROM items ORDER BY abs(id - $1), id LIMIT 1", ("1", "3"), [[("tea",)], [("oil",)]]),
        ("SELECT name FROM items WHERE id NOT IN (SELECT id FROM items WHERE id < $1)", ("3", "1"), [[("oil",)], 3]),
        ("SELECT i.name FROM items AS i WHERE i.id + $1 IN (SELECT id FROM items) ORDER BY 1", ("1", "2"),
         [[("salt",), ("tea",)], [("tea",)]]),
        ("SELECT name FROM items ORDER BY id LIMIT $1", ("2", "0", "NULL"), [[("tea",), ("salt",)], [], 3]),
        ("SELECT name FROM items ORDER BY id OFFSET $1", ("2", "9"), [[("oil",)], []]),
        ("SELECT id FROM items UNION ALL SELECT id FROM items ORDER BY id LIMIT $1", ("3",), [[(1,), (1,), (2,)]]),
    ],
)  # fmt: skip
def test_prepared_query_is_computed_for_each_binding(
    shop: tk.Engine, query: str, values: tuple[str, ...], expected: list[object]
) -> None:
    shop.sql(f"PREPARE q AS {query}")
    for value, wanted in zip(values, expected, strict=True):
        found = rows(shop, f"EXECUTE q({value})")
        assert len(found) == wanted if isinstance(wanted, int) else found == wanted


@pytest.mark.executors("stages")
def test_limit_of_a_binding_is_maintained(shop: tk.Engine) -> None:
    shop.sql("PREPARE page AS SELECT name FROM items WHERE id > $1 ORDER BY price DESC NULLS LAST LIMIT $2 OFFSET $3")
    assert rows(shop, "EXECUTE page(0, 1, 1)") == [("salt",)]
    assert rows(shop, "EXECUTE page(0, 2, 0)") == [("tea",), ("salt",)]
    shop.sql("INSERT INTO items VALUES (9, 'gold', 99)")
    assert rows(shop, "EXECUTE page(0, 1, 1)") == [("tea",)]
    assert rows(shop, "EXECUTE page(0, 2, 0)") == [("gold",), ("tea",)]
    for value in ("-1", "'many'", "1.5"):
        with pytest.raises(tk.IncorrectError, match="LIMIT takes a whole number that is not negative"):
            shop.sql(f"EXECUTE page(0, {value}, 0)")


@pytest.mark.parametrize("workers", [1, 2])
def test_execute_reads_the_rows_of_its_binding_alone(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine(workers=workers)
    engine.sql("CREATE TABLE t (k int, v varchar)")
    engine.sql("PREPARE q AS SELECT v, count(*) AS n FROM t WHERE k <= $1 GROUP BY v ORDER BY v")
    for k in range(40):
        engine.sql(f"INSERT INTO t VALUES ({k}, 'v{k % 3}')")
        engine.sql(f"EXECUTE q({k})")
    engine.sql("DELETE FROM t WHERE k = 1")
    decoded: list[int] = []
    view = core_of(engine.view("__prepared_q"))
    decode = ViewCore.decode

    def counted(core: ViewCore, words: Any, *rest: Any) -> Any:
        if core is view:
            decoded.append(words.shape[1])
        return decode(core, words, *rest)

    monkeypatch.setattr(ViewCore, "decode", counted)
    for k in range(40):
        kept = [n for n in range(k + 1) if n != 1]
        wanted = sorted({(f"v{n % 3}", sum(m % 3 == n % 3 for m in kept)) for n in kept})
        assert rows(engine, f"EXECUTE q({k})") == wanted
    assert max(decoded) <= 3


def test_named_parameters_are_constants(shop: tk.Engine) -> None:
    assert shop.sql("SELECT name FROM items WHERE id = $id", id=2).rows() == [("salt",)]
    with pytest.raises(tk.NotFoundError, match="no value for parameter 'id'"):
        shop.sql("SELECT name FROM items WHERE id = $id")


# -- files and time ----------------------------------------------------------------------------------------------------


def test_parameters_need_no_blanks_between_them(shop: tk.Engine) -> None:
    assert shop.sql("SELECT $a,$b,$a+$c", a=1, b="x", c=2).rows() == [(1, "x", 3)]
    assert shop.sql("SELECT '$a,$b', $a", a=1).rows() == [("$a,$b", 1)]


@pytest.mark.parametrize("condition", ["id IN ($ids)", "id IN $ids", "id = ANY($ids)", "id IN (7, $ids)"])
def test_parameter_that_is_a_list_stands_for_its_elements(shop: tk.Engine, condition: str) -> None:
    shop.sql("CREATE TABLE numbered (id int, name varchar); INSERT INTO numbered VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    for ids in ([1, 3], (2,), []):
        assert sorted(shop.sql(f"SELECT id FROM numbered WHERE {condition}", ids=ids).rows()) == [(i,) for i in ids]
        others = shop.sql(f"SELECT id FROM numbered WHERE NOT ({condition})", ids=ids).rows()
        assert sorted(others) == [(i,) for i in (1, 2, 3) if i not in ids]
    assert shop.sql("SELECT id FROM numbered WHERE name IN ($names)", names=["b", "it's, {x}"]).rows() == [(2,)]


def test_comparison_with_a_list_says_how_to_write_it(shop: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match=r"the value of \$names is a list: write x IN \(\$names\)"):
        shop.sql("SELECT 1 WHERE 'a' = $names", names=["a"])


def test_copy_reads_and_writes_files(shop: tk.Engine, tmp_path: Path) -> None:
    shop.sql(f"COPY (SELECT * FROM items ORDER BY id) TO '{tmp_path}/items.csv' (HEADER)")
    assert shop.sql(f"COPY items TO '{tmp_path}/items.parquet' (FORMAT parquet)").message == "COPY 3"
    before = rows(shop, "SELECT * FROM items ORDER BY id")
    for file, options in (("items.csv", "(FORMAT csv, HEADER)"), ("items.parquet", "")):
        shop.sql("DELETE FROM items")
        assert shop.sql(f"COPY items FROM '{tmp_path}/{file}' {options}").message == "COPY 3"
        assert rows(shop, "SELECT * FROM items ORDER BY id") == before
    parquet.write_table(pa.table({"id": [7], "name": ["x"]}), tmp_path / "part.parquet")
    with pytest.raises(tk.NotFoundError, match="the file has no column 'price'"):
        shop.sql(f"COPY items FROM '{tmp_path}/part.parquet'")
    shop.sql(f"COPY items (id, name) FROM '{tmp_path}/part.parquet'")
    assert rows(shop, "SELECT * FROM items WHERE id = 7") == [(7, "x", None)]


def test_copy_finds_columns_of_csv_by_their_header(tmp_path: Path) -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (id int, name text, price double)")
    file = tmp_path / "t.csv"

    def copied(text: str, statement: str = "COPY t FROM") -> list[tuple[object, ...]]:
        file.write_text(text)
        head, _, options = statement.partition(" FROM")
        engine.sql(f"DELETE FROM t; {head} FROM '{file}'{options}")
        return rows(engine, "SELECT * FROM t ORDER BY name")

    expected = [(7, "tea", 1.5), (None, "x", 2.0)]
    assert copied("price,id,name\n1.5,7,tea\n2,,x\n") == expected
    assert copied("\ufeffPrice,ID, name\n1.5,7,tea\n2,,x\n", "COPY t FROM (HEADER)") == expected
    assert copied("7,tea,1.5\n,x,2\n") == expected
    assert copied("nr,what,cost\n7,tea,1.5\n,x,2\n", "COPY t FROM (HEADER)") == expected
    assert copied("name;id\ntea;7\n", "COPY t (id, name) FROM (DELIMITER ';')") == [(7, "tea", None)]
    with pytest.raises(tk.IncorrectError, match=r"line 1.*invalid value '(price|name)'"):
        copied("price,id,name\n1.5,7,tea\n", "COPY t FROM (HEADER false)")
    with pytest.raises(tk.IncorrectError, match=r"line 3.*invalid value 'many'"):
        copied("price,id,name\n1.5,7,tea\n2,many,x\n")


def test_temporal_filter_is_maintained_as_time_passes() -> None:
    engine = make_engine()
    start = datetime.datetime(2024, 1, 1)
    moments = [start]
    sql.runner(engine).clock = lambda: moments[0]
    engine.sql("CREATE TABLE events (id int, at timestamp)")
    recent = "SELECT id FROM events WHERE at > now() - INTERVAL '1 hour' AND at <= now()"
    view = engine.sql(f"CREATE MATERIALIZED VIEW recent AS {recent}").view
    assert view is not None
    assert "range filter" in str(engine.sql(f"EXPLAIN {recent}"))
    events = [(1, start - datetime.timedelta(minutes=30)), (2, start), (3, start + datetime.timedelta(minutes=60))]
    engine.table("events").insert(events)
    for minutes, expected in ((0, [1, 2]), (29, [1, 2]), (30, [2]), (59, [2]), (60, [3]), (120, [])):
        moments[0] = start + datetime.timedelta(minutes=minutes)
        engine.advance()
        assert sorted(row[0] for row in view.rows()) == expected, minutes


@pytest.mark.executors("stages")
def test_stored_tables_are_declared_again_and_found(tmp_path: Path) -> None:
    for turn in range(3):
        with make_engine(storage=str(tmp_path / "data")) as engine:
            engine.sql("CREATE TABLE t (a int PRIMARY KEY, b varchar)")
            engine.sql(f"INSERT INTO t VALUES ({turn}, 'x')")
            view = engine.sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t").view
            assert view is not None and view.rows() == [(turn + 1, sum(range(turn + 1)))]
            assert rows(engine, "SELECT now() IS NOT NULL, count(*) FROM t") == [(True, turn + 1)]
            engine.sql("PREPARE q AS SELECT count(*) FROM t WHERE a >= $1")
            assert rows(engine, "EXECUTE q(1)") == [(turn,)]
            with pytest.raises(tk.ConflictError, match="a table named 't' already"):
                engine.sql("CREATE TABLE t (a int PRIMARY KEY, b varchar)")


def test_query_on_empty_tables_has_an_answer() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (a int)")
    assert rows(engine, "SELECT count(*), sum(a) FROM t") == [(0, None)]
    assert rows(engine, "SELECT 1 + 1") == [(2,)]


def test_mutual_recursion_is_the_least_solution() -> None:
    engine = make_engine()
    engine.sql(
        "CREATE TABLE next (a int, b int); INSERT INTO next VALUES (0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (9, 9)"
    )
    query = """
        WITH RECURSIVE even AS (SELECT 0 AS n UNION SELECT next.b FROM odd JOIN next ON odd.n = next.a),
                       odd AS (SELECT b AS n FROM next WHERE a = 0 UNION SELECT next.b FROM even JOIN next ON even.n = next.a)
        SELECT 'even' AS kind, n FROM even UNION ALL SELECT 'odd', n FROM odd
    """
    view = engine.sql(f"CREATE MATERIALIZED VIEW parity AS {query}").view
    assert view is not None and len(view.rows()) == 10
    engine.sql("DELETE FROM next WHERE a = 4")
    assert sorted(view.rows()) == [("even", 0), ("even", 2), ("even", 4), ("odd", 1), ("odd", 3)]


def test_a_recursive_name_may_begin_with_what_others_say() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE step (a int, b int); INSERT INTO step VALUES (0, 1), (1, 2), (2, 3), (3, 4), (4, 0)")
    view = engine.sql(
        """CREATE MATERIALIZED VIEW ways AS WITH RECURSIVE
               even(v) AS (SELECT 0 UNION SELECT s.b FROM odd JOIN step AS s ON odd.w = s.a),
               odd(w) AS (SELECT s.b FROM even JOIN step AS s ON even.v = s.a)
           SELECT v, 'even' AS way FROM even UNION ALL SELECT w, 'odd' FROM odd"""
    ).view
    assert view is not None

    def reached(steps: set[tuple[int, int]]) -> list[tuple[int, str]]:
        found = {(0, "even")}
        while True:
            more = {(b, "odd" if way == "even" else "even") for n, way in found for a, b in steps if a == n}
            if more <= found:
                return sorted(found)
            found |= more

    steps = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)}
    assert sorted(view.rows()) == reached(steps)
    for change, pair in (("DELETE", (2, 3)), ("INSERT", (2, 2)), ("DELETE", (0, 1)), ("INSERT", (0, 4))):
        if change == "DELETE":
            engine.sql(f"DELETE FROM step WHERE a = {pair[0]} AND b = {pair[1]}")
            steps.discard(pair)
        else:
            engine.sql(f"INSERT INTO step VALUES {pair}")
            steps.add(pair)
        assert sorted(view.rows()) == reached(steps)


def installed(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the dataflows that are installed from here on."""
    names: list[str] = []
    install = engine.install

    def noted(name: str, *given: Any, **options: Any) -> Any:
        names.append(name)
        return install(name, *given, **options)

    monkeypatch.setattr(engine, "install", noted)
    return names


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO gauges VALUES (1, 'a', 1.5), (2, NULL, -2)", [(1, "a", Decimal("1.50")), (2, None, Decimal(-2))]),
        ("INSERT INTO gauges (label, id) VALUES (upper('b') || 'c', 2 * 3)", [(6, "Bc", None)]),
        ("INSERT INTO gauges SELECT 7, 'x', CAST('2.25' AS decimal(10, 2))", [(7, "x", Decimal("2.25"))]),
        ("INSERT INTO gauges VALUES (1, 'a', 1) RETURNING id + 1", [(1, "a", Decimal(1))]),
    ],
)
def test_rows_of_constants_are_inserted_without_a_dataflow(
    statement: str, rows: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE gauges (id int PRIMARY KEY, label varchar, level decimal(10, 2))")
        names = installed(engine, monkeypatch)
        engine.sql(statement)
        assert names == []
        assert sorted(engine.sql("SELECT * FROM gauges")) == rows


def test_defaults_of_a_stored_table_outlive_the_process(tmp_path: Path) -> None:
    columns = "id int, t text DEFAULT 'q', n decimal(5, 2) DEFAULT 1.5, d date DEFAULT DATE '2024-02-29', b boolean DEFAULT true"
    with make_engine(storage=tmp_path) as engine:
        engine.sql(f"CREATE TABLE t ({columns}, f double DEFAULT 0.1)")
        engine.sql("ALTER TABLE t ALTER COLUMN t SET DEFAULT 'altered'")
        engine.sql("INSERT INTO t (id) VALUES (1)")
    with make_engine(storage=tmp_path) as engine:
        engine.sql("INSERT INTO t (id) VALUES (2)")
        rows = sorted(engine.sql("SELECT * FROM t").rows())
    assert rows[0][1:] == rows[1][1:] == ("altered", Decimal("1.50"), datetime.date(2024, 2, 29), True, 0.1)


@pytest.mark.parametrize("word", ["if", "lock", "cube", "rollup", "map", "install", "exclude"])
def test_a_word_that_is_not_reserved_names_a_column_everywhere(word: str) -> None:
    engine = make_engine(autocommit=True)
    engine.sql(f"CREATE TABLE t ({word} INT, b INT); INSERT INTO t ({word}, b) VALUES (1, 2), (3, 4)")
    engine.sql(f"UPDATE t SET {word} = {word} + 4 WHERE {word} = 3; DELETE FROM t WHERE {word} = 1")
    for query, rows in (
        (f"SELECT {word}, t.{word}, b * {word} FROM t", [(7, 7, 28)]),
        (f"SELECT {word}, count(*) FROM t WHERE {word} IS NOT NULL GROUP BY {word} ORDER BY {word}", [(7, 1)]),
        (f"SELECT max({word}) AS {word} FROM t AS {word} WHERE {word} NOT IN (1)", [(7,)]),
        (f"SELECT CASE WHEN {word} > 1 THEN {word} END FROM t GROUP BY ROLLUP ({word}), b HAVING {word} > 1", [(7,)]),
        ("SELECT * EXCLUDE (b) FROM t", [(7,)]),
    ):
        assert engine.sql(query).rows() == rows, query
    engine.sql("DROP TABLE IF EXISTS t; CREATE TABLE IF NOT EXISTS t (a INT)")
