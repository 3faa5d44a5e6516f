"""Tables and views are declared as people guess, and declaring one again means what `if_exists` says."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk


@pytest.fixture
def engine() -> tk.Engine:
    return tk.Engine()


def test_types_may_be_pythons_arrows_or_words(engine: tk.Engine) -> None:
    by_class = {"i": int, "f": float, "b": bool, "s": str, "d": datetime.date, "t": datetime.datetime}
    by_word = {"i": "BIGINT", "f": "double  precision", "b": "boolean", "s": "varchar", "d": "date", "t": "timestamp"}
    arrow = pa.schema(
        {
            "i": pa.int32(),
            "f": pa.float32(),
            "b": pa.bool_(),
            "s": pa.large_string(),
            "d": pa.date32(),
            "t": pa.timestamp("us"),
        }
    )
    own = {"i": tk.Int64, "f": tk.Float64, "b": tk.Bool, "s": tk.String, "d": tk.Date, "t": tk.Timestamp}
    schemas = [engine.create_table(f"t{n}", given).schema for n, given in enumerate((by_class, by_word, arrow, own))]  # type: ignore[arg-type]
    assert schemas == [tk.Schema(own)] * 4
    assert engine.create_table("d", {"x": "numeric(12, 2)"}).schema.types == (tk.Decimal(12, 2),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": {"x": decimal.Decimal}}, r"table 't': column 'x': expected a type .* a decimal says its digits"),
        ({"schema": {"x": "geometry"}}, "table 't': column 'x': expected a type such as .* found 'geometry'"),
        ({"schema": ["x"]}, "table 't': a schema is a dict"),
        ({"schema": {}}, "table 't' needs columns"),
        ({"mode": "bags"}, "table 't': mode is one of bag, set, upsert, append, stream, not 'bags'"),
        ({"mode": "upsert"}, "table 't': a row of mode 'upsert' replaces the one with the same primary_key"),
        ({"primary_key": "idd"}, "table 't': primary_key names 'idd': did you mean 'id'"),
        ({"order_by": 3}, "table 't': order_by names a column or several, not 3"),
        ({"primary_key": "id", "order_by": "v"}, r"order_by begins with the primary key \(id\)"),
        ({"shard_by": "v", "primary_key": ["id", "v"]}, r"the columns in shard_by are the first ones"),
        ({"if_exists": "ignore"}, "if_exists is one of error, keep, replace"),
    ],
)
def test_wrong_declaration_says_what_is_wrong(engine: tk.Engine, options: dict[str, Any], message: str) -> None:
    given = {"schema": {"id": int, "v": str}} | options
    with pytest.raises(tk.IncorrectError, match=message):
        engine.create_table("t", given.pop("schema"), **given)
    assert engine.tables == ()


def test_primary_key_is_enforced_and_order_by_is_not(engine: tk.Engine) -> None:
    keyed = engine.create_table("keyed", {"id": int, "v": str}, primary_key="id")
    ordered = engine.create_table("ordered", {"id": int, "v": str}, order_by="id")
    keyed.insert([(1, "a")])
    ordered.insert([(1, "a")])
    with pytest.raises(tk.ConflictError, match="two rows with the key id = 1"):
        keyed.insert([(1, "b")])
    with pytest.raises(tk.IncorrectError, match="'id' of table 'keyed' cannot be NULL"):
        keyed.insert([(None, "b")])
    ordered.insert([(1, "b"), (None, "c")])
    assert len(engine.sql("SELECT * FROM ordered").rows()) == 3


def test_modes_are_those_of_sql(engine: tk.Engine) -> None:
    for mode in ("bag", "set", "append", "stream"):
        engine.create_table(f"{mode}_python", {"x": int}, mode=mode)  # type: ignore[arg-type]
        engine.sql(f"CREATE TABLE {mode}_sql (x bigint) WITH (mode = '{mode}')")
        python, sql = (tk.engine.core.core_of(engine.table(f"{mode}_{made}")).declared for made in ("python", "sql"))
        assert python == sql


def test_table_that_exists(engine: tk.Engine) -> None:
    first = engine.create_table("t", {"x": int})
    first.insert([(1,)])
    with pytest.raises(tk.ConflictError, match="'t'"):
        engine.create_table("t", {"x": int})
    assert engine.create_table("t", {"x": int}, if_exists="keep") is first
    with pytest.raises(tk.ConflictError, match="is there already, and is another one"):
        engine.create_table("t", {"x": int}, mode="set", if_exists="keep")
    view = engine.create_view("v", first)
    with pytest.raises(tk.ConflictError, match="v"):
        engine.create_table("t", {"y": str}, if_exists="replace")
    assert view.rows() == [(1,)]
    engine.drop_view("v")
    second = engine.create_table("t", {"y": str}, if_exists="replace")
    assert second.schema.names == ("y",)
    assert engine.sql("SELECT * FROM t").rows() == []


def test_view_that_exists(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": int})
    table.insert([(1,), (2,)])
    query = "SELECT sum(x) AS s FROM t"
    first = engine.create_view("v", query)
    with pytest.raises(tk.ConflictError, match="'v'"):
        engine.create_view("v", query)
    assert engine.create_view("v", query, if_exists="keep") is first
    with pytest.raises(tk.ConflictError, match="with another definition"):
        engine.create_view("v", "SELECT max(x) AS s FROM t", if_exists="keep")
    with pytest.raises(tk.TektiteError):
        engine.create_view("v", "SELECT max(y) AS s FROM t", if_exists="replace")
    assert first.rows() == [(3,)]
    assert engine.create_view(
        "v", "SELECT max(x) AS s FROM t WHERE x < $most", {"most": 2}, if_exists="replace"
    ).rows() == [(1,)]
    with pytest.raises(tk.NotFoundError, match="'w'"):
        engine.drop_view("w")
    engine.drop_view("w", if_exists=True)
    engine.drop_view("v", if_exists=True)
    engine.drop_table("t")
    engine.drop_table("t", if_exists=True)
    assert (engine.tables, engine.views) == ((), ())


def test_stored_table_is_declared_again(tmp_path: Path) -> None:
    declared: dict[str, Any] = {"primary_key": ["id"], "mode": "upsert"}
    with tk.Engine(storage=tmp_path) as engine:
        engine.create_table("t", {"id": int, "v": str}, **declared).insert([(1, "a")])
    with tk.Engine(storage=tmp_path) as engine:
        table = engine.create_table("t", {"id": int, "v": str}, **declared)
        table.insert([(1, "b")])
        assert engine.create_view("all", table).rows() == [(1, "b")]
        assert engine.create_table("t", {"id": int, "v": str}, if_exists="keep", **declared) is table
    with tk.Engine(storage=tmp_path) as engine, pytest.raises(tk.TektiteError, match="'t'"):
        engine.create_table("t", {"id": int, "v": int}, **declared)


@pytest.mark.parametrize("given", [[3, "a"], (3, "a"), {"1": 3, "2": "a"}])
def test_parameters_by_number(engine: tk.Engine, given: Any) -> None:
    assert engine.sql("SELECT $1 + 1 AS x, $2 || 'b' AS y", given).rows() == [(4, "ab")]


def test_parameters_that_nobody_uses_are_refused_before_anything_runs(engine: tk.Engine) -> None:
    engine.create_table("t", {"x": int})
    with pytest.raises(tk.IncorrectError, match=r"the value of \$y is used nowhere: the text has \$x"):
        engine.sql("INSERT INTO t VALUES ($x)", x=1, y=2)
    with pytest.raises(tk.IncorrectError, match=r"\$3 is used nowhere"):
        engine.sql("INSERT INTO t VALUES ($1), ($2)", [1, 2, 3])
    with pytest.raises(tk.IncorrectError, match="no parameter"):
        engine.from_sql("SELECT * FROM t", [1])
    with pytest.raises(tk.IncorrectError, match="params are a list"):
        engine.sql("SELECT $1", 1)  # type: ignore[arg-type]
    with pytest.raises(tk.IncorrectError, match="a statement of SQL is text"):
        engine.sql(1)  # type: ignore[arg-type]
    assert engine.sql("SELECT count(*) FROM t").rows() == [(0,)]
    assert engine.sql("PREPARE q AS SELECT $1 + 1; EXECUTE q($x)", x=1).rows() == [(2,)]


def test_table_ends(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": int})
    view = engine.create_view("v", table)
    table.insert([(1,)])
    table.finish()
    assert (view.closed, view.rows()) == (True, [(1,)])
    with pytest.raises(tk.ConflictError, match="closed"):
        table.insert([(2,)])
    with pytest.warns(DeprecationWarning, match="finish"):
        engine.create_table("u", {"x": int}).close()


def test_errors_have_a_code_and_say_whose_fault_it_is(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": int})

    def fails(_: pa.Table) -> pa.Table:
        raise ValueError("no")

    failing = engine.create_view("failing", table.map_batches(fails, y=tk.Int))
    table.insert([(1,)])
    with pytest.raises(tk.FunctionError, match="raised ValueError") as failed:
        failing.rows()
    assert (failed.value.code, failed.value.details) == ("function", {"view": "failing"})
    with pytest.raises(tk.TektiteError) as wrong:
        engine.sql("SELECT 1,\n  nothing FROM t")
    assert (wrong.value.code, wrong.value.details) == (
        "not-found",
        {"line": 2, "column": 3, "condition": "undefined-column"},
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_zeros_of_both_signs_are_one_key_of_a_bag(workers: int) -> None:
    engine = tk.Engine(workers)
    table = engine.create_table("t", {"k": float, "v": int}, order_by="k")
    view = engine.create_view("all", table)
    table.insert([(-0.0, 1), (0.0, 2)])
    assert [str(k) for k, _ in view.rows()] == ["0.0", "0.0"]
    table.remove([(0.0, 1), (-0.0, 2)])
    assert view.rows() == []


def test_view_that_is_installed_explains_its_definition(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": int, "v": int})
    query = table.join(table, on="k").count(by="k")
    assert "join" in query.explain()
    assert "join" in engine.create_view("v", query).explain()


def test_a_table_that_is_read_is_replaced_by_an_equal_one_and_its_readers_follow() -> None:
    engine = tk.Engine()
    engine.create_table("t", [{"a": 1}, {"a": 2}])
    view = engine.create_view("v", "SELECT sum(a) AS a FROM t")
    changes = view.subscribe()
    assert engine.create_table("t", [{"a": 7}], if_exists="replace").rows() == [(7,)] == view.rows()
    assert [change.time for change in changes.changes()] == [0, 1, 1]
    assert engine.create_table("t", {"a": int}, if_exists="replace").rows() == []
    with pytest.raises(tk.ConflictError, match="'v' reads it: drop that first"):
        engine.create_table("t", {"b": int}, if_exists="replace")
