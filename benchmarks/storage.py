"""What durability costs: epochs to visible and to durable beside the same without a storage, and the time a restart takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tektite as tk
from benchmarks.measure import Laps, Others, memory
from benchmarks.plots import Record, draw_bars, figure, short

NAME = "storage"
DESCRIPTION = "epochs of B updates on N rows, to visible and to durable, and the restart of an engine with R rows"


def run(
    N: int = 1_000_000,
    B: Sequence[int] = (1, 1_000, 100_000),
    R: Sequence[int] = (1_000_000, 10_000_000),
    epochs: int = 200,
    folder: str = "",
) -> Iterator[dict[str, Any]]:
    """Records by `phase`: `floor` is a bare durable write of two small files; `visible`, `durable` and `without` are the
    same epochs, measured in turns; in `grouped` epochs do not wait until those before are durable; `restart` is until
    the view has its answer again.
    """
    with tempfile.TemporaryDirectory(dir=folder or None) as place:
        yield {"phase": "floor"} | floor(Path(place), epochs).figures()
        stored, plain = Counted(Path(place) / "epochs"), Counted(None)
        for computation in (stored, plain):
            computation.load(N)
        for size in B:
            visible, durable, without, others = Laps(), Laps(), Laps(), Others()
            rng = np.random.default_rng(size)
            for _ in range(max(epochs * 1_000 // (1_000 + size), 10)):
                rows = rng.integers(0, N, (size, 2))
                with durable.lap():
                    with visible.lap():
                        stored.epoch(rows)
                    stored.engine.sync()
                with without.lap():
                    plain.epoch(rows)
            for phase, laps in (("visible", visible), ("durable", durable), ("without", without)):
                yield {"phase": phase, "B": size, "N": N} | laps.figures(size * len(laps.seconds)) | others.figures()
            count = max(epochs * 10_000 // (1_000 + size), 10)
            together, others = Laps(), Others()
            some = [rng.integers(0, N, (size, 2)) for _ in range(count)]
            with together.lap():
                for rows in some:
                    stored.epoch(rows)
                stored.engine.sync()
            for rows in some:
                plain.epoch(rows)
            yield (
                {"phase": "grouped", "B": size, "N": N, "epochs": count}
                | together.total(size * count)
                | others.figures()
            )
        if stored.answer() != plain.answer():
            raise AssertionError("the counts with and without a storage differ")
        stored.close()
        plain.close()
        for size in R:
            yield from restart(Path(place) / f"restart {size}", size)


def restart(path: Path, rows: int) -> Iterator[dict[str, Any]]:
    """Records of a bulk load to durable, and of an engine that begins with its result."""
    computation = Counted(path)
    load, laps, others = Laps(), Laps(), Others()
    with load.lap():
        computation.load(rows)
        computation.engine.sync()
    yield {"phase": "load", "R": rows} | load.total(rows) | others.figures()
    computation.close()
    others = Others()
    with laps.lap():
        again = Counted(path, view=False)
    opened = laps.seconds[0]
    with laps.lap():
        again.install()
    if again.total() != rows:
        raise AssertionError(f"{again.total()} rows were found again, not {rows}")
    again.close()
    stored = sum(file.stat().st_size for file in (path / "batches").iterdir()) / (1 << 20)
    figures = {"opened_s": opened, "stored_mib": stored} | laps.total(rows) | memory() | others.figures()
    yield {"phase": "restart", "R": rows} | figures


class Counted:
    """Pairs and the count per key of the first, with or without a storage."""

    def __init__(self, path: Path | None, view: bool = True) -> None:
        self.engine = tk.Engine(storage=path, autocommit=False)
        self.pairs = self.engine.create_table("pairs", {"key": tk.Int, "value": tk.Int}, checked=False)
        if view:
            self.install()

    def install(self) -> None:
        self.view = self.engine.install("counts", self.pairs.count(by="key"))

    def load(self, rows: int) -> None:
        rng = np.random.default_rng(0)
        self.epoch(rng.integers(0, rows, (rows, 2)))

    def epoch(self, rows: np.ndarray[Any, Any]) -> None:
        self.pairs.insert(rows)
        self.engine.advance()
        self.engine.settle()

    def answer(self) -> pa.Table:
        """All counts, in order."""
        return self.view.snapshot().sort_by("key")

    def total(self) -> int:
        """How many rows were counted."""
        return int(pc.sum(self.view.snapshot()["count"]).as_py())

    def close(self) -> None:
        self.engine.close()


def floor(place: Path, times: int) -> Laps:
    """What the system takes for what a commit cannot do without: two small files, synced, under names that are synced."""
    laps = Laps()
    folder = os.open(place, os.O_RDONLY)
    for n in range(times):
        with laps.lap():
            for kind in ("rows", "version"):
                temporary, target = place / ".writing", place / f"{kind} {n}"
                with temporary.open("wb") as file:
                    file.write(b"x" * 500)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.rename(target)
                os.fsync(folder)
    os.close(folder)
    return laps


def plot(records: list[Record], path: Path) -> None:
    """Medians of epochs, and restarts."""
    sizes = sorted({record["B"] for record in records if "B" in record})
    phases = {
        phase: [
            next(r["p50_us"] / 1000 for r in records if r["phase"] == phase and r.get("B") == size) for size in sizes
        ]
        for phase in ("without", "visible", "durable")
    }
    restarts = [record for record in records if record["phase"] == "restart"]
    with figure(path, 2, "storage: epochs and restarts, one worker") as (left, right):
        draw_bars(left, [short(size) for size in sizes], phases, "median milliseconds an epoch")
        left.set_xlabel("updates an epoch")
        draw_bars(right, [short(r["R"]) for r in restarts], {"seconds": [r["seconds"] for r in restarts]}, "seconds")
        right.set_xlabel("rows of the engine that restarts")
