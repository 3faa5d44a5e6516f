"""PostgreSQL's protocol, version 3, as bytes: frames that come in, and messages that go out. Nothing here does I/O.

A frame is a type (one byte), a length (four bytes, itself included) and a body. The first frame of a connection has no type. A
`FrameReader` holds at most one incomplete frame and refuses one that announces more than its limit, so that what a peer sends
decides neither how much memory is used nor how long is waited for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from tektite.errors import IncorrectError

INT = struct.Struct("!i")
SHORT = struct.Struct("!h")
HEAD = struct.Struct("!ci")

PROTOCOL = 3 << 16
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102

STARTUP_LIMIT = 10_000
"""Bytes of a startup packet, as PostgreSQL has it."""


class ProtocolError(IncorrectError):
    """The client broke the protocol. The connection ends."""

    code = "protocol"


class FrameReader:
    """Cuts what arrives into frames. `limit` is the longest body that is taken in."""

    __slots__ = ("_at", "_buffer", "limit")

    def __init__(self, limit: int) -> None:
        self._buffer = bytearray()
        self._at = 0
        self.limit = limit

    def feed(self, data: bytes) -> None:
        """Take what has arrived."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    @property
    def waiting(self) -> int:
        """Bytes that arrived and were not taken yet."""
        return len(self._buffer) - self._at

    @property
    def next_kind(self) -> int | None:
        """The type of the next frame, if something of it has come."""
        return self._buffer[self._at] if len(self._buffer) > self._at else None

    def startup(self) -> tuple[int, bytes] | None:
        """The code and the body of a frame without a type, once it is complete."""
        if self.waiting < 8:
            return None
        length, code = struct.unpack_from("!ii", self._buffer, self._at)
        if not 8 <= length <= STARTUP_LIMIT:
            raise ProtocolError(f"a startup packet of {length} bytes: expected from 8 to {STARTUP_LIMIT}")
        if self.waiting < length:
            return None
        body = bytes(self._buffer[self._at + 8 : self._at + length])
        self._at += length
        return code, body

    def next(self) -> tuple[int, bytes] | None:
        """The type and the body of the next frame, once it is complete."""
        buffer, at = self._buffer, self._at
        if len(buffer) - at < 5:
            return None
        length = int.from_bytes(buffer[at + 1 : at + 5], "big", signed=True)
        if not 4 <= length <= self.limit + 4:
            raise ProtocolError(f"a message of {length} bytes: expected from 4 to {self.limit + 4}")
        end = at + 1 + length
        if len(buffer) < end:
            return None
        self._at = end
        return buffer[at], bytes(buffer[at + 5 : end])


class Fields:
    """Reads the body of one frame. What is missing or left over is a `ProtocolError`."""

    __slots__ = ("at", "body")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def text(self) -> str:
        """A text that ends with a zero byte."""
        end = self.body.find(0, self.at)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        found = self.body[self.at : end]
        self.at = end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text in a message is not UTF-8") from None

    def byte(self) -> int:
        self._need(1)
        self.at += 1
        return self.body[self.at - 1]

    def short(self) -> int:
        """A number of things."""
        self._need(2)
        (found,) = SHORT.unpack_from(self.body, self.at)
        self.at += 2
        if found < 0:
            raise ProtocolError(f"a message announces {found} values")
        return int(found)

    def shorts(self) -> list[int]:
        """A count and as many numbers."""
        many = self.short()
        self._need(2 * many)
        found = struct.unpack_from(f"!{many}h", self.body, self.at)
        self.at += 2 * many
        return list(found)

    def integer(self) -> int:
        self._need(4)
        (found,) = INT.unpack_from(self.body, self.at)
        self.at += 4
        return int(found)

    def value(self) -> bytes | None:
        """A length and as many bytes; a length of -1 is NULL."""
        length = self.integer()
        if length == -1:
            return None
        if length < 0:
            raise ProtocolError(f"a message announces a value of {length} bytes")
        self._need(length)
        self.at += length
        return self.body[self.at - length : self.at]

    def rest(self) -> bytes:
        found = self.body[self.at :]
        self.at = len(self.body)
        return found

    def end(self) -> None:
        if self.at != len(self.body):
            raise ProtocolError(f"a message has {len(self.body) - self.at} bytes too many")

    def _need(self, many: int) -> None:
        if self.at + many > len(self.body):
            raise ProtocolError("a message is shorter than it says")


# ---------------------------------------------------------------------- what goes out


def message(kind: bytes, body: bytes = b"") -> bytes:
    """One message.

    >>> message(b"Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    return HEAD.pack(kind, len(body) + 4) + body


def zero_ended(text: str) -> bytes:
    return text.replace("\0", " ").encode(errors="replace") + b"\0"


AUTHENTICATION_OK = message(b"R", INT.pack(0))
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
EMPTY_QUERY = message(b"I")
PORTAL_SUSPENDED = message(b"s")
COPY_DONE = message(b"c")
READY = {status: message(b"Z", status.encode()) for status in ("I", "T", "E")}


def sasl_mechanisms(names: Sequence[str]) -> bytes:
    return message(b"R", INT.pack(10) + b"".join(zero_ended(name) for name in names) + b"\0")


def sasl_continue(data: str) -> bytes:
    return message(b"R", INT.pack(11) + data.encode())


def sasl_final(data: str) -> bytes:
    return message(b"R", INT.pack(12) + data.encode())


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", zero_ended(name) + zero_ended(value))


def backend_key(process: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!iI", process, secret))


def negotiate_version(minor: int, unknown: Sequence[str]) -> bytes:
    """NegotiateProtocolVersion: the answer to a client that asked for a newer minor version or for unknown options."""
    options = b"".join(zero_ended(name) for name in unknown)
    return message(b"v", struct.pack("!ii", minor, len(unknown)) + options)


def command_complete(tag: str) -> bytes:
    return message(b"C", zero_ended(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!h{len(oids)}I", len(oids), *oids))


def row_description(columns: Iterable[tuple[str, int, int, int, int]]) -> bytes:
    """The columns of a result, each with its name, the oid, size and modifier of its type, and its format."""
    parts = []
    for name, oid, size, modifier, form in columns:
        parts.append(zero_ended(name) + struct.pack("!ihIhih", 0, 0, oid, size, modifier, form))
    return message(b"T", SHORT.pack(len(parts)) + b"".join(parts))


def fields_of(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """An error (E) or a notice (N): texts by the letter of their field."""
    body = b"".join(letter.encode() + zero_ended(text) for letter, text in fields.items())
    return message(kind, body + b"\0")


def copy_response(kind: bytes, form: int, columns: int) -> bytes:
    """The beginning of COPY in (G) or out (H), all columns in one format."""
    return message(kind, struct.pack(f"!bh{columns}h", form, columns, *[form] * columns))
