"""Guards of filters: every row that passes, or on which the filter fails, has a word of the guard's intervals."""

from __future__ import annotations

import datetime
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.expr import Expr, RowProgram, col, compile, lit
from tektite.expr.guards import FEW, Guard
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.types import Bool, Float, Int, String
from tektite.values.words import NULL
from tests.expr.test_random import KINDS, SCHEMA, random_expression, value
from tests.support.expression_twin import Rows, TextDictionary
from tests.support.nightly import by_day_or_night

MOST = 2**63 - 1


def program_of(predicate: Expr, schema: Schema, dictionary: Dictionary) -> RowProgram:
    return compile([col(schema.names[0])], predicate, schema.positions, dictionary)


def admits(guard: Guard, words: np.ndarray) -> np.ndarray:
    column, intervals = guard
    found = np.zeros(words.shape[1], bool)
    for first, last in intervals:
        found |= (words[column] >= first) & (words[column] <= last)
    return found


Values = dict[str, list[Any]]


def comparison(rng: random.Random, known: Values) -> Expr:
    """A comparison of a column with constants, on either side, or with a set of them."""
    name = rng.choice([name for name in KINDS if KINDS[name] != "bool"])
    constant = lit(rng.choice(known[name]))
    shape = rng.randrange(4)
    if shape == 0:
        return col(name).isin([rng.choice(known[name]) for _ in range(3)] + [None] * rng.randrange(2))
    if shape == 1:
        return rng.choice([col(name).is_null(), col(name).is_same(constant)])
    left, right = rng.sample([col(name), constant], 2)
    return rng.choice([Expr.__eq__, Expr.__lt__, Expr.__le__, Expr.__gt__, Expr.__ge__, Expr.__ne__])(left, right)


def random_filter(rng: random.Random, known: Values, deep: int) -> Expr:
    if not deep:
        return random_expression("bool", 2, rng) if rng.random() < 0.2 else comparison(rng, known)
    parts = [random_filter(rng, known, rng.randrange(deep)) for _ in range(rng.randint(2, 3))]
    chosen = parts[0]
    for part in parts[1:]:
        chosen = chosen & part if rng.random() < 0.6 else chosen | part
    return ~chosen if rng.random() < 0.1 else chosen


@settings(max_examples=by_day_or_night(160, 800), deadline=None)
@given(seed=st.integers(0, 2**48))
def test_a_row_that_passes_or_fails_has_words_of_the_guard(seed: int) -> None:
    rng = random.Random(seed)
    known = {name: [value(KINDS[name], rng, name) for _ in range(3)] for name in SCHEMA}
    rows = [tuple([None if rng.random() < 0.15 else rng.choice(known[n]) for n in known]) for _ in range(40)]
    source = Rows(SCHEMA, rows, TextDictionary())
    program = source.compile([col("j")], random_filter(rng, known, 3))
    if program.guard is not None:
        words = source.array[: source.nd]
        found = program.check(words)
        wanted = np.concatenate([found.passing, found.failing]).astype(int)
        assert admits(program.guard, words)[wanted].all(), str(program)


def guard_in(predicate: Expr, **columns: Any) -> Guard | None:
    return program_of(predicate, Schema(**columns), Dictionary()).guard


k, m, x = col("k"), col("m"), col("x")


@pytest.mark.parametrize(
    ("predicate", "guard"),
    [
        (k == 3, (0, ((3, 3),))),
        (lit(3) == k, (0, ((3, 3),))),
        (k < 3, (0, ((NULL + 1, 2),))),
        (k <= 3, (0, ((NULL + 1, 3),))),
        (k > 3, (0, ((4, MOST),))),
        (lit(3) <= k, (0, ((3, MOST),))),
        ((k >= 3) & (k < 7), (0, ((3, 6),))),
        ((k > 7) & (k < 3), (0, ())),
        (k.isin([5, 1, 2]), (0, ((1, 2), (5, 5)))),
        (k.isin([5, None]), None),
        ((k == 1) | (k == 5), (0, ((1, 1), (5, 5)))),
        ((k == 1) | (m == 5), None),
        ((k > 1) & (m == 5), (1, ((5, 5),))),
        (k.is_null(), (0, ((NULL, NULL),))),
        (k.is_same(3), (0, ((NULL, NULL), (3, 3)))),
        (k != 3, None),
        (~(k == 3), None),
        (k == m, None),
        (k == lit(None, Int), None),
        (k > MOST, (0, ())),
        (x == 0.0, (2, ((-1, 0),))),
        (col("b"), (3, ((1, 1),))),
        ((k == 3) & (m * 2 > 5), (0, ((NULL, NULL), (3, 3)))),
        ((k == 3) | (m * 2 > 5), None),
        (k.isin(list(range(0, 4 * FEW, 2))), (0, ((0, 4 * FEW - 2),))),
    ],
    ids=str,
)
def test_what_a_filter_says_of_one_column(predicate: Expr, guard: Guard | None) -> None:
    assert guard_in(predicate, k=Int, m=Int, x=Float, b=Bool) == guard


def test_a_text_is_guarded_by_its_id() -> None:
    dictionary = Dictionary()
    schema = Schema(s=String)
    word = int(dictionary.add(pa.array(["north"]))[0])
    assert program_of(col("s") == "north", schema, dictionary).guard == (0, ((word, word),))
    assert program_of(col("s") < "north", schema, dictionary).guard is None


def test_a_day_is_guarded_by_its_number() -> None:
    assert guard_in(col("d") >= datetime.date(1970, 1, 3), d=SCHEMA["d"]) == (0, ((2, MOST),))
