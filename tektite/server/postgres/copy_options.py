"""The options of COPY, in both of PostgreSQL's ways to write them: `WITH (FORMAT csv, HEADER)` and `CSV HEADER`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tektite.errors import IncorrectError, UnsupportedError
from tektite.server.postgres.commands import unquoted

TOKEN = re.compile(r"""\s*(?:(E?'(?:[^']|'')*')|([A-Za-z_]\w*)|([(),*])|(\S))""", re.DOTALL)
FLAGS = ("true", "false", "on", "off", "1", "0", "match")
ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}


@dataclass(frozen=True)
class CopyOptions:
    """The format of rows in a COPY."""

    form: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'


def copy_options(text: str) -> CopyOptions:
    """The options behind STDIN or STDOUT.

    >>> copy_options(" WITH (FORMAT csv, HEADER true, NULL 'none')")
    CopyOptions(form='csv', delimiter=',', null='none', header=True, quote='"', escape='"')
    >>> copy_options(" CSV HEADER") == copy_options(" (format 'csv', header)")
    True
    >>> copy_options(" WITH DELIMITER ';'").delimiter
    ';'
    """
    words = [match.group().strip() for match in TOKEN.finditer(text) if match.group().strip()]
    if words and words[0].upper() == "WITH":
        del words[0]
    found = _listed(words[1:]) if words and words[0] == "(" else _plain(words)
    form = found.get("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        raise _wrong(f"COPY: the format is text, csv or binary, not {form!r}")
    is_csv = form == "csv"
    header = found.get("header", "false").lower()
    if header not in FLAGS:
        raise _wrong(f"COPY: HEADER is true or false, not {header!r}")
    made = CopyOptions(
        form, found.get("delimiter", "," if is_csv else "\t"), found.get("null", "" if is_csv else "\\N"),
        header in ("true", "on", "1", "match"), found.get("quote", '"'), found.get("escape", found.get("quote", '"')),
    )  # fmt: skip
    for name, value in (("DELIMITER", made.delimiter), ("QUOTE", made.quote), ("ESCAPE", made.escape)):
        if len(value) != 1 or ord(value) > 127:
            raise _wrong(f"COPY: {name} is one character of ASCII, not {value!r}")
    return made


def _listed(words: list[str]) -> dict[str, str]:
    """Options in parentheses, with commas between them."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at] != ")":
        name = words[at].lower()
        at += 1
        value = "true"
        if at < len(words) and words[at] not in (",", ")"):
            value = _value(words[at])
            at += 1
        _add(found, name, value)
        if at < len(words) and words[at] == ",":
            at += 1
    if at != len(words) - 1:
        raise _wrong("COPY: expected the end of the options")
    return found


def _plain(words: list[str]) -> dict[str, str]:
    """Options behind each other."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        name = words[at].lower()
        at += 1
        if name in ("csv", "binary"):
            found["format"] = name
        elif name == "header":
            found["header"] = "true"
        else:
            if at < len(words) and words[at].upper() == "AS":
                at += 1
            if at >= len(words):
                raise _wrong(f"COPY: option {name.upper()} needs a value")
            _add(found, name, _value(words[at]))
            at += 1
    return found


def _add(found: dict[str, str], name: str, value: str) -> None:
    if name == "encoding":
        if value.lower().replace("-", "") not in ("utf8", "unicode"):
            raise UnsupportedError(f"COPY: the encoding is UTF8, not {value!r}")
    elif name in ("format", "delimiter", "null", "header", "quote", "escape"):
        found[name] = value
    elif name != "freeze":  # which says nothing here: rows are never frozen
        raise UnsupportedError(f"COPY: option {name.upper()} is not supported")


def _value(word: str) -> str:
    if word[:1] in "eE" and word[1:2] == "'":
        text = unquoted(word[1:])
        return ESCAPES.get(text, text)
    return unquoted(word)


def _wrong(message: str) -> IncorrectError:
    error = IncorrectError(message)
    error.details["sqlstate"] = "22023"
    return error
