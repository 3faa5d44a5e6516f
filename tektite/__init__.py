"""Tektite: standing queries over changing data that share the indexes they need."""

from tektite.aggregates import all, any, avg, count, count_distinct, max, min, sum
from tektite.collection import Collection, Grouped, Loop, LoopVariable
from tektite.errors import (
    ConflictError,
    FaultError,
    IncorrectError,
    NotFoundError,
    TektiteError,
    UnsupportedError,
)
from tektite.expr import Expr, coalesce, col, concat, greatest, hash64, least, lit, when
from tektite.front import Engine, Input, View
from tektite.keeping import ArrangementInfo, Held
from tektite.matching import match
from tektite.schema import Schema
from tektite.storage.options import Storage
from tektite.types import Bool, Date, Decimal, Float, Int, String, Timestamp, Type
from tektite.views import Change, Changes

__version__ = "0.1.0"

__all__ = [
    "ArrangementInfo",
    "Bool",
    "Change",
    "Changes",
    "Collection",
    "ConflictError",
    "Date",
    "Decimal",
    "Engine",
    "Expr",
    "FaultError",
    "Float",
    "Grouped",
    "Held",
    "IncorrectError",
    "Input",
    "Int",
    "Loop",
    "LoopVariable",
    "NotFoundError",
    "Schema",
    "Storage",
    "String",
    "TektiteError",
    "Timestamp",
    "Type",
    "UnsupportedError",
    "View",
    "all",
    "any",
    "avg",
    "coalesce",
    "col",
    "count",
    "concat",
    "count_distinct",
    "greatest",
    "hash64",
    "least",
    "lit",
    "match",
    "max",
    "min",
    "sum",
    "when",
]
