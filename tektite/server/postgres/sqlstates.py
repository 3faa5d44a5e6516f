"""Errors as PostgreSQL's clients expect them: a five-character SQLSTATE, a message without our caret, and a position.

The code of an error decides, and where a code is wider than a state, the `condition` in its details. What the message says does
not matter. `tests/server/test_sqlstates.py` has a statement for each state.
"""

from __future__ import annotations

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
"""The state of each kind of error, where it names no condition."""

BY_CONDITION = {
    "active-sql-transaction": "25001",
    "admin-shutdown": "57P01",
    "ambiguous-column": "42702",
    "cardinality-violation": "21000",
    "check-violation": "23514",
    "configuration-limit-exceeded": "53400",
    "datatype-mismatch": "42804",
    "dependent-objects-still-exist": "2BP01",
    "duplicate-alias": "42712",
    "duplicate-column": "42701",
    "duplicate-object": "42710",
    "duplicate-schema": "42P06",
    "duplicate-statement": "42P05",
    "duplicate-table": "42P07",
    "grouping-error": "42803",
    "invalid-column-reference": "42P10",
    "invalid-text-representation": "22P02",
    "no-active-sql-transaction": "25P01",
    "not-null-violation": "23502",
    "numeric-value-out-of-range": "22003",
    "syntax-error": "42601",
    "undefined-column": "42703",
    "undefined-function": "42883",
    "undefined-parameter": "42P02",
    "undefined-schema": "3F000",
    "undefined-statement": "26000",
    "undefined-table": "42P01",
    "undefined-type": "42704",
    "unique-violation": "23505",
    "wrong-object-type": "42809",
}
"""The state of each condition that an error names in its details; it decides before the kind."""


def sqlstate(error: BaseException) -> str:
    """The state of an error."""
    if not isinstance(error, TektiteError):
        return "XX000"
    told = error.details.get("sqlstate")
    if isinstance(told, str):
        return told
    condition = BY_CONDITION.get(str(error.details.get("condition")))
    if condition is not None:
        return condition
    return BY_CODE.get(error.code, "XX000")


def message_of(error: BaseException) -> str:
    """The message of an error without the line and the caret, which clients draw themselves. What is no error of ours says
    nothing about our insides.
    """
    if not isinstance(error, TektiteError):
        return "internal error: the server's log says more"
    return POINTED.sub("", str(error))


def position_of(error: BaseException, text: str, offset: int = 0) -> int | None:
    """The position of an error in a text, in characters from 1. The statement begins at `offset`."""
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
