"""Long lists of constants mean what short ones mean, and are one part of a plan."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest

import tektite as tk
from tektite.expr.constant_set import MANY
from tektite.expr.plain import from_plain, to_plain
from tektite.values import types
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

COLUMNS = {
    "n": ("int", [1, 7, -3, 0, None, 2**53 + 1, 99]),
    "f": ("double", [1.0, 7.5, -0.0, float("nan"), None, 2.0**53, 0.1]),
    "d": ("decimal(10, 2)", ["1.00", "7.50", "-3.25", "0.10", None, "12345678.90", "99"]),
    "s": ("text", ["1", "seven", "", "ä'", None, "2024-02-29", "99"]),
    "b": ("bool", [True, False, True, None, None, False, True]),
    "day": ("date", ["2024-02-29", "1969-12-31", "2000-01-01", None, None, "0001-01-01", "2024-03-01"]),
    "at": ("timestamp", ["2024-02-29 00:00:00", "1969-12-31 23:59:59", None, None, None, "2000-01-01", "2024-03-01"]),
}
LISTS = {
    "whole numbers": [str(n) for n in range(-20, 40)],
    "decimals": [f"{n}.5" for n in range(40)] + ["0.1", "-3.25", "1.000", "99.0"],
    "mixed numbers": [str(n) for n in range(40)] + ["7.5", "1e0", "9007199254740993"],
    "texts of numbers": [f"'{n}'" for n in range(-20, 100)],
    "texts": [f"'{n}'" for n in range(40)] + ["'seven'", "'ä'''", "''"],
    "days": [f"'2024-02-{n:02}'" for n in range(1, 30)] + ["'1969-12-31'", "'0001-01-01'", "'2000-01-01'", "'2024-03-01'"],
    "with NULL": [str(n) for n in range(40)] + ["NULL"],
    "truth": ["true"] * 40,
}  # fmt: skip


def literal(value: Any, kind: str) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'::{kind}" if isinstance(value, str | float) else quoted


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int, " + ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items()) + ")")
    for k, row in enumerate(zip(*(values for _, values in COLUMNS.values()), strict=True)):
        shown = [literal(value, kind) for value, (kind, _) in zip(row, COLUMNS.values(), strict=True)]
        engine.sql(f"INSERT INTO t VALUES ({k}, {', '.join(shown)})")
    return engine


def outcome(engine: tk.Engine, condition: str) -> Any:
    """The rows with the answer of a condition, or that it is refused."""
    try:
        return sorted(engine.sql(f"SELECT k, {condition} FROM t").rows())
    except tk.TektiteError as error:
        return type(error)


@pytest.mark.parametrize(("column", "items"), [*itertools.product(COLUMNS, LISTS)])
def test_a_long_list_is_its_short_parts(engine: tk.Engine, column: str, items: str) -> None:
    said = LISTS[items]
    parts = [said[at : at + MANY // 2] for at in range(0, len(said), MANY // 2)]
    short = " OR ".join(f"({column} IN ({', '.join(part)}))" for part in parts)
    expected = outcome(engine, short)
    assert outcome(engine, f"{column} IN ({', '.join(said)})") == expected
    assert outcome(engine, " OR ".join(f"{column} = {item}" for item in said)) == expected
    opposite = [(k, None if v is None else not v) for k, v in expected] if isinstance(expected, list) else expected
    assert outcome(engine, f"{column} NOT IN ({', '.join(said)})") == opposite
    assert outcome(engine, f"{column} <> ALL (ARRAY[{', '.join(said)}])") == opposite


@pytest.mark.parametrize("column", ["n", "f", "d", "s", "day", "at"])
def test_the_text_of_an_array_is_its_elements(engine: tk.Engine, column: str) -> None:
    said = {"day": "days", "at": "days", "s": "texts of numbers"}.get(column, "texts of numbers")
    elements = [item.strip("'") for item in LISTS[said]]
    expected = outcome(engine, f"{column} IN ({', '.join(LISTS[said])})")
    assert outcome(engine, f"{column} = ANY ('{{{','.join(elements)}}}')") == expected
    with_null = [(k, v or None) for k, v in expected]
    assert outcome(engine, f"{column} = ANY ('{{{','.join([*elements, 'NULL'])}}}')") == with_null


def test_a_text_that_is_no_number_is_named_among_many(engine: tk.Engine) -> None:
    listed = ", ".join([*LISTS["texts of numbers"], "'abc'"])
    with pytest.raises(tk.TektiteError, match="'abc' is not a valid value of type int"):
        engine.sql(f"SELECT k FROM t WHERE n IN ({listed})")


def test_alternatives_of_several_columns_keep_their_other_parts(engine: tk.Engine) -> None:
    many = " OR ".join(f"n = {n} OR {n} = k" for n in range(7, 60))
    assert sorted(engine.sql(f"SELECT k FROM t WHERE {many} OR s = 'ä'''").rows()) == [(1,), (3,)]


def test_long_values_have_the_types_of_short_ones() -> None:
    engine = make_engine()
    rows = [f"({n}, 'x{n}', {'NULL' if n % 2 else n}, -{n})" for n in range(100)]
    found = engine.sql(f"SELECT * FROM (VALUES {', '.join(rows)}) AS v(a, b, c, d)")
    assert found.rows() == [(n, f"x{n}", None if n % 2 else n, -n) for n in range(100)]
    mixed = [*rows, "(0.5, 'y', 1, 1)"]
    found = engine.sql(f"SELECT sum(a), count(c), min(d) FROM (VALUES {', '.join(mixed)}) AS v(a, b, c, d)")
    assert [float(v) for v in found.rows()[0]] == [4950.5, 51, -99]
    with pytest.raises(tk.TektiteError, match="a row of 3 values among rows of 4"):
        engine.sql(f"SELECT * FROM (VALUES {', '.join(rows)}, (1, 'x', 2)) AS v")


def test_a_long_list_is_one_part_of_an_expression() -> None:
    many = tk.col("x").is_in(range(1000))
    assert not many.args[1:] and len(str(many.fingerprint)) < 300
    assert str(many) == f"x.isin({list(range(1000))})"
    assert many.fingerprint != tk.col("x").is_in(range(1001)).fingerprint
    assert many.fingerprint != tk.col("x").is_in([*range(1000), None]).fingerprint
    assert many.fingerprint != tk.col("x").is_in(map(float, range(1000))).fingerprint
    days = tk.col("x").is_in([datetime.date(2024, 1, 1) + datetime.timedelta(n) for n in range(50)])
    for expression in (many, days, tk.col("x").is_in([*map(str, range(50)), None])):
        kinds = {"int": types.Int, "date": types.Date, "string": types.String}
        assert from_plain(to_plain(expression), kinds.__getitem__).fingerprint == expression.fingerprint


@pytest.mark.parametrize("column", ["day", "at"])
def test_python_compares_days_with_many_texts_and_none(engine: tk.Engine, column: str) -> None:
    texts = [f"2024-02-{n:02}" for n in range(1, 30)] + ["1969-12-31", "2000-01-01", "2024-03-01", None]
    short = tk.col(column).is_in(texts[: MANY // 2]) | tk.col(column).is_in(texts[MANY // 2 :])
    rows = engine.table("t").select("k", among=tk.col(column).is_in(texts)).collect().to_pylist()
    assert rows == engine.table("t").select("k", among=short).collect().to_pylist()


@pytest.mark.executors("stages")
def test_views_over_long_lists_follow_their_rows() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int PRIMARY KEY, s text)")
    texts = ", ".join(f"'s{n}'" for n in range(0, 2000, 2))
    view = engine.sql(f"CREATE MATERIALIZED VIEW even AS SELECT k FROM t WHERE s IN ({texts})") and engine.view("even")
    engine.sql("INSERT INTO t SELECT x, 's' || x FROM generate_series(1, 100) AS g(x)")
    assert sorted(view.rows()) == [(n,) for n in range(2, 101, 2)]
    engine.sql("DELETE FROM t WHERE k < 90")
    assert sorted(view.rows()) == [(n,) for n in range(90, 101, 2)]
