"""Flame graphs as SVG: each path is a pile of boxes, as wide as what it took. A box shows its name and its share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, ROW, MARGIN = 1200, 20, 10
COLOURS = ("#e4572e", "#f3a712", "#76b041", "#17bebb", "#2e86ab", "#a23b72")
LETTER = 6.5
"""About how wide a letter of the labels is."""


def flame_graph(stacks: Sequence[tuple[tuple[str, ...], int]]) -> str:
    """The picture of some paths with their microseconds. Paths that begin alike share boxes.

    >>> flame_graph([(("totals", "join"), 30), (("totals", "count"), 10)]).count("<rect")
    5
    """
    total = sum(amount for _, amount in stacks)
    depth = max((len(path) for path, _ in stacks), default=0)
    height = 2 * MARGIN + ROW * (depth + 1)
    boxes: list[str] = []
    _draw(boxes, "all", stacks, 0, MARGIN, WIDTH - 2 * MARGIN, height - MARGIN - ROW, max(total, 1))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>{"".join(boxes)}</svg>\n'
    )


def _draw(
    boxes: list[str], name: str, stacks: Sequence[tuple[tuple[str, ...], int]], level: int, left: float, width: float,
    top: float, total: int,
) -> None:  # fmt: skip
    """A box, and above it those of the paths that go through it."""
    amount = sum(each for _, each in stacks)
    about = f"{name}: {amount / 1e3:,.3f} ms, {100 * amount / total:.1f}%"
    shown = name if len(name) * LETTER < width - 4 else name[: max(int((width - 4) / LETTER) - 1, 0)]
    boxes.append(
        f'<g><title>{escape(about)}</title><rect x="{left:.1f}" y="{top}" width="{max(width, 0.5):.1f}" height="{ROW - 1}" '
        f'fill="{COLOURS[sum(name.encode()) % len(COLOURS)]}" fill-opacity="0.75" rx="2"/>'
        f'<text x="{left + 3:.1f}" y="{top + 14}">{escape(shown)}</text></g>'
    )
    begun: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for path, each in stacks:
        if len(path) > level:
            begun.setdefault(path[level], []).append((path, each))
    for inner, paths in begun.items():
        share = width * sum(each for _, each in paths) / max(amount, 1)
        _draw(boxes, inner, paths, level + 1, left, share, top - ROW, total)
        left += share
