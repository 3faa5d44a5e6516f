"""Schemas: every form of data gives the same words, every bad input an error that names it."""

from __future__ import annotations

import datetime
import decimal
import pickle
import subprocess
import sys
import types
from collections import namedtuple
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp
from tektite.values.words import NULL
from tests.support.xxh64 import colliding_texts
from tests.values.test_words import same

EDGES = Schema(src=Int, dst=Int)
MIXED = Schema(n=Int, x=Float, s=String)
ALL = Schema(i=Int, f=Float, b=Bool, d=Date, t=Timestamp, m=Decimal(12, 2), s=String)
Edge = namedtuple("Edge", "src dst")

EDGE_FORMS: dict[str, Any] = {
    "tuples": [(1, 2), (3, 4)],
    "lists": [[1, 2], [3, 4]],
    "named tuples": [Edge(1, 2), Edge(3, 4)],
    "tuple of tuples": ((1, 2), (3, 4)),
    "iterator": "made in the test",
    "rows of NumPy scalars": [(np.int64(1), np.int32(2)), (np.int64(3), 4)],
    "rows of NumPy arrays": [np.array([1, 2]), np.array([3, 4])],
    "dicts": [{"src": 1, "dst": 2}, {"dst": 4, "src": 3}],
    "columns as lists": {"dst": [2, 4], "src": [1, 3]},
    "columns as tuples and ranges": {"dst": (2, 4), "src": range(1, 4, 2)},
    "columns as NumPy": {"src": np.array([1, 3]), "dst": np.array([2, 4])},
    "columns as narrow NumPy": {"src": np.array([1, 3], np.int8), "dst": np.array([2, 4], np.uint64)},
    "columns as swapped NumPy": {"src": np.array([1, 3], ">i8"), "dst": np.array([2, 4], ">i4")},
    "columns as strided NumPy": {"src": np.array([1, 0, 3])[::2], "dst": np.array([4, 2])[::-1]},
    "columns as objects": {"src": np.array([1, 3], object), "dst": [2, 4]},
    "columns as Arrow": {"src": pa.array([1, 3]), "dst": pa.chunked_array([[2], [4]])},
    "columns as series": {"src": pd.Series([1, 3], [7, 9]), "dst": pd.Series([2, 4])},
    "2-D": np.array([[1, 2], [3, 4]]),
    "2-D narrow": np.array([[1, 2], [3, 4]], np.int32),
    "2-D Fortran": np.asfortranarray([[1, 2], [3, 4]]),
    "structured": np.array([(2, 1), (4, 3)], [("dst", "i4"), ("src", "i8")]),
    "Arrow table": pa.table({"dst": [2, 4], "src": [1, 3]}),
    "Arrow batch": pa.record_batch({"src": [1, 3], "dst": [2, 4]}),
    "data frame": pd.DataFrame({"dst": [2, 4], "src": [1, 3]}, index=[5, 6]),
    "nullable data frame": pd.DataFrame({"src": [1, 3], "dst": [2, 4]}, dtype="Int64"),
    "Arrow stream": "made in the test",
}


@pytest.mark.parametrize("form", EDGE_FORMS)
def test_every_form_of_data_gives_the_same_words(form: str) -> None:
    data = EDGE_FORMS[form]
    if form == "iterator":
        data = iter([(1, 2), (3, 4)])
    if form == "Arrow stream":
        data = pa.table({"src": [1, 3], "dst": [2, 4]}).to_reader()
    encoded = EDGES.encode(data)
    assert encoded.tolist() == [[1, 3], [2, 4]]
    assert encoded.dtype == np.int64 and encoded.flags.c_contiguous and encoded.flags.writeable


@pytest.mark.parametrize(
    "data", [np.array([5, 6]), np.array([5, 6], "u4"), pa.array([5, 6]), pd.Series([5, 6]), {"n": [5, 6]}]
)
def test_one_column_may_come_without_a_table_around_it(data: Any) -> None:
    assert Schema(n=Int).encode(data).tolist() == [[5, 6]]


