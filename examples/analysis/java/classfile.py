"""Reads the class-file format (JVMS chapter 4): constant pool, fields, methods and the code of methods.

`read_class(data)` gives a `ClassFile`, or raises `BadClassFile` with the place where the bytes leave the format. Attributes
other than `Code`, `BootstrapMethods` and `Exceptions` are skipped. There are readers of this format on PyPI, but none that
is maintained gives more than the constant pool and raw instructions, and that part is this file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class BadClassFile(ValueError):
    """Bytes that are not a class file."""


@dataclass(frozen=True)
class Reference:
    """A field or a method that the constant pool names: class, name and descriptor."""

    owner: str
    name: str
    descriptor: str


@dataclass(frozen=True)
class Handle:
    """A method handle: how it calls (JVMS table 5.4.3.5-A), and what."""

    kind: int
    target: Reference


@dataclass(frozen=True)
class Dynamic:
    """A call site of invokedynamic: its bootstrap method by number, its name and descriptor."""

    bootstrap: int
    name: str
    descriptor: str


@dataclass(frozen=True)
class Constant:
    """A constant that `ldc` loads. Its kind is `class`, `string`, `number`, `method type` or `handle`."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Handler:
    """An entry of an exception table. Type None catches everything."""

    start: int
    end: int
    target: int
    type: str | None


@dataclass(frozen=True)
class Code:
    """The body of a method."""

    max_locals: int
    instructions: bytes
    handlers: tuple[Handler, ...]


@dataclass(frozen=True)
class Member:
    """A field or a method of a class. `code` is None for fields and for methods without a body."""

    flags: int
    name: str
    descriptor: str
    code: Code | None = None
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bootstrap:
    """A bootstrap method and its static arguments."""

    handle: Handle
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class ClassFile:
    """A class or an interface, with names as Java writes them (`java.lang.String`)."""

    flags: int
    name: str
    superclass: str | None
    interfaces: tuple[str, ...]
    fields: tuple[Member, ...]
    methods: tuple[Member, ...]
    pool: tuple[Any, ...]
    bootstraps: tuple[Bootstrap, ...]


# The bytes that an entry of the constant pool has after its tag (JVMS table 4.4-A). Texts (1) say their own length.
LENGTHS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
LONG, DOUBLE = 5, 6


