"""Calls Python functions with the changes of a collection."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Buffer, consolidate
from tektite.dataflow.graph import Moment, Scope
from tektite.dataflow.linear import function_name
from tektite.dataflow.node import Node
from tektite.trace.chunk import Chunk
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema


LOG = logging.getLogger("tektite")


class InspectNode(Node):
    """Calls a Python function with the consolidated changes of each moment, as a table with time and diff columns. A function
    that raises is not called again.
    """

    engine_only = True

    def __init__(
        self, scope: Scope, shards: int, schema: Schema, function: Callable[..., Any], dictionary: Dictionary
    ) -> None:
        super().__init__(scope, shards, "inspect")
        self.schema = schema
        self.function: Callable[..., Any] | None = function
        self.dictionary = dictionary
        self.buffer = Buffer(self, len(schema.names), shards=1)

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        self.buffer.add(0, chunk, moment)
        self.scope.schedule(self.position, moment)

    def run(self, moment: Moment) -> None:
        waiting = self.buffer.take(moment)
        if waiting is None:
            return
        changes = consolidate(waiting[0], self.buffer.shape, self.flow.reached)
        if not changes.n or self.function is None:
            return
        self.flow.call_out(lambda: self._call(changes))

    def _call(self, changes: Chunk) -> None:
        assert self.function is not None
        try:
            self.function(changes_table(changes.to_array(), self.schema, self.dictionary))
        except Exception:
            LOG.exception(
                "view %r: inspect: %s raised; it is not called again", self.flow.name, function_name(self.function)
            )
            self.function = None

    def ship(self) -> dict[str, Any]:
        return super().ship() | {"function": None, "dictionary": None}


def changes_table(words: Words, schema: Schema, dictionary: Dictionary) -> pa.Table:
    """Updates as a table: the data columns, then `time` (and rounds, inside a loop), then `diff`."""
    data = len(schema.names)
    table = schema.decode(np.ascontiguousarray(words[:data]), dictionary)
    rounds = len(words) - data - 2
    names = ("time", *("round" if i == 0 else f"round_{i + 1}" for i in range(rounds)), "diff")
    if not data:
        table = pa.table({name: words[i] for i, name in enumerate(names)})
        return table
    for i, name in enumerate(names):
        unique = name if name not in schema.names else f"{name}_"
        table = table.append_column(unique, pa.array(words[data + i]))
    return table
