"""The dictionary: maps the id of a text back to the text.

An id is a hash of its text (`text_ids`), so every machine computes the same id without coordination. Promise:
`lookup(add(texts))` equals `texts` until a collection (`tektite.values.text_collection`) that began after `add` finds that
nobody uses them. Of two texts with the same id, the first is accepted and the second is refused. A call that fails adds
nothing.

Whoever has ids says so in one of three ways:

==============  =====================================================================================================
`keep`          an array of words keeps its texts as long as it lives: constants of programs and plans
`reading`       around taking words from where a collection finds them, and looking their texts up
`adding`        around adding texts, and putting their ids where a collection finds them
==============  =====================================================================================================
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.kernels.text import strings
from tektite.values.words import NULL, Words, arrow_buffer, validity_buffer

_FIRST_SLOTS = 64
_FIRST_HEAP = 1024

_AT_ONCE = 1 << 14
"""Words or slots of the table that a collection looks at in one piece of work: about a millisecond, if each is a cache miss."""

# One Arrow string array has 32-bit offsets.
_CHUNK_BYTES = 2**31 - 1


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
        """Where the words are."""
        return int(self.words.ctypes.data)


def text_ids(texts: Any) -> Words:
    """The ids of the texts of an Arrow string array (NULL for nulls). Does not store the texts.

    >>> text_ids(pa.array(["Spark", None])).tolist()
    [-4294468057691064905, -9223372036854775808]
    """

    def hash_plain(array: pa.Array[Any]) -> Words:
        ids: Words = np.empty(len(array), np.int64)
        strings.hash_texts(*_buffers(array), ids)
        return ids

    return _each_plain(texts, hash_plain)


class TextUse:
    """Somebody who uses texts, from entering to leaving the block. `era` is that of the dictionary when it began."""

    __slots__ = ("__weakref__", "_users", "era")

    def __init__(self, users: dict[int, weakref.ref[TextUse]], era: int) -> None:
        self._users = users
        self.era = era

    def __enter__(self) -> TextUse:
        self._users[id(self)] = weakref.ref(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._users.pop(id(self), None)


class Dictionary:
    """Texts by their ids. Threads may share one: a lock guards every call.

    >>> dictionary = Dictionary()
    >>> ids = dictionary.add(pa.array(["ash", "beech", "ash", None]))
    >>> dictionary.lookup(ids).to_pylist()
    ['ash', 'beech', 'ash', None]
    >>> dictionary.texts
    2
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state = np.zeros(strings.STATE_SIZE, np.int64)
        self._state[strings.ERA] = 1
        self._gone = Mark(0, 0)
        """How many texts collections have removed, and their bytes."""
        self._moved = START.position
        """The mark up to which a collection has reordered texts."""
        self.era = 1
        """How many collections have begun, and one."""
        self.limit = 2**63 - 1
        """The number of texts from which on a collection is due."""
        self.is_due = False
        """Whether a collection is due."""
        # Weak, because an interrupt may keep a block from being left: what it used then goes with its frame.
        self._adders: dict[int, weakref.ref[TextUse]] = {}
        self._readers: dict[int, weakref.ref[TextUse]] = {}
        self._kept: dict[int, weakref.ref[Words]] = {}
        self._text_table: TextTable | None = None
        self._set_heap(np.empty(_FIRST_HEAP, np.uint8))
        self._table: Words = np.empty(0, np.int64)
        self._set_table(_FIRST_SLOTS, START)
        self._state[strings.USED] = strings.FIRST

    @property
    def texts(self) -> int:
        """The number of texts."""
        return int(self._state[strings.COUNT])

    @property
    def nbytes(self) -> int:
        """Memory of the texts and their index, in bytes."""
        return int(self._table.nbytes + self._heap.nbytes)

    def keep(self, words: Words) -> None:
        """Keep the texts whose ids are in a contiguous array, as long as the array lives. It must not change."""
        key, kept = id(words), self._kept

        def forget(reference: weakref.ref[Words]) -> None:
            if kept.get(key) is reference:
                del kept[key]

        kept[key] = weakref.ref(words, forget)

    def kept(self) -> list[Words]:
        """The arrays that keep texts."""
        found = [reference() for reference in list(self._kept.values())]
        return [words for words in found if words is not None]

    def adding(self) -> TextUse:
        """For a block that adds texts and puts their ids where a collection finds them. Texts that are added meanwhile stay until
        a collection begins after it.
        """
        return TextUse(self._adders, self.era)

    def reading(self) -> TextUse:
        """For a block that takes ids from where a collection finds them and looks up their texts. No text goes meanwhile that was
        there when it began.
        """
        return TextUse(self._readers, self.era)

    @property
    def lasting(self) -> Dictionary:
        """The dictionary by which to cache what depends on ids: itself."""
        return self

    def __len__(self) -> int:
        return self.texts

    def __repr__(self) -> str:
        return f"Dictionary({self.texts} texts, {self.nbytes} bytes)"

    def add(self, texts: Any) -> Words:
        """Store the texts of an Arrow string array; their ids (NULL for nulls)."""
        return self.add_all([texts])[0]

    def add_all(self, columns: Sequence[Any]) -> list[Words]:
        """`add` each of several arrays, or none of them if one fails."""
        with self._lock:
            state = self._state
            before = Mark(int(state[strings.COUNT]), int(state[strings.USED]))
            try:
                found = [_each_plain(texts, self._intern) for texts in columns]
                if state[strings.COUNT] > self.limit:
                    self.is_due = True
                return found
            except BaseException:
                if state[strings.USED] != before.position:
                    state[strings.USED] = before.position
                    self._set_table(len(self._table) // 2, before)
                raise

    def lookup(self, ids: Words) -> pa.Array[Any]:
        """The texts of `ids` as an Arrow string array, null for NULL. An unknown id is an error."""
        chunks = self.lookup_chunks(ids)
        if len(chunks) > 1:
            raise UnsupportedError(
                f"the texts of {len(ids)} ids take more than the {_CHUNK_BYTES} bytes of one Arrow string array: "
                "look up fewer ids at a time, or use lookup_chunks"
            )
        return chunks[0]

    def lookup_chunks(self, ids: Words) -> list[pa.Array[Any]]:
        """Like `lookup`, in as many arrays as the texts need; at least one."""
        ids = np.ascontiguousarray(ids, np.int64)
        if not ids.flags.writeable:
            ids = ids.copy()
        positions = np.empty(len(ids), np.int64)
        offsets = np.empty(len(ids) + 1, np.int64)
        with self._lock:
            done = strings.locate(self._state, ids, positions, offsets)
            if done < len(ids):
                raise NotFoundError(f"no text has the id {ids[done]} (row {done}): it was never added here")
            return self._texts_at(positions, offsets, ids)

    def text_table(self) -> TextTable:
        """What kernels use to find the texts known at this moment."""
        with self._lock:
            if self._text_table is None:
                self._text_table = TextTable(self._state[list(strings.READING)], (self._table, self._heap))
            return self._text_table

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads from adding texts, so that whatever comes between two marks is the caller's."""
        with self._lock:
            yield

    def mark(self) -> Mark:
        """The current position, for `since`."""
        with self._lock:
            gone = self._gone
            return Mark(int(self._state[strings.COUNT]) + gone.texts, int(self._state[strings.USED]) + gone.position)

    def since(self, mark: Mark = START) -> tuple[pa.ChunkedArray[Any], Mark]:
        """The texts added after `mark`, in order of arrival, and the mark for the next call. If a collection has moved the
        texts at the mark, these are all texts in any order.

        >>> dictionary = Dictionary()
        >>> _ = dictionary.add(pa.array(["ash", "beech"]))
        >>> texts, mark = dictionary.since()
        >>> _ = dictionary.add(pa.array(["beech", "yew"]))
        >>> dictionary.since(mark)[0].to_pylist()
        ['yew']
        """
        with self._lock:
            end, gone = self.mark(), self._gone
            start = mark.position - gone.position
            texts = end.texts - mark.texts
            if mark.position < self._moved:
                start, texts = strings.FIRST, self.texts
            positions = np.empty(texts, np.int64)
            offsets = np.empty(len(positions) + 1, np.int64)
            strings.walk(self._state, start, positions, offsets)
            return pa.chunked_array(self._texts_at(positions, offsets, None), pa.string()), end

    def has(self, ids: Words) -> Any:
        """Which of some ids have a text here: an array of truth values."""
        known = np.empty(len(ids), np.int64)
        ids = np.ascontiguousarray(ids)
        for start in range(0, len(ids), _AT_ONCE):
            with self._lock:
                strings.known_ids(self._state, ids[start : start + _AT_ONCE], known[start : start + _AT_ONCE])
        return known.astype(bool)

    # ------------------------------------------------------------------ collection

    def begin_era(self) -> int:
        """Texts that are added or marked from here on belong to the next era. Returns the earliest era whose texts may be about
        to be put where a collection finds them.
        """
        with self._lock:
            self.era += 1
            self._state[strings.ERA] += 1
            self.is_due = False
            return min([self.era, *[use.era for use in _present(self._adders)]])

    def reads_before(self, era: int) -> bool:
        """Whether somebody reads who began before an era did."""
        return any([use.era < era for use in _present(self._readers)])

    @property
    def eras_left(self) -> int:
        """How many more eras the table can tell apart. A collection makes room for more."""
        return strings.LAST_ERA - int(self._state[strings.ERA])

    def mark_words(self, words: Words) -> None:
        """Texts whose ids are in a contiguous array are in use."""
        flat = words.reshape(-1)
        for start in range(0, len(flat), _AT_ONCE):
            with self._lock:
                strings.mark_words(self._state, flat[start : start + _AT_ONCE])

    def mark_rows(self, head: int, place: int = 0) -> int:
        """Texts whose ids are in the rows at address `head` are in use. Looks at some of the rows, from `place` on; the place
        to go on from, or -1.
        """
        with self._lock:
            return int(strings.mark_rows(self._state, head, place, _AT_ONCE))

    def sweep(self, floor: int, upto: Mark) -> Iterator[None]:
        """Remove the texts that came before `upto` and that nobody has added or marked in the era `floor` or later. Each step
        is a short piece of work; others may use the dictionary between them, but for another sweep.
        """
        with self._lock:
            state = self._state
            shift = floor - self.era + int(state[strings.ERA])  # the floor as the table says it
            boundary = min(int(state[strings.USED]), upto.position - self._gone.position)
            state[strings.FLOOR], state[strings.BOUNDARY] = shift, boundary
            table, heap = self._table, self._heap
        try:
            yield from self._copied(table, heap, boundary, shift - 1)
        finally:
            with self._lock:
                self._state[strings.FLOOR] = self._state[strings.BOUNDARY] = 0

    def _copied(
        self, table: Words, heap: np.ndarray[Any, np.dtype[np.uint8]], boundary: int, eras: int
    ) -> Iterator[None]:
        """Copy what stays to a new heap and a new table, then use these. What lies before the boundary does not change, so that
        it is copied without the lock.
        """
        old = self._state.copy()
        slots, at, found = len(table) // 2, heap.ctypes.data, np.zeros(2, np.int64)
        for start in range(0, slots, _AT_ONCE):
            strings.measure_slots(old, at, table, start, min(start + _AT_ONCE, slots), found)
            yield
        new = Dictionary()
        new._state[strings.ERA] = old[strings.ERA] - eras
        tail = int(old[strings.USED]) - boundary
        more = int(old[strings.COUNT]) * tail // max(boundary, 1)
        room = strings.FIRST + int(found[1]) + tail
        new._set_heap(np.empty(room + room // 4 + _FIRST_HEAP, np.uint8))
        size = _FIRST_SLOTS
        while size < 2 * (int(found[0]) + more):
            size *= 2
        new._set_table(size, START)
        for start in range(0, slots, _AT_ONCE):
            strings.copy_slots(old, at, table, start, min(start + _AT_ONCE, slots), eras, new._state)
            yield
        place, moved = boundary, int(new._state[strings.USED])
        done = False
        while not done:
            with self._lock:
                state = self._state
                place = int(strings.copy_tail(state, place, _AT_ONCE * 8, new._state))
                if place == state[strings.USED]:
                    gone = Mark(int(state[strings.COUNT] - new._state[strings.COUNT]), boundary - moved)
                    self._moved = self._gone.position + boundary
                    self._gone = Mark(self._gone.texts + gone.texts, self._gone.position + gone.position)
                    new._state[strings.ERA] = state[strings.ERA] - eras
                    self._heap, self._table, self._state = new._heap, new._table, new._state
                    self._text_table = None
                    done = True
                left = int(state[strings.USED]) - place
            if not done:
                new.make_room(left + _AT_ONCE)
                yield

    def make_room(self, more: int) -> None:
        """Make room for some texts of `more` bytes together."""
        with self._lock:
            state = self._state
            used, count = int(state[strings.USED]), int(state[strings.COUNT])
            if used + more > len(self._heap):
                grown = np.empty(max(2 * len(self._heap), used + more), np.uint8)
                grown[:used] = self._heap[:used]
                self._set_heap(grown)
            if 2 * count > state[strings.LIMIT]:
                self._set_table(len(self._table), Mark(count, used))

    def _intern(self, array: pa.Array[Any]) -> Words:
        """Add the texts of a plain string array; their ids. The caller holds the lock and undoes a failure."""
        state = self._state
        ids: Words = np.empty(len(array), np.int64)
        buffers = _buffers(array)
        done = strings.intern(state, *buffers, 0, ids)
        while done < len(ids):
            reason, detail = int(state[strings.REASON]), int(state[strings.DETAIL])
            if reason == strings.TABLE_FULL:
                self._set_table(len(self._table), Mark(int(state[strings.COUNT]), int(state[strings.USED])))
            elif reason == strings.HEAP_FULL:
                grown = np.empty(max(2 * len(self._heap), len(self._heap) + detail), np.uint8)
                grown[: state[strings.USED]] = self._heap[: state[strings.USED]]
                self._set_heap(grown)
            elif reason == strings.CLASH:
                start = detail + strings.HEADER
                length = int(self._heap[detail:start].view(np.uint32)[0])
                known = self._heap[start : start + length].tobytes()
                found = array[done].as_buffer().to_pybytes()
                raise IncorrectError(
                    f"the texts {_shown(known)} and {_shown(found)} "
                    "have the same 64-bit id, so only one of them can be held: change one of the two"
                )
            else:
                raise IncorrectError(
                    f"row {done}: found a text of more than {strings.LONGEST} bytes: cut it, or split it"
                )
            done = strings.intern(state, *buffers, done, ids)
        return ids

    def _set_heap(self, heap: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self._heap = heap
        self._text_table = None
        self._state[strings.HEAP] = heap.ctypes.data
        self._state[strings.CAPACITY] = len(heap)

    def _set_table(self, slots: int, upto: Mark) -> None:
        """Rebuild the index of the texts before `upto`, with `slots` slots (a power of two)."""
        table = np.zeros(2 * slots, np.int64)
        shift = 64 - (slots.bit_length() - 1)
        if upto.texts:
            strings.rebuild(self._table, table, shift, upto.position)
        self._table = table
        self._text_table = None
        self._state[strings.TABLE] = table.ctypes.data
        self._state[strings.SHIFT] = shift
        self._state[strings.COUNT] = upto.texts
        # Three quarters full: linear probing then looks at about two slots for a text that is there.
        self._state[strings.LIMIT] = slots * 3 // 4

    def _texts_at(self, positions: Words, offsets: Words, ids: Words | None) -> list[pa.Array[Any]]:
        chunks: list[pa.Array[Any]] = []
        start, rows = 0, len(positions)
        while start < rows or not chunks:
            stop = rows
            if offsets[rows] - offsets[start] > _CHUNK_BYTES:
                stop = int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1
            part = offsets[start : stop + 1]
            data = np.empty(int(part[-1] - part[0]), np.uint8)
            strings.copy_texts(self._state, positions[start:stop], part, data.ctypes.data)
            validity, nulls = (None, 0) if ids is None else validity_buffer(ids[start:stop])
            narrow = (part - part[0]).astype(np.int32)
            buffers = [validity, arrow_buffer(narrow), arrow_buffer(data)]
            chunks.append(pa.Array.from_buffers(pa.string(), stop - start, buffers, nulls))
            start = stop
        return chunks


def _present(users: dict[int, weakref.ref[TextUse]]) -> list[TextUse]:
    """Those who have not left their blocks."""
    found = [reference() for reference in list(users.values())]
    return [use for use in found if use is not None]


def _each_plain(texts: Any, encode: Callable[[pa.Array[Any]], Words]) -> Words:
    """Apply `encode` to the plain string arrays that make up an Arrow array of any string layout."""
    if isinstance(texts, pa.ChunkedArray):
        parts = [_each_plain(chunk, encode) for chunk in texts.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])
    kind = texts.type.id
    if kind in (pa.lib.Type_STRING, pa.lib.Type_LARGE_STRING):
        return encode(texts)
    if kind == pa.lib.Type_STRING_VIEW:
        return encode(texts.cast(pa.large_string()))
    if kind == pa.lib.Type_DICTIONARY:
        # One id more than the dictionary has values: the id of a null index.
        ids = np.append(_each_plain(texts.dictionary, encode), NULL)
        indices = texts.indices.cast(pa.int64()).fill_null(len(ids) - 1)
        spread: Words = ids[indices.to_numpy()]
        return spread
    if kind == pa.lib.Type_NA:
        return np.full(len(texts), NULL, np.int64)
    raise IncorrectError(f"expected an Arrow array of strings, found {texts.type}: cast it to pyarrow.string()")


def _buffers(array: pa.Array[Any]) -> tuple[int, int, int, int, int]:
    """A plain string array as kernels take it: offsets, whether they are 64-bit, bytes, validity, first row."""
    validity, offsets, data = array.buffers()
    return (
        0 if offsets is None else offsets.address,
        int(array.type.id == pa.lib.Type_LARGE_STRING),
        0 if data is None else data.address,
        0 if validity is None else validity.address,
        array.offset,
    )


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}... ({len(text)} characters)"
