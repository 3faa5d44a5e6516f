"""Constraints of an input's declaration. A change that breaks one is refused before its epoch counts.

NOT NULL, append-only and CHECK are checked when rows arrive. Unique keys, and removals of rows that do not exist, are checked
when an epoch closes. `unique_keys` has the keys beside the primary one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tektite.errors import ConflictError, IncorrectError, NotFoundError
from tektite.expr import lit
from tektite.expr.program import FailingRowError, RowProgram, compile
from tektite.kernels.layout.rows import head_of_array
from tektite.kernels.operators.upsert import first_negative, first_repeated
from tektite.storage.description import CheckConstraint
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.words import NULL, Words

UNKNOWN = re.compile("\0(-?[0-9]+)\0")
"""The mark of a text that somebody else has, by its id."""

LARGEST_TIME = 2**62


def check_time(time: object, where: str = "") -> None:
    """Refuse what is not an epoch."""
    if isinstance(time, bool) or not isinstance(time, int | np.integer):
        raise IncorrectError(f"{where}a time is an integer, not {time!r}")
    if not 0 <= time <= LARGEST_TIME:
        raise IncorrectError(f"{where}a time lies between 0 and {LARGEST_TIME}; found {time}")


@dataclass(frozen=True)
class Rules:
    """The rules that a declaration sets for a table's rows. The engine checks them, and tasks without an engine do."""

    name: str
    schema: Schema
    semantics: str
    columns: tuple[int, ...]
    """The schema's columns in the order of stored rows."""
    required: tuple[int, ...]
    """Columns that hold no NULL."""
    append: bool
    unique: int
    """How many of the first stored columns no two rows may share; 0 if rows may."""
    checked: bool
    """Whether removals are checked, and keys: not in a stream, which keeps no rows."""

    @property
    def repeats(self) -> bool:
        """Whether a key may be found to be repeated: in an upsert, the last row of a key takes its place."""
        return self.checked and self.unique > 0 and self.semantics != "upsert"

    def check_rows(self, words: Words, diffs: Words | int) -> None:
        """Refuse rows (columns x rows) that lack what they need, or that take away from what only grows."""
        if not self.append and not self.required:
            return
        gained = diffs > 0
        if self.append and not np.all(gained):
            raise ConflictError(f"table {self.name!r} is append-only: rows cannot be changed or removed")
        for column in self.required:
            missing = words[column] == NULL
            if np.any(missing) and np.any(missing & gained):
                raise IncorrectError(
                    f"column {self.schema.names[column]!r} of table {self.name!r} cannot be NULL, and "
                    f"{int(np.count_nonzero(missing & gained))} of {words.shape[1]} rows have NULL there"
                ).about(condition="not-null-violation")

    def check_batch(self, batch: Chunk, table: Words, dictionary: Dictionary) -> None:
        """Refuse a sorted batch that, with what `table` holds, removes what is not there or repeats a key."""
        if not batch.n or not self.checked:
            return
        width = len(self.columns)
        diff = batch.constants(width + 1, 1)
        grows = diff is not None and diff[0] > 0
        if self.semantics == "bag" and not grows:
            row = first_negative(batch.at, width, table)
            if row >= 0:
                words = self._row(batch, row)
                values = ", ".join(value_text(self.schema, column, words, dictionary) for column in range(width))
                raise IncorrectError(
                    f"table {self.name!r}: at time {words[width]} row ({values}{',' * (width == 1)}) would be there a "
                    "negative number of times: it is removed more often than it was inserted. Nothing was written"
                )
        if self.repeats:
            row = first_repeated(batch.at, self.unique, width, table)
            if row >= 0:
                words = self._row(batch, row)
                key = columns_text(self.schema, self.columns[: self.unique], words, dictionary)
                raise (
                    ConflictError(
                        f"table {self.name!r}: there would be two rows with the key {key} at time {words[width]}. "
                        "Nothing was written"
                    )
                    .about(condition="unique-violation")
                    .about(table=self.name, columns=[self.schema.names[c] for c in self.columns[: self.unique]])
                )

    def _row(self, batch: Chunk, row: int) -> Words:
        """A row of a batch with its columns in the schema's order, then its time and diff."""
        words = batch.slice(row, row + 1).to_array()[:, 0]
        ordered = words.copy()
        ordered[list(self.columns)] = words[: len(self.columns)]
        return ordered


class RowChecks:
    """The conditions of an input's rows, compiled."""

    def __init__(self, name: str, schema: Schema, checks: Sequence[CheckConstraint], dictionary: Dictionary) -> None:
        self.name = name
        self.schema = schema
        self.dictionary = dictionary
        self.programs = [(check, compile([lit(1)], ~check.condition, schema.positions, dictionary)) for check in checks]

    def check_rows(self, words: Words, diffs: Words | int) -> None:
        """Refuse rows (columns x rows) that come and make a condition false, or for which it cannot be computed."""
        gained = words if isinstance(diffs, int) else words[:, diffs > 0]
        if (isinstance(diffs, int) and diffs <= 0) or not gained.shape[1]:
            return
        gained = np.ascontiguousarray(gained)
        for check, program in self.programs:
            head = head_of_array(gained, gained.shape[1])
            try:
                kept, found = program.run(int(head[1]), len(gained), 0, 0, NULL, gained)
                number = int(found[0])
                del kept
                if not number:
                    continue
            except FailingRowError:
                pass
            self._refuse(check, program, gained)

    def _refuse(self, check: CheckConstraint, program: RowProgram, rows: Words) -> None:
        """Say which row breaks a condition; nothing if the one that could not be computed does not count."""
        found = program.check(rows)
        broken = [*found.failing.tolist(), *found.passing.tolist()]
        if not broken:
            return
        row = rows[:, broken[0]]
        read = [self.schema.index(column) for column in check.columns] or list(range(len(self.schema.names)))
        shown = columns_text(self.schema, read, row, self.dictionary)
        why = f": {program.explain(rows[:, broken[:1]])}" if len(found.failing) else ""
        raise ConflictError(
            f"table {self.name!r}: a row with {shown} breaks {check} (constraint {check.name!r}){why}. Nothing was written"
        ).about(condition="check-violation")


def columns_text(schema: Schema, columns: Sequence[int], words: Words, dictionary: Dictionary) -> str:
    """Some columns of a row as text, with their names."""
    return ", ".join(f"{schema.names[c]} = {value_text(schema, c, words, dictionary)}" for c in columns)


def value_text(schema: Schema, column: int, words: Words, dictionary: Dictionary) -> str:
    """A value of a row as text. Where the dictionary lacks it, which in a task it may, the text's id marks its place, for
    `with_texts`.
    """
    try:
        one = schema.select(schema.names[column])
        return repr(one.decode_rows(np.array([[words[column]]]), dictionary)[0][0])
    except NotFoundError:
        return f"\0{words[column]}\0"


def with_texts(message: str, dictionary: Dictionary) -> str:
    """A message in which texts take the places that `value_text` marked, as far as the dictionary has them."""

    def text(found: re.Match[str]) -> str:
        try:
            return repr(dictionary.lookup(np.array([int(found[1])]))[0].as_py())
        except NotFoundError:
            return found[0]

    return UNKNOWN.sub(text, message)
