"""Functions of numbers and texts that are evaluated once for each distinct argument, as those of `tektite.expr.text` are.

A function of floats is NULL where it has no value. Those of `MAY_FAIL` are None where they have no result, which is an error of
the row.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.values.types import Int, String, Type

ALL_BITS = 2**64 - 1
OF_FLOATS: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "cbrt": np.cbrt, "atan2": np.arctan2,
    "even": lambda x: np.where(x >= 0, 2 * np.ceil(x / 2), 2 * np.floor(x / 2)),
}  # fmt: skip
"""Functions of one or two floats."""
TYPES: dict[str, tuple[tuple[Type, ...], Type]] = {
    "gcd": ((Int, Int), Int),
    "lcm": ((Int, Int), Int),
    "factorial": ((Int,), Int),
    "bit_count": ((Int,), Int),
    "hex_of": ((Int,), String),
    "binary_of": ((Int,), String),
    "translate": ((String, String, String), String),
    "character_code": ((String, Int), Int),
    "character": ((Int,), String),
    "capitalised": ((String,), String),
    "strip_accents": ((String,), String),
    "md5": ((String,), String),
    "sha256": ((String,), String),
    "utf8_length": ((String,), Int),
    "levenshtein": ((String, String), Int),
}
"""The types of arguments and results of the other functions."""
MAY_FAIL = ("lcm", "factorial", "character")
"""Functions that have no result for some arguments."""


def translated(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for at, character in enumerate(old):
        table.setdefault(ord(character), new[at] if at < len(new) else None)
    return text.translate(table)


def capitalised(text: str) -> str:
    found, inside = [], False
    for character in text:
        found.append(character.lower() if inside else character.upper())
        inside = character.isalnum()
    return "".join(found)


def character(code: int) -> str | None:
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(part for part in parts if not unicodedata.combining(part)))


def levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, mine in enumerate(one, 1):
        above, row[0] = row[0], at
        for place, theirs in enumerate(other, 1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (mine != theirs))
    return row[-1]


def factorial(value: int) -> int | None:
    return math.factorial(value) if 0 <= value <= 20 else None


def fitting(value: int) -> int | None:
    return value if abs(value) < 2**63 else None


FUNCTIONS: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "gcd": (math.gcd, pa.int64()),
    "lcm": (lambda one, other: fitting(math.lcm(one, other)), pa.int64()),
    "factorial": (factorial, pa.int64()),
    "bit_count": (lambda value: (value & ALL_BITS).bit_count(), pa.int64()),
    "hex_of": (lambda value: format(value & ALL_BITS, "x"), pa.string()),
    "binary_of": (lambda value: format(value & ALL_BITS, "b"), pa.string()),
    "translate": (translated, pa.string()),
    "character_code": (lambda text, empty: ord(text[0]) if text else empty, pa.int64()),
    "character": (character, pa.string()),
    "capitalised": (capitalised, pa.string()),
    "strip_accents": (without_accents, pa.string()),
    "md5": (lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), pa.string()),
    "sha256": (lambda text: hashlib.sha256(text.encode()).hexdigest(), pa.string()),
    "utf8_length": (lambda text: len(text.encode()), pa.int64()),
    "levenshtein": (levenshtein, pa.int64()),
}
"""The others, as functions of single values, and what Arrow calls the type of their results."""
