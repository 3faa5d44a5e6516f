"""BatchMemory: where the columns of large batches lie, in memory or in mapped files.

Promises:

* Large batches take about `kept` bytes of memory, or less. What comes beyond that lies in files. The operating system keeps those
  pages of a mapped file that are in use, and writes the others to the disk when it needs the memory.
* A file has no name. Its room on the disk is free when the last reader of its batch is gone, whatever ends the process.
* Room on the disk is reserved before anything is written there: a page without room would end the process. If the disk is full,
  or no folder can be written, the batch stays in memory.

Batches of fewer than `least` bytes stay in memory and are not counted: a spine has few of them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import IO, Any

import numpy as np

from tektite.kernels.ready import calls
from tektite.trace.chunk import Chunk, Consolidated
from tektite.values.words import Words

LEAST = 1 << 20
"""Bytes of a batch that is worth a file: a file takes some system calls, a descriptor and a map of the process."""
KEPT = 2
"""The part of the limit that large batches in memory may take is one of so many. The rest is for the process itself, for what is
being sorted and computed, for texts and for small batches.
"""
PIECE = 32
"""The part of the limit that rows which are sorted at a time may take is one of so many. Sorting needs four times the memory of
its rows.
"""
WIDE = 64
"""Columns of rows that are checked for being large by their number first."""
FEW_ROWS: int = calls().FEW_ROWS
"""Rows that are always sorted at once."""
_PAGE = mmap.PAGESIZE
_PUNCH = 3
"""FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE: give a part of a file back to the disk."""


class FileRows:
    """Keeps rows alive that lie in a file, and are no memory of this process."""


class MappedRows(FileRows):
    """Rows in a file of a `BatchMemory`."""

    def __init__(self, room: Words) -> None:
        self.room = room


class CountedRows:
    """Keeps rows alive that lie in memory, and count there."""

    def __init__(self, rows: object) -> None:
        self.rows = rows


class FileRoom:
    """Columns in a file that is being written."""

    def __init__(self, file: IO[bytes], whole: Words, columns: list[Words]) -> None:
        self._file = file
        self._whole = whole
        self.columns = columns

    def end(self, used: Sequence[int]) -> MappedRows:
        """Nothing more is written. Of each column `used` bytes are, and what lies behind them is given back."""
        start = self._whole.ctypes.data
        for column, length in zip(self.columns, used, strict=True):
            first = column.ctypes.data - start
            # Kernels read up to seven bytes behind a column.
            behind = -(-(first + length + 8) // _PAGE) * _PAGE
            _give_back(self._file.fileno(), behind, -(-(first + column.nbytes) // _PAGE) * _PAGE - behind)
        self._file.close()
        return MappedRows(self._whole)


class BatchMemory:
    """Places the large batches of an engine that is to need about `limit` bytes of memory.

    >>> memory = BatchMemory(1 << 30)
    >>> memory.kept >> 20, memory.resident, memory.mapped
    (512, 0, 0)
    """

    def __init__(self, limit: int, folder: str | None = None) -> None:
        """Without a folder, files lie in that for temporary files, which is looked for when there is something to write."""
        self.limit = limit
        self.folder = folder
        self.kept = limit // KEPT
        self.piece = limit // PIECE
        """Bytes of rows, in whole words, that are sorted at a time."""
        self.least = min(LEAST, limit // 64)
        self._few = self.least // (8 * WIDE)
        """Rows that are never large."""
        self._numbers = count()
        # Sizes by number. A dict changes in one step, whichever thread a batch dies in.
        self._in_memory: dict[int, int] = {}
        self._in_files: dict[int, int] = {}

    @property
    def resident(self) -> int:
        """Bytes of the large batches that lie in memory."""
        return sum(list(self._in_memory.values()))

    @property
    def mapped(self) -> int:
        """Bytes of the files that were made."""
        return sum(list(self._in_files.values()))

    def piece_rows(self, columns: int) -> int:
        """Rows of so many columns that are sorted at a time."""
        return max(self.piece // (8 * columns), FEW_ROWS)

    def is_short(self, size: int) -> bool:
        """Whether so many more bytes are too much for memory."""
        return self.resident + size > self.kept

    def placed(self, chunk: Chunk) -> Chunk:
        """The same rows, in memory if there is room and in a file otherwise."""
        if chunk.n < self._few:
            return chunk
        size = chunk.n * int(chunk.head[4::3].sum())
        if size < self.least or isinstance(chunk.memory, FileRows | CountedRows):
            return chunk
        if not self.is_short(size):
            return _placed_like(chunk, chunk.head, self.counted(chunk.memory, size))
        addresses, steps = chunk.head[3::3].tolist(), chunk.head[4::3].tolist()
        stored = [j for j, step in enumerate(steps) if step]
        used = [chunk.n * steps[j] for j in stored]
        room = self.file_room([length // 8 + 2 for length in used])
        if room is None:
            return _placed_like(chunk, chunk.head, self.counted(chunk.memory, size))
        head = chunk.head.copy()
        head[1] = head.ctypes.data
        head[3::3] = head.ctypes.data + 8 * np.arange(5, len(head), 3)
        for j, column, length in zip(stored, room.columns, used, strict=True):
            ctypes.memmove(column.ctypes.data, addresses[j], length)
            head[3 + 3 * j] = column.ctypes.data
        return _placed_like(chunk, head, room.end(used))

    def counted(self, rows: object, size: int) -> CountedRows:
        """Rows in memory, of so many bytes."""
        counted = CountedRows(rows)
        self._note(counted, self._in_memory, size)
        return counted

    def file_room(self, words: Sequence[int]) -> FileRoom | None:
        """Columns of so many words in a file, each on pages of its own; None if there is no room on the disk."""
        places, length = [], 0
        for many in words:
            places.append(length)
            length += -(-8 * many // _PAGE) * _PAGE
        try:
            file: Any = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
            try:
                _reserve(file.fileno(), length)
                memory = mmap.mmap(file.fileno(), length)
            except BaseException:
                file.close()
                raise
        except OSError:
            return None
        whole = np.frombuffer(memory, np.int64)
        self._note(memory, self._in_files, length)
        columns = [whole[place // 8 : place // 8 + many] for place, many in zip(places, words, strict=True)]
        return FileRoom(file, whole, columns)

    def _note(self, owner: object, sizes: dict[int, int], size: int) -> None:
        """Count a size for as long as its owner lives."""
        number = next(self._numbers)
        sizes[number] = size
        weakref.finalize(owner, sizes.pop, number, None).atexit = False


def _placed_like(chunk: Chunk, head: Words, memory: object) -> Chunk:
    if isinstance(chunk, Consolidated):
        return Consolidated(head, memory, chunk.low)
    return Chunk(head, memory)


def _reserve(descriptor: int, length: int) -> None:
    """Have a file of so many bytes, with room on the disk for all of them where the system can promise that."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, length)
    else:
        os.ftruncate(descriptor, length)


def _give_back(descriptor: int, start: int, length: int) -> None:
    """Give whole pages of a file back to the disk, where the system can."""
    if length > 0 and sys.platform.startswith("linux"):
        with suppress(AttributeError):
            function = ctypes.CDLL(None).fallocate
            function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            function(descriptor, _PUNCH, start, length)


def in_units(size: float) -> str:
    """A number of bytes for messages.

    >>> in_units(1610612736), in_units(900)
    ('1.5 GiB', '900 bytes')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
