"""Functions of interned values (lists, structs, intervals, wide decimals), evaluated for many values at once.

Values are texts in the form of `tektite.values.composites`; `shown` and `parsed` convert to and from what people write.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError
from tektite.expr import json_texts, written_lists, zones
from tektite.expr.ast import Expr, col
from tektite.expr.literals import literal_word, show_word
from tektite.values import composites, interval_text
from tektite.values.columns import text_of
from tektite.values.composites import elements_of, plain, words_of_texts
from tektite.values.intervals import shown_interval
from tektite.values.python_values import python_list
from tektite.values.types import DecimalType, ListType, String, StructType, Type
from tektite.values.words import NULL, Words

Array = Any
plainly: Any = pa
_EXACT = decimal.Context(prec=100)
FLOAT_LIMIT = 1e40
"""No decimal is as large as this, and no context has room for the digits of all floats."""
MOST_PART = 2**31
"""Months and days of an interval are less than this, as in DuckDB and PostgreSQL."""


def rows_of(*args: Any) -> int:
    """The number of values of some arguments, which are arrays or constants."""
    return max(len(arg) for arg in args if not isinstance(arg, str | int))


def texts(given: Any, rows: int) -> Array:
    """An argument that is a text, for every row."""
    return pa.array([given] * rows, pa.large_string()) if isinstance(given, str) else plain(given)


def numbers(given: Any, rows: int) -> Words:
    """An argument that is a word, for every row."""
    return np.full(rows, given) if isinstance(given, int) else given


def payloads(given: Any, type: Type, rows: int) -> Array:
    """An argument of any type as the text that an element of a list has."""
    return texts(given, rows) if type.interned else composites.texts_of_words(numbers(given, rows), type)


def from_payloads(found: Array, type: Type) -> Any:
    """Elements of lists as texts or words, whichever the type has."""
    return found if type.interned else words_of_texts(found, 1)[0]


# ---------------------------------------------------------------------- lists and structs


def _item(given: Any, type: Type) -> Array:
    return composites.item_texts(payloads(given, type, rows_of(given)))


def _length(lists: Array) -> Words:
    _, places = elements_of(lists)
    return np.diff(places)


def _element(lists: Any, index: Any, type: Type) -> Any:
    rows = rows_of(lists, index)
    elements, places = elements_of(texts(lists, rows))
    wanted = numbers(index, rows)
    at = np.where(wanted > 0, places[:-1] + wanted - 1, places[1:] + wanted)
    inside = (at >= places[:-1]) & (at < places[1:]) & (wanted != 0)
    return from_payloads(elements.take(pa.array(np.where(inside, at, 0), mask=~inside)), type)


def _field(structs: Array, place: int, fields: int, type: Type) -> Any:
    elements, _ = elements_of(structs)
    return from_payloads(elements.take(pa.array(np.arange(rows_of(structs)) * fields + place)), type)


def regrouped(elements: Array, numbers: Words, rows: int) -> Array:
    """Lists of elements, given the number of the list that each belongs to, in order."""
    return composites.joined_items(composites.item_texts(elements), np.searchsorted(numbers, np.arange(rows + 1)))


def _slice(lists: Any, low: Any, high: Any) -> Array:
    """From one place to another, both included; negative places count from the end."""
    rows = rows_of(lists, low, high)
    elements, places = elements_of(texts(lists, rows))
    lengths = np.diff(places)
    bounds = []
    for given in (numbers(low, rows), numbers(high, rows)):
        bounds.append(np.where(given < 0, lengths + given + 1, given))
    first, last = np.maximum(bounds[0], 1), np.minimum(bounds[1], lengths)
    owner = np.repeat(np.arange(rows), lengths)
    place = np.arange(len(elements)) - places[:-1][owner] + 1
    kept = np.flatnonzero((place >= first[owner]) & (place <= last[owner]))
    return regrouped(elements.take(pa.array(kept)), owner[kept], rows)


def _positions(lists: Any, value: Any, type: Type) -> Words:
    """The position of the first such value in each list, from 1; NULL where there is none."""
    rows = rows_of(lists, value)
    elements, places = elements_of(texts(lists, rows))
    owner = np.repeat(np.arange(rows), np.diff(places))
    wanted = payloads(value, type, rows).take(pa.array(owner))
    if type.interned:
        elements, wanted = composites.key_texts(elements, type), composites.key_texts(wanted, type)
    same = np.flatnonzero(np.asarray(pc.equal(elements, wanted).fill_null(False)))
    found = np.full(rows, NULL)
    owners, first = np.unique(owner[same], return_index=True)
    found[owners] = same[first] - places[:-1][owners] + 1
    return found


def _sorted(lists: Array, order: str, type: Type) -> Array:
    """Elements in their order, reversed, without NULLs (`present`), or each different one once. NULL comes last where they are
    sorted.
    """
    elements, places = elements_of(lists)
    rows = rows_of(lists)
    owner = np.repeat(np.arange(rows), np.diff(places))
    if order == "reverse":
        return regrouped(elements.take(pa.array(np.lexsort((-np.arange(len(owner)), owner)))), owner, rows)
    if order in ("distinct", "present"):
        there = np.flatnonzero(np.asarray(elements.is_valid()))
        elements, owner = elements.take(pa.array(there)), owner[there]
    if order == "present":
        return regrouped(elements, owner, rows)
    keys = composites.key_texts(elements, type) if type.interned else elements
    binary = keys.cast(pa.large_binary())  # Arrow compares bytes, which is the order of values
    missing = np.asarray(elements.is_null()).astype(np.int64)
    table = plainly.table({"owner": owner, "missing": missing, "value": binary})
    direction = "descending" if order == "descending" else "ascending"
    by = plainly.compute.sort_indices(
        table, [("owner", "ascending", "at_end"), ("missing", "ascending", "at_end"), ("value", direction, "at_end")]
    )
    elements, keys, owner = elements.take(by), keys.take(by), owner[by.to_numpy()]
    if order == "distinct" and len(elements):
        same = np.asarray(pc.equal(keys[1:], keys[:-1]).fill_null(False)) & (owner[1:] == owner[:-1])
        kept = np.flatnonzero(np.concatenate(([True], ~same)))
        elements, owner = elements.take(pa.array(kept)), owner[kept]
    return regrouped(elements, owner, rows)


def _join(lists: Any, separator: Any, type: Type, zone: str = "UTC") -> Array:
    """The elements that are not NULL as texts, with a text between them. A list of nothing but NULL gives NULL, as in DuckDB."""
    rows = rows_of(lists, separator)
    elements, places = elements_of(texts(lists, rows))
    owner = np.repeat(np.arange(rows), np.diff(places))
    there = np.flatnonzero(np.asarray(elements.is_valid()))
    found = plain(shown_payloads(elements.take(pa.array(there)), type, zone))
    ends = np.searchsorted(owner[there], np.arange(rows + 1))
    joined = pc.binary_join(plainly.LargeListArray.from_arrays(pa.array(ends), found), texts(separator, rows))
    nothing = pa.array((np.diff(ends) == 0) & (np.diff(places) > 0))
    return pc.if_else(nothing, pa.scalar(None, joined.type), joined)


def shown_payloads(elements: Array, type: Type, zone: str = "UTC") -> Array:
    """Elements of lists as people write them; moments by the clocks of a zone."""
    if type.kind == "string":
        return elements
    if type.interned:
        return shown(elements, type, zone)
    if type.kind == "timestamptz":
        return zones.moment_texts(words_of_texts(elements, 1)[0], zone)
    return pa.array(
        [None if word == NULL else show_word(word, type) for word in words_of_texts(elements, 1)[0].tolist()],
        pa.string(),
    )


def _split(given: Any, separator: Any) -> Array:
    """The parts of texts between separators, as lists."""
    rows = rows_of(given, separator)
    pairs = zip(texts(given, rows).to_pylist(), texts(separator, rows).to_pylist(), strict=True)
    found = [list(text) if not between else text.split(between) for text, between in pairs]
    return composites.texts_of(pa.array(found, pa.list_(pa.string())), ListType("list", String))


# ---------------------------------------------------------------------- intervals


def _interval(months: Any, days: Any, micros: Any) -> Array:
    rows = rows_of(months, days, micros)
    parts = [numbers(part, rows) for part in (months, days, micros)]
    fits = (np.abs(parts[0]) < MOST_PART) & (np.abs(parts[1]) < MOST_PART)
    return composites.interval_texts(np.where(fits, parts[0], NULL), parts[1], parts[2])


def _interval_times(intervals: Any, factor: Any, divides: bool) -> Array:
    """An interval times a float, or divided by one: what is left of a month counts as days, what is left of a day as time."""
    from tektite.values.words import word_floats

    rows = rows_of(intervals, factor)
    months, days, micros = composites.interval_parts(texts(intervals, rows))
    by = word_floats(np.ascontiguousarray(numbers(factor, rows)))
    if divides:
        by = np.where(by == 0, np.nan, by)
    times = np.divide if divides else np.multiply
    with np.errstate(all="ignore"):
        exact_months = times(months, by)
        whole = np.trunc(exact_months)
        exact = times(days, by) + (exact_months - whole) * 30
        kept = np.trunc(np.round(exact, 10))
        clock = np.rint(times(micros, by) + (exact - kept) * composites.DAY)
        fits = (np.abs(whole) < MOST_PART) & (np.abs(kept) < MOST_PART) & (np.abs(clock) < 2.0**63)
        found = [np.where(fits, part, 0).astype(np.int64) for part in (whole, kept, clock)]
    return composites.interval_texts(np.where((months == NULL) | ~fits, NULL, found[0]), found[1], found[2])


# ---------------------------------------------------------------------- wide decimals


def decimals(given: Any, type: Type, rows: int) -> list[decimal.Decimal | None]:
    """An argument that is a number, as Python's decimals."""
    if type.interned:
        return list(composites.values_of(texts(given, rows), type).to_pylist())
    scale = type.scale if isinstance(type, DecimalType) else 0
    words = numbers(given, rows).tolist()
    return [None if w == NULL else decimal.Decimal(w).scaleb(-scale, context=_EXACT) for w in words]


