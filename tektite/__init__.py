"""Tektite: standing queries over changing data that share the indexes they need."""

from tektite.connecting import connect, connect_async
from tektite.engine.argument_query import ArgumentQuery
from tektite.engine.changes import Changes
from tektite.engine.engine import Engine
from tektite.engine.holds import Held, Index, IndexInfo
from tektite.engine.profile import OperatorProfile, Profile
from tektite.engine.session import Session, Transaction
from tektite.engine.subscription import Change, Delta, Listener, Subscription
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
from tektite.expr import Expr, coalesce, col, concat, greatest, hash64, least, lit, truncdiv, truncmod, when
from tektite.query.aggregates import (
    all,
    any,
    avg,
    count,
    count_distinct,
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
from tektite.values.schema import Schema
from tektite.values.types import Bool, Date, Decimal, Float, Float64, Int, Int64, String, Timestamp, Type

__version__ = "0.1.0"

__all__ = [
    "ArgumentQuery",
    "Bool",
    "Change",
    "Collection",
    "ConflictError",
    "Date",
    "Decimal",
    "Delta",
    "Engine",
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
    "Listener",
    "Loop",
    "LoopVariable",
    "NotFoundError",
    "OperatorProfile",
    "Profile",
    "Schema",
    "Session",
    "Storage",
    "String",
    "Subscription",
    "Table",
    "TektiteError",
    "Timestamp",
    "Transaction",
    "TransactionConflict",
    "Type",
    "UnsupportedError",
    "View",
    "all",
    "any",
    "avg",
    "coalesce",
    "col",
    "concat",
    "connect",
    "connect_async",
    "count",
    "count_distinct",
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
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
    "std",
    "sum",
    "truncdiv",
    "truncmod",
    "var",
    "when",
]


def __getattr__(name: str) -> object:
    """Names of former versions."""
    former = {"Input": Table, "Changes": Changes, "ArrangementInfo": IndexInfo}
    if name in former:
        from warnings import warn

        warn(f"tektite.{name} is called tektite.{former[name].__name__}", DeprecationWarning, stacklevel=2)
        return former[name]
    others = {
        "len": "tk.count()",
        "read_csv": "engine.sql(\"COPY t FROM 'file.csv'\"), or table.insert(pandas.read_csv(...))",
        "read_parquet": "engine.sql(\"COPY t FROM 'file.parquet'\"), or table.insert(pyarrow.parquet.read_table(...))",
        "DataFrame": "engine.create_table(name, {'column': type})",
        "Database": "tk.Engine()",
        "Text": "tk.String",
        "Str": "tk.String",
        "Utf8": "tk.String",
        "Varchar": "tk.String",
        "Boolean": "tk.Bool",
        "Datetime": "tk.Timestamp",
        "DateTime": "tk.Timestamp",
        "sql": "engine.sql(...)",
        "table": "engine.table(name)",
    }
    instead = f"; use {others[name]}" if name in others else ""
    raise AttributeError(f"module 'tektite' has no attribute {name!r}{instead}")
