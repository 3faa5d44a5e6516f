"""Feed: turns rows of a DataFrame into updates of an input, in Spark's tasks.

`check` refuses a DataFrame whose columns do not fit before any of its rows is read. `encode` runs in Spark's tasks and
returns the same words as `Schema.encode` in the driver. A wrong value comes back as a row with an error, so that Spark does
not retry what fails again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.spark.failures import error_text
from tektite.values import columns, words
from tektite.values.dictionary import Dictionary
from tektite.values.equal_keys import key_words
from tektite.values.schema import Schema
from tektite.values.text_space import START
from tektite.values.types import Int, String, TimestampTz
from tektite.values.words import NULL, Words

PUT, REMOVE, REPLACE, FORGET, AFTER = 1, -1, 2, -2, 3
"""Operations: add a row; remove a row; put a row in place of the one with its key; drop the key's old row unless something
is put there at the same time; put the new row of an update whose old row is known.
"""

OPERATIONS: Final = {
    **dict.fromkeys(("insert", "i", "+i", "create", "c", "append"), PUT),
    **dict.fromkeys(("delete", "d", "-d", "remove"), REMOVE),
    **dict.fromkeys(("update", "u", "upsert", "replace"), REPLACE),
    **dict.fromkeys(("update_postimage", "+u"), AFTER),
    **dict.fromkeys(("update_preimage", "-u"), FORGET),
}
"""Names of operations in change feeds, in lower case: Delta's, Debezium's, Flink's and others."""

ENCODED: Final = "part int, number int, rows long, latest long, words binary, texts binary, error string"
"""The columns that an encoding task returns for each batch: few rows, each with many encoded rows."""

MOST_DIFF: Final = 2**48


