"""Logical plans: bound queries as trees of relational operators over uniquely named columns.

Every column of a statement has a unique name, made by `Names`, and nodes refer to columns by these names. So a column of the
query around a subquery is a name that the subquery's own inputs do not have. Scalars are expressions of `tektite.expr`. Nodes
are immutable. A plan lives from the binder to `lower`, which comes right after decorrelation: `tektite.plan.algebra` has the
operators that are optimized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from tektite.expr import Expr, col
from tektite.expr import type_of as expression_type
from tektite.expr.predicates import TRUE
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.collection import Collection
from tektite.query.window_calls import Ordering, WindowCall
from tektite.values import types
from tektite.values.computed_once import computed_once
from tektite.values.types import Type

ColumnTypes = dict[str, Type]


class Names:
    """Makes unique column names: the wished one, or that with a number."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def new(self, wish: str) -> str:
        """A name that has not been given yet."""
        base = wish.partition("#")[0] or "column"
        count = self._taken.get(base, 0) + 1
        self._taken[base] = count
        return base if count == 1 else f"{base}#{count}"


@dataclass(frozen=True, eq=False)
class Node:
    """A relation. `inputs` are the relations it is made of."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @computed_once
    def columns(self) -> ColumnTypes:
        """Names and types of the columns, in order."""
        raise NotImplementedError

    def with_inputs(self, *inputs: Node) -> Node:
        """The same operator over other inputs."""
        return self

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The scalars that the node evaluates over its inputs' columns."""
        return ()

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        """The same operator with every scalar rewritten."""
        return self

    @property
    def used(self) -> set[str]:
        """The columns that the node's own scalars and keys read."""
        return {name for expression in self.expressions for name in expression.columns()}


@dataclass(frozen=True, eq=False)
class Scan(Node):
    """All rows of a table or view: `names` are its columns in this statement, by position. `single` says that it always has
    exactly one row that changes: the time.
    """

    title: str
    collection: Collection
    names: tuple[str, ...]
    single: bool = False

    @computed_once
    def columns(self) -> ColumnTypes:
        return dict(zip(self.names, self.collection.schema.types, strict=True))


@dataclass(frozen=True, eq=False)
class Values(Node):
    """Constant rows of Python values."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]

    @computed_once
    def columns(self) -> ColumnTypes:
        return dict(zip(self.names, self.types, strict=True))


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """An operator over one relation; on its own it is that relation."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Node) -> Node:
        return replace(self, input=inputs[0])

    @computed_once
    def columns(self) -> ColumnTypes:
        return self.input.columns


@dataclass(frozen=True, eq=False)
class Filter(Unary):
    """The rows for which the predicate is true."""

    predicate: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.predicate,)

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        return replace(self, predicate=rewrite(self.predicate))


@dataclass(frozen=True, eq=False)
class Project(Unary):
    """One column for each output."""

    outputs: tuple[tuple[str, Expr], ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(expression for _, expression in self.outputs)

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        return replace(self, outputs=tuple((name, rewrite(e)) for name, e in self.outputs))

    @computed_once
    def columns(self) -> ColumnTypes:
        given = self.input.columns
        return {name: type_of(expression, given) for name, expression in self.outputs}


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """An operator over two relations."""

    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Node) -> Node:
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True, eq=False)
class Join(Binary):
    """Pairs of rows for which the condition is true. `kind` is inner, left, full, semi or anti."""

    kind: str
    condition: Expr = TRUE

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.condition,)

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        return replace(self, condition=rewrite(self.condition))

    @computed_once
    def columns(self) -> ColumnTypes:
        return self.left.columns if self.kind in ("semi", "anti") else self.left.columns | self.right.columns


@dataclass(frozen=True, eq=False)
class Apply(Binary):
    """The left relation with a column that a subquery, the right relation, gives each of its rows.

    `kind` is scalar (its only value, or NULL), exists (whether it has a row) or any (whether `tests` compare as
    `comparison` says with one of its rows; NULL where that is not known). A lateral one is joined instead: `comparison` is
    inner or left, and the test its condition.
    """

    kind: str
    name: str
    comparison: str = "eq"
    tests: tuple[Expr, ...] = ()

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.tests

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        return replace(self, tests=tuple(map(rewrite, self.tests)))

    @computed_once
    def columns(self) -> ColumnTypes:
        if self.kind == "lateral":
            return self.left.columns | self.right.columns
        found = next(iter(self.right.columns.values())) if self.kind == "scalar" else types.Bool
        return self.left.columns | {self.name: found}


