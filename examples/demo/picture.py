"""The picture: first answers, changes, memory and the cost of each query, over the number of queries, as four panels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.tpch.sides import NOT_SHARED, SHARED
from examples.demo.record import MIB, Record, Step, ratio
from examples.demo.sides import ENGINES, SIDES, SPARK

COLORS = {SHARED: "#0072b2", NOT_SHARED: "#d55e00", SPARK: "#7a5195"}
CURRENT = "Time until all queries are current after a change (median)"
MARKS = {SHARED: "o", NOT_SHARED: "s", SPARK: "^"}


def draw(record: Record, path: Path) -> None:
    """Write the picture of a run to a file, whose ending says the format."""
    figure = Figure(figsize=(13, 9), layout="constrained")
    FigureCanvasAgg(figure)
    (first, current), (memory, each) = figure.subplots(2, 2)
    lines(first, record, lambda step, side: step.sides[side].first * 1000)
    first.set(title="Time to a first answer (median)", ylabel="milliseconds")
    current.set(title=CURRENT, ylabel="milliseconds")
    lines(current, record, lambda step, side: step.sides[side].current * 1000)
    lines(memory, record, lambda step, side: step.sides[side].resident / MIB, ENGINES, "process")
    lines(memory, record, lambda step, side: step.sides[side].indexed / MIB, ENGINES, "indexes", ":")
    memory.set(title="Memory", ylabel="MiB")
    lines(each, record, lambda step, side: step.each(side) * 1000)
    each.set(title="Cost of a change for each query", ylabel="milliseconds")
    for axes in (first, current, memory, each):
        dress(axes, record)
    what = record.settings
    figure.suptitle(
        f"Standing TPC-H queries at scale factor {what.scale:g}, {what.history:,} lineitems and {what.changes:,} more with each "
        f"change, through Spark\n{verdict(record)}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def verdict(record: Record) -> str:
    """What the run comes to, in one line."""
    if not record.steps:
        return "nothing was measured"
    last = record.steps[-1]
    ours, others = last.sides[SHARED], last.sides[NOT_SHARED]
    spark = last.sides[SPARK]
    more = "more than " if spark.is_more else ""
    return (
        f"With {last.queries} queries, not sharing takes {ratio(ours.current, others.current)} the time and "
        f"{ratio(ours.resident, others.resident)} the memory; Spark SQL takes {more}{ratio(ours.current, spark.current)} the time"
    )


def lines(
    axes: Any,
    record: Record,
    value: Callable[[Step, str], float],
    sides: tuple[str, ...] = SIDES,
    what: str = "",
    style: str = "-",
) -> None:
    """A line for each side over the number of queries, with a label at its end."""
    for side in sides:
        found = [(step.queries, value(step, side)) for step in record.steps]
        found = [(queries, measured) for queries, measured in found if measured == measured and measured > 0]
        label = f"{side}: {what}" if what else side
        axes.plot(*zip(*found, strict=True) if found else ([], []), style, marker=MARKS[side], color=COLORS[side],
                  label=label, linewidth=2)  # fmt: skip
        if found:
            is_more = not what and axes.get_title() == CURRENT and record.steps[-1].sides[side].is_more
            said = f"{found[-1][1]:,.3g}" if found[-1][1] < 1000 else f"{found[-1][1]:,.0f}"
            axes.annotate(f"> {said}" if is_more else said, found[-1], xytext=(6, -7 if style == ":" else 4 if what else 0),
                          textcoords="offset points", color=COLORS[side], va="center")  # fmt: skip


def dress(axes: Any, record: Record) -> None:
    """Axes, grid and legend."""
    numbers = [step.queries for step in record.steps] or [1]
    axes.set(xscale="log", yscale="log", xlabel="queries")
    axes.set_xlim(0.9, max(numbers) * 2.4)
    axes.set_xticks(numbers)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(alpha=0.3, which="both")
    axes.legend(loc="best", framealpha=0.9)
