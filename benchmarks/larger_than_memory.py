"""What data of several times the memory limit costs: its load, its opening, small epochs and look-ups, warm and from the disk."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.measure import Laps
from tektite.engine.core import core_of
from tektite.runtime.memory_limit import bytes_from

NAME = "larger_than_memory"
DESCRIPTION = (
    "a table of `times` times the memory limit: load, open, epochs of one row, look-ups; memory of its own by phase"
)

COLUMNS = {"a": tk.Int, "b": tk.Int, "c": tk.Int}
PART = 1_000_000
_MADV_PAGEOUT = 21


def run(
    limit: str = "512 MiB", times: Sequence[float] = (0.25, 4.0), epochs: int = 500, folder: str = ""
) -> Iterator[dict[str, Any]]:
    """Records by `phase`. `own` is the most memory of the process's own (RssAnon) in the phase, less what it had before the
    engine was made. In the phases called cold, the pages of the indexes are on the disk alone.
    """
    for factor in times:
        rows = int(bytes_from(limit, "limit") * factor / 24)
        with tempfile.TemporaryDirectory(dir=folder or None) as place:
            yield from measured(Path(place) / "store", limit, rows, factor, epochs)
            gc.collect()


def measured(path: Path, limit: str, rows: int, factor: float, epochs: int) -> Iterator[dict[str, Any]]:
    said = {"limit": limit, "times": factor, "rows": rows}
    watch = OwnMemory()
    with tk.Engine(storage=path, memory_limit=limit) as engine:
        table = engine.create_table("t", COLUMNS)
        began = time.perf_counter()
        for part in parts(rows):
            table.insert(part)
        loaded = time.perf_counter() - began
        engine.sync()
        yield said | {"phase": "load", "seconds": round(loaded, 2), "own": watch.most()}
    del engine, table
    gc.collect()
    began = time.perf_counter()
    with tk.Engine(storage=path, memory_limit=limit) as engine:
        table = engine.table("t")
        yield said | {"phase": "open", "seconds": round(time.perf_counter() - began, 2), "own": watch.most()}
        began = time.perf_counter()
        view = engine.install("n", table.count(by="b"), order_by="b")
        engine.settle()
        yield said | {"phase": "index", "seconds": round(time.perf_counter() - began, 2), "own": watch.most()}
        keys = [key for part in parts(rows) for key in part[:: max(rows // epochs, 1), 1].tolist()]
        rng = np.random.default_rng(2)
        for state in ("warm", "cold"):
            if state == "cold":
                page_out(engine)
            changes, lookups = Laps(), Laps()
            for number in range(epochs):
                row = rng.integers(0, 2**40, (1, 3))
                with changes.lap():
                    table.insert(row)
                with lookups.lap():
                    view.lookup(keys[number % len(keys)])
            yield said | {"phase": f"epoch of one row, {state}", "own": watch.most()} | changes.figures(epochs)
            yield said | {"phase": f"look-up, {state}"} | lookups.figures(epochs)


def parts(rows: int) -> Iterator[np.ndarray[Any, Any]]:
    """The rows of the table, some at a time."""
    rng = np.random.default_rng(1)
    for start in range(0, rows, PART):
        yield rng.integers(0, 2**40, (min(PART, rows - start), 3))


class OwnMemory:
    """The most memory of its own that this process has had, in MiB, since the last time that somebody asked."""

    def __init__(self) -> None:
        gc.collect()
        self._before = own_memory()
        self._most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self._most = max(self._most, own_memory())
            time.sleep(0.01)

    def most(self) -> int:
        """The most since the last call."""
        most, self._most = self._most, 0
        return max(most - self._before, 0) >> 20


def own_memory() -> int:
    """Bytes of memory that are not pages of files."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def page_out(engine: tk.Engine) -> None:
    """Have the pages of all mapped batches on the disk alone."""
    os.sync()
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for trace in core_of(engine).traces():
        for shard in range(trace.shards):
            for batch in trace.version(shard).batches:
                for at, step in zip(batch.head[3::3].tolist(), batch.head[4::3].tolist(), strict=True):
                    if step and batch.n * step >= 1 << 20:
                        start = at // mmap.PAGESIZE * mmap.PAGESIZE
                        advise(start, at + batch.n * step - start, _MADV_PAGEOUT)
