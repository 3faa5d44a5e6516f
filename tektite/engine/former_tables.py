"""Former names of options, for as long as docs/compatibility.md promises them: what they are called today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tektite.errors import IncorrectError
from tektite.values.types import Type

SEMANTICS = ("bag", "set", "upsert")
TABLE_OPTIONS = ("key", "semantics", "stream", "unique", "append", "shard")
"""Options of tables that `table_options` translates."""


def table_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `create_table` for former ones, which are the names in TABLE_OPTIONS; other options stay.

    >>> table_options("t", {"key": ["k"], "semantics": "set", "checked": False})
    {'checked': False, 'mode': 'set', 'order_by': ['k']}
    >>> table_options("t", {"key": "k", "semantics": "upsert", "shard": "k"})
    {'mode': 'upsert', 'primary_key': 'k', 'shard_by': 'k'}
    """
    found = {option: value for option, value in given.items() if option not in TABLE_OPTIONS}
    key, semantics = given.get("key", ()), given.get("semantics", "bag")
    stream, append, unique = (given.get(option, False) for option in ("stream", "append", "unique"))
    if semantics not in SEMANTICS:
        raise IncorrectError(f"table {name!r}: semantics is one of {', '.join(SEMANTICS)}, not {semantics!r}")
    modes = [
        mode for mode, chosen in (("stream", stream), ("append", append), (semantics, semantics != "bag")) if chosen
    ]
    if len(modes) > 1:
        raise IncorrectError(f"table {name!r} is one of {', '.join(modes)}, not several: give mode=")
    if modes:
        found["mode"] = modes[0]
    if unique and not key:
        raise IncorrectError(f"table {name!r}: unique is said of a key, such as primary_key=['id']")
    if key:
        found["primary_key" if unique or semantics == "upsert" else "order_by"] = key
    if given.get("shard"):
        found["shard_by"] = given["shard"]
    return found


def keyword_schema(name: str, schema: Any, columns: Mapping[str, Any], options: Sequence[object]) -> Any:
    """The columns of a table, which were once keywords: `src=tk.Int` beside `{"src": tk.Int}`."""
    if any(isinstance(option, Type) for option in options):
        raise IncorrectError(f"table {name!r}: a column has the name of an option; pass columns in a dict")
    if (schema is None) == (not columns):
        raise IncorrectError(f"table {name!r} needs columns, such as {{'src': int, 'dst': int}}")
    return columns if schema is None else schema
