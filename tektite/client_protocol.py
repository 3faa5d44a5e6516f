"""The interface of every client of Tektite, in this process or over a wire: sessions, tables, views and subscriptions.

`tektite.Engine`, `Table`, `View` and `Subscription` offer this, and more. A program that is written against these protocols runs
with any client. What takes a Python function (`map_batches`, `subscribe(callback)`, `inspect`) is not part of them: a function
does not travel.

Rows travel as Arrow tables, times as integers, and errors as `TektiteError`s with the same `code`, `retryable` and `details`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, Self, runtime_checkable

import pyarrow as pa

from tektite.values.schema import Schema

Mode = Literal["bag", "set", "upsert", "append", "stream"]
"""The modes of a table, which decide what a repeated or removed row means."""

IfExists = Literal["error", "keep", "replace"]
"""The action if the name exists already."""

Cardinality = Literal["one", "many"]
"""Whether an attribute of an entity has one value or several."""


@runtime_checkable
class DeltaProtocol(Protocol):
    """The changes of a view at one time: a table of rows with the column `diff` behind them."""

    @property
    def time(self) -> int: ...

    @property
    def table(self) -> pa.Table: ...


@runtime_checkable
class SubscriptionProtocol(Protocol):
    """The changes of a view as they happen. Iterating waits for the next one; so does `async for` in a task."""

    @property
    def time(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def poll(self, timeout: float | None = None) -> DeltaProtocol | None: ...

    def table(self) -> pa.Table: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> DeltaProtocol: ...

    def __aiter__(self) -> AsyncIterator[Any]: ...


@runtime_checkable
class RelationProtocol(Protocol):
    """The common methods of tables and views: a name, a schema, and rows that can be read as of a time, and followed."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def time(self) -> int | None: ...

    def rows(self, at: int | None = None) -> list[tuple[Any, ...]]: ...

    def head(self, n: int = 5) -> pa.Table: ...

    def lookup(self, *key: Any) -> list[tuple[Any, ...]]: ...

    def to_arrow(self, at: int | None = None) -> pa.Table: ...

    def subscribe(
        self, *, snapshot: bool | None = None, progress: bool = False, since: int | None = None
    ) -> SubscriptionProtocol: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


@runtime_checkable
class TableProtocol(RelationProtocol, Protocol):
    """Rows that clients write. A write outside of a transaction is an epoch of its own, and returns its time."""

    def insert(self, data: Any) -> int | None: ...

    def remove(self, data: Any) -> int | None: ...

    def finish(self) -> None: ...


@runtime_checkable
class ViewProtocol(RelationProtocol, Protocol):
    """An answer that is kept up to date."""

    @property
    def error(self) -> Exception | None: ...

    def snapshot(self, at: int | None = None, *, timeout: float | None = None) -> pa.Table: ...

    def wait(self, time: int, timeout: float | None = None) -> bool: ...

    def explain(self) -> str: ...


@runtime_checkable
class TransactionProtocol(Protocol):
    """Writes that count together. The end of its block commits it, unless it is over by then."""

    @property
    def time(self) -> int | None: ...

    @property
    def is_open(self) -> bool: ...

    def commit(self) -> int | None: ...

    def rollback(self) -> None: ...


@runtime_checkable
class SessionProtocol(Protocol):
    """One user's way to an engine. Closing it ends this user's part; what was created stays for the others, unless the engine
    belongs to the session, as it does in one process.
    """

    @property
    def tables(self) -> Sequence[str]: ...

    @property
    def views(self) -> Sequence[str]: ...

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        mode: Mode = "bag",
        primary_key: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        required: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> TableProtocol: ...

    def create_view(
        self,
        name: str,
        query: Any,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        order_by: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> ViewProtocol: ...

    def table(self, name: str) -> TableProtocol: ...

    def view(self, name: str) -> ViewProtocol: ...

    def drop_table(self, name: str, *, if_exists: bool = False) -> None: ...

    def drop_view(self, name: str, *, if_exists: bool = False) -> None: ...

    def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> Any: ...

    def transaction(self) -> AbstractContextManager[TransactionProtocol]: ...

    def close(self) -> None: ...