def test_a_set_of_rows_is_rows() -> None:
    assert EDGES.encode({(1, 2)}).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "data",
    [
        [],
        (),
        {"src": [], "dst": []},
        {"src": np.array([]), "dst": np.array([])},
        np.array([]),
        np.empty((0, 2), np.int64),
        np.empty((0, 2)),
        EDGES.arrow.empty_table(),
        pa.table({"src": pa.nulls(0), "dst": pa.nulls(0)}),
        pd.DataFrame({"src": [], "dst": []}),
        iter(()),
    ],
)
def test_no_rows_are_no_words(data: Any) -> None:
    encoded = EDGES.encode(data)
    assert encoded.shape == (2, 0) and encoded.dtype == np.int64
    assert EDGES.decode(encoded).num_rows == 0
    assert EDGES.decode_rows(encoded) == []


def test_the_words_are_a_copy() -> None:
    for data in (np.array([[1, 2]]), {"src": np.array([1]), "dst": np.array([2])}):
        encoded = EDGES.encode(data)
        encoded[:] = 0
        assert EDGES.encode(data).tolist() == [[1], [2]]
    column = np.array([1])
    Schema(n=Int).encode(column)[:] = 0
    assert column.tolist() == [1]


VALUES = {
    "i": st.integers(NULL + 1, -NULL - 1),
    "f": st.floats(),
    "b": st.booleans(),
    "d": st.dates(),
    "t": st.datetimes(),
    "m": st.decimals(min_value=-(10**9), max_value=10**9, places=2, allow_nan=False, allow_infinity=False),
    "s": st.text(),
}


@given(st.lists(st.tuples(*(st.one_of(st.none(), VALUES[name]) for name in ALL.names))))
def test_rows_of_all_types_come_back(rows: list[tuple[Any, ...]]) -> None:
    dictionary = Dictionary()
    encoded = ALL.encode(rows, dictionary)
    table = ALL.decode(encoded, dictionary)
    table.validate(full=True)
    assert table.schema == ALL.arrow
    for back in (ALL.decode_rows(encoded, dictionary), [tuple(row.values()) for row in table.to_pylist()]):
        assert len(back) == len(rows)
        assert all(
            same(left, right) for pair in zip(back, rows, strict=True) for left, right in zip(*pair, strict=True)
        )
    as_dicts = [dict(zip(ALL.names, row, strict=True)) for row in rows]
    assert (ALL.encode(table, dictionary) == encoded).all()
    assert (ALL.encode(as_dicts, dictionary) == encoded).all()
    assert (ALL.encode({name: [row[name] for row in as_dicts] for name in ALL.names}, dictionary) == encoded).all()