@dataclass(frozen=True)
class Feed:
    """The columns of an input, and the further columns that say what to do with a row.

    The words of an encoded row are those of the input's columns, the diff, and the order if there is one.
    """

    name: str
    schema: Schema
    semantics: str = "bag"
    keys: tuple[int, ...] = ()
    diff: str | None = None
    operation: str | None = None
    order: str | None = None
    position: str | None = None
    after: int | None = None
    upto: int | None = None
    ignore_extra: bool = False
    told_apart: tuple[int, ...] = ()
    """Columns that identify rows, and have several words for equal values: 0.0 and -0.0, 1 month and 30 days."""
    required: tuple[int, ...] = ()
    """Columns in which an inserted row must not have NULL."""
    append: bool = False
    """Whether rows are never removed."""
    named: tuple[str, ...] = ()
    """Names of a batch's columns, if they travel under other names."""

    @property
    def only_adds(self) -> bool:
        """Whether the effect of a row does not depend on other rows."""
        return self.semantics == "bag" and self.diff is None and self.operation is None

    def check(self, frame: DataFrame) -> None:
        """Refuse a DataFrame whose columns do not fit, by the same rules as for encoding its values."""
        if self.diff is not None and self.operation is not None:
            raise IncorrectError(f"table {self.name!r}: rows have a diff or an operation, not both")
        if self.diff is not None and self.semantics != "bag":
            raise IncorrectError(
                f"table {self.name!r} has mode {self.semantics!r}: diffs are for bags; use an operation column"
            )
        try:
            arrow = to_arrow_schema(frame.schema, timezone="UTC")
        except Exception as error:
            raise IncorrectError(f"table {self.name!r}: a column has a type that no value here has: {error}") from None
        try:
            empty = arrow.empty_table()
            self._split(empty)
            self._rows(empty, Dictionary())
        except TektiteError as error:
            raise IncorrectError(f"table {self.name!r}: {error}") from None

    def needed(self, frame: DataFrame) -> tuple[Feed, DataFrame]:
        """The DataFrame without ignored columns, so that Spark does not pass them on, and the feed that reads it. PySpark
        reads a column's name as an expression when it sends rows to Python, so other names travel as numbers.
        """
        if self.ignore_extra:
            named = (*self.schema.names, *(name for name in self._beside() if name not in self.schema.names))
            frame = frame.select([frame[f"`{name.replace('`', '``')}`"] for name in frame.columns if name in named])
        if not any(character in name for name in frame.columns for character in ".`"):
            return self, frame
        return replace(self, named=tuple(frame.columns)), frame.toDF(*map(str, range(len(frame.columns))))

    def encode(self, batch: Any, dictionary: Dictionary) -> tuple[Words, int]:
        """The words of a batch's rows (columns, diff, order), and their last position."""
        encoded, latest = self._rows(batch, dictionary)
        for key in self.told_apart:
            encoded[key] = key_words(encoded[key], self.schema.types[key], dictionary)
        diffs = encoded[len(self.schema.names)]
        for column in dict.fromkeys((*self.keys, *self.required)):
            null = encoded[column] == NULL
            if column not in self.keys:
                null &= diffs > 0
            if null.any():
                what = "key column" if column in self.keys else "column"
                raise IncorrectError(
                    f"{what} {self.schema.names[column]!r} holds a NULL in row {int(np.argmax(null))} of a batch, and cannot: "
                    "leave such rows out, or give them a value"
                )
        if self.append and (diffs <= 0).any():
            raise ConflictError(f"table {self.name!r} is append-only: rows cannot be changed or removed")
        return encoded, latest

    def _rows(self, batch: Any, dictionary: Dictionary) -> tuple[Words, int]:
        table = self._split(batch.rename_columns(list(self.named)) if self.named else batch)
        positions = self._integers(table, self.position, "position")
        diffs = self._diffs(table)
        order = self._integers(table, self.order, "order")
        keep = diffs != 0
        if positions is not None:
            if self.after is not None:
                keep &= positions > self.after
            if self.upto is not None:
                keep &= positions <= self.upto
        data = table.select(list(self.schema.names))
        if not keep.all():
            data = data.filter(pa.array(keep))
        self._check_texts(data)
        beside = [diffs[keep]] + ([] if order is None else [order[keep]])
        encoded = self.schema.encode(data, dictionary, room=len(beside))
        encoded[-len(beside) :] = beside
        latest = NULL if positions is None or not keep.any() else int(positions[keep].max())
        return encoded, latest

    def _check_texts(self, data: Any) -> None:
        """Refuse texts that are not UTF-8: Spark allows any bytes in a string."""
        for name, type in zip(self.schema.names, self.schema.types, strict=True):
            values = data.column(name)
            if type == String and len(values):
                try:
                    values.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise IncorrectError(
                        f"column {name!r} has bytes that are not UTF-8 text ({error}): decode them, "
                        "decode(bytes, 'ISO-8859-1'), or replace them, make_valid_utf8(text)"
                    ) from None

    def _split(self, table: Any) -> Any:
        """The table, if it has the expected columns."""
        found = table.schema.names
        beside = {name: what for name, what in self._beside().items() if name not in self.schema.names}
        for name in (*self.schema.names, *beside):
            if name not in found:
                what = f"the {beside[name]} column" if name in beside else "column"
                raise IncorrectError(f"missing {what} {name!r}: {columns.hint(name, found)}")
        repeated = sorted({name for name in found if found.count(name) > 1})
        if repeated:
            raise IncorrectError(f"found column {repeated[0]!r} twice: rename one of them")
        extra = [name for name in found if name not in self.schema.names and name not in beside]
        if extra and not self.ignore_extra:
            raise IncorrectError(
                f"unknown column {extra[0]!r}: the table's columns are {', '.join(self.schema.names)}; drop it, declare "
                "it as a column of the table, or say extra='ignore'"
            )
        # A timestamp of Spark is a moment. In a column of timestamps it is stored as what a clock in UTC shows.
        moments = {name for name, type in zip(self.schema.names, self.schema.types, strict=True) if type == TimestampTz}
        for at, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.name not in moments:
                plain = pa.timestamp(field.type.unit)
                table = table.set_column(at, field.name, table.column(at).cast(plain))
        return table

    def _beside(self) -> dict[str, str]:
        named = {"diff": self.diff, "operation": self.operation, "order": self.order, "position": self.position}
        return {name: what for what, name in named.items() if name is not None}

    def _integers(self, table: Any, name: str | None, what: str) -> Words | None:
        """A column that orders rows, as words that compare like its values."""
        if name is None:
            return None
        values = table.column(table.schema.names.index(name))
        type = words.type_from_arrow(values.type)
        if type.kind not in ("int", "date", "timestamp", "timestamptz", "decimal") or type.interned:
            raise IncorrectError(f"{what} column {name!r}: expected whole numbers or moments, found {values.type}")
        found = words.encode(values, type, name)
        if values.null_count:
            raise IncorrectError(f"{what} column {name!r} holds a NULL: every row needs one")
        return found

    def _diffs(self, table: Any) -> Words:
        """The change of each row's multiplicity; 0 for rows to leave out."""
        if self.diff is not None:
            values = table.column(table.schema.names.index(self.diff))
            if values.null_count:
                raise IncorrectError(f"diff column {self.diff!r} holds a NULL: every row needs one")
            found = words.encode(values, Int, self.diff)
            if len(found) and max(int(found.max()), -int(found.min())) > MOST_DIFF:
                raise IncorrectError(
                    f"diff column {self.diff!r}: a diff is at most {MOST_DIFF}, so that sums of them fit"
                )
            return found
        if self.operation is None:
            return np.ones(table.num_rows, np.int64)
        values = table.column(table.schema.names.index(self.operation))
        words.check_texts(values, self.operation)
        plain = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        coded = plain.dictionary_encode()
        if plain.null_count:
            raise IncorrectError(f"operation column {self.operation!r} holds a NULL: every row needs one")
        meaning = np.array([self._meaning(str(text)) for text in coded.dictionary.to_pylist()], np.int64)
        return meaning[coded.indices.to_numpy()] if len(meaning) else np.empty(0, np.int64)

    def _meaning(self, text: str) -> int:
        meant = OPERATIONS.get(text.lower())
        if meant is None:
            raise IncorrectError(
                f"operation column {self.operation!r}: found {text!r}; an operation is insert, update, delete, "
                "update_preimage or update_postimage (or c, r, u, d; I, U, D; +I, -U, +U, -D)"
            )
        if meant == REPLACE and self.semantics != "upsert":
            raise IncorrectError(
                f"operation column {self.operation!r}: found {text!r}, but the table has mode {self.semantics!r}: an "
                "update without its old row needs mode 'upsert', which has a key"
            )
        # In a bag rows add up. Elsewhere the operation matters: the new row of an update may or may not have the old one's key.
        return meant if self.semantics != "bag" else PUT if meant > 0 else REMOVE


