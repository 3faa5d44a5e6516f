"""The join kernel gives exactly the pairs that a nested loop gives, whatever the arities, batches and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.operators.join import JOIN_STATE, join
from tests.support.kernel_rows import Row, Rows, check_constants, consolidate, read, table
from tests.support.nightly import by_day_or_night

NULL = -(2**63)


def run(
    a: list[Rows],
    b: list[Rows],
    kc: int,
    nd: tuple[int, int],
    nts: tuple[int, int],
    nt: int,
    spec: list[int],
    lo: int,
    limit: int,
    flags: int,
) -> list[Row]:
    state = np.zeros(JOIN_STATE, np.int64)
    out: list[Row] = []
    ta, tb = table(a), table(b)
    for _ in range(100_000):
        buf, head = join(
            ta, tb, kc, nd[0], nd[1], nts[0], nts[1], nt, np.array(spec, np.int64), lo, limit, flags, state
        )
        assert 0 <= head[0] <= limit
        assert state[0] == 1 or head[0] > 0
        check_constants(head, range(len(spec), len(spec) + nt + 1))
        out += read(head)
        del buf
        if state[0] == 1:
            return out
    raise AssertionError("the join does not end")


def twin(
    a: list[list[Row]],
    b: list[list[Row]],
    kc: int,
    nd: tuple[int, int],
    nts: tuple[int, int],
    nt: int,
    spec: list[int],
    lo: int,
    flags: int,
) -> list[Row]:
    out = []
    for x in (r for part in a for r in part):
        for y in (r for part in b for r in part):
            if x[:kc] != y[:kc] or (NULL in x[:kc] and not flags & 1):
                continue
            data = [x[c] if c < nd[0] else y[c - nd[0]] for c in spec]
            tx = (*x[nd[0] : nd[0] + nts[0]], *[0] * (nt - nts[0]))
            ty = (*y[nd[1] : nd[1] + nts[1]], *[0] * (nt - nts[1]))
            times = [max(p) for p in zip(tx, ty, strict=True)]
            times[0] = max(times[0], lo)
            out.append((*data, *times, x[-1] * y[-1]))
    return out


@st.composite
def joins(draw: st.DrawFn) -> tuple:
    kc = draw(st.integers(0, 3))
    nd = (kc + draw(st.integers(0, 2)), kc + draw(st.integers(0, 2)))
    nt = draw(st.integers(1, 3))
    nts = draw(st.sampled_from([(nt, nt), (1, nt), (nt, 1)]))
    word = st.sampled_from([NULL, -5, 0, 1, 2, 3])

    def parts(nd: int, nt: int) -> list[list[Row]]:
        row = st.tuples(*[word] * nd, *[st.integers(0, 2)] * nt, st.sampled_from([-1, 1, 2]))
        return [
            consolidate(draw(st.lists(row, max_size=draw(st.sampled_from([1, 30])))))
            for _ in range(draw(st.integers(0, 3)))
        ]

    spec = draw(st.lists(st.integers(0, max(nd[0] + nd[1] - 1, 0)), max_size=4)) if nd[0] + nd[1] else []
    return (
        parts(nd[0], nts[0]),
        parts(nd[1], nts[1]),
        kc,
        nd,
        nts,
        nt,
        spec,
        draw(st.integers(0, 2)),
        draw(st.sampled_from([1, 7, 1000])),
        draw(st.integers(0, 1)),
        draw(st.booleans()),
    )


@settings(max_examples=by_day_or_night(80, 400), deadline=None)
@given(joins())
def test_join_gives_the_pairs_of_a_nested_loop(case: tuple) -> None:
    a, b, kc, nd, nts, nt, spec, lo, limit, flags, fold = case
    rows_a = [Rows(p, nd[0] + nts[0] + 1, fold) for p in a]
    rows_b = [Rows(p, nd[1] + nts[1] + 1, fold) for p in b]
    got = run(rows_a, rows_b, kc, nd, nts, nt, spec, lo, limit, flags)
    assert sorted(got) == sorted(twin(a, b, kc, nd, nts, nt, spec, lo, flags))


@pytest.mark.parametrize("kc", [1, 2])
@pytest.mark.parametrize("few", [1, 40, 700])
def test_few_keys_are_found_in_many_rows(kc: int, few: int) -> None:
    random = np.random.default_rng(few)
    large = consolidate((int(k) >> 3, int(k) & 7, int(v), 0, 1) for k, v in random.integers(0, 40_000, (30_000, 2)))
    small = consolidate((int(k) >> 3, int(k) & 7, int(v), 4, 1) for k, v in random.integers(-50, 40_050, (few, 2)))
    index: dict[Row, list[Row]] = {}
    for r in large:
        index.setdefault(r[:kc], []).append(r)
    want = [(*x[:kc], x[2], y[2], 4, 1) for x in small for y in index.get(x[:kc], [])]
    spec = [*range(kc), 2, 5]
    for flip in (False, True):
        a, b = (large, small) if flip else (small, large)
        s = [*range(kc), 5, 2] if flip else spec
        got = run([Rows(a, 5)], [Rows(b, 5)], kc, (3, 3), (1, 1), 1, s, 0, 100_000, 0)
        assert sorted(got) == sorted(want)


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_one_key_with_many_rows_on_both_sides_is_cut(limit: int) -> None:
    a = [(1, v, v % 3, 1) for v in range(30)] + [(2, 0, 0, 1)]
    b = [(1, v, v % 2, 1) for v in range(50)] + [(2, 1, 0, 1), (2, 2, 0, 1)]
    got = run([Rows(a, 4)], [Rows(b, 4)], 1, (2, 2), (1, 1), 1, [0, 1, 3], 0, limit, 0)
    assert sorted(got) == sorted(twin([a], [b], 1, (2, 2), (1, 1), 1, [0, 1, 3], 0, 0))


@pytest.mark.parametrize("fold", [True, False])
def test_a_product_of_diffs_that_does_not_fit_is_flagged(fold: bool) -> None:
    a, b = Rows([(1, 0, 2**40)], 3, fold), Rows([(1, 0, 2**40)], 3, fold)
    state = np.zeros(JOIN_STATE, np.int64)
    _, head = join(table([a]), table([b]), 1, 1, 1, 1, 1, 1, np.array([0]), 0, 10, 0, state)
    assert head[0] == -1
