"""Records in fact files: `[1, a, nil]`, where texts stand without quotes, as Soufflé writes them."""

from __future__ import annotations

from typing import Any

from tektite.datalog.rules.records import Structures, shown_constant, written
from tektite.errors import IncorrectError
from tektite.expr.record_text import NIL, QUOTED, fields_of, unquoted


def as_in_files(text: str) -> str:
    """A record as a fact file has it.

    >>> as_in_files('[1, "a", $B("c")]')
    '[1, a, $B(c)]'
    """
    return QUOTED.sub(lambda found: unquoted(found[0]), text)


def as_json(text: str) -> Any:
    """A record as JSON has it: a list of its fields, null for nil; a tagged value is an object of its tag and fields."""
    if text == NIL:
        return None
    if text.startswith('"'):
        return unquoted(text)
    if text.startswith("["):
        return [as_json(part) for part in fields_of(text)]
    if text.startswith("$"):
        return {"tag": text[1:].partition("(")[0], "fields": [as_json(part) for part in fields_of(text)]}
    return float(text) if any(mark in text for mark in ".einf") else int(text)


def from_json(value: Any, kind: str, structures: Structures, where: str) -> str:
    """A field of JSON as it stands in a record of a type."""
    if kind not in structures:
        plain = (
            isinstance(value, str)
            if kind == "symbol"
            else isinstance(value, int | float) and not isinstance(value, bool)
        )
        if not plain or (kind != "float" and isinstance(value, float)):
            raise IncorrectError(f"{where}: expected {kind}, found {value!r}")
        return shown_constant(value, kind)
    if value is None:
        return NIL
    tag, given = (value.get("tag"), value.get("fields")) if isinstance(value, dict) else (None, value)
    fields = structures[kind].fields(tag)
    if fields is None or not isinstance(given, list) or len(given) != len(fields):
        raise IncorrectError(f"{where}: expected a value of type {kind}, found {value!r}")
    return written(tag, [from_json(v, f, structures, where) for v, (_, f) in zip(given, fields, strict=True)])


def from_files(text: str, kind: str, structures: Structures, where: str) -> str:
    """A record of a fact file as rules have it.

    >>> from tektite.datalog.syntax import statements
    >>> structure = statements.Structure("L", ((None, (("x", "symbol"), ("l", "L"))),))
    >>> from_files("[a b, [c, nil]]", "L", {"L": structure}, "file:1")
    '["a b", ["c", nil]]'
    """
    found, rest = _value(text.strip(), kind, structures, where)
    if rest.strip():
        raise IncorrectError(f"{where}: did not expect {rest.strip()!r} behind a value of type {kind}")
    return found


def _value(text: str, kind: str, structures: Structures, where: str) -> tuple[str, str]:
    """A value at the beginning of a text, and what is behind it."""
    text = text.lstrip()
    wrong = IncorrectError(f"{where}: expected a value of type {kind}, found {text!r}")
    if kind not in structures:
        end = min((at for at in map(text.find, (",", "]", ")")) if at >= 0), default=len(text))
        plain = text[:end].strip()
        if kind == "symbol":
            return shown_constant(plain, kind), text[end:]
        try:
            return shown_constant(float(plain) if kind == "float" else int(plain), kind), text[end:]
        except ValueError:
            raise wrong from None
    if text.startswith(NIL):
        return NIL, text[len(NIL) :]
    tag, opening, closing = None, "[", "]"
    if text.startswith("$"):
        end = min((at for at in map(text.find, ("(", ",", "]", ")", " ")) if at >= 0), default=len(text))
        tag, text, opening, closing = text[1:end], text[end:], "(", ")"
    fields = structures[kind].fields(tag)
    if fields is None:
        raise wrong
    if tag is not None and not fields:
        return written(tag, []), text.removeprefix("()")
    if not text.startswith(opening):
        raise wrong
    text, parts = text[1:], []
    for at, (_, field) in enumerate(fields):
        if at:
            if not text.lstrip().startswith(","):
                raise wrong
            text = text.lstrip()[1:]
        part, text = _value(text, field, structures, where)
        parts.append(part)
    if not text.lstrip().startswith(closing):
        raise wrong
    return written(tag, parts), text.lstrip()[1:]