def fitted(values: list[decimal.Decimal | None], type: Type) -> Any:
    """Decimals as values of a type, rounded half away from zero; NULL where one does not fit."""
    scale = type.scale if isinstance(type, DecimalType) else 0
    most = 10**type.precision if isinstance(type, DecimalType) else 2**63
    unit = decimal.Decimal(1).scaleb(-scale)
    found: list[int | None] = []
    for value in values:
        whole = None
        if value is not None:
            whole = int(value.quantize(unit, decimal.ROUND_HALF_UP, context=_EXACT).scaleb(scale, context=_EXACT))
        found.append(whole if whole is not None and abs(whole) < most else None)
    if not type.interned:
        return np.array([NULL if whole is None else whole for whole in found], np.int64)
    exact = [None if whole is None else decimal.Decimal(whole).scaleb(-scale, context=_EXACT) for whole in found]
    return composites.texts_of(pa.array(exact, pa.decimal128(38, scale)).cast(pa.decimal128(38, scale)), _widest(scale))


def _widest(scale: int) -> DecimalType:
    return DecimalType("decimal", 38, scale)


def _decimal(op: str, left: Any, right: Any, kinds: tuple[Type, Type], type: Type) -> Any:
    """+, -, *, // and % of decimals, exactly; division rounds towards zero, and by zero is NULL."""
    rows = rows_of(left, right)
    pairs = zip(decimals(left, kinds[0], rows), decimals(right, kinds[1], rows), strict=True)
    return fitted([None if a is None or b is None else _OPERATIONS[op](a, b) for a, b in pairs], type)


