"""Errors as PostgreSQL's clients expect them: a five-character SQLSTATE, a message without our caret, and a position.

The kind of an error decides, and where a kind is wider than a state, what its message says. `tests/server/test_sqlstates.py` has
a statement for each state.
"""

from __future__ import annotations

import re

from tektite.errors import TektiteError
from tektite.sql.parse.places import POINTED

BY_CODE = {
    "incorrect": "22023",
    "not-found": "42704",
    "conflict": "55000",
    "transaction-conflict": "40001",
    "fault": "XX000",
    "function": "38000",
    "unsupported": "0A000",
    "error": "XX000",
    "protocol": "08P01",
    "authentication": "28P01",
    "cancelled": "57014",
    "failed-transaction": "25P02",
    "too-many-connections": "53300",
    "permission-denied": "42501",
    "too-many-queries": "53400",
}
"""The state of each kind of error, where its message says no more."""

BY_MESSAGE: tuple[tuple[str, str], ...] = (
    (r"there is no prepared statement", "26000"),
    (r"there is no (table|view|index)|no table or view", "42P01"),
    (r"function \S+ is not supported|there is no function", "42883"),
    (r"no column|column .* does not exist|there is no column", "42703"),
    (r"column .* is ambiguous|ambiguous", "42702"),
    (r"there is (a|an) (table|view|input|index|definition).* already|named .* already", "42P07"),
    (r"there is a prepared statement .* already", "42P05"),
    (r"there is a (role|policy|token) .* already", "42710"),
    (r"there is no (role|policy|token)", "42704"),
    (r"syntax error", "42601"),
    (r"there is no (value for )?parameter", "42P02"),
    (r"cannot be NULL|may not be NULL|NULL in (a |the )?(key|required|column)|is required|must not be NULL", "23502"),
    (
        r"same key|two rows with the key|key .* (is there already|exists|twice)|unique|PRIMARY KEY .*(twice|already)",
        "23505",
    ),
    (r"GROUP BY|aggregate cannot be used", "42803"),
    (r"division by zero|divided by zero", "22012"),
    (r"out of range|overflow|does not fit|beyond", "22003"),
    (r"text does not say such a value|not a valid value|invalid input", "22P02"),
    (r"cannot (drop|replace)", "2BP01"),
    (r"a transaction is open already", "25001"),
    (r"no transaction is open", "25P01"),
    (r"the engine is closed|the server stops", "57P01"),
    (r"more than one row|two rows|several rows", "21000"),
    (r"only tables can be changed", "42809"),
)
"""States by what the first line of a message says, the first that fits; for kinds that do not decide alone."""
_MESSAGES = [(re.compile(pattern, re.IGNORECASE), state) for pattern, state in BY_MESSAGE]
_SPECIFIC = {
    "protocol",
    "authentication",
    "cancelled",
    "failed-transaction",
    "too-many-connections",
    "transaction-conflict",
    "permission-denied",
    "too-many-queries",
}


def sqlstate(error: BaseException) -> str:
    """The state of an error."""
    if not isinstance(error, TektiteError):
        return "XX000"
    told = error.details.get("sqlstate")
    if isinstance(told, str):
        return told
    if error.code not in _SPECIFIC:
        head = message_of(error)
        for pattern, state in _MESSAGES:
            if pattern.search(head):
                return state
    return BY_CODE.get(error.code, "XX000")


def message_of(error: BaseException) -> str:
    """The message of an error without the line and the caret, which clients draw themselves. What is no error of ours says
    nothing about our insides.
    """
    if not isinstance(error, TektiteError):
        return "internal error: the server's log says more"
    return POINTED.sub("", str(error))


def position_of(error: BaseException, text: str, offset: int = 0) -> int | None:
    """Where in a text an error is, counted in characters from 1; `offset` is how much of the text lies before the statement."""
    if not isinstance(error, TektiteError) or "line" not in error.details or "column" not in error.details:
        return None
    lines = text[offset:].split("\n")
    line, column = int(error.details["line"]), int(error.details["column"])
    if not 1 <= line <= len(lines):
        return None
    return offset + sum(len(each) + 1 for each in lines[: line - 1]) + column


def error_fields(error: BaseException, text: str = "", offset: int = 0, severity: str = "ERROR") -> dict[str, str]:
    """The fields of an error, by their letters."""
    found = {"S": severity, "V": severity, "C": sqlstate(error), "M": message_of(error)}
    if isinstance(error, TektiteError) and error.details.get("hint"):
        found["H"] = str(error.details["hint"])
    position = position_of(error, text, offset) if text else None
    if position is not None:
        found["P"] = str(position)
    return found
