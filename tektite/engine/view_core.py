"""ViewCore: a view's definition, its dataflow, its trace, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Arranged
from tektite.dataflow.errors import ErrorSource, standing_errors
from tektite.dataflow.flow import Dataflow, LastClosed
from tektite.engine.change_feed import ChangeFeed
from tektite.engine.constraints import check_time
from tektite.engine.lock import EngineLock, guarded
from tektite.engine.notices import Waiter, wait_in_task, wait_in_thread
from tektite.engine.versions import decoded, in_schema_order, read_first, read_lead, read_version
from tektite.errors import ConflictError, FaultError, IncorrectError, TektiteError
from tektite.expr.program import row_condition
from tektite.plan import algebra as plan
from tektite.plan.unique import unique_columns
from tektite.trace.trace import Hold, Trace
from tektite.values.schema import Schema
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.publication import Publication
    from tektite.engine.view import View


class ViewCore:
    """A view: a source of dataflows, and what plans read."""

    # There may be ten thousand.
    __slots__ = (
        "__weakref__", "_feeds", "_place", "_waiters_here", "columns", "definition", "dropped", "engine", "facade", "flow",
        "hold", "name", "operator", "publication", "row_order", "sharded_by", "trace",
    )  # fmt: skip

    kind = "view"

    facade: View
    """The view as users hold it. Set by `EngineCore.install_together`."""
    # The types are said here because modules that import each other read them: mypy infers them in no certain order.
    flow: Dataflow
    trace: Trace
    columns: tuple[int, ...]
    sharded_by: int
    is_single = False

    def __init__(
        self,
        engine: EngineCore,
        name: str,
        definition: plan.Operator,
        flow: Dataflow,
        arranged: Arranged,
        keep: bool,
        place: int,
    ) -> None:
        """`place` is its number among the views of its dataflow."""
        self.engine = engine
        self._place = place
        self.name = name
        self.definition = definition
        self.operator = plan.Read(definition.schema, self)
        """The plan that reads it."""
        self.flow = flow
        self.trace = arranged.trace
        self.columns = arranged.columns
        self.sharded_by = arranged.sharded_by
        self.hold = Hold(self.trace, LastClosed(self, engine.catalog.earliest)) if keep else None
        self.dropped = False
        self.row_order: Callable[[pa.Table], pa.Table] | None = None
        """Puts the rows of a snapshot in order, where the definition says one."""
        self.publication: Publication | None = None
        self._feeds: dict[ChangeFeed, None] | None = None
        self._waiters_here: dict[Waiter, None] | None = None
        flow.on_failed += (self,)

    @property
    def together(self) -> list[ViewCore]:
        """The views that its dataflow makes, itself included."""
        return [dependent for dependent in self.flow.on_failed if isinstance(dependent, ViewCore)]

    @property
    def schema(self) -> Schema:
        """Names and types of its columns."""
        return self.definition.schema

    @property
    def is_stream(self) -> bool:
        """Whether it keeps no history: only its changes can be read."""
        return self.hold is None

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self.engine.lock

    @property
    def errors(self) -> Sequence[ErrorSource]:
        """The errors that its rows depend on."""
        return self.flow.result_errors[self._place]

    @property
    def feeds(self) -> dict[ChangeFeed, None]:
        """The followers of its changes. Most views have none."""
        if self._feeds is None:
            self._feeds = {}
        return self._feeds

    @property
    def waiters(self) -> dict[Waiter, None]:
        """The threads and tasks that wait for it to answer for a time."""
        if self._waiters_here is None:
            self._waiters_here = {}
        return self._waiters_here

    @property
    def low(self) -> int:
        """The first epoch for which the view has no answer yet."""
        return self.flow.low

    @property
    def first(self) -> int:
        """The first epoch that the view answers for."""
        return self.flow.first

    @property
    def closed(self) -> bool:
        """Whether the view can never change again, because every input it reads has ended."""
        return self.flow.closed

    @property
    def failure(self) -> TektiteError | None:
        """The error that stopped the view, if one did."""
        return self.flow.failure

    @property
    def unique(self) -> tuple[int, ...] | None:
        """The columns that tell its rows apart, if its definition says that some do."""
        return unique_columns(self.definition)

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The orders of columns in which it is arranged for everybody."""
        return self.engine.catalog.orders_of(self.operator)

    @property
    def size(self) -> int:
        """About how many rows it holds: updates that cancel each other count until they are merged."""
        return self.trace.size

    @property
    def most_rows(self) -> int:
        """At least as many as its size: updates that cancel each other count."""
        return self.trace.rows

    @property
    def count(self) -> int | None:
        """The number of rows of its last answer, those that fail left out; None if it keeps none, or has stopped."""
        if self.is_stream or self.flow.failure is not None:
            return None
        if self.low <= self.first:
            return 0
        return int(read_version(self.trace, self.low - 1)[-1].sum())

    # ------------------------------------------------------------------ reading

    def lookup(self, number: int) -> pa.Table:
        """The rows of the snapshot whose leading column, an integer, has this value: only those are looked at."""
        with self.engine.dictionary.text_use():
            return self.decode(self.words(None, True, number))

    def decode(self, words: Words, rows: int | None = None) -> pa.Table:
        """Rows as a table, each as often as it is there; the first `rows` of them, if that is said."""
        return decoded(self, words, f"view {self.name!r}", rows)

    @guarded
    def words(self, at: int | None, wait: bool, lead: int | None = None, rows: int | None = None) -> Words:
        """The rows of the snapshot as of an epoch, with time and multiplicity behind the data columns; those alone that begin
        with the word `lead`, if one is given; or at least `rows` of them.
        """
        self.check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: only its changes can be read")
        if at is not None:
            check_time(at, f"view {self.name!r}: ")
        if wait and (at is None or at >= self.flow.low):
            self.engine.finish(self)
            self.check()
        low = self.flow.low
        if not low:
            return np.empty((len(self.columns) + 2, 0), np.int64)
        epoch = low - 1 if at is None else at
        if at is not None or low == self.flow.first:  # the last answer is always kept
            self.check_readable(epoch)
        self.check_rows(epoch)
        if rows is not None:
            words = read_first(self.trace, epoch, rows)
        else:
            words = read_version(self.trace, epoch) if lead is None else read_lead(self.trace, epoch, lead)
        return in_schema_order(words, self.columns)

    def check_readable(self, epoch: int) -> None:
        """Refuse an epoch that the view does not answer for, or not any more."""
        check_time(epoch, f"view {self.name!r}: ")
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: only its changes can be read")
        low, first = self.flow.low, self.flow.first
        if low == first:
            raise IncorrectError(
                f"view {self.name!r} has no answer yet: its first one will be as of time {first}, once every "
                "table it reads has closed that"
            )
        since = max(min([t[0] for t in self.trace.since()], default=0), first)
        if epoch < since or (epoch >= low and not self.flow.closed):
            earlier, later = (
                "what was written then is among rows() without a time; engine.hold keeps earlier times readable",
                "that time is not closed yet; rows(at=, timeout=) waits",
            )
            raise IncorrectError(
                f"view {self.name!r} can be read at times {since} to {low - 1}, not at {epoch}; "
                + (earlier if epoch < since else later)
            )

    def check(self, failed: bool = True) -> None:
        """Refuse to read a view that was dropped or, unless that does not matter, has failed."""
        if self.dropped:
            raise self.drop_error()
        if failed and self.flow.failure is not None:
            raise self.flow.failure

    @property
    def error(self) -> TektiteError | None:
        """The error that a read of its last answer raises, if any."""
        if self.flow.failure is not None or not self.errors:
            return self.flow.failure
        low = self.low
        return self.error_at(low - 1) if low > self.first else None

    def check_rows(self, epoch: int) -> None:
        """Refuse to read the view at an epoch at which some row that it depends on fails."""
        error = self.error_at(epoch)
        if error is not None:
            raise error

    def error_at(self, epoch: int) -> TektiteError | None:
        """The error that a read at an epoch raises; None if there is an answer."""
        found = standing_errors(self.errors, epoch) if self.errors else None
        if found is None:
            return None
        own = found.flow in (self.name, ", ".join([view.name for view in self.together]))
        origin = "" if own else f"in {found.flow!r}, which it reads: "
        more = "" if found.count == 1 else f"; {found.count - 1} more fail"
        message = f"{origin}{found.message}{more}. Reads work again once what fails is deleted or corrected"
        error: TektiteError
        if issubclass(found.kind, FaultError):
            error = found.kind(message, self.name)
        else:
            error = IncorrectError(f"view {self.name!r}: {message}").about(view=self.name, rows=found.count)
            condition = row_condition(found.message)
            if condition:
                error.about(condition=condition)
        error.shows_row = True
        return error

    # ------------------------------------------------------------------ what goes along with it

    @guarded
    def publish(self) -> None:
        """Store contents and changes from here on; see `View.publish`."""
        self.check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: it has no contents to store")
        if self.publication is None:
            self.publication = self.engine.publish(self)
            self.engine.sync()  # who is told that it is published may read it

    def call_on_change(self, function: Callable[[pa.Table], None], snapshot: bool) -> None:
        """Call a function with a table of changes whenever there are some, the contents first if `snapshot` says so. A function
        that raises is not called again. The caller holds the lock.
        """
        feed = ChangeFeed(self, snapshot)

        def deliver() -> None:
            table, done = feed.look()
            done()
            if table is not None:
                function(table)

        feed.call(function, deliver)

    # ------------------------------------------------------------------ waiting

    def wait(self, time: int, timeout: float | None) -> bool:
        """Wait until it answers for a time; see `View.wait`."""
        check_time(time, f"view {self.name!r}: ")
        found = wait_in_thread(
            self._waiters(), lambda deadline: self._answers(time, deadline), timeout, self.engine.check_may_wait
        )
        return found is not None

    async def wait_async(self, time: int, timeout: float | None = None) -> bool:
        """`wait` in a task."""
        import asyncio

        if timeout is not None and await asyncio.get_running_loop().run_in_executor(None, self.wait, time, 0):
            return True
        check_time(time, f"view {self.name!r}: ")
        answers = False

        def step() -> None:
            nonlocal answers
            answers = self._answers(time) is not None

        try:
            async with asyncio.timeout(timeout):
                await wait_in_task(self._waiters(), step, lambda: True if answers else None)
        except TimeoutError:
            return False
        return True

    def _waiters(self) -> list[dict[Waiter, None]]:
        return [self.waiters, self.engine.notices.at_each_epoch]

    @guarded
    def _answers(self, time: int, deadline: float | None = None) -> bool | None:
        """True if it answers for a time, once it is as far as it can be until the deadline; else None."""
        while True:
            self.check_usable()
            self.engine.finish(self, deadline)
            self.check_usable()
            if self.low > max(time, self.first) or (self.closed and time >= self.first):
                return True
            if self.engine.is_finished(self, deadline):
                return None

    def check_usable(self) -> None:
        """Refuse to read a view that was dropped or has failed, or whose engine is closed."""
        if self.engine.is_closed:
            self.engine.check_running()
        self.check()

    # ------------------------------------------------------------------ the end

    def release(self) -> None:
        """Let go of the trace and of all subscriptions, for good."""
        self.dropped = True
        self.flow_failed()

    def flow_failed(self) -> None:
        """End all subscriptions, and let go of the trace."""
        for feed in list(self.feeds):
            feed.end()
        if self.hold is not None:
            self.hold.drop()
        for waiter in list(self.waiters):
            waiter.notify()

    def drop_error(self) -> ConflictError:
        """The error that a read raises after it was dropped."""
        return ConflictError(f"view {self.name!r} was dropped")
