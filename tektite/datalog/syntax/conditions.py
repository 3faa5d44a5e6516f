"""Conditions of #if: whole numbers, comparison, arithmetic and logic, as in C. A name that is not a macro is 0."""

from __future__ import annotations

import re

from tektite.errors import IncorrectError

TOKEN = re.compile(r"\s*(\d+|[^\W\d]\w*|&&|\|\||[=!<>]=|[!<>()+\-*/%])")
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))


def is_true(text: str, where: str) -> bool:
    """Whether a condition holds.

    >>> is_true("1 + 1 == 2 && !(X > 0)", "program:1")
    True
    """
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None:
            raise IncorrectError(f"{where}: #if: did not expect {text[at:].strip()[0]!r} in {text.strip()!r}")
        tokens.append(found[1])
        at = found.end()
    value, rest = level(tokens, 0, where)
    if rest:
        raise IncorrectError(f"{where}: #if: did not expect {rest[0]!r} in {text.strip()!r}")
    return value != 0


def level(tokens: list[str], number: int, where: str) -> tuple[int, list[str]]:
    """The value of what stands between operators that bind less than a level's, and the tokens behind it."""
    if number == len(LEVELS):
        return operand(tokens, where)
    value, rest = level(tokens, number + 1, where)
    while rest and rest[0] in LEVELS[number]:
        sign = rest[0]
        other, rest = level(rest[1:], number + 1, where)
        value = applied(sign, value, other, where)
    return value, rest


def operand(tokens: list[str], where: str) -> tuple[int, list[str]]:
    """A number, a name, or what stands in parentheses or behind a sign."""
    if not tokens:
        raise IncorrectError(f"{where}: #if: the condition ends too early")
    first, *rest = tokens
    if first in ("!", "-", "+"):
        value, rest = operand(rest, where)
        return (int(not value) if first == "!" else -value if first == "-" else value), rest
    if first == "(":
        value, rest = level(rest, 0, where)
        if rest[:1] != [")"]:
            raise IncorrectError(f"{where}: #if: a ')' is missing")
        return value, rest[1:]
    if first.isdigit():
        return int(first), rest
    if first[0].isalpha() or first[0] == "_":
        return 0, rest
    raise IncorrectError(f"{where}: #if: did not expect {first!r}")


def applied(sign: str, one: int, other: int, where: str) -> int:
    """An operator applied to two numbers."""
    if sign in ("/", "%") and other == 0:
        raise IncorrectError(f"{where}: #if: a division by zero")
    match sign:
        case "||":
            return int(bool(one) or bool(other))
        case "&&":
            return int(bool(one) and bool(other))
        case "+" | "-":
            return one + other if sign == "+" else one - other
        case "*":
            return one * other
        case "/" | "%":
            whole = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
            return whole if sign == "/" else one - other * whole
    holds = {
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }
    return int(holds[sign])