def test_missing_values_of_every_library_are_null_and_nan_is_a_value() -> None:
    dictionary = Dictionary()
    nan = float("nan")

    def rows(data: Any, schema: Schema = MIXED) -> list[tuple[Any, ...]]:
        return [
            tuple("nan" if v != v else v for v in row)
            for row in schema.decode_rows(schema.encode(data, dictionary), dictionary)
        ]

    expected = [(1, "nan", "a"), (None, None, None)]
    assert rows([(1, nan, "a"), (None, None, None)]) == expected
    assert rows([(1, nan, "a"), (pd.NA, pd.NA, pd.NA)]) == expected
    assert rows(pa.table({"n": [1, None], "x": [nan, None], "s": ["a", None]})) == expected
    frame = pd.DataFrame({"n": pd.array([1, pd.NA], "Int64"), "x": [nan, 1.0], "s": ["a", None]})
    assert rows(frame) == [(1, None, "a"), (None, 1.0, None)]  # in pandas a NaN says that something is missing
    objects = pd.DataFrame({"n": [1, nan], "x": [nan, pd.NA], "s": ["a", nan]}, dtype=object)
    assert rows(objects) == [(1, None, "a"), (None, None, None)]
    gaps = pd.DataFrame({"n": [1, None], "x": [1.5, None], "s": ["a", None]})
    assert rows(gaps) == [(1, 1.5, "a"), (None, None, None)]  # pandas makes floats of integers with a gap
    with pytest.raises(IncorrectError, match=r"column 'n': expected int, found double in row 0 \(1\.5\)"):
        rows(pd.DataFrame({"n": [1.5, None], "x": [1.5, None], "s": ["a", None]}))
    masked = np.ma.array([1, 2], mask=[False, True])
    assert rows(masked, Schema(n=Int)) == [(1,), (None,)]
    moments = Schema(d=Date, t=Timestamp)
    day, moment = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
    frame = pd.DataFrame(
        {"d": np.array(["2020-01-01", "NaT"], "M8[us]"), "t": np.array(["2020-01-01", "NaT"], "M8[us]")}
    )
    assert rows(frame, moments) == [(day, moment), (None, None)]
    assert rows([(day, moment), (pd.NaT, pd.NaT)], moments) == [(day, moment), (None, None)]
    columns = {"d": np.array(["2020-01-01", "NaT"], "M8[D]"), "t": np.array(["2020-01-01", "NaT"], "M8[ns]")}
    assert rows(columns, moments) == [(day, moment), (None, None)]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_numpy_moments_of_every_unit(unit: str) -> None:
    values = np.array(["1970-01-01", "NaT"], f"M8[{unit}]")
    assert Schema(t=Timestamp).encode(values).tolist() == [[0, NULL]]
    assert Schema(d=Date).encode(values).tolist() == [[0, NULL]]
    assert Schema(d=Date).encode([(values[0],), (None,)]).tolist() == [[0, NULL]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint32])
def test_narrow_numbers_are_floats(dtype: Any) -> None:
    schema = Schema(x=Float)
    assert schema.decode_rows(schema.encode(np.array([0, 3], dtype))) == [(0.0,), (3.0,)]


def test_moments_with_a_zone_are_refused_in_every_form() -> None:
    east = datetime.timezone(datetime.timedelta(hours=2))
    moment, plain = datetime.datetime(1970, 1, 1, 2, tzinfo=east), datetime.datetime(1970, 1, 1)
    for data in (
        [(moment,)],
        [(plain,), (moment,)],
        [(None,), (moment,)],
        {"t": [moment, plain]},
        pd.DataFrame({"t": pd.to_datetime([moment])}),
        pd.DataFrame({"t": [None, moment]}, dtype=object),
        pa.table({"t": pa.array([None, moment])}),
        np.array([[moment]], dtype=object),
    ):
        with pytest.raises(
            IncorrectError, match="column 't': expected a timestamp without a time zone, found 1970-01-01T0"
        ):
            Schema(t=Timestamp).encode(data)
    assert Schema(t=Timestamp).encode(pa.table({"t": pa.array([None], pa.timestamp("us", "UTC"))})).tolist() == [[NULL]]


def test_texts_of_every_library() -> None:
    dictionary = Dictionary()
    schema = Schema(s=String)
    expected = schema.encode([("a",), ("☃",), ("",)], dictionary).tolist()
    texts = ["a", "☃", ""]
    for data in (
        np.array(texts),
        np.array(texts, object),
        np.array(texts, np.dtypes.StringDType()),
        pd.Series(texts),
        pd.Series(texts, dtype=object),
        pd.Series(texts, dtype="category"),
        pa.array(texts, pa.large_string()),
        pa.array(texts).dictionary_encode(),
        {"s": texts},
    ):
        assert schema.encode(data, dictionary).tolist() == expected


