"""How much code three small calls pass through: the modules that run, and how often one of them calls into another.

The figures do not depend on the machine. They tell a reader how far apart the pieces lie that work together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import tektite as tk

NAME = "walks"
DESCRIPTION = (
    "modules, and switches between them, of one row through join and count, of CREATE MATERIALIZED VIEW and of INSERT"
)

VIEW = "CREATE MATERIALIZED VIEW {} AS SELECT a.x, b.y + {} AS z FROM a JOIN b ON a.k = b.k"


def run() -> Iterator[dict[str, Any]]:
    """A record for each call. Each was made before, so that nothing is loaded or compiled for it."""
    yield {"call": "advance: one row through join and count"} | traced(advance_by_a_row())
    engine = tk.Engine()
    engine.sql("CREATE TABLE a (k int, x int); CREATE TABLE b (k int, y int); INSERT INTO a VALUES (1, 2)")
    engine.sql(VIEW.format("before", 1))
    yield {"call": "CREATE MATERIALIZED VIEW of a join of two"} | traced(lambda: engine.sql(VIEW.format("after", 2)))
    yield {"call": "INSERT ... VALUES"} | traced(lambda: engine.sql("INSERT INTO b VALUES (3, 4)"))
    engine.close()


def advance_by_a_row() -> Callable[[], object]:
    """Closing an epoch in which one row goes through a join and changes a count."""
    engine = tk.Engine(autocommit=False)
    left = engine.create_table("left", {"k": tk.Int, "x": tk.Int})
    right = engine.create_table("right", {"k": tk.Int, "y": tk.Int})
    engine.install("counts", left.join(right, on="k").count(by="y"))
    right.insert([(1, 2)])
    for number in range(3):
        left.insert([(1, number)])
        engine.advance()
    left.insert([(1, 3)])
    return engine.advance


def traced(call: Callable[[], object]) -> dict[str, Any]:
    """The modules of the package that a call runs, and how often control goes from one to another."""
    modules: set[str] = set()
    switches, last = 0, ""

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal switches, last
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("tektite"):
            modules.add(name)
            switches += name != last
            last = name

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"modules": len(modules), "switches": switches}
