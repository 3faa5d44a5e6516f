"""How benchmarks draw: complementary distributions of latencies as in the papers, and bars beside other systems'.

Matplotlib is imported when something is drawn, so that its memory does not count for what is measured before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.anchors import beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]

ANCHOR = "differential-dataflow 0.23"


@contextmanager
def figure(path: Path, axes: int, title: str, size: tuple[float, float] | None = None) -> Iterator[Sequence[Axes]]:
    """Some axes side by side, saved to `path` at the end; `size` is the whole drawing's, in inches."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, places = pyplot.subplots(1, axes, figsize=size or (7.6 * axes, 4.8), squeeze=False)
    yield list(places[0])
    drawing.suptitle(title)
    drawing.tight_layout()
    drawing.savefig(path, dpi=110)
    pyplot.close(drawing)


def draw_ccdf(
    axes: Axes, records: Sequence[Record], label: Callable[[Record], str], what: str, anchors: bool = False
) -> None:
    """A line for each record that has a distribution; with `anchors`, crosses at the anchor's p50 and p99."""
    for number, record in enumerate(r for r in records if "ccdf" in r):
        times = [microseconds / 1e3 for microseconds, _ in record["ccdf"]]
        shares = [share for _, share in record["ccdf"]]
        axes.step(times, shares, where="post", color=f"C{number}", label=label(record), linewidth=1.5)
        other = beside(record).get(ANCHOR, {}) if anchors else {}
        known = [(other[name] / 1e3, share) for name, share in (("p50_us", 0.5), ("p99_us", 0.01)) if name in other]
        if known:
            axes.plot(*zip(*known, strict=True), color=f"C{number}", linestyle=":", marker="x", markersize=7)
    if anchors:
        axes.plot([], [], color="grey", linestyle=":", marker="x", label=f"{ANCHOR},\np50 and p99")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("latency (ms)")
    axes.set_ylabel(f"share of {what} that took at least as long")
    axes.grid(True, which="major", alpha=0.3)
    # Beside the axes: the lines leave no corner free.
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def draw_bars(
    axes: Axes, names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str, log: bool = True
) -> None:
    """Groups of bars with their numbers: one group a name, one bar a series; what is None is left out."""
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        places = [i + (number - (len(series) - 1) / 2) * width for i, value in enumerate(values) if value is not None]
        heights = [value for value in values if value is not None]
        if heights:
            bars = axes.bar(places, heights, width, label=label, color=f"C{number}")
            axes.bar_label(bars, labels=[short(height) for height in heights], fontsize=7)
    axes.set_xticks(range(len(names)), list(names))
    if log:
        axes.set_yscale("log")
    axes.set_ylabel(unit)
    axes.margins(y=0.15)
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend(fontsize=8)


def plural(count: int, thing: str = "worker") -> str:
    """A number of things.

    >>> plural(1), plural(2), plural(1_000, "key")
    ('1 worker', '2 workers', '1k keys')
    """
    return f"{short(count)} {thing}{'' if count == 1 else 's'}"


def short(number: float) -> str:
    """A number in three figures or so.

    >>> [short(n) for n in (0.0123, 4.56, 78.9, 256, 1_000, 16_384, 250_000, 10_000_000)]
    ['0.0123', '4.56', '78.9', '256', '1k', '16.4k', '250k', '10M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
