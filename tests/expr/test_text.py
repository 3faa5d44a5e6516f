"""Text functions are evaluated once for each distinct text, and their memos are shared and let go."""

from __future__ import annotations

import gc
import random
import re
import threading
import weakref

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tektite.errors import FaultError, IncorrectError
from tektite.expr import col, compile, concat, text_word
from tektite.expr.steps import TextFunction
from tektite.expr.text import memo_for, set_table
from tektite.kernels.expr.memo import HEADER
from tektite.kernels.layout.rows import head_of_array
from tektite.values.dictionary import Dictionary
from tektite.values.types import Int, String
from tektite.values.words import NULL
from tests.support.expression_twin import Rows, TextDictionary, read

s, r, n = col("s"), col("r"), col("n")
SCHEMA = {"s": String, "r": String, "n": Int}


def texts(dictionary: TextDictionary, *values: tuple[object, ...]) -> Rows:
    return Rows(SCHEMA, list(values), dictionary)


def test_each_distinct_text_is_looked_up_once() -> None:
    dictionary = TextDictionary()
    source = texts(dictionary, *[(f"t{k % 10}", "x", k) for k in range(5000)])
    assert source.values(s.upper()) == [f"T{k % 10}" for k in range(5000)]
    assert dictionary.looked_up == 10
    assert source.values(s.upper().length()) == [2] * 5000
    assert source.run([s.upper()], n == 3) == [("T3", 3, 1)]


def test_more_distinct_texts_than_one_run_can_report() -> None:
    source = texts(TextDictionary(), *[(f"Text {k}", f"{k % 3}", k) for k in range(5000)])
    assert source.values(s.lower().concat(r)) == [f"text {k}{k % 3}" for k in range(5000)]


def test_a_failure_does_not_count_while_texts_are_unknown() -> None:
    source = texts(TextDictionary(), *[(f"{k}", None, k) for k in range(5000)])
    assert source.values(s.cast(Int) + 1) == [k + 1 for k in range(5000)]


def test_a_memo_is_shared_by_programs_and_goes_with_the_last() -> None:
    dictionary = TextDictionary()
    source = texts(dictionary, ("a", "b", 1), ("c", "d", 2))
    one, two = source.compile([s.lower()]), source.compile([r, s.lower()], n > 0)
    assert one._memos[0] is two._memos[0]
    assert source.compile([r.lower()])._memos[0] is one._memos[0]
    assert source.compile([s.strip("a")])._memos[0] is not source.compile([s.strip("b")])._memos[0]
    gone = weakref.ref(one._memos[0])
    del one, two
    gc.collect()
    assert gone() is None


def test_results_are_let_go_where_texts_hardly_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tektite.expr.text.WORTH_KEEPING", 100)
    dictionary = TextDictionary()
    runner = texts(dictionary).compile([s.upper()])
    (memo,) = runner._read
    kept = []
    for part in (*range(6), 5, 5, 5):
        values = [(f"t{part} {k}", "x", k) for k in range(40)]
        source = texts(dictionary, *values)
        _, head = runner.run(int(source.head[1]), 3, 1, 1, NULL, source.array)
        assert dictionary.lookup(read(head)[0]).to_pylist() == [value.upper() for value, _, _ in values]
        kept.append(len(memo))
    assert kept == [40, 80, 120, 40, 80, 120, 40, 40, 40]


def test_memos_do_not_keep_a_dictionary_alive() -> None:
    dictionary = TextDictionary()
    kept = memo_for(TextFunction("length", (None,), (String,), Int), dictionary)
    gone = weakref.ref(dictionary)
    del dictionary
    gc.collect()
    assert gone() is None and len(kept) == 0


def test_nested_functions_learn_level_by_level() -> None:
    source = texts(TextDictionary(), ("aXbX", "q", 1), ("Xc", None, 2), (None, "z", 3))
    nested = s.replace("X", "yy").upper().replace("YY", "z").lower().substring(2).lower()
    assert source.values(nested) == ["zbz", "c", None]
    assert source.run([nested.length()], nested.startswith("z")) == [(3, 0, 1)]


def test_functions_of_several_columns() -> None:
    source = texts(TextDictionary(), ("abc", "b", 2), ("abc", "x", 1), (None, "b", 1), ("", "", 3))
    assert source.values(concat(s, r)) == ["abcb", "abcx", None, ""]
    assert source.values(concat(s, "<", n, ">", r)) == ["abc<2>b", "abc<1>x", None, "<3>"]
    assert source.values(concat(s, r, s, r, s, n)) == ["abcbabcbabc2", "abcxabcxabc1", None, "3"]
    assert source.values(s.contains(r)) == [True, False, None, True]
    assert source.values(s.substring(n, 1)) == ["b", "a", None, ""]
    assert source.values(s.substring(n, n)) == ["bc", "a", None, ""]
    assert source.values(s.replace(r, n.cast(String))) == ["a2c", "abc", None, ""]
    assert source.values(s < r) == [True, True, None, False]
    assert source.values(s <= r) == [True, True, None, True]


