"""The dictionary: maps the id of a text back to the text.

An id is a hash of its text (`text_ids`), so every machine computes the same id without coordination. Promise:
`lookup(add(texts))` equals `texts`. Of two texts with the same id, the first is accepted and the second is refused. A call
that fails adds nothing.
"""

from __future__ import annotations

import threading
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

# One Arrow string array has 32-bit offsets.
_CHUNK_BYTES = 2**31 - 1


class Mark(NamedTuple):
    """A point in the growth of a dictionary: the number of its texts, and where the next one begins."""

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
                return [_each_plain(texts, self._intern) for texts in columns]
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
            return Mark(int(self._state[strings.COUNT]), int(self._state[strings.USED]))

    def since(self, mark: Mark = START) -> tuple[pa.ChunkedArray[Any], Mark]:
        """The texts added after `mark`, in order of arrival, and the mark for the next call.

        >>> dictionary = Dictionary()
        >>> _ = dictionary.add(pa.array(["ash", "beech"]))
        >>> texts, mark = dictionary.since()
        >>> _ = dictionary.add(pa.array(["beech", "yew"]))
        >>> dictionary.since(mark)[0].to_pylist()
        ['yew']
        """
        with self._lock:
            end = Mark(int(self._state[strings.COUNT]), int(self._state[strings.USED]))
            positions = np.empty(end.texts - mark.texts, np.int64)
            offsets = np.empty(len(positions) + 1, np.int64)
            strings.walk(self._state, mark.position, positions, offsets)
            return pa.chunked_array(self._texts_at(positions, offsets, None), pa.string()), end

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
