"""Caches parsed and planned statements.

Dashboards and analysts send the same texts again and again. A cached plan is used while every name in the query means the same
table, view or definition, so it gives the same answer as a new plan. The query is planned again when a better plan may exist:
when a table has other indexes, or when its size relative to the other tables has changed by an order of magnitude. Plans that
read something that was dropped are removed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import IncorrectError, TektiteError
from tektite.query.collection import Collection
from tektite.sql.bind.bound import Bound
from tektite.sql.logical import Node
from tektite.sql.parse import parser

if TYPE_CHECKING:
    from tektite.sql.bind.definitions import Definition
    from tektite.sql.statements.runner import StatementRunner

    Meaning: TypeAlias = "Table | View | Definition | None"
    Meanings: TypeAlias = tuple[tuple[str, Meaning], ...]
    """Names, each with the relation that it stands for."""

PLANS = 256
"""How many plans are remembered: a dashboard's worth, at some 100 kB for a large one."""
CHARACTERS = 1 << 18
"""How long the remembered texts are together: their trees take about a hundred times that."""
MAGNITUDE = 4
"""Binary digits by which a table must become smaller than the query's largest for plans to be made again: sizes are compared with
each other, and an order of joins that is best now is seldom much worse when one table has ten times the rows.
"""
SMALL = 2
"""Orders of magnitude below the largest table from which on a table is just a small one."""


@dataclass
class Planned:
    """A planned query: its plan, what it reads, its visible columns and its order.

    `asked` are the names in its text; `collections` what it was lowered to, by the names of the columns; `joins` a join
    strategy that the statement forces.
    """

    plan: Node
    bound: Bound
    reads: set[str]
    asked: set[str]
    named: frozenset[str] = frozenset()
    """The relations that its own text names; views that it reads may name others."""
    collections: dict[tuple[str, ...], Collection] = field(default_factory=dict)
    joins: str = "auto"
    reads_system: bool = False
    """Whether it holds rows of the system catalogs, as they were when it was planned."""
    declared: tuple[str, ...] = ()
    """The types of PostgreSQL that its visible columns have, where ours do not say them."""
    secured: frozenset[str] = frozenset()
    """The tables whose policies were asked for."""
    reads_user: bool = False
    """Whether it depends on who its user is."""

    def joined_by(self, joins: str) -> Planned:
        """The same plan with a join strategy forced."""
        return self if joins == self.joins else replace(self, joins=joins, collections={})

    def again(self) -> Planned:
        """The same plan for another statement, which may give its columns other titles."""
        bound = self.bound
        fresh = Bound(bound.plan, bound.names, list(bound.titles), bound.order)
        return replace(self, bound=fresh, reads=set(self.reads))


@dataclass(frozen=True)
class Ground:
    """The facts that a plan depends on: the meaning of each name, relative sizes, and indexes. `generation` is that of the
    catalog when the indexes were read.
    """

    meanings: Meanings
    sizes: tuple[int, ...]
    indexes: tuple[frozenset[tuple[int, ...]], ...]
    generation: int
    zone: str
    """The time zone of the session, which casts from and to moments depend on."""
    user: str | None
    """The user whose statement it is, where that matters."""
    rights: tuple[str | None, int]
    """The role whose rights it has, and the version of the rights."""


@dataclass(frozen=True)
class Known:
    """A plan, its tree, and the facts that it depends on."""

    tree: exp.Expr
    planned: Planned
    ground: Ground


def is_same(one: Meaning, other: Meaning) -> bool:
    """Whether a name means the same: definitions do that are of one text and call their columns alike."""
    if one is other:
        return True
    if one is None or other is None or isinstance(one, Table | View) or isinstance(other, Table | View):
        return False
    return one.tree is other.tree and one.aliases == other.aliases


def carries_data(statement: parser.Statement) -> bool:
    """Whether a statement's text holds rows, and so will not come again."""
    return isinstance(statement, parser.Plain) and isinstance(statement.tree, exp.Insert | exp.Update | exp.Delete)


def labels_of(statements: Iterable[parser.Statement]) -> frozenset[str]:
    """The labels of the parameters of some statements."""
    return frozenset(label for statement in statements for label in parser.parameters_of(statement))


def check_given(labels: frozenset[str], parameters: Mapping[str, Any]) -> None:
    """Refuse values for parameters that there are not."""
    unused = [name for name in parameters if name not in labels]
    if unused:
        there = ", ".join(f"${label}" for label in sorted(labels)) or "no parameter"
        form = (
            "; parameters are a list or a mapping: sql(text, {'name': value})"
            if unused[0] in ("args", "params")
            else ""
        )
        raise IncorrectError(f"the value of ${unused[0]} is used nowhere: the text has {there}{form}")


