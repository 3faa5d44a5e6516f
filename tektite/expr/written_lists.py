"""Lists and structs as people write them: [1, 2], {'a': 1}, and PostgreSQL's {1,2} and (1,x)."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from tektite.expr import literals
from tektite.values.types import ListType, StructType, Type

_SPECIAL = set("[]{},:'\"\\()=")


def shown_list(elements: list[str | None], type: Type) -> str:
    """A list as DuckDB shows it.

    >>> from tektite.values.types import String
    >>> shown_list(["a", None, "b, c"], String)
    "[a, NULL, 'b, c']"
    """
    return f"[{', '.join(_shown(element, type) for element in elements)}]"


def shown_struct(values: list[str | None], type: StructType) -> str:
    """A struct as DuckDB shows it."""
    pairs = zip(type.fields, values, strict=True)
    return "{" + ", ".join(f"'{name}': {_shown(value, kind)}" for (name, kind), value in pairs) + "}"


def _shown(text: str | None, type: Type) -> str:
    if text is None:
        return "NULL"
    bare = text != "" and text.strip() == text and text.upper() != "NULL" and not set(text) & _SPECIAL
    plain = type.kind not in ("string", "json") or bare
    return text if plain else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def parse(text: str, type: Type) -> Any:
    """The list or struct that a text says. Raises ValueError if it says none.

    >>> from tektite.values.types import Int, String
    >>> parse("[1, NULL, 3]", ListType("list", Int)), parse('{a,"b c"}', ListType("list", String))
    ([1, None, 3], ['a', 'b c'])
    """
    value, rest = _value(text.strip(), type)
    if rest.strip():
        raise ValueError(text)
    return value


def _value(text: str, type: Type) -> tuple[Any, str]:
    if isinstance(type, ListType):
        return _list(text, type)
    if isinstance(type, StructType):
        return _struct(text, type)
    said, quoted, rest = _token(text)
    if not quoted and said.upper() == "NULL":
        return None, rest
    return scalar(said, type), rest


def scalar(text: str, type: Type) -> Any:
    """The value that a text says."""
    if type.kind in ("string", "json", "uuid"):
        return text
    if type.kind in ("interval", "blob"):
        from tektite.expr.interned_texts import parse_interned

        return parse_interned(text, type)
    found = literals.parse(text, type)
    if isinstance(found, datetime.datetime) and type.kind == "timestamptz":
        return found.replace(tzinfo=datetime.UTC)
    return found


def _token(text: str) -> tuple[str, bool, str]:
    """A text up to the next mark, whether it stands in quotes, and the rest."""
    text = text.lstrip()
    if text[:1] in ("'", '"'):
        quote, out, at = text[0], [], 1
        while at < len(text) and text[at] != quote:
            at += text[at] == "\\"
            out.append(text[at : at + 1])
            at += 1
        if at >= len(text):
            raise ValueError(text)
        return "".join(out), True, text[at + 1 :].lstrip()
    end = next((at for at, c in enumerate(text) if c in ",]})" or c in "[{"), len(text))
    return text[:end].strip(), False, text[end:]


def _quoted(text: str, type: Type, read: Callable[[str, Any], tuple[Any, str]]) -> tuple[Any, str]:
    """A list or struct that is written in quotes, as PostgreSQL writes it inside another."""
    said, _, rest = _token(text)
    value, left = read(said, type)
    if left:
        raise ValueError(text)
    return value, rest


def _list(text: str, type: ListType) -> tuple[Any, str]:
    text = text.lstrip()
    if text[:1] == '"':
        return _quoted(text, type, _list)
    if text[:4].upper() == "NULL":
        return None, text[4:].lstrip()
    if text[:1] not in ("[", "{"):
        raise ValueError(text)
    close = "]" if text[0] == "[" else "}"
    rest = text[1:].lstrip()
    found: list[Any] = []
    if rest.startswith(close):
        return found, rest[1:].lstrip()
    while True:
        value, rest = _value(rest, type.element)
        found.append(value)
        rest = rest.lstrip()
        if rest.startswith(close):
            return found, rest[1:].lstrip()
        if not rest.startswith(","):
            raise ValueError(text)
        rest = rest[1:]


def _struct(text: str, type: StructType) -> tuple[Any, str]:
    text = text.lstrip()
    if text[:1] == '"':
        return _quoted(text, type, _struct)
    if text[:4].upper() == "NULL":
        return None, text[4:].lstrip()
    if text[:1] not in ("{", "("):
        raise ValueError(text)
    by_name = text[0] == "{"
    close = "}" if by_name else ")"
    rest = text[1:].lstrip()
    found: dict[str, Any] = {}
    while not rest.startswith(close):
        if by_name:
            said, rest = _name(rest)
            place = type.field(said)
        else:
            place = len(found) if len(found) < len(type.fields) else None
        if place is None:
            raise ValueError(text)
        name, kind = type.fields[place]
        if not by_name and rest[:1] in (",", ")"):
            found[name] = None
        else:
            found[name], rest = _value(rest, kind)
        rest = rest.lstrip()
        if rest.startswith(","):
            rest = rest[1:].lstrip()
        elif not rest.startswith(close):
            raise ValueError(text)
    return {name: found.get(name) for name, _ in type.fields}, rest[1:].lstrip()


def _name(text: str) -> tuple[str, str]:
    """The name of a field, and what follows its colon."""
    if text[:1] in ("'", '"'):
        said, _, rest = _token(text)
    else:
        said, colon, rest = text.partition(":")
        rest = colon + rest
    if not rest.startswith(":"):
        raise ValueError(text)
    return said.strip(), rest[1:].lstrip()
