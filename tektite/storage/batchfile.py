"""Batch files: sorted, consolidated rows, exactly as heads describe them, and the texts of new ids.

A file holds any number of *sections*, each a batch of one (arrangement, shard) or a set of texts:

    64 bytes     magic, format version
    columns      each aligned to 64 bytes, so that kernels use a mapped column directly
    footer       JSON: what each section is, where its columns are, and the CRC-32 of its bytes
    24 bytes     offset, length and CRC-32 of the footer, magic

Promises:

* A file depends on its sections alone. Whoever computes the same rows writes the same bytes under the same name,
  `epoch-stage-shard-<hash of the content>`.
* A file never changes.
* No byte of a section is used before its length and checksum have been checked.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.errors import FaultError, IncorrectError, UnsupportedError
from tektite.storage.rows import WIDTHS, Column, columns_of, head_over
from tektite.storage.store import FileParts, Store
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import FileRows
from tektite.trace.spine import BatchShape
from tektite.trace.times import Frontier
from tektite.values.words import Words, arrow_buffer

FOLDER = "batches"
FORMAT = 1
MAGIC = b"TEKTITE\n"
ALIGNMENT = 64
_MAPPED = 1 << 20
"""Files of this size and more are mapped. Smaller ones are many, and each map takes a file descriptor."""
_HEADER = struct.Struct("<8sI52x")
_TRAILER = struct.Struct("<QII8s")


@dataclass(frozen=True)
class Section:
    """The description of a section, known without opening its file: arrangement, shard, frontiers, number of rows.

    `kind` is "batch" or "texts". A set of texts has no arrangement and no frontiers.
    """

    kind: str
    rows: int
    bytes: int
    arrangement: str = ""
    shard: int = 0
    shape: BatchShape = (0, 0, 0)
    lower: Frontier = ()
    upper: Frontier = ()
    since: Frontier = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values, for footers, manifests and messages between processes."""
        plain: dict[str, Any] = {"kind": self.kind, "rows": self.rows, "bytes": self.bytes}
        if self.kind == "batch":
            plain |= {"arrangement": self.arrangement, "shard": self.shard, "shape": list(self.shape)}
            plain |= {name: [list(t) for t in getattr(self, name)] for name in ("lower", "upper", "since")}
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Section:
        """The section that `to_json` described."""
        if plain["kind"] != "batch":
            return Section(plain["kind"], plain["rows"], plain["bytes"])
        lower, upper, since = (tuple(map(tuple, plain[name])) for name in ("lower", "upper", "since"))
        data, times, diffs = plain["shape"]
        return Section(
            "batch", plain["rows"], plain["bytes"], plain["arrangement"], plain["shard"], (data, times, diffs), lower, upper,
            since,
        )  # fmt: skip


@dataclass(frozen=True)
class FileInfo:
    """A written file: its name, its length, and its sections in order. Travels between processes as JSON."""

    name: str
    length: int
    sections: tuple[Section, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "length": self.length, "sections": [s.to_json() for s in self.sections]}

    @staticmethod
    def from_json(plain: dict[str, Any]) -> FileInfo:
        """The file that `to_json` described."""
        return FileInfo(plain["name"], plain["length"], tuple(map(Section.from_json, plain["sections"])))


@dataclass(frozen=True)
class BatchSection:
    """A batch to write, and its arrangement and shard. `shape` counts its data, time and diff columns."""

    arrangement: str
    shard: int
    shape: BatchShape
    batch: Batch


@dataclass(frozen=True)
class TextSection:
    """Texts to write: those of ids that no earlier file has."""

    texts: pa.ChunkedArray[Any]

    @staticmethod
    def joined(several: Iterable[pa.Array[Any]]) -> TextSection:
        """Several sets of texts as one, each text once."""
        return TextSection(pa.chunked_array([pa.concat_arrays(list(several)).unique()]))


@dataclass
class _Layout:
    """The bytes of a file that is being built."""

    parts: list[bytes | memoryview] = field(default_factory=list)
    length: int = 0

    def append(self, part: bytes | memoryview) -> int:
        """Add bytes at the next aligned offset; returns the offset."""
        gap = -self.length % ALIGNMENT
        if gap:
            self.parts.append(bytes(gap))
        at = self.length + gap
        self.parts.append(part)
        self.length = at + len(part)
        return at


