"""How an input is declared, and what that demands of its rows. A change that breaks it is refused before its epoch counts.

Columns that may not be NULL and rows that may not go are checked as rows arrive; that no two rows have the same key, and that
nothing is removed that is not there, is known when an epoch closes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.kernels.upsert import first_negative, first_repeated
from tektite.schema import Schema
from tektite.storage.description import InputDescription
from tektite.trace.chunk import Chunk
from tektite.types import Type
from tektite.words import NULL, Words

if TYPE_CHECKING:
    from tektite.inputs import Input

SEMANTICS = ("bag", "set", "upsert")


LARGEST_TIME = 2**62


def check_time(time: object, where: str = "") -> None:
    """Refuse what is not an epoch."""
    if isinstance(time, bool) or not isinstance(time, int | np.integer):
        raise IncorrectError(f"{where}a time is an integer, not {time!r}")
    if not 0 <= time <= LARGEST_TIME:
        raise IncorrectError(f"{where}a time lies between 0 and {LARGEST_TIME}; found {time}")


def declare(
    name: str,
    schema: Schema | Mapping[str, Type] | None,
    columns: Mapping[str, Type],
    *,
    key: str | Sequence[str],
    semantics: str,
    stream: bool,
    checked: bool,
    unique: bool,
    required: Sequence[str],
    append: bool,
    shard: str | Sequence[str],
) -> InputDescription:
    """The declaration of an input from what `Engine.input` is given, or what is wrong with it."""
    if any(isinstance(option, Type) for option in (key, semantics, stream, checked, unique, required, append, shard)):
        raise IncorrectError(
            f"input {name!r}: key, semantics, stream, checked, unique, required, append and shard are options; pass "
            "columns of these names in a dict"
        )
    if semantics not in SEMANTICS:
        raise IncorrectError(f"input {name!r}: semantics is one of {', '.join(SEMANTICS)}, not {semantics!r}")
    if (schema is None) == (not columns):
        raise IncorrectError(f"input {name!r} needs columns, such as src=tk.Int, or a schema")
    found = schema if isinstance(schema, Schema) else Schema(schema if schema is not None else columns)
    keys = [found.names[found.index(k)] for k in ([key] if isinstance(key, str) else key)]
    needed = [found.names[found.index(column)] for column in required if column not in keys]
    shard = (shard,) if isinstance(shard, str) else tuple(shard)
    if shard != tuple(keys[: len(shard)]):
        raise IncorrectError(
            f"input {name!r}: the columns that decide a row's shard are the first ones of its key, "
            f"({', '.join(keys)}), not ({', '.join(map(str, shard))})"
        )
    if (semantics == "upsert" or unique) and not keys:
        what = "upsert semantics needs a key" if semantics == "upsert" else "unique is said of a key"
        raise IncorrectError(f"input {name!r}: {what}, such as key=['id']")
    if (stream or append) and semantics != "bag":
        reason = "a stream keeps no history" if stream else "append-only rows are never replaced"
        raise IncorrectError(f"input {name!r}: {reason}, so it cannot have {semantics} semantics")
    return InputDescription(
        found, tuple(keys), semantics, stream, checked, False, unique, tuple(needed), append, shard
    )  # fmt: skip


def check_rows(source: Input, words: Words, diffs: Words | int) -> None:
    """Refuse rows (columns x rows) that lack what they need, or that take away from what only grows."""
    declared = source.declared
    if not declared.append and not source.required:
        return
    gained = diffs > 0
    if declared.append and not np.all(gained):
        raise ConflictError(f"input {source.name!r} is append-only: rows cannot be changed or removed")
    for column in source.required:
        missing = words[column] == NULL
        if np.any(missing) and np.any(missing & gained):
            raise IncorrectError(
                f"column {source.schema.names[column]!r} of input {source.name!r} cannot be NULL, and "
                f"{int(np.count_nonzero(missing & gained))} of {words.shape[1]} rows have nothing else"
            )


def check_adopted(source: Input, shard: int, batch: Chunk, before: tuple[Chunk, ...]) -> None:
    """Refuse a batch that others have made of rows which nobody has looked at here."""
    if source.required or source.declared.append:
        words = batch.to_array()
        ordered = np.empty((len(source.columns), batch.n), np.int64)
        ordered[list(source.columns)] = words[: len(source.columns)]
        check_rows(source, ordered, words[-1])
    check_batch(source, shard, batch, before)


def check_batch(source: Input, shard: int, batch: Chunk, before: tuple[Chunk, ...] = ()) -> None:
    """Refuse a sorted batch that removes what is not there or repeats a key; `before` are others of the same epochs."""
    if not batch.n or not source.is_checked:
        return
    width = len(source.columns)
    grows = batch.is_constant(width + 1) and batch.constant(width + 1) > 0
    table = source.trace.version(shard).table
    if before:
        table = np.array([*table, *(chunk.at for chunk in before)], np.int64)
    if source.semantics == "bag" and not grows:
        row = first_negative(batch.at, width, table)
        if row >= 0:
            found, time = decoded(source, batch, row)
            raise IncorrectError(
                f"input {source.name!r}: at time {time} row {found} would be there a negative number of times: it is "
                "removed more often than it was inserted. Nothing was closed; insert it, or rollback() to forget all "
                "pending updates"
            )
    if source.declared.unique and source.semantics != "upsert":
        row = first_repeated(batch.at, len(source.lead), width, table)
        if row >= 0:
            raise repeated_key(source, batch, row)


def repeated_key(source: Input, batch: Chunk, row: int) -> TektiteError:
    """The error for a row whose key is another's."""
    found, time = decoded(source, batch, row)
    key = ", ".join(f"{source.schema.names[column]} = {found[column]!r}" for column in source.lead)
    return ConflictError(
        f"input {source.name!r}: there would be two rows with the key {key} at time {time}: nothing was closed"
    )


def decoded(source: Input, batch: Chunk, row: int) -> tuple[tuple[object, ...], int]:
    """A row of a batch as values, and its time."""
    width = len(source.columns)
    words = batch.slice(row, row + 1).to_array()
    ordered = np.empty((width, 1), np.int64)
    ordered[list(source.columns)] = words[:width]
    return source.schema.decode_rows(ordered, source.engine.dictionary)[0], int(words[width, 0])
