"""The dictionary: maps the id of a text back to the text.

An id is a hash of its text (`text_ids`), so every machine computes the same id without coordination. Promise:
`lookup(add(texts))` equals `texts` until a collection that began after `add` finds that nobody uses them. Of two texts with the
same id, the first is accepted and the second is refused. A call that fails adds nothing.

Whoever has ids says so in one of three ways:

==============  =====================================================================================================
`keep`          an array of words keeps its texts as long as it lives: constants of programs and plans
`reading`       around taking words from where a collection finds them, and looking their texts up
`adding`        around adding texts, and putting their ids where a collection finds them
==============  =====================================================================================================

Texts of a storage come by `load`, in a thread of their own. Calls that need texts wait until all of them are there. Whoever opens
a storage does not.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.errors import ConflictError, FaultError, IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.kernels.text import collection, strings
from tektite.values.text_space import AT_ONCE, START, TAIL_BYTES, Mark, TextSpace, TextTable, copied_texts, make_room
from tektite.values.words import NULL, Words, arrow_buffer, validity_buffer

# One Arrow string array has 32-bit offsets.
_CHUNK_BYTES = 2**31 - 1

_LOADED_AT_ONCE = 1 << 15
"""Texts that are loaded at once: it takes about as long as starting a thread and finding it busy."""
_PIECE = 1 << 16
"""Texts that are loaded before it is looked whether anybody wants them."""


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


class Loading:
    """Texts that a thread adds."""

    __slots__ = ("begun", "is_given_up", "texts")

    def __init__(self, texts: int) -> None:
        self.texts = texts
        self.begun = threading.Lock()
        """Free once the thread has the dictionary's lock."""
        self.begun.acquire()
        self.is_given_up = False


