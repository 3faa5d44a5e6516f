"""A merge is the consolidated union of its inputs at compacted times, however it is cut into pieces."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.merge.merge import merge_rows
from tektite.trace.batch import Batch, Frontier
from tektite.trace.merge import DiffOverflow, Merge, advance
from tests.support.narrow import check_memory
from tests.support.nightly import by_day_or_night
from tests.support.rows_twin import LEAST, MOST, Row, Rows, consolidate, read, stored, varying, words

Shape = tuple[int, int, int]


def representative(time: Row, frontier: Sequence[Row]) -> Row:
    """rep_F(t): the meet over f of the join of t and f, as the definition has it."""
    if not frontier:
        return time
    joins = [tuple(map(max, time, element)) for element in frontier]
    return tuple(map(min, *joins)) if len(joins) > 1 else joins[0]


def compacted(rows: Sequence[Row], nd: int, nt: int, frontier: Sequence[Row]) -> list[Row]:
    return [(*row[:nd], *representative(row[nd : nd + nt], frontier), *row[nd + nt :]) for row in rows]


def batch(rows: Sequence[Row], shape: Shape, constants: bool = True, upper: Frontier = ((MOST,),)) -> Batch:
    columns = sum(shape)
    made = Rows(rows, columns, [j for j in range(columns) if constants and len({row[j] for row in rows}) <= 1])
    return Batch(made.head, made, ((0,) * shape[1],), upper, ((0,) * shape[1],))


def frontier_words(frontier: Sequence[Row], nt: int) -> np.ndarray:
    return np.array(frontier, np.int64).reshape(len(frontier), nt)


def check(
    a: Sequence[Row], b: Sequence[Row], shape: Shape, frontier: Sequence[Row], fuels: Sequence[int], **options: object
) -> None:
    """Both inputs consolidated; the merge at once and the merge in steps equal the twin and store what varies."""
    nd, nt, _ = shape
    left, right = batch(a, shape, **options), batch(b, shape, **options)  # type: ignore[arg-type]
    expected = consolidate(compacted([*a, *b], nd, nt, frontier), nd + nt)
    words = frontier_words(frontier, nt)
    buf, head = merge_rows(left.at, right.at, *shape, words)
    if expected is None:
        assert head[0] == -1
    else:
        assert read(head) == expected
        assert stored(head) == varying(expected)
        check_memory(buf, head)
    for fuel in fuels:
        merge = Merge(left, right, shape, words, tuple(frontier))
        steps = 0
        if expected is None:
            with pytest.raises(DiffOverflow):
                while not merge.done:
                    advance([merge], fuel)
            continue
        while not merge.done:
            advance([merge], fuel)
            steps += 1
            assert steps <= 10 * (len(a) + len(b)) // fuel + 10
        result = merge.result()
        assert read(result.head) == expected
        assert stored(result.head) == varying(expected)
        assert result.n == len(expected)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[Row], list[Row], Shape, list[Row], bool]:
    nd, nt, nf = draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    generator = random.Random(draw(st.integers(0, 2**32)))
    pools = [draw(st.lists(words, min_size=1, max_size=3)) for _ in range(nd)]
    for pool in pools:
        pool.extend(generator.randrange(100) for _ in range(draw(st.sampled_from([0, 0, 2, 50]))))
    diffs = draw(st.sampled_from([[1], [1, -1], [1, -1], [1, -1, 0], [MOST, LEAST, 1, -1], [5, 2**62, -(2**62)]]))

    def rows() -> list[Row]:
        size = draw(st.sampled_from([0, 1, 2, 5, 20, 80]))
        times = [list(range(draw(st.sampled_from([1, 1, 2, 4])))) for _ in range(nt)]
        base = draw(st.sampled_from([0, 0, 2]))
        columns = [*pools, *times, *([diffs] * nf)]
        made = [tuple(generator.choice(pool) for pool in columns) for _ in range(size)]
        made = [(*row[:nd], row[nd] + base, *row[nd + 1 :]) for row in made]
        return consolidate(made, nd + nt) or []

    frontier = [tuple(generator.randrange(5) for _ in range(nt)) for _ in range(draw(st.integers(0, 3)))]
    frontier = [
        f for f in frontier if not any(f != g and all(x >= y for x, y in zip(f, g, strict=True)) for g in frontier)
    ]
    return rows(), rows(), (nd, nt, nf), list(dict.fromkeys(frontier)), draw(st.booleans())


@settings(max_examples=by_day_or_night(160, 800), deadline=None)
@given(inputs())
def test_merge_equals_its_twin(case: tuple[list[Row], list[Row], Shape, list[Row], bool]) -> None:
    a, b, shape, frontier, constants = case
    check(a, b, shape, frontier, (1, 7, 1000), constants=constants)


def rows_of(size: int, seed: int, keys: int, epochs: int, rounds: int) -> list[Row]:
    generator = random.Random(seed)
    rows = (
        (generator.randrange(keys), generator.randrange(3), generator.randrange(epochs), generator.randrange(rounds))
        for _ in range(size)
    )
    return consolidate([(*row, generator.choice([1, 1, 1, -1])) for row in rows], 4) or []


@pytest.mark.parametrize("keys", [1, 3, 100, 100_000])
@pytest.mark.parametrize(("epochs", "rounds"), [(1, 1), (1, 8), (1000, 1), (8, 8), (300, 300)])
@pytest.mark.parametrize("frontier", [[], [(4, 0)], [(2000, 0)], [(3, 5), (5, 2)]])
def test_large_merges_equal_their_twin(keys: int, epochs: int, rounds: int, frontier: list[Row]) -> None:
    large, small = by_day_or_night(2500, 9000), by_day_or_night(1200, 4000)
    a, b = rows_of(large, 1, keys, epochs, rounds), rows_of(small, 2, keys, epochs, rounds)
    check(a, b, (2, 2, 1), frontier, (1000,))


@pytest.mark.parametrize("overlap", [0, 1, 700])
@pytest.mark.parametrize("large", [0, 1 << 40])
def test_runs_of_rows_from_one_input_are_all_there(overlap: int, large: int) -> None:
    chance = random.Random(overlap)
    sides: tuple[list[Row], list[Row]] = ([], [])
    key = 0
    for run in range(12):
        length = chance.randrange(1, by_day_or_night(1500, 4000))
        word = large if run == 9 else chance.randrange(100)  # a column that has to be widened late
        sides[run % 2].extend((key + i, word + i % 5, 0, 1) for i in range(length))
        key += max(length - overlap, 1) if run % 3 else length
    a, b = (consolidate(side, 3) or [] for side in sides)
    check(a, b, (2, 1, 1), [], (1, 1000, 5000))
    check(a, [(*row[:3], -1) for row in b], (2, 1, 1), [(3,)], (999,))


def test_a_diff_column_that_stays_constant_until_late_is_complete() -> None:
    a = [(i, 0, 1, 0) for i in range(5000)]
    b = [(i, 0, 1, 0) for i in range(4990, 10_000)]
    check(a, b, (1, 1, 2), [], (1, 7, 1000))
    cancelled = [(i, 0, -1, 0) for i in range(5000)]
    check(a, cancelled, (1, 1, 2), [], (1, 1000))


def test_a_sum_that_only_overflows_in_between_is_exact() -> None:
    a = [(1, 0, MOST), (1, 1, MOST), (2, 0, 1)]
    b = [(1, 2, -MOST), (1, 3, LEAST), (2, 5, 1)]
    check(a, b, (1, 1, 1), [(9,)], (1, 2, 3))
    check(a, b[2:], (1, 1, 1), [(9,)], (1, 2, 3))


def test_epochs_known_to_be_compacted_are_not_stored_on_the_way() -> None:
    rows = [(i, i % 7, 1) for i in range(300)]
    left, right = batch(rows, (1, 1, 1), upper=((7,),)), batch(rows, (1, 1, 1), upper=((7,),))
    merge = Merge(left, right, (1, 1, 1), frontier_words([(6,)], 1), ((6,),))
    assert len(merge._rooms) == 2
    advance([merge])
    assert merge.done
    assert read(merge.result().head) == [(i, 6, 2) for i in range(300)]


def test_several_merges_advance_in_one_call() -> None:
    rows = [(i, 0, 1) for i in range(3000)]
    merges = [
        Merge(batch(rows[:size], (1, 1, 1)), batch(rows, (1, 1, 1)), (1, 1, 1), frontier_words([], 1), ())
        for size in (10, 3000)
    ]
    assert advance(merges, 3100) == 1
    assert [merge.done for merge in merges] == [True, False]
    assert advance(merges, 3100) == 2
    assert merges[1].result().n == 3000
