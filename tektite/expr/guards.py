"""Guards: a necessary condition of a filter, as intervals of the words of one column.

Promise: a row that passes the filter, or on which the filter fails, has a word of the guard's intervals in the guard's column.
The reverse is not promised, so whoever chooses rows by a guard still applies the filter. A guard is found in conjunctions,
alternatives, comparisons with constants and sets of constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tektite.expr.steps import CONSTANT, INPUT, Step
from tektite.kernels.expr import steps as ops
from tektite.values.words import NULL

WordRange = tuple[int, int]
Guard = tuple[int, tuple[WordRange, ...]]
"""A column, and the intervals (first word, last word) that its words lie in, in order. They neither overlap nor touch."""

MOST = 2**63 - 1
FEW = 32
"""The most intervals of a guard. Beyond it, one from the first word to the last stands for all, so that an index of guards is not
much larger than the number of filters.
"""


def guard_of(predicate: Step, word_of: Callable[[Any], int]) -> Guard | None:
    """The guard of a filter whose constant parts have been computed; None if it has none. `word_of` gives the word of a constant.

    Where another part of a conjunction may fail, a comparison with NULL does not decide, so that rows with NULL count.
    """
    found = _guard(predicate, word_of)
    if found is None or not predicate.fallible:
        return found
    column, intervals = found
    return column, _joined([(NULL, NULL), *intervals])


def either(guards: Sequence[Guard | None]) -> Guard | None:
    """The guard of rows that meet one of several; None if they are not all of one column.

    >>> either([(0, ((1, 1),)), (0, ((2, 5), (9, 9)))])
    (0, ((1, 5), (9, 9)))
    """
    found = [guard for guard in guards if guard is not None]
    if len(found) == len(guards) == 1:
        return found[0]
    columns = {column for column, _ in found}
    if len(found) < len(guards) or len(columns) != 1:
        return None
    return columns.pop(), _joined([interval for _, intervals in found for interval in intervals])


def _guard(step: Step, word_of: Callable[[Any], int]) -> Guard | None:
    """The guard that holds where a step is true, or NULL for another reason than a NULL in the guard's column."""
    if step.op == ops.AND:
        return _narrower(_parts(step), word_of)
    if step.op in (ops.OR, ops.COALESCE):
        return either([_guard(part, word_of) for part in _parts(step)])
    if step.op in (ops.EQ, ops.LT, ops.LE):
        return _compared(step, word_of)
    if step.op == ops.MEMBER:
        value, missing = step.args
        if missing.op != CONSTANT or missing.extra == NULL:  # a set with NULL is NULL for all that it does not name
            return None
        words = [word_of(constant) for constant in step.extra]
        return _on_column(value, [(word, word) for word in words])
    if step.op == ops.IS_NULL:
        return _on_column(step.args[0], [(NULL, NULL)])
    if step.op == INPUT:  # a column of truth values
        return step.extra, ((1, 1),)
    return None


def _parts(step: Step) -> list[Step]:
    """The parts of a chain of AND or OR, which may be too long for recursion."""
    parts: list[Step] = []
    waiting = [step]
    while waiting:
        part = waiting.pop()
        if part.op == step.op:
            waiting.extend(reversed(part.args))
        else:
            parts.append(part)
    return parts


def _compared(step: Step, word_of: Callable[[Any], int]) -> Guard | None:
    left, right = step.args
    if left.op == CONSTANT:
        word = word_of(left.extra)
        lowest = word if step.op != ops.LT else word + 1
        interval = (lowest, word if step.op == ops.EQ else MOST)
        other = right
    elif right.op == CONSTANT:
        word = word_of(right.extra)
        highest = word if step.op != ops.LT else word - 1
        interval = (word if step.op == ops.EQ else NULL + 1, highest)
        other = left
    else:
        return None
    return None if word == NULL else _on_column(other, [interval])


def _on_column(step: Step, intervals: Iterable[WordRange]) -> Guard | None:
    """The guard of a column whose words lie in some intervals, or of one whose -0.0 has been made 0.0."""
    if step.op == ops.FLOAT_KEY and step.args[0].op == INPUT:
        wanted = list(intervals)
        if any(first <= 0 <= last for first, last in wanted):
            wanted.append((-1, -1))  # the word of -0.0
        return step.args[0].extra, _joined(wanted)
    if step.op != INPUT:
        return None
    return step.extra, _joined(intervals)


def _narrower(parts: list[Step], word_of: Callable[[Any], int]) -> Guard | None:
    """Of the guards of a conjunction's parts, that of the column with the fewest words; those of one column are intersected."""
    guards: dict[int, tuple[WordRange, ...]] = {}
    for part in parts:
        found = _guard(part, word_of)
        if found is not None:
            column, intervals = found
            guards[column] = intervals if column not in guards else _both(guards[column], intervals)
    return min(guards.items(), key=lambda guard: sum([last - first for first, last in guard[1]]), default=None)


def _both(one: tuple[WordRange, ...], other: tuple[WordRange, ...]) -> tuple[WordRange, ...]:
    """The words that are in intervals of both."""
    return _joined([(max(a, c), min(b, d)) for a, b in one for c, d in other])


def _joined(intervals: Iterable[WordRange]) -> tuple[WordRange, ...]:
    """Intervals in order. Empty ones are left out; those that overlap or touch are one."""
    joined: list[WordRange] = []
    for first, last in sorted([interval for interval in intervals if interval[0] <= interval[1]]):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined) if len(joined) <= FEW else ((joined[0][0], joined[-1][1]),)
