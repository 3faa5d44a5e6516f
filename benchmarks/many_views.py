"""What thousands of small views cost: to install one, to close an epoch that touches ten of them, to drop one, and in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import psutil

import tektite as tk
from benchmarks.measure import Laps

NAME = "many_views"
DESCRIPTION = (
    "n views that filter, count or join by a constant: installing, epochs of ten rows, dropping, memory of each"
)

Made = Callable[[tk.Table, tk.Table, int], tk.Collection]
KINDS: dict[str, Made] = {
    "filter": lambda t, u, n: t.filter(tk.col("k") == n),
    "count": lambda t, u, n: t.filter(tk.col("k") == n).count(by="k"),
    "join": lambda t, u, n: t.filter(tk.col("k") == n).join(u, on="k"),
}


def run(kind: str = "filter", n: int = 10_000, epochs: int = 300, drops: int = 200) -> Iterator[dict[str, Any]]:
    """Records of installing, of epochs of ten rows in either table, and of dropping. One kind a run: memory that one kind has
    left would be taken by the next.
    """
    made = KINDS[kind]
    with tk.Engine(autocommit=False) as engine:
        t = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        u = engine.create_table("u", {"k": tk.Int, "w": tk.Int})
        t.insert([(k, k) for k in range(1000)])
        engine.advance()
        for number in range(50):  # what all of them share
            engine.install(f"first {number}", made(t, u, -number))
        yield {"phase": "install"} | installed(engine, lambda number: made(t, u, number), n)
        for phase, table in (("epoch", t), ("epoch of the other table", u)):
            laps = Laps()
            for epoch in range(epochs):
                table.insert([((10 * epoch + place) % n, -epoch) for place in range(10)])
                with laps.lap():
                    engine.advance()
            yield {"phase": phase} | laps.figures()
        laps = Laps()
        for number in range(min(drops, n)):
            with laps.lap():
                engine.drop_view(f"v{number}")
        yield {"phase": "drop"} | laps.figures()


def installed(engine: tk.Engine, made: Callable[[int], tk.Collection], n: int) -> dict[str, Any]:
    """The figures of installing n views, and the memory that each takes."""
    process = psutil.Process()
    gc.collect()
    before, laps = process.memory_info().rss, Laps()
    for number in range(n):
        with laps.lap():
            engine.install(f"v{number}", made(number))
    engine.advance()
    gc.collect()
    return laps.figures() | {"kib_a_view": (process.memory_info().rss - before) / n / 1024}
