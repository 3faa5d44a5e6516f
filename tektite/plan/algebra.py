"""The operators of a plan: immutable descriptions of collections, as a tree with sharing.

A plan says what a collection is, not how it is kept up to date; `render` decides that. Two plans that describe the
same collection in the same words have the same `fingerprint`, which is what the catalog shares arrangements by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr import Expr
from tektite.values.computed_once import computed_once
from tektite.values.schema import Schema
from tektite.values.types import Type

ColumnNumbers = tuple[int, ...]
"""Columns by number."""


@dataclass(eq=False, frozen=True)
class Loop:
    """A scope to iterate in. `parent` is the loop around it. After `limit` rounds it fails, with `advice` in the error. The
    results of a `shared` loop are arranged together, so that one dataflow runs it for all readers.
    """

    name: str
    limit: int
    parent: Loop | None = None
    shared: bool = False
    advice: str = "check that its body converges, or raise the loop's max_rounds="
    variables: list[Variable] = field(default_factory=list)
    definitions: dict[Variable, Operator] = field(default_factory=dict)
    leaves: list[Leave] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 1 if self.parent is None else self.parent.depth + 1

    def encloses(self, other: Loop | None) -> bool:
        """Whether `other` is this loop or lies within it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False


def innermost(operators: Sequence[Operator]) -> Loop | None:
    """The loop of a combination of collections: their innermost one. The loops of the others must enclose it."""
    found: Loop | None = None
    for operator in operators:
        loop = operator.loop
        if loop is None or (found is not None and loop.encloses(found)):
            continue
        if found is not None and not found.encloses(loop):
            raise IncorrectError(
                f"a collection of loop {loop.name!r} meets one of loop {found.name!r}, and neither loop is inside the "
                "other: leave the loop first"
            )
        found = loop
    return found


if TYPE_CHECKING:
    computed_from_inputs = computed_once
else:

    class computed_from_inputs(computed_once):  # noqa: N801, it is used as a decorator
        """A property that an operator computes from that of its inputs, in plans of any depth."""

        def __get__(self, found: Operator | None, owner: type | None = None) -> Any:
            try:
                return super().__get__(found, owner)
            except (
                RecursionError
            ):  # rare: then the inputs that lack it are computed first, the lowest before the others
                waiting = [found]
                while waiting:
                    lacking = [given for given in waiting[-1].inputs if self.name not in given.__dict__]
                    waiting.extend(lacking)
                    if not lacking:
                        super().__get__(waiting.pop(), owner)
                return found.__dict__[self.name]


@dataclass(eq=False, frozen=True)
class Operator:
    """A description of a collection."""

    schema: Schema

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The collections that this one is made of."""
        return ()

    @computed_from_inputs
    def loop(self) -> Loop | None:
        """The loop whose rounds this collection changes with."""
        return innermost(self.inputs)

    @computed_from_inputs
    def is_signed(self) -> bool:
        """Whether multiplicities may be negative: rows are subtracted that need not be there. Groups have one row each."""
        groups = isinstance(self, AtLeast | Aggregate | First | Reduce)
        return not groups and any(given.is_signed for given in self.inputs)

    @computed_from_inputs
    def fingerprint(self) -> tuple[Any, ...]:
        """Equal for plans of the same operators with the same parameters."""
        inputs = self.inputs
        return (
            type(self).__name__,
            self.schema,
            *self.parameters(),
            *([i.fingerprint for i in inputs] if inputs else ()),
        )

    @computed_from_inputs
    def digest(self) -> int:
        """Equal for plans with equal fingerprints, and seldom for others. It is computed once for a part that is used often."""
        try:
            return hash((type(self).__name__, self.schema, self.parameters(), *[i.digest for i in self.inputs]))
        except TypeError:  # a parameter, such as a function that is an object, has no hash
            return id(self)

    def parameters(self) -> tuple[Any, ...]:
        """The parameters of this operator, beside its inputs. By default the operator's identity."""
        return (id(self),)


