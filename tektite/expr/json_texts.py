"""Functions of JSON texts, each evaluated once for each distinct text.

Paths are a key or a place, DuckDB's '$.a[0].b' and '/a/0/b', or PostgreSQL's '{a,0,b}' (for #>). What is found is written without
blanks, as DuckDB writes it.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.expr.literals import parse
from tektite.expr.zones import clock_of
from tektite.values import composites
from tektite.values.types import Json, ListType, String, StructType, Type
from tektite.values.words import NULL, arrow_type

_STEP = re.compile(r"\.(?:\"([^\"]*)\"|([^.\[\]\"]+))|\[(#-)?(-?\d+)\]")
_ABSENT = object()


def checked(text: str) -> str:
    """A text that is JSON. Raises ValueError if it is not."""
    json.loads(text, parse_constant=_refused)
    return text


def _refused(word: str) -> None:
    raise ValueError(word)


def written(value: Any) -> str:
    """A value as JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _ABSENT


@lru_cache(1024)
def steps_of(path: str) -> tuple[str | int, ...] | None:
    """The keys and places of a path; None if it is not one.

    >>> steps_of("$.a[0].b"), steps_of("/a/0"), steps_of("a.b")
    (('a', 0, 'b'), ('a', '0'), ('a.b',))
    """
    if path.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
    if not path.startswith("$"):
        return (path,)
    found: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        quoted, plain, from_end, place = step.groups()
        if place is not None:
            found.append(-int(place) if from_end else int(place))
        else:
            found.append(quoted if quoted is not None else plain)
        at = step.end()
    return tuple(found)


def _found(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(str(step), _ABSENT) if isinstance(step, str) else _ABSENT
        elif isinstance(value, list):
            place = int(step) if isinstance(step, int) or re.fullmatch(r"-?\d+", step) else None
            value = value[place] if place is not None and -len(value) <= place < len(value) else _ABSENT
        else:
            return _ABSENT
        if value is _ABSENT:
            return _ABSENT
    return value


def _as_json(value: Any) -> str | None:
    return None if value is _ABSENT else written(value)


def _as_text(value: Any) -> str | None:
    if value is _ABSENT or value is None:
        return None
    return value if isinstance(value, str) else written(value)


def json_of(value: Any, type: Type, zone: str = "UTC") -> str:
    """A value of a type as JSON: numbers as they are, what JSON has no form for as texts; moments by the clocks of a zone."""
    if value is None:
        return "null"
    if isinstance(type, ListType):
        return f"[{','.join(json_of(element, type.element, zone) for element in value)}]"
    if isinstance(type, StructType):
        return "{" + ",".join(f"{written(name)}:{json_of(value[name], kind, zone)}" for name, kind in type.fields) + "}"
    if type.kind == "json":
        return str(value)
    if (
        type.kind in ("int", "bool", "string", "float")
        and value == value
        and value not in (float("inf"), float("-inf"))
    ):
        return written(value)
    if type.kind == "decimal":
        return f"{value:f}"
    if type.kind == "timestamptz":
        value = value.astimezone(clock_of(zone))
    return written(value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value))


def value_of(text: str, type: Type) -> Any:
    """The value of a type that a JSON text says. Raises if it says none."""
    return _converted(json.loads(text), type)


def _converted(value: Any, type: Type) -> Any:
    if value is None:
        return None
    if isinstance(type, ListType) and isinstance(value, list):
        return [_converted(element, type.element) for element in value]
    if isinstance(type, StructType) and isinstance(value, dict):
        return {name: _converted(value.get(name), kind) for name, kind in type.fields}
    if isinstance(type, ListType | StructType):
        raise ValueError(value)
    said = value if isinstance(value, str) else written(value)
    if type.kind == "json":
        return written(value)
    if type.kind in ("string", "uuid"):
        return said
    if type.kind in ("interval", "blob"):
        from tektite.expr.interned_texts import parse_interned

        return parse_interned(said, type)
    if type.kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return parse(said, type)


