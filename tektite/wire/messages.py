"""Messages between a server and a client: a head that JSON can hold and, with some, a table.

A message as text is JSON, with the table in it under `table`. A message as bytes is the length of the head in four bytes (big
endian), the head as JSON, and the table as an Arrow stream. Whoever asks decides in which form tables come.

Whatever else is said, `decode` raises a `MalformedMessage` and nothing else. Nothing that comes in is evaluated.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from tektite.errors import IncorrectError, TektiteError
from tektite.wire.rows import table_as_data, table_from_data


class MalformedMessage(IncorrectError):
    """Something that is no message."""

    code = "protocol"


class WireMessage(NamedTuple):
    """A message: its head, and its table if it has one."""

    head: dict[str, Any]
    table: pa.Table | None = None

    def rows(self) -> pa.Table:
        """The table of a message that has one."""
        if self.table is None:
            raise MalformedMessage("expected a table in the message")
        return self.table


def text_of(head: dict[str, Any], table: pa.Table | None = None) -> bytes:
    """A message as JSON.

    >>> text_of({"id": 1}, pa.table({"x": [1]}))
    b'{"id":1,"table":{"columns":["x"],"types":["int"],"rows":[[1]]}}'
    """
    full = head if table is None else {**head, "table": table_as_data(table)}
    return json.dumps(full, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def bytes_of(head: dict[str, Any], table: pa.Table) -> bytes:
    """A message as bytes."""
    return binary_head(head) + arrow_bytes(table)


def binary_head(head: dict[str, Any]) -> bytes:
    """The beginning of a message as bytes: everything but its table."""
    text = text_of(head)
    return struct.pack("!I", len(text)) + text


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def table_of(data: bytes | memoryview) -> pa.Table:
    """The table of an Arrow stream, checked: what is read from it later cannot lie outside of it."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise MalformedMessage(f"expected a table as an Arrow stream: {str(error).splitlines()[0][:200]}") from None
    return table


def decode(data: str | bytes) -> WireMessage:
    """The message that was sent as text or as bytes.

    >>> decode(bytes_of({"id": 1}, pa.table({"x": [1]}))).table.to_pylist()
    [{'x': 1}]
    >>> decode("[1]")
    Traceback (most recent call last):
    tektite.wire.messages.MalformedMessage: a message is an object of JSON, not list
    """
    if isinstance(data, str):
        head = head_of(data)
        found = head.pop("table", None) if isinstance(head.get("table"), dict) else None
        try:
            return WireMessage(head, None if found is None else table_from_data(found))
        except (TektiteError, pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise MalformedMessage(f"the table of the message: {error}") from None
    if len(data) < 4:
        raise MalformedMessage("a message as bytes begins with the length of its head")
    end = 4 + struct.unpack_from("!I", data)[0]
    if end > len(data):
        raise MalformedMessage("a message as bytes ends before its head does")
    head = head_of(data[4:end])
    return WireMessage(head, table_of(memoryview(data)[end:]) if end < len(data) else None)


def head_of(text: str | bytes) -> dict[str, Any]:
    """An object of JSON."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedMessage(f"a message is JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise MalformedMessage(f"a message is an object of JSON, not {type(found).__name__}")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON: write it as a text")
