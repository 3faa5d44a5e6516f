"""SharedQuery: one dataflow that answers a query for many users and values, and what they may keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.core import core_of
from tektite.engine.routing import Router
from tektite.engine.view import View
from tektite.query.window_calls import Ordering
from tektite.sql.access.rights_trees import RIGHTS
from tektite.sql.access.rights_views import EVERYTHING
from tektite.sql.parse.internal_tables import internal_table
from tektite.sql.statements.parametrised import ParametrisedQuery
from tektite.values.schema import Schema
from tektite.values.types import Type

ARGUMENTS = "#arguments"
"""The name of the argument table in the query that selects its valid rows."""
BindingRow = tuple[Any, ...]
"""A row of an argument table: a number, a user, values."""


@dataclass(frozen=True)
class QueryShape:
    """The part that standing queries with a shared dataflow have in common: all but the values of their arguments."""

    text: str
    """The query, with labels in place of the arguments."""
    names: tuple[str, ...]
    """Settings that decide the meaning of the text: the schemas in which names are looked up, and the time zone."""
    types: tuple[Type, ...]
    is_gated: bool
    """Whether its users are roles, whose rights count."""
    is_prepared: bool
    """Whether it is a prepared statement, which has an argument table in any case."""
    is_limited: bool = False
    """Whether its users may keep a limited number of bytes. Those who may keep any number share with each other."""
    alone: tuple[Any, ...] = ()
    """The user and the values of a query that shares with nobody."""


@dataclass
class SharedQuery:
    """One dataflow, and the arguments that it answers."""

    query: ParametrisedQuery
    shape: QueryShape
    who: str | None
    """Somebody who may read it, by whose rights it is planned."""
    view: View
    arguments: ArgumentTables | None
    """None for a query that depends on nothing but tables."""
    titles: list[str]
    order: list[tuple[str, Ordering]]
    reads: set[str]
    secured: set[str]
    needs: set[tuple[str | None, str]]
    """The objects that it needs, each with the role that reads it; None is the caller."""
    bindings: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """The numbers of the arguments: a user and values."""
    bound: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """The arguments of each number."""
    begun: dict[int, int] = field(default_factory=dict)
    """The epoch from which on each number is answered: of earlier ones nothing is known."""
    followers: dict[int, int] = field(default_factory=dict)
    """How many need each number."""
    memory: dict[int, int] = field(default_factory=dict)
    """The bytes that those who have a limit may keep, by their numbers."""
    memory_sum: int = 0
    greedy: set[tuple[Any, ...]] = field(default_factory=set)
    """Users and values whose answers alone kept more than they may: they share no more."""
    router: Router | None = None
    numbers: int = 0

    @property
    def is_answering(self) -> bool:
        """Whether the dataflow is there."""
        return not core_of(self.view).dropped

    def number(self, row: tuple[Any, ...]) -> int:
        """The number of some arguments, a new one if they have none."""
        found = self.bindings.get(row)
        if found is None:
            self.numbers += 1
            found = self.bindings[row] = self.numbers
            self.bound[found] = row
        return found

    def unbind(self, number: int) -> tuple[Any, ...] | None:
        """Take a number away, with what it keeps; its arguments, None if it has none any more."""
        self.allow(number, None)
        row = self.bound.pop(number, None)
        if row is not None:
            del self.bindings[row]
            self.begun.pop(number, None)
        return row

    def allow(self, number: int, bytes: int | None) -> None:
        """Let the dataflow keep some bytes more for a number; None for one that goes."""
        self.memory_sum -= self.memory.pop(number, 0)
        if bytes is not None:
            self.memory[number] = bytes
            self.memory_sum += bytes
        self.set_limit()

    def set_limit(self) -> None:
        """Let the dataflow keep as much as all who share it may keep together."""
        core_of(self.view).flow.limit = self.memory_sum if self.shape.is_limited else None

    @property
    def schema(self) -> Schema:
        """The columns of an answer, without the number and what only orders it."""
        return self.view.schema.select(*self.titles)


def rows_of(shared: SharedQuery) -> list[BindingRow]:
    """The arguments that a dataflow answers."""
    return [(number, *row) for row, number in shared.bindings.items()]


def drop(shared: SharedQuery) -> None:
    """Drop a dataflow that nobody follows, with its arguments."""
    shared.view.drop()
    if shared.arguments is not None:
        shared.arguments.drop()


def counts(needed: str | None, object: str) -> exp.Expr:
    """The condition that whoever needs an object may read it: the user of an argument row, or the owner of a view."""
    rights = internal_table(RIGHTS + "readers", "#r")
    who = exp.column("user", table=exp.to_identifier(ARGUMENTS, quoted=True), quoted=True)
    mine = exp.EQ(this=exp.column("who", table=exp.to_identifier("#r", quoted=True), quoted=True),
                  expression=who if needed is None else exp.Literal.string(needed))  # fmt: skip
    right = exp.In(
        this=exp.column("object", table=exp.to_identifier("#r", quoted=True), quoted=True),
        expressions=[exp.Literal.string(EVERYTHING), exp.Literal.string(object)],
    )
    where = exp.Where(this=exp.And(this=mine, expression=right))
    return exp.Exists(this=exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=rights), where=where))