def _floored(one: decimal.Decimal, other: decimal.Decimal) -> decimal.Decimal | None:
    if not other:
        return None
    whole = _EXACT.divide_int(one, other)
    return whole - 1 if (one < 0) != (other < 0) and _EXACT.multiply(whole, other) != one else whole


def _left_over(one: decimal.Decimal, other: decimal.Decimal) -> decimal.Decimal | None:
    whole = _floored(one, other)
    return None if whole is None else _EXACT.subtract(one, _EXACT.multiply(whole, other))


_OPERATIONS: dict[str, Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal | None]] = {
    "add": _EXACT.add,
    "sub": _EXACT.subtract,
    "mul": _EXACT.multiply,
    "floordiv": _floored,
    "mod": _left_over,
}


def _cast_decimal(given: Any, source: Type, type: Type) -> Any:
    rows = rows_of(given)
    if source.kind == "float":
        from tektite.values.words import word_floats

        floats = word_floats(numbers(given, rows)).tolist()
        exact = [decimal.Decimal(v) if np.isfinite(v) and abs(v) < FLOAT_LIMIT else None for v in floats]
        return fitted(exact, type)
    values = decimals(given, source, rows)
    if type.kind == "float":
        from tektite.values.words import float_words

        return float_words(np.array([np.nan if v is None else float(v) for v in values]))
    return fitted(values, type)


