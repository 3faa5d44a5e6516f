"""Tables as text, for terminals."""

from __future__ import annotations

import pyarrow as pa

from tektite.values.python_values import python_list

SHOWN_ROWS = 40
"""Rows that a printed table shows."""


def show_table(table: pa.Table) -> str:
    """A table as text, columns aligned."""
    shown = table.slice(0, SHOWN_ROWS)
    cells = [[name, *("NULL" if v is None else str(v) for v in python_list(column))]
             for name, column in zip(table.column_names, shown.columns, strict=True)]  # fmt: skip
    widths = [max(map(len, column)) for column in cells]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in zip(*cells, strict=True)]  # fmt: skip
    lines.insert(1, "-+-".join("-" * width for width in widths))
    more = f", {SHOWN_ROWS} shown" if table.num_rows > SHOWN_ROWS else ""
    return "\n".join([*lines, f"({table.num_rows} row{'s' * (table.num_rows != 1)}{more})"])
