"""Engine as users hold it: inputs, views, the arrangements they share, time and storage. `languages` has its SQL and Datalog.

Spark is imported by the methods that need it, so that `import tektite` does not load it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, get_args

import pyarrow as pa

from tektite.dataflow.journal import Sweep
from tektite.engine.catalog import RecordingCatalog
from tektite.engine.constants import given_values
from tektite.engine.constraints import check_time
from tektite.engine.core import core_of
from tektite.engine.declarations import IfExists, Mode, create_table, create_view, table_description
from tektite.engine.engine_core import EngineCore, by_name
from tektite.engine.former_tables import keyword_schema, table_options
from tektite.engine.holds import Held, Index, IndexInfo
from tektite.engine.input_core import InputCore
from tektite.engine.languages import LanguageMethods
from tektite.engine.lock import guarded_by_core
from tektite.engine.profile import Profile, profiled
from tektite.engine.session import Session, Transaction
from tektite.engine.table import Table
from tektite.engine.ticker import Ticker, seconds_from
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.expr import Expr
from tektite.expr.other_names import advice
from tektite.kernels.ready import ensure_compiled
from tektite.query.collection import Collection
from tektite.query.columns import column_numbers
from tektite.query.former_names import former_name, former_options, without_former
from tektite.runtime.memory_limit import bytes_from
from tektite.storage.open_storage import Position
from tektite.storage.options import Storage
from tektite.storage.partition import Move, move_here
from tektite.trace.trace import Hold
from tektite.values.html import html_table, html_text
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tektite.datalog.evaluate.attributes import Attribute

Merging = Literal["eager", "default", "lazy"]
"""How eagerly traces are merged."""
MERGING: tuple[Merging, ...] = get_args(Merging)


OTHER_NAMES = {
    "add_table": "create_table(name, {'column': type})",
    "begin": "transaction(), as in `with engine.transaction():`",
    "commit": "advance(), or transaction()",
    "execute": "sql(text)",
    "from_arrow": "create_table(name, table.schema), then insert(table)",
    "from_pandas": "create_table(name, {'column': type}), then insert(frame)",
    "read_csv": "sql(\"COPY t FROM 'file.csv'\")",
    "read_parquet": "sql(\"COPY t FROM 'file.parquet'\")",
    "register": "create_table(name, schema), then insert(frame)",
    "create_materialized_view": "create_view(name, query)",
    "list_tables": "tables",
}
"""What other libraries call the methods of an engine."""


class Engine(LanguageMethods):
    """Keeps standing queries up to date in this process, and lets them share the indexes they need.

    `workers` is the number of shards, each maintained by a thread (one, or as many as are stored, where left out); answers do
    not depend on it. With `storage`, a path or a `tektite.Storage`, inputs outlive the process: an engine on
    the same storage begins with what was durable. `merging` is how eagerly traces are merged: eager, default or lazy. `turn`
    is how many seconds a view may take at a time before the others get theirs. With a `spark` session and a storage, sweeps
    of more than `job_rows` rows run as jobs of the session. Outside of a transaction every write is an epoch of its own; with
    `autocommit=False` writes wait for the next `advance`, so that a program decides what belongs to an epoch. `memory_limit`, a
    number of bytes or a text such as "4 GiB", is what the engine plans with (three quarters of what the process may use, where
    left out): indexes that do not fit lie in mapped files. `now()` moves when an epoch closes; with `clock`, a number of
    seconds or a text such as "1s", one closes that often by itself while some query reads the time.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> degrees = engine.install("degrees", edges.count(by="src"))
    >>> edges.insert([(1, 2), (1, 3), (2, 3)])
    0
    >>> sorted(degrees.rows())
    [(1, 2), (2, 1)]
    """

    @former_options(shards="workers")
    def __init__(
        self,
        workers: int | None = None,
        *,
        spark: SparkSession | None = None,
        storage: str | Path | Storage | None = None,
        merging: Merging = "default",
        turn: float = 0.05,
        job_rows: int | None = None,
        autocommit: bool = True,
        memory_limit: int | str | None = None,
        clock: float | str | datetime.timedelta | None = None,
    ) -> None:
        if job_rows is not None and (isinstance(job_rows, bool) or not isinstance(job_rows, int) or job_rows < 0):
            raise IncorrectError(f"job_rows must be a number of rows from 0 on, not {job_rows!r}")
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise IncorrectError(f"workers must be a positive number, not {workers!r}")
        if merging not in MERGING:
            raise IncorrectError(f"merging is one of {', '.join(MERGING)}, not {merging!r}")
        move: Move = move_here
        if spark is not None:
            from tektite.spark.resharding import moved_by
            from tektite.spark.session import session

            spark = session(spark)
            move = moved_by(spark)
        ticks = None if clock is None else seconds_from(clock)
        self._spark = spark
        self._attributes: dict[str, Attribute] = {}
        ensure_compiled()
        self._core = core = EngineCore(
            self,
            workers,
            None if storage is None else Storage.of(storage),
            merging,
            turn,
            move,
            autocommit,
            None if memory_limit is None else bytes_from(memory_limit, "memory_limit"),
        )
        if spark is not None and core.storage is not None:
            from tektite.spark.sweep.executor import SparkExecutor

            given = spark, core.storage, core.dictionary, core.workers, job_rows
            core.run_on(lambda here: SparkExecutor(here, *given))
        if ticks is not None:
            Ticker(core, ticks)

    @property
    def workers(self) -> int:
        """The number of shards, each maintained by a thread.

        >>> import tektite as tk
        >>> tk.Engine(workers=2).workers
        2
        """
        return self._core.workers

    @property
    def spark(self) -> SparkSession | None:
        """The Spark session that the engine was given, if it was.

        >>> import tektite as tk
        >>> tk.Engine().spark is None
        True
        """
        return self._spark

    # ------------------------------------------------------------------ inputs and time

    @guarded_by_core
    def create_table(
        self,
        name: str,
        schema: Schema | Mapping[str, Any] | pa.Schema,
        *,
        mode: Mode = "bag",
        primary_key: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        required: str | Sequence[str] = (),
        shard_by: str | Sequence[str] = (),
        unique: str | Sequence[str | Sequence[str]] = (),
        checks: Expr | Sequence[Expr] | Mapping[str, Expr] = (),
        checked: bool = True,
        if_exists: IfExists = "error",
    ) -> Table:
        """A new table. Its columns are a mapping from names to types; a type is `tk.Int`, `int`, "bigint" or Arrow's.

        | mode | |
        |---|---|
        | bag | rows have multiplicities; removing one that is not there is refused |
        | set | a row is there or not; inserting it again, or removing an absent one, changes nothing |
        | upsert | a row replaces the one with the same `primary_key` |
        | append | rows are never removed |
        | stream | keeps no history: a view sees the rows that arrive after it was created |

        No two rows may have the same `primary_key`, nor NULL in it: a write that would make two is refused (of a stream, which
        keeps nothing to compare with, it is believed). Without one, `order_by` says by which columns the table's own index is
        ordered. The columns in `required` may not be NULL. `unique` lists further columns, or lists of columns, that no two rows
        share unless one is NULL; `checks` are conditions that no row makes false, by name or in a list. With several workers
        the key decides which of them has a row;
        `shard_by` names the columns at its head that do so alone. `checked=False` trusts removals and unique keys, and does
        not look them up. `if_exists="keep"` returns an equal table that is there already, and "replace" drops it before.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> prices = engine.create_table("prices", {"item": str, "price": "decimal(9, 2)"}, mode="upsert", primary_key="item")
        >>> _ = prices.insert([("tea", 3), ("salt", 1)])
        >>> _ = prices.insert([("tea", 4)])
        >>> engine.sql("SELECT * FROM prices ORDER BY item").rows()
        [('salt', Decimal('1.00')), ('tea', Decimal('4.00'))]
        >>> users = engine.create_table("users", {"id": int, "mail": str}, unique="mail", checks={"ids": tk.col("id") > 0})
        >>> users.insert([(1, "a@b.c"), (2, "a@b.c")])
        Traceback (most recent call last):
        tektite.errors.ConflictError: table 'users': there would be two rows with mail = 'a@b.c' at time 2, which ...
        """
        declared = table_description(
            name, schema, mode, primary_key, order_by, required, shard_by, checked, unique, checks
        )
        return create_table(self._core, name, declared, if_exists)

    @former_name("engine.create_table(name, {column: type})")
    def input(
        self,
        name: str,
        schema: Schema | Mapping[str, Type] | None = None,
        /,
        *,
        checked: bool = True,
        required: Sequence[str] = (),
        key: str | Sequence[str] = (),
        semantics: str = "bag",
        stream: bool = False,
        unique: bool = False,
        append: bool = False,
        shard: str | Sequence[str] = (),
        **columns: Type,
    ) -> Table:
        """`create_table`, by its former name and with its former options."""
        former = {
            "key": key, "semantics": semantics, "stream": stream, "unique": unique, "append": append, "shard": shard,
            "checked": checked, "required": required,
        }  # fmt: skip
        found = keyword_schema(name, schema, columns, tuple(former.values()))
        return self.create_table(name, found, **table_options(name, former))

    @property
    @guarded_by_core
    def next_epoch(self) -> int:
        """The epoch that the next commit closes. All before it can be read.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.next_epoch
        0
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.next_epoch
        1
        """
        return self._core.epoch

    @property
    @former_name("engine.next_epoch")
    def epoch(self) -> int:
        """`next_epoch`, by its former name."""
        return self.next_epoch

    def advance(self, to: int | None = None, *, positions: Mapping[str, Position | None] | None = None) -> int:
        """Close the open epoch of every input (or all epochs before `to`) and bring the views up to date. In an engine that does
        not commit by itself (`autocommit=False`), it holds what was written since the last one; otherwise it lets time pass.

        A view that needs more than its turn goes on in the next one; the others do not wait for it. Reading a view
        completes it. Returns the epoch that was closed, the last one of them: the time at which what was written can be read.
        `positions` says, by the name of a source, how far these epochs cover it
        (any dict that JSON can hold): they become durable together with the epochs, and are found in `positions` at the
        next start.

        >>> import tektite as tk
        >>> engine = tk.Engine(autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> time = engine.advance()
        >>> time, sales.rows(time)
        (0, [('north', 3)])
        """
        self._core.check_no_transaction()
        return self._core.commit(self._core.writes, to, positions)

    def session(self) -> Session:
        """A session of its own, for a thread, a task or a connection: with it, transactions do not meet those of others.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.session() as one:
        ...     with one.transaction():
        ...         _ = sales.insert([("north", 3)])
        >>> sales.rows()
        [('north', 3)]
        """
        self._core.check_running()
        return Session(self._core)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction around a block of Python, SQL and Datalog. Its end commits everything in one epoch, and an exception
        rolls everything back. Inside, SQL reads what the tables held when it began, with the transaction's own writes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> accounts = engine.create_table("accounts", {"name": tk.String, "balance": tk.Int}, mode="upsert", primary_key="name")
        >>> total = engine.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM accounts").view
        >>> with engine.transaction() as opening:
        ...     accounts.insert([("ann", 5), ("bob", 0)])
        >>> with engine.transaction() as transfer:
        ...     accounts.insert([("ann", 2)])
        ...     engine.sql("UPDATE accounts SET balance = balance + 3 WHERE name = 'bob'").message
        'UPDATE 1'
        >>> total.rows(at=transfer.time)
        [(5,)]
        """
        with self._core.sessions.current().transaction() as begun:
            yield begun

    def run(self) -> bool:
        """Give every view one more turn; whether all of them are up to date.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> while not engine.run():
        ...     pass
        >>> totals.current
        True
        """
        return self._core.run()

    def settle(self) -> None:
        """Bring every view up to date, whatever time that takes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.settle()
        >>> totals.current
        True
        """
        while not self.run():
            pass

    def finish(self, view: View) -> None:
        """Bring one view up to date with the epochs that are closed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.finish(totals)
        >>> totals.time
        0
        """
        self._core.finish(core_of(view))

    @property
    def progress(self) -> list[Sweep]:
        """The last sweeps: which views and shared arrangements were brought up to which epoch, of how many rows, where that ran
        and why, and how long it took. An engine without Spark takes them down from the first call on.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> engine.progress
        []
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = totals.rows()
        >>> engine.progress[-1].rows
        2
        """
        return list(self._core.coordinator.watch().sweeps)

    def on_sweep(self, listener: Callable[[Sweep], None]) -> None:
        """Call a function with each sweep when it has ended.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.on_sweep(lambda sweep: print(sweep.name, sweep.low, sweep.high, sweep.rows, sweep.where))
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> degrees = engine.install("degrees", edges.count(by="src"))
        >>> _ = edges.insert([(1, 2), (1, 3), (2, 3)])
        degrees 0 1 3 driver
        """
        self._core.coordinator.watch().listeners.append(listener)

    # ------------------------------------------------------------------ storage

    @property
    @former_name("engine.next_epoch")
    def visible(self) -> int:
        """`next_epoch`, by a former name."""
        return self.next_epoch

    def profile(self) -> AbstractContextManager[Profile]:
        """Counts what every operator does within a block: how long it runs, and how many rows it receives and sends.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> with engine.profile() as profile:
        ...     _ = sales.insert([("north", 3), ("south", 5)])
        >>> sum(operator.runs for operator in profile.operators) > 0
        True
        """
        return profiled(self._core)

    @property
    def durable(self) -> int:
        """The first epoch that a crash would lose: all before it are in the storage. 0 without one.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp())
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.sync()
        1
        >>> engine.durable
        1
        >>> engine.close()
        """
        return self._core.durable

    def sync(self, timeout: float | None = None) -> int:
        """Wait until every closed epoch is durable, for at most `timeout` seconds; the value of `durable` then. Published views
        that have fallen behind are brought up to date before.

        If the storage cannot be written, an error says why; what waits is kept in memory and tried again.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp())
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.sync(timeout=60)
        1
        >>> engine.close()
        """
        return self._core.sync(timeout)

    @property
    def positions(self) -> dict[str, dict[str, Any]]:
        """The positions of sources as they were last given to `advance`, by this process or one before it.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp(), autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> _ = engine.advance(positions={"orders.csv": {"line": 17}})
        >>> engine.positions
        {'orders.csv': {'line': 17}}
        >>> engine.close()
        """
        storage = self._core.storage
        return {} if storage is None else dict(storage.positions)

    # ------------------------------------------------------------------ views

    @guarded_by_core
    def create_view(
        self,
        name: str,
        query: Collection | str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        order_by: str | Sequence[str] = (),
        keep: bool = True,
        if_exists: IfExists = "error",
        limit: int | str | None = None,
    ) -> View:
        """Keep the answer of a query up to date under a name. The query is a collection, or SQL with its `params`.

        `order_by` says by which leading columns the answer is ordered, for those that will join with it. With `keep=False` only
        its changes are of interest: it is not kept, and cannot be read as a snapshot. `if_exists="keep"` returns a view with the
        same definition that is there already, and "replace" drops it before, so that a cell of a notebook can be run again. A
        view that keeps more than `limit`, a number of bytes or a text such as "100 MiB", fails; others do not notice.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
        >>> _ = sales.insert([("north", 3), ("north", 4)])
        >>> totals.rows()
        [('north', 7)]
        """
        found = self.from_sql(query, params) if isinstance(query, str) else query
        return create_view(self._core, name, found, order_by, keep, if_exists, _limit(limit))

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a table that nothing reads, and what was stored of it. With `if_exists` it need not be there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.drop_table("sales")
        >>> engine.tables
        ()
        >>> engine.drop_table("sales", if_exists=True)
        """
        if name in self.tables or not if_exists:
            self.table(name)
            self.drop(name)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a view, and everything that only it used. With `if_exists` it need not be there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> engine.drop_view("totals")
        >>> engine.views
        ()
        """
        if name in self.views or not if_exists:
            self.view(name)
            self.drop(name)

    @former_options(key="order_by")
    def install(
        self,
        name: str,
        collection: Collection,
        *,
        order_by: str | Sequence[str] = (),
        keep: bool = True,
        on_change: Callable[[pa.Table], None] | None = None,
        limit: int | str | None = None,
    ) -> View:
        """Keep a collection's contents up to date under a name. It reads the indexes that are there already.

        `order_by` says by which leading columns the result is ordered, for those that will join with it. With `keep=False`
        only the changes of the result are of interest: it is not kept, and cannot be read as a snapshot. `on_change`
        is called after each sweep with a table of the changes (data columns, `time`, `diff`), the first answer included. A view
        that keeps more than `limit` bytes for itself, or for an index that is made for it, fails. Others do not notice.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> numbers = engine.create_table("numbers", {"n": tk.Int})
        >>> pairs = numbers.join(numbers.select(m="n"), how="cross")
        >>> squares = engine.install("squares", pairs, limit="1 MiB")
        >>> _ = numbers.insert([(n,) for n in range(1000)])
        >>> engine.settle()
        >>> print(squares.failure)
        view 'squares': it keeps ... MiB, and its limit is 1.0 MiB: raise the limit, or keep fewer rows or columns
        """
        (view,) = self._core.install_together(
            {name: collection}, {name: order_by}, keep, on_change, limit=_limit(limit)
        )
        return view

    @guarded_by_core
    def explain(self, collection: Collection) -> str:
        """How a collection would be kept up to date: join strategies and orders, and the arrangements it would read.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> print(engine.explain(sales.filter(tk.col("amount") > 3)))
        plan
          filter amount > 3  (about 1 rows)
            read sales  (about 1 rows)
        """
        return self._core.catalog.explain(collection.operator)

    def collect(self, collection: Collection) -> pa.Table:
        """The rows of a query as of the last closed epoch, computed once; what `Collection.collect` returns.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.collect(sales.filter(tk.col("amount") > 3)).to_pylist()
        [{'shop': 'south', 'amount': 5}]
        """
        return self._core.collect(collection)

    @guarded_by_core
    def values(self, data: Any, schema: Schema | Mapping[str, Any] | pa.Schema | None = None) -> Collection:
        """A collection that always holds the given rows: a mapping of columns, a list of dicts, an Arrow table or a data frame.
        Their types are those that Arrow finds, or those of `schema`, which rows without names need.

        The rows are part of the query. Many rows, and rows that change, belong in a table.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> rates = engine.values({"currency": ["EUR", "SEK"], "rate": [1.0, 0.09]})
        >>> sales = engine.create_table("sales", {"currency": str, "amount": int})
        >>> _ = sales.insert([("SEK", 200), ("EUR", 3)])
        >>> euros = sales.join(rates, on="currency").select(euros=tk.col("amount") * tk.col("rate"))
        >>> euros.agg(tk.sum("euros")).collect().to_pylist()
        [{'euros': 21.0}]
        >>> engine.values([(1, "one")], {"n": int, "name": str})
        <Collection (n: int, name: string)>
        """
        return given_values(self, data, schema)

    @property
    @guarded_by_core
    def failures(self) -> dict[str, TektiteError]:
        """The views that cannot be read, by name, each with the error that a read raises: those that have stopped
        (`View.failure`), and those that depend on a row which fails (`View.error`).

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> texts = engine.create_table("texts", {"text": tk.String})
        >>> _ = engine.install("numbers", texts.select(number=tk.col("text").cast(tk.Int)))
        >>> _ = texts.insert([("one",)])
        >>> list(engine.failures)
        ['numbers']
        >>> _ = texts.remove([("one",)])
        >>> engine.failures
        {}
        """
        found = ((name, view.error) for name, view in self._core.views.items())
        return {name: error for name, error in found if error is not None}

    @guarded_by_core
    def drop(self, name: str) -> None:
        """Remove a view, and everything that only it used; or an input that nothing reads. What was stored of it goes too.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> engine.drop("totals")
        >>> engine.views
        ()
        """
        if name not in self._core.inputs:
            self.view(name)  # a rule's view that nobody has asked for, too, is one that can be dropped
        self._core.drop(name)

    @guarded_by_core
    def view(self, name: str) -> View:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.view("totals").lookup("north")
        [('north', 3)]
        """
        found = None if name in self._core.views else self._core.hooks.build_view(name)
        return by_name(self._core.views, name, "view").facade if found is None else found

    def table(self, name: str) -> Table:
        """A table by its name, also one that says something about the engine itself, such as `system.views`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> sorted(engine.table("sales").rows())
        [('north', 3), ('south', 5)]
        >>> engine.table("system.tables").select("name", "rows").collect().to_pylist()
        [{'name': 'sales', 'rows': 2}]
        """
        system = self._core.system.table(name)
        return by_name(self._core.inputs, name, "table").facade if system is None else system

    @property
    @guarded_by_core
    def views(self) -> tuple[str, ...]:
        """The names of all views.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> engine.views
        ('totals',)
        """
        return tuple(name for name in self._core.views if not name.startswith("__"))

    @property
    @guarded_by_core
    def tables(self) -> tuple[str, ...]:
        """The names of all tables.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.tables
        ('sales',)
        """
        known = self._core.system.names()
        return tuple(name for name in self._core.inputs if not name.startswith("__") and name not in known)

    @guarded_by_core
    def hold(self, what: Table | View, at: int | None = None) -> Held:
        """Keep every time from `at` on (the last closed epoch, where left out) readable until the hold is released.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> time = sales.insert([("north", 3)])
        >>> with engine.hold(sales, time):
        ...     _ = sales.insert([("south", 5)])
        ...     print(sales.rows(time), len(sales))
        [('north', 3)] 2
        """
        if not isinstance(what, Table | View):
            raise IncorrectError(f"hold takes a table or a view, not {what!r}")
        if at is not None:
            check_time(at)
        source = core_of(what)
        if source.is_stream:
            raise ConflictError(f"{source.name!r} keeps no history that could be held")
        since = min((t[0] for t in source.trace.since()), default=0)
        epoch = max(source.low - 1, 0) if at is None else at
        if epoch < since:
            raise IncorrectError(f"{source.name!r} can be held from time {since} on, not from {epoch}")
        return Held(Hold(source.trace, lambda: ((epoch,),)), epoch)

    @guarded_by_core
    def create_index(self, collection: Collection, by: str | Sequence[str]) -> Index:
        """Keep a shared index of a table, a view or a query, whether or not a view reads it, until it is dropped. So the next
        query that looks rows up by these columns finds the index there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> index = engine.create_index(edges, by="dst")
        >>> index
        <Index edges by (dst)>
        >>> [(info.name, info.columns) for info in engine.indexes()]
        [('edges', ('src', 'dst')), ('edges by (dst)', ('dst', 'src'))]
        >>> index.drop()
        >>> [info.name for info in engine.indexes()]
        ['edges']
        """
        if not isinstance(collection, Collection):
            raise IncorrectError(
                f"create_index takes a table, a view or a query, not {collection!r}; engine.table(name) and "
                "engine.view(name) find one by its name"
            )
        catalog = self._core.catalog
        catalog.clean_up()
        lead = column_numbers(collection.schema, by)
        names = ", ".join([collection.schema.names[column] for column in lead])
        reader = catalog.begun(catalog.new_flow(f"index by ({names})"))
        try:
            RecordingCatalog(catalog, reader).arrangement(collection.operator, lead, None, len(lead))
        except BaseException:
            catalog.abandon(reader)
            raise
        catalog.finished(reader)
        title = getattr(collection, "name", "a query") if isinstance(collection, Table | View) else "a query"
        return Index(self._core, reader, f"{title} by ({names})")

    @former_name("engine.create_index(collection, by), or collection.create_index(by)")
    def keep(self, collection: Collection, by: str | Sequence[str]) -> Index:
        """`create_index`, by its former name."""
        return self.create_index(collection, by)

    @guarded_by_core
    def indexes(self, of: Table | View | None = None) -> list[IndexInfo]:
        """Every shared index, with its size and its readers; or those of one table or view.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> [(index.name, index.columns) for index in engine.indexes()]
        [('sales', ('shop', 'amount')), ('totals', ('shop', 'amount'))]
        """
        found = []
        for entry in self._core.catalog.entries:
            if of is not None and entry.collection != of.operator.fingerprint:
                continue
            trace = entry.trace
            since = min((t[0] for t in trace.since()), default=entry.source.low)
            found.append(
                IndexInfo(
                    entry.name, entry.column_names, trace.rows, trace.batches, trace.bytes, since, entry.source.low,
                    tuple(sorted(reader.name for reader in entry.readers)),
                )
            )  # fmt: skip
        return found

    @former_name("engine.indexes()")
    def arrangements(self, of: Table | View | None = None) -> list[IndexInfo]:
        """`indexes`, by its former name."""
        return self.indexes(of)

    @guarded_by_core
    def idle(self, fuel: int = 1 << 20) -> bool:
        """Spend some work on merging and compaction, then on texts that nobody uses; whether there is more to do. For when
        nothing else is.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> while engine.idle():
        ...     pass
        """
        return any([trace.idle(fuel) for trace in self._core.traces()]) or self._core.texts.idle()

    @property
    def bytes(self) -> int:
        """Memory of everything that is kept indexed: the shared arrangements, and what views keep for themselves.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.bytes > 0
        True
        """
        return self._core.bytes

    def close(self, *, discard: bool = False) -> None:
        """Stop what feeds the engine, make every closed epoch durable if there is a storage, drop every view, and stop the
        threads. Closing twice is harmless.

        If the storage cannot be written, an error says why, and the engine stays open: close it again, or with `discard`,
        which gives up epochs that are not durable.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.close()
        >>> engine.create_table("t", {"x": int})
        Traceback (most recent call last):
        tektite.errors.ConflictError: the engine is closed: make another one
        """
        self._core.close(discard)

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"Engine has no {name!r}{advice(name, OTHER_NAMES)}")

    def __dir__(self) -> list[str]:
        return without_former(type(self), super().__dir__())

    def __repr__(self) -> str:
        core = self._core
        state = (
            "closed" if core.is_closed else f"{len(self.tables)} tables, {len(self.views)} views, epoch {core.epoch}"
        )
        return f"<Engine: {state}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: tables and views with their columns and about how many rows they hold."""
        core = self._core
        if core.is_closed:
            return html_text(repr(self))
        with core.lock.held:
            found: list[tuple[str, InputCore | ViewCore]] = [("table", core.inputs[name]) for name in self.tables]
            found += [("view", core.views[name]) for name in self.views if name in core.views]
            rows = [(source.name, kind, ", ".join(source.schema.names), source.trace.rows) for kind, source in found]
        return html_table(["name", "kind", "columns", "rows, about"], rows, f"an engine at epoch {core.epoch}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _limit(limit: int | str | None) -> int | None:
    return None if limit is None else bytes_from(limit, "limit")
