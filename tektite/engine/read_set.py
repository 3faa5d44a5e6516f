"""ReadSet: what a transaction has read, so that its commit can find out whether all of it would still be read.

A transaction that writes counts as of its commit. It is serialisable if every query that it ran would give the same answer
there. Queries whose sources have not changed since need no look. The others are computed again: what counts is the answer, so
that a change of rows that the query does not speak of is no conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.collect import drop_if_there
from tektite.engine.input_core import InputCore
from tektite.engine.view_core import ViewCore
from tektite.plan import algebra as plan
from tektite.plan.walk import walk

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.query.collection import Collection


class ReadSet:
    """Queries and their answers."""

    def __init__(self) -> None:
        self._reads: list[tuple[Collection, pa.Table]] = []

    def add(self, collection: Collection, answer: pa.Table) -> None:
        """A query was answered."""
        self._reads.append((collection, answer))

    def changed(self, core: EngineCore, since: int) -> str | None:
        """The table whose changes behind the change number `since` have changed an answer; None if every answer is as it was. The
        caller holds the lock, and nobody else gets a turn.
        """
        for collection, answer in self._reads:
            tables = tables_of(collection.operator)
            # The time passes with every epoch, and a transaction's own stands still.
            moved = [table.name for table in tables if table.change_number > since and not table.name.startswith("__")]
            if not moved:
                continue
            name = core.hidden_name("read_again")
            try:
                try:
                    (view,) = core.install_together({name: collection})
                    again = view.snapshot()
                finally:
                    drop_if_there(core, name)
            finally:  # an interrupt may have ended the first attempt
                drop_if_there(core, name)
            if not same_rows(answer, again):
                return moved[0]
        return None


def tables_of(operator: plan.Operator) -> set[InputCore]:
    """The tables that a query depends on, directly or by views."""
    found: set[InputCore] = set()
    seen: set[ViewCore] = set()
    waiting = [operator]
    while waiting:
        for part in walk([waiting.pop()]):
            if not isinstance(part, plan.Read):
                continue
            source = part.readable
            if isinstance(source, InputCore):
                found.add(source)
            elif isinstance(source, ViewCore) and source not in seen:
                seen.add(source)
                waiting.append(source.definition)
    return found


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of one schema have the same rows, in whatever order.

    >>> same_rows(pa.table({"x": [1.0, float("nan"), None]}), pa.table({"x": [None, 1.0, float("nan")]}))
    True
    >>> same_rows(pa.table({"x": [1, 1, 2]}), pa.table({"x": [1, 2, 2]}))
    False
    """
    if one.num_rows != other.num_rows or not one.num_columns:
        return one.num_rows == other.num_rows
    if one.equals(other):
        return True
    ours, theirs = (_sorted(table) for table in (one, other))
    return bool(ours.equals(theirs))


def _sorted(table: pa.Table) -> pa.Table:
    """The rows in one order. NaN equals nothing, so that floats are compared as texts."""
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.string()))
    named = table.rename_columns([str(at) for at in range(table.num_columns)])
    return named.sort_by([(name, "ascending") for name in named.column_names])