def write_file(
    store: Store,
    epoch: int,
    stage: str,
    shard: int | str,
    sections: Sequence[BatchSection | TextSection],
    folder: str = FOLDER,
) -> FileInfo:
    """Write sections as one file. Any process may call it. In the folder of batches the file is durable, and counts once a
    manifest names it. Files in other folders can be computed again.

    `stage` and `shard` appear in the file's name, to show which work made it. Readers ignore them.
    """
    parts, length, described = pack(sections)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    name = f"{epoch:010d}-{stage}-{shard}-{digest.hexdigest()[:32]}.batch"
    if "/" in name:
        raise IncorrectError(f"the stage {stage!r} names a file, so it may not hold a slash")
    store.write(f"{folder}/{name}", parts, durable=folder == FOLDER)
    return FileInfo(name, length, described)


def pack(sections: Sequence[BatchSection | TextSection]) -> tuple[FileParts, int, tuple[Section, ...]]:
    """The bytes of a file, its length, and its sections."""
    layout = _Layout()
    layout.append(_HEADER.pack(MAGIC, FORMAT))
    footers: list[dict[str, Any]] = []
    described: list[Section] = []
    for section in sections:
        start, checksum = layout.length, _Checksum()
        if isinstance(section, BatchSection):
            batch = section.batch
            columns = [_place(layout, checksum, column) for column in columns_of(batch.head, batch.memory)]
            info = Section(
                "batch", batch.n, layout.length - start, section.arrangement, section.shard, section.shape,
                batch.lower, batch.upper, batch.since,
            )  # fmt: skip
        else:
            offsets, data = _text_bytes(section.texts)
            columns = [_place(layout, checksum, offsets), _place(layout, checksum, data)]
            info = Section("texts", len(section.texts), layout.length - start)
        described.append(info)
        footers.append(info.to_json() | {"columns": columns, "crc": checksum.value})
    footer = json.dumps({"format": FORMAT, "sections": footers}, separators=(",", ":"), sort_keys=True).encode()
    at = layout.append(footer)
    layout.parts.append(_TRAILER.pack(at, len(footer), zlib.crc32(footer), MAGIC))
    return layout.parts, layout.length + _TRAILER.size, tuple(described)


class _Checksum:
    """CRC-32 of the columns of a section, in order."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, part: bytes | memoryview) -> None:
        self.value = zlib.crc32(part, self.value)


def _place(layout: _Layout, checksum: _Checksum, column: Column | np.ndarray[Any, Any]) -> dict[str, int]:
    if isinstance(column, int):
        checksum.add(column.to_bytes(8, "little", signed=True))
        return {"constant": column}
    part = column.data.cast("B") if len(column) else memoryview(b"")
    checksum.add(part)
    return {"offset": layout.append(part), "width": column.itemsize, "length": len(column)}


def _text_bytes(texts: pa.ChunkedArray[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Offsets (one more than there are texts) and UTF-8 bytes of texts, in one piece."""
    whole = pa.concat_arrays([*texts.cast(pa.large_string()).chunks, pa.array([], pa.large_string())])
    offsets, data = whole.buffers()[1:]
    if not len(whole) or offsets is None:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    starts = np.frombuffer(memoryview(offsets), np.int64)[whole.offset : whole.offset + len(whole) + 1]
    letters = np.frombuffer(memoryview(data if data is not None else b""), np.uint8)[starts[0] : starts[-1]]
    return starts - starts[0], letters


# ------------------------------------------------------------------ reading


