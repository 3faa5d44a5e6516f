"""Builders: what languages make collections with, beside the public methods of `Collection`.

They check what the methods check. Columns are named in lists, because names in SQL need not be valid in Python; keys are given
by position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tektite.dataflow.reduce import GroupResults, Groups
from tektite.expr import Expr, col
from tektite.plan.algebra import ColumnNumbers
from tektite.query import columns, joins, reductions
from tektite.query.collection import Collection
from tektite.query.columns import ColumnNames
from tektite.query.derived import derived
from tektite.values import types

__all__ = ["derived", "filtered", "inner_join", "project", "reduce_groups"]


def project(collection: Collection, outputs: Sequence[tuple[str, Expr]], predicate: Expr | None = None) -> Collection:
    """One column for each (name, expression), of the rows for which the predicate is true."""
    return derived(columns.project(collection.operator, outputs, predicate), collection)


def filtered(collection: Collection, predicate: Expr) -> Collection:
    """The rows for which a predicate is true."""
    return project(collection, [(name, col(name)) for name in collection.schema.names], predicate)


def inner_join(
    left: Collection, right: Collection, mine: ColumnNumbers, theirs: ColumnNumbers, nulls_match: bool = False
) -> Collection:
    """Pairs of rows with equal keys: the left columns, then the right ones that are not keys."""
    return derived(joins.inner_join(left.operator, right.operator, mine, theirs, nulls_match), left, right)


def reduce_groups(
    collection: Collection, function: Callable[[Groups], GroupResults], by: ColumnNames, named: Mapping[str, types.Type]
) -> Collection:
    """The key columns, and the columns that a function of `tektite.query.group_functions` computes for many groups at once.
    The function gets the key columns first.
    """
    return derived(reductions.reduce(collection.operator, by, named, function, together=True), collection)