def _limb(given: Array, type: DecimalType, place: int) -> Words:
    """One of three parts of the scaled number, each below 10**13: part + part * 10**13 + part * 10**26."""
    values = decimals(given, type, rows_of(given))
    found = []
    for value in values:
        whole = 0 if value is None else int(value.scaleb(type.scale, context=_EXACT))
        found.append(NULL if value is None else whole // 10 ** (13 * place) % 10**13 if place < 2 else whole // 10**26)
    return np.array(found, np.int64)


def _from_limbs(low: Any, middle: Any, high: Any, type: DecimalType) -> Array:
    rows = rows_of(low, middle, high)
    parts = zip(*(numbers(part, rows).tolist() for part in (low, middle, high)), strict=True)
    whole = [a + b * 10**13 + c * 10**26 for a, b, c in parts]
    return fitted([decimal.Decimal(w).scaleb(-type.scale, context=_EXACT) for w in whole], type)


# ---------------------------------------------------------------------- other types


def _nested_cast(given: Array, source: Type, type: Type, tries: bool) -> Array:
    """Lists or structs with elements of other types. Where an element cannot be converted, it is NULL if the cast only `tries`,
    or else the whole is.
    """
    given = plain(given)
    elements, places = elements_of(given)
    if isinstance(source, ListType) and isinstance(type, ListType):
        found = converted_payloads(elements, source.element, type.element, tries)
    else:
        assert isinstance(source, StructType) and isinstance(type, StructType)
        many, rows = len(source.fields), len(elements) // len(source.fields)
        columns = [
            converted_payloads(elements.take(pa.array(np.arange(at, len(elements), many))), one, other, tries)
            for at, ((_, one), (_, other)) in enumerate(zip(source.fields, type.fields, strict=True))
        ]
        order = (np.arange(many)[None, :] * rows + np.arange(rows)[:, None]).reshape(-1)
        found = pa.concat_arrays(columns).take(pa.array(order))
    whole = np.asarray(given.is_valid()).copy()
    if not tries:
        failed = np.flatnonzero(np.asarray(found.is_null()) & np.asarray(elements.is_valid()))
        whole[np.searchsorted(places, failed, side="right") - 1] = False
    joined = composites.joined_items(composites.item_texts(found), places)
    return pc.if_else(pa.array(whole), joined, pa.scalar(None, pa.large_string()))


def converted_payloads(elements: Array, source: Type, type: Type, tries: bool) -> Array:
    """Elements of lists as those of lists of another type, by the casts that values alone have; NULL where there is none."""
    if source == type:
        return elements
    if source.kind == "null" or elements.null_count == len(elements):
        return pa.nulls(len(elements), pa.large_string())
    if source.kind == type.kind and source.kind in ("list", "struct"):
        return _nested_cast(elements, source, type, tries)
    from tektite.expr.program import FailingRowError, compute_column
    from tektite.values.dictionary import Dictionary

    texts = Dictionary()
    given = texts.add(elements) if source.interned else words_of_texts(elements, 1)[0]
    expr = Expr("try_cast", (col("element"),), (type,))
    found = np.full(len(given), NULL)
    try:
        found = compute_column(expr, given, source, texts)
    except FailingRowError:  # which of them fail is found one by one
        for at in range(len(given)):
            with suppress(FailingRowError):
                found[at : at + 1] = compute_column(expr, given[at : at + 1], source, texts)
    except IncorrectError:  # there is no such cast
        return pa.nulls(len(elements), pa.large_string())
    return plain(texts.lookup(found)) if type.interned else composites.texts_of_words(found, type)


def _to_json(given: Any, type: Type, zone: str = "UTC") -> Array:
    values = python_list(composites.values_of(payloads(given, type, rows_of(given)), type))
    return pa.array([None if value is None else json_texts.json_of(value, type, zone) for value in values], pa.string())


def _zone_text(given: Any, type: Type, zone: str) -> Array:
    """Moments, or lists and structs of them, by the clocks of a zone."""
    return shown_payloads(payloads(given, type, rows_of(given)), type, zone)


def _json_to(given: Array, type: Type) -> Any:
    """The value of a type that a JSON value says; NULL if it says none."""
    found: list[Any] = []
    for text in given.to_pylist():
        try:
            value = json_texts.value_of(text, type)
            found.append(
                None if value is None else text_of(value, type) if type.interned else literal_word(value, type)
            )
        except (ValueError, TypeError, OverflowError, RecursionError, decimal.InvalidOperation):
            found.append(None)
    if type.interned:
        return pa.array(found, pa.string())
    return np.array([NULL if value is None else value for value in found], np.int64)


# ---------------------------------------------------------------------- as people write them


def shown(given: Array, type: Type, zone: str = "UTC") -> Array:
    """Values as texts that people read; moments by the clocks of a zone."""
    if type.kind in ("uuid", "json", "string"):
        return plain(given)
    values = composites.values_of(given, type).to_pylist() if type.kind not in ("interval", "list", "struct") else None
    if values is not None:
        write = interval_text.shown_bytes if type.kind == "blob" else lambda value: f"{value:f}"
        return pa.array([None if value is None else write(value) for value in values], pa.string())
    if type.kind == "interval":
        parts = zip(*(part.tolist() for part in composites.interval_parts(given)), strict=True)
        return pa.array([None if m == NULL else shown_interval(m, d, u) for m, d, u in parts], pa.string())
    elements, places = elements_of(given)
    missing = np.asarray(given.is_null())  # a NULL has no elements of its own
    found: list[str | None]
    if isinstance(type, ListType):
        inner = shown_payloads(elements, type.element, zone).to_pylist()
        written = written_lists.shown_list
        found = [
            written(inner[a:b], type.element) for a, b in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)
        ]
    else:
        assert isinstance(type, StructType)
        columns = []
        for at, (_, kind) in enumerate(type.fields):
            numbers = pa.array(places[:-1] + at, mask=missing)
            columns.append(shown_payloads(elements.take(numbers), kind, zone).to_pylist())
        found = [written_lists.shown_struct(list(row), type) for row in zip(*columns, strict=True)]
    return pa.array(found, pa.string(), mask=missing)


