"""Records that a kernel sorts for one key: few or many, in order or not, told apart by their first word or a later one."""

from __future__ import annotations

import numpy as np
import pytest

from tektite.kernels.layout.records import sort_records


@pytest.mark.parametrize("many", [0, 1, 2, 12, 13, 24, 25, 100, 1000])
@pytest.mark.parametrize("values", [2, 50, 10**6])
@pytest.mark.parametrize("sorted_by", [1, 2, 3])
def test_records_are_sorted_by_their_first_words_and_stay_whole(many: int, values: int, sorted_by: int) -> None:
    rng = np.random.default_rng(many + values)
    records = rng.integers(-values, values, (many, 3))
    records = np.column_stack([records, np.arange(many)])
    found = records.copy().ravel()
    sort_records(found, many, 4, sorted_by)
    order = np.lexsort(tuple(records[:, c] for c in reversed(range(sorted_by))))
    assert found.reshape(many, 4).tolist() == records[order].tolist()  # both are stable


@pytest.mark.parametrize("disturbed", [False, True])
def test_records_that_come_in_order_stay_so(disturbed: bool) -> None:
    records = np.column_stack([np.arange(500) // 3, np.arange(500)])
    if disturbed:
        records[-1] = records[0] - 1
    found = records.copy().ravel()
    sort_records(found, 500, 2, 2)
    assert found.reshape(500, 2).tolist() == sorted(records.tolist())