def encoder(feed: Feed) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The task that turns batches of rows into encoded rows, for `DataFrame.mapInArrow`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        dictionary, mark = Dictionary(), START
        for number, batch in enumerate(batches):
            try:
                encoded, latest = feed.encode(batch, dictionary)
            except TektiteError as error:
                yield encoded_row(part, number, 0, NULL, b"", b"", error_text(error))
                return
            texts, mark = dictionary.since(mark)
            yield encoded_row(part, number, encoded.shape[1], latest, encoded.tobytes(), pack_texts(texts), None)

    return run


def encoded_row(part: int, number: int, rows: int, latest: int, data: bytes, texts: bytes, error: str | None) -> Any:
    """One row of the schema ENCODED."""
    return pa.record_batch(
        [
            pa.array([part], pa.int32()), pa.array([number], pa.int32()), pa.array([rows], pa.int64()),
            pa.array([latest], pa.int64()), pa.array([data], pa.binary()), pa.array([texts], pa.binary()),
            pa.array([error], pa.string()),
        ],
        ["part", "number", "rows", "latest", "words", "texts", "error"],
    )  # fmt: skip


def pack_texts(texts: pa.ChunkedArray[Any]) -> bytes:
    """Texts as bytes that travel."""
    if not len(texts):
        return b""
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays([texts], ["text"])
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack_texts(data: bytes) -> pa.ChunkedArray[Any]:
    """The texts that `pack_texts` packed."""
    if not data:
        return pa.chunked_array([], pa.string())
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().column("text")
