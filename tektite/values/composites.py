"""Values that no word holds, as texts: intervals, lists, structs, decimals of more than 18 digits, uuids, bytes.

Promise: equal values have equal texts, and texts order (by their bytes) as the values do. So everything that texts have serves
these values too: ids, the dictionary, its collection, storage, shipping, equality, grouping, order. Only an interval has several
forms that are equal, as 1 month and 30 days, and so has a list or struct with one inside; `key_texts` gives the one that stands
for all.

==================  ==============================================================================================
a word              11 characters of six bits each, the word without its sign first
wide decimal        the two halves of the scaled number, as words
interval            its length as days and microseconds, then its months and days: four words
uuid, blob          lower-case hexadecimal digits
json                the text itself
list, struct        for each element: a mark (there or NULL), the text of the element, and an end
==================  ==============================================================================================

In a list, NULL comes behind every value, as in DuckDB and PostgreSQL; -0.0 is stored as 0.0.
"""

from __future__ import annotations

import uuid
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError, UnsupportedError
from tektite.values import words
from tektite.values.types import DecimalType, Float, ListType, StructType, Type
from tektite.values.words import NULL, Words, arrow_buffer

Array: TypeAlias = Any
"""An Arrow array: Arrow's own types would say which of its functions takes which."""
plainly: Any = pa

DAY: Final = 86_400_000_000
WIDTH: Final = 11
"""Characters of a word."""
_FIRST: Final = 0x30
_SIGN: Final = np.uint64(1 << 63)
_SHIFTS: Final = np.arange(60, -1, -6, dtype=np.uint64)

THERE, MISSING, END, KEPT = "\x01", "\x02", "\x00", "\x00\x03"
"""The marks before an element that is there or that is NULL, the end of one, and what stands for a \\0 inside one. What may
follow an end (nothing, THERE, MISSING) is less than what follows a \\0 that is kept: a text sorts before its continuations.
"""


# ---------------------------------------------------------------------- words as characters


