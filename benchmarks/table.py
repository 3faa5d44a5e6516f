"""A plain-text table that is printed row by row, while its rows are still being measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Room for the numbers of later rows, which are not known when the header is printed.
LEAST = 10


class Table:
    """Prints a header whenever the columns change, and each row at once."""

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}

    def show(self, row: Mapping[str, Any]) -> None:
        """Print one row.

        >>> table = Table()
        >>> table.show({"size": 10, "seconds": 0.25})
              size     seconds
                10        0.25
        >>> table.show({"size": 1_000, "seconds": 12.0})
             1,000          12
        """
        cells = {name: text(value) for name, value in row.items()}
        if list(cells) != list(self._widths):
            self._widths = {name: max(len(name), len(cell), LEAST) for name, cell in cells.items()}
            print("  ".join(name.rjust(width) for name, width in self._widths.items()))
        print("  ".join(cells[name].rjust(width) for name, width in self._widths.items()), flush=True)


def text(value: Any) -> str:
    """A value at the precision that is worth reading: three figures behind small numbers, none behind large ones."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
