"""Words of every type: what they are, that they come back, that floats keep their order, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tektite.errors import FaultError, IncorrectError, UnsupportedError
from tektite.values import words
from tektite.values.type_names import List, Struct
from tektite.values.types import (
    Blob,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Interval,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from tektite.values.words import NAN, NULL, decode, decode_list, encode, float_keys, float_words, word_floats

FLOATS = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324]))
MOMENTS = st.datetimes()
DECIMALS = st.decimals(min_value=-(10**10), max_value=10**10, allow_nan=False, allow_infinity=False, places=4)

ROUND_TRIPS: list[tuple[Type, Any]] = [
    (Int, st.integers(NULL + 1, -NULL - 1)),
    (Float, FLOATS),
    (Bool, st.booleans()),
    (Date, st.dates()),
    (Timestamp, MOMENTS),
    (Decimal(18, 4), DECIMALS),
]


def same(left: Any, right: Any) -> bool:
    """Equal, and for floats equal bit by bit but for the bits of NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or struct.pack("d", left) == struct.pack("d", right)
    return bool(left == right)


@pytest.mark.parametrize(("type", "values"), ROUND_TRIPS, ids=str)
@given(data=st.data())
def test_values_come_back(type: Type, values: Any, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.one_of(st.none(), values)))
    array = pa.array(rows, words.arrow_type(type))
    encoded = encode(array, type)
    assert encoded.dtype == np.int64
    assert [word == NULL for word in encoded.tolist()] == [row is None for row in rows]
    decoded = decode(encoded, type)
    decoded.validate(full=True)
    assert decoded.type == words.arrow_type(type)
    for back in (decoded.to_pylist(), decode_list(encoded, type)):
        assert len(back) == len(rows) and all(map(same, back, rows))


@pytest.mark.parametrize(
    ("value", "type", "word"),
    [
        (-7, Int, -7),
        (True, Bool, 1),
        (False, Bool, 0),
        (datetime.date(1969, 12, 31), Date, -1),
        (datetime.date(1, 1, 1), Date, -719162),
        (datetime.date(9999, 12, 31), Date, 2932896),
        (datetime.datetime(1970, 1, 1, 0, 0, 1), Timestamp, 1_000_000),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), Timestamp, -1),
        (decimal.Decimal("-1.5"), Decimal(18, 4), -15000),
        (decimal.Decimal("99999999999999.9999"), Decimal(18, 4), 10**18 - 1),
        (0.0, Float, 0),
        (-0.0, Float, -1),
        (math.nan, Float, NAN),
    ],
)
def test_words_are_what_the_layout_says(value: Any, type: Type, word: int) -> None:
    assert encode(pa.array([value]), type).tolist() == [word]


@given(st.lists(FLOATS, min_size=2, max_size=2))
def test_words_of_floats_compare_as_floats(pair: list[float]) -> None:
    left, right = pair
    low, high = float_words(np.array(pair)).tolist()
    if math.isnan(left) or math.isnan(right):
        assert (low < high) == (math.isnan(right) and not math.isnan(left))
        assert (low == high) == (math.isnan(right) and math.isnan(left))
    elif left == right == 0:
        assert (low < high) == (math.copysign(1, left) < math.copysign(1, right))
    else:
        assert (low < high) == (left < right) and (low == high) == (left == right)


@given(st.integers(NULL, -NULL - 1))
def test_any_bits_of_a_nan_are_one_word_and_no_float_is_null(bits: int) -> None:
    value = np.array([bits]).view(np.float64)
    word = float_words(value)
    assert word[0] != NULL
    if np.isnan(value[0]):
        assert word[0] == NAN
    else:
        assert word_floats(word).view(np.int64)[0] == bits


def test_as_keys_negative_zero_is_zero_and_nothing_else_changes() -> None:
    values = np.array([-0.0, 0.0, -5e-324, 5e-324, np.nan, -np.inf])
    keys = float_keys(np.append(float_words(values), NULL))
    assert keys.tolist() == [0, 0, *float_words(values[2:]).tolist(), NULL]


