"""Reductions of ordered groups in which a row's result depends on the rows near it: windows.

A change of a large group reads and computes what lies around it, not the group. The arrangement of the input has the rows of
a group in their order, so the place of a change is found by binary search in each batch. A stretch of rows around it is
evaluated as it was and as it is, and the difference is the change of the result. The stretch grows until it has a row on each
side that the change does not touch, or the group's end, and until no result between depends on rows outside. A group is
evaluated whole if it is small, fails, has many changes at once, or has a NULL in its order that words sort to the other end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.function_reduce import FunctionQuestion, GroupsReduce
from tektite.dataflow.reduce import ReductionPart
from tektite.errors import IncorrectError
from tektite.kernels.seek.stretch import has_word, row_bounds
from tektite.trace.addresses import addresses
from tektite.trace.batch_memory import FEW_ROWS
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version
from tektite.values.words import NULL, Words

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary

LARGE = 1 << 12
"""Rows of a group from which on its changes are looked at one by one."""
CHANGE = 1 << 11
"""Rows of a group that are evaluated whole in the time that one change takes: about two milliseconds."""
FIRST_STRETCH = 32
"""Rows on each side of a change that are read first: as many as one seek is worth."""


@dataclass(frozen=True)
class Stretch:
    """Some rows of a group, one after the other in the function's order, each as often as it is there.

    `begins` and `ends` say whether the group does so with it. Rows `place[0]`..`place[1]`-1 are equal to the one that changes.
    """

    rows: Words
    begins: bool
    ends: bool
    place: tuple[int, int]


@dataclass(frozen=True)
class NearResults:
    """The results for a stretch: for each row its value columns; whether rows outside of the stretch have no influence on it; and
    whether the row that changes has.
    """

    words: Words
    certain: Words
    touched: Words


class NearFunction(Protocol):
    """A function of groups that can be evaluated for a stretch of an ordered group."""

    @property
    def backward(self) -> bool:
        """Whether its order is the reverse of that of the arrangement."""

    @property
    def nulls_apart(self) -> tuple[int, ...]:
        """Columns of its order in which NULL has to stand at another end than its word."""

    @property
    def to_end(self) -> bool:
        """Whether a change touches all rows behind it."""

    def near(
        self, stretch: Stretch, earlier: Callable[[Words], Words | None], dictionary: Dictionary
    ) -> NearResults | None:
        """The results for a stretch, or None if a longer one is needed. `earlier` gives the results that a row has had, if all
        rows that are equal to it have the same.
        """


class KeyRows:
    """The rows of a group in a version, and what has been added to it since."""

    def __init__(self, version: Version, key: Words, width: int, low: int) -> None:
        self.version = version
        self.width = width
        self.low = low
        self.first = self._bounds(key, 0)
        self.last = self._bounds(key, 1)
        self.size = int((self.last - self.first).sum())
        self._added: list[Words] = []

    def _bounds(self, words: Words, behind: int) -> Words:
        found = np.empty(len(self.version.table), np.int64)
        row_bounds(self.version.table, words, behind, found)
        return found

    def add(self, words: Words) -> None:
        """Add rows (data, and the diff)."""
        self._added.append(words)

    def rows_behind(self, row: Words) -> int:
        """About how many rows come behind a row."""
        return int((self.last - self._bounds(row, 1)).sum())

    def has_null(self, columns: Sequence[int], leading: int) -> bool:
        """Whether one of some columns holds NULL in the version; NULLs of the column `leading` stand before all other rows."""
        for batch, first, last in zip(self.version.batches, self.first.tolist(), self.last.tolist(), strict=True):
            for column in columns:
                if has_word(batch.at, column, first, min(last, first + 1) if column == leading else last, NULL):
                    return True
        return False

    def around(self, row: Words, before: int, behind: int) -> tuple[Chunk, int, int, bool, bool] | None:
        """The rows around a place, sorted, and from where to where they are all there is; whether the group begins and ends with
        them. None if the place itself is not among them.
        """
        at = self._bounds(row, 0).tolist()
        chunks: list[Chunk] = []
        floor: list[int] | None = None
        ceiling: list[int] | None = None
        spans = zip(self.version.batches, self.first.tolist(), self.last.tolist(), at, strict=True)
        for batch, first, last, place in spans:
            begin, end = max(first, place - before), min(last, place + behind)
            if begin >= end:
                continue
            chunk = Chunk(batch.head, batch.memory).slice(begin, end)
            chunks.append(chunk)
            if begin > first:  # of rows up to this one, others may be missing
                words = self._row(chunk, 0)
                floor = words if floor is None else max(floor, words)
            if end < last:
                words = self._row(chunk, chunk.n - 1)
                ceiling = words if ceiling is None else min(ceiling, words)
        if ceiling is not None and ceiling <= row.tolist():
            return None
        built = self._together(chunks, self._added)
        start = 0 if floor is None else place_in(built, floor, 1)
        stop = built.n if ceiling is None else place_in(built, ceiling, 0)
        return built, start, stop, floor is None, ceiling is None

    def equal(self, row: Words) -> Words:
        """The rows that begin with some words (data and a multiplicity)."""
        first, last = self._bounds(row, 0).tolist(), self._bounds(row, 1).tolist()
        chunks = [
            Chunk(batch.head, batch.memory).slice(begin, end)
            for batch, begin, end in zip(self.version.batches, first, last, strict=True)
            if begin < end
        ]
        added = [words[:, (words[: len(row)] == row.reshape(-1, 1)).all(axis=0)] for words in self._added]
        found = self._together(chunks, added).to_array()
        return np.delete(found, self.width, axis=0)

    def _together(self, chunks: list[Chunk], added: list[Words]) -> Chunk:
        """Rows of the version and added ones, sorted, each once."""
        for words in added:
            times = np.full((1, words.shape[1]), self.low)
            chunks.append(Chunk.of_array(np.ascontiguousarray(np.vstack([words[:-1], times, words[-1:]]))))
        return consolidate(chunks, (self.width, 1, 1), self.low)

    def _row(self, chunk: Chunk, row: int) -> list[int]:
        found: list[int] = chunk.slice(row, row + 1).to_array()[: self.width, 0].tolist()
        return found


def place_in(rows: Chunk, words: Sequence[int] | Words, behind: int) -> int:
    """The number of rows of a sorted chunk that come before some words, or, with `behind`, that begin with them, too."""
    found = np.empty(1, np.int64)
    row_bounds(addresses([rows]), np.ascontiguousarray(words, np.int64), behind, found)
    return int(found[0])


class NearReduce(GroupsReduce):
    """A reduction of ordered groups by a `NearFunction`."""

    function: NearFunction  # type: ignore[assignment] # and a function of groups

    def answer(self, question: FunctionQuestion) -> None:
        part, old = question.part, question.part.old
        near = None if part.todo or self.scope.depth or old.rows < LARGE else self._near(question)
        if near is None:
            self.evaluate(question, part)
            return
        changes, rest = near
        self.evaluate(question, ReductionPart([rest], [], old, part.new))
        assert question.changes is not None
        question.changes = consolidate([*changes, question.changes], self.output.trace.shape, self.flow.reached)

    def _near(self, question: FunctionQuestion) -> tuple[list[Chunk], Chunk] | None:
        """The changes of the results of large groups, and the input's changes of all other groups; None if no group is large."""
        delta, old = question.part.delta, question.part.old
        rows = sum(batch.n for batch in delta)
        if rows * CHANGE > old.rows or self._has_failed(question.failures):
            return None
        changes = consolidate(
            [Chunk(b.head, b.memory) for b in delta], self.reader.trace.shape, self.flow.reached
        ).to_array()
        keys, numbers = np.unique(changes[: self.key], axis=1, return_inverse=True)
        numbers = numbers.reshape(-1)
        if not self.key:
            keys, numbers = np.empty((0, 1), np.int64), np.zeros(changes.shape[1], np.int64)
        whole = np.ones(changes.shape[1], bool)
        results: list[Chunk] = []
        for number in range(keys.shape[1]):
            mine = numbers == number
            key = np.ascontiguousarray(keys[:, number])
            made = self._group(key, changes[:, mine], old, question.past)
            if made is not None:
                whole &= ~mine
                results += [Chunk.of_array(np.ascontiguousarray(part)) for part in made if part.shape[1]]
        if whole.all():
            return None
        rest = np.ascontiguousarray(changes[:, whole])
        return results, consolidate([Chunk.of_array(rest)], self.reader.trace.shape, self.flow.reached)

    def _has_failed(self, version: Version) -> bool:
        """Whether a group has failed, and is not mended."""
        assert self.failures is not None
        if not 0 < version.rows <= FEW_ROWS:
            return version.rows > 0
        # Small batches wait to be merged: what is mended may still be there, with what takes it away.
        chunks = [Chunk(batch.head, batch.memory) for batch in version.batches]
        return consolidate(chunks, self.failures.shape, self.flow.reached).n > 0

    def _group(self, key: Words, changes: Words, old: Version, past: Version) -> list[Words] | None:
        """The changes of a group's results, which are in `past`, for some changes of its rows; None if it has to be evaluated
        whole.
        """
        width = self.reader.trace.data
        held = KeyRows(old, key, width, self.flow.reached)
        if held.size < max(LARGE, CHANGE * changes.shape[1]):
            return None
        apart = self.function.nulls_apart
        if held.has_null(apart, self.key) or (changes[list(apart)] == NULL).any():
            return None
        shown = KeyRows(past, key, self.key + self.values, self.flow.reached)
        made: list[Words] = []
        for change in changes[:, np.argsort(changes[width], kind="stable")].T:
            row, time, diff = np.ascontiguousarray(change[:width]), int(change[width]), int(change[width + 1])
            try:
                found = self._changed(held, shown, row, diff)
            except IncorrectError:
                return None
            if found is None:
                return None
            shown.add(found)
            held.add(np.append(row, diff).reshape(-1, 1))
            made.append(np.vstack([found[:-1], np.full(found.shape[1], time), found[-1]]))
        return made

    def _changed(self, held: KeyRows, shown: KeyRows, row: Words, diff: int) -> Words | None:
        """The changes of the results for a change of one row's multiplicity: rows of the output, and diffs."""
        function = self.function
        behind = before = FIRST_STRETCH
        if function.to_end:
            rest = held.rows_behind(row)
            if function.backward:
                rest = held.size - rest
            if 2 * rest > held.size:
                return None  # about as much as everything
            behind = held.size
        while 2 * before < held.size:
            around = held.around(row, *((behind, before) if function.backward else (before, behind)))
            if around is not None:
                found = self._difference(around, shown, row, diff)
                if found is not None:
                    return found
            before *= 4
            behind = min(4 * behind, held.size)
        return None

    def _difference(
        self, around: tuple[Chunk, int, int, bool, bool], shown: KeyRows, row: Words, diff: int
    ) -> Words | None:
        """The difference that a change makes to the results of a stretch; None if the stretch is too short."""
        built, start, stop, begins, ends = around
        width = len(row)
        words = built.to_array()[:, start:stop]
        rows, counts = words[:width], words[width + 1]
        at = place_in(built, row, 0) - start
        there = at < rows.shape[1] and bool((rows[:, at] == row).all())
        after = counts.copy()
        if there:
            after[at] += diff
        else:
            rows = np.insert(rows, at, row, axis=1)
            counts, after = np.insert(counts, at, 0), np.insert(after, at, diff)
        if (counts < 0).any() or (after < 0).any():
            return None

        def earlier(words: Words) -> Words | None:
            return self._shown(shown, words)

        was = self._evaluated(rows, counts, at, begins, ends, earlier)
        now = self._evaluated(rows, after, at, begins, ends, earlier)
        if was is None or now is None:
            return None
        (old, place), (new, _) = was, now
        if self.function.backward:
            begins, ends = ends, begins
        lead, tail = place[0], len(old.touched) - place[1]
        for results in (old, new):
            touched = np.flatnonzero(results.touched)
            if len(touched):
                lead = min(lead, int(touched[0]))
                tail = min(tail, len(results.touched) - 1 - int(touched[-1]))
        if (not begins and not lead) or (not ends and not tail):
            return None
        parts = []
        for results, sign in ((old, -1), (new, 1)):
            inside = slice(lead, len(results.touched) - tail)
            if not results.certain[inside].all():
                return None
            found = results.words[:, inside]
            many = found.shape[1]
            keys = np.repeat(row[: self.key].reshape(-1, 1), many, axis=1)
            parts.append(np.vstack([keys, found, np.full(many, sign)]))
        return np.concatenate(parts, axis=1)

    def _evaluated(
        self, rows: Words, counts: Words, at: int, begins: bool, ends: bool, earlier: Callable[[Words], Words | None]
    ) -> tuple[NearResults, tuple[int, int]] | None:
        """The results for the rows of a stretch, and where those are that are equal to the one that changes."""
        every = np.repeat(rows, counts, axis=1)
        first = int(counts[:at].sum())
        place = first, first + int(counts[at])
        if self.function.backward:
            every = every[:, ::-1]
            place = every.shape[1] - place[1], every.shape[1] - place[0]
            begins, ends = ends, begins
        if not every.shape[1]:
            nothing = np.zeros(0, bool)
            return NearResults(np.empty((self.values, 0), np.int64), nothing, nothing), place
        stretch = Stretch(np.ascontiguousarray(every), begins, ends, place)
        found = self.function.near(stretch, earlier, self.dictionary)
        return None if found is None else (found, place)

    def _shown(self, shown: KeyRows, row: Words) -> Words | None:
        """The results that the output has for a row, if all rows that are equal to it have the same."""
        found = shown.equal(row)
        return found[len(row) : shown.width, 0] if found.shape[1] == 1 else None
