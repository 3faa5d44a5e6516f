"""Cut a text into statements at the semicolons that end them, as the text arrives line by line.

A semicolon within quotes, a quoted name, dollar quotes or a comment ends nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What may hide a semicolon, up to its end or, where that has not arrived yet, to the end of the text.
_SPAN = re.compile(
    r"""
      '[^']*(?:'|\Z)
    | "[^"]*(?:"|\Z)
    | --[^\n]*
    | /\*.*?(?:\*/|\Z)
    | (?P<tag>\$(?:[a-zA-Z_]\w*)?\$).*?(?:(?P=tag)|\Z)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_NOTHING = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)


@dataclass(frozen=True)
class SplitStatement:
    """A statement without its semicolon, and the line that it begins on."""

    text: str
    line: int


def split(text: str, line: int = 1) -> tuple[list[SplitStatement], str]:
    """The complete statements of a text, and the rest behind the last semicolon.

    >>> split("SELECT ';'; -- a; comment\\nSELECT 2;\\nSELECT")
    ([SplitStatement(text="SELECT ';'", line=1), SplitStatement(text='SELECT 2', line=2)], '\\nSELECT')
    """
    found = []
    start = counted = 0
    for match in _SPAN.finditer(text):
        if match["end"]:
            part = text[start : match.start()]
            begin = significant(part)
            if begin < len(part):
                line, counted = line + text.count("\n", counted, start + begin), start + begin
                found.append(SplitStatement(part[begin:].rstrip(), line))
            start = match.end()
    return found, text[start:]


def significant(text: str) -> int:
    """The position of the first character that is neither blank nor in a comment.

    >>> significant("  -- why\\n  SELECT 1"), significant(" /* nothing */ ")
    (11, 15)
    """
    match = _NOTHING.match(text)
    return match.end() if match else 0


def is_blank(text: str) -> bool:
    """Whether a text holds nothing but blanks and comments."""
    return significant(text) == len(text)
