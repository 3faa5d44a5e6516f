"""Engine, Input and View as users hold them: those below, and what other systems and languages add to them, each loaded
at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tektite.engine import engine, input, view
from tektite.engine.lock import guarded
from tektite.errors import IncorrectError
from tektite.query.collection import ROUND_LIMIT
from tektite.values.types import Int, Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tektite.datalog.evaluate.attributes import Attribute
    from tektite.datalog.evaluate.program import Program
    from tektite.datalog.evaluate.queries import Query
    from tektite.datalog.evaluate.rule_store import Store
    from tektite.query.collection import Collection
    from tektite.spark.follow import Following
    from tektite.spark.progress import EpochProgress
    from tektite.sql import Result, Session
    from tektite.storage.options import Storage
    from tektite.storage.partition import Move
    from tektite.values.schema import Schema


class Input(input.Input):
    __doc__ = input.Input.__doc__

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
        on_progress: Callable[[EpochProgress], None] | None = None,
    ) -> Following:
        """Turn each micro-batch of a Spark stream into an epoch, exactly once.

        Columns are as for `load`; after a load with a `position`, rows up to where it ended are left out. `trigger` is what
        Spark's `DataStreamWriter.trigger` takes, such as {"availableNow": True}. A micro-batch waits while views are more
        than `lag` epochs behind. The stream's checkpoint lies in the engine's storage, or in the folder `checkpoint`. A
        stream with another checkpoint than the one that this input has followed is refused, because it would begin
        again and count rows twice; `reset=True` says that this is meant. `on_progress` is called behind every epoch, from the
        stream's thread, with what the epoch held and took; the last of them are in `recent` of what is returned.
        """
        from tektite.spark.follow import follow

        return follow(
            self, stream, diff, operation, order, position, extra, checkpoint, trigger, lag, reset, on_progress
        )


class View(view.View):
    __doc__ = view.View.__doc__

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
    _rules: Store | None = None

    def __init__(
        self,
        workers: int | None = None,
        *,
        spark: SparkSession | None = None,
        shards: int | None = None,
        storage: str | Path | Storage | None = None,
        merging: str = "default",
        turn: float = 0.05,
        job_rows: int | None = None,
    ) -> None:
        if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
            raise IncorrectError(f"shards must be a positive number, not {shards!r}")
        if None not in (workers, shards) and workers != shards:
            raise IncorrectError(
                f"workers and shards are two names of one number: give one, not {workers} and {shards}"
            )
        if job_rows is not None and (isinstance(job_rows, bool) or not isinstance(job_rows, int) or job_rows < 0):
            raise IncorrectError(f"job_rows must be a number of rows from 0 on, not {job_rows!r}")
        self.spark: SparkSession | None = None
        if spark is not None:
            from tektite.spark.session import session

            self.spark = session(spark)
        self._sql: Session | None = None
        super().__init__(workers if shards is None else shards, storage=storage, merging=merging, turn=turn)
        if self.spark is not None and self.session is not None:
            from tektite.spark.sweep.executor import SparkExecutor

            given = self.spark, self.session, self.dictionary, self.workers, job_rows
            self.run_on(lambda here: SparkExecutor(here, *given))

    def mover(self) -> Move:
        if self.spark is None:
            return super().mover()
        from tektite.spark.resharding import moved_by

        return moved_by(self.spark)

    mover.__doc__ = engine.Engine.mover.__doc__

    def advance(self, to: int | None = None, *, positions: Mapping[str, Mapping[str, Any] | None] | None = None) -> int:
        with self.lock:
            if self._sql is not None:
                self._sql.tick()
            return super().advance(to, positions=positions)

    advance.__doc__ = engine.Engine.advance.__doc__

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
            unique: bool = False,
            required: Sequence[str] = (),
            append: bool = False,
            shard: str | Sequence[str] = (),
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

    @cached_property
    def _attributes(self) -> dict[str, Attribute]:
        return {}

    def _store(self) -> Store:
        if self._rules is None:
            from tektite.datalog.evaluate.rule_store import Store

            self._rules = Store(self)
        return self._rules

    @guarded
    def datalog(
        self,
        text: str,
        *,
        source: str = "program",
        rounds: int = ROUND_LIMIT,
        share: Mapping[str, bool] | None = None,
        joins: str = "auto",
    ) -> Program:
        """Register rules, facts and declarations, in Soufflé's syntax or as EDN. Nothing runs until somebody asks for a view.

        `source` is what errors call the text. `rounds` is how many rounds a recursion with arithmetic may take. `share` says
        for some predicates whether others read one arrangement of their facts (True) or derive them anew (False), where the
        documented policy should not decide. `joins` forces a join strategy for the rules of this text: binary, delta or hector.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edge = engine.input("edge", src=tk.Int, dst=tk.Int)
        >>> program = engine.datalog("reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
        >>> reach = engine.view("reach")
        >>> edge.insert([(1, 2), (2, 3)])
        >>> _ = engine.advance()
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (2, 3)]
        """
        from tektite.datalog.evaluate.program import register

        _check_text(text, "a Datalog program")
        return register(self._store(), text, source, rounds, share, joins)

    @guarded
    def query(
        self,
        text: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        strategy: str = "auto",
        joins: str = "auto",
        **named: Any,
    ) -> Query:
        """Maintain the answer of a goal, `tc("david", ?)`, or of a query `[:find ?b :in ?a :where [?a :knows ?b]]`.

        Parameters (`$x` in a goal, `:in` in a query) get their first values by name, and further ones by `insert` and
        `remove` of what is returned. `strategy` is goal (derive what the arguments ask for), full (derive everything the rules
        say) or auto; the answer's `explain` says what was chosen, and why. `joins` forces a join strategy for the rules that are
        evaluated for this query alone: binary, delta or hector. A parameter of one of these names is given in `arguments`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.datalog('[(friend ?a ?b) [?a :knows ?b]] [(friend ?a ?b) [?b :knows ?a]]')
        >>> knows = engine.attribute("knows", tk.Int)
        >>> engine.transact([(1, "knows", 2), (3, "knows", 1)])
        >>> _ = engine.advance()
        >>> sorted(engine.query("[:find ?b :in ?a :where (friend ?a ?b)]", a=1).rows())
        [(2,), (3,)]
        """
        from tektite.datalog.evaluate.queries import ask

        _check_text(text, "a query")
        return ask(self._store(), text, {**(arguments or {}), **named}, strategy, joins=joins)

    @guarded
    def attribute(
        self,
        name: str,
        value: Type | None = None,
        *,
        cardinality: str | None = None,
        semantics: str | None = None,
        entity: Type = Int,
    ) -> Attribute:
        """Declare an attribute of entities, kept by entity and by value; without a value type it is a property they have.

        What a fact means that is written twice is said by `cardinality` (one or many), or by `semantics`: raw, distinct (as
        which attributes count where nothing is said), cardinality-one, last-write-wins or cardinality-many.
        """
        from tektite.datalog.evaluate.attributes import declare

        made = declare(self, name, value, cardinality, semantics, entity)
        self._attributes[made.name] = made
        return made

    @guarded
    def transact(self, facts: Any) -> None:
        """Write facts of attributes, `[(1, "knows", 2), ("retract", 1, "knows", 3)]` or as EDN; they count when the epoch
        closes. If one is wrong, none is written.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.attribute("name", tk.String), engine.attribute("bot?")
        >>> engine.transact('[1 :name "ann"] [2 :name "bob"] [2 :bot?]')
        >>> _ = engine.advance()
        >>> engine.query("[:find ?name :where [?e :name ?name] (not [?e :bot?])]").rows()
        [('ann',)]
        """
        from tektite.datalog.evaluate.attributes import transact

        if not isinstance(facts, str | Iterable):
            raise IncorrectError(f"facts are EDN or a list of tuples such as (1, 'knows', 2), not {facts!r}")
        known = {name: found for name, found in self._attributes.items() if name in self.tables}
        transact(known, facts)

    @guarded
    def view(self, name: str) -> View:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet."""
        found = None
        if self._rules is not None and name not in self.views and self._rules.known(name):
            (found,) = self._rules.views([name])
        found = super().view(name) if found is None else found
        assert isinstance(found, View)
        return found

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

        with self.lock:
            return run(self, text, parameters)


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise IncorrectError(f"{what} is text, not {text!r}")