@pytest.mark.parametrize(
    ("array", "type", "expected"),
    [
        (pa.array([1, None], pa.int8()), Int, [1, NULL]),
        (pa.array([2**63 - 1], pa.uint64()), Int, [2**63 - 1]),
        (pa.array([3], pa.int64()), Float, float_words(np.array([3.0])).tolist()),
        (pa.array([1.5], pa.float32()), Float, float_words(np.array([1.5])).tolist()),
        (pa.array([datetime.date(1970, 1, 2)], pa.date64()), Date, [1]),
        (pa.array([-86400, None], pa.timestamp("s")), Date, [-1, NULL]),
        (pa.array([-1, None], pa.timestamp("s")), Timestamp, [-1_000_000, NULL]),
        (pa.array([-2000], pa.timestamp("ns")), Timestamp, [-2]),
        (pa.array([datetime.date(1970, 1, 2)]), Timestamp, [86_400_000_000]),
        (pa.array([7, None, -7]), Decimal(5, 2), [700, NULL, -700]),
        (pa.array([decimal.Decimal("1.50")], pa.decimal128(38, 10)), Decimal(2, 1), [15]),
        (pa.array([decimal.Decimal("1.5")], pa.decimal256(70, 3)), Decimal(2, 1), [15]),
        (pa.array([5, 6, 5, None]).dictionary_encode(), Int, [5, 6, 5, NULL]),
        (pa.nulls(2), Float, [NULL, NULL]),
        (pa.array([decimal.Decimal(1), decimal.Decimal(2)]).slice(1), Decimal(3, 0), [2]),
        (pa.array([1, 2, None]).slice(1), Int, [2, NULL]),
        (pa.chunked_array([[1], [2, None]]), Int, [1, 2, NULL]),
        (pa.chunked_array([], pa.int64()), Int, []),
    ],
)
def test_other_arrow_types_are_taken_where_nothing_is_lost(array: Any, type: Type, expected: list[int]) -> None:
    assert encode(array, type).tolist() == expected


@pytest.mark.parametrize(
    ("array", "type", "message"),
    [
        (
            pa.array([1, NULL]),
            Int,
            "column 'c': found -9223372036854775808 in row 1, the word that is reserved for NULL",
        ),
        (pa.array([None, NULL]), Int, "reserved for NULL"),
        (pa.array([0] * 100 + [NULL]), Int, "in row 100, the word that is reserved"),
        (pa.array([NULL], pa.timestamp("us")), Timestamp, "reserved for NULL"),
        (pa.array([1, 2**63], pa.uint64()), Int, "found 9223372036854775808 in row 1, which does not fit in 64 bits"),
        (pa.array([None, 1.5]), Int, r"expected int, found double in row 1 \(1.5\)"),
        (pa.array(["x"]), Int, r"expected int, found string in row 0 \('x'\)"),
        (pa.array([True]), Int, "expected int, found bool"),
        (pa.array([1]), Bool, "expected bool, found int64"),
        (pa.array([1.5]), Decimal(18, 2), "found double in row 0 .* a float has no exact decimal"),
        (pa.array([1, 2**53 + 1]), Float, "found 9007199254740993 in row 1, which is no float exactly"),
        (pa.array([decimal.Decimal("1.25")]), Float, "expected float, found decimal128"),
        (
            pa.array([decimal.Decimal("1.5"), decimal.Decimal("1.25")]),
            Decimal(5, 1),
            "found 1.25 in row 1, which needs more",
        ),
        (
            pa.array([decimal.Decimal("1"), decimal.Decimal("1000")]),
            Decimal(5, 2),
            "found 1000 in row 1, which needs more",
        ),
        (pa.array([1, -1000]), Decimal(5, 2), "found -1000 in row 1, which needs more than 3 digits before"),
        (pa.array([2**63 - 1]), Decimal(18, 0), "needs more than 18 digits"),
        (pa.array([0, 3600], pa.timestamp("s")), Date, "found 1970-01-01 01:00:00 in row 1, which has a time of day"),
        (pa.array([0], pa.timestamp("s", "UTC")), Date, r"expected date, found timestamp\[s, tz=UTC\]"),
        (
            pa.array([None, 0], pa.timestamp("us", "Europe/Berlin")),
            Timestamp,
            r"a timestamp without a time zone, found 1970.* row 1",
        ),
        (pa.array([1], pa.timestamp("ns")), Timestamp, "which is not a whole number of microseconds"),
        (
            pa.array([2**62], pa.timestamp("s")),
            Timestamp,
            "in row 0, which is not a whole number of microseconds that fits",
        ),
        (pa.array([datetime.timedelta(1)]), Timestamp, r"expected timestamp, found duration\[us\]"),
        (
            pa.chunked_array([pa.array([1], pa.uint64()), pa.array([1, 2**63], pa.uint64())]),
            Int,
            "in row 2, which does not fit",
        ),
        (pa.array(["a"]), String, "add them to a dictionary"),
    ],
)
def test_what_does_not_fit_is_named(array: Any, type: Type, message: str) -> None:
    with pytest.raises(IncorrectError, match=message) as error:
        encode(array, type, "c")
    assert "column 'c'" in str(error.value)


