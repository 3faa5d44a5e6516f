"""Positions: how far an input has read its sources, kept and committed together with what was read.

A record is a small JSON object by the input's name, so that it can lie in the storage's manifest as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from tektite.engine import Engine


@dataclass(frozen=True)
class Record:
    """What an input has taken in from outside.

    `once` names loads that have happened. All rows up to `position` of `column` (as a word) have been loaded. `query` and
    `batch` are the stream that is followed and the last micro-batch of it that counts.
    """

    once: tuple[str, ...] = ()
    column: str | None = None
    position: int | None = None
    query: str | None = None
    batch: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as it lies in a manifest."""
        plain = {"once": list(self.once), "column": self.column, "position": self.position}
        plain |= {"query": self.query, "batch": self.batch}
        return {key: value for key, value in plain.items() if value not in (None, [])}

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Record:
        """What `to_json` made of a record."""
        return Record(
            tuple(plain.get("once", ())), plain.get("column"), plain.get("position"), plain.get("query"), plain.get("batch")
        )  # fmt: skip


_IN_MEMORY: WeakKeyDictionary[Engine, dict[str, dict[str, Any]]] = WeakKeyDictionary()
"""The records of engines without a storage, which end with them."""


def recorded(engine: Engine, name: str) -> Record:
    """How far an input has come."""
    known = engine.positions if engine.store is not None else _IN_MEMORY.get(engine, {})
    return Record.from_json(known.get(name, {}))


def advance(engine: Engine, name: str, record: Record) -> None:
    """Close the open epoch, which brings an input to where `record` says."""
    plain = {name: record.to_json()}
    if engine.store is not None:
        engine.advance(positions=plain)
    else:
        engine.advance()
        _IN_MEMORY.setdefault(engine, {}).update(plain)
