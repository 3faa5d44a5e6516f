"""Lines as users of Polars, pandas, ibis, Spark and DuckDB type them, in `tests/support/typed/`: one a line, by library.

The tables of Tektite stand where the data frames of the library stand: `df` and `t` are sales, and `tk` is the library's module.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk

FOLDER = Path(__file__).parent / "typed"
LIBRARIES = ("polars", "pandas", "ibis", "spark")


def lines(library: str) -> Iterator[str]:
    """The lines of a library."""
    yield from (line for line in (FOLDER / f"{library}.txt").read_text().splitlines() if line)


class Deferred:
    """ibis' `_`: a column under each name."""

    def __getattr__(self, name: str) -> Any:
        return tk.count if name == "count" else tk.col(name)


class Missing:
    """A module of the library that tektite has no module for: its names are asked of tektite."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(tk, self._name), name)


def names(engine: tk.Engine) -> dict[str, Any]:
    """What the lines mean by their names."""
    sales, shops = engine.table("sales"), engine.table("shops")
    modules = dict.fromkeys(("pl", "pd", "ibis", "F", "tk"), tk)
    return modules | {
        "df": sales, "t": sales, "shops": shops, "con": engine, "spark": engine, "engine": engine, "_": Deferred(), "col": tk.col,
        "np": np, "math": math, "date": datetime.date, "datetime": datetime.datetime, "timedelta": datetime.timedelta,
        "Window": Missing("Window"), "cs": Missing("selectors"),
    }  # fmt: skip
