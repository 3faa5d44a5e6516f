"""Checks of regular expressions where they are written: one that cannot be read is told then, not row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError
from tektite.values.arguments import whole_number


def checked_pattern(pattern: Any, what: str) -> str:
    """A regular expression. Raises for what is none.

    >>> checked_pattern("(", "x.matches")
    Traceback (most recent call last):
    tektite.errors.IncorrectError: x.matches: invalid regular expression: missing ): ( (RE2's syntax)
    """
    if not isinstance(pattern, str):
        raise IncorrectError(f"{what} takes a regular expression as a text, not {pattern!r}")
    _try(lambda: pc.match_substring_regex(pa.scalar(""), pattern), what)
    return pattern


def checked_replacement(pattern: Any, replacement: Any, what: str) -> str:
    """The text that replaces a match. Raises if it names a group that the pattern has not."""
    if not isinstance(replacement, str):
        raise IncorrectError(f"{what} takes the replacement as a text, not {replacement!r}")
    _try(lambda: pc.replace_substring_regex(pa.scalar(""), checked_pattern(pattern, what), replacement), what)
    return replacement


def checked_group(group: Any, what: str) -> int:
    """The number of a group of a match."""
    found = whole_number(group, 0)
    if found is None:
        raise IncorrectError(f"{what} takes the number of a group, 0 for the whole match, not {group!r}")
    return found


def _try(trial: Callable[[], object], what: str) -> None:
    try:
        trial()
    except pa.ArrowInvalid as error:
        found = str(error).replace("Invalid regular expression", "invalid regular expression")
        raise IncorrectError(f"{what}: {found} (RE2's syntax)") from None
