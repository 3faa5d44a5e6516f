"""The names of prepared statements: every user has names of its own, and those of superusers are for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.sql.access.access_control import PermissionDenied

if TYPE_CHECKING:
    from tektite.sql.statements.prepared import Prepared
    from tektite.sql.statements.runner import StatementRunner

OF = "\x1f"
"""Stands between the name of a prepared statement and its owner."""


def prepared_key(runner: StatementRunner, name: str) -> str:
    """The key under which a prepared statement of the caller's user is kept."""
    who = runner.access.who()
    return name if who is None else f"{name}{OF}{who}"


def found_prepared(runner: StatementRunner, name: str) -> Prepared | None:
    """The prepared statement that a name means for the caller's user: its own, or else that of a superuser."""
    return runner.prepared.get(prepared_key(runner, name)) or runner.prepared.get(name)


def refused(prepared: Prepared, who: str | None, error: PermissionDenied) -> PermissionDenied:
    """The refusal of a prepared statement, for somebody who may not know what somebody else's is about."""
    if prepared.owner == who:
        return error
    return PermissionDenied(
        f"permission denied: the prepared statement {prepared.name!r} is about what is not for {who!r}"
    )
