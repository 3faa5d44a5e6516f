"""Secrets as they are kept: passwords as SCRAM verifiers (RFC 5802, RFC 7677), tokens as digests.

A verifier is what PostgreSQL stores: `SCRAM-SHA-256$4096:salt$stored key:server key`. Neither a password nor a token can be
computed from what is kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

from tektite.errors import IncorrectError

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
"""As PostgreSQL has it, and RFC 7677 as the least."""
VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")


@dataclass(frozen=True)
class Verifier:
    """A verifier: it checks that a client knows a password, and does not contain the password.

    >>> verifier = Verifier.of("secret")
    >>> Verifier.parse(str(verifier)) == verifier
    True
    """

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @staticmethod
    def of(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
        """The verifier of a password."""
        salt = secrets.token_bytes(16) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return Verifier(
            iterations, salt, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
        )

    @staticmethod
    def parse(text: str) -> Verifier:
        """A verifier as it is stored."""
        found = VERIFIER.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            salt, stored, server = (base64.b64decode(part, validate=True) for part in found.groups()[1:])
            if len(stored) != 32 or len(server) != 32 or not int(found[1]):
                raise ValueError
        except (ValueError, binascii.Error):
            raise IncorrectError(
                "a password is given as its verifier, SCRAM-SHA-256$4096:salt$key:key, which `tektite password` makes"
            ) from None
        return Verifier(int(found[1]), salt, stored, server)

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def accepts(self, password: str) -> bool:
        """Whether this is the verifier of a password; for who gets the password itself, over TLS."""
        return hmac.compare_digest(Verifier.of(password, self.salt, self.iterations).stored_key, self.stored_key)


def prepared(password: str) -> str:
    """A password as SASLprep (RFC 4013) has it, or as it is where that forbids it, as PostgreSQL does.

    >>> prepared("I\\u00adX"), prepared("\\u2168")
    ('IX', 'IX')
    """
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    found = unicodedata.normalize("NFKC", mapped)
    forbidden = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
        stringprep.in_table_c9, stringprep.in_table_a1,
    )  # fmt: skip
    if not found or any(table(c) for c in found for table in forbidden):
        return password
    right = [stringprep.in_table_d1(c) for c in found]
    if any(right) and (any(stringprep.in_table_d2(c) for c in found) or not (right[0] and right[-1])):
        return password
    return found


def new_token() -> str:
    """A token that nobody can guess."""
    return f"tk_{secrets.token_urlsafe(32)}"


def token_digest(token: str) -> str:
    """The stored digest of a token. A token has 256 random bits, so a plain digest suffices, where a password needs a slow one.

    >>> token_digest("tk_x")[:8]
    '06211793'
    """
    return hashlib.sha256(token.encode()).hexdigest()