BAD: list[tuple[Schema, Any, str]] = [
    # the shape
    (EDGES, [(1, 2), (3,)], r"expected 2 columns \(src, dst\), found 1 in row 1 \(\(3,\)\)"),
    (EDGES, [(1, 2, 3)], r"expected 2 columns \(src, dst\), found 3 in row 0"),
    (EDGES, np.zeros((5, 3), int), r"expected 2 columns \(src, dst\), found 3 in a NumPy array of shape \(5, 3\)"),
    (EDGES, np.zeros(5, int), "expected 2 columns .* found 1 in a one-dimensional ndarray"),
    (EDGES, pa.array([1]), "expected 2 columns .* found 1"),
    (EDGES, np.zeros((2, 2, 2), int), r"found one of shape \(2, 2, 2\)"),
    (EDGES, np.array(1), r"found one of shape \(\)"),
    (EDGES, [1, 2], r"found 1 \(int\) as row 0: write \[\(src, dst\), \.\.\.\]"),
    (EDGES, ["ab"], r"found 'ab' \(str\) as row 0"),
    (EDGES, (1, 2), r"found 1 \(int\) as row 0"),
    (EDGES, [(1, 2), {"src": 1, "dst": 2}], r"\(dict\) as row 1"),
    (Schema(n=Int), [1], r"write \[\(1,\)\]"),
    (EDGES, None, "expected a list of rows, .* found NoneType"),
    (EDGES, "ab", "found str"),
    (EDGES, 5, "found int"),
    (
        EDGES,
        {"src": 1, "dst": 2},
        r"column 'src': expected a list or an array of values, found 1 \(int\): a single row is",
    ),
    (EDGES, {"src": "ab", "dst": "cd"}, r"column 'src': expected a list or an array of values, found 'ab'"),
    (EDGES, {"src": [1, 2], "dst": [1]}, "column 'dst': expected 2 values, as many as column 'src' has, found 1"),
    (
        EDGES,
        {"src": np.zeros((1, 1), int), "dst": [1]},
        r"column 'src': expected one value a row, found an array of shape",
    ),
    (EDGES, {"src": {1, 2}, "dst": {3, 4}}, "column 'src': expected a list or an array of values, found .*set"),
    # the names
    (EDGES, {"src": [1]}, "missing column 'dst': expected src, dst, found src"),
    (
        EDGES,
        {"src": [1], "dst": [1], "dist": [1]},
        "unknown column 'dist': did you mean 'dst'. the columns are: src, dst",
    ),
    (EDGES, [{"src": 1, "dst": 2}, {"src": 1}], "missing column 'dst' in row 1"),
    (EDGES, [{"src": 1, "dst": 2, "w": 3}], "unknown column 'w' in row 0: the columns are: src, dst"),
    (EDGES, pa.table({"a": [1], "dst": [1]}), "unknown column 'a'"),
    (
        EDGES,
        pa.table([pa.array([1])] * 3, names=["src", "dst", "dst"]),
        "expected each column once, found src, dst, dst",
    ),
    (EDGES, pd.DataFrame([[1, 2]]), "unknown column 0"),
    (EDGES, pd.DataFrame([[1, 2]], columns=["src", "src"]), "expected each column once"),
    (EDGES, np.array([(1, 2)], [("src", "i8"), ("x", "i8")]), "unknown column 'x'"),
    # the values
    (EDGES, [(1, 2), (3, 2.0)], r"column 'dst': expected int, found 2.0 \(float\) in row 1: give whole numbers"),
    (EDGES, [(1, 2), (3, "x")], r"column 'dst': expected int, found 'x' \(str\) in row 1"),
    (EDGES, [(None, 2), (True, 2)], r"column 'src': expected int, found True \(bool\) in row 1"),
    (EDGES, [(pd.NA, 2), ("x", 2)], r"column 'src': expected int, found 'x' \(str\) in row 1"),
    (
        EDGES,
        [(1, 2), (2**63, 2)],
        r"column 'src': .* found 9223372036854775808 \(int\) in row 1, which does not fit in 64",
    ),
    (EDGES, [(1, 2), (None, -(2**63) - 1)], "column 'dst': .* in row 1, which does not fit in 64 bits"),
    (
        EDGES,
        [(1, NULL)],
        "column 'dst': found -9223372036854775808 in row 0, the word that is reserved for NULL: use None",
    ),
    (EDGES, np.array([[1, NULL]]), "column 'dst': .* reserved for NULL"),
    (EDGES, {"src": np.array([NULL]), "dst": [1]}, "column 'src': .* reserved for NULL"),
    (EDGES, np.zeros((1, 2)), "column 'src': expected int, found double"),
    (EDGES, np.array([[2**63, 1]], np.uint64), "column 'src': .* does not fit in 64 bits"),
    (EDGES, {"src": np.array([1, "x"], object), "dst": [1, 2]}, r"column 'src': .* found 'x' \(str\) in row 1"),
    (EDGES, {"src": [[1]], "dst": [1]}, r"column 'src': expected int, found \[1\] \(list\) in row 0"),
    (EDGES, {"src": np.array([1j]), "dst": [1]}, "column 'src': expected int, found a NumPy array of complex128"),
    (EDGES, pd.DataFrame({"src": [1.5, None], "dst": [1, 2]}), "column 'src': expected int, found double"),
    (Schema(x=Float), [("1",)], r"column 'x': expected float, found '1' \(str\) in row 0: give floats or ints"),
    (Schema(x=Float), [(2**53 + 1,)], "column 'x': expected float, found 9007199254740993"),
    (Schema(b=Bool), [(True,), (1,)], r"column 'b': expected bool, found 1 \(int\) in row 1: give True and False"),
    (Schema(d=Date), [("2020-01-01",)], "column 'd': expected date, found '2020-01-01'"),
    (Schema(d=Date), [(datetime.datetime(2020, 1, 1, 5),)], "column 'd': .* has a time of day"),
    (Schema(d=Date), [(datetime.date(2020, 1, 1),), (datetime.datetime(2020, 1, 1, 5),)], "both dates and datetimes"),
    (
        Schema(t=Timestamp),
        [(pd.Timestamp(0),), (pd.Timestamp(1),)],
        "in row 1, which is not a whole number of microseconds",
    ),
    (Schema(t=Timestamp), [(5,)], r"column 't': expected timestamp, found 5 \(int\)"),
    (Schema(m=Decimal(5, 2)), [(1.5,)], "a float has no exact decimal"),
    (
        Schema(m=Decimal(5, 2)),
        [(decimal.Decimal("1.5"),), (decimal.Decimal("1.555"),)],
        "found 1.555 in row 1, which needs",
    ),
    (
        Schema(m=Decimal(5, 2)),
        [(decimal.Decimal("1000"),)],
        "found 1000 in row 0, which needs more than 3 digits before",
    ),
    (Schema(m=Decimal(5, 2)), [(decimal.Decimal("NaN"),)], "not a finite number"),
    (Schema(s=String), [(5,)], r"column 's': expected string, found 5 \(int\) in row 0: give str values"),
    (Schema(s=String), [("a",), (b"a",)], r"column 's': expected string, found b'a' \(bytes\) in row 1"),
    (Schema(s=String), [("\ud800",)], "column 's': .* has no UTF-8 form"),
    (Schema(s=String), np.array([b"a"]), "column 's': expected string, found binary"),
]


