"""Faults of words, the dictionary, schemas and columns."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.values.dictionary import Dictionary
from tests.house.mutations.fault import Fault, being, misled, nothing


def read_back(rows: list[Any], **columns: tk.Type) -> list[Any]:
    """The rows of an input that was given these."""
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", columns)
        table.insert(rows)
        engine.advance()
        return engine.install("all", table).rows()


def the_least_float_is_negative() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Float})
        table.insert({"x": [-1.5, 2.0, -7.25]})  # rows are encoded by C
        engine.advance()
        assert engine.install("least", table.min("x")).rows() == [(-7.25,)]


def both_zeros_are_one_key() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Float, "y": tk.Int}, mode="upsert", primary_key=["x"])
        table.insert([(0.0, 1), (-0.0, 2)])
        engine.advance()
        assert engine.install("all", table).rows() == [(0.0, 2)]


def null_stays_null() -> None:
    rows = [(None, None, None), (1.5, decimal.Decimal("0.25"), datetime.date(1999, 12, 31))]
    found = read_back(rows, f=tk.Float, d=tk.Decimal(8, 2), day=tk.Date)
    assert sorted(found, key=str) == sorted(rows, key=str)


def the_word_of_null_is_no_number() -> None:
    with pytest.raises(tk.IncorrectError):
        read_back([(-(2**63),)], n=tk.Int)


def a_date_has_no_time_of_day() -> None:
    with tk.Engine(autocommit=False) as engine, pytest.raises(tk.IncorrectError):
        engine.create_table("t", {"d": tk.Date}).insert(pa.table({"d": pa.array([1_000_000], pa.timestamp("us"))}))


def decimals_keep_their_sign() -> None:
    assert read_back([(decimal.Decimal("-1.50"),)], d=tk.Decimal(8, 2)) == [(decimal.Decimal("-1.50"),)]


def texts_come_back_in_their_order() -> None:
    dictionary = Dictionary()
    texts = ["ash", "beech", None, "ash", "cedar"]
    assert dictionary.lookup(dictionary.add(pa.array(texts))).to_pylist() == texts


def a_call_that_fails_adds_no_text() -> None:
    dictionary = Dictionary()
    with pytest.raises((tk.TektiteError, AttributeError, TypeError)):
        dictionary.add_all([pa.array(["ash"]), 7])
    assert dictionary.texts == 0


def only_texts_after_the_mark_are_new() -> None:
    dictionary = Dictionary()
    dictionary.add(pa.array(["ash"]))
    _, mark = dictionary.since()
    dictionary.add(pa.array(["ash", "beech"]))
    assert dictionary.since(mark)[0].to_pylist() == ["beech"]


def a_schema_selects_in_the_order_asked_for() -> None:
    schema = tk.Schema(a=tk.Int, b=tk.String)
    assert schema.select("b", "a").names == ("b", "a")


def columns_are_found_by_name() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
        table.insert({"b": [1], "a": [2]})
        engine.advance()
        assert engine.install("all", table).rows() == [(2, 1)]


def whole_arrays_are_checked_too() -> None:
    with tk.Engine(autocommit=False) as engine, pytest.raises(tk.IncorrectError):
        engine.create_table("t", {"n": tk.Int, "m": tk.Int}).insert(np.full((200, 2), -(2**63)))


def lists_order_as_their_elements_do() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"l": tk.List(int)})
        table.insert([([1],), ([-2, 5],), ([],), ([1, 0],)])
        engine.advance()
        assert engine.sql("SELECT l FROM t WHERE l < [1] ORDER BY l").rows() == [([],), ([-2, 5],)]


def a_list_tells_its_ends_from_its_elements() -> None:
    rows = [(["a", "b"],), (["a\0b"],), ([None, ""],)]
    assert sorted(read_back(rows, l=tk.List(str)), key=str) == sorted(rows, key=str)


def a_month_is_as_long_as_thirty_days() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql("CREATE TABLE t (i INTERVAL)")
        engine.sql("INSERT INTO t VALUES ('1 month'), ('30 days'), ('31 days')")
        engine.advance()
        assert sorted(n for (n,) in engine.sql("SELECT count(*) FROM t GROUP BY i").rows()) == [1, 2]


WORDS = "tektite.values.words"
COMPOSITES = "tektite.values.composites"
FAULTS = [
    Fault("floats are ordered as their bits are", f"{WORDS} float_words",
          lambda there: lambda values: np.ascontiguousarray(values, np.float64).view(np.int64).copy(),
          the_least_float_is_negative),
    Fault("the two zeros are two keys", f"{WORDS} float_keys", lambda there: lambda words: words, both_zeros_are_one_key),
    Fault("nulls of floats and decimals are zeros", f"{WORDS} _with_nulls",
          lambda there: lambda words, values: words, null_stays_null),
    Fault("the word of NULL is let in", f"{WORDS} check_reserved", nothing, the_word_of_null_is_no_number),
    Fault("the word of NULL is let in with many others", f"{WORDS} check_reserved", nothing, whole_arrays_are_checked_too),
    Fault("the time of day is cut off", f"{WORDS} _ENCODERS[date]",
          misled(lambda values, *rest: (values.cast(pa.timestamp("s"), safe=False).cast(pa.date32(), safe=False), *rest)),
          a_date_has_no_time_of_day),
    Fault("decimals lose their sign", f"{WORDS} _DECODERS[decimal]",
          lambda there: lambda words, *rest: there(abs(words), *rest), decimals_keep_their_sign),
    Fault("texts come back to front", "tektite.values.dictionary Dictionary.lookup_chunks",
          misled(lambda self, ids: (self, ids[::-1])), texts_come_back_in_their_order),
    Fault("texts of a failed call stay", "tektite.values.dictionary Dictionary.add_all",
          lambda there: lambda self, columns: [there(self, [texts])[0] for texts in columns], a_call_that_fails_adds_no_text),
    Fault("every text is new", "tektite.values.dictionary Dictionary.since",
          lambda there: lambda self, mark=None: there(self), only_texts_after_the_mark_are_new),
    Fault("columns are selected by name", "tektite.values.schema Schema.select",
          misled(lambda self, *names: (self, *sorted(names))), a_schema_selects_in_the_order_asked_for),
    Fault("columns are taken as they lie", "tektite.values.columns _by_name",
          lambda there: lambda data, found, names: [data[name] for name in data], columns_are_found_by_name),
    Fault("words in lists are ordered without their signs", f"{COMPOSITES} _SIGN", being(np.uint64(0)),
          lists_order_as_their_elements_do),
    Fault("an end in an element ends it", f"{COMPOSITES} KEPT", being("\x00"), a_list_tells_its_ends_from_its_elements),
    Fault("intervals are told apart by their parts", "tektite.expr.text FUNCTIONS[equal_key]",
          lambda there: lambda texts, type: texts, a_month_is_as_long_as_thirty_days),
]  # fmt: skip
