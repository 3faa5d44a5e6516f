"""Answers a query once, over existing indexes, and leaves nothing behind.

The query is installed as a view that nobody else sees, read, and dropped. Inside a transaction it reads what the transaction
sees. A query that reads no input is computed without a dataflow, and keeps the order of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.input_core import InputCore
from tektite.engine.view_core import ViewCore
from tektite.errors import ConflictError, FaultError, TektiteError
from tektite.plan.algebra import Read
from tektite.plan.constant import constant_rows
from tektite.plan.depth import within_depth
from tektite.plan.walk import walk
from tektite.query.collection import Collection

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.view import View


def collect(core: EngineCore, collection: Collection, limit: int | None = None, rows: int | None = None) -> pa.Table:
    """The rows of a collection as of the last closed epoch, with the changes of the transaction that is open in the calling
    session. A query that keeps more than `limit` bytes, or gives more than `rows`, is refused. The caller holds the lock.
    """
    with core.dictionary.text_use(), within_depth([collection.operator]):
        words = constant_rows(collection.operator, core.dictionary)
        if words is not None:
            return collection.schema.decode(words, core.dictionary)
    for part in walk([collection.operator]):
        if isinstance(part, Read) and isinstance(part.readable, InputCore):
            part.readable.check_rows_kept()
    at, transaction = None, core.sessions.transaction
    if transaction is not None:
        at = transaction.epoch
        collection = transaction.seen(collection)
    name = core.hidden_name("collect")
    try:
        try:
            (view,) = core.install_together({name: collection}, since=at, limit=limit)
            core.catalog.count_answer(view._core.flow)
            found = _answer(core, view, at, rows)
            if transaction is not None and transaction.reads is not None:
                transaction.reads.add(collection, found)
            return found
        finally:
            drop_if_there(core, name)
    finally:  # an interrupt may have ended the first attempt
        drop_if_there(core, name)


def _answer(core: EngineCore, view: View, at: int | None, rows: int | None) -> pa.Table:
    """The rows of a view that stands for a query, at most so many of them. Errors do not name the view."""
    try:
        if rows is not None:
            core.finish(view._core)
            if (view._core.count or 0) > rows:
                raise ConflictError(
                    f"the query gives {view._core.count:,} rows, and its user may get {rows:,}: add a condition or a LIMIT"
                )
        return view.snapshot(at=None if at is None else _readable(view._core, at))
    except TektiteError as error:
        message = error.args[0] if isinstance(error, FaultError) else str(error).removeprefix(f"view {view.name!r}: ")
        told = error.reworded(message)
        told.details.pop("view", None)  # it has no name that anybody knows
        raise told from error


def drop_if_there(core: EngineCore, name: str) -> None:
    """Drop a view that nobody sees, unless that has been done."""
    if name in core.views and not core.is_closed:  # others may have had the engine meanwhile
        core.drop(name)


def _readable(view: ViewCore, at: int) -> int:
    """The time at which a query shows the epoch that a transaction reads: earlier, if an input is behind that."""
    if view.first > at:
        raise ConflictError("it reads a view that was made after the transaction began: end the transaction first")
    view.engine.finish(view)
    return at if view.closed else min(at, max(view.low - 1, view.first))
