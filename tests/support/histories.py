"""A checker of histories: whether transactions and subscriptions could have happened one after the other, in an order that
agrees with the clock.

A history is a list of `Observed` transactions over registers. Every write has a value of its own, and follows a read of the same
register in its transaction, so that the versions of each register form a chain. Then the order that transactions need is a graph:

| edge | because |
|---|---|
| writer → reader | the reader saw the value |
| writer → next writer | of the same register |
| reader → next writer | the reader saw the value before |
| earlier → later | the earlier was acknowledged before the later was begun |

The history is strictly serialisable if and only if the graph has no cycle and each chain has no fork.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count


@dataclass
class Observed:
    """What one client knows of one transaction, or of what a subscription told as of one time."""

    name: str
    begun: float | None
    """When it was begun; None of what a subscription told, which may be of any time before."""
    ended: float | None
    """When its client knew that it had happened; None if it is not known whether it has."""
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    after: str | None = None
    """The observation of the same client that this one must follow."""


class Violation(AssertionError):
    """The history is not strictly serialisable."""


def check(history: list[Observed], initial: dict[int, int], failed: set[int]) -> None:
    """Raise a `Violation` unless a history could have happened in one order. `failed` are values of refused transactions."""
    writer: dict[tuple[int, int], str] = {}
    following: dict[tuple[int, int], str] = {}
    happened = _happened(history)
    edges: dict[str, set[str]] = defaultdict(set)
    for one in happened:
        for key, value in one.writes.items():
            writer[key, value] = one.name
            before = (key, one.reads[key])
            if before in following:
                raise Violation(
                    f"lost update: {following[before]} and {one.name} both follow value {before[1]} of register {key}"
                )
            following[before] = one.name
    for one in happened:
        for key, value in one.reads.items():
            if value in failed:
                raise Violation(f"{one.name} read {value} of register {key}, which a refused transaction wrote")
            source = writer.get((key, value))
            if source is None and initial.get(key) != value:
                raise Violation(f"{one.name} read {value} of register {key}, which nobody wrote")
            if source is not None and source != one.name:
                edges[source].add(one.name)
            next_writer = following.get((key, value))
            if next_writer is not None and next_writer != one.name:
                edges[one.name].add(next_writer)
        if one.after is not None:
            edges[one.after].add(one.name)
    _add_clock(happened, edges)
    _refuse_cycles(edges)


def _happened(history: list[Observed]) -> list[Observed]:
    """The transactions that count: acknowledged ones, and those without an acknowledgement whose values somebody saw."""
    seen = {(key, value) for one in history if one.ended is not None for key, value in one.reads.items()}
    pending = [one for one in history if one.ended is None]
    found = [one for one in history if one.ended is not None]
    changed = True
    while changed:
        changed = False
        for one in list(pending):
            if any(item in seen for item in one.writes.items()):
                pending.remove(one)
                found.append(one)
                seen |= set(one.reads.items())
                changed = True
    return found


def _add_clock(history: list[Observed], edges: dict[str, set[str]]) -> None:
    """Edges from each transaction to those that were begun after its end, by way of moments."""
    events = sorted(
        [(one.ended, 0, one.name) for one in history if one.ended is not None]
        + [(one.begun, 1, one.name) for one in history if one.begun is not None]
    )
    moments = (f"moment {number}" for number in count())
    last = next(moments)
    for _, is_begin, name in events:
        if is_begin:
            edges[last].add(name)
        else:
            later = next(moments)
            edges[last].add(later)
            edges[name].add(later)
            last = later


def _refuse_cycles(edges: dict[str, set[str]]) -> None:
    state: dict[str, int] = {}
    for start in list(edges):
        if state.get(start):
            continue
        path, stack = [start], [iter(sorted(edges[start]))]
        state[start] = 1
        while stack:
            for name in stack[-1]:
                if state.get(name) == 1:
                    cycle = [each for each in path[path.index(name) :] if not each.startswith("moment")]
                    raise Violation("a cycle: " + " → ".join([*cycle, cycle[0]]))
                if name not in state:
                    state[name] = 1
                    path.append(name)
                    stack.append(iter(sorted(edges.get(name, ()))))
                    break
            else:
                state[path.pop()] = 2
                stack.pop()