class Remembered:
    """The cache of statements. The least recently used are removed first."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._statements: OrderedDict[str, list[parser.Statement]] = OrderedDict()
        self._characters = 0
        self._running: parser.Statement | None = None
        self._plans: OrderedDict[int, Known] = OrderedDict()
        self._labels: OrderedDict[str, frozenset[str]] = OrderedDict()

    def check_used(self, text: str, parameters: Mapping[str, Any]) -> None:
        """Refuse values for parameters that no statement of a text has, before any of them runs."""
        labels = self._labels.get(text)
        if labels is None:
            try:
                labels = labels_of(parser.parse(text))
            except TektiteError:
                return  # statements before the mistake are run, and then it is reported
            self._labels[text] = labels
            if len(self._labels) > PLANS:
                self._labels.popitem(last=False)
        check_given(labels, parameters)

    def statements(self, text: str) -> Iterator[parser.Statement]:
        """The statements of a text, one by one, so that those before a mistake are run."""
        known = self._statements.get(text)
        if known is not None:
            self._statements.move_to_end(text)
        found = []
        for statement in parser.parse(text) if known is None else known:
            found.append(statement)
            self._running = statement
            yield statement
        if text in self._statements or any(map(carries_data, found)):
            return
        self._statements[text] = found
        self._characters += len(text)
        while self._characters > CHARACTERS:
            oldest, _ = self._statements.popitem(last=False)
            self._characters -= len(oldest)

    def begin(self, statement: parser.Statement) -> None:
        """Remember the plan of a statement that the caller keeps, and is about to run."""
        self._running = statement

    def plan(self, tree: exp.Expr, make: Callable[[], Planned]) -> Planned:
        """The plan of a query's tree: a cached one if its facts still hold, or a new one."""
        running = self._running
        if running is None or carries_data(running) or tree.root() is not getattr(running, "tree", None):
            return make()  # not worth caching: it holds rows to write, or is made by us
        known = self._plans.get(id(tree))
        if known is not None and self._stands(known.ground):
            self._plans.move_to_end(id(tree))
            return known.planned.again()
        planned = make()
        if planned.reads_system:  # it holds rows of the system catalogs as they are
            return planned
        # The tree is held, so that no other one gets its id.
        self._plans[id(tree)] = Known(tree, planned, self._ground(planned))
        if len(self._plans) > PLANS:
            self._plans.popitem(last=False)
        return planned.again()

    def forget(self, name: str) -> None:
        """Let go of the plans that read something by this name."""
        for key in [key for key, known in self._plans.items() if name in known.planned.reads]:
            del self._plans[key]

    def _ground(self, planned: Planned) -> Ground:
        runner = self._runner
        meanings = tuple([(name, runner.relation_named(name)) for name in sorted(planned.asked)])
        return Ground(
            meanings, self._sizes(meanings), self._indexes(meanings), core_of(runner.engine).catalog.generation,
            runner.settings.zone, runner.settings.user if planned.reads_user else None, self._rights(),
        )  # fmt: skip

    def _rights(self) -> tuple[str | None, int]:
        access = self._runner.access
        return (access.who(), access.version) if access.is_configured else (None, 0)

    def _stands(self, ground: Ground) -> bool:
        """Whether the facts of a plan still hold. A table or view that was dropped and made again is a different one."""
        runner, meanings = self._runner, ground.meanings
        if ground.rights != self._rights() or ground.user not in (None, runner.settings.user):
            return False
        if not all([is_same(runner.relation_named(name), found) for name, found in meanings]):
            return False
        if self._sizes(meanings) != ground.sizes or runner.settings.zone != ground.zone:
            return False
        return (
            ground.generation == core_of(runner.engine).catalog.generation or self._indexes(meanings) == ground.indexes
        )

    def _sizes(self, meanings: Meanings) -> tuple[int, ...]:
        """By how many orders of magnitude each table is smaller than the largest."""
        sizes = [
            core_of(found).trace.rows.bit_length() if isinstance(found, Table | View) else 0 for _, found in meanings
        ]
        largest = max(sizes, default=0)
        return tuple([min((largest - size) // MAGNITUDE, SMALL) for size in sizes])

    def _indexes(self, meanings: Meanings) -> tuple[frozenset[tuple[int, ...]], ...]:
        """The first columns of the orders in which each table is arranged."""
        orders = core_of(self._runner.engine).catalog.orders_of
        tables = [found for _, found in meanings if isinstance(found, Table | View)]
        return tuple([frozenset([columns[:1] for columns in orders(found.operator)]) for found in tables])
