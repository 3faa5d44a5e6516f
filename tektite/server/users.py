"""Users: who may connect, and how often. The one place that front ends ask.

Users are roles that can log in: those that clients create, which the storage keeps, and those of the server's description, which
are made anew from it at each start. Without any user everybody may connect, under any name, and the server listens on loopback
alone.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tektite.errors import ConflictError
from tektite.server.connections import TooManyConnections
from tektite.server.scram import Exchange, WrongPassword
from tektite.sql.access.access_tables import Record, Role
from tektite.sql.access.verifiers import ITERATIONS, Verifier, token_digest

if TYPE_CHECKING:
    from tektite.sql.access.access_control import AccessControl

STRANGER = Verifier(ITERATIONS, b"\0" * 16, b"\0" * 32, b"\0" * 32)
"""The verifier of nobody: to check it takes as long as to check a user's."""


class Users:
    """The users of a server: its roles that can log in."""

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._secret = secrets.token_bytes(32)
        self._connected: Counter[str] = Counter()

    def describe(self, verifiers: Mapping[str, Verifier], ordinary: Iterable[str] = ()) -> None:
        """Make the users of a description, and remove those that an earlier one had. They are superusers, unless they are
        `ordinary`. The caller holds the engine's lock.
        """
        access = self._access
        known = access.tables.roles
        gone = [role for role in known.values() if role.is_described and role.name not in verifiers]
        if not verifiers and not gone:
            return
        access.begin()
        made: list[Record] = []
        for name, verifier in verifiers.items():
            before = known.get(name, Role(name))
            made.append(before._replace(
                is_super=name not in ordinary, can_login=True, verifier=str(verifier), is_described=True
            ))  # fmt: skip
        names = {role.name for role in gone}
        rest: list[Record] = [*gone]
        rest += [m for m in access.tables.members.values() if names & {m.role, m.member}]
        rest += [g for g in access.tables.grants.values() if g.grantee in names]
        rest += [t for t in access.tables.tokens.values() if t.role in names]
        if rest or any(record != known.get(record[0]) for record in made):
            access.change(made, rest)

    @property
    def are_configured(self) -> bool:
        """Whether clients must log in."""
        return self._access.is_configured and any(role.can_login for role in self._access.tables.roles.values())

    @property
    def count(self) -> int:
        """The number of users."""
        return sum(role.can_login for role in self._access.tables.roles.values())

    # ------------------------------------------------------------------ proofs

    def _verifier(self, name: str) -> Verifier | None:
        """The verifier of a user who may log in."""
        role = self._access.tables.roles.get(name)
        if role is None or not role.can_login or role.verifier is None or is_past(role.valid_until):
            return None
        return Verifier.parse(role.verifier)

    def exchange(self, name: str) -> Exchange:
        """An exchange by which somebody proves to be a user. For a name that nobody has it fails at its end, and the same
        salt is shown each time, as a user's is.
        """
        found = self._verifier(name)
        if found is None:
            salt = hmac.digest(self._secret, name.encode(), hashlib.sha256)[:16]
            found = Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))
        return Exchange(found)

    def check_password(self, name: str, password: str) -> None:
        """Refuse a user with another password. For front ends that get passwords, over TLS or from this machine."""
        found = self._verifier(name)
        if not (found or STRANGER).accepts(password) or found is None:
            raise WrongPassword("password authentication failed")

    def user_of_token(self, token: str) -> str:
        """The user whom a token was made for."""
        digest = token_digest(token)
        for known in list(self._access.tables.tokens.values()):
            if hmac.compare_digest(known.digest, digest):
                role = self._access.tables.roles.get(known.role)
                if (
                    role is not None
                    and role.can_login
                    and not is_past(known.valid_until)
                    and not is_past(role.valid_until)
                ):
                    return known.role
        raise WrongPassword("token authentication failed")

    # ------------------------------------------------------------------ connections

    def admit(self, name: str) -> None:
        """Count a connection of a user; refuse one more than the user may have."""
        role = self._access.tables.roles.get(name)
        limit = None if role is None else role.connection_limit
        if limit is not None and self._connected[name] >= limit:
            raise TooManyConnections(f"user {name!r} has {limit} connections, which is as many as it may have")
        self._connected[name] += 1

    def left(self, name: str) -> None:
        """A connection of a user has ended."""
        self._connected[name] -= 1
        if self._connected[name] <= 0:
            del self._connected[name]

    def check_reachable(self, is_local: bool, address: str) -> None:
        """Refuse to let everybody in from elsewhere."""
        if not self.are_configured and not is_local:
            raise ConflictError(
                f"a server without users listens on loopback only, and this is to listen on {address}: name users in its "
                "description, create some from this machine (CREATE USER), or take the address 127.0.0.1"
            )


def is_past(moment: datetime.datetime | None) -> bool:
    """Whether a moment has passed."""
    return moment is not None and moment <= datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
