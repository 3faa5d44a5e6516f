"""The errors with which dataflows fail, and the messages that users of their results get."""

from __future__ import annotations

from tektite.errors import FaultError, TektiteError

UNEXPLAINED = FaultError("it failed, and there was neither memory nor stack left to say why")
"""The failure of a dataflow until another one is known."""


class KeepsTooMuch(FaultError):
    """A dataflow keeps more bytes than it may."""


def interrupt_of(error: BaseException | None) -> BaseException | None:
    """The interrupt that made a call fail, if one did. Numba makes a SystemError of an interrupt as it calls a kernel."""
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return None if error is None or isinstance(error, Exception) else error


def explained(error: BaseException, name: str) -> TektiteError:
    """The error that users of a dataflow get for an error in it."""
    if isinstance(error, FaultError):
        return error
    if isinstance(error, TektiteError):
        found: TektiteError = error.reworded(f"view {name!r}: {error}")
    else:
        found = FaultError(f"{type(error).__name__}: {error}", name)
    found.__cause__ = error
    return found
