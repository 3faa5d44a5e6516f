"""What a changed row of a large partition costs window functions: over frames that move, shifts, ranks and running totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.measure import Laps

NAME = "windows"
DESCRIPTION = "one row inserted into a partition of n rows, in its middle or at its end, for several window functions"

CALLS = {
    "sum, 10 rows before": ("sum(x)", "ROWS 10 PRECEDING", 0.5),
    "sum, a range before": ("sum(x)", "RANGE 100 PRECEDING", 0.5),
    "max, 3 groups around": ("max(x)", "GROUPS BETWEEN 3 PRECEDING AND 3 FOLLOWING", 0.5),
    "lag": ("lag(x)", "", 0.5),
    "running sum, at the end": ("sum(x)", "", 1.0),
    "row_number, at the end": ("row_number()", "", 1.0),
    "row_number, in the middle": ("row_number()", "", 0.5),
}
"""A function, its frame, and the share of the partition that lies before the changes."""


def run(n: int = 500_000, changes: int = 20) -> Iterator[dict[str, Any]]:
    """A record for each function: epochs of one inserted row, until the view is current."""
    for name, (function, frame, share) in CALLS.items():
        with tk.Engine() as engine:
            table = engine.create_table("t", {"g": tk.Int, "o": tk.Int, "x": tk.Int})
            draw = np.random.default_rng(1)
            table.insert({"g": np.zeros(n, np.int64), "o": 2 * np.arange(n), "x": draw.integers(0, 1000, n)})
            over = f"{function} OVER (PARTITION BY g ORDER BY o {frame})"
            view = engine.create_view("v", f"SELECT g, o, x, {over} AS y FROM t")
            engine.finish(view)
            laps = Laps()
            for change in range(changes):
                with laps.lap():
                    table.insert([(0, int(2 * n * share) + 2 * change + 1, 7)])
                    engine.finish(view)
            yield {"function": name, "rows": n} | laps.figures(changes)