def word_characters(columns: list[Words]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Rows of characters, eleven for each column."""
    rows = len(columns[0])
    found = np.empty((rows, WIDTH * len(columns)), np.uint8)
    for at, column in enumerate(columns):
        bits = np.ascontiguousarray(column, np.int64).view(np.uint64) ^ _SIGN
        found[:, WIDTH * at : WIDTH * (at + 1)] = ((bits[:, None] >> _SHIFTS) & np.uint64(63)).astype(np.uint8) + _FIRST
    return found


def fixed_texts(characters: np.ndarray[Any, np.dtype[np.uint8]], missing: Any) -> Array:
    """Rows of characters as texts; NULL where `missing`."""
    rows, width = characters.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    validity = arrow_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    data = arrow_buffer(np.ascontiguousarray(characters))
    return plainly.Array.from_buffers(pa.large_string(), rows, [validity, arrow_buffer(offsets), data])


def words_of_texts(texts: Array, many: int) -> list[Words]:
    """The columns of words that texts of so many words say; NULL where the text is NULL."""
    texts = plain(texts)
    missing = np.asarray(texts.is_null())
    filler = "0" * (WIDTH * many)
    filled = texts.fill_null(filler) if missing.any() else texts
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    characters = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if len(filled) else np.empty(0, np.uint8)
    digits = (characters.reshape(len(filled), many, WIDTH) - np.uint8(_FIRST)).astype(np.uint64)
    found = np.bitwise_or.reduce(digits << _SHIFTS, axis=2) ^ _SIGN
    columns = []
    for at in range(many):
        column = np.ascontiguousarray(found[:, at]).view(np.int64)
        column[missing] = NULL
        columns.append(column)
    return columns


def plain(texts: Array) -> Array:
    """Texts as one array of large strings without an offset of its own."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], texts.type)
    return texts.cast(pa.large_string())


# ---------------------------------------------------------------------- elements


def item_texts(texts: Array) -> Array:
    """Texts as elements of a list: marked, and ended."""
    kind = pa.large_string()
    kept = pc.replace_substring(plain(texts), END, KEPT)
    there = pc.binary_join_element_wise(pa.scalar(THERE, kind), kept, pa.scalar(END, kind), pa.scalar("", kind))
    return there.fill_null(MISSING + END)


def elements_of(texts: Array) -> tuple[Array, Words]:
    """The elements of lists, as texts behind each other, and where those of each list begin and end. A NULL list has none."""
    texts = plain(texts).fill_null("")
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if len(texts) == 0 or bounds[0] == bounds[-1]:
        return pa.array([], pa.large_string()), np.zeros(len(texts) + 1, np.int64)
    characters = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    following = np.append(characters[1:], np.uint8(1))
    # an end of one list may be followed by the beginning of the next, which is a mark as well
    ends = np.flatnonzero((characters == 0) & (following != 3))
    edges = np.concatenate(([0], ends + 1))
    places = np.searchsorted(edges, bounds - bounds[0])
    marks = characters[edges[:-1]]
    whole = plainly.Array.from_buffers(
        pa.large_binary(), len(ends), [None, arrow_buffer(edges.astype(np.int64)), arrow_buffer(characters)]
    )
    inner = pc.binary_slice(whole, 1, -1).cast(pa.large_string())
    kept = pc.replace_substring(inner, KEPT, END)
    return pc.if_else(pa.array(marks == 1), kept, pa.scalar(None, pa.large_string())), places.astype(np.int64)


# ---------------------------------------------------------------------- values as texts


def texts_of_words(column: Words, type: Type) -> Array:
    """The texts of words of a type that is not interned, as elements have them."""
    if type == Float:
        column = words.float_keys(column)
    return fixed_texts(word_characters([column]), column == NULL)


def texts_of(values: Array, type: Type, column: str = "value", row: int = 0) -> Array:
    """The texts of an Arrow array of values of a type, interned or not. What does not fit is refused."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.large_string())
    if not type.interned:
        return texts_of_words(words.encode(values, type, column, row), type)
    if isinstance(type, ListType):
        return _list_texts(values, type, column, row)
    if isinstance(type, StructType):
        return _struct_texts(values, type, column, row)
    if isinstance(type, DecimalType):
        return _decimal_texts(values, type, column, row)
    return {"interval": _interval_texts, "blob": _blob_texts, "uuid": _uuid_texts}.get(type.kind, _plain_texts)(
        values, type, column, row
    )


def _plain_texts(values: Array, type: Type, column: str, row: int) -> Array:
    words.check_texts(values, column, type)
    return plain(values)


def _uuid_texts(values: Array, type: Type, column: str, row: int) -> Array:
    if isinstance(values, pa.ExtensionArray) or pa.types.is_fixed_size_binary(values.type):
        values = pa.array([None if v is None else str(_as_uuid(v)) for v in values.to_pylist()], pa.large_string())
    texts = _plain_texts(values, type, column, row)
    pattern = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    matches: Array = pc.match_substring_regex(texts, pattern)
    wrong = pc.invert(matches.fill_null(True))
    if pc.any(wrong).as_py():
        shown: list[str | None] = []
        for at, text in enumerate(texts.to_pylist()):
            try:
                shown.append(None if text is None else str(uuid.UUID(text)))
            except ValueError:
                raise IncorrectError(f"column {column!r}: expected uuid, found {text!r} in row {row + at}") from None
        texts = pa.array(shown, pa.large_string())
    return texts


def _as_uuid(value: Any) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value)


def _blob_texts(values: Array, type: Type, column: str, row: int) -> Array:
    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type) or pa.types.is_fixed_size_binary(values.type)
            or pa.types.is_binary_view(values.type)):  # fmt: skip
        raise words.wrong_type(values, type, column, row)
    values = values.cast(pa.large_binary())
    filled = values.fill_null(b"")
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    given = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data is not None else np.empty(0, np.uint8)
    digits = np.stack([given >> 4, given & 15], axis=1).reshape(-1)
    characters = (digits + np.where(digits < 10, 48, 87)).astype(np.uint8)
    validity = arrow_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    buffers = [validity, arrow_buffer((bounds - bounds[0]) * 2), arrow_buffer(characters)]
    return plainly.Array.from_buffers(pa.large_string(), len(values), buffers)


def _decimal_texts(values: Array, type: DecimalType, column: str, row: int) -> Array:
    reason = f"needs more than {type.precision - type.scale} digits before or {type.scale} behind the point"
    if not (pa.types.is_integer(values.type) or pa.types.is_decimal(values.type)):
        raise words.wrong_type(values, type, column, row)
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))
    values = words.cast_exactly(values, words.arrow_type(type), type, column, row, reason)
    return _texts_of_decimals(values)


def _texts_of_decimals(values: Array) -> Array:
    data = values.buffers()[1]
    halves = np.frombuffer(data, np.int64) if len(values) else np.empty(0, np.int64)
    halves = halves[2 * values.offset : 2 * (values.offset + len(values))].reshape(-1, 2)
    low = np.ascontiguousarray(halves[:, 0]).view(np.uint64) ^ _SIGN  # as a number without a sign
    missing = np.asarray(values.is_null())
    return fixed_texts(word_characters([np.ascontiguousarray(halves[:, 1]), low.view(np.int64)]), missing)


def _interval_texts(values: Array, type: Type, column: str, row: int) -> Array:
    if pa.types.is_duration(values.type):
        values = words.cast_exactly(
            values, pa.duration("us"), type, column, row, "is not a whole number of microseconds"
        )
        given = np.asarray(values.view(pa.int64()).fill_null(NULL))
        days = np.where(given == NULL, NULL, np.sign(given) * (np.abs(given) // DAY))
        return interval_texts(np.where(given == NULL, NULL, 0), days, given - days * DAY)
    if not pa.types.is_interval(values.type):
        raise words.wrong_type(values, type, column, row)
    layout = np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)])
    data = values.buffers()[1]
    parts = np.frombuffer(data, layout)[values.offset :][: len(values)] if len(values) else np.empty(0, layout)
    missing = np.asarray(values.is_null())
    uneven = (parts["nanoseconds"] % 1000 != 0) & ~missing
    if uneven.any():
        at = int(np.flatnonzero(uneven)[0])
        raise IncorrectError(
            f"column {column!r}: expected interval, found {values[at].as_py()} in row {row + at}, which is not a whole number of "
            "microseconds: round it"
        )
    months = np.where(missing, NULL, parts["months"].astype(np.int64))
    return interval_texts(months, parts["days"].astype(np.int64), parts["nanoseconds"] // 1000)


def _list_texts(values: Array, type: ListType, column: str, row: int) -> Array:
    kinds = pa.types
    if not (kinds.is_list(values.type) or kinds.is_large_list(values.type) or kinds.is_fixed_size_list(values.type)
            or kinds.is_list_view(values.type)):  # fmt: skip
        raise words.wrong_type(values, type, column, row)
    values = values.cast(pa.large_list(values.type.value_type))
    inner = pc.list_flatten(values)
    items = item_texts(texts_of(inner, type.element, column, row))
    lengths = np.asarray(pc.list_value_length(values).fill_null(0))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    joined = pc.binary_join(
        plainly.LargeListArray.from_arrays(pa.array(offsets), items), pa.scalar("", pa.large_string())
    )
    return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.large_string()))


def _struct_texts(values: Array, type: StructType, column: str, row: int) -> Array:
    if not pa.types.is_struct(values.type):
        raise words.wrong_type(values, type, column, row)
    names = [field.name for field in values.type]
    for name in names:
        if type.field(name) is None:
            raise IncorrectError(f"column {column!r}: expected {type}, found a field {name!r}: remove it")
    items = []
    for name, kind in type.fields:
        inner = pc.struct_field(values, [names.index(name)]) if name in names else pa.nulls(len(values))
        items.append(item_texts(texts_of(inner, kind, f"{column}.{name}", row)))
    joined = pc.binary_join_element_wise(*items, pa.scalar("", pa.large_string()))
    return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.large_string()))


# ---------------------------------------------------------------------- texts as values


def values_of(texts: Array, type: Type, column: str = "value") -> Array:
    """The inverse of `texts_of`: an Arrow array."""
    texts = plain(texts)
    arrow: Any = words.arrow_type(type)
    if type.kind == "null":
        return pa.nulls(len(texts), arrow)
    if not type.interned:
        return words.decode(words_of_texts(texts, 1)[0], type, column)
    if isinstance(type, ListType):
        inner, places = elements_of(texts)
        values = values_of(inner, type.element, column)
        offsets = pa.array(places.astype(np.int32), mask=_ends_missing(texts))
        return plainly.ListArray.from_arrays(offsets, values).cast(arrow)
    if isinstance(type, StructType):
        inner, _ = elements_of(texts)
        there = np.flatnonzero(np.asarray(texts.is_valid()))
        rows = np.full(len(texts), -1)
        rows[there] = np.arange(len(there))
        many = len(type.fields)
        columns = []
        for at, (name, kind) in enumerate(type.fields):
            wanted = pa.array(np.where(rows < 0, 0, rows * many + at), mask=rows < 0)
            columns.append(values_of(inner.take(wanted), kind, f"{column}.{name}"))
        return plainly.StructArray.from_arrays(columns, fields=list(arrow), mask=texts.is_null())
    if isinstance(type, DecimalType):
        return _decimals_of(texts, arrow)
    if type.kind == "interval":
        return _intervals_of(texts, column)
    if type.kind == "blob":
        return _blobs_of(texts)
    return texts.cast(arrow)


def _ends_missing(texts: Array) -> Any:
    """A mask of the offsets of lists: true for lists that are NULL. There is one offset more than lists."""
    return np.append(np.asarray(texts.is_null()), False)


def _decimals_of(texts: Array, arrow: pa.DataType) -> Array:
    high, low = words_of_texts(texts, 2)
    missing = np.asarray(texts.is_null())
    halves = np.empty((len(texts), 2), np.int64)
    halves[:, 0] = (low.view(np.uint64) ^ _SIGN).view(np.int64)
    halves[:, 1] = high
    halves[missing] = 0
    validity = arrow_buffer(np.packbits(~missing, bitorder="little"))
    return plainly.Array.from_buffers(arrow, len(texts), [validity, arrow_buffer(halves)])


def _intervals_of(texts: Array, column: str) -> Array:
    months, days, micros = interval_parts(texts)
    missing = months == NULL
    parts = np.zeros(len(months), np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)]))
    fits = (np.abs(months) < 2**31) & (np.abs(days) < 2**31) & (np.abs(micros) < 2**63 // 1000) | missing
    if not fits.all():
        raise UnsupportedError(
            f"column {column!r}: an interval is longer than Arrow's hold (2**31 months or days, 2**63 nanoseconds): "
            "cast it to text"
        )
    for name, values in (("months", months), ("days", days), ("nanoseconds", micros * 1000)):
        parts[name] = np.where(missing, 0, values)
    validity = arrow_buffer(np.packbits(~missing, bitorder="little"))
    return plainly.Array.from_buffers(pa.month_day_nano_interval(), len(texts), [validity, arrow_buffer(parts)])


def _blobs_of(texts: Array) -> Array:
    filled = texts.fill_null("")
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    given = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data is not None else np.empty(0, np.uint8)
    digits = (given - np.where(given < 58, 48, 87)).astype(np.uint8).reshape(-1, 2)
    found = (digits[:, 0] << 4 | digits[:, 1]).astype(np.uint8)
    validity = arrow_buffer(np.packbits(np.asarray(texts.is_valid()), bitorder="little"))
    buffers = [validity, arrow_buffer((bounds - bounds[0]) // 2), arrow_buffer(found)]
    return plainly.Array.from_buffers(pa.large_binary(), len(texts), buffers).cast(pa.binary())


# ---------------------------------------------------------------------- intervals


def interval_texts(months: Words, days: Words, micros: Words) -> Array:
    """The texts of intervals; NULL where the months are."""
    missing = months == NULL
    whole, rest = np.divmod(micros, DAY)
    length = months * 30 + days + whole
    return fixed_texts(word_characters([length, rest, months, days]), missing)


def interval_parts(texts: Array) -> tuple[Words, Words, Words]:
    """The months, days and microseconds of intervals."""
    length, rest, months, days = words_of_texts(texts, 4)
    micros = (length - months * 30 - days) * DAY + rest
    return months, days, np.where(months == NULL, NULL, micros)


def _interval_keys(texts: Array) -> Array:
    """Of all intervals of one length, the one with the most months, and then days."""
    length, rest, months, _ = words_of_texts(texts, 4)
    whole = length // 30
    return interval_texts(np.where(months == NULL, NULL, whole), length - whole * 30, rest)


# ---------------------------------------------------------------------- keys


def joined_items(items: Array, ends: Words) -> Array:
    """Lists of elements that are marked and ended, given where those of each list end."""
    return pc.binary_join(plainly.LargeListArray.from_arrays(pa.array(ends), items), pa.scalar("", pa.large_string()))


def key_texts(texts: Array, type: Type) -> Array:
    """The texts that are equal where values are, and order as they do: one for all intervals of a length, wherever they are.

    >>> key_texts(texts_of(pa.array([(0, 30, 0)], pa.month_day_nano_interval()), Type("interval")), Type("interval")).equals(
    ...     texts_of(pa.array([(1, 0, 0)], pa.month_day_nano_interval()), Type("interval")))
    True
    """
    if not type.has_keys:
        return texts
    if type.kind == "interval":
        return _interval_keys(texts)
    texts = plain(texts)
    elements, places = elements_of(texts)
    if isinstance(type, ListType):
        items = item_texts(key_texts(elements, type.element))
    else:
        assert isinstance(type, StructType)
        many = len(type.fields)
        fields = [item_texts(key_texts(elements.take(pa.array(np.arange(at, len(elements), many))), kind))
                  for at, (_, kind) in enumerate(type.fields)]  # fmt: skip
        rows = len(elements) // many
        order = (np.arange(many)[None, :] * rows + np.arange(rows)[:, None]).reshape(-1)
        items = pa.concat_arrays(fields).take(pa.array(order))
    found = joined_items(items, places)
    return pc.if_else(texts.is_valid(), found, pa.scalar(None, pa.large_string()))
