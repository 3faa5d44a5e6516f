"""Parameters whose values are lists, structs and intervals: what they are in a query, and in prepared and followed ones."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

MONTH, DAYS = tk.IntervalValue(months=1), tk.IntervalValue(days=30)


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE t (a INT, s VARCHAR, l INT[]); INSERT INTO t VALUES (1, 'x', [1, 2]), (2, 'y', NULL), (3, NULL, [])"
    )
    return engine


@pytest.mark.parametrize(
    "value",
    [[1, 2], [1, None], [], [None], [[1], [2]], [1.0, 2.5], ["x", None], [True], [datetime.date(2024, 1, 1)],
     [Decimal("1.5")], [{"a": 1, "b": None}], {"a": [1, None]}, {"a": None}, [Decimal(-(2**63))]],
    ids=str,
)  # fmt: skip
def test_value_of_a_list_or_a_struct_is_itself(engine: tk.Engine, value: Any) -> None:
    assert engine.sql("SELECT $1", [value]).rows() == [(value,)]
    assert engine.sql("SELECT x FROM (SELECT $1 AS x) y", [value]).rows() == [(value,)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT $1[1]", [(1,)]),
        ("SELECT len($1), $1 || [3], list_contains($1, 2)", [(2, [1, 2, 3], True)]),
        ("SELECT unnest($1)", [(1,), (2,)]),
        ("SELECT [$1], {'a': $1}", [([[1, 2]], {"a": [1, 2]})]),
        ("SELECT $1::VARCHAR, to_json($1)", [("[1, 2]", "[1,2]")]),
        ("SELECT a FROM t WHERE l = $1", [(1,)]),
        ("SELECT a FROM t WHERE a IN ($1)", [(1,), (2,)]),
        ("SELECT a FROM t WHERE a IN (3, $1)", [(1,), (2,), (3,)]),
        ("SELECT a FROM t WHERE a NOT IN ($1)", [(3,)]),
        ("SELECT a FROM t WHERE a <> ALL($1)", [(3,)]),
        ("SELECT coalesce(l, $1) FROM t", [([],), ([1, 2],), ([1, 2],)]),
    ],
)
def test_list_is_what_it_is_used_as(engine: tk.Engine, query: str, expected: list[Any]) -> None:
    assert sorted(engine.sql(query, [[1, 2]]).rows()) == sorted(expected)


def test_numbers_beyond_a_word_in_a_list_are_decimals(engine: tk.Engine) -> None:
    assert engine.sql("SELECT $1", [[-(2**63)]]).rows() == [([Decimal(-(2**63))],)]


@pytest.mark.executors("stages")
def test_prepared_statement_takes_lists_and_structs(engine: tk.Engine) -> None:
    engine.sql("PREPARE some AS SELECT a FROM t WHERE a IN ($1); PREPARE equal AS SELECT a FROM t WHERE l = $1")
    engine.sql("PREPARE shown AS SELECT a, $1 FROM t WHERE a < 2")
    assert sorted(engine.sql("EXECUTE some([1, 2])").rows()) == [(1,), (2,)]
    assert engine.sql("EXECUTE some([3])").rows() == [(3,)]
    assert engine.sql("EXECUTE equal([1, 2])").rows() == [(1,)]
    assert engine.sql("EXECUTE shown({'a': 1, 'b': NULL})").rows() == [(1, {"a": 1, "b": None})]
    engine.sql("INSERT INTO t VALUES (3, 'z', [1, 2]); DELETE FROM t WHERE a = 1")
    assert engine.sql("EXECUTE some([3])").rows() == [(3,), (3,)]
    assert engine.sql("EXECUTE equal([1, 2])").rows() == [(3,)]
    assert engine.sql("DEALLOCATE some([3])").message == "DEALLOCATE"


def test_subscription_takes_lists(engine: tk.Engine) -> None:
    for value, expected in ([[1, 2], [1, 2]], [[3], [3]]):
        subscription = engine.sql("SUBSCRIBE (SELECT a FROM t WHERE a IN ($1))", [value]).subscription
        found = subscription.poll()
        assert found is not None and sorted(found.table["a"].to_pylist()) == expected
        subscription.close()
    found = engine.sql("SUBSCRIBE (SELECT a FROM t WHERE s IN ($1))", [["x"]]).subscription.poll()
    assert found is not None and found.table["a"].to_pylist() == [1]


def test_equal_intervals_are_different_arguments(engine: tk.Engine) -> None:
    query = "SELECT TIMESTAMP '2024-01-31' + $1, a FROM t WHERE a = 1"
    leap, march = datetime.datetime(2024, 2, 29), datetime.datetime(2024, 3, 1)
    engine.sql(f"PREPARE moved AS {query}")
    assert engine.sql("EXECUTE moved(INTERVAL '1 month')").rows() == [(leap, 1)]
    assert engine.sql("EXECUTE moved(INTERVAL '30 days')").rows() == [(march, 1)]
    assert engine.sql("EXECUTE moved(INTERVAL '1 month')").rows() == [(leap, 1)]
    for given, expected in ((MONTH, leap), (DAYS, march)):
        assert engine.sql(query, [given]).rows() == [(expected, 1)]
        found = engine.sql(f"SUBSCRIBE ({query})", [given]).subscription.poll()
        assert found is not None and found.table[0].to_pylist() == [expected]


def test_a_parameter_stands_behind_any_operator_without_a_blank() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2), (3)")
    for operator, expected in (
        ("<", [1]),
        (">", [3]),
        ("<=", [1, 2]),
        (">=", [2, 3]),
        ("=", [2]),
        ("<>", [1, 3]),
        ("!=", [1, 3]),
    ):
        assert sorted(engine.sql(f"SELECT x FROM t WHERE x{operator}$y", {"y": 2}).rows()) == [(x,) for x in expected]
        assert sorted(engine.sql(f"SELECT x FROM t WHERE x{operator}$1", {"1": 2}).rows()) == [(x,) for x in expected]