@dataclass(frozen=True, eq=False)
class Aggregate(Unary):
    """One row for each group: the keys, then the aggregates. Without keys there is always exactly one row."""

    keys: tuple[tuple[str, Expr], ...]
    calls: tuple[tuple[str, AggregateCall], ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (*(key for _, key in self.keys), *(part for _, call in self.calls for part in call.expressions))

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        calls = tuple((name, call.rewritten(rewrite)) for name, call in self.calls)
        return replace(self, keys=tuple((name, rewrite(key)) for name, key in self.keys), calls=calls)

    @computed_once
    def columns(self) -> ColumnTypes:
        given = self.input.columns
        keys = {name: type_of(key, given) for name, key in self.keys}
        return keys | {name: call_type(call, given) for name, call in self.calls}


@dataclass(frozen=True, eq=False)
class Distinct(Unary):
    """Each row once."""


@dataclass(frozen=True, eq=False)
class Once(Unary):
    """The same rows; more than one with the same `by` columns is an error of the query."""

    by: tuple[str, ...]

    @property
    def used(self) -> set[str]:
        return set(self.by)


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all parts; columns go by position."""

    parts: tuple[Node, ...]
    names: tuple[str, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, *inputs: Node) -> Node:
        return replace(self, parts=inputs)

    @computed_once
    def columns(self) -> ColumnTypes:
        return dict(zip(self.names, self.parts[0].columns.values(), strict=True))


@dataclass(frozen=True, eq=False)
class Compare(Binary):
    """INTERSECT and EXCEPT of rows by position. With `every`, multiplicities are subtracted or the lesser taken."""

    kind: str
    every: bool

    @computed_once
    def columns(self) -> ColumnTypes:
        return self.left.columns


@dataclass(frozen=True, eq=False)
class Top(Unary):
    """Of each group, in an order, the first `limit` rows behind the first `offset`; all of these without a limit."""

    by: tuple[str, ...]
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int = 0

    @property
    def used(self) -> set[str]:
        return {*self.by, *(o.column for o in self.order)}


@dataclass(frozen=True, eq=False)
class Window(Unary):
    """Each row with the results of window functions."""

    calls: tuple[tuple[str, WindowCall], ...]

    @property
    def used(self) -> set[str]:
        return {name for _, call in self.calls for name in call.columns}

    @computed_once
    def columns(self) -> ColumnTypes:
        return self.input.columns | {name: call.type for name, call in self.calls}


@dataclass(frozen=True, eq=False)
class Series(Unary):
    """Each row with every number from `start` to `end` in steps, as a column; none where a bound is NULL."""

    name: str
    start: Expr
    end: Expr
    step: Expr
    exclusive: bool = False

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.start, self.end, self.step)

    def with_expressions(self, rewrite: Callable[[Expr], Expr]) -> Node:
        return replace(self, start=rewrite(self.start), end=rewrite(self.end), step=rewrite(self.step))

    @computed_once
    def columns(self) -> ColumnTypes:
        return self.input.columns | {self.name: types.Int}


@dataclass(frozen=True, eq=False)
class Variable:
    """A relation that a recursive query defines in terms of itself."""

    title: str
    types: tuple[Type, ...]


@dataclass(frozen=True, eq=False)
class Recall(Node):
    """The rows of a variable in the rounds of its loop."""

    variable: Variable
    names: tuple[str, ...]

    @computed_once
    def columns(self) -> ColumnTypes:
        return dict(zip(self.names, self.variable.types, strict=True))


@dataclass(frozen=True, eq=False)
class Fixpoint(Node):
    """The least solution of a definition for each variable. It is read through `Solution`."""

    variables: tuple[Variable, ...]
    definitions: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.definitions

    def with_inputs(self, *inputs: Node) -> Node:
        return replace(self, definitions=inputs)

    @computed_once
    def columns(self) -> ColumnTypes:
        return {}


@dataclass(frozen=True, eq=False)
class Solution(Unary):
    """One variable's solution."""

    variable: Variable
    names: tuple[str, ...]

    @computed_once
    def columns(self) -> ColumnTypes:
        return dict(zip(self.names, self.variable.types, strict=True))


# ---------------------------------------------------------------------- typing


_statement: ContextVar[Mapping[str, tuple[int, Type]]] = ContextVar("statement", default=MappingProxyType({}))


@contextmanager
def outer_columns(columns: Mapping[str, tuple[int, Type]]) -> Iterator[None]:
    """While a statement is planned: the types of all its columns, for subqueries that read those of queries around them."""
    token = _statement.set(columns)
    try:
        yield
    finally:
        _statement.reset(token)


def type_of(expression: Expr, columns: Mapping[str, Type]) -> Type:
    """The type of a scalar over columns, and those of the queries around."""
    if expression.op == "col" and expression.params[0] in columns:
        return columns[expression.params[0]]
    outer = _statement.get()
    known = {}
    for name in expression.columns():
        if name in columns:
            known[name] = (0, columns[name])
        elif name in outer:
            known[name] = outer[name]
    return expression_type(expression, known)


def call_type(call: AggregateCall, columns: Mapping[str, Type]) -> Type:
    """The type of an aggregate's result."""
    return call.type(None if call.argument is None else type_of(call.argument, columns))


# ---------------------------------------------------------------------- small things


def columns_of(node: Node) -> list[tuple[str, Expr]]:
    """Outputs that pass every column on."""
    return [(name, col(name)) for name in node.columns]


def renamed(node: Node, names: Sequence[str]) -> Node:
    """A relation with its columns under other names, by position."""
    return Project(node, tuple((new, col(old)) for new, old in zip(names, node.columns, strict=True)))
