"""Engine, Input and View as users hold them: those below, and what other systems and languages add to them, each loaded
at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tektite import engine, inputs, views

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tektite.collection import Collection
    from tektite.schema import Schema
    from tektite.spark.follow import Following
    from tektite.sql import Result
    from tektite.storage.options import Storage
    from tektite.types import Type


class Input(inputs.Input):
    __doc__ = inputs.Input.__doc__

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
        extra: str = "error",
        progress: bool | Callable[[int, int], None] | None = None,
    ) -> int:
        """Add the rows of a Spark DataFrame as one epoch, and close it; how many rows there were.

        Spark's tasks encode the rows. Columns are matched by name. `diff` or `operation` name columns that say what to do
        with a row (otherwise it is inserted); `order` one that says which of several rows with one key comes last.
        `position` names a column that grows with the source (an offset, a version): `follow` goes on where the load ended,
        and loading again adds only what is new; rows behind `upto` are left to the stream. A load that is named by `once`
        happens once. `extra="ignore"` leaves out columns that the input lacks. `progress` shows a bar (by default on a
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
        extra: str = "error",
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
        lag: int = 0,
        reset: bool = False,
    ) -> Following:
        """Turn each micro-batch of a Spark stream into an epoch, exactly once.

        Columns are as for `load`; after a load with a `position`, rows up to where it ended are left out. `trigger` is what
        Spark's `DataStreamWriter.trigger` takes, such as {"availableNow": True}. A micro-batch waits while views are more
        than `lag` epochs behind. The stream's checkpoint lies in the engine's storage, or in the folder `checkpoint`. A
        stream with another checkpoint than the one that this input has followed is refused, because it would begin
        again and count rows twice; `reset=True` says that this is meant.
        """
        from tektite.spark.follow import follow

        return follow(self, stream, diff, operation, order, position, extra, checkpoint, trigger, lag, reset)


class View(views.View):
    __doc__ = views.View.__doc__

    def to_spark(self, spark: SparkSession | None = None, *, at: int | None = None) -> DataFrame:
        """The snapshot as a Spark DataFrame, in the engine's session or another one.

        Timestamps come as Spark's `timestamp`, moments that are shown in the session's time zone.
        """
        from tektite.spark.out import to_spark

        return to_spark(self, spark, at)

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

        The view is published first; what it holds comes before what changes. Files and Delta tables get every change
        exactly once, Kafka (as JSON in the column `value`) at least once. Spark looks for changes once a second, or as
        `trigger` says. What was written, and up to where, is in the `checkpoint`, which lies in the engine's storage
        unless told otherwise.
        """
        from tektite.spark.out import write_changes

        return write_changes(self, format, path, options or {}, checkpoint, trigger, spark)


class Engine(engine.Engine):
    __doc__ = engine.Engine.__doc__

    input_type = Input
    view_type = View

    def __init__(
        self,
        workers: int | None = None,
        *,
        spark: SparkSession | None = None,
        shards: int | None = None,
        storage: str | Path | Storage | None = None,
        merging: str = "default",
        turn: float = 0.05,
    ) -> None:
        self.spark: SparkSession | None = None
        if spark is not None:
            from tektite.spark.session import session

            self.spark = session(spark)
        super().__init__(workers if shards is None else shards, storage=storage, merging=merging, turn=turn)

    if TYPE_CHECKING:
        # What the engine below makes are the inputs and views of this module.

        def input(
            self,
            name: str,
            schema: Schema | Mapping[str, Type] | None = None,
            /,
            *,
            key: str | Sequence[str] = (),
            semantics: str = "bag",
            stream: bool = False,
            checked: bool = True,
            **columns: Type,
        ) -> Input: ...

        def table(self, name: str) -> Input: ...

        def install(
            self,
            name: str,
            collection: Collection,
            *,
            key: str | Sequence[str] = (),
            keep: bool = True,
            on_change: Callable[[pa.Table], None] | None = None,
        ) -> View: ...

        def view(self, name: str) -> View: ...

    def sql(self, text: str, **parameters: Any) -> Result:
        """Run one or several statements of SQL, separated by semicolons; the last one's result.

        `parameters` are the values of `$name` in the text.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.sql("CREATE TABLE sales (shop varchar, amount int)")
        >>> totals = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
        >>> view = engine.sql(f"CREATE MATERIALIZED VIEW totals AS {totals}").view
        >>> engine.sql("INSERT INTO sales VALUES ('north', 3), ('north', 4), ('south', 5)").message
        'INSERT 0 3'
        >>> sorted(view.rows())
        [('north', 7), ('south', 5)]
        >>> list(engine.sql("SELECT total FROM totals WHERE shop = $shop", shop="south"))
        [(5,)]
        """
        from tektite.sql import run

        return run(self, text, parameters)
