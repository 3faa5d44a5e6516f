"""The memory of a dictionary: a heap of texts and a table that finds them, and how a collection copies what stays.

Promise: a space changes by appending, or is replaced by another one as a whole. `Mark` says how far texts had arrived at some
moment, and means the same in every space that follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tektite.kernels.text import collection, strings
from tektite.values.words import Words

_FIRST_SLOTS = 64
_FIRST_HEAP = 1024

AT_ONCE = 1 << 16
"""Words, or slots of the table, that a collection looks at in one piece of work: some milliseconds, in which it holds no lock."""
ROOM = 3
"""For how many times its texts a space that a collection makes has room. The next collection is due when they have doubled, and
copies them while more come. A space that is full moves at once, while everybody waits.
"""
LARGE_TEXTS, LARGE_BYTES = 1 << 14, 1 << 21
"""Texts, and their bytes, that take more than a millisecond to move."""
TAIL_BYTES = 1 << 16
"""Bytes of texts that it copies while it holds the dictionary's lock: some tenths of a millisecond, if texts are short."""


class Mark(NamedTuple):
    """A point in the growth of a dictionary: the number of texts that had arrived, and where the next one would begin if none had
    gone.
    """

    texts: int
    position: int


START = Mark(0, strings.FIRST)


@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """Lets kernels find texts without a lock: those that a dictionary had at some moment, and perhaps later ones. Its
    memory stays as long as it does.
    """

    words: Words
    memory: tuple[Any, ...]

    @property
    def address(self) -> int:
        """The address of the words."""
        return int(self.words.ctypes.data)


class TextSpace:
    """The memory of a dictionary: what kernels know of it, the table and the heap; and what collections have taken from it."""

    __slots__ = ("crowded_bytes", "crowded_texts", "gone", "heap", "moved", "reading", "state", "table")

    heap: np.ndarray[Any, np.dtype[np.uint8]]
    table: Words

    def __init__(self) -> None:
        self.state = np.zeros(strings.STATE_SIZE, np.int64)
        self.state[strings.ERA] = 1
        self.state[strings.USED] = strings.FIRST
        self.gone = Mark(0, 0)
        """How many texts are gone, and their bytes."""
        self.reading: TextTable | None = None
        """The table for readers without the lock; valid as long as table and heap stay where they are."""
        self.moved = START.position
        """The mark before which texts are not in the order of their arrival."""
        self.set_heap(np.empty(_FIRST_HEAP, np.uint8))
        self.table = np.empty(0, np.int64)
        self.set_table(_FIRST_SLOTS, START)

    @property
    def end(self) -> Mark:
        """The texts, and where the next one begins, in this memory."""
        return Mark(int(self.state[strings.COUNT]), int(self.state[strings.USED]))

    @property
    def is_crowded(self) -> bool:
        """Whether texts should move to where there is more room, beside what others do."""
        state = self.state
        return state.item(strings.COUNT) > self.crowded_texts or state.item(strings.USED) > self.crowded_bytes

    def set_heap(self, heap: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Use a heap that begins like the present one."""
        state, address, size = self.state, heap.ctypes.data, len(heap)
        self.crowded_bytes = max(2 * size // 3, LARGE_BYTES)
        """Bytes from which on texts should move to where there is more room, beside what others do."""
        # One statement without a call: no interrupt comes between its parts, and kernels find no heap that is gone.
        self.heap, self.reading, state[strings.HEAP], state[strings.CAPACITY] = heap, None, address, size

    def grow_heap(self, more: int) -> None:
        """Make room for so many more bytes."""
        used = self.end.position
        grown = np.empty(max(2 * len(self.heap), used + more), np.uint8)
        grown[:used] = self.heap[:used]
        self.set_heap(grown)

    def set_table(self, slots: int, upto: Mark) -> None:
        """Rebuild the index of the texts before `upto`, with `slots` slots (a power of two)."""
        table = np.zeros(2 * slots, np.int64)
        shift = 64 - (slots.bit_length() - 1)
        if upto.texts:
            strings.rebuild(self.table, table, shift, upto.position)
        # Three quarters full: linear probing then looks at about two slots for a text that is there.
        state, address, texts, limit = self.state, table.ctypes.data, upto.texts, slots * 3 // 4
        self.crowded_texts = max(slots // 2, LARGE_TEXTS)
        """As `crowded_bytes`, in texts."""
        # One statement, as in `set_heap`.
        self.table, self.reading, state[strings.TABLE], state[strings.SHIFT], state[strings.COUNT], state[strings.LIMIT] = (
            table, None, address, shift, texts, limit,
        )  # fmt: skip


def copied_texts(
    old: Words, table: Words, heap: np.ndarray[Any, np.dtype[np.uint8]], eras: int, new: TextSpace
) -> Iterator[None]:
    """Copy what stays of the texts before the boundary of the state `old` to an empty space, in its present era, less by `eras`.
    These texts do not change, so that nobody needs a lock. The space has room for `ROOM` times as many.
    """
    slots, at, found = len(table) // 2, heap.ctypes.data, np.zeros(2, np.int64)
    for start in range(0, slots, AT_ONCE):
        collection.measure_slots(old, at, table, start, min(start + AT_ONCE, slots), found)
        yield
    new.state[strings.ERA] = old[strings.ERA] - eras
    boundary = int(old[strings.BOUNDARY])
    tail = int(old[strings.USED]) - boundary
    behind = int(old[strings.COUNT]) * tail // max(boundary, 1)
    # What nobody has written to takes no memory.
    new.set_heap(np.empty(ROOM * (strings.FIRST + int(found[1]) + tail) + _FIRST_HEAP, np.uint8))
    size = _FIRST_SLOTS
    while size * 3 // 4 < ROOM * (int(found[0]) + behind):
        size *= 2
    new.set_table(size, START)
    for start in range(0, slots, AT_ONCE):
        collection.copy_slots(old, at, table, start, min(start + AT_ONCE, slots), new.state)
        yield


def make_room(space: TextSpace, more: int) -> None:
    """Make room for texts of `more` bytes together."""
    used, count = space.end.position, space.end.texts
    if used + more > len(space.heap):
        space.grow_heap(more)
    if 2 * count > space.state[strings.LIMIT]:
        space.set_table(len(space.table), space.end)