class Bytes:
    """A cursor over bytes, big-endian."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise BadClassFile(f"{count} bytes wanted at byte {self.at}, and the file has {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")


def read_class(data: bytes) -> ClassFile:
    """The class that the bytes of a file describe.

    >>> read_class(b"PK")
    Traceback (most recent call last):
    ...
    examples.analysis.java.classfile.BadClassFile: 4 bytes wanted at byte 0, and the file has 2
    """
    cursor = Bytes(data)
    if cursor.number(4) != 0xCAFEBABE:
        raise BadClassFile("a class file begins with the bytes CA FE BA BE")
    cursor.take(4)
    try:
        pool = read_pool(cursor)
        flags = cursor.number(2)
        name = pool[cursor.number(2)].value
        parent = cursor.number(2)
        superclass = pool[parent].value if parent else None
        interfaces = tuple(pool[cursor.number(2)].value for _ in range(cursor.number(2)))
        fields = tuple(read_member(cursor, pool) for _ in range(cursor.number(2)))
        methods = tuple(read_member(cursor, pool) for _ in range(cursor.number(2)))
        found = dict(attributes(cursor, pool))
        bootstraps = tuple(read_bootstraps(Bytes(found.get("BootstrapMethods", b"\0\0")), pool))
    except (IndexError, AttributeError, KeyError, TypeError) as error:
        raise BadClassFile(f"an entry of the constant pool is not what byte {cursor.at} needs") from error
    return ClassFile(flags, name, superclass, interfaces, fields, methods, pool, bootstraps)


def read_pool(cursor: Bytes) -> tuple[Any, ...]:
    """The constant pool, each entry with what it refers to put in its place."""
    count = cursor.number(2)
    raw: dict[int, tuple[int, bytes]] = {}
    place = 1
    while place < count:
        tag = cursor.number(1)
        if tag == 1:
            raw[place] = tag, cursor.take(cursor.number(2))
        elif tag in LENGTHS:
            raw[place] = tag, cursor.take(LENGTHS[tag])
        else:
            raise BadClassFile(f"entry {place} of the constant pool has the unknown tag {tag}")
        place += 2 if tag in (LONG, DOUBLE) else 1
    known: dict[int, Any] = {}
    return tuple(resolve(place, raw, known) if place in raw else None for place in range(count))


def resolve(place: int, raw: dict[int, tuple[int, bytes]], known: dict[int, Any]) -> Any:
    """Entry `place` of the pool as a value. The format has no cycles: each tag refers to simpler ones."""
    if place in known:
        return known[place]
    tag, data = raw[place]
    first = int.from_bytes(data[:2], "big")
    second = int.from_bytes(data[2:4], "big")
    value: Any
    match tag:
        case 1:
            value = modified_utf8(data)
        case 3 | 5:
            value = Constant("number", int.from_bytes(data, "big", signed=True))
        case 4 | 6:
            value = Constant("number", struct.unpack(">f" if tag == 4 else ">d", data)[0])
        case 7:
            value = Constant("class", java_name(resolve(first, raw, known)))
        case 8:
            value = Constant("string", resolve(first, raw, known))
        case 9 | 10 | 11:
            name, descriptor = resolve(second, raw, known)
            value = Reference(resolve(first, raw, known).value, name, descriptor)
        case 12:
            value = resolve(first, raw, known), resolve(second, raw, known)
        case 15:
            value = Constant("handle", Handle(data[0], resolve(int.from_bytes(data[1:3], "big"), raw, known)))
        case 16:
            value = Constant("method type", resolve(first, raw, known))
        case 17 | 18:
            value = Dynamic(first, *resolve(second, raw, known))
        case _:
            value = Constant("module", resolve(first, raw, known))
    known[place] = value
    return value


def modified_utf8(data: bytes) -> str:
    """A text of a class file: UTF-8, but zero takes two bytes and characters beyond 16 bits are two surrogates."""
    text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def java_name(internal: str) -> str:
    """A class name of the constant pool as Java writes it: arrays, too.

    >>> java_name("java/lang/String"), java_name("[[I"), java_name("[Ljava/util/Map;")
    ('java.lang.String', 'int[][]', 'java.util.Map[]')
    """
    return type_name(internal) if internal.startswith("[") else internal.replace("/", ".")


PRIMITIVES = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean", "V": "void",
}  # fmt: skip


def type_name(descriptor: str) -> str:
    """A type of a descriptor as Java writes it.

    >>> type_name("[Ljava/lang/Object;"), type_name("J")
    ('java.lang.Object[]', 'long')
    """
    if descriptor.startswith("["):
        return type_name(descriptor[1:]) + "[]"
    return PRIMITIVES.get(descriptor) or descriptor[1:-1].replace("/", ".")


def signature(descriptor: str) -> tuple[list[str], str]:
    """The descriptors of the parameters and of the result of a method.

    >>> signature("(I[JLjava/lang/String;)V")
    (['I', '[J', 'Ljava/lang/String;'], 'V')
    """
    parameters, at = [], 1
    while descriptor[at] != ")":
        start = at
        while descriptor[at] == "[":
            at += 1
        at = descriptor.index(";", at) + 1 if descriptor[at] == "L" else at + 1
        parameters.append(descriptor[start:at])
    return parameters, descriptor[at + 1 :]


def is_reference(descriptor: str) -> bool:
    """Whether values of the type are references."""
    return descriptor[0] in "L["


def width(descriptor: str) -> int:
    """The slots that a value of the type takes."""
    return 2 if descriptor in ("J", "D") else 0 if descriptor == "V" else 1


def attributes(cursor: Bytes, pool: tuple[Any, ...]) -> Iterator[tuple[str, bytes]]:
    for _ in range(cursor.number(2)):
        name = pool[cursor.number(2)]
        yield name, cursor.take(cursor.number(4))


def read_member(cursor: Bytes, pool: tuple[Any, ...]) -> Member:
    flags, name, descriptor = cursor.number(2), pool[cursor.number(2)], pool[cursor.number(2)]
    found = dict(attributes(cursor, pool))
    code = read_code(Bytes(found["Code"]), pool) if "Code" in found else None
    thrown = Bytes(found.get("Exceptions", b"\0\0"))
    return Member(flags, name, descriptor, code, tuple(pool[thrown.number(2)].value for _ in range(thrown.number(2))))


def read_code(cursor: Bytes, pool: tuple[Any, ...]) -> Code:
    cursor.take(2)
    max_locals = cursor.number(2)
    instructions = cursor.take(cursor.number(4))
    handlers = []
    for _ in range(cursor.number(2)):
        start, end, target, caught = (cursor.number(2) for _ in range(4))
        handlers.append(Handler(start, end, target, pool[caught].value if caught else None))
    return Code(max_locals, instructions, tuple(handlers))


def read_bootstraps(cursor: Bytes, pool: tuple[Any, ...]) -> Iterator[Bootstrap]:
    for _ in range(cursor.number(2)):
        handle = pool[cursor.number(2)].value
        yield Bootstrap(handle, tuple(pool[cursor.number(2)] for _ in range(cursor.number(2))))
