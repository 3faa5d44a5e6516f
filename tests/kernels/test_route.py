"""Parts of rows hold exactly the rows that belong to them, in their old order, and nothing is copied without need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.seek.moments import partition_moments
from tektite.kernels.seek.route import route, split_epoch
from tektite.kernels.seek.shift import scale, shift
from tests.support.kernel_rows import Row, Rows, read
from tests.support.nightly import by_day_or_night

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), *[st.integers(0, 2)] * 4), max_size=60)


@settings(max_examples=by_day_or_night(30, 150), deadline=None)
@given(ROWS, st.lists(st.integers(0, 1), max_size=3), st.integers(1, 5), st.booleans())
def test_routing_keeps_every_row_and_sends_equal_keys_to_one_shard(
    rows: list[Row], key: list[int], shards: int, fold: bool
) -> None:
    source = Rows(rows, 6, fold)
    buf, head, offsets = route(source.at, np.array(key, np.int64), shards)
    got = read(head)
    assert offsets[0] == 0 and offsets[-1] == len(rows) and len(offsets) == shards + 1
    owner = {}
    seen: list[list[Row]] = []
    for s in range(shards):
        part = got[offsets[s] : offsets[s + 1]]
        seen.append(part)
        for r in part:
            assert owner.setdefault(tuple(r[c] for c in key), s) == s
    for s, part in enumerate(seen):
        assert part == [r for r in rows if owner[tuple(r[c] for c in key)] == s]
    if sum(1 for part in seen if part) <= 1:
        assert len(buf) == 0


def test_consecutive_keys_spread_evenly_over_shards() -> None:
    source = Rows([(k, 0) for k in range(20_000)], 2)
    for shards in (2, 3, 7, 16):
        _, _, offsets = route(source.at, np.array([0]), shards)
        sizes = np.diff(offsets)
        assert sizes.min() > 0.8 * 20_000 / shards and sizes.max() < 1.2 * 20_000 / shards


@settings(max_examples=by_day_or_night(30, 150), deadline=None)
@given(ROWS, st.integers(1, 3), st.booleans())
def test_moments_come_in_order_each_with_its_rows(rows: list[Row], nt: int, fold: bool) -> None:
    source = Rows(rows, 6, fold)
    buf, head, offsets, moments = partition_moments(source.at, 2, nt)
    want = sorted({r[3 : 2 + nt] for r in rows})
    assert moments.shape == (len(want), nt - 1)
    assert [tuple(int(x) for x in m) for m in moments] == want
    got = read(head)
    for m, moment in enumerate(want):
        assert got[offsets[m] : offsets[m + 1]] == [r for r in rows if r[3 : 2 + nt] == moment]
    if len(want) <= 1:
        assert len(buf) == 0


def test_many_moments_are_numbered_and_sorted() -> None:
    random = np.random.default_rng(1)
    rows = [(0, int(a), int(b), 1) for a, b in random.integers(0, 60, (3000, 2))]
    source = Rows(rows, 4)
    buf, head, offsets, moments = partition_moments(source.at, 0, 3)
    assert [tuple(int(x) for x in m) for m in moments] == sorted({r[1:3] for r in rows})
    assert read(head) == sorted(rows, key=lambda r: r[1:3])
    assert offsets[-1] == 3000 and len(buf) == 2 * 3000


@settings(max_examples=by_day_or_night(20, 100), deadline=None)
@given(ROWS, st.integers(0, 3), st.booleans())
def test_an_epoch_splits_rows_without_reordering_them(rows: list[Row], hi: int, fold: bool) -> None:
    source = Rows(rows, 6, fold)
    buf, head, cut = split_epoch(source.at, 2, hi)
    assert read(head) == [r for r in rows if r[2] < hi] + [r for r in rows if r[2] >= hi]
    assert cut == sum(r[2] < hi for r in rows)
    if cut in (0, len(rows)):
        assert len(buf) == 0


@settings(max_examples=by_day_or_night(15, 60), deadline=None)
@given(ROWS, st.integers(2, 5), st.integers(-4, 4), st.booleans())
def test_one_column_is_shifted_or_scaled(rows: list[Row], column: int, by: int, fold: bool) -> None:
    source = Rows(rows, 6, fold)
    for kernel, change in ((shift, lambda x: x + by), (scale, lambda x: x * by)):
        buf, head = kernel(source.at, column, by)
        assert read(head) == [(*r[:column], change(r[column]), *r[column + 1 :]) for r in rows]
        assert (len(buf) == 0) == (not rows or source.head[4 + 3 * column] == 0)


@pytest.mark.parametrize("fold", [True, False])
def test_overflow_is_flagged(fold: bool) -> None:
    source = Rows([(2**62,)], 1, fold)
    assert scale(source.at, 0, 2)[1][0] == -1
    assert shift(source.at, 0, 2**62)[1][0] == -1
    assert scale(source.at, 0, -2)[1][0] == 1
