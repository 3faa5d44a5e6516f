"""Times, their partial order, and frontiers.

A time is a tuple of integers (epoch, round, round, ...), compared coordinate by coordinate: `a` is before `b` if it is in
every coordinate. Times of one length form a lattice. A frontier is an antichain of times, as a sorted tuple: every future
update is at or after one of its elements. The empty frontier means that there are no future updates.

This module imports no other module of Tektite.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from operator import le

Time = tuple[int, ...]
Frontier = tuple[Time, ...]


def before(a: Time, b: Time) -> bool:
    """Whether a ≤ b in the product order.

    >>> before((1, 2), (1, 3)), before((1, 2), (2, 0))
    (True, False)
    """
    return all(map(le, a, b))


def join(a: Time, b: Time) -> Time:
    """The least time that is after both.

    >>> join((1, 2), (2, 0))
    (2, 2)
    """
    return tuple(map(max, a, b))


def meet(a: Time, b: Time) -> Time:
    """The greatest time that is before both.

    >>> meet((1, 2), (2, 0))
    (1, 0)
    """
    return tuple(map(min, a, b))


def antichain(times: Iterable[Time]) -> Frontier:
    """The minimal elements of some times.

    >>> antichain([(3, 7), (4, 2), (4, 8)])
    ((3, 7), (4, 2))
    """
    distinct = set(times)
    if len(distinct) < 2:
        return tuple(distinct)
    found: list[Time] = []
    # What is before a time comes first in their order, and a minimal element of it is found by then.
    for time in sorted(distinct):
        for other in found:
            if before(other, time):
                break
        else:
            found.append(time)
    return tuple(found)


def beyond(time: Time, frontier: Frontier) -> bool:
    """Whether some element of the frontier is before `time`, so that it can still arrive.

    >>> beyond((4, 3), ((3, 7), (4, 2))), beyond((3, 3), ((3, 7), (4, 2)))
    (True, False)
    """
    return any(before(f, time) for f in frontier)


def representative(time: Time, frontier: Frontier) -> Time:
    """The time that compares with everything beyond `frontier` exactly as `time` does, and is the same for all such times:
    the meet of its joins with the frontier's elements (Shared Arrangements, appendix A).

    >>> representative((3, 7), ((5, 0),)), representative((4, 2), ((5, 0),))
    ((5, 7), (5, 2))
    """
    return reduce(meet, (join(time, f) for f in frontier))


@cache
def first_frontier(times: int) -> Frontier:
    """The times from the first one on, of so many coordinates: one object for all that have nothing yet.

    >>> first_frontier(2)
    ((0, 0),)
    """
    return ((0,) * times,)


def running_frontier(low: int, high: int, moment: tuple[int, ...]) -> Frontier:
    """The future times while a sweep of the epochs low ≤ e < high runs a scope's `moment` (its tuple of rounds).

    Rounds run in lexicographic order. So the future times are this moment, the later ones of each enclosing round, and any
    moment of the epochs from `high` on.

    >>> running_frontier(3, 5, (2, 4))
    ((3, 2, 4), (3, 3, 0), (5, 0, 0))
    """
    depth = len(moment)
    if depth == 1 and low < high:  # most loops: two times, unless the first is before the other
        return ((low, *moment), (high, 0)) if moment[0] > 0 else ((low, 0),)
    times = [(low, *moment), (high,) + (0,) * depth]
    times += [(low, *moment[:i], moment[i] + 1) + (0,) * (depth - i - 1) for i in range(depth - 1)]
    return antichain(times)


def passed_frontier(low: int, high: int, moment: tuple[int, ...]) -> Frontier:
    """The future times once everything at `moment` is done.

    >>> passed_frontier(3, 5, (2, 4)), passed_frontier(3, 5, ())
    (((3, 2, 5), (3, 3, 0), (5, 0, 0)), ((5,),))
    """
    depth = len(moment)
    if depth == 1 and low < high:
        return (low, moment[0] + 1), (high, 0)
    times = [(low, *moment[:i], moment[i] + 1) + (0,) * (depth - i - 1) for i in range(depth)]
    return antichain([(high,) + (0,) * depth, *times])
