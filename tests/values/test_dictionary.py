"""The dictionary and the ids of texts: parity with XXH64, round trips, collisions, failures that add nothing."""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.kernels.text import strings
from tektite.values import dictionary as dictionary_module
from tektite.values.dictionary import Dictionary, text_ids
from tektite.values.text_space import START
from tektite.values.words import NULL
from tests.support.fault_injection import Injector
from tests.support.xxh64 import colliding_texts, eight_bytes_with, signed, xxh64

TEXTS = st.lists(st.one_of(st.none(), st.text(), st.text(alphabet="ab", min_size=20, max_size=120)))

# Computed with the reference implementation (xxhash 0.8), seed 42.
KNOWN = {
    "": 11002672306508523268,
    "a": 9864288744972464332,
    "abc": 1423657621850124518,
    "Spark": 14152276016018486711,
    "tektite" * 9: 963074147519604313,
    "naïve ☃": 10119199107282438190,
}


@pytest.mark.parametrize("text", KNOWN)
def test_ids_are_xxh64_with_seed_42(text: str) -> None:
    assert text_ids(pa.array([text]))[0] == signed(KNOWN[text])
    assert xxh64(text.encode(), 42) == KNOWN[text]


def test_the_twin_hash_agrees_with_sparks_documented_example() -> None:
    # Spark documents xxhash64('Spark', array(123), 2) = 5602566077635097486: each value's hash seeds the next one's.
    hashed = xxh64(b"Spark", 42)
    hashed = xxh64(struct.pack("<i", 123), hashed)
    assert xxh64(struct.pack("<i", 2), hashed) == 5602566077635097486


@given(st.lists(st.text(max_size=100)))
def test_ids_agree_with_the_slow_twin(texts: list[str]) -> None:
    assert text_ids(pa.array(texts, pa.string())).tolist() == [signed(xxh64(text.encode(), 42)) for text in texts]


@pytest.mark.parametrize("length", range(70))
def test_ids_agree_with_the_slow_twin_at_every_length(length: int) -> None:
    text = "".join(chr(33 + i) for i in range(length))
    assert text_ids(pa.array([text]))[0] == signed(xxh64(text.encode(), 42))


def test_no_text_has_the_id_null() -> None:
    data = eight_bytes_with(NULL, 42)
    assert signed(xxh64(data, 42)) == NULL
    # These bytes are no text, so they are passed as what they are.
    array = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(struct.pack("<ii", 0, 8)), pa.py_buffer(data)])
    assert text_ids(array).tolist() == [NULL + 1]


@given(
    TEXTS, st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
)
def test_texts_come_back_from_every_layout(texts: list[str | None], layout: pa.DataType) -> None:
    dictionary = Dictionary()
    array = pa.array(texts, pa.string()).cast(layout)
    ids = dictionary.add(array)
    assert ids.tolist() == text_ids(array).tolist()
    assert dictionary.lookup(ids).to_pylist() == texts
    assert dictionary.texts == len(set(texts) - {None})


@given(TEXTS, st.integers(0, 5), st.integers(0, 5))
def test_slices_and_chunks_are_read_where_they_begin(texts: list[str | None], skip: int, drop: int) -> None:
    array = pa.array(texts, pa.string())
    piece = array.slice(skip, max(0, len(array) - skip - drop))
    dictionary = Dictionary()
    ids = dictionary.add(pa.chunked_array([piece, array], pa.string()))
    lookup = dictionary.lookup(ids)
    lookup.validate(full=True)
    assert lookup.to_pylist() == piece.to_pylist() + texts


def test_texts_survive_the_growth_of_the_table_and_the_heap() -> None:
    dictionary = Dictionary()
    texts = [f"{'long ' * (i % 50)}{i}" for i in range(5_000)]
    first = dictionary.add(pa.array(texts[:10]))
    ids = dictionary.add(pa.array(texts))
    assert ids[:10].tolist() == first.tolist()
    assert dictionary.add(pa.array(texts[::-1])).tolist() == ids[::-1].tolist()
    assert dictionary.texts == len(texts)
    assert dictionary.lookup(ids[::-3]).to_pylist() == texts[::-3]
    assert dictionary.since()[0].to_pylist() == texts


def test_a_text_longer_than_the_heap_fits() -> None:
    dictionary = Dictionary()
    text = "x" * 100_000
    assert dictionary.lookup(dictionary.add(pa.array([text]))).to_pylist() == [text]


def test_a_collision_names_both_texts_and_adds_nothing() -> None:
    left, right = colliding_texts()
    assert left != right and text_ids(pa.array([left])) == text_ids(pa.array([right]))
    dictionary = Dictionary()
    kept = dictionary.add(pa.array(["kept", left]))
    mark = dictionary.since()[1]
    many = [f"new {i}" for i in range(200)]
    with pytest.raises(IncorrectError) as error:
        dictionary.add_all([pa.array(many), pa.array(["other", right])])
    assert repr(left) in str(error.value) and repr(right) in str(error.value)
    assert dictionary.texts == 2
    assert dictionary.since(mark)[0].to_pylist() == []
    assert dictionary.lookup(kept).to_pylist() == ["kept", left]
    with pytest.raises(NotFoundError):
        dictionary.lookup(text_ids(pa.array(["other"])))
    assert dictionary.lookup(dictionary.add(pa.array(many))).to_pylist() == many


