"""Times form a lattice, frontiers are antichains, and representatives are correct and optimal.

The two theorems are those of Shared Arrangements, Appendix A: a time and its representative compare alike with every time
beyond the frontier, and two times that compare alike with all of these have one representative.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tektite.trace.times import (
    Frontier,
    Time,
    antichain,
    before,
    beyond,
    join,
    meet,
    passed_frontier,
    representative,
    running_frontier,
)

SIDE = 4
"""Coordinates are below this, and the grid that stands for all times goes one further: rounding up stays inside."""

dimensions = pytest.mark.parametrize("coordinates", [1, 2, 3, 4])


def times(coordinates: int) -> st.SearchStrategy[Time]:
    return st.tuples(*[st.integers(0, SIDE - 1)] * coordinates)


def frontiers(coordinates: int) -> st.SearchStrategy[Frontier]:
    return st.lists(times(coordinates), min_size=1, max_size=4).map(antichain)


def grid(coordinates: int) -> list[Time]:
    return list(product(range(SIDE + 1), repeat=coordinates))


@dimensions
@given(data=st.data())
def test_before_is_a_partial_order(coordinates: int, data: Any) -> None:
    a, b, c = (data.draw(times(coordinates)) for _ in range(3))
    assert before(a, a)
    assert not (before(a, b) and before(b, a)) or a == b
    assert not (before(a, b) and before(b, c)) or before(a, c)


@dimensions
@given(data=st.data())
def test_join_and_meet_form_a_lattice(coordinates: int, data: Any) -> None:
    a, b, c = (data.draw(times(coordinates)) for _ in range(3))
    for this, other in ((join, meet), (meet, join)):
        assert this(a, b) == this(b, a)
        assert this(a, this(b, c)) == this(this(a, b), c)
        assert this(a, a) == a
        assert this(a, other(a, b)) == a
    assert before(a, join(a, b)) and before(meet(a, b), a)
    assert before(a, b) == (join(a, b) == b) == (meet(a, b) == a)
    assert before(join(a, b), c) == (before(a, c) and before(b, c))
    assert before(c, meet(a, b)) == (before(c, a) and before(c, b))


@dimensions
@given(data=st.data())
def test_an_antichain_is_minimal_and_has_the_same_times_beyond_it(coordinates: int, data: Any) -> None:
    given_times = data.draw(st.lists(times(coordinates), max_size=6))
    found = antichain(given_times)
    assert set(found) <= set(given_times)
    assert list(found) == sorted(set(found))
    assert not any(before(a, b) for a in found for b in found if a != b)
    assert antichain(reversed(given_times)) == found == antichain(found)
    for time in grid(coordinates) if coordinates < 4 else given_times:
        assert beyond(time, found) == any(before(t, time) for t in given_times)


def test_nothing_is_beyond_the_empty_frontier() -> None:
    assert antichain([]) == ()
    assert not beyond((0, 0), ())


@dimensions
@given(data=st.data())
def test_a_representative_is_correct(coordinates: int, data: Any) -> None:
    """It compares with everything beyond the frontier as the time does."""
    time, frontier = data.draw(times(coordinates)), data.draw(frontiers(coordinates))
    found = representative(time, frontier)
    for later in grid(coordinates):
        if beyond(later, frontier):
            assert before(time, later) == before(found, later)


@dimensions
@given(data=st.data())
def test_a_representative_is_optimal(coordinates: int, data: Any) -> None:
    """Times that nothing beyond the frontier can tell apart have the same one."""
    frontier = data.draw(frontiers(coordinates))
    later = [time for time in grid(coordinates) if beyond(time, frontier)]
    classes: dict[tuple[bool, ...], Time] = {}
    for time in data.draw(st.lists(times(coordinates), min_size=2, max_size=8)):
        alike = tuple(before(time, t) for t in later)
        found = representative(time, frontier)
        assert classes.setdefault(alike, found) == found
        assert representative(found, frontier) == found


@dimensions
@given(data=st.data())
def test_a_later_frontier_may_follow_an_earlier_one(coordinates: int, data: Any) -> None:
    """Compacting twice is compacting to the later frontier: merges may take whatever frontier holds when they start."""
    time, first = data.draw(times(coordinates)), data.draw(frontiers(coordinates))
    second = antichain(join(a, b) for a in first for b in data.draw(frontiers(coordinates)))
    assert representative(representative(time, first), second) == representative(time, second)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@given(data=st.data())
def test_the_frontiers_of_a_sweep_are_what_can_still_arrive(depth: int, data: Any) -> None:
    """Moments run in lexicographic order, each with all epochs of the sweep; later sweeps may say anything."""
    low = data.draw(st.integers(0, 2))
    high = data.draw(st.integers(low + 1, low + 3))
    moment = data.draw(times(depth))
    moments = grid(depth)
    next_sweep = [(high, *m) for m in moments]
    from_here = [(e, *m) for m in moments if m >= moment for e in range(low, high)]
    after_it = [(e, *m) for m in moments if m > moment for e in range(low, high)]
    assert running_frontier(low, high, moment) == antichain(from_here + next_sweep)
    assert passed_frontier(low, high, moment) == antichain(after_it + next_sweep)
    assert not any(beyond((e, *moment), passed_frontier(low, high, moment)) for e in range(low, high))
