"""Errors as data: `TektiteError`s keep their class, code, message and details over a wire; others say nothing of our insides."""

from __future__ import annotations

from typing import Any

from tektite import errors
from tektite.errors import FaultError, TektiteError, public_name

INTERNAL = "internal error: the server's log says more"


class ConnectionLost(FaultError):
    """The connection to the server broke. Whether the last request was carried out is not known."""

    code = "connection-lost"
    retryable = True


class HistoryGone(errors.ConflictError):
    """A subscription cannot be resumed: the server does not hold the changes since its last time any more. Begin anew."""

    code = "history-gone"


def as_data(error: BaseException) -> dict[str, Any]:
    """An error as JSON can hold it.

    >>> as_data(errors.NotFoundError("no table 'x'"))
    {'class': 'NotFoundError', 'code': 'not-found', 'message': "no table 'x'", 'retryable': False, 'details': {}}
    """
    if not isinstance(error, TektiteError):
        return {"class": "FaultError", "code": "fault", "message": INTERNAL, "retryable": False, "details": {}}
    plain = {name: value for name, value in error.details.items() if isinstance(value, str | int | float | bool)}
    return {
        "class": public_name(error), "code": error.code, "message": str(error), "retryable": error.retryable, "details": plain,
    }  # fmt: skip


def from_data(data: Any) -> TektiteError:
    """The error that some data describes.

    >>> from_data({"class": "NotFoundError", "code": "not-found", "message": "no table 'x'"})
    NotFoundError("no table 'x'")
    """
    found = data if isinstance(data, dict) else {}
    message = str(found.get("message", "the server said nothing about it"))
    named = getattr(errors, str(found.get("class")), None)
    kind = named if isinstance(named, type) and issubclass(named, TektiteError) else TektiteError
    if found.get("code") == HistoryGone.code:
        kind = HistoryGone
    error = kind(message)
    vars(error).update(code=str(found.get("code", kind.code)), retryable=bool(found.get("retryable", kind.retryable)))
    if isinstance(found.get("details"), dict):
        error.details.update(found["details"])
    return error
