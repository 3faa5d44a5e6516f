"""Which rows an expression fails on: random expressions against a slow evaluation row by row, in which an error is a value."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.dataflow.linear import ProgramStep
from tektite.expr import Expr, coalesce, col, compile, lit, when
from tektite.expr.program import FailingRowError
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.types import Bool, Int, String
from tests.support.nightly import by_day_or_night

SCHEMA = Schema(i=Int, b=String)
TEXTS = ("1", "2", "x", "*", None)
MOST = 2**63 - 1
FAILS = "an error"
"""What a row has in place of a value."""


class Tree:
    """A random expression, and what it is for a row."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def number(self, deep: int) -> tuple[Expr, Any]:
        """An expression of type Int, and its twin."""
        kind = self.rng.choice(
            ["i", "i", "cast"] if not deep else ["i", "cast", "cast", "add", "case", "coalesce", "double"]
        )
        if kind == "i":
            return col("i"), lambda row: row[0]
        if kind == "cast":
            return col("b").cast(
                Int
            ), lambda row: None if row[1] is None else int(row[1]) if row[1].isdigit() else FAILS
        left, one = self.number(deep - 1)
        right, other = self.number(deep - 1)
        if kind == "add":
            return left + right, lambda row: strict(lambda a, c: fitting(a + c), one(row), other(row))
        if kind == "double":
            return left * 2, lambda row: strict(lambda a: fitting(a * 2), one(row))
        if kind == "coalesce":

            def first(row: Any) -> Any:
                value = one(row)
                return other(row) if value is None else value

            return coalesce(left, right), first
        test, truth = self.truth(deep - 1)

        def chosen(row: Any) -> Any:
            condition = truth(row)
            if condition is FAILS:
                return FAILS
            return one(row) if condition is True else other(row)

        return when(test, left).otherwise(right), chosen

    def truth(self, deep: int) -> tuple[Expr, Any]:
        """An expression of type Bool, and its twin."""
        kind = self.rng.choice(
            ["less", "star"] if not deep else ["less", "star", "and", "and", "or", "or", "not", "null"]
        )
        if kind == "star":
            return col("b") == "*", lambda row: None if row[1] is None else row[1] == "*"
        if kind in ("less", "null"):
            number, value = self.number(max(deep - 1, 0))
            if kind == "null":
                return number.is_null(), lambda row: FAILS if value(row) is FAILS else value(row) is None
            return number < 2, lambda row: strict(lambda a: a < 2, value(row))
        left, one = self.truth(deep - 1)
        if kind == "not":
            return ~left, lambda row: strict(lambda a: not a, one(row))
        right, other = self.truth(deep - 1)
        decisive = kind == "or"

        def both(row: Any) -> Any:
            values = (one(row), other(row))
            if any(value is decisive for value in values):
                return decisive
            if any(value is FAILS for value in values):
                return FAILS
            return None if None in values else not decisive

        return left | right if decisive else left & right, both


def fitting(value: int) -> Any:
    return value if -MOST <= value <= MOST else FAILS


def strict(function: Any, *values: Any) -> Any:
    if any(value is FAILS for value in values):
        return FAILS
    return None if any(value is None for value in values) else function(*values)


def chunk_of(rows: list[tuple[Any, ...]], dictionary: Dictionary) -> Chunk:
    words = SCHEMA.encode(rows, dictionary)
    count = len(rows)
    more = np.vstack([np.arange(count), np.ones(count, np.int64)])
    return Chunk.of_array(np.ascontiguousarray(np.concatenate([words, more])))


@settings(max_examples=by_day_or_night(60, 300))
@given(seed=st.integers(0, 2**32))
def test_rows_fail_where_their_evaluation_does(seed: int) -> None:
    rng = random.Random(seed)
    tree = Tree(rng)
    outputs = [tree.number(rng.randint(0, 3)) for _ in range(rng.randint(1, 2))]
    predicate = tree.truth(rng.randint(0, 4)) if rng.random() < 0.8 else None
    dictionary = Dictionary()
    program = compile([output for output, _ in outputs], predicate and predicate[0], SCHEMA.positions, dictionary)
    rows = [(rng.choice([0, 1, 3, None, MOST]), rng.choice(TEXTS)) for _ in range(rng.randint(1, 12))]
    if rng.random() < 0.1:
        rows *= 400  # several blocks
    made, failing = ProgramStep(program, 2).attempt(chunk_of(rows, dictionary), 1)
    passed, failed = [], []
    for number, row in enumerate(rows):
        truth = True if predicate is None else predicate[1](row)
        values = [value(row) for _, value in outputs] if truth is True else []
        if truth is FAILS or FAILS in values:
            failed.append(number)
        elif truth is True:
            passed.append((*values, number))
    found = made.to_array()
    schema = Schema({**{f"o{i}": Int for i in range(len(outputs))}, "number": Int})
    assert schema.decode_rows(np.ascontiguousarray(found[:-1]), dictionary) == passed
    assert ([] if failing is None else failing[2].tolist()) == failed
    assert program.can_fail or not failed


@pytest.mark.parametrize(
    "predicate",
    [
        (col("b") != "*") & (col("b").cast(Int) > 1),
        (col("b").cast(Int) > 1) & (col("b") != "*"),
        (col("b") == "*") | (col("b").cast(Int) > 1),
        (col("i") > 0) & ((col("b").cast(Int) > 1) & (col("b") != "*")),
        ((col("b").cast(Int) > 1) & (col("i") > 0)) & ((col("b").cast(Int) < 9) & (col("b") != "*")),
        when(col("b") != "*", col("b").cast(Int) > 1).otherwise(lit(False, Bool)),
    ],
    ids=str,
)
def test_guards_keep_the_kernel_on_its_fast_path(predicate: Expr) -> None:
    dictionary = Dictionary()
    program = compile([col("i")], predicate, SCHEMA.positions, dictionary)
    chunk = chunk_of([(1, "*"), (2, "5"), (3, None)], dictionary)
    program.run(chunk.at, 2, 1, 1, 0, chunk.memory)  # does not raise
    chunk = chunk_of([(1, "*"), (2, "bad")], dictionary)
    with pytest.raises(FailingRowError, match="found 'bad'"):
        program.run(chunk.at, 2, 1, 1, 0, chunk.memory)
