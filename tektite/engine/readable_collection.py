"""ReadableCollection: what tables and views have in common for whoever reads their rows or follows their changes.

Reading is built on two methods, which each of them has: `snapshot`, all rows as of a time, and `_read`, some of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from tektite.engine.backlog import Delta
from tektite.engine.lock import guarded_by_core
from tektite.engine.subscription import Listener, Subscription
from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.query.collection import Collection
from tektite.unknown_options import explains_options, is_function
from tektite.values import types
from tektite.values.arguments import truth_value, whole_number
from tektite.values.columns import named_rows, python_rows
from tektite.values.equal_keys import key_words
from tektite.values.frames import pandas_frame, polars_frame
from tektite.values.html import SHOWN_ROWS, html_table, html_text
from tektite.values.words import ZEROS, Words

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from tektite.engine.input_core import InputCore
    from tektite.engine.view_core import ViewCore

SHOWN_FIRST = 5
"""Rows that the representation of a table or a view shows."""


@explains_options
class ReadableCollection(Collection):
    """A collection with rows that can be read at once, as of the last closed epoch.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> _ = sales.insert([("north", 3), ("south", 5)])
    >>> isinstance(sales, tk.Table), len(sales), sorted(sales)
    (True, 2, [('north', 3), ('south', 5)])
    """

    _core: InputCore | ViewCore
    _kind: str
    """Its name in messages."""

    @abstractmethod
    def snapshot(self, at: int | None = None) -> pa.Table:
        """All rows.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.snapshot().num_rows
        2
        """

    @abstractmethod
    def _read(self, wait: bool = True, lead: int | None = None, rows: int | None = None) -> Words:
        """Rows as words, as of the last closed epoch or, if that is not to be waited for, the last one that is there."""

    @abstractmethod
    def _table(self, words: Words, rows: int | None = None) -> pa.Table:
        """Words as a table."""

    # ------------------------------------------------------------------ all rows

    def rows(self, at: int | None = None) -> list[tuple[Any, ...]]:
        """The snapshot as Python tuples.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sorted(sales.rows())
        [('north', 3), ('south', 5)]
        """
        return self._tuples(self.snapshot(at))

    def to_arrow(self, at: int | None = None) -> pa.Table:
        """The snapshot as a `pyarrow.Table`: what `snapshot` returns.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.to_arrow().column_names
        ['shop', 'amount']
        """
        return self.snapshot(at)

    def to_pandas(self, at: int | None = None) -> pd.DataFrame:
        """The snapshot as a pandas DataFrame.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.to_pandas()["amount"].sum().item()
        8
        """
        return pandas_frame(self.snapshot(at))

    def to_polars(self, at: int | None = None) -> Any:
        """The snapshot as a Polars DataFrame."""
        return polars_frame(self.snapshot(at))

    def to_spark(self, spark: SparkSession | None = None, *, at: int | None = None) -> DataFrame:
        """The snapshot as a Spark DataFrame, in the session that the engine was given or another one.

        Timestamps come as Spark's `timestamp`, moments that are shown in the session's time zone.
        """
        from tektite.spark.view_frames import to_spark

        return to_spark(self, spark, at)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The snapshot as an Arrow stream, for whatever reads those: `pyarrow.table(view)`, `polars.DataFrame(view)`, `FROM view`
        in DuckDB.
        """
        table: Any = self.snapshot()
        stream: object = table.__arrow_c_stream__(requested_schema)
        return stream

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return named_rows(self.rows(), self.schema.names)

    def __len__(self) -> int:
        return int(self._read()[-1].sum())

    def __bool__(self) -> bool:
        """True, also of one without rows: whether there is a table or a view is asked more often than whether it is empty."""
        return True

    def _tuples(self, table: pa.Table) -> list[tuple[Any, ...]]:
        return python_rows(table, f"{self._kind} {self._core.name!r}", "snapshot()")

    # ------------------------------------------------------------------ some rows

    def head(self, n: int = SHOWN_FIRST) -> pa.Table:
        """The first `n` rows, in the order of its index, or of `sort` or ORDER BY. Others are not looked at.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.head(1).num_rows
        1
        """
        rows = whole_number(n, 0)
        if rows is None:
            raise IncorrectError(f"head takes a number of rows from 0 on, not {n!r}")
        return self._head(rows)

    def _head(self, n: int, wait: bool = True) -> pa.Table:
        with self._core.engine.dictionary.text_use():
            return self._table(self._read(wait, rows=n), n)

    def lookup(self, *key: Any) -> list[tuple[Any, ...]]:
        """The rows with a key: values of the columns by which it is indexed, in their order, or of the first of them. Only rows
        with the first value are looked at.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "item": tk.String, "price": tk.Int})
        >>> prices = engine.install("prices", sales.max("price", by=["shop", "item"]), order_by=["shop", "item"])
        >>> _ = sales.insert([("north", "tea", 3), ("north", "salt", 1), ("south", "tea", 4)])
        >>> sorted(prices.lookup("north"))
        [('north', 'salt', 1), ('north', 'tea', 3)]
        >>> prices.lookup("north", "tea")
        [('north', 'tea', 3)]
        >>> prices.lookup(1)
        Traceback (most recent call last):
        tektite.errors.IncorrectError: lookup in view 'prices': column 'shop': expected string, found 1 (int) in row 0: ...
        """
        names = [self.schema.names[c] for c in self._core.columns]
        if not 1 <= len(key) <= len(names):
            raise IncorrectError(
                f"lookup in {self._kind} {self._core.name!r} takes from 1 to {len(names)} values, of {', '.join(names)}; found "
                f"{len(key)}"
            )
        if any([value is None for value in key]):
            raise IncorrectError(
                f"lookup in {self._kind} {self._core.name!r}: NULL equals nothing; use filter with is_null()"
            )
        wanted = names[: len(key)]
        try:
            encoded = self.schema.select(*wanted).encode([key], self._core.engine.dictionary)[:, 0]
        except TektiteError as error:
            raise error.reworded(f"lookup in {self._kind} {self._core.name!r}: {error}") from None
        columns = self._core.columns[: len(key)]
        dictionary = self._core.engine.dictionary
        with dictionary.text_use(), dictionary.adding():
            words = self._led_by(int(encoded[0]), self.schema.types[columns[0]])
            for column, word in zip(columns, encoded, strict=True):
                kind = self.schema.types[column]
                looked_for = key_words(np.array([word]), kind, dictionary)
                words = words[:, key_words(words[column], kind, dictionary) == looked_for]
            return self._tuples(self._table(np.ascontiguousarray(words)))

    def _led_by(self, word: int, type: types.Type) -> Words:
        """The rows whose first column of the order may equal a word's value."""
        if type == types.Float and word in ZEROS:
            return np.concatenate([self._read(lead=zero) for zero in ZEROS], axis=1)
        return self._read() if type.interned and type.has_keys else self._read(lead=word)

    # ------------------------------------------------------------------ changes

    @overload
    def subscribe(
        self, callback: None = None, *, snapshot: bool | None = None, progress: bool = False, since: int | None = None
    ) -> Subscription: ...
    @overload
    def subscribe(
        self,
        callback: Callable[[Delta], None],
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
    ) -> Listener: ...
    def subscribe(
        self,
        callback: Callable[[Delta], None] | None = None,
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
    ) -> Subscription | Listener:
        """The changes from here on, one `Delta` for each time at which something changed.

        They begin with the present contents, as insertions, unless `snapshot` is false. With `since`, they are those behind
        that time, which must still be readable (`Engine.hold` keeps times readable), and begin with the contents as of that
        time only if `snapshot` is true. With `progress`, an empty delta says that nothing has changed up to its time.

        Without a callback this is an iterator, also for `async for`: see `Subscription`. A callback is called with each delta
        in the thread that closes the epoch, while the engine is locked: it may read views, and may not write. If it raises,
        it is not called again. See `Listener`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> listener = totals.subscribe(lambda delta: print(delta.time, delta.table.to_pylist()))
        >>> _ = sales.insert([("north", 3)])
        0 [{'shop': 'north', 'amount': 3, 'diff': 1}]
        >>> listener.close()
        """
        return self._subscribe(callback, snapshot, progress, since)

    @guarded_by_core
    def _subscribe(
        self, callback: Callable[[Delta], None] | None, snapshot: bool | None, progress: bool, since: int | None
    ) -> Subscription | Listener:
        core = self._core
        if callback is not None and not is_function(callback):
            raise IncorrectError(f"subscribe takes a function to call with each delta, not {callback!r}")
        if snapshot is not None:
            truth_value(snapshot, "subscribe: snapshot")
        truth_value(progress, "subscribe: progress")
        core.check_usable()
        core.engine.finish(core)
        core.check()
        if since is not None:
            core.check_readable(since)
        if snapshot is None:
            snapshot = since is None and not core.is_stream
        elif snapshot and core.is_stream:
            what = "was installed with keep=False" if self._kind == "view" else "is a stream"
            raise ConflictError(
                f"{self._kind} {core.name!r} {what}, so that it has no contents to begin with: subscribe with snapshot=False"
            )
        if callback is None:
            return Subscription(core, snapshot, progress, since)
        made = Listener(core, callback, snapshot, progress, since)
        core.engine.notices.give(core.engine.coordinator)
        return made

    # ------------------------------------------------------------------ how it is shown

    def __repr__(self) -> str:
        """Its name, schema, time and first rows, as far as they are there: a view that has fallen behind is shown as it is."""
        columns = ", ".join(f"{n}: {t}" for n, t in zip(self.schema.names, self.schema.types, strict=True))
        title = f"{type(self).__name__} {self._core.name!r} ({columns})"
        try:
            return f"<{title}{self._state()}>"
        except Exception as error:
            return f"<{title}, unreadable: {error}>"

    def _state(self) -> str:
        """The part of the representation after the schema: the first rows."""
        table = self._head(SHOWN_FIRST + 1, wait=False)
        shown = self._tuples(table.slice(0, SHOWN_FIRST))
        lines = [f"\n  {row}" for row in shown]
        if table.num_rows > SHOWN_FIRST:
            lines.append("\n  ...")
        return f", time {self._core.low - 1}{''.join(lines)}" if self._core.low else ", no epoch closed yet"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: name, time and first rows, as far as they are there."""
        try:
            return self._html()
        except Exception:
            return html_text(repr(self))

    def _html(self) -> str:
        types = ", ".join(f"{n}: {t}" for n, t in zip(self.schema.names, self.schema.types, strict=True))
        time = f"time {self._core.low - 1}" if self._core.low else "no epoch closed yet"
        table = self._head(SHOWN_ROWS + 1, wait=False)
        rows = self._tuples(table.slice(0, SHOWN_ROWS))
        more = f"the first {SHOWN_ROWS} rows" if table.num_rows > SHOWN_ROWS else ""
        return html_table(self.schema.names, rows, f"{self._kind} {self._core.name} ({types}), {time}", more)
