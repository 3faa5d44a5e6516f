"""Errors for what remote sessions do not have: methods for queries built in Python, which cannot be sent to a server, and the
other kind of block or loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, TypeVar

from tektite.engine.other_names import METHODS
from tektite.errors import IncorrectError, UnsupportedError
from tektite.refused_operators import RefusesOperators

P = ParamSpec("P")
T = TypeVar("T")


OF_SESSIONS = {
    "collect": "sql('SELECT ...').to_arrow()",
    "explain": "sql('EXPLAIN SELECT ...')",
    "failures": "status()['failures']",
    "from_sql": "create_view(name, 'SELECT ...')",
    "indexes": "sql('SELECT * FROM system.indexes')",
    "install": "create_view(name, 'SELECT ...')",
    "next_epoch": "status()['epoch']",
    "rollback": "transaction(), whose block rolls back if it raises",
    "time": "status()['epoch']",
}
"""What sessions over a wire have in place of what engines have."""
OF_RELATIONS = {
    "delete": "session.sql('DELETE FROM t WHERE ...')",
    "drop": "session.drop_view(name) or session.drop_table(name)",
    "set": "session.sql('UPDATE t SET ...')",
    "update": "insert(rows) and remove(rows) in a transaction",
    "explain": "session.sql('EXPLAIN SELECT ...')",
    "collect": "to_arrow()",
    "show": "rows(), or the console of the server",
}
"""What tables and views over a wire have in place of those of engines."""


class ShowsWhatIsDocumented:
    """Leaves out of `dir()` what the client's own modules use of a class, and programs do not."""

    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if name not in self._internal]


class SaysWhatDoesNotTravel(ShowsWhatIsDocumented, RefusesOperators):
    """Answers an unknown name with what to use instead."""

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else "; over a wire, write it in SQL or Datalog: session.sql(...)"
            of_session = "Session" in type(self).__name__
            if of_session and METHODS.get(name, "").startswith(("sql(", "transaction(")):
                hint = f"; use {METHODS[name]}"
            elif name in (OF_SESSIONS if of_session else OF_RELATIONS):
                hint = f"; use {(OF_SESSIONS if of_session else OF_RELATIONS)[name]}"
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")

        def __getitem__(self, key: object) -> NoReturn:
            raise UnsupportedError(
                f"{type(self).__name__}[{key!r}]: columns for expressions do not travel: write the query in SQL, session.sql(...)"
            )


class WaitsByAsyncFor:
    """An object for `async for` and `async with` alone. A plain `for` or `with` raises an error that says so."""

    if not TYPE_CHECKING:  # type checkers are to see methods that are not there

        def __iter__(self) -> NoReturn:
            raise IncorrectError("this is waited for: write `async for`")

        def __enter__(self) -> NoReturn:
            raise IncorrectError("this is waited for: write `async with`")

        def __exit__(self, *_: object) -> None:
            """Never called: there is no block."""


class _Block(WaitsByAsyncFor, AbstractAsyncContextManager[Any]):
    """The context manager that a method for `async with` returns."""

    def __init__(self, made: AbstractAsyncContextManager[Any]) -> None:
        self._made = made

    async def __aenter__(self) -> Any:
        return await self._made.__aenter__()

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._made.__aexit__(*raised)


def async_block(function: Callable[P, AsyncIterator[T]]) -> Callable[P, AbstractAsyncContextManager[T]]:
    """Makes an asynchronous generator the block of an `async with`, as `contextlib.asynccontextmanager` does."""
    made = asynccontextmanager(function)

    @wraps(function)
    def block(*args: P.args, **options: P.kwargs) -> _Block:
        return _Block(made(*args, **options))

    return block
