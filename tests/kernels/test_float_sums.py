"""Sums and averages of floats, straight from the kernels: the exact result, rounded once."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tektite.kernels.operators.accumulate import accumulate, explode
from tektite.kernels.operators.aggregate import AVG_FLOAT, SUM_FLOAT
from tektite.kernels.operators.reduce import LINEAR, reduce
from tektite.trace.chunk import Chunk
from tektite.values.words import NULL, float_words, word_floats
from tests.support.float_twin import LARGEST, LEAST, anything, expected, rounded, same, scaled
from tests.support.nightly import by_day_or_night


def test_the_expectation_agrees_with_fsum() -> None:
    values = [0.1] * 10 + [1e300, 1e-300, -1e300, LEAST]
    assert expected(values)[1] == math.fsum(values)


def kernel_results(values: list[float | None], counts: list[int]) -> tuple[Any, Any]:
    """Sum and mean of one group, straight from the kernels."""
    words = np.array([NULL if v is None else int(float_words(np.array([v]))[0]) for v in values], np.int64)
    rows = Chunk.of_array(np.array([np.zeros(len(words), np.int64), words, np.zeros(len(words), np.int64), counts]))
    buf, head = accumulate(rows.at, 2, 1, np.array([1, 0, 1, 1], np.int64))
    more, exploded = explode(int(head[1]), 1, 1, rows.at, np.array([1], np.int64))
    assert exploded[0] >= 0
    table = np.array([exploded[1]], np.int64)
    params = np.array([SUM_FLOAT, 0, 0, 1, 0, AVG_FLOAT, 0, 0, 1, 0], np.int64)
    shape = np.array([1, 2, 1, 1, 3, 2, 0, LINEAR], np.int64)
    none = np.empty(0, np.int64)
    out, result, _, _, status = reduce(table, np.array([2]), table, none, shape, params, none, 0, 1)
    assert status[0] == 0 and len(buf) >= 0 and len(more) >= 0 and len(out) >= 0
    found = Chunk(result, out).to_array()
    assert found.shape == (5, 1)
    total, mean = (None if w == NULL else float(word_floats(np.array([w]))[0]) for w in found[1:3, 0])
    return total, mean


counts = st.one_of(st.integers(1, 3), st.integers(-(2**20), 2**20).filter(bool))


@given(st.lists(st.tuples(anything, counts), min_size=1, max_size=12))
@example([(LARGEST, 1), (2.0**970, 1)])  # exactly between the largest double and what would be the next: to even
@example([(LARGEST, 1), (2.0**969, 1), (2.0**969, 1), (-LEAST, 1)])
@example([(1.0, 1), (2.0**-53, 1)])
@example([(1.0, 1), (2.0**-53, 1), (LEAST, 1)])
@example([(1.0, 1), (2.0**-53, 3)])
@example([(-1.0, 1), (2.0**-54, 1)])
@example([(-LEAST, 1), (0.0, 1)])
@example([(2.0**-1022, 1), (-LEAST, 1)])
@example([(LARGEST, 2**20), (-LARGEST, 2**20 - 1), (-LARGEST, 1)])
@settings(max_examples=by_day_or_night(80, 400))
def test_a_sum_is_the_nearest_double_to_the_exact_one(rows: list[tuple[float | None, int]]) -> None:
    assume(sum(n for _, n in rows) != 0)
    present = sum(n for v, n in rows if v is not None)
    special: Counter[str] = Counter()
    for value, n in rows:
        if value is not None and not math.isfinite(value):
            special[repr(value)] += n
    infinite = sum(math.copysign(1, n) * float(text) for text, n in special.items() if n)
    total, mean = kernel_results([v for v, _ in rows], [n for _, n in rows])
    if not present:
        assert (total, mean) == (None, None)
    elif any(special.values()):
        assert same(total, infinite) and same(mean, infinite / present)
    else:
        exact = sum((Fraction(v) * n for v, n in rows if v is not None and math.isfinite(v)), Fraction(0))
        assert same(total, rounded(exact)) and same(mean, rounded(exact / present))


@given(st.lists(scaled, min_size=1, max_size=5), st.integers(2**31, 2**35))
def test_means_of_more_values_than_a_digit_counts(values: list[float], zeros: int) -> None:
    parts = [zeros // 64] * 64
    _, mean = kernel_results([*values, *[0.0] * 64], [*[1] * len(values), *parts])
    assert same(mean, rounded(sum(map(Fraction, values), Fraction(0)) / (len(values) + sum(parts))))
