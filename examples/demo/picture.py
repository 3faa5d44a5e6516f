"""The picture: installation, updates and memory with sharing and without, as three panels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.tpch.sides import NOT_SHARED, SHARED
from examples.demo.record import MIB, Record
from examples.demo.sides import SIDES

COLORS = {SHARED: "#0072b2", NOT_SHARED: "#d55e00"}


def draw(record: Record, path: Path) -> None:
    """Write the picture of a run to a file, whose ending says the format."""
    figure = Figure(figsize=(15, 5), layout="constrained")
    FigureCanvasAgg(figure)
    install, update, memory = figure.subplots(1, 3)
    draw_installs(install, record)
    draw_updates(update, record)
    draw_memory(memory, record)
    what = record.settings
    figure.suptitle(
        f"Tektite on Spark: {len(record.sides[SHARED].installs)} TPC-H queries arrive and leave at scale factor "
        f"{what.scale:g}, while lineitem streams in: {record.epoch:,} epochs of {what.changes:,} rows"
    )
    for axis in (install.xaxis, update.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    update.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1%}" if value < 0.01 else f"{value:.0%}"))
    install.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    for axes in (install, update, memory):
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left" if axes is not update else "lower left", framealpha=0.9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def draw_installs(axes: Any, record: Record) -> None:
    """For each duration, the share of queries that had their first answer by then."""
    for side in SIDES:
        values = np.sort(record.sides[side].installs) * 1000
        shares = np.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values, shares, where="post", color=COLORS[side], label=side, linewidth=2)
    axes.set(xscale="log", ylim=(0, 1.02), title="Installation: until the first complete answer",
             xlabel="milliseconds", ylabel="share of queries answered")  # fmt: skip


def draw_updates(axes: Any, record: Record) -> None:
    """For each duration, the share of epochs that took at least as long: from their arrival, and the work alone."""
    for side in SIDES:
        found = record.sides[side]
        for values, text, style in ((found.latencies, "from arrival", "-"), (found.work, "work alone", ":")):
            shares = 1 - np.arange(len(values)) / max(len(values), 1)
            axes.step(np.sort(values) * 1000, shares, style, where="post", color=COLORS[side], label=f"{side}: {text}")
    through = np.sort(record.sides[SHARED].through) * 1000
    shares = 1 - np.arange(len(through)) / max(len(through), 1)
    axes.step(through, shares, "--", where="post", color="gray", label="from file to durable epoch, through Spark")
    least = 1 / (6 * max(len(through), 1))  # the legend goes below the lines
    axes.set(xscale="log", yscale="log", ylim=(least, 1.1), title="Updates: until every query has taken in an epoch",
             xlabel="milliseconds", ylabel="share of epochs that took at least as long")  # fmt: skip


def draw_memory(axes: Any, record: Record) -> None:
    """Memory over time: what the engine keeps indexed, and the whole process."""
    for side in SIDES:
        found = record.sides[side]
        axes.plot(found.times, np.array(found.indexed) / MIB, color=COLORS[side], label=f"{side}: indexed", linewidth=2)
        axes.plot(found.times, np.array(found.resident) / MIB, color=COLORS[side], linestyle=":",
                  label=f"{side}: whole process")  # fmt: skip
    axes.set(title="Memory", xlabel="seconds", ylabel="MiB")
    most = max((max(found.resident, default=0) for found in record.sides.values()), default=0)
    axes.set_ylim(0, 1.4 * most / MIB or 1)  # the legend goes above the lines
