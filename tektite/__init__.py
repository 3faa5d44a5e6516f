"""Tektite: standing queries over changing data that share the indexes they need."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from tektite.connecting import connect, connect_async
    from tektite.engine.argument_query import ArgumentQuery
    from tektite.engine.backlog import Delta
    from tektite.engine.changes import Changes as Changes
    from tektite.engine.engine import Engine
    from tektite.engine.holds import Held, Index, IndexInfo
    from tektite.engine.profile import OperatorProfile, Profile
    from tektite.engine.session import Session, Transaction
    from tektite.engine.subscription import Change, Listener, Subscription
    from tektite.engine.system.spans import SpanExport
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.errors import (
        ConflictError,
        FaultError,
        FunctionError,
        IncorrectError,
        NotFoundError,
        TektiteError,
        TransactionConflict,
        UnsupportedError,
    )
    from tektite.expr import (
        Expr,
        coalesce,
        col,
        concat,
        concat_ws,
        greatest,
        hash64,
        least,
        lit,
        now,
        sql_expr,
        truncdiv,
        truncmod,
        when,
    )
    from tektite.plan.explanation import Explanation
    from tektite.query.aggregates import (
        all,
        any,
        avg,
        corr,
        count,
        count_distinct,
        cov,
        first,
        last,
        max,
        mean,
        median,
        min,
        n_unique,
        std,
        sum,
        var,
    )
    from tektite.query.collection import Collection
    from tektite.query.grouped import Grouped
    from tektite.query.loops import Loop, LoopVariable
    from tektite.query.match import match
    from tektite.query.windows import cume_dist, dense_rank, lag, lead, ntile, percent_rank, rank, row_number
    from tektite.storage.options import Storage
    from tektite.values.intervals import IntervalValue
    from tektite.values.schema import Schema
    from tektite.values.type_names import List, Struct
    from tektite.values.types import (
        Blob,
        Bool,
        Date,
        Decimal,
        Float,
        Float64,
        Int,
        Int64,
        Interval,
        Json,
        String,
        Time,
        Timestamp,
        TimestampTz,
        Type,
        Uuid,
    )

__version__ = "0.1.0"

__all__ = [
    "ArgumentQuery",
    "Blob",
    "Bool",
    "Change",
    "Collection",
    "ConflictError",
    "Date",
    "Decimal",
    "Delta",
    "Engine",
    "Explanation",
    "Expr",
    "FaultError",
    "FunctionError",
    "Float",
    "Float64",
    "Grouped",
    "Held",
    "IncorrectError",
    "Index",
    "IndexInfo",
    "Int",
    "Int64",
    "Interval",
    "IntervalValue",
    "Json",
    "List",
    "Listener",
    "Loop",
    "LoopVariable",
    "NotFoundError",
    "OperatorProfile",
    "Profile",
    "Schema",
    "Session",
    "SpanExport",
    "Storage",
    "String",
    "Struct",
    "Subscription",
    "Table",
    "TektiteError",
    "Time",
    "Timestamp",
    "TimestampTz",
    "Transaction",
    "TransactionConflict",
    "Type",
    "UnsupportedError",
    "Uuid",
    "View",
    "all",
    "any",
    "avg",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "connect",
    "connect_async",
    "corr",
    "count",
    "count_distinct",
    "cov",
    "cume_dist",
    "dense_rank",
    "first",
    "greatest",
    "hash64",
    "lag",
    "last",
    "lead",
    "least",
    "lit",
    "match",
    "max",
    "mean",
    "median",
    "min",
    "n_unique",
    "now",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
    "sql_expr",
    "std",
    "sum",
    "truncdiv",
    "truncmod",
    "var",
    "when",
]


# Where each public name is defined. It is loaded when it is first used, so that `import tektite` takes no time: the command
# line, processes that build kernels, and programs that need one module of it do not load the engine.
_HOMES = {
    "connecting": "connect connect_async",
    "engine.argument_query": "ArgumentQuery",
    "engine.changes": "Changes",
    "engine.engine": "Engine",
    "engine.holds": "Held Index IndexInfo",
    "engine.profile": "OperatorProfile Profile",
    "engine.system.spans": "SpanExport",
    "engine.session": "Session Transaction",
    "engine.backlog": "Delta",
    "engine.subscription": "Change Listener Subscription",
    "engine.table": "Table",
    "engine.view": "View",
    "errors": "ConflictError FaultError FunctionError IncorrectError NotFoundError TektiteError TransactionConflict "
    "UnsupportedError",
    "expr": "Expr coalesce col concat concat_ws greatest hash64 least lit now sql_expr truncdiv truncmod when",
    "plan.explanation": "Explanation",
    "query.aggregates": "all any avg corr count count_distinct cov first last max mean median min n_unique std sum var",
    "query.collection": "Collection",
    "query.grouped": "Grouped",
    "query.loops": "Loop LoopVariable",
    "query.match": "match",
    "query.windows": "cume_dist dense_rank lag lead ntile percent_rank rank row_number",
    "storage.options": "Storage",
    "values.schema": "Schema",
    "values.type_names": "List Struct",
    "values.intervals": "IntervalValue",
    "values.types": "Blob Bool Date Decimal Float Float64 Int Int64 Interval Json String Time Timestamp TimestampTz Type Uuid",
}
_FORMER = {"Input": "Table", "ArrangementInfo": "IndexInfo"}


if not TYPE_CHECKING:  # a checker would take every name for one that may be there

    def __getattr__(name: str) -> Any:
        """Public names at their first use, and names of former versions."""
        for home, names in _HOMES.items():
            if name in names.split():
                found = globals()[name] = getattr(import_module(f"tektite.{home}"), name)
                return found
        if name in _FORMER:
            from warnings import warn

            warn(f"tektite.{name} is called tektite.{_FORMER[name]}", DeprecationWarning, stacklevel=2)
            return __getattr__(_FORMER[name])
        if name == "graph":  # a package of its own, which uses this one
            return import_module("tektite.graph")
        raise AttributeError(f"module 'tektite' has no attribute {name!r}{_instead_of(name)}")


def _instead_of(name: str) -> str:
    """The hint for a name that is not here."""
    if name.startswith("__"):
        return ""
    from tektite.other_names import instead_of

    return instead_of(name, __all__)


class _Package(ModuleType):
    """This module. A module of it is no function, though other libraries have functions of these names: `tk.sql("...")`."""

    def __setattr__(self, name: str, value: object) -> None:
        if type(value) is ModuleType:
            value.__class__ = _Uncalled
        super().__setattr__(name, value)


class _Uncalled(ModuleType):
    """A module that says what to write, if it is called."""

    def __call__(self, *args: object, **options: object) -> NoReturn:
        from tektite.errors import IncorrectError

        name = self.__name__.removeprefix("tektite.")
        raise IncorrectError(f"tektite.{name} is a module, not a function{_instead_of(name)}")


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
