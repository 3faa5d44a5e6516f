"""WriteSet: what one session has written and not committed, by input.

Promise: nobody sees any of it before `EngineCore.commit` takes it, and no commit of another write set takes any of it along.
An update without a time of its own counts in the epoch that its commit closes, whichever that is by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.engine.pending_updates import PendingUpdates

if TYPE_CHECKING:
    from tektite.engine.epochs import AdoptedRows
    from tektite.engine.input_core import InputCore


class WriteSet:
    """Updates of some inputs that belong together."""

    __slots__ = ("adopted", "updates")

    def __init__(self) -> None:
        self.updates: dict[InputCore, PendingUpdates] = {}
        self.adopted: dict[InputCore, AdoptedRows] = {}
        """Rows that others have sorted, sharded and stored."""

    def of(self, source: InputCore) -> PendingUpdates:
        """The updates of one input, to add to."""
        found = self.updates.get(source)
        if found is None:
            found = self.updates[source] = PendingUpdates(source.update_shape, memory=source.engine.memory)
        return found

    def rows(self, source: InputCore) -> int:
        """The number of updates of an input."""
        found = self.updates.get(source)
        return 0 if found is None else found.rows

    def forget(self, source: InputCore) -> None:
        """Drop everything that was written to one input."""
        self.updates.pop(source, None)
        self.adopted.pop(source, None)
