"""Build sorts and consolidates chunks of updates, exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.layout.rows import head_of_array
from tektite.kernels.sort.build import build
from tektite.kernels.sort.combined import FEW_EQUAL, SORT_INSTEAD, combine
from tests.support.narrow import check_memory, check_steps
from tests.support.nightly import by_day_or_night
from tests.support.rows_twin import LEAST, MOST, Row, Rows, consolidate, read, stored, varying, words


def build_chunks(chunks: Sequence[Rows], nd: int, nt: int, nf: int, lo: int) -> tuple[np.ndarray, np.ndarray]:
    buf, head = build(np.array([chunk.at for chunk in chunks], np.int64), nd, nt, nf, lo)
    return buf, head


def check(chunks: Sequence[Sequence[Row]], nd: int, nt: int, nf: int, lo: int, constants: bool) -> None:
    """Build equals its twin, stores only what varies, and stores it in no more room than that takes."""
    made = [
        Rows(rows, nd + nt + nf, [j for j in range(nd + nt + nf) if constants and len({row[j] for row in rows}) <= 1])
        for rows in chunks
    ]
    buf, head = build_chunks(made, nd, nt, nf, lo)
    clamped = [(*row[:nd], max(row[nd], lo), *row[nd + 1 :]) for rows in chunks for row in rows]
    expected = consolidate(clamped, nd + nt)
    if expected is None:
        assert head[0] == -1
        return
    assert read(head) == expected
    assert stored(head) == varying(expected)
    check_memory(buf, head)
    check_steps(head)


def check_combined(chunks: Sequence[Sequence[Row]], nd: int, nt: int, nf: int, lo: int) -> None:
    """Combine gives each row once, or says that it does not; then sorting gives the same as without it."""
    made = [
        Rows(rows, nd + nt + nf, [j for j in range(nd + nt + nf) if len({row[j] for row in rows}) <= 1])
        for rows in chunks
    ]
    buf, head = combine(np.array([chunk.at for chunk in made], np.int64), nd, nt, nf, lo)
    clamped = [(*row[:nd], max(row[nd], lo), *row[nd + 1 :]) for rows in chunks for row in rows]
    if head[0] == SORT_INSTEAD:
        assert not clamped or width_of(clamped) <= 64
        return
    expected = consolidate(clamped, nd + nt)
    if head[0] == -1:  # a sum on the way does not fit a word, whatever the last one does
        assert sum(max(map(abs, row[nd + nt :]), default=0) for row in clamped) > MOST
        return
    assert sorted(read(head)) == expected
    assert stored(head) == varying(expected or [])
    check_memory(buf, head)


def width_of(rows: Sequence[Row]) -> int:
    """The bits that the ranges of all columns take together, without NULLs."""
    ranges = [[word for word in column if word != LEAST] or [0] for column in zip(*rows, strict=True)]
    return sum([(max(column) - min(column)).bit_length() for column in ranges])


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[list[Row]], int, int, int, int, bool]:
    nd, nt, nf = draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = draw(st.sampled_from([0, 1, 2, 5, 32, 33, 60, 200]))
    generator = random.Random(draw(st.integers(0, 2**32)))
    pools = [draw(st.lists(words, min_size=1, max_size=4)) for _ in range(nd + nt)]
    for pool in pools:
        kind = draw(st.sampled_from(["few", "few", "small", "full"]))
        if kind == "small":
            pool.extend(generator.randrange(100) for _ in range(100))
        elif kind == "full":
            pool.extend(generator.randrange(LEAST, MOST) for _ in range(100))
    diffs = draw(st.sampled_from([[1], [0], [1, -1], [1, -1, 0], [MOST, LEAST, 1, -1], [5, 2**62, -(2**62)]]))
    rows = [
        (*(generator.choice(pool) for pool in pools), *(generator.choice(diffs) for _ in range(nf)))
        for _ in range(size)
    ]
    if draw(st.booleans()):
        rows.sort()
    cuts = sorted(generator.randrange(size + 1) for _ in range(draw(st.integers(0, 4))))
    chunks = [rows[i:j] for i, j in zip([0, *cuts], [*cuts, size], strict=True)]
    return chunks, nd, nt, nf, draw(st.sampled_from([LEAST, 0, 1, 50, MOST])), draw(st.booleans())


@settings(max_examples=by_day_or_night(120, 600), deadline=None)
@given(inputs())
def test_build_equals_its_twin(case: tuple[list[list[Row]], int, int, int, int, bool]) -> None:
    check(*case)
    check_combined(*case[:-1])


@pytest.mark.parametrize("size", [40, 3000, by_day_or_night(15_000, 40_000)])
@pytest.mark.parametrize(
    "kind",
    [
        "two columns", "hashes", "hash pairs", "hot hash", "nulls", "wide", "sums", "presorted", "skewed", "no key",
        "repeated hashes", "repeated hashes and NULL", "one hash a chunk", "too many hashes", "turned", "turned but for one",
    ],
)  # fmt: skip
def test_large_builds_equal_their_twin(size: int, kind: str) -> None:
    generator = np.random.default_rng(size)

    def column(low: int, high: int) -> list[int]:
        result: list[int] = generator.integers(low, high, size, endpoint=True).tolist()
        return result

    hashes = column(LEAST, MOST)
    nd, nf = 2, 1
    diffs = [[1] * size]
    if kind == "two columns":
        data = [column(0, size), column(0, 5)]
    elif kind == "hashes":
        data = [hashes, column(0, 1)]
    elif kind == "hash pairs":
        few = column(LEAST, MOST)[:30]
        data = [[few[i % 30] for i in column(0, 10**6)], hashes]
    elif kind == "hot hash":
        data = [[hashes[0] if i % 3 else hashes[i] for i in range(size)], column(LEAST, MOST)]
        diffs = [column(-1, 1)]
    elif kind == "nulls":
        data = [[LEAST if x % 7 == 0 else x for x in column(0, 1000)], [LEAST if x == 0 else x for x in column(0, 9)]]
        diffs = [column(-1, 1)]
    elif kind == "wide":
        nd = 5
        data = [column(0, 2**40) if j % 2 else column(0, 3) for j in range(5)]
    elif kind == "sums":
        nf = 3
        data = [column(0, size // 4), [7] * size]
        diffs = [column(-1, 1), column(-(2**50), 2**50), [3] * size]
    elif kind == "presorted":
        data = [sorted(column(0, 2**60)), column(0, 1)]
        diffs = [column(1, 2)]
    elif kind == "skewed":
        data = [[2**62 if i == 0 else i * 7919 % 1000 for i in range(size)], [i % 1000 for i in column(0, 2**40)]]
    elif kind in ("repeated hashes", "repeated hashes and NULL"):
        few = [LEAST, MOST, *column(LEAST, MOST)[:30]] if "NULL" in kind else column(LEAST, MOST)[:30]
        data = [[few[i % len(few)] for i in column(0, 10**6)] for _ in range(2)]
        diffs = [column(-1, 1)]
    elif kind == "one hash a chunk":
        few = column(LEAST, MOST)[:30]
        data = [[few[i >= size // 3] for i in range(size)], [few[i % 30] for i in column(0, 10**6)]]
    elif kind.startswith("turned"):
        pairs = sorted(zip(column(0, size // 8), column(0, size), strict=True))
        if kind == "turned but for one":
            pairs = [*pairs[1:], pairs[0]]
        data = [[second for _, second in pairs], [first for first, _ in pairs]]
        diffs = [column(-1, 1)]
    elif kind == "too many hashes":
        few = column(LEAST, MOST)[: size // 2]
        data = [[few[i % len(few)] for i in column(0, 10**6)] for _ in range(2)]
    else:
        nd = 0
        data = []
        diffs = [column(-(2**40), 2**40)]
    times = [column(0, 1) if kind in ("wide", "no key") else [4] * size, [0] * size]
    rows = list(zip(*data, *times, *diffs, strict=True))
    middle = size // 3
    chunks = [rows[:middle], [], rows[middle:]]
    check(chunks, nd, 2, nf, 1, True)
    check_combined(chunks, nd, 2, nf, 1)


@pytest.mark.parametrize(
    ("kind", "many"),
    [
        ("different", False), ("in pairs", True), ("a frequent row", True), ("pairs by an old epoch", True),
        ("pairs but for epochs", False),
    ],
)  # fmt: skip
def test_many_rows_are_added_up_where_many_are_equal(kind: str, many: bool) -> None:
    size = 70_000
    generator = np.random.default_rng(1)
    words = generator.integers(LEAST + 1, MOST, size)
    if kind.startswith(("in pairs", "pairs")):
        words[size // 2 :] = generator.permutation(words[: size // 2])
    elif kind == "a frequent row":
        words[generator.choice(size, size // 2, replace=False)] = 7
    epochs = np.arange(size) if kind.startswith("pairs") else np.zeros(size, np.int64)
    rows = np.stack([words, words ^ 5, epochs, np.ones(size, np.int64)])
    chunks = [np.ascontiguousarray(part) for part in (rows[:, :20_000], rows[:, 20_000:20_001], rows[:, 20_001:])]
    heads = [head_of_array(part, part.shape[1]) for part in chunks]
    low = 0 if kind == "pairs but for epochs" else size
    _, head = combine(np.array([head[1] for head in heads]), 2, 1, 1, low)
    assert head[0] == (len(np.unique(words)) if many else FEW_EQUAL)


def test_a_sum_that_only_overflows_in_between_is_exact() -> None:
    for filler in (0, 100):
        rows = [(1, 0, MOST), (1, 0, MOST), (1, 0, -MOST), (1, 0, LEAST)] + [(i, 0, 1) for i in range(2, 2 + filler)]
        check([rows], 1, 1, 1, 0, False)
        check([rows[:2]], 1, 1, 1, 0, False)


def test_repeated_constant_diffs_at_the_edge_of_a_word() -> None:
    for repeats in (2, 64):
        for diff in (2**63 // repeats, 2**63 // repeats - 1, -(2**63) // repeats, -(2**63) // repeats - 1):
            for hashes in (False, True):
                key = (2**63 - 1, -(2**63)) if hashes else (0, 1)
                rows = [(key[0], 0, 0, diff)] * repeats + [(key[1], 5, 0, diff)]
                check([rows], 2, 1, 1, 0, False)


def test_no_chunks_make_no_rows() -> None:
    buf, head = build(np.empty(0, np.int64), 2, 1, 1, 0)
    assert head[:3].tolist() == [0, head[1], 4]
    assert len(buf) == 0


@pytest.mark.parametrize("keys", [3, 64, 300, 1000, 4000])
@pytest.mark.parametrize("diffs", [[1], [1, -1], [0], [3, -2, 0], [2**23, -(2**23)], [2**40, -1]])
def test_many_rows_of_few_keys_are_added_up(keys: int, diffs: list[int]) -> None:
    """As many rows as there may be keys: with all keys present, with some missing, and with some cancelled."""
    generator = random.Random(keys)
    rows = [(7, generator.randrange(keys) - keys // 2, 5, generator.choice(diffs)) for _ in range(2 * keys + 50)]
    check([rows[: keys // 2], rows[keys // 2 :]], 2, 1, 1, 0, constants=True)
    undone = [(*row[:3], -row[3]) for row in rows[: keys + 20]]
    check([rows, undone], 2, 1, 1, 0, constants=False)
    check([rows, [(*row[:3], -row[3]) for row in rows]], 2, 1, 1, 0, constants=True)
