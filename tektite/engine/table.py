"""Table as users hold it: a collection that changes from outside, and the epochs in which it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tektite.engine.lock import guarded_by_core
from tektite.engine.readable_collection import ReadableCollection
from tektite.engine.small_writes import write_few
from tektite.engine.table_edits import check_zones, rewrite
from tektite.engine.versions import decoded
from tektite.errors import IncorrectError
from tektite.expr import Expr, lit
from tektite.former_names import former_name
from tektite.query.collection import Collection
from tektite.unknown_options import explains_options
from tektite.values.words import Words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tektite.engine.engine import Engine
    from tektite.engine.input_core import InputCore
    from tektite.spark.follow import Following
    from tektite.spark.progress import EpochProgress


@explains_options
class Table(ReadableCollection):
    """A changing collection that the program writes to. Made by `Engine.create_table`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> prices = engine.create_table("prices", {"item": tk.String, "price": tk.Int}, mode="upsert", primary_key="item")
    >>> prices.insert([("tea", 3), ("salt", 1)])
    0
    >>> prices.insert([("tea", 4)])
    1
    >>> sorted(engine.install("all", prices).rows())
    [('salt', 1), ('tea', 4)]
    """

    engine: Engine
    _core: InputCore
    _kind = "table"

    def __init__(self, engine: Engine, core: InputCore) -> None:
        super().__init__(engine, core.operator)
        self._core = core

    @property
    def name(self) -> str:
        """Its name.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.name
        'sales'
        """
        return self._core.name

    @property
    def next_epoch(self) -> int:
        """The open epoch: the earliest time that an update may still have.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.next_epoch
        0
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.next_epoch
        1
        """
        return self._core.low

    @property
    @former_name("table.next_epoch")
    def epoch(self) -> int:
        """`next_epoch`, by its former name."""
        return self.next_epoch

    @property
    @guarded_by_core
    def time(self) -> int | None:
        """The last epoch that it has closed, which `rows` shows; None before the first.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.time is None
        True
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.time
        0
        """
        return self._core.low - 1 if self._core.low else None

    @property
    def pending(self) -> int:
        """Updates that wait: for `Engine.advance` in an engine that does not commit by itself, or for a time of their own.

        >>> import tektite as tk
        >>> engine = tk.Engine(autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> sales.pending
        1
        >>> _ = engine.advance()
        >>> sales.pending
        0
        """
        engine = self._core.engine
        return engine.writes.rows(self._core) + engine.scheduled.rows(self._core)

    @property
    def closed(self) -> bool:
        """Whether it has ended.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.finish()
        >>> sales.closed
        True
        """
        return self._core.closed

    def insert(self, data: Any, *, time: int | None = None) -> int | None:
        """Add rows: tuples, dicts, columns, NumPy arrays, Arrow tables or pandas frames.

        In an upsert table a row replaces the one that has its key; in a set table a row that is there already stays as it is.
        Returns the time at which the rows can be read; None where they wait: for a transaction's commit, for `Engine.advance` if
        the engine does not commit by itself, or for the `time` that is given, which closes when `advance` has come so far.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3), {"shop": "south", "amount": 5}][:1])
        0
        >>> sales.insert({"shop": ["south", "east"], "amount": [5, 1]})
        1
        >>> sorted(sales.rows())
        [('east', 1), ('north', 3), ('south', 5)]
        """
        core = self._core
        if time is None and (done := write_few(core, data, None, 1)) is not NotImplemented:
            return done
        return core.engine.write(lambda into: core.write(data, time, 1, "insert", into), time is not None)

    def remove(self, data: Any, *, time: int | None = None) -> int | None:
        """Take rows away. In an upsert table the key columns alone decide, and `data` may hold only those. Returns what `insert`
        does.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.remove([("north", 3)])
        1
        >>> sales.rows()
        [('south', 5)]
        """
        core = self._core
        if time is None and (done := write_few(core, data, None, -1)) is not NotImplemented:
            return done
        return core.engine.write(lambda into: core.write(data, time, -1, "remove", into), time is not None)

    def delete(self, *predicates: Expr | Sequence[Expr], **equal: Any) -> int | None:
        """Remove the rows for which all predicates are true, as `filter` takes them: SQL's DELETE. Returns what `insert` does.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = sales.delete(tk.col("amount") > 3)
        >>> sales.rows()
        [('north', 3)]
        """
        return rewrite(self._core, self._matching(predicates, equal, "delete"), None, "delete")

    def set(self, *predicates: Expr | Sequence[Expr], **columns: Any) -> int | None:
        """Change columns of the rows for which all predicates are true: SQL's UPDATE. A column becomes a value, or an expression
        over the row as it was. `set(tk.lit(True), ...)` changes all rows. Returns what `insert` does.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = sales.set(tk.col("shop") == "north", amount=tk.col("amount") * 2)
        >>> sorted(sales.rows())
        [('north', 6), ('south', 5)]
        """
        if not columns:
            raise IncorrectError(
                f"set: name a column of table {self.name!r} and what it becomes, such as x=tk.col('x') + 1"
            )
        for name in columns:
            self.schema.index(name)
        found = self._matching(predicates, {}, "set")
        written = {name: value if isinstance(value, Expr) else lit(value) for name, value in columns.items()}
        check_zones(self.name, found.select(**written).schema, self.schema)
        typed = {name: value.cast(self.schema.types[self.schema.index(name)]) for name, value in written.items()}
        changed = found.with_columns(**typed).select(list(self.schema.names))
        return rewrite(self._core, found, changed, "set")

    def _matching(self, predicates: tuple[Any, ...], equal: dict[str, Any], verb: str) -> Collection:
        if not predicates and not equal:
            raise IncorrectError(
                f"{verb}: say which rows of table {self.name!r}, as for filter; {verb}(tk.lit(True)) means all of them"
            )
        for given in predicates:
            if isinstance(given, list | tuple) and any(isinstance(part, tuple | list | dict) for part in given):
                raise IncorrectError(
                    f"{verb} takes conditions, as filter does: remove(rows) and insert(rows) take rows"
                )
        return self.filter(*predicates, **equal)

    def update(self, data: Any, *, times: Any = None, diffs: Any = None) -> int | None:
        """Change multiplicities: row i by `diffs[i]` at epoch `times[i]` (by 1, in the open epoch, where left out).

        Times may come in any order and may lie ahead; each counts when its epoch closes. Diffs are for bag tables. Returns what
        `insert` does.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.update([("north", 3), ("west", 1)], diffs=[-1, 2])
        1
        >>> sorted(sales.rows())
        [('south', 5), ('west', 1), ('west', 1)]
        """
        core = self._core
        if times is None and (done := write_few(core, data, diffs, 1)) is not NotImplemented:
            return done
        return core.engine.write(lambda into: core.update(data, times, diffs, into), times is not None)

    def snapshot(self, at: int | None = None) -> pa.Table:
        """The rows as of the last closed epoch, or of an earlier one that a hold still keeps apart. In a transaction, and without
        `at`, they are those that it sees: as of its beginning, with what it has written.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> first = sales.insert([("north", 3)])
        >>> sales.snapshot().to_pylist()
        [{'shop': 'north', 'amount': 3}]
        """
        core = self._core
        if at is None and core.engine.sessions.transaction is not None:
            return core.engine.collect(self)
        with core.engine.dictionary.text_use():
            return self._table(core.words(at))

    def _read(self, wait: bool = True, lead: int | None = None, rows: int | None = None) -> Words:
        core = self._core
        if wait and core.engine.sessions.transaction is not None:
            words = core.schema.encode(core.engine.collect(self), core.engine.dictionary, room=2)
            words[-2:] = [[0], [1]]
            return words if lead is None else words[:, words[core.columns[0]] == lead]
        return core.words(None, lead, rows)

    def _table(self, words: Words, rows: int | None = None) -> pa.Table:
        return decoded(self._core, words, f"table {self.name!r}", rows)

    def _state(self) -> str:
        core = self._core
        with core.lock.held:
            if core.engine.inputs.get(core.name) is not core:
                return ", dropped"
            return f", a stream, open epoch {core.low}" if core.is_stream else super()._state()

    @guarded_by_core
    def rollback(self) -> None:
        """Forget what has been written and not committed.

        >>> import tektite as tk
        >>> engine = tk.Engine(autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> sales.rollback()
        >>> _ = engine.advance()
        >>> sales.rows()
        []
        """
        engine = self._core.engine
        transaction = engine.sessions.transaction
        if transaction is None:
            engine.writes.forget(self._core)
            engine.scheduled.forget(self._core)
        else:
            transaction.forget(self._core)

    def advance(self, to: int | None = None) -> int:
        """Close this table's epochs before `to` (the open one, where left out); the last one of them.

        >>> import tektite as tk
        >>> engine = tk.Engine(autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> sales.advance()
        0
        >>> sales.rows()
        [('north', 3)]
        """
        return self._core.advance(to)

    def finish(self) -> None:
        """End the table: what it holds stays, nobody writes to it any more, and it holds no view up.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sales.finish()
        >>> totals.closed
        True
        >>> sales.insert([("east", 1)])
        Traceback (most recent call last):
        tektite.errors.ConflictError: cannot insert: table 'sales' is closed
        """
        self._core.close()

    @former_name("table.finish()")
    def close(self) -> None:
        """`finish`, by its former name."""
        self.finish()

    def load(
        self,
        frame: DataFrame,
        *,
        diff: str | None = None,
        operation: str | None = None,
        order: str | None = None,
        position: str | None = None,
        upto: Any = None,
        once: str | None = None,
        extra: Literal["error", "ignore"] = "error",
        progress: bool | Callable[[int, int], None] | None = None,
    ) -> int:
        """Add the rows of a Spark DataFrame as one epoch, and close it; how many rows there were.

        Spark's tasks encode the rows. Columns are matched by name. `diff` or `operation` name columns that say what to do
        with a row (otherwise it is inserted); `order` one that says which of several rows with one key comes last.
        `position` names a column that grows with the source (an offset, a version): `follow` goes on where the load ended,
        and loading again adds only what is new; rows behind `upto` are left to the stream. A load that is named by `once`
        happens once. `extra="ignore"` leaves out columns that the table lacks. `progress` shows a bar (by default on a
        terminal), or is called with tasks done and tasks in all.
        """
        from tektite.spark.load import load

        return load(self, frame, diff, operation, order, position, upto, once, extra, progress)

    def follow(
        self,
        stream: DataFrame,
        *,
        diff: str | None = None,
        operation: str | None = None,
        order: str | None = None,
        position: str | None = None,
        extra: Literal["error", "ignore"] = "error",
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
        lag: int = 0,
        reset: bool = False,
        on_progress: Callable[[EpochProgress], None] | None = None,
        bad_rows: Literal["stop", "keep"] = "stop",
        max_bad_rows: int = 1000,
    ) -> Following:
        """Turn each micro-batch of a Spark stream into an epoch, exactly once.

        Columns are as for `load`; after a load with a `position`, rows up to where it ended are left out. `trigger` is what
        Spark's `DataStreamWriter.trigger` takes, such as {"availableNow": True}. A micro-batch waits while views are more
        than `lag` epochs behind. The stream's checkpoint lies in the engine's storage, or in the folder `checkpoint`. A
        stream with another checkpoint than the one that this table has followed is refused, because it would begin
        again and count rows twice; `reset=True` says that this is meant. `on_progress` is called behind every epoch, from the
        stream's thread, with what the epoch held and took; the last of them are in `recent` of what is returned.

        A row that does not fit, such as one with NULL in a key, stops the stream, and its micro-batch does not count. With
        `bad_rows="keep"` such rows go, in the same epoch, to the table of this name with `_bad_rows` behind it (columns
        `batch`, `row` as JSON, and `reason`), until there have been more than `max_bad_rows` since the stream began.
        """
        from tektite.spark.follow import follow

        return follow(
            self, stream, diff, operation, order, position, extra, checkpoint, trigger, lag, reset, on_progress,
            bad_rows, max_bad_rows,
        )  # fmt: skip
