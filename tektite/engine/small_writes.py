"""Writing a few rows to a bag by one call of C: tuples of integers, floats and truth values, or NumPy arrays of integers.

`write_few` does what `EngineCore.write` and `InputCore.write` or `update` would. It knows tables whose declaration refuses no
such row, apart from NULL in a column that has to have a value, and it takes a call only if there is nothing to refuse; see
native/writes.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tektite.engine.pending_updates import PendingUpdates
from tektite.engine.write_set import WriteSet
from tektite.kernels.ready import calls
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore

_KINDS = {"int": "i", "float": "f", "bool": "b"}
_MOST_COLUMNS = 100


def few_columns(source: InputCore, required: tuple[int, ...]) -> bytes | None:
    """The columns of an input in the form that `write_few` takes: two bytes for each column as it is stored, its place in a
    row, and its kind, in capitals if it is `required`. None if every write goes the general way.
    """
    declared, types = source.declared, source.schema.types
    if source.semantics != "bag" or source.told_apart or declared.append or declared.checks:
        return None
    if not 0 < len(types) < _MOST_COLUMNS or any([type.kind not in _KINDS for type in types]):
        return None
    kinds = [_KINDS[type.kind] for type in types]
    return b"".join([bytes([at, ord(kinds[at].upper() if at in required else kinds[at])]) for at in source.columns])


write_few: Callable[[InputCore, Any, Any, int], int | None] = calls().writer(Chunk, PendingUpdates((0, 0, 0)), WriteSet)
"""Writes rows to an input for the calling session: each with its own of some diffs, or, where these are None, all with one. What
`Table.update` returns; NotImplemented, and nothing has happened, where this is not for C.
"""
