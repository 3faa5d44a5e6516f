"""Schemas: ordered, named, typed columns of a collection. Converts whole tables to words and back.

Words are in a C-contiguous array of columns x rows. `decode(encode(data))` equals `data`, as Arrow compares. An encode that
fails names the column, the value and the row, and adds nothing to the dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.unknown_names import explains_names
from tektite.values import columns, words
from tektite.values.dictionary import Dictionary
from tektite.values.type_names import as_type
from tektite.values.types import Type
from tektite.values.words import Words

_INT64: Final = np.dtype(np.int64)


@lru_cache(maxsize=1024)
def _positions(names: tuple[str, ...], types: tuple[Type, ...]) -> dict[str, tuple[int, Type]]:
    """`Schema.positions`. Thousands of views keep them with their programs, and most have the columns of the same few tables."""
    return {name: (at, type) for at, (name, type) in enumerate(zip(names, types, strict=True))}


@lru_cache(maxsize=1 << 12)
def _shared(names: tuple[str, ...], types: tuple[Type, ...]) -> tuple[tuple[str, ...], tuple[Type, ...]]:
    """The same names and types: thousands of views have equal columns."""
    return names, types


@explains_names
class Schema:
    """Ordered columns, each with a name and a type. A value: compare with `==`, do not change.

    Made from a dict or keywords, or from a `pyarrow.Schema`. A type may be given as `Int`, as Python's `int`, as a word such as
    "bigint", or as Arrow's type.

    >>> from tektite.values.types import Int, String
    >>> schema = Schema({"src": Int, "label": String})
    >>> schema
    Schema(src=int, label=string)
    >>> schema == Schema(pa.schema({"src": pa.int64(), "label": pa.string()})) == Schema({"src": "bigint", "label": str})
    True
    """

    __slots__ = ("_arrow", "_empty", "_hash", "_ints", "names", "types")

    names: tuple[str, ...]
    types: tuple[Type, ...]

    def __call__(self) -> NoReturn:
        """Refused: a schema is no method, as it is in ibis."""
        raise IncorrectError("schema is no method here: write .schema for it, and .schema.names for the columns")

    def __init__(self, source: Mapping[str, Any] | pa.Schema | Schema | None = None, /, **named: Any) -> None:
        pairs: list[tuple[Any, Any]]
        if isinstance(source, dict):  # before the others: plans make schemas of nothing else
            pairs = list(source.items())
        elif isinstance(source, Schema):
            pairs = list(zip(source.names, source.types, strict=True))
        elif isinstance(source, pa.Schema):
            pairs = [(field.name, _type_of_field(field)) for field in source]
        elif source is None or isinstance(source, Mapping):
            pairs = list((source or {}).items())
        else:
            raise IncorrectError(_no_schema(source))
        pairs += named.items()
        for at, (name, type) in enumerate(pairs):
            if not isinstance(name, str) or not name:
                raise IncorrectError(f"expected the name of a column, found {name!r}: use a string, not an empty one")
            if not isinstance(type, Type):
                pairs[at] = name, as_type(type, f"column {name!r}: ")
        self._fill(tuple([name for name, _ in pairs]), tuple([type for _, type in pairs]))
        if len(set(self.names)) < len(pairs):
            repeated = next(name for at, name in enumerate(self.names) if name in self.names[:at])
            raise IncorrectError(f"column {repeated!r}: found it twice; give each column a name of its own")

    def _fill(self, names: tuple[str, ...], types: tuple[Type, ...]) -> None:
        self.names, self.types = _shared(names, types)
        # plans make many schemas, most of which no table is ever decoded by
        self._arrow: pa.Schema | None = None
        self._empty: pa.Table | None = None
        self._hash: int | None = None
        self._ints = all([type.kind == "int" for type in types])

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the tables that `decode` returns.

        >>> import tektite as tk
        >>> tk.Schema(id=int, name=str).arrow.field("name")
        pyarrow.Field<name: string>
        """
        if self._arrow is None:
            self._arrow = pa.schema(
                [words.arrow_field(name, type) for name, type in zip(self.names, self.types, strict=True)]
            )
        return self._arrow

    @property
    def positions(self) -> dict[str, tuple[int, Type]]:
        """Position and type of each column by name: what expressions are compiled against.

        >>> import tektite as tk
        >>> tk.Schema(id=int, name=str).positions
        {'id': (0, int), 'name': (1, string)}
        """
        return _positions(self.names, self.types)

    def index(self, name: str) -> int:
        """The position of a column.

        >>> from tektite.values.types import Int
        >>> Schema(src=Int, dst=Int).index("dts")
        Traceback (most recent call last):
        tektite.errors.NotFoundError: no column 'dts': did you mean 'dst'? the columns are: src, dst
        """
        try:
            return self.names.index(name)
        except ValueError:
            found = f"no column {name!r}: {columns.hint(name, self.names)}"
            raise NotFoundError(found).about(kind="column", name=name) from None

    def select(self, *names: str, **renamed: str) -> Schema:
        """The schema of some columns, in the order given; `new="old"` renames.

        >>> from tektite.values.types import Int, Float
        >>> Schema(src=Int, dst=Int, weight=Float).select("weight", start="src")
        Schema(weight=float, start=int)
        """
        new = (*names, *renamed)
        if len(set(new)) < len(new):
            raise IncorrectError(f"expected each column once, found {list(new)}: rename with new='old'")
        found = object.__new__(Schema)  # what is selected was checked before
        found._fill(new, tuple([self.types[self.index(old)] for old in (*names, *renamed.values())]))
        return found

    def encode(self, data: Any, dictionary: Dictionary | None = None, room: int = 0) -> Words:
        """The words of `data`, in a new array of columns x rows. Adds texts to `dictionary`. After the columns the array
        has `room` for more, which the caller fills.

        `data` is a list of rows (tuples, lists or dicts), a dict of columns (lists, NumPy or Arrow arrays), a NumPy array
        (rows x columns; structured; or one-dimensional for one column), an Arrow table, record batch or array, a pandas
        DataFrame, or anything that offers an Arrow stream. Missing values (None, Arrow's nulls, and in pandas NA, NaT and
        NaN) are NULL; any other NaN in a column of floats is a value.

        >>> from tektite.values.types import Float, Int
        >>> schema = Schema(src=Int, weight=Float)
        >>> schema.decode_rows(schema.encode([(1, 0.5), (2, None)]))
        [(1, 0.5), (2, None)]
        >>> schema.encode([(1, 0.5), (2,)])
        Traceback (most recent call last):
        tektite.errors.IncorrectError: expected 2 columns (src, weight), found 1 in row 1 ((2,))
        >>> schema.encode({"src": [1, 2.5], "weight": [0, 0]})
        Traceback (most recent call last):
        tektite.errors.IncorrectError: column 'src': expected int, found 2.5 (float) in row 1: give whole numbers, ...
        """
        ints = None if room else self.int_columns(data)
        if ints is not None:
            encoded = ints.copy()
            self._check_ints(encoded, 0)
            return encoded
        values, rows = columns.split(data, self.names)
        encoded = np.empty((len(self.names) + room, rows), np.int64)
        texts = {}
        for at, (name, type) in enumerate(zip(self.names, self.types, strict=True)):
            if type.interned:
                texts[at] = columns.text_column(values[at], type, name)
            else:
                encoded[at] = columns.encode_column(values[at], type, name)
        if texts:
            if dictionary is None:
                name = self.names[next(iter(texts))]
                raise IncorrectError(
                    f"column {name!r} holds {self.types[self.index(name)]}s: give the dictionary that their texts go to"
                )
            # Last, when nothing else can fail, and all together: a failure adds no text.
            try:
                columns_of_ids = dictionary.add_all(list(texts.values()))
            except IncorrectError as error:
                raise IncorrectError(f"column {' or '.join(repr(self.names[at]) for at in texts)}: {error}") from None
            for at, ids in zip(texts, columns_of_ids, strict=True):
                encoded[at] = ids
        return encoded

    def int_columns(self, data: Any) -> Words | None:
        """A NumPy array whose numbers are the words themselves, as columns x rows in the same memory; None for anything
        else.
        """
        if self._ints and data.__class__ is np.ndarray and data.dtype == _INT64:
            if data.ndim == 1 and len(self.names) == 1:
                return data.reshape(1, -1)
            if data.ndim == 2 and data.shape[1] == len(self.names):
                return data.T
        return None

    def encode_ints(self, ints: Words, encoded: Words, start: int, stop: int) -> None:
        """Copy and check some rows of `int_columns`. Several threads may do so, each with its share."""
        encoded[:, start:stop] = ints[:, start:stop]
        self._check_ints(encoded[:, start:stop], start)

    def _check_ints(self, encoded: Words, first: int) -> None:
        if encoded.size <= words.FEW and words.NULL not in encoded.ravel().tolist():
            return
        for at, name in enumerate(self.names):
            words.check_reserved(encoded[at], 0, name, first)

    def decode(self, encoded: Words, dictionary: Dictionary | None = None) -> pa.Table:
        """The table of the words `encoded` (columns x rows). It may share their memory: do not change them."""
        self._check_width(encoded)
        if not encoded.shape[1]:
            if self._empty is None:
                self._empty = self.arrow.empty_table()
            return self._empty
        arrays = [
            columns.decode_column(column, type, name, dictionary)
            for column, type, name in zip(encoded, self.types, self.names, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def decode_rows(self, encoded: Words, dictionary: Dictionary | None = None) -> list[tuple[Any, ...]]:
        """The rows of the words `encoded` (columns x rows), as tuples of Python values."""
        self._check_width(encoded)
        if not self.names:
            return [()] * encoded.shape[1]
        lists = [
            columns.decode_list(column, type, name, dictionary)
            for column, type, name in zip(encoded, self.types, self.names, strict=True)
        ]
        return list(zip(*lists, strict=True))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Type:
        """The type of a column: `schema["src"]`. With `keys`, so that `dict(schema)` is the mapping of names to types."""
        return self.types[self.index(name)]

    def keys(self) -> tuple[str, ...]:
        """The names of the columns, as of a mapping.

        >>> from tektite.values.types import Int
        >>> dict(Schema(src=Int, dst=Int)), Schema(src=Int)["src"]
        ({'src': int, 'dst': int}, int)
        """
        return self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.names == other.names and self.types == other.types

    def __hash__(self) -> int:
        found = self._hash
        if found is None:  # a type's is a call of Python, and each plan asks its schemas
            found = self._hash = hash((self.names, self.types))
        return found

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={type}' for name, type in zip(self.names, self.types, strict=True))})"

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Type]]]:
        return Schema, (dict(zip(self.names, self.types, strict=True)),)

    def _check_width(self, encoded: Words) -> None:
        if encoded.ndim != 2 or len(encoded) != len(self.names):
            raise IncorrectError(
                f"expected words of {len(self.names)} columns ({', '.join(self.names)}) x rows, found {encoded.shape}"
            )


@lru_cache(maxsize=1 << 10)
def _schema_of(names: tuple[str, ...], types: tuple[Type, ...]) -> Schema:
    return Schema(dict(zip(names, types, strict=True)))


def shared_schema(columns: Mapping[str, Type]) -> Schema:
    """The schema of some columns; the same one for equal columns, of which thousands of views have the same few."""
    return _schema_of(tuple(columns), tuple(columns.values()))


def _no_schema(found: object) -> str:
    """The message for something that was given for a schema."""
    kind = found.__class__
    if kind.__module__ == "pyspark.sql.types":
        return "this is a schema of Spark: give pyspark.sql.pandas.types.to_arrow_schema(frame.schema)"
    file = ": a file is read by SQL, COPY t FROM 'file.csv'" if isinstance(found, str) else ""
    return f"a schema is a dict such as {{'id': int, 'name': str}}, or a pyarrow.Schema, not {kind.__name__}{file}"


def _type_of_field(field: pa.Field[Any]) -> Type:
    try:
        return words.type_of_field(field)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {field.name!r}: {error}") from None
