"""SCRAM-SHA-256 (RFC 5802, RFC 7677): the server's side of the exchange by which a client proves that it knows a password.

An exchange with a user that does not exist goes as one with a wrong password, so that nobody learns which users there are.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from tektite.errors import IncorrectError
from tektite.sql.access.verifiers import Verifier

FIRST = re.compile(r"([ny]),(?:a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+))(?:,.*)?", re.DOTALL)
FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([A-Za-z0-9+/=]+)")
MESSAGE_LIMIT = 4096
"""Characters of a message of a client: a nonce and a proof are far shorter."""


class WrongPassword(IncorrectError):
    """The exchange failed: the password, the user or a message is wrong. It does not say which."""

    code = "authentication"


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