def _mapped_file(file: BufferedReader) -> memoryview:
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _small_file(file: BufferedReader, length: int) -> memoryview:
    """The content of a file in its own memory, aligned like a map."""
    room = np.empty(length + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    content = room[start : start + length]
    file.seek(0)
    if file.readinto(content.data) != length:
        raise OSError(f"{file.name} became shorter while it was read")
    return content.data.toreadonly()


@dataclass(frozen=True, eq=False)
class Mapped(FileRows):
    """Keeps a batch of a file alive, and says where it is. A part of the batch has another head."""

    columns: object
    opened: Opened
    index: int
    head: Words


class Opened:
    """A file whose length and footer have been checked: mapped if it is large, read if it is small.

    `batch` and `texts` check a section's bytes before they use them.
    """

    def __init__(self, path: Path, name: str, length: int | None = None) -> None:
        self.name = name
        self.where = str(path)
        self._right: set[int] = set()
        try:
            with path.open("rb") as file:
                found = file.seek(0, 2)
                if length is not None and found != length:
                    raise damage_error(self.where, f"it has {found} bytes instead of {length}")
                if found < _HEADER.size + _TRAILER.size:
                    raise damage_error(self.where, f"{found} bytes are too few for a batch file")
                self._bytes = _small_file(file, found) if found < _MAPPED else _mapped_file(file)
        except FileNotFoundError:
            raise damage_error(self.where, "the file is missing") from None
        self._footers = self._read_footer(found)
        self.sections = tuple(map(Section.from_json, self._footers))
        self.info = FileInfo(name, found, self.sections)

    def _read_footer(self, length: int) -> list[dict[str, Any]]:
        magic, version = _HEADER.unpack_from(self._bytes)
        at, size, crc, end = _TRAILER.unpack_from(self._bytes, length - _TRAILER.size)
        if magic != MAGIC:
            raise damage_error(self.where, "it does not begin like a batch file")
        if version > FORMAT:
            raise UnsupportedError(
                f"{self.where} has format {version}; this version of Tektite reads formats up to {FORMAT}: upgrade it"
            )
        footer = bytes(self._bytes[at : at + size]) if at + size + _TRAILER.size == length else b""
        if end != MAGIC or not footer or zlib.crc32(footer) != crc:
            raise damage_error(self.where, "its footer is cut short or has changed")
        sections: list[dict[str, Any]] = json.loads(footer)["sections"]
        return sections

    def batch(self, index: int) -> Batch:
        """The batch of a section, over the file's bytes."""
        section, footer = self.sections[index], self._footers[index]
        columns = self._columns(index, footer)
        head, keep = head_over(section.rows, columns)
        return Batch(head, Mapped(keep, self, index, head), section.lower, section.upper, section.since)

    def texts(self, index: int) -> pa.Array[Any]:
        """The texts of a section, over the file's bytes."""
        offsets, data = self._columns(index, self._footers[index])
        assert not isinstance(offsets, int) and not isinstance(data, int)
        buffers = [None, arrow_buffer(offsets), arrow_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), self.sections[index].rows, buffers)

    def verify(self, sections: Iterable[int] | None = None) -> None:
        """Check some sections; by default all of them, and the content hash in the name."""
        self._right.clear()
        for index in range(len(self.sections)) if sections is None else sections:
            self._columns(index, self._footers[index])
        if sections is None:
            digest = hashlib.sha256(self._bytes).hexdigest()[:32]
            if not self.name.endswith(f"-{digest}.batch"):
                raise damage_error(self.where, f"its content has the hash {digest}, not the one in its name")

    def _columns(self, index: int, footer: dict[str, Any]) -> list[Any]:
        columns: list[Any] = []
        checksum = _Checksum()
        check = index not in self._right
        for column in footer["columns"]:
            if "constant" in column:
                if check:
                    checksum.add(int(column["constant"]).to_bytes(8, "little", signed=True))
                columns.append(column["constant"])
                continue
            at, width, length = column["offset"], column["width"], column["length"]
            if check:
                checksum.add(self._bytes[at : at + width * length])
            dtype = np.dtype(np.uint8) if footer["kind"] == "texts" and width == 1 else WIDTHS[width]
            columns.append(np.frombuffer(self._bytes, dtype, length, at) if length else np.empty(0, dtype))
        if check and checksum.value != footer["crc"]:
            raise damage_error(
                self.where, f"the bytes of section {index} ({footer.get('arrangement', 'texts')!r}) have changed"
            )
        self._right.add(index)
        return columns


def open_file(path: Path, info: FileInfo) -> Opened:
    """Open a file that a manifest names. If it is missing, too short or changed, the error names it."""
    return Opened(path, info.name, info.length)


def damage_error(where: str, what: str) -> FaultError:
    """The error for a file whose content is not what was written."""
    return FaultError(
        f"storage file {where} is damaged: {what}. `tektite storage repair --dry-run` shows what can be repaired"
    )
