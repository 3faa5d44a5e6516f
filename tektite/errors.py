"""What can go wrong, by whose fault it is. Every error this package raises on purpose is a `TektiteError`.

A message names the thing it is about (the query, the column), what was found there, and what to do about it.
A call that raises one of these has changed nothing.
"""

from __future__ import annotations


class TektiteError(Exception):
    """The base of every error that Tektite raises on purpose."""

    retryable = False
    """Whether the same call may succeed if it is made again."""


class IncorrectError(TektiteError, ValueError):
    """The caller's input is wrong: a type, a number of columns, a column or a value that does not fit."""


class NotFoundError(TektiteError, LookupError):
    """A name or an id that nothing here has."""


class ConflictError(TektiteError):
    """The request is sound but clashes with what is already there: a name that is taken, something closed twice."""


class TransactionConflict(ConflictError):
    """A transaction was refused because another one was faster. Nothing was written: run it again.

    >>> TransactionConflict("input 'accounts': 1 of the keys ...").retryable
    True
    """

    retryable = True


class FaultError(TektiteError):
    """A user's function or the engine itself failed; `view` names the view that failed with it, if any.

    >>> error = FaultError("division by zero in the function of map", view="ratios")
    >>> print(error)
    view 'ratios': division by zero in the function of map
    """

    def __init__(self, message: str, view: str | None = None) -> None:
        super().__init__(message)
        self.view = view

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.view is None else f"view {self.view!r}: {message}"


class UnsupportedError(TektiteError):
    """The request makes sense, but Tektite does not do it."""