class _Unusable:
    """Stands for the lock and the memory of a dictionary whose texts could not be loaded."""

    def __init__(self, error: BaseException) -> None:
        object.__setattr__(self, "_error", error)

    def __enter__(self) -> None:
        self._refuse()

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    def _refuse(self) -> None:
        error = self._error
        if isinstance(error, TektiteError):
            raise type(error)(*error.args) from error
        raise FaultError(f"the texts of the storage could not be loaded: {type(error).__name__}: {error}") from error


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
        self._space = TextSpace()
        self.era = 1
        """How many collections have begun, and one."""
        self.limit = 2**63 - 1
        """The number of texts from which on a collection is due."""
        self.is_due = False
        """Whether a collection is due, or there is soon no room for more texts."""
        # Weak, because an interrupt may keep a block from being left: what it used then goes with its frame.
        self._adders: dict[int, weakref.ref[TextUse]] = {}
        self._readers: dict[int, weakref.ref[TextUse]] = {}
        self._pinned: dict[int, weakref.ref[Words]] = {}
        self._loading: Loading | None = None
        self._loaded = START

    @property
    def texts(self) -> int:
        """The number of texts; while some are loaded, about what it will be."""
        loading = self._loading
        return int(self._space.state[strings.COUNT]) if loading is None else loading.texts

    @property
    def nbytes(self) -> int:
        """Memory of the texts and their index, in bytes."""
        return int(self._space.table.nbytes + self._space.end.position)

    def pin(self, words: Words) -> None:
        """Keep the texts whose ids are in a contiguous array, as long as the array lives. It must not change."""
        key, pinned = id(words), self._pinned

        def forget(reference: weakref.ref[Words]) -> None:
            if pinned.get(key) is reference:
                del pinned[key]

        pinned[key] = weakref.ref(words, forget)

    def pinned(self) -> list[Words]:
        """The arrays that keep texts."""
        found = [reference() for reference in list(self._pinned.values())]
        return [words for words in found if words is not None]

    def adding(self) -> TextUse:
        """For a block that adds texts and puts their ids where a collection finds them. Texts that are added meanwhile stay until
        a collection begins after it.
        """
        return TextUse(self._adders, self.era)

    def text_use(self) -> TextUse:
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
            space, state = self._space, self._space.state
            before = space.end
            try:
                found = [_each_plain(texts, self._intern) for texts in columns]
                if state.item(strings.COUNT) > self.limit or space.is_crowded:
                    self.is_due = True
                return found
            except BaseException:
                if state[strings.USED] != before.position:
                    space.set_table(len(space.table) // 2, before)
                    state[strings.USED] = before.position
                raise

    def reserve(self, texts: int, size: int) -> None:
        """Make room for so many texts of `size` bytes together, so that adding them moves nothing."""
        with self._lock:
            space = self._space
            slots = len(space.table) // 2
            while slots * 3 // 4 < space.end.texts + texts:
                slots *= 2
            if slots > len(space.table) // 2:
                space.set_table(slots, space.end)
            more = size + texts * strings.HEADER
            if space.end.position + more > len(space.heap):
                space.grow_heap(more)

    # ------------------------------------------------------------------ loading

    def load(self, columns: Sequence[Any]) -> None:
        """Add the texts of some large Arrow string arrays to an empty dictionary. Many of them are added by a thread, and other
        calls wait for it. An error of that thread is raised by all calls that follow.
        """
        texts = sum(map(len, columns))
        self.reserve(texts, sum([column.nbytes for column in columns]))
        loading = Loading(texts)
        if texts < _LOADED_AT_ONCE:
            self._load(columns, loading)
            return
        self._loading = loading
        # It has the lock before this call returns.
        threading.Thread(target=self._load_all, args=(columns, loading), name="tektite-texts", daemon=True).start()
        loading.begun.acquire()

    def _load_all(self, columns: Sequence[Any], loading: Loading) -> None:
        with self._lock:
            loading.begun.release()
            try:
                self._load(columns, loading)
                self._loading = None
            except BaseException as error:  # nobody will ever add a text
                broken: Any = _Unusable(error)
                self._space = self._lock = broken

    def _load(self, columns: Sequence[Any], loading: Loading) -> None:
        for column in columns:
            for start in range(0, len(column), _PIECE):
                if loading.is_given_up:
                    raise ConflictError("the texts of the storage were not loaded: the engine was closed")
                self.add_all([column.slice(start, _PIECE)])
        self.limit = max(self.limit, int(self._space.state[strings.COUNT]))
        self.is_due = False
        self._loaded = self.mark()

    @property
    def is_loading(self) -> bool:
        """Whether texts are being loaded, or could not be, so that nobody has added any since."""
        return self._loading is not None

    @property
    def loaded(self) -> Mark:
        """The mark behind the texts that were loaded."""
        with self._lock:
            return self._loaded

    def give_up_loading(self) -> None:
        """Load no more texts: nobody will ask for any."""
        loading = self._loading
        if loading is not None:
            loading.is_given_up = True

    # ------------------------------------------------------------------ texts

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
            done = strings.locate(self._space.state, ids, positions, offsets)
            if done < len(ids):
                raise NotFoundError(f"no text has the id {ids[done]} (row {done}): it was never added here")
            return self._texts_at(positions, offsets, ids)

    def text_table(self) -> TextTable:
        """The arrays by which kernels find the texts known at this moment."""
        with self._lock:
            space = self._space
            if space.reading is None:
                space.reading = TextTable(space.state[list(strings.READING)], (space.table, space.heap))
            return space.reading

    @property
    def alone(self) -> AbstractContextManager[bool]:
        """A lock that keeps other threads from adding texts, so that whatever comes between two marks is the caller's."""
        return self._lock

    def mark(self) -> Mark:
        """The current position, for `since`."""
        with self._lock:
            end, gone = self._space.end, self._space.gone
            return Mark(end.texts + gone.texts, end.position + gone.position)

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
            end, space = self.mark(), self._space
            start = mark.position - space.gone.position
            texts = end.texts - mark.texts
            if mark.position < space.moved:
                start, texts = strings.FIRST, self.texts
            positions = np.empty(texts, np.int64)
            offsets = np.empty(len(positions) + 1, np.int64)
            strings.walk(space.state, start, positions, offsets)
            return pa.chunked_array(self._texts_at(positions, offsets, None), pa.string()), end

    def has(self, ids: Words) -> Any:
        """For each of some ids, whether it has a text here."""
        known = np.empty(len(ids), np.int64)
        state, _table = self._reading()
        collection.known_ids(state, np.ascontiguousarray(ids), known)
        return known.astype(bool)

    # ------------------------------------------------------------------ collection

    def begin_era(self) -> int:
        """Texts that are added or marked from here on belong to the next era. Returns the earliest era whose texts may be about
        to be put where a collection finds them.
        """
        with self._lock:
            self.era += 1
            self._space.state[strings.ERA] += 1
            self.is_due = False
            return min([self.era, *[use.era for use in _present(self._adders)]])

    def needs_room(self) -> bool:
        """Whether texts are to be moved now to where there is more room. Whoever asks sees to it: nothing is due until more are
        added. A collection may have made room since something was due.
        """
        self.is_due = False  # first: texts that are added from here on are looked at, or make it due again
        return not self.is_loading and self._space.is_crowded

    def reads_before(self, era: int) -> bool:
        """Whether somebody reads who began before an era did."""
        return any([use.era < era for use in _present(self._readers)])

    @property
    def eras_left(self) -> int:
        """The number of further eras that the table can tell apart. A collection makes room for more."""
        return strings.LAST_ERA - int(self._space.state[strings.ERA])

    def mark_words(self, words: Words) -> None:
        """Texts whose ids are in a contiguous array are in use."""
        flat = words.reshape(-1)
        self._mark(lambda state: collection.mark_words(state, flat))

    def mark_rows(self, head: int, place: int = 0) -> int:
        """Texts whose ids are in the rows at address `head` are in use. Looks at some of the rows, from `place` on; the place
        to go on from, or -1.
        """
        return int(self._mark(lambda state: collection.mark_rows(state, head, place, AT_ONCE)))

    def _mark(self, mark: Callable[[Words], Any]) -> Any:
        """Mark texts without the lock. A table that is replaced meanwhile may have lost marks, so that they are made again."""
        while True:
            state, table = self._reading()
            found = mark(state)
            with self._lock:
                if self._space.table is table:
                    return found

    def _reading(self) -> tuple[Words, Words]:
        """A copy of the state, for kernels that need no lock, and its table."""
        with self._lock:
            return self._space.state.copy(), self._space.table

    def sweep(self, floor: int, upto: Mark) -> Iterator[None]:
        """Remove the texts that came before `upto` and that nobody has added or marked in the era `floor` or later; if that
        is 0, none, but make room for more. Each step is a short piece of work; others may use the dictionary between them, but
        for another sweep.
        """
        with self._lock:
            space, state = self._space, self._space.state
            lowest = max(floor - self.era + int(state[strings.ERA]), 1)  # the floor as the table says it
            boundary = min(space.end.position, upto.position - space.gone.position)
            state[strings.FLOOR], state[strings.BOUNDARY] = lowest, boundary
            old, table, heap = state.copy(), space.table, space.heap
        try:
            new = TextSpace()
            yield from copied_texts(old, table, heap, lowest - 1, new)
            moved, place = new.end.position, boundary
            while True:
                with self._lock:
                    place = int(collection.copy_tail(state, place, TAIL_BYTES, new.state))
                    left = space.end.position - place
                    if not left:
                        removed = space.end.texts - new.end.texts
                        new.gone = Mark(space.gone.texts + removed, space.gone.position + boundary - moved)
                        new.moved = space.gone.position + boundary
                        new.state[strings.ERA] = state[strings.ERA] - (lowest - 1)
                        self._space = new
                        return
                make_room(new, left)
                yield
        finally:
            with self._lock:
                state[strings.FLOOR] = state[strings.BOUNDARY] = 0

    def _intern(self, array: pa.Array[Any]) -> Words:
        """Add the texts of a plain string array; their ids. The caller holds the lock and undoes a failure."""
        space, state = self._space, self._space.state
        ids: Words = np.empty(len(array), np.int64)
        buffers = _buffers(array)
        done = strings.intern(state, *buffers, 0, ids)
        while done < len(ids):
            reason, detail = int(state[strings.REASON]), int(state[strings.DETAIL])
            if reason == strings.TABLE_FULL:
                space.set_table(len(space.table), space.end)
            elif reason == strings.HEAP_FULL:
                space.grow_heap(detail)
            elif reason == strings.CLASH:
                start = detail + strings.HEADER
                length = int(space.heap[detail:start].view(np.uint32)[0])
                known = space.heap[start : start + length].tobytes()
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

    def _texts_at(self, positions: Words, offsets: Words, ids: Words | None) -> list[pa.Array[Any]]:
        chunks: list[pa.Array[Any]] = []
        start, rows = 0, len(positions)
        while start < rows or not chunks:
            stop = rows
            if offsets[rows] - offsets[start] > _CHUNK_BYTES:
                stop = int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1
            part = offsets[start : stop + 1]
            data = np.empty(int(part[-1] - part[0]), np.uint8)
            strings.copy_texts(self._space.state, positions[start:stop], part, data.ctypes.data)
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