def is_same(one: Operator, other: Operator) -> bool:
    """Whether two plans have the same fingerprint. Parts that are used many times are compared once."""
    seen: set[tuple[int, int]] = set()
    waiting = [(one, other)]
    while waiting:
        a, b = waiting.pop()
        places = id(a), id(b)
        if a is b or places in seen:
            continue
        seen.add(places)
        if type(a) is not type(b) or a.schema != b.schema or a.parameters() != b.parameters():
            return False
        if len(a.inputs) != len(b.inputs):
            return False
        waiting += zip(a.inputs, b.inputs, strict=True)
    return True


def count_uses(*roots: Operator) -> dict[Operator, int]:
    """The number of operators, loops included, that take each operator of some plans as an input."""
    uses: dict[Operator, int] = {}
    for root in roots:
        uses[root] = uses.get(root, 0) + 1
    waiting: list[Operator] = list(uses)
    loops: set[Loop] = set()
    while waiting:
        operator = waiting.pop()
        inputs = [*operator.inputs]
        if isinstance(operator, (Variable, Leave)) and operator.of not in loops:  # noqa: UP038, a union is made each time
            loops.add(operator.of)
            inputs += [leave.inner for leave in operator.of.leaves]
            inputs += operator.of.definitions.values()
            inputs += [variable.initial for variable in operator.of.variables if variable.initial is not None]
        for found in inputs:
            uses[found] = uses.get(found, 0) + 1
            if uses[found] == 1:
                waiting.append(found)
    return uses