def test_text_is_ordered_by_code_points() -> None:
    words = ["", "A", "Z", "a", "aa", "b", "é", "\uffff", "\U0001f600", "same prefix 1", "same prefix 2", "\x00"]
    source = texts(TextDictionary(), *[(one, other, 0) for one in words for other in words])
    assert source.values(s < r) == [one < other for one in words for other in words]
    for other in words:
        assert source.values(s >= other) == [one >= other for one in words for _ in words]


def test_like_matches_across_lines_and_takes_no_special_characters() -> None:
    source = texts(TextDictionary(), ("a\nb", "", 0), ("a.b", "", 0), ("a(b", "", 0), ("a\\b", "", 0), ("a%b", "", 0))
    assert source.values(s.like("a%b")) == [True] * 5
    assert source.values(s.like("a_b")) == [True] * 5
    assert source.values(s.like("a.b")) == [False, True, False, False, False]
    assert source.values(s.like("a(b")) == [False, False, True, False, False]
    assert source.values(s.like("a\\b")) == [False, False, False, True, False]
    assert source.values(s.like("a!%b", "!")) == [False, False, False, False, True]
    assert source.values(s.like("a\\\\b", "\\")) == [False, False, False, True, False]


def test_results_of_text_are_texts_of_the_dictionary() -> None:
    dictionary = TextDictionary()
    source = texts(dictionary, ("New", "", 0))
    source.values(s.concat(" text"))
    assert "New text" in dictionary.texts.values()


def test_constant_texts_are_computed_when_compiled() -> None:
    source = texts(TextDictionary(), ("ABC", "", 0), ("x", "", 0))
    program = source.compile([s == concat("a", "bc").upper()])
    assert program._words[7] == 1, "the kernel has one step"
    assert source.values(s == concat("a", "bc").upper()) == [True, False]


def test_a_set_table_has_its_words_and_no_others() -> None:
    words = list(range(0, 3000, 3))
    table = set_table(words)
    entries = table[HEADER:].reshape(-1, 2)
    assert sorted(entries[entries[:, 0] != NULL][:, 0].tolist()) == words and table[2] == 1000
    source = texts(TextDictionary(), *[("", "", k) for k in range(-5, 3005)])
    assert source.values(n.isin(words)) == [k in set(words) for k in range(-5, 3005)]


def test_a_memo_that_does_not_learn_is_a_fault_and_not_an_endless_loop() -> None:
    source = texts(TextDictionary(), ("a", "", 0))
    program = source.compile([s.lower()])
    program._memos[0].learn = lambda *args: None  # type: ignore[method-assign]
    with pytest.raises(FaultError, match=r"s.lower\(\): texts stay unknown"):
        program.run(int(source.head[1]), 3, 1, 1, NULL, source.array)


@given(st.integers(0, 2**32))
def test_like_is_what_a_regular_expression_says(seed: int) -> None:
    chance = random.Random(seed)

    def text(alphabet: str, most: int) -> str:
        return "".join(chance.choice(alphabet) for _ in range(chance.randrange(most)))

    pattern = text("aab%%_é木!", 9).rstrip("!")
    values = [text("aabé木!%_\n", 12) for _ in range(40)]
    source = texts(TextDictionary(), *((value, None, None) for value in values))
    for escape in (None, "!"):
        parts = re.findall("!.|.", pattern, re.DOTALL) if escape else list(pattern)
        wanted = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
        found = [re.fullmatch(wanted, value, re.DOTALL) is not None for value in values]
        assert source.values(s.like(pattern, escape) if escape else s.like(pattern)) == found
    part = text("aabé木", 3)
    assert source.values(s.startswith(part)) == [value.startswith(part) for value in values]
    assert source.values(s.endswith(part)) == [value.endswith(part) for value in values]
    assert source.values(s.contains(part)) == [part in value for value in values]


def test_patterns_are_matched_while_others_add_texts() -> None:
    dictionary = Dictionary()
    ids = dictionary.add(pa.array([f"text {i} of many" for i in range(3000)]))
    program = compile([s.like("%1% of%")], None, {"s": (0, String)}, dictionary)
    head = head_of_array(ids.reshape(1, -1), len(ids))
    wanted = ["1" in str(i) for i in range(3000)]
    going = True

    def add() -> None:
        number = 0
        while going:
            dictionary.add(pa.array([f"another {number + i}" for i in range(500)]))
            number += 500

    adder = threading.Thread(target=add)
    adder.start()
    try:
        for _ in range(100):
            _, found = program.run(int(head[1]), 1, 0, 0, NULL)
            assert read(found)[0].astype(bool).tolist() == wanted
    finally:
        going = False
        adder.join()


@given(st.lists(st.text(max_size=20) | st.none(), max_size=20), st.integers(0, 3))
def test_a_word_of_a_text_orders_as_its_bytes_do(values: list[str | None], number: int) -> None:
    source = texts(TextDictionary(), *[(value, "x", 0) for value in values])
    wanted = [
        None if value is None else int.from_bytes(value.encode()[7 * number : 7 * number + 7].ljust(7, b"\0"))
        for value in values
    ]
    assert source.values(text_word(s, number)) == wanted


def test_only_texts_have_words() -> None:
    with pytest.raises(IncorrectError, match="only a text has bytes"):
        texts(TextDictionary(), ("a", "b", 1)).values(text_word(n, 0))