@pytest.mark.parametrize(
    ("word", "type"),
    [(2, Bool), (2**31, Date), (1000, Decimal(3, 1)), (-1000, Decimal(3, 1))],
)
def test_a_word_that_is_no_value_is_a_fault(word: int, type: Type) -> None:
    with pytest.raises(FaultError, match=f"column 'c': the word {word} in row 1"):
        decode(np.array([0, word]), type, "c")


def test_strings_need_their_dictionary() -> None:
    with pytest.raises(IncorrectError, match="column 'c' holds strings"):
        decode(np.array([1]), String, "c")


@pytest.mark.parametrize(("word", "type"), [(2932897, Date), (-719163, Date), (2**62, Timestamp)])
def test_python_has_no_moment_beyond_the_year_9999(word: int, type: Type) -> None:
    assert decode(np.array([word]), type).view(words.arrow_type(type)).null_count == 0
    with pytest.raises(UnsupportedError, match="outside the years 1 to 9999"):
        decode_list(np.array([word]), type)


@pytest.mark.parametrize(
    ("arrow", "type"),
    [
        (pa.int16(), Int),
        (pa.uint64(), Int),
        (pa.float32(), Float),
        (pa.bool_(), Bool),
        (pa.date64(), Date),
        (pa.timestamp("ns"), Timestamp),
        (pa.timestamp("ns", "UTC"), TimestampTz),
        (pa.time32("s"), Time),
        (pa.duration("us"), Interval),
        (pa.large_binary(), Blob),
        (pa.list_(pa.int8()), List(Int)),
        (pa.struct({"x": pa.int8(), "y": pa.list_(pa.string())}), Struct(x=Int, y=List(String))),
        (pa.decimal128(38, 2), Decimal(38, 2)),
        (pa.string_view(), String),
        (pa.dictionary(pa.int8(), pa.large_string()), String),
        (pa.decimal128(18, 18), Decimal(18, 18)),
    ],
)
def test_arrow_types_have_types(arrow: pa.DataType, type: Type) -> None:
    assert words.type_from_arrow(arrow) == type


@pytest.mark.parametrize(
    "arrow",
    [pa.map_(pa.string(), pa.int64()), pa.decimal256(40, 2), pa.decimal128(5, -2), pa.null(), pa.list_(pa.null())],
)
def test_arrow_types_without_a_type_are_named(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="has no Tektite type"):
        words.type_from_arrow(arrow)


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=200))
def test_validity_bits_mark_the_nulls(rows: list[int | None]) -> None:
    column = np.array([NULL if row is None else row for row in rows], np.int64)
    assert decode(column, Int).to_pylist() == rows
