"""A collection removes exactly the texts that nobody has marked or added since it began, whatever others add meanwhile."""

from __future__ import annotations

import random
import weakref

import numpy as np
import pyarrow as pa
import pytest

from tektite.errors import IncorrectError, NotFoundError
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary, text_ids
from tektite.values.text_space import START
from tests.support.xxh64 import colliding_texts, text_with_narrow_id


def ids_of(texts: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return text_ids(pa.array(texts, pa.string()))


def collect(dictionary: Dictionary, used: list[str]) -> None:
    floor = dictionary.begin_era()
    dictionary.mark_words(ids_of(used))
    for _ in dictionary.sweep(floor, dictionary.mark()):
        pass


@pytest.mark.parametrize("seed", range(6))
def test_texts_in_use_and_texts_added_meanwhile_stay(seed: int) -> None:
    rng = random.Random(seed)
    dictionary = Dictionary()
    there: set[str] = set()

    def add(most: int) -> list[str]:
        texts = [f"{rng.randrange(3000)} " * rng.randrange(1, 4) for _ in range(rng.randrange(most))]
        dictionary.add(pa.array(texts, pa.string()))
        return texts

    for step in range(40):
        there.update(add(400))
        upto = dictionary.mark()
        later = [text for text in add(100) if text not in there] if step % 3 == 0 else []
        used = [text for text in there if rng.random() < 0.5]
        floor = dictionary.begin_era()
        dictionary.mark_words(ids_of(used))
        # What came after the mark stays, as texts do that no storage has yet.
        stays = {*used, *later}
        for _ in dictionary.sweep(floor, upto if later else dictionary.mark()):
            stays.update(add(60))
        after = dictionary.mark()
        new = [f"new {step} {n}" for n in range(5)]
        dictionary.add(pa.array(new))
        assert dictionary.since(after)[0].to_pylist() == new
        there = stays | set(new)
        found = dictionary.since(START)[0].to_pylist()
        assert sorted(found) == sorted(there)
        assert dictionary.texts == len(there)
        assert dictionary.lookup(ids_of(sorted(there))).to_pylist() == sorted(there)


def test_a_text_that_is_added_while_it_is_copied_stays_as_long_as_whoever_adds_it() -> None:
    dictionary = Dictionary()
    early = dictionary.adding()
    with early:
        dictionary.add(pa.array(["a"]))
        floor = dictionary.begin_era()
        with dictionary.adding():
            for step, _ in enumerate(dictionary.sweep(floor, dictionary.mark())):
                if step:  # it was copied
                    dictionary.add(pa.array(["a"]))
            assert step
            early.__exit__()
            collect(dictionary, [])
            assert dictionary.texts == 1
    collect(dictionary, [])
    assert dictionary.texts == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_move_loses_nothing_and_makes_room(seed: int) -> None:
    rng = random.Random(seed)
    dictionary = Dictionary()
    there = {f"{n} of them" for n in range(40_000)}
    dictionary.add(pa.array(sorted(there)))
    assert dictionary.is_due
    assert dictionary.needs_room()
    for step, _ in enumerate(dictionary.sweep(0, dictionary.mark())):
        texts = [f"{rng.randrange(50_000)} of them", f"new {step}"]
        there.update(texts)
        dictionary.add(pa.array(texts))
    assert sorted(dictionary.since(START)[0].to_pylist()) == sorted(there)
    assert dictionary.is_due  # before there was more room
    assert not dictionary.needs_room()
    dictionary.add(pa.array(["one more"]))
    assert not dictionary.is_due
    used = rng.sample(sorted(there), 100)
    collect(dictionary, used)
    assert sorted(dictionary.since(START)[0].to_pylist()) == sorted(used)


def test_marks_of_texts_behind_the_boundary_stay_valid() -> None:
    dictionary = Dictionary()
    dictionary.add(pa.array(["gone", "used"]))
    written = dictionary.mark()
    dictionary.add(pa.array(["waits"]))
    floor = dictionary.begin_era()
    dictionary.mark_words(ids_of(["used"]))
    for _ in dictionary.sweep(floor, written):
        pass
    texts, mark = dictionary.since(written)
    assert texts.to_pylist() == ["waits"]
    assert mark == dictionary.mark()
    assert dictionary.texts == 2


def test_a_text_that_is_gone_is_not_found_and_can_be_added_again() -> None:
    dictionary = Dictionary()
    ids = dictionary.add(pa.array(["gone", "used"]))
    collect(dictionary, ["used"])
    with pytest.raises(NotFoundError):
        dictionary.lookup(ids)
    assert dictionary.has(ids).tolist() == [False, True]
    assert dictionary.add(pa.array(["gone"])).tolist() == ids[:1].tolist()
    assert dictionary.lookup(ids).to_pylist() == ["gone", "used"]


def test_a_refused_text_takes_nothing_along_while_others_are_collected() -> None:
    first, second = colliding_texts()
    dictionary = Dictionary()
    dictionary.add(pa.array([first, "doomed", "used"]))
    floor = dictionary.begin_era()
    dictionary.mark_words(ids_of([first, "used"]))
    for _ in dictionary.sweep(floor, dictionary.mark()):
        with pytest.raises(IncorrectError):
            dictionary.add(pa.array(["doomed", "new", second]))
    assert sorted(dictionary.since(START)[0].to_pylist()) == sorted([first, "used"])


def test_the_id_of_a_text_that_is_gone_is_free_for_another() -> None:
    first, second = colliding_texts()
    dictionary = Dictionary()
    dictionary.add(pa.array([first]))
    collect(dictionary, [])
    ids = dictionary.add(pa.array([second]))
    assert dictionary.lookup(ids).to_pylist() == [second]


def test_arrays_keep_their_texts_as_long_as_they_live() -> None:
    dictionary = Dictionary()
    words = dictionary.add(pa.array(["a", "b"]))
    dictionary.pin(words)
    assert [found is words for found in dictionary.pinned()] == [True]
    gone = weakref.ref(words)
    del words
    assert gone() is None
    assert dictionary.pinned() == []


def test_who_adds_keeps_texts_until_the_next_collection_can_find_them() -> None:
    dictionary = Dictionary()
    with dictionary.adding():
        ids = dictionary.add(pa.array(["on its way"]))
        collect(dictionary, [])
        assert dictionary.lookup(ids).to_pylist() == ["on its way"]
    collect(dictionary, [])
    assert dictionary.texts == 0


def test_who_reads_is_known_until_the_block_is_left() -> None:
    dictionary = Dictionary()
    with dictionary.text_use():
        dictionary.begin_era()
        assert dictionary.reads_before(dictionary.era)
        with dictionary.text_use():  # began later, so it can have nothing that is about to go
            pass
    assert not dictionary.reads_before(dictionary.era)


def test_ids_are_found_in_stored_constant_and_narrow_columns() -> None:
    dictionary = Dictionary()
    ids = dictionary.add(pa.array(["stored", "constant", "gone"]))
    stored, constant, _ = ids.tolist()
    rows = Chunk.of_array(np.array([[1, 2], [stored, 7], [constant, constant]], np.int64))
    floor = dictionary.begin_era()
    assert dictionary.mark_rows(rows.at) == -1
    for _ in dictionary.sweep(floor, dictionary.mark()):
        pass
    assert dictionary.has(ids).tolist() == [True, True, False]


@pytest.mark.parametrize("as_rows", [False, True])
def test_an_id_that_is_a_small_number_is_found_among_numbers(as_rows: bool) -> None:
    small = text_with_narrow_id()
    dictionary = Dictionary()
    ids = dictionary.add(pa.array(["used", small, "gone"]))
    assert abs(ids.item(1)) < 1 << 31
    words = np.array([[3, *ids[:2].tolist(), 4]])
    floor = dictionary.begin_era()
    if as_rows:
        assert dictionary.mark_rows(Chunk.of_array(words).at) == -1
    else:
        dictionary.mark_words(words)
    for _ in dictionary.sweep(floor, dictionary.mark()):
        pass
    assert dictionary.has(ids).tolist() == [True, True, False]


def test_eras_do_not_run_out() -> None:
    dictionary = Dictionary()
    dictionary.add(pa.array(["used"]))
    left = dictionary.eras_left
    for _ in range(5):
        collect(dictionary, ["used"])
    assert dictionary.eras_left >= left - 1
