"""Engine as users hold it: tables and views. Its other methods are in `epoch_methods`, `index_methods` and `languages`.

Spark is imported by the methods that need it, so that `import tektite` does not load it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, get_args

import pyarrow as pa

from tektite.client_protocol import IfExists, Mode
from tektite.engine.constants import given_values
from tektite.engine.declarations import create_view, filled_table, table_description
from tektite.engine.engine_core import EngineCore
from tektite.engine.epoch_methods import EpochMethods
from tektite.engine.former_tables import keyword_schema, table_options
from tektite.engine.index_methods import IndexMethods
from tektite.engine.input_core import InputCore
from tektite.engine.languages import LanguageMethods
from tektite.engine.lock import guarded_by_core
from tektite.engine.names import by_name
from tektite.engine.other_names import instead_of
from tektite.engine.serving import ServingMethods
from tektite.engine.table import Table
from tektite.engine.ticker import Ticker, seconds_from
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.errors import IncorrectError, TektiteError
from tektite.expr import Expr
from tektite.former_names import former_name, former_options, without_former
from tektite.kernels.ready import ensure_compiled
from tektite.plan.explanation import Explanation
from tektite.query.collection import Collection
from tektite.query.derived import check_function
from tektite.query.limits import Sorted
from tektite.refused_operators import NamesAlone
from tektite.runtime.memory_limit import bytes_from
from tektite.storage.options import Storage
from tektite.storage.partition import Move, move_here
from tektite.unknown_options import explains_options
from tektite.values.arguments import truth_value, whole_number
from tektite.values.frames import ArrowStream, rows_given
from tektite.values.html import html_table, html_text
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tektite.datalog.evaluate.attributes import Attribute

Merging = Literal["eager", "default", "lazy"]
"""How eagerly traces are merged."""
MERGING: tuple[Merging, ...] = get_args(Merging)


@explains_options
class Engine(EpochMethods, IndexMethods, LanguageMethods, ServingMethods):
    """Keeps standing queries up to date in this process, and lets them share the indexes they need.

    `workers` is the number of shards, each maintained by a thread (one, or as many as are stored, where left out); answers do
    not depend on it. With `storage`, a path or a `tektite.Storage`, tables outlive the process: an engine on
    the same storage begins with what was durable. `merging` is how eagerly traces are merged: eager, default or lazy. `turn`
    is how many seconds a view may take at a time before the others get theirs. With a `spark` session and a storage, sweeps
    of more than `job_rows` rows run as jobs of the session. Outside of a transaction every write is an epoch of its own; with
    `autocommit=False` writes wait for the next `advance`, so that a program decides what belongs to an epoch. `memory_limit`, a
    number of bytes or a text such as "4 GiB", is what the engine plans with (three quarters of what the process may use, where
    left out): indexes that do not fit lie in mapped files. `now()` moves when an epoch closes; with `clock`, a number of
    seconds or a text such as "1s", one closes that often by itself while some query reads the time. A view whose order of joins
    no longer suits the sizes of its tables gets another plan while it runs, unless `replan` is False.

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
        replan: bool = True,
    ) -> None:
        if job_rows is not None and (isinstance(job_rows, bool) or not isinstance(job_rows, int) or job_rows < 0):
            raise IncorrectError(f"job_rows must be a number of rows from 0 on, not {job_rows!r}")
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            given: Any = workers
            path = f"; a path is storage={given!r}" if isinstance(given, str | Path) else ""
            raise IncorrectError(f"workers must be a positive number, not {workers!r}{path}")
        if isinstance(turn, bool) or not isinstance(turn, int | float) or not turn >= 0:
            raise IncorrectError(f"turn is a number of seconds from 0 on, not {turn!r}")
        truth_value(autocommit, "autocommit")
        truth_value(replan, "replan")
        if merging not in MERGING:
            raise IncorrectError(f"merging is one of {', '.join(MERGING)}, not {merging!r}")
        move: Move = move_here
        self._spark = spark
        if spark is not None:
            from tektite.spark.resharding import moved_by
            from tektite.spark.session import session

            spark = session(spark)
            move = moved_by(spark)
        ticks = None if clock is None else seconds_from(clock)
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
            replan,
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

    # ------------------------------------------------------------------ tables

    @guarded_by_core
    def create_table(
        self,
        name: str,
        schema: Schema | Mapping[str, Any] | pa.Schema | ArrowStream | Collection | list[dict[str, Any]],
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
        """A new table. Its columns are a mapping from names to types; a type is `tk.Int`, `int`, "bigint" or Arrow's. Instead of
        a schema it takes rows (a pandas or Polars DataFrame without its index, an Arrow table, a mapping of columns, a list of
        dicts, a query or a view): then it has their columns and begins with them. A table that was there already, or was stored,
        keeps its own.

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
        not look them up. `if_exists="keep"` returns an equal table that is there already. "replace" drops it before, or
        empties it if it is equal and views read it: they follow.

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
        >>> import pandas as pd
        >>> engine.create_table("stock", pd.DataFrame({"item": ["tea", "salt"], "pieces": [3, 7]}), primary_key="item")
        <Table 'stock' (item: string, pieces: int), time 2
          ('salt', 7)
          ('tea', 3)>
        """
        rows = rows_given(schema)
        columns: Any = schema if rows is None else rows.schema
        declared = table_description(
            name, columns, mode, primary_key, order_by, required, shard_by, checked, unique, checks
        )
        self._core.check_changeable(name, "create_table")
        return filled_table(self._core, name, declared, rows, if_exists)

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
        if not isinstance(name, str):
            raise IncorrectError(
                f"create_view takes a name and then a query: create_view('name', query), not {type(name).__name__}"
            )
        self._core.check_changeable(name, "create_view")
        found = self.from_sql(query, params) if isinstance(query, str) else query
        return create_view(self._core, name, found, order_by, keep, if_exists, _limit(limit))

    def drop_table(self, name: str | Table, *, if_exists: bool = False) -> None:
        """Remove a table that nothing reads, and what was stored of it. With `if_exists` it need not be there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.drop_table("sales")
        >>> engine.tables
        ()
        >>> engine.drop_table("sales", if_exists=True)
        """
        name = name.name if isinstance(name, Table) else name
        if name in self._core.inputs or not if_exists:
            self.table(name)
            self.drop(name)

    def drop_view(self, name: str | View, *, if_exists: bool = False) -> None:
        """Remove a view, and everything that only it used. With `if_exists` it need not be there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> engine.drop_view("totals")
        >>> engine.views
        ()
        """
        name = name.name if isinstance(name, View) else name
        if name in self._core.views or not if_exists:
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
        if on_change is not None:
            check_function(on_change, "install: on_change")
        (view,) = self._core.install_together(
            {name: collection}, {name: order_by}, keep, on_change, limit=_limit(limit)
        )
        return view

    @guarded_by_core
    def explain(self, query: Collection | str) -> Explanation:
        """Explains how a query, a collection or SQL, would be kept up to date: join strategies and orders, and the indexes
        it would read.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> print(engine.explain(sales.filter(tk.col("amount") > 3)))
        plan
          filter amount > 3  (about 1 rows)
            read sales  (about 1 rows)
        """
        return self._core.catalog.explain(self._collection_of(query, "explain").operator)

    def collect(self, query: Collection | str) -> pa.Table:
        """The rows of a query, a collection or SQL, as of the last closed epoch, computed once; see `Collection.collect`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.collect(sales.filter(tk.col("amount") > 3)).to_pylist()
        [{'shop': 'south', 'amount': 5}]
        """
        found = self._collection_of(query, "collect")
        return found.collect() if isinstance(found, Sorted) else self._core.collect(found)

    def _collection_of(self, query: Collection | str, verb: str) -> Collection:
        if isinstance(query, str):
            return self.from_sql(query)
        if not isinstance(query, Collection):
            raise IncorrectError(f"{verb} takes a query, a collection or SQL in a text, not {type(query).__name__}")
        return query

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
        >>> engine.settle()
        >>> list(engine.failures)
        ['numbers']
        >>> _ = texts.remove([("one",)])
        >>> engine.settle()
        >>> engine.failures
        {}
        """
        found = ((name, view.error) for name, view in self._core.views.items())
        return {name: error for name, error in found if error is not None}

    @guarded_by_core
    def drop(self, name: str) -> None:
        """Remove a view, and everything that only it used; or a table that nothing reads. What was stored of it goes too.

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
        self._core.check_changeable(name, "drop")
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
        return by_name(self._core, self._core.views, name, "view").facade if found is None else found

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
        return by_name(self._core, self._core.inputs, name, "table").facade if system is None else system

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
        return NamesAlone(name for name in self._core.views if not name.startswith("__"))

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
        return NamesAlone(name for name in self._core.inputs if not name.startswith("__") and name not in known)

    @guarded_by_core
    def idle(self, fuel: int = 1 << 20) -> bool:
        """Spend some work on merging and compaction, then on texts that nobody uses; whether there is more to do. For when
        nothing else is. When there is no more, the storage merges and cleans up its files, in a thread of its own.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> while engine.idle():
        ...     pass
        """
        if whole_number(fuel, 0) is None:
            raise IncorrectError(f"idle takes a number of updates from 0 on, not {fuel!r}")
        core = self._core
        is_more = any([trace.idle(fuel) for trace in core.traces()]) or core.texts.idle()
        if not is_more and core.storage is not None:
            core.storage.writer.maintain()
        return is_more

    @property
    def bytes(self) -> int:
        """Memory of everything that is kept: the shared indexes, and what views keep for themselves.

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
            raise AttributeError(f"Engine has no {name!r}{instead_of(self, name)}")

    def __getitem__(self, name: str) -> NoReturn:
        """Refused: tables and views are asked for by name."""
        raise IncorrectError(f"engine[{name!r}]: use engine.table(name) or engine.view(name)")

    def __dir__(self) -> list[str]:
        return without_former(type(self), super().__dir__())

    def __repr__(self) -> str:
        core = self._core
        state = (
            "closed" if core.is_closed else f"{len(self.tables)} tables, {len(self.views)} views, epoch {core.epoch}"
        )
        return f"<Engine: {state}>"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: tables and views with their columns and how many rows they hold."""
        core = self._core
        if core.is_closed:
            return html_text(repr(self))
        with core.lock.held:
            found: list[tuple[str, InputCore | ViewCore]] = [("table", core.inputs[name]) for name in self.tables]
            found += [("view", core.views[name]) for name in self.views if name in core.views]
            rows = [(source.name, kind, ", ".join(source.schema.names), source.trace.count) for kind, source in found]
        return html_table(["name", "kind", "columns", "rows"], rows, f"an engine at epoch {core.epoch}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _limit(limit: int | str | None) -> int | None:
    return None if limit is None else bytes_from(limit, "limit")
