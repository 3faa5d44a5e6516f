"""View as users hold it: a named, maintained result, and the ways to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from tektite.engine.changes import Changes
from tektite.engine.constraints import check_time
from tektite.engine.lock import guarded_by_core
from tektite.engine.readable_collection import ReadableCollection
from tektite.engine.subscription import check_timeout
from tektite.errors import ConflictError, IncorrectError, TektiteError, UnsupportedError
from tektite.former_names import former_name
from tektite.plan.explanation import Explanation
from tektite.query.builders import derived
from tektite.query.collection import Collection
from tektite.query.columns import ColumnNames
from tektite.unknown_options import explains_options
from tektite.values.words import Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tektite.engine.engine import Engine
    from tektite.engine.live_widget import LiveWidget
    from tektite.engine.view_core import ViewCore


@explains_options
class View(ReadableCollection):
    """A maintained result. Made by `Engine.install`; it is a collection that other views can be built on.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
    >>> _ = sales.insert([("north", 3), ("south", 5)])
    >>> totals
    <View 'totals' (shop: string, amount: int), time 0
      ('south', 5)
      ('north', 3)>
    """

    engine: Engine
    _core: ViewCore
    _kind = "view"

    def __init__(self, engine: Engine, core: ViewCore) -> None:
        super().__init__(engine, core.operator)
        self._core = core

    @property
    def name(self) -> str:
        """The name under which it was installed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.name
        'totals'
        """
        return self._core.name

    @property
    @guarded_by_core
    def time(self) -> int | None:
        """The last epoch that the view has finished; None before its first answer. Reading the view, unless at an earlier time,
        first brings it up to the last epoch that its tables have closed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.time is None
        True
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> totals.rows()[0], totals.time
        (('south', 5), 0)
        """
        core = self._core
        return core.low - 1 if core.low > core.first else None

    @property
    def first(self) -> int:
        """The first epoch that the view answers for.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.first
        0
        """
        return self._core.first

    @property
    @former_name("view.time + 1")
    def low(self) -> int:
        """The first epoch for which the view has no answer yet: `time + 1`, by its former name."""
        return self._core.low

    @property
    def closed(self) -> bool:
        """Whether the view can never change again, because every table it reads has ended.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> sales.finish()
        >>> engine.settle()
        >>> totals.closed
        True
        """
        return self._core.closed

    @property
    def failure(self) -> TektiteError | None:
        """The error that stopped the view, if one did.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.failure is None
        True
        """
        return self._core.failure

    @property
    def error(self) -> TektiteError | None:
        """The error that a read of the view raises: the reason why it stopped, or the row that fails; None if it can be read.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> texts = engine.create_table("texts", {"t": str})
        >>> numbers = engine.create_view("numbers", texts.select(n=tk.col("t").cast(int)))
        >>> _ = texts.insert([("one",)])
        >>> engine.settle()
        >>> type(numbers.error).__name__
        'IncorrectError'
        >>> _ = texts.remove([("one",)])
        >>> engine.settle()
        >>> numbers.error is None
        True
        """
        return self._core.error

    @property
    def current(self) -> bool:
        """Whether the view reflects every epoch that its sources have closed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = totals.rows()
        >>> totals.current
        True
        """
        return self._core.engine.is_current(self._core)

    def snapshot(self, at: int | None = None, wait: bool = True, timeout: float | None = None) -> pa.Table:
        """The result as of the last closed epoch, or of an earlier one that a hold still keeps apart.

        With `wait=False` a view that has fallen behind answers as of the last epoch it has finished. With a `timeout`, a time
        `at` that is not closed yet is waited for, for so many seconds.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> time = sales.insert([("north", 3)])
        >>> totals.snapshot(at=time).to_pylist()
        [{'shop': 'north', 'amount': 3}]
        """
        if timeout is not None:
            return self._snapshot_to_come(at, timeout)
        core = self._core
        with core.engine.dictionary.text_use():
            table = core.decode(core.words(at, wait))
        return table if core.row_order is None else core.row_order(table)

    def rows(self, at: int | None = None, timeout: float | None = None) -> list[tuple[Any, ...]]:
        """The snapshot as Python tuples; `at` and `timeout` are as for `snapshot`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> time = sales.insert([("north", 3)])
        >>> totals.rows(at=time)
        [('north', 3)]
        """
        table = self.snapshot(at, timeout=timeout)
        if not self.schema.names:  # an Arrow table without columns has no rows
            return [()] * int(self._core.words(at, True)[-1].sum())
        return self._tuples(table)

    def _snapshot_to_come(self, at: int | None, timeout: float) -> pa.Table:
        """The snapshot as of a time that may not be closed yet. It stays readable, though others may close further epochs."""
        if at is None:
            raise IncorrectError(
                "a timeout is for a time that is waited for: say which, as in snapshot(at=7, timeout=1)"
            )
        self._core.check_usable()
        check_time(at, f"view {self.name!r}: ")
        with self.engine.hold(self, max(at, self.time or 0)):
            if not self.wait(at, timeout):
                raise ConflictError(
                    f"view {self.name!r} has no answer for time {at} after {timeout} seconds: its last one is as of time "
                    f"{self.time}"
                )
            return self.snapshot(at)

    def wait(self, time: int, timeout: float | None = None) -> bool:
        """Wait until the view answers for a time, for at most `timeout` seconds; whether it does. Other threads may use the
        engine meanwhile. Raises if the view fails or is dropped, or the engine is closed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> view = engine.install("degrees", edges.count(by="src"))
        >>> view.wait(edges.insert([(1, 2)]))
        True
        >>> view.wait(1, timeout=0.01)
        False
        """
        check_timeout(timeout)
        return self._core.wait(time, timeout)

    async def wait_async(self, time: int, timeout: float | None = None) -> bool:
        """`wait` in a task of an event loop, which goes on with its other tasks.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> import asyncio
        >>> async def total():
        ...     await totals.wait_async(sales.insert([("north", 3)]))
        ...     return totals.rows()
        >>> asyncio.run(total())
        [('north', 3)]
        """
        check_timeout(timeout)
        return await self._core.wait_async(time, timeout)

    def _read(self, wait: bool = True, lead: int | None = None, rows: int | None = None) -> Words:
        return self._core.words(None, wait, lead, rows)

    def _table(self, words: Words, rows: int | None = None) -> pa.Table:
        return self._core.decode(words, rows)

    def _head(self, n: int, wait: bool = True) -> pa.Table:
        order = self._core.row_order
        return super()._head(n, wait) if order is None else self.snapshot(wait=wait).slice(0, n)

    def _state(self) -> str:
        core = self._core
        with core.lock.held:
            if core.dropped:
                return ", dropped"
            if core.failure is not None:
                return f", failed: {core.failure}"
            if core.is_stream:
                return ", not kept"
            if not self.schema.names:
                return f", time {core.low - 1}"
            if core.low <= core.first:
                return ", no answer yet"
            behind = "" if core.engine.is_current(core) else ", behind its tables"
            return behind + super()._state()

    def multiplicities(self, at: int | None = None) -> dict[tuple[Any, ...], int]:
        """The snapshot as a mapping from row to multiplicity; these may be negative.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> view = engine.create_view("v", sales.select("shop"))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = sales.insert([("north", 4)])
        >>> view.multiplicities()
        {('south',): 1, ('north',): 2}
        """
        dictionary = self._core.engine.dictionary
        with dictionary.text_use():
            words = self._core.words(at, True)
            width = len(self.schema.names)
            rows = self.schema.decode_rows(np.ascontiguousarray(words[:width]), dictionary)
        found: dict[tuple[Any, ...], int] = {}
        for row, times in zip(rows, words[width + 1].tolist(), strict=True):
            found[row] = found.get(row, 0) + times  # 0.0 and -0.0 are one key of a dict
        return found

    @former_name("view.subscribe()")
    def changes(self, *, history: bool = True) -> Changes:
        """The view's changes from here on, row by row, beginning with its present contents unless `history` is false."""
        return Changes(self.subscribe(snapshot=history and not self._core.is_stream))

    @former_name("view.subscribe(function)")
    @guarded_by_core
    def on_change(self, function: Callable[[pa.Table], None]) -> None:
        """Call a function whenever there are changes, with a table of them (data columns, `time`, `diff`)."""
        core = self._core
        core.check()
        core.engine.finish(core)
        core.check()
        core.call_on_change(function, snapshot=False)

    def persist(self) -> None:
        """Store the view's contents, and its changes from here on, so that other processes can read them: Spark as the data
        source `tektite`. They can once this returns. A view that was persisted by an earlier run goes on from what that has
        stored.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp())
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.persist()
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.sync()
        1
        >>> engine.close()
        """
        self._core.publish()

    @former_name("view.persist()")
    def publish(self) -> None:
        """`persist`, by its former name."""
        self.persist()

    def show(self, rows: int = 20) -> LiveWidget:
        """The view in a notebook, as a table that follows it: its first `rows` rows, with changed cells marked as epochs close.
        It goes on while cells run, and until the view is dropped or the widget's `close` is called. Needs `tektite[notebook]`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> widget = totals.show()
        >>> widget.close()
        """
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise IncorrectError(f"show takes a number of rows from 1 on, not {rows!r}")
        try:
            from tektite.engine.live_widget import LiveWidget
        except ImportError as error:
            raise UnsupportedError(
                f"view {self.name!r}: show needs the package {error.name}: pip install 'tektite[notebook]'. Without it, the view "
                "as the last line of a cell shows its first rows once"
            ) from None
        self._core.check_usable()
        return LiveWidget(self, rows)

    def explain(self) -> Explanation:
        """Explains how the view is maintained: the plan of its definition, its join strategies, and the indexes that it
        reads. If the plan depends on the sizes of what the view reads, for which sizes it was made, and whether it is another
        one by now.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": int, "dst": int})
        >>> degrees = engine.create_view("degrees", edges.count(by="src"))
        >>> print(degrees.explain().splitlines()[1].strip())
        group by src: count = count(*)  (about 1 rows)
        """
        text = self.engine.explain(derived(self._core.definition, self))
        lines = self._core.engine.replanner.about(self._core)
        return Explanation("\n".join([text, *lines]), {**text.data, "decisions": [*text.data["decisions"], *lines]})

    @overload
    def drop(self) -> None: ...

    @overload
    def drop(self, *columns: ColumnNames) -> Collection: ...

    def drop(self, *columns: ColumnNames) -> Collection | None:
        """Remove the view for everybody, and everything that only it used. With columns: the view without these, as of any
        collection.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> totals.drop()
        >>> engine.views
        ()
        """
        if columns:
            return super().drop(*columns)
        self._core.check(failed=False)
        self._core.engine.drop(self.name)
        return None

    def write_changes(
        self,
        format: str,
        path: str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
        spark: SparkSession | None = None,
    ) -> StreamingQuery:
        """Have Spark write the view's changes, with the columns `time` and `diff`, to files or whatever it can stream to.

        The view is persisted first; what it holds comes before what changes. Files and Delta tables get every change
        exactly once, Kafka (as JSON in the column `value`) at least once. Spark looks for changes once a second, or as
        `trigger` says. What was written, and up to where, is in the `checkpoint`, which lies in the engine's storage
        unless told otherwise.
        """
        from tektite.spark.view_frames import write_changes

        return write_changes(self, format, path, options or {}, checkpoint, trigger, spark)