class Readable(Protocol):
    """A source that a plan can read: a table, or a view's result."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_stream(self) -> bool:
        """Whether it keeps no history: only its changes can be read."""

    @property
    def is_single(self) -> bool:
        """Whether it always holds exactly one row that changes, as the time does."""

    @property
    def unique(self) -> tuple[int, ...] | None:
        """Columns in which no two rows agree, if such columns are known. Then no row occurs twice."""

    @property
    def orders(self) -> Sequence[tuple[int, ...]]:
        """The column orders of its shared arrangements."""

    @property
    def size(self) -> int:
        """About how many rows it holds."""

    @property
    def most_rows(self) -> int:
        """At least as many as its `size`, and found at once."""


@dataclass(eq=False, frozen=True)
class Read(Operator):
    """The collection of an input or a view."""

    readable: Readable

    def parameters(self) -> tuple[Any, ...]:
        return (id(self.readable),)


@dataclass(eq=False, frozen=True)
class Rows(Operator):
    """Constant rows: `words` is an array of columns x rows."""

    words: Any

    @computed_once
    def is_set(self) -> bool:
        """Whether no row occurs twice."""
        return bool(np.unique(self.words, axis=1).shape[1] == self.words.shape[1])

    def parameters(self) -> tuple[Any, ...]:
        return (self.words.shape, self.words.tobytes())


@dataclass(eq=False, frozen=True)
class Project(Operator):
    """One output column for each expression, for the rows where the predicate is true."""

    input: Operator
    outputs: tuple[Expr, ...]
    predicate: Expr | None

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        predicate = None if self.predicate is None else self.predicate.fingerprint
        return (tuple(o.fingerprint for o in self.outputs), predicate)


@dataclass(eq=False, frozen=True)
class MapBatches(Operator):
    """A pure Python function from record batches to record batches. With `many`, it returns the batch and, for each of
    its rows, the number of the row that it came from.
    """

    input: Operator
    function: Callable[[Any], Any]
    many: bool

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.function, self.many, self.schema)


@dataclass(eq=False, frozen=True)
class Concat(Operator):
    """The sum of collections: multiplicities add up."""

    parts: tuple[Operator, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.parts

    def parameters(self) -> tuple[Any, ...]:
        return ()


@dataclass(eq=False, frozen=True)
class Negate(Operator):
    """The collection with every multiplicity negated. What is `contained` is subtracted from a collection that has all of it."""

    input: Operator
    contained: bool = True

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    @computed_once
    def is_signed(self) -> bool:
        return not self.contained or self.input.is_signed

    def parameters(self) -> tuple[Any, ...]:
        return ()


@dataclass(eq=False, frozen=True)
class Arrange(Operator):
    """The same collection, kept as an arrangement by the key columns and shared through the catalog. `title` is its name in
    lists and errors.
    """

    input: Operator
    key: tuple[int, ...]
    title: str | None = None

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.key,)


@dataclass(eq=False, frozen=True)
class Join(Operator):
    """Pairs of rows that agree on the key columns. `outputs` are (side, column) pairs. With `one_to_one`, each row of either side
    has exactly one partner: a side of which nothing but the key is read can be left out.
    """

    left: Operator
    right: Operator
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]
    nulls_match: bool = False
    one_to_one: bool = False

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def parameters(self) -> tuple[Any, ...]:
        return (self.left_key, self.right_key, self.outputs, self.nulls_match)


@dataclass(eq=False, frozen=True)
class Clause:
    """A collection with a term for each of its columns: a variable by its name, a literal, or None for a column that
    does not matter. A variable that occurs twice means that both columns are equal.
    """

    operator: Operator
    terms: tuple[str | Expr | None, ...]

    @computed_once
    def variables(self) -> dict[str, tuple[int, ...]]:
        """The columns of each variable, in order of first appearance."""
        found: dict[str, tuple[int, ...]] = {}
        for column, term in enumerate(self.terms):
            if isinstance(term, str):
                found[term] = (*found.get(term, ()), column)
        return found

    @computed_once
    def constants(self) -> dict[int, Expr]:
        """The literals, by column. Each has the type of its column."""
        return {column: term for column, term in enumerate(self.terms) if isinstance(term, Expr)}

    @computed_once
    def fingerprint(self) -> tuple[Any, ...]:
        """Equal for clauses with the same terms over the same plan."""
        terms = tuple(term.fingerprint if isinstance(term, Expr) else term for term in self.terms)
        return (terms, self.operator.fingerprint)

    def __str__(self) -> str:
        terms = ", ".join("_" if term is None else str(term) for term in self.terms)
        return f"{describe(self.operator)}({terms})"


@dataclass(eq=False, frozen=True)
class Match(Operator):
    """A conjunction: all values of the variables for which every clause has the row that its terms describe, no clause of
    `without` has one, and all predicates of `where` are true. The schema's columns are variables.

    Multiplicities multiply, and add up over columns that are None. NULL equals nothing. A variable in two places is not
    a float: floats are compared through a column of their own. `order` lists clauses by number, or variables by name; `why`
    is the reason for a strategy other than `auto`.
    """

    clauses: tuple[Clause, ...]
    without: tuple[Clause, ...]
    where: tuple[Expr, ...]
    strategy: str
    order: tuple[int, ...] | tuple[str, ...] | None = None
    why: str = "asked for"
    is_ordered: bool = False
    """Whether the planner has chosen the order. Then a pipeline first takes what adds no rows."""

    @property
    def is_open(self) -> bool:
        """Whether the planner chooses the order and the strategy."""
        return self.strategy == "auto" and self.order is None

    @computed_once
    def inputs(self) -> tuple[Operator, ...]:
        return tuple([clause.operator for clause in (*self.clauses, *self.without)])

    @computed_once
    def types(self) -> dict[str, Type]:
        """The type of each variable."""
        return {
            variable: clause.operator.schema.types[columns[0]]
            for clause in reversed(self.clauses)
            for variable, columns in clause.variables.items()
        }

    def parameters(self) -> tuple[Any, ...]:
        clauses = tuple(tuple(c.fingerprint[0] for c in part) for part in (self.clauses, self.without))
        return (clauses, tuple(predicate.fingerprint for predicate in self.where), self.strategy, self.order)


@dataclass(eq=False, frozen=True)
class RangeFilter(Operator):
    """The rows whose `column` passes a `bound` with the same key columns, once for each such bound."""

    input: Operator
    bounds: Operator
    input_key: tuple[int, ...]
    bounds_key: tuple[int, ...]
    column: int
    comparison: str
    bound: int

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input, self.bounds)

    def parameters(self) -> tuple[Any, ...]:
        return (self.input_key, self.bounds_key, self.column, self.comparison, self.bound)


@dataclass(eq=False, frozen=True)
class AtLeast(Operator):
    """Each row with a multiplicity of at least `times`, once."""

    input: Operator
    times: int

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.times,)


@dataclass(frozen=True, slots=True)
class Linear:
    """One aggregate that is linear in the multiplicities: `kind` is count, sum or avg, and `column` is its argument."""

    kind: str
    column: int | None


@lru_cache(maxsize=1 << 10)
def linear_aggregates(*kinds: tuple[str, int | None]) -> tuple[Linear, ...]:
    """Linear aggregates, of which many plans have the same."""
    return tuple([Linear(kind, column) for kind, column in kinds])


@dataclass(eq=False, frozen=True)
class Aggregate(Operator):
    """One row for each key: the key, then the linear aggregates of its group."""

    input: Operator
    key: tuple[int, ...]
    aggregates: tuple[Linear, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.key, tuple((a.kind, a.column) for a in self.aggregates))


@dataclass(eq=False, frozen=True)
class First(Operator):
    """The first (or last) `count` rows of each key, in the order of the columns after the key. With `ties`, also all rows that
    agree with the last of these in that many columns. `order` says how many columns after the key make the order, if not all.
    The others can be dropped if nothing reads them.
    """

    input: Operator
    key: int
    count: int
    last: bool
    ties: int = 0
    order: int | None = None

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.key, self.count, self.last, self.ties)


@dataclass(frozen=True)
class Narrowed:
    """A function of groups that reads and returns fewer columns: those in `inputs` and `outputs`. Without a function, the rows
    of the groups are the result.
    """

    function: Callable[..., Any] | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(eq=False, frozen=True)
class Reduce(Operator):
    """The result of a pure Python function for the rows of each key, or of many keys at once (`together`).

    A function can have these attributes:

    | attribute | meaning |
    |---|---|
    | `single` | it returns at most one row for each group |
    | `only_checks` | it returns its rows unchanged; two rows in a group are an error |
    | `near(...)` | it can be evaluated for a stretch of an ordered group (`dataflow.near_reduce.NearFunction`) |
    | `narrowed(outputs)` | the `Narrowed` function that returns at least these columns, by number |
    """

    input: Operator
    key: int
    function: Callable[..., Any]
    together: bool = False

    @property
    def single(self) -> bool:
        """Whether the function returns at most one row for each group."""
        return bool(getattr(self.function, "single", False))

    @property
    def only_checks(self) -> bool:
        """Whether the function returns its rows unchanged."""
        return bool(getattr(self.function, "only_checks", False))

    def narrowed(self, outputs: set[int]) -> Narrowed | None:
        """The function with only the columns that some outputs need, if it can do without the others."""
        found = getattr(self.function, "narrowed", None)
        return None if found is None else found(outputs)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.key, self.function, self.schema)


@dataclass(eq=False, frozen=True)
class Inspect(Operator):
    """The same collection. A Python function is called with its changes."""

    input: Operator
    function: Callable[..., Any]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def parameters(self) -> tuple[Any, ...]:
        return (self.function,)


@dataclass(eq=False, frozen=True)
class Variable(Operator):
    """A collection of a loop: `initial` in round 0, and in each later round what its definition was one round earlier.

    With `starts`, it has no definition: it is `initial`, of which each row is there from the round on that column `starts` says.
    """

    name: str
    of: Loop
    initial: Operator | None
    starts: int | None = None

    @computed_once
    def is_signed(self) -> bool:
        return self.initial is not None and self.initial.is_signed

    @computed_once
    def loop(self) -> Loop | None:
        return self.of


@dataclass(eq=False, frozen=True)
class Leave(Operator):
    """The contents of a collection of a loop once nothing changes any more."""

    inner: Operator
    of: Loop
    title: str | None = None

    @computed_once
    def is_signed(self) -> bool:
        return self.inner.is_signed

    @computed_once
    def loop(self) -> Loop | None:
        return self.of.parent


def describe(operator: Operator, deep: int = 6) -> str:
    """A collection's name for users. It shows `deep` levels of operators, because a plan may use its parts many times."""
    if isinstance(operator, Arrange):
        return operator.title or describe(operator.input, deep)
    if isinstance(operator, Read):
        return str(operator.readable.name)
    if isinstance(operator, Variable):
        return operator.name
    if isinstance(operator, Leave):
        return operator.title or operator.of.name
    if isinstance(operator, Rows):
        return f"{operator.words.shape[1]} rows"
    inner = ", ".join([describe(i, deep - 1) for i in operator.inputs]) if deep else "..."
    return f"{type(operator).__name__.lower()}({inner})"
