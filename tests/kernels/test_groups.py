"""Rows added up by key before they are sorted come to the same as rows that are sorted first."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tektite.kernels.operators.accumulate import COUNT_PRESENT, SUM_INT, accumulate
from tektite.kernels.operators.groups import NOT_WORTH_IT, accumulate_groups
from tests.support.kernel_rows import Row, Rows, consolidate, read
from tests.support.nightly import by_day_or_night

NULL = -(2**63)


def rows_of(chance: random.Random, count: int, groups: int, runs: bool, diffs: tuple[int, ...]) -> list[Row]:
    """Rows (key, key, value, value, epoch, diff): key columns of some groups, in runs or mixed, values with NULLs."""
    keys = [(chance.randrange(groups), chance.choice((NULL, 2**62, -3))) for _ in range(count)]
    if runs:
        keys.sort()
    extremes = (NULL, 0, 1, -1, 2**63 - 1, -(2**63) + 1, 2**32, -(2**32))
    return [
        (*key, chance.choice(extremes), chance.randrange(-5, 5), chance.choice((3, 4)), chance.choice(diffs))
        for key in keys
    ]


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("groups", [1, 7, 500])
@pytest.mark.parametrize("diffs", [(1,), (1, -1, 2), (0, 1000)])
def test_groups_come_to_the_same_as_rows(runs: bool, groups: int, diffs: tuple[int, ...]) -> None:
    chance = random.Random(repr((runs, groups, diffs)))
    rows = Rows(rows_of(chance, by_day_or_night(8_000, 20_000), groups, runs, diffs), 6)
    spec = np.array([2, 1, 0, COUNT_PRESENT, 2, SUM_INT, 2, COUNT_PRESENT, 3, SUM_INT, 3], np.int64)
    _, expected = accumulate(rows.at, 4, 1, spec)
    buffer, found = accumulate_groups(rows.at, 4, 1, spec)
    assert 0 < found[0] <= 6 * groups
    assert consolidate(read(found), 7) == consolidate(read(expected), 7)
    assert len(buffer)


def test_one_group_needs_no_key() -> None:
    rows = Rows([(5, 1, 9, 1)] * 3 + [(7, 1, 9, 1)], 4, fold=True)
    _, found = accumulate_groups(rows.at, 2, 1, np.array([0, SUM_INT, 0], np.int64))
    assert read(found) == [(9, 4, 22, 0)]


def test_keys_that_do_not_repeat_are_left_alone() -> None:
    rows = Rows([(i, 0, 1) for i in range(10_000)], 3)
    _, found = accumulate_groups(rows.at, 1, 1, np.array([1, 0], np.int64))
    assert found[0] == NOT_WORTH_IT


def test_multiplicities_that_may_not_add_up_are_left_alone() -> None:
    rows = Rows([(1, 0, 2**30)] * 5_000, 3, fold=False)
    _, found = accumulate_groups(rows.at, 1, 1, np.array([1, 0, SUM_INT, 0], np.int64))
    assert found[0] == NOT_WORTH_IT