@pytest.mark.parametrize(("schema", "data", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input_is_named(schema: Schema, data: Any, message: str) -> None:
    with pytest.raises(IncorrectError, match=message):
        schema.encode(data, Dictionary())


def test_an_encode_that_fails_adds_no_text() -> None:
    dictionary = Dictionary()
    schema = Schema(s=String, t=String, n=Int)
    for row in (("a", "b", "no int"), ("a", 5, 1)):
        with pytest.raises(IncorrectError):
            schema.encode([row], dictionary)
    assert dictionary.texts == 0


def test_a_collision_names_its_columns_and_adds_no_text() -> None:
    dictionary = Dictionary()
    with pytest.raises(IncorrectError, match=r"column 's' or 't': the texts .* have the same 64-bit id"):
        Schema(s=String, t=String).encode([colliding_texts()], dictionary)
    assert dictionary.texts == 0


def test_strings_need_a_dictionary() -> None:
    with pytest.raises(IncorrectError, match="column 's' holds strings: give the dictionary"):
        MIXED.encode([(1, 1.0, "a")])


def test_words_of_another_width_are_refused() -> None:
    for decode in (EDGES.decode, EDGES.decode_rows):
        with pytest.raises(IncorrectError, match=r"expected words of 2 columns \(src, dst\) x rows, found \(3, 1\)"):
            decode(np.zeros((3, 1), np.int64))


def test_a_schema_without_columns_counts_rows() -> None:
    schema = Schema()
    encoded = schema.encode([(), ()])
    assert encoded.shape == (0, 2)
    assert schema.decode_rows(encoded) == [(), ()]


def test_schemas_are_made_from_keywords_dicts_and_arrow() -> None:
    narrow: list[tuple[str, pa.DataType]] = [("n", pa.int32()), ("x", pa.float32()), ("s", pa.large_string())]
    wide: list[tuple[str, pa.DataType]] = [("n", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
    arrow = pa.schema(narrow)
    assert Schema({"n": Int, "x": Float, "s": String}) == MIXED == Schema(arrow)
    assert Schema({"n": Int}, x=Float, s=String) == MIXED
    assert hash(Schema(arrow)) == hash(MIXED)
    assert MIXED != MIXED.select("n", "s", "x") != Schema(n=Int, s=String, x=Int)
    assert MIXED != "schema"
    assert MIXED.names == ("n", "x", "s") and MIXED.types == (Int, Float, String) and len(MIXED) == 3
    assert MIXED.arrow == pa.schema(wide)
    assert pickle.loads(pickle.dumps(ALL)) == ALL


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Schema(src=complex),
            IncorrectError,
            "column 'src': expected a type such as tk.Int, int, 'bigint' or pyarrow.int64\\(\\), found <class 'complex'>",
        ),
        (lambda: Schema({5: Int}), IncorrectError, "expected the name of a column, found 5"),  # type: ignore[dict-item]
        (lambda: Schema({"": Int}), IncorrectError, "expected the name of a column, found ''"),
        (lambda: Schema({"n": Int}, n=Int), IncorrectError, "column 'n': found it twice"),
        (lambda: Schema(pa.schema([("n", pa.int8()), ("n", pa.int8())])), IncorrectError, "column 'n': found it twice"),
        (
            lambda: Schema(pa.schema({"n": pa.map_(pa.string(), pa.int64())})),
            UnsupportedError,
            "column 'n': the Arrow type map",
        ),
        (lambda: EDGES.index("dist"), NotFoundError, "no column 'dist': did you mean 'dst'. the columns are: src, dst"),
        (lambda: EDGES.index("weight"), NotFoundError, "no column 'weight': the columns are: src, dst"),
        (lambda: EDGES.select("sr"), NotFoundError, "no column 'sr'"),
        (lambda: EDGES.select("src", "src"), IncorrectError, "expected each column once"),
    ],
)
def test_bad_schemas_and_names_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_select_orders_and_renames() -> None:
    assert MIXED.select("s", number="n") == Schema(s=String, number=Int)
    assert MIXED.index("s") == 2


def test_pandas_is_not_imported_for_data_that_has_none() -> None:
    program = (
        "import sys, numpy as np; from tektite.values.schema import Schema; from tektite.values.types import Int\n"
        "schema = Schema(n=Int)\n"
        "schema.decode_rows(schema.encode(np.array([1])))\n"
        "schema.decode_rows(schema.encode([(1,)]))\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_rows_are_encoded_while_another_thread_imports_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    half_imported = types.ModuleType("pandas")
    monkeypatch.setitem(sys.modules, "pandas", half_imported)
    schema = Schema(x=Int, t=Timestamp, d=Date)
    moment, day = datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1)
    for data in ([(1, moment, day)], {"x": [1], "t": np.array([moment], "M8[us]"), "d": [day]}):
        assert schema.decode_rows(schema.encode(data)) == [(1, moment, day)]
