"""What SQL is tested with finds faults: comparisons tell answers apart, and small cases are made of large ones."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import sqlglot

from tests.support.sql.generator import Generator
from tests.support.sql.logic import records, run
from tests.support.sql.oracle import Oracle, difference, ordered_difference, top_difference
from tests.support.sql.trial import Fault, fewer_rows, reduced, simpler, try_case
from tests.support.sql.worlds import World

SAME = [
    ([(1, 2.0)], [(Decimal("1.00"), 2)]),
    ([(0.1 + 0.2,)], [(0.3,)]),
    ([(None, "a"), (1, "b")], [(1, "b"), (None, "a")]),
    ([(float("nan"),)], [(float("nan"),)]),
]
DIFFERENT = [
    ([(1,)], [(1,), (1,)]),
    ([(None,)], [(0,)]),
    ([(True,)], [(1,)]),
    ([("1",)], [(1,)]),
    ([(0.3,)], [(0.3001,)]),
    ([(datetime.date(2024, 1, 1),)], [(datetime.datetime(2024, 1, 1),)]),
    ([(Decimal("1.01"),)], [(Decimal("1.02"),)]),
]


@pytest.mark.parametrize(("ours", "theirs"), SAME)
def test_equal_answers_have_no_difference(ours: list, theirs: list) -> None:
    assert difference(ours, theirs) is None


@pytest.mark.parametrize(("ours", "theirs"), DIFFERENT)
def test_different_answers_are_told_apart(ours: list, theirs: list) -> None:
    assert difference(ours, theirs)


def test_order_counts_where_it_is_asked_for() -> None:
    assert difference([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]) is None
    assert ordered_difference([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], [0])
    assert ordered_difference([(1, "a"), (1, "b")], [(1, "b"), (1, "a")], [0]) is None


def test_ties_at_a_limit_may_be_cut_either_way() -> None:
    oracle = Oracle()
    oracle.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, 'c')) AS v(x, y)")
    query = "SELECT x, y FROM t ORDER BY x LIMIT 2"
    assert top_difference([(1, "a"), (2, "c")], oracle, query) is None
    assert top_difference([(1, "a"), (2, "b")], oracle, query) is None
    assert top_difference([(2, "b"), (2, "c")], oracle, query)
    assert top_difference([(1, "a"), (2, "z")], oracle, query)


def test_file_with_a_wrong_answer_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "wrong.slt"
    path.write_text("query\nSELECT 1 + 1\n----\n3\n\nstatement error nothing\nSELECT 1\n\nstatement ok\nSELEC 1\n")
    found = "\n".join(run(path))
    assert all(place in found for place in ("wrong.slt:1", "wrong.slt:6", "wrong.slt:9"))


def test_records_know_their_lines() -> None:
    text = "# a comment\n\nstatement ok\nSELECT 1\n\nonlyif tektite\nquery nosort\nSELECT 2\n----\n2\n"
    first, second = records(text)
    assert (first.line, first.kind, first.ours_alone) == (3, "statement", False)
    assert (second.line, second.argument, second.expected, second.ours_alone) == (7, "nosort", ["2"], True)


def test_worlds_and_queries_follow_from_the_seed() -> None:
    def made(seed: int) -> tuple[str, list[str]]:
        chance = random.Random(seed)
        world = World(chance)
        generator = Generator(chance, world.tables)
        return world.case().script(), [generator.query() for _ in range(20)]

    assert made(5) == made(5)
    assert made(5) != made(6)


def test_simpler_queries_are_queries() -> None:
    query = "SELECT a, count(*) FROM t JOIN u ON t.k = u.k WHERE a > 1 AND b IN (SELECT c FROM v) GROUP BY a LIMIT 3"
    found = list(simpler(query))
    assert len(found) > 15
    for text in found:
        assert sqlglot.parse_one(text, read="duckdb")
    assert "SELECT c FROM v" in found


def test_insert_is_cut_between_its_rows() -> None:
    assert list(fewer_rows("INSERT INTO t VALUES (1, 'a'), (2, 'b')"))[:2] == [
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO t VALUES (2, 'b')",
    ]
    assert list(fewer_rows("DELETE FROM t")) == []


def test_fault_is_made_small() -> None:
    case = World(random.Random(1)).case()
    case.queries = ["SELECT k, v, approx_count_distinct(v) FROM t0 WHERE k > 0 GROUP BY k, v"]
    case.installs = [2]
    ((fault,), _) = try_case(case)
    assert fault.kind == "unsupported"
    small, same = reduced(case, Fault(0, fault.epoch, fault.kind, fault.message), seconds=20)
    assert same.like(fault)
    assert "approx_count_distinct" in small.queries[0].lower()
    assert len(small.script()) < len(case.script()) / 2


def test_oracle_goes_on_after_a_query_on_which_duckdb_fails_inside() -> None:
    """DuckDB fails on this join. When it does not, choose another query that it fails on, or drop the restart."""
    oracle = Oracle()
    oracle.execute("CREATE TABLE t (k BIGINT, v BIGINT, a VARCHAR)")
    oracle.execute("INSERT INTO t VALUES (0, 5, 'ba'), (1, NULL, '')")
    inner = "EXISTS (SELECT '' FROM t AS x3 WHERE x3.v <= x2.k AND x3.k = '-1')"
    query = f"SELECT x1.k FROM t AS x1 RIGHT JOIN t AS x2 ON x1.v = x2.v AND {inner} RIGHT JOIN t AS x4 ON x2.a <> x4.a"
    with pytest.raises(duckdb.Error, match="Vector::Reference"):
        oracle.rows(query)
    assert oracle.rows("SELECT k FROM t ORDER BY k") == [(0,), (1,)]
    oracle.execute("INSERT INTO t VALUES (2, 0, 'c')")
    assert oracle.rows("SELECT count(*) FROM t") == [(3,)]
