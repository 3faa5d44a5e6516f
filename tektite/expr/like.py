"""Patterns for kernels: LIKE, starts with, ends with, contains.

Translates them to the tokens of `tektite.kernels.text.like`.
"""

from __future__ import annotations

from collections.abc import Callable

from tektite.kernels.text.like import ANY_CHARACTER, ANY_TEXT

Tokens = tuple[int, ...]


def like(pattern: str, escape: str | None = None) -> Tokens:
    """The tokens of a LIKE pattern: % matches any text and _ any character, unless `escape` precedes it.

    >>> like("a_%") == (97, ANY_CHARACTER, ANY_TEXT)
    True
    >>> bytes(like("5!%", "!"))
    b'5%'
    """
    tokens: list[int] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            tokens += next(characters, escape).encode()
        elif character == "%":
            if tokens[-1:] != [ANY_TEXT]:
                tokens.append(ANY_TEXT)
        elif character == "_":
            tokens.append(ANY_CHARACTER)
        else:
            tokens += character.encode()
    return tuple(tokens)


PATTERNS: dict[str, Callable[..., Tokens]] = {
    "like": like,
    "startswith": lambda text: (*text.encode(), ANY_TEXT),
    "endswith": lambda text: (ANY_TEXT, *text.encode()),
    "contains": lambda text: (ANY_TEXT, *text.encode(), ANY_TEXT) if text else (ANY_TEXT,),
}
"""Functions whose second argument is a pattern if it is constant."""
