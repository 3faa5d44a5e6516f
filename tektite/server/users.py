"""Users: who may connect. The one place that front ends ask.

Without any user everybody may connect, under any name, and the server listens on loopback alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from tektite.server.scram import ITERATIONS, Exchange, Verifier, WrongPassword


class Users:
    """Names and verifiers of passwords."""

    def __init__(self, verifiers: Mapping[str, Verifier]) -> None:
        self._verifiers = dict(verifiers)
        self._secret = secrets.token_bytes(32)

    @property
    def are_configured(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self._verifiers)

    def exchange(self, name: str) -> Exchange:
        """An exchange by which somebody proves to be a user. For a name that nobody has it fails at its end, and the same
        salt is shown each time, as a user's is.
        """
        found = self._verifiers.get(name)
        if found is None:
            salt = hmac.digest(self._secret, name.encode(), hashlib.sha256)[:16]
            found = Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))
        return Exchange(found)

    def user_of_token(self, token: str) -> str:
        """The user whom a token was made for."""
        raise WrongPassword("token authentication failed")

    def check_password(self, name: str, password: str) -> None:
        """Refuse a user with another password. For front ends that get passwords, over TLS or from this machine."""
        found = self._verifiers.get(name)
        stranger = Verifier(ITERATIONS, b"\0" * 16, b"\0" * 32, b"\0" * 32)  # takes as long as a user
        if not (found or stranger).accepts(password) or found is None:
            raise WrongPassword("password authentication failed")