def test_two_colliding_texts_in_one_batch_are_refused() -> None:
    dictionary = Dictionary()
    with pytest.raises(IncorrectError, match="same 64-bit id"):
        dictionary.add(pa.array(colliding_texts()))
    assert dictionary.texts == 0


def test_an_unknown_id_is_named() -> None:
    dictionary = Dictionary()
    ids = dictionary.add(pa.array(["ash"]))
    with pytest.raises(NotFoundError, match=r"id 7 \(row 1\)"):
        dictionary.lookup(np.append(ids, 7))


def test_what_is_no_string_array_is_refused() -> None:
    with pytest.raises(IncorrectError, match="found int64"):
        Dictionary().add(pa.array([1]))


def test_nothing_is_looked_up_as_nothing() -> None:
    dictionary = Dictionary()
    assert dictionary.add(pa.array([], pa.string())).tolist() == []
    assert dictionary.lookup(np.empty(0, np.int64)).to_pylist() == []
    assert dictionary.add(pa.nulls(2)).tolist() == [NULL, NULL]
    assert dictionary.lookup(np.full(2, NULL)).to_pylist() == [None, None]
    assert dictionary.since(START)[0].to_pylist() == []


def test_read_only_and_strided_ids_are_looked_up() -> None:
    dictionary = Dictionary()
    ids = dictionary.add(pa.array(["a", "b", "c"]))
    ids.flags.writeable = False
    assert dictionary.lookup(ids[::2]).to_pylist() == ["a", "c"]
    assert dictionary.lookup(ids).to_pylist() == ["a", "b", "c"]


def test_texts_longer_than_one_arrow_array_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_module, "_CHUNK_BYTES", 10)
    dictionary = Dictionary()
    texts = ["four", None, "seven..", "ten.......", "", "1", None]
    ids = dictionary.add(pa.array(texts))
    chunks = dictionary.lookup_chunks(ids)
    assert [chunk.to_pylist() for chunk in chunks] == [["four", None], ["seven.."], ["ten.......", ""], ["1", None]]
    with pytest.raises(UnsupportedError, match="lookup_chunks"):
        dictionary.lookup(ids)


def test_marks_see_each_text_once_in_order() -> None:
    dictionary = Dictionary()
    dictionary.add(pa.array(["b", "a"]))
    first, mark = dictionary.since()
    dictionary.add(pa.array(["a", "c", "", "b"]))
    second, mark = dictionary.since(mark)
    assert (first.to_pylist(), second.to_pylist()) == (["b", "a"], ["c", ""])
    assert dictionary.since(mark)[0].to_pylist() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_leaves_kernels_no_memory_that_is_gone(error: type[BaseException]) -> None:
    known = pa.array([f"known {number}" for number in range(600)])
    further = pa.array([f"further {number} {'x' * number}" for number in range(600)])

    def filled() -> Dictionary:
        dictionary = Dictionary()
        dictionary.add(known)
        return dictionary

    injector, dictionary = Injector(("values/text_space.py",)), filled()
    before = dictionary._space.table, dictionary._space.heap
    injector.call(lambda: dictionary.add(further))
    assert dictionary._space.table is not before[0] and dictionary._space.heap is not before[1]
    for at in range(1, injector.lines + 1):
        dictionary = filled()
        assert injector.call(lambda: dictionary.add(further), at, error)  # noqa: B023
        space = dictionary._space
        assert space.state[strings.TABLE] == space.table.ctypes.data, injector.where
        assert space.state[strings.HEAP] == space.heap.ctypes.data, injector.where
        assert dictionary.texts == 600, injector.where
        for texts in (known, further):
            assert dictionary.lookup(dictionary.add(texts)).to_pylist() == texts.to_pylist(), injector.where


@settings(deadline=None, max_examples=20)
@given(st.lists(st.lists(st.text(max_size=3), max_size=30), min_size=2, max_size=4))
def test_threads_share_a_dictionary(batches: list[list[str]]) -> None:
    dictionary = Dictionary()
    results: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        ids = dictionary.add(pa.array(batches[number], pa.string()))
        results[number] = dictionary.lookup(ids).to_pylist()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict(enumerate(batches))
    assert dictionary.texts == len({text for batch in batches for text in batch})


def test_texts_of_either_layout_and_ids_that_cannot_be_written_are_taken() -> None:
    dictionary = Dictionary()
    for layout in (pa.string(), pa.large_string()):
        texts = pa.array([str(i) for i in range(100)], layout)
        ids = dictionary.add(texts)
        ids.flags.writeable = False
        assert text_ids(texts).tolist() == ids.tolist()
        assert dictionary.lookup(ids).to_pylist() == texts.to_pylist()


def test_ids_that_share_their_low_bits_spread_over_the_table() -> None:
    # What the owner of one shard of ids sees: without mixing, they would all start probing at a few slots.
    words = np.arange(1000, dtype=np.int64) << 40
    homes = {strings.home_of(word, 64 - 11) for word in words}
    assert len(homes) > 500


def test_room_that_is_reserved_is_enough() -> None:
    texts = pa.array([f"text {n}" for n in range(20_000)])
    dictionary = Dictionary()
    known = dictionary.add(pa.array(["before", "text 7"]))
    dictionary.reserve(len(texts), texts.nbytes)
    space = dictionary._space
    table, heap = space.table, space.heap
    ids = dictionary.add(texts)
    assert space.table is table and space.heap is heap
    assert ids[7] == known[1]
    assert dictionary.lookup(known).to_pylist() == ["before", "text 7"]
    assert dictionary.lookup(ids).to_pylist() == texts.to_pylist()