def parsed(given: Array, type: Type) -> Array:
    """The values that texts say; NULL where one says none."""
    found: list[str | None] = []
    for text in given.to_pylist():
        try:
            found.append(text_of(parse_interned(text, type), type))
        except (ValueError, OverflowError, RecursionError, decimal.InvalidOperation):
            found.append(None)
    return pa.array(found, pa.string())


def parse_interned(text: str, type: Type) -> Any:
    """The value that a text says. Raises ValueError if it says none."""
    if type.kind == "interval":
        return interval_text.parse_interval(text)
    if type.kind == "blob":
        return interval_text.parse_bytes(text)
    if isinstance(type, ListType | StructType):
        return written_lists.parse(text, type)
    if type.kind == "json":
        return json_texts.checked(text)
    if isinstance(type, DecimalType):
        from tektite.expr.literals import parse

        return parse(text, type)
    return text.strip()  # a uuid, which is checked where it becomes a text


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "item": _item,
    "list_length": _length,
    "list_element": _element,
    "list_slice": _slice,
    "list_position": _positions,
    "list_contains": lambda lists, value, type: (_positions(lists, value, type) > 0).astype(np.int64),
    "list_order": _sorted,
    "list_join": _join,
    "text_split": _split,
    "struct_field": _field,
    "interval": _interval,
    "equal_key": composites.key_texts,
    "interval_months": lambda given: composites.interval_parts(given)[0],
    "interval_days": lambda given: composites.interval_parts(given)[1],
    "interval_micros": lambda given: composites.interval_parts(given)[2],
    "interval_times": _interval_times,
    "decimal_add": lambda a, b, kinds, type: _decimal("add", a, b, kinds, type),
    "decimal_sub": lambda a, b, kinds, type: _decimal("sub", a, b, kinds, type),
    "decimal_mul": lambda a, b, kinds, type: _decimal("mul", a, b, kinds, type),
    "decimal_floordiv": lambda a, b, kinds, type: _decimal("floordiv", a, b, kinds, type),
    "decimal_mod": lambda a, b, kinds, type: _decimal("mod", a, b, kinds, type),
    "decimal_cast": _cast_decimal,
    "nested_cast": _nested_cast,
    "to_json": _to_json,
    "zone_text": _zone_text,
    "json_to": _json_to,
    "decimal_limb": _limb,
    "decimal_from_limbs": _from_limbs,
    **zones.FUNCTIONS,
    **json_texts.FUNCTIONS,
}
