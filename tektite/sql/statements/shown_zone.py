"""Moments of a result, told by the clocks of the session's time zone."""

from __future__ import annotations

import pyarrow as pa


def in_zone(table: pa.Table, zone: str) -> pa.Table:
    """A table whose moments are shown in a zone: they are the same, and so are all other values."""
    if zone == "UTC":
        return table
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            shown = pa.timestamp("us", zone)
            table = table.set_column(at, field.with_type(shown), table.column(at).cast(shown))
    return table
