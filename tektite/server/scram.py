"""SCRAM-SHA-256 (RFC 5802, RFC 7677): passwords as verifiers, and the server's side of the exchange.

A verifier is what PostgreSQL stores: `SCRAM-SHA-256$4096:salt$stored key:server key`. A password cannot be computed from it. An
exchange with a user that does not exist goes as one with a wrong password, so that nobody learns which users there are.
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
FIRST = re.compile(r"([ny]),(?:a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+))(?:,.*)?", re.DOTALL)
FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([A-Za-z0-9+/=]+)")
MESSAGE_LIMIT = 4096
"""Characters of a message of a client: a nonce and a proof are far shorter."""


class WrongPassword(IncorrectError):
    """The exchange failed: the password, the user or a message is wrong. It does not say which."""

    code = "authentication"


@dataclass(frozen=True)
class Verifier:
    """What proves that somebody knows a password, without the password.

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


class Exchange:
    """The server's side of one exchange: `first`, then `final`, each once."""

    def __init__(self, verifier: Verifier, nonce: str | None = None) -> None:
        self.verifier = verifier
        self._nonce = secrets.token_urlsafe(18) if nonce is None else nonce
        self._bare = self._header = self._first = ""

    def first(self, message: str) -> str:
        """The answer to the client's first message."""
        found = FIRST.fullmatch(message) if len(message) <= MESSAGE_LIMIT else None
        if found is None or self._first:
            raise WrongPassword("the first message of SCRAM is malformed")
        self._header = message[: found.start(2)]
        self._bare = message[found.start(2) :]
        self._nonce = found[3] + self._nonce
        salt = base64.b64encode(self.verifier.salt).decode()
        self._first = f"r={self._nonce},s={salt},i={self.verifier.iterations}"
        return self._first

    def final(self, message: str) -> str:
        """The answer to the client's last message, if that proves that it knows the password."""
        found = FINAL.fullmatch(message) if len(message) <= MESSAGE_LIMIT else None
        if found is None or not self._first:
            raise WrongPassword("the last message of SCRAM is malformed")
        self._first, first = "", self._first
        if found[3] != self._nonce or decoded(found[2]) != self._header.encode():
            raise WrongPassword("the last message of SCRAM does not belong to the first")
        signed = f"{self._bare},{first},{found[1]}".encode()
        signature = hmac.digest(self.verifier.stored_key, signed, "sha256")
        proof = decoded(found[4])
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        if len(proof) != 32 or not hmac.compare_digest(hashlib.sha256(key).digest(), self.verifier.stored_key):
            raise WrongPassword("password authentication failed")
        return "v=" + base64.b64encode(hmac.digest(self.verifier.server_key, signed, "sha256")).decode()


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise WrongPassword("a message of SCRAM is malformed") from None
