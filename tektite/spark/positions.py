"""Positions: how far an input has read its sources, committed together with what was read.

A record is a small JSON object under the input's name in the storage's manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet

if TYPE_CHECKING:
    from tektite.engine.table import Table


@dataclass(frozen=True)
class ReadPositions:
    """The positions up to which a table has read its external sources.

    `once` names loads that have happened. All rows up to `position` of `column` (as a word) have been loaded. `query` and
    `batch` are the followed stream and its last micro-batch that counts.
    """

    once: tuple[str, ...] = ()
    column: str | None = None
    position: int | None = None
    query: str | None = None
    batch: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The record in the form of the manifest."""
        plain = {"once": list(self.once), "column": self.column, "position": self.position}
        plain |= {"query": self.query, "batch": self.batch}
        return {key: value for key, value in plain.items() if value not in (None, [])}

    @staticmethod
    def from_json(plain: dict[str, Any]) -> ReadPositions:
        """The inverse of `to_json`."""
        return ReadPositions(
            tuple(plain.get("once", ())), plain.get("column"), plain.get("position"), plain.get("query"), plain.get("batch")
        )  # fmt: skip


_IN_MEMORY: WeakKeyDictionary[Table, ReadPositions] = WeakKeyDictionary()
"""Records of inputs whose engines have no storage; they end with the engines."""


def recorded(source: Table) -> ReadPositions:
    """The record of an input."""
    if core_of(source.engine).store is None:
        return _IN_MEMORY.get(source, ReadPositions())
    return ReadPositions.from_json(source.engine.positions.get(source.name, {}))


def commit(source: Table, record: ReadPositions, writes: WriteSet) -> None:
    """Close the open epoch with a write set, and set the input's record to `record`."""
    core = core_of(source.engine)
    if core.store is not None:
        core.commit(writes, positions={source.name: record.to_json()})
    else:
        core.commit(writes)
        _IN_MEMORY[source] = record