def _every(given: Any, rows: int) -> list[Any]:
    if isinstance(given, str | int):
        return [given] * rows
    return list(given.tolist() if isinstance(given, np.ndarray) else given.to_pylist())


def _extracted(texts: Any, path: Any, show: Callable[[Any], str | None], listed: bool) -> Any:
    rows = max(len(arg) for arg in (texts, path) if not isinstance(arg, str | int))
    found = []
    for text, wanted in zip(_every(texts, rows), _every(path, rows), strict=True):
        if listed:
            inner = wanted.strip("{}")
            steps: tuple[str | int, ...] | None = (
                tuple(part.strip().strip('"') for part in inner.split(",")) if inner else ()
            )
        else:
            steps = (wanted,) if isinstance(wanted, int) else steps_of(wanted)
        value = _read(text)
        found.append(None if steps is None or value is _ABSENT else show(_found(value, steps)))
    return pa.array(found, pa.string())


def _over(call: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """A function of the values of JSON texts; None where there is none."""

    def computed(texts: Any) -> list[Any]:
        values = map(_read, texts.to_pylist())
        return [None if value is _ABSENT else call(value) for value in values]

    return computed


def _words(found: list[Any]) -> Any:
    return np.array([NULL if value is None else value for value in found], np.int64)


def kind_of(value: Any) -> str:
    """The kind of a JSON value, as PostgreSQL calls it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def duckdb_kind_of(value: Any) -> str:
    """The kind of a JSON value, as DuckDB calls it."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return kind_of(value).upper()
    if isinstance(value, int):
        return "UBIGINT" if value >= 0 else "BIGINT"
    return "DOUBLE" if isinstance(value, float) else "VARCHAR"


PAIR = StructType("struct", (("key", String), ("value", Json)))


def _lists(found: list[Any], element: Any) -> Any:
    kind = arrow_type(element)
    return composites.texts_of(pa.array(found, pa.list_(kind)), ListType("list", element))


def _items(value: Any) -> list[str] | None:
    return [written(part) for part in value] if isinstance(value, list) else None


def _pairs(value: Any) -> list[dict[str, str]] | None:
    if isinstance(value, list):
        return [{"key": str(at), "value": written(part)} for at, part in enumerate(value)]
    return [{"key": key, "value": written(part)} for key, part in value.items()] if isinstance(value, dict) else None


def _keys(value: Any) -> list[str] | None:
    return list(value) if isinstance(value, dict) else None


def _valid(texts: Any) -> Any:
    return _words([int(_read(text) is not _ABSENT) for text in texts.to_pylist()])


def _quoted(texts: Any) -> Any:
    return pa.array([None if text is None else written(text) for text in texts.to_pylist()], pa.string())


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json_extract": lambda texts, path: _extracted(texts, path, _as_json, listed=False),
    "json_extract_text": lambda texts, path: _extracted(texts, path, _as_text, listed=False),
    "json_extract_path": lambda texts, path: _extracted(texts, path, _as_json, listed=True),
    "json_extract_path_text": lambda texts, path: _extracted(texts, path, _as_text, listed=True),
    "json_length": lambda texts: _words(_over(lambda value: len(value) if isinstance(value, list) else 0)(texts)),
    "json_typeof": lambda texts: pa.array(_over(kind_of)(texts), pa.string()),
    "json_type": lambda texts: pa.array(_over(duckdb_kind_of)(texts), pa.string()),
    "json_valid": _valid,
    "json_items": lambda texts: _lists(_over(_items)(texts), Json),
    "json_pairs": lambda texts: _lists(_over(_pairs)(texts), PAIR),
    "json_keys": lambda texts: _lists(_over(_keys)(texts), String),
    "json_text": lambda texts: pa.array(_over(_as_text)(texts), pa.string()),
    "json_minified": lambda texts: pa.array(_over(written)(texts), pa.string()),
    "json_quoted": _quoted,
}
