"""Converts a column of values to words (64-bit integers) and back.

    int          the number itself              float      its bits, arranged so that words compare like floats
    bool         0 and 1                        decimal    the number times 10**scale
    date         days since 1970-01-01          timestamp  microseconds since 1970-01-01 00:00 UTC
    time         microseconds since midnight    timestamptz  as timestamp: what clocks in UTC show
    string       the id of the text in a `Dictionary`; so is the word of every interned type (`tektite.values.composites`)

NULL has the same word in every type, and no value has that word. Decoding an encoded column gives the same values: a value
that would be rounded, cut or wrapped is refused, with its row. (-0.0 and 0.0 are different words; all NaNs are one word,
which sorts after infinity.)
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from tektite.errors import FaultError, IncorrectError, UnsupportedError
from tektite.values.types import (
    MOST_DIGITS,
    Blob,
    Bool,
    Date,
    Decimal,
    DecimalType,
    Float,
    Int,
    Interval,
    ListType,
    String,
    StructType,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

Words: TypeAlias = npt.NDArray[np.int64]

NULL: Final = -(2**63)
INT_RANGE: Final = "an int lies between -(2**63 - 1) and 2**63 - 1; -2**63 is the word of NULL, and a decimal holds it"
"""Said wherever an int is refused for its size."""


class TextLookup(Protocol):
    """Looks up texts by their ids."""

    def lookup_chunks(self, ids: Words) -> Any:
        """The texts of some ids, as a list of Arrow arrays."""


# The word of NaN: the quiet NaN without payload, which as an integer is greater than the bits of infinity.
NAN: Final = 0x7FF8_0000_0000_0000
_NEGATIVE_ZERO: Final = -1
ZEROS: Final = (0, _NEGATIVE_ZERO)
"""The words of 0.0 and -0.0, which are equal."""
_MAGNITUDE: Final = 0x7FFF_FFFF_FFFF_FFFF

_MICROSECONDS: Final = pa.timestamp("us")
_MOMENTS: Final = pa.timestamp("us", "UTC")
_PER_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31: the range of Python's dates
_FIRST_MICROSECOND, _LAST_MICROSECOND = _FIRST_DAY * _PER_DAY["us"], (_LAST_DAY + 1) * _PER_DAY["us"] - 1

# Up to this length, a Python loop over a list is faster than a NumPy reduction.
_FEW: Final = 64


def float_words(values: npt.NDArray[np.float64]) -> Words:
    """The words of floats. They compare like the floats, with -0.0 before 0.0 and NaN last.

    >>> float_words(np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    words: Words = bits ^ ((bits >> 63) & _MAGNITUDE)
    nan = np.isnan(values)
    if nan.any():
        words[nan] = NAN
    return words


def word_floats(words: Words) -> npt.NDArray[np.float64]:
    """The inverse of `float_words`. NULL has no float: it becomes a NaN."""
    bits: Words = words ^ ((words >> 63) & _MAGNITUDE)
    return bits.view(np.float64)


def float_keys(words: Words) -> Words:
    """Words of floats as keys: -0.0 becomes 0.0, since the two are equal as keys."""
    keys: Words = np.where(words == _NEGATIVE_ZERO, 0, words)
    return keys


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type to which values of `type` are decoded.

    >>> arrow_type(Decimal(12, 2))
    Decimal128Type(decimal128(12, 2))
    """
    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, ListType):
        return pa.list_(arrow_field("item", type.element))
    if isinstance(type, StructType):
        return pa.struct([arrow_field(name, kind) for name, kind in type.fields])
    return _ARROW_TYPES[type.kind]


def type_from_arrow(arrow: pa.DataType) -> Type:
    """The type whose words can hold every value of an Arrow type (for uint64: values that fit in 63 bits).

    >>> type_from_arrow(pa.int32()), type_from_arrow(pa.large_string()), type_from_arrow(pa.decimal128(12, 2))
    (int, string, decimal(12, 2))
    """
    if pat.is_dictionary(arrow):
        return type_from_arrow(arrow.value_type)
    if pat.is_decimal(arrow) and arrow.precision <= MOST_DIGITS and 0 <= arrow.scale <= arrow.precision:
        return Decimal(arrow.precision, arrow.scale)
    if _is_list(arrow):
        inner: Any = arrow
        return ListType("list", type_of_field(inner.value_field))
    if pat.is_struct(arrow) and arrow.num_fields:
        return StructType("struct", tuple((field.name, type_of_field(field)) for field in arrow))
    for test, type in _TYPE_TESTS:
        if test(arrow):
            return type
    advice = "cast to a decimal of at most 38 digits" if pat.is_decimal(arrow) else "cast it to a type that has one"
    raise UnsupportedError(f"the Arrow type {arrow} has no Tektite type: {advice}")


FEW: Final = 16
"""Values up to which a loop finds NULLs faster than NumPy."""
NAMED: Final = frozenset({"json", "uuid"})
"""Kinds of values that Arrow has no type for: they are strings, in a field that says what they are."""
_KIND: Final = b"tektite.type"


def arrow_field(name: str, type: Type) -> pa.Field[Any]:
    """A field for values of `type`. It says the type where Arrow has none for it."""
    return pa.field(name, arrow_type(type), metadata={_KIND: type.kind.encode()} if type.kind in NAMED else None)


def type_of_field(field: pa.Field[Any]) -> Type:
    """The type of a field's values: what the field says, or `type_from_arrow`.

    >>> type_of_field(arrow_field("id", Uuid))
    uuid
    """
    said = (field.metadata or {}).get(_KIND, b"").decode()
    return Type(said) if said in NAMED and _is_text(field.type) else type_from_arrow(field.type)


def encode(values: Any, type: Type, column: str = "value", row: int = 0) -> Words:
    """The words of an Arrow array (or chunked array) of any type but string; a `Dictionary` encodes strings.

    `column` and `row` (the number of the first row) appear in error messages. The result may share the memory of `values`.

    >>> encode(pa.array([1, None]), Int).tolist()
    [1, -9223372036854775808]
    >>> encode(pa.array([1.5]), Int, "size")
    Traceback (most recent call last):
    tektite.errors.IncorrectError: column 'size': expected int, found double in row 0 (1.5): ...
    """
    if isinstance(values, pa.ChunkedArray):
        parts = []
        for chunk in values.chunks:
            parts.append(encode(chunk, type, column, row))
            row += len(chunk)
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pat.is_null(values.type):
        return np.full(len(values), NULL, np.int64)
    return _ENCODERS[type.kind](values, type, column, row)


def check_texts(values: Any, column: str, type: Type = String) -> None:
    """Raise unless an Arrow array holds strings."""
    arrow = values.type.value_type if pat.is_dictionary(values.type) else values.type
    if not (_is_text(arrow) or pat.is_null(arrow)):
        raise wrong_type(values, type, column, 0)


def check_reserved(words: Words, nulls: int, column: str, row: int = 0) -> None:
    """Raise if more than `nulls` of the words are NULL: then a value has the reserved word."""
    if len(words) <= _FEW:
        found = words.tolist().count(NULL)
    elif not nulls and np.minimum.reduce(words) != NULL:
        found = 0
    else:
        found = int(np.count_nonzero(words == NULL))
    if found != nulls:
        at = f" in row {row + int(np.argmax(words == NULL))}" if not nulls else ""
        raise IncorrectError(
            f"column {column!r}: found {NULL}{at}, the word that is reserved for NULL: use None for a missing value "
            f"({INT_RANGE})"
        )


def decode(words: Words, type: Type, column: str = "value", dictionary: TextLookup | None = None) -> Any:
    """The values of a column of words, as an Arrow array (of strings: chunked). It may share the memory of `words`.

    >>> decode(np.array([0, NULL, -1]), Date).to_pylist()
    [datetime.date(1970, 1, 1), None, datetime.date(1969, 12, 31)]
    """
    if type.kind == "string":
        if dictionary is None:
            raise IncorrectError(f"column {column!r} holds strings: give the dictionary that has their texts")
        return pa.chunked_array(dictionary.lookup_chunks(words), pa.string())
    validity, nulls = validity_buffer(words)
    data = _DECODERS[type.kind](np.ascontiguousarray(words), type, column)
    return pa.Array.from_buffers(arrow_type(type), len(words), [validity, data], nulls)


def decode_list(words: Words, type: Type, column: str = "value", dictionary: TextLookup | None = None) -> list[Any]:
    """The values of a column of words as Python values, None for NULL.

    >>> decode_list(np.array([1, NULL]), Bool)
    [True, None]
    """
    if type == TimestampTz:
        plain = decode_list(words, Timestamp, column)
        return [None if value is None else value.replace(tzinfo=datetime.UTC) for value in plain]
    if type in (Date, Timestamp):
        low, high = (_FIRST_DAY, _LAST_DAY) if type == Date else (_FIRST_MICROSECOND, _LAST_MICROSECOND)
        if ((words < low) & (words != NULL) | (words > high)).any():
            raise UnsupportedError(
                f"column {column!r}: a {type} lies outside the years 1 to 9999, where Python has none: decode to Arrow"
            )
        days = words.view("M8[D]" if type == Date else "M8[us]")
        values: list[Any] = days.tolist()  # NULL is the word of NaT, which becomes None
        return values
    if type == Time:
        return list(decode(words, type, column).to_pylist())
    if type == String or isinstance(type, DecimalType):
        values = decode(words, type, column, dictionary).to_numpy(zero_copy_only=False).tolist()
        return values
    if type == Int:
        values = words.tolist()
        if len(values) <= FEW:
            return [None if value == NULL else value for value in values]
    elif type == Float:
        values = word_floats(words).tolist()
        if len(values) <= FEW:
            return [None if word == NULL else value for word, value in zip(words.tolist(), values, strict=True)]
    else:
        _check_bools(words, column)
        values = (words == 1).tolist()
    for at in np.flatnonzero(words == NULL).tolist():
        values[at] = None
    return values


def validity_buffer(words: Words) -> tuple[pa.Buffer | None, int]:
    """The Arrow validity bits of a column of words (None without NULLs), and the number of NULLs."""
    if len(words) <= FEW and NULL not in words.tolist():
        return None, 0
    null = words == NULL
    nulls = int(np.count_nonzero(null))
    return (arrow_buffer(np.packbits(~null, bitorder="little")) if nulls else None), nulls


def arrow_buffer(array: Any) -> pa.Buffer:
    """The memory of a NumPy array as an Arrow buffer."""
    return pa.py_buffer(array)


def _encode_int(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if not pat.is_integer(values.type):
        raise wrong_type(values, type, column, row)
    values = cast_exactly(values, pa.int64(), type, column, row, f"does not fit in 64 bits ({INT_RANGE})")
    return _filled(values, column, row)


def _encode_float(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if not (pat.is_floating(values.type) or pat.is_integer(values.type)):
        raise wrong_type(values, type, column, row)
    values = cast_exactly(values, pa.float64(), type, column, row, "is no float exactly")
    return _with_nulls(float_words(values.to_numpy(zero_copy_only=False)), values)


def _encode_bool(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if not pat.is_boolean(values.type):
        raise wrong_type(values, type, column, row)
    return _filled(values.cast(pa.int64()), column, row)


def _encode_date(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    arrow = values.type
    if pat.is_date64(arrow):
        values = values.view(pa.timestamp("ms"))
    elif pat.is_date32(arrow):
        return _filled(values.view(pa.int32()).cast(pa.int64()), column, row)
    elif not (pat.is_timestamp(arrow) and arrow.tz is None):
        raise wrong_type(values, type, column, row)
    moments = values.view(pa.int64()).fill_null(0).to_numpy()
    days, rest = np.divmod(moments, _PER_DAY[values.type.unit])
    if rest.any():
        at = int(np.flatnonzero(rest)[0])
        raise _wrong_value(values[at], type, column, row + at, "has a time of day: cut it off")
    return _with_nulls(days, values)


def _encode_timestamp(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if pat.is_timestamp(values.type) and values.type.tz is not None:
        at = next((i for i, value in enumerate(values) if value.is_valid), None)
        if at is not None:
            raise zoned(values[at].as_py().isoformat(), type, column, row + at)
    if pat.is_timestamp(values.type) or pat.is_date(values.type):
        target = _MICROSECONDS
    else:
        raise wrong_type(values, type, column, row)
    values = cast_exactly(
        values, target, type, column, row, "is not a whole number of microseconds that fits in 64 bits"
    )
    return _filled(values.view(pa.int64()), column, row)


def _encode_moment(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if not pat.is_timestamp(values.type) or values.type.tz is None:
        raise wrong_type(values, type, column, row)
    values = cast_exactly(
        values, _MOMENTS, type, column, row, "is not a whole number of microseconds that fits in 64 bits"
    )
    return _filled(values.view(pa.int64()), column, row)


def _encode_time(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    if not pat.is_time(values.type):
        raise wrong_type(values, type, column, row)
    values = cast_exactly(values, pa.time64("us"), type, column, row, "is not a whole number of microseconds")
    return _filled(values.view(pa.int64()), column, row)


def zoned(moment: str, type: Type, column: str, row: int) -> IncorrectError:
    """Moments have no place in a column of wall-clock times: which zone's clock it shows is for the user to say."""
    return IncorrectError(
        f"column {column!r}: expected a {type} without a time zone, found {moment} in row {row}: decide which clock the column "
        "shows, such as UTC, and convert before, as in moment.astimezone(datetime.UTC).replace(tzinfo=None), or "
        "cast(pyarrow.timestamp('us')) of an Arrow array, which gives UTC; or make it a tk.TimestampTz column"
    )


def _encode_decimal(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    assert isinstance(type, DecimalType)
    reason = f"needs more than {type.precision - type.scale} digits before or {type.scale} behind the point"
    if pat.is_integer(values.type):
        values = cast_exactly(values, pa.int64(), type, column, row, reason)
        whole = values.fill_null(0).to_numpy()
        limit = 10 ** (type.precision - type.scale)
        misfits = (whole <= -limit) | (whole >= limit)
        if misfits.any():
            at = int(np.flatnonzero(misfits)[0])
            raise _wrong_value(values[at], type, column, row + at, reason)
        return _with_nulls(whole * 10**type.scale, values)
    if not pat.is_decimal(values.type):
        raise wrong_type(values, type, column, row)
    values = cast_exactly(values, arrow_type(type), type, column, row, reason)
    # Sixteen bytes a value, low word first: 18 digits fit in the low one.
    data: Any = values.buffers()[1]
    pairs = np.frombuffer(data, np.int64) if len(values) else np.empty(0, np.int64)
    return _with_nulls(pairs[2 * values.offset :: 2][: len(values)].copy(), values)


def _encode_string(values: pa.Array[Any], type: Type, column: str, row: int) -> Words:
    raise IncorrectError(f"column {column!r} holds strings: add them to a dictionary, which gives their ids")


def _decode_bool(words: Words, type: Type, column: str) -> pa.Buffer:
    _check_bools(words, column)
    return arrow_buffer(np.packbits(words == 1, bitorder="little"))


def _decode_date(words: Words, type: Type, column: str) -> pa.Buffer:
    days = words.astype(np.int32)
    _check_decoded((days == words) | (words == NULL), words, type, column)
    return arrow_buffer(days)


def _decode_decimal(words: Words, type: Type, column: str) -> pa.Buffer:
    assert isinstance(type, DecimalType)
    limit = 10**type.precision
    _check_decoded((words > -limit) & (words < limit) | (words == NULL), words, type, column)
    pairs = np.empty((len(words), 2), np.int64)
    pairs[:, 0] = words
    pairs[:, 1] = words >> 63
    return arrow_buffer(pairs)


def _decode_float(words: Words, type: Type, column: str) -> pa.Buffer:
    return arrow_buffer(word_floats(words))


def _decode_same(words: Words, type: Type, column: str) -> pa.Buffer:
    return arrow_buffer(words)


def _check_bools(words: Words, column: str) -> None:
    _check_decoded((words == 0) | (words == 1) | (words == NULL), words, Bool, column)


def _check_decoded(fits: npt.NDArray[np.bool_], words: Words, type: Type, column: str) -> None:
    if not fits.all():
        at = int(np.argmin(fits))
        raise FaultError(f"column {column!r}: the word {words[at]} in row {at} is no {type}")


def cast_exactly(
    values: pa.Array[Any], target: pa.DataType, type: Type, column: str, row: int, reason: str
) -> pa.Array[Any]:
    """Cast without loss, or name the first value that would change."""
    if values.type == target:
        return values
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        low, high = 0, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                values.slice(low, middle - low).cast(target)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        raise _wrong_value(values[low], type, column, row + low, reason) from None


def _filled(values: pa.Array[Any], column: str, row: int) -> Words:
    """An int64 array as words."""
    nulls = values.null_count
    words: Words = (values.fill_null(NULL) if nulls else values).to_numpy()
    check_reserved(words, nulls, column, row)
    return words


def _with_nulls(words: Words, values: pa.Array[Any]) -> Words:
    """Write NULL where `values` has nulls. No other word is NULL, because no caller's range reaches it."""
    if values.null_count:
        words[values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return words


_ADVICE: Final = {
    "int": "give whole numbers, or make the column a float or a decimal",
    "float": "give floats or ints",
    "bool": "give True and False",
    "date": "give datetime.date values, NumPy datetime64 or Arrow dates",
    "timestamp": "give datetime.datetime values, NumPy datetime64 or Arrow timestamps",
    "decimal": "give decimal.Decimal values or ints; a float has no exact decimal",
    "string": "give str values",
    "time": "give datetime.time values without a time zone",
    "timestamptz": "give datetime.datetime values or Arrow timestamps with a time zone; those without go to tk.Timestamp columns",
    "interval": "give datetime.timedelta values, or tk.IntervalValue(months, days, microseconds)",
    "list": "give lists",
    "struct": "give dicts",
    "json": "give JSON texts, or dicts and lists",
    "uuid": "give uuid.UUID values or their texts",
    "blob": "give bytes",
}


def advice(type: Type) -> str:
    """The values that a user should pass for a column of `type`, for messages."""
    return _ADVICE[type.kind]


def wrong_type(values: Any, type: Type, column: str, row: int) -> IncorrectError:
    """The error for values of an Arrow type that the column does not take."""
    valid = next((i for i in range(len(values)) if values[i].is_valid), None)
    example = "" if valid is None else f" in row {row + valid} ({_shown(values[valid])})"
    return IncorrectError(f"column {column!r}: expected {type}, found {values.type}{example}: {advice(type)}")


def _wrong_value(value: pa.Scalar[Any], type: Type, column: str, row: int, reason: str) -> IncorrectError:
    return IncorrectError(f"column {column!r}: expected {type}, found {_shown(value)} in row {row}, which {reason}")


def _shown(value: Any) -> str:
    try:
        text = value.as_py()
    except (ValueError, OverflowError):  # a moment that Python has no object for
        return str(value.value)
    return str(text) if not isinstance(text, (str, bytes)) else repr(text[:80])


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pat.is_string(arrow) or pat.is_large_string(arrow) or pat.is_string_view(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pat.is_binary(arrow)
        or pat.is_large_binary(arrow)
        or pat.is_fixed_size_binary(arrow)
        or pat.is_binary_view(arrow)
    )


def _is_list(arrow: pa.DataType) -> bool:
    return bool(
        pat.is_list(arrow) or pat.is_large_list(arrow) or pat.is_fixed_size_list(arrow) or pat.is_list_view(arrow)
    )


_Encoder: TypeAlias = "Callable[[pa.Array[Any], Type, str, int], Words]"
_Decoder: TypeAlias = Callable[[Words, Type, str], pa.Buffer]

_ENCODERS: Final[dict[str, _Encoder]] = {
    "int": _encode_int,
    "float": _encode_float,
    "bool": _encode_bool,
    "date": _encode_date,
    "timestamp": _encode_timestamp,
    "decimal": _encode_decimal,
    "time": _encode_time,
    "timestamptz": _encode_moment,
    "string": _encode_string,
}
_DECODERS: Final[dict[str, _Decoder]] = {
    "int": _decode_same,
    "float": _decode_float,
    "bool": _decode_bool,
    "date": _decode_date,
    "timestamp": _decode_same,
    "timestamptz": _decode_same,
    "time": _decode_same,
    "decimal": _decode_decimal,
}
_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": _MICROSECONDS,
    "string": pa.string(),
    "time": pa.time64("us"),
    "timestamptz": _MOMENTS,
    "interval": pa.month_day_nano_interval(),
    "json": pa.string(),
    "uuid": pa.string(),
    "blob": pa.binary(),
    "null": pa.null(),
}
_TYPE_TESTS: Final[list[tuple[Callable[[pa.DataType], bool], Type]]] = [
    (pat.is_integer, Int),
    (pat.is_floating, Float),
    (pat.is_boolean, Bool),
    (pat.is_date, Date),
    (lambda arrow: bool(pat.is_timestamp(arrow)) and getattr(arrow, "tz", None) is None, Timestamp),
    (pat.is_timestamp, TimestampTz),
    (pat.is_time, Time),
    (lambda arrow: bool(pat.is_interval(arrow) or pat.is_duration(arrow)), Interval),
    (_is_bytes, Blob),
    (lambda arrow: getattr(arrow, "extension_name", "") == "arrow.uuid", Uuid),
    (_is_text, String),
]
