"""Arrays of the system catalogs: texts as PostgreSQL writes them, such as {a,b}, or 1 2 for a vector."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

VECTORS = ("int2vector", "oidvector")
_SPECIAL = re.compile(r'[,{}"\\\s]|^$|^null$', re.IGNORECASE)
_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,]+)')


def is_array(type: str) -> bool:
    """Whether a type of PostgreSQL is one of arrays."""
    return type in VECTORS or type.startswith("_")


def array_text(elements: Iterable[Any]) -> str:
    """An array as a text.

    >>> array_text(["a", None, "b c"])
    '{a,NULL,"b c"}'
    """
    return "{" + ",".join(map(_element, elements)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return array_text(value)
    if isinstance(value, dict):
        value = "{" + ", ".join(f'"{name}": {_element(part)}' for name, part in value.items()) + "}"
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    if not _SPECIAL.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def vector_text(elements: Iterable[Any]) -> str:
    """A vector as a text.

    >>> vector_text([1, 2])
    '1 2'
    """
    return " ".join(map(str, elements))


def array_elements(text: str) -> list[str | None]:
    """The elements of an array's or a vector's text.

    >>> array_elements('{a,NULL,"b c"}'), array_elements("1 2")
    (['a', None, 'b c'], ['1', '2'])
    """
    if not text.startswith("{"):
        return list(text.split())
    found: list[str | None] = []
    for quoted in _ELEMENT.finditer(text[1:-1]):
        if quoted[2] is not None:
            found.append(None if quoted[2].upper() == "NULL" else quoted[2])
        else:
            found.append(re.sub(r"\\(.)", r"\1", quoted[1]))
    return found
