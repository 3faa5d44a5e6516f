"""What can go wrong, by whose fault it is. A message names the query or expression, the column and what was found."""

from __future__ import annotations


class TektiteError(Exception):
    """The base of every error that Tektite raises on purpose."""


class IncorrectError(TektiteError, ValueError):
    """What was asked is wrong in itself: a type mismatch, a malformed query, a value out of range."""


class NotFoundError(TektiteError, LookupError):
    """What was asked names something that does not exist."""


class ConflictError(TektiteError):
    """What was asked contradicts what is already there."""


class FaultError(TektiteError):
    """Something failed that should not have: a fault of Tektite or of the machine, not of the caller."""


class UnsupportedError(TektiteError):
    """What was asked makes sense, but Tektite does not do it."""
