"""The delta and Hector strategies: for each clause one pipeline from its changes to the changes of the result.

A pipeline begins with the changes of its *source* and goes through all other relations, each looked up in an arrangement
by the variables bound so far. Intermediate rows are not kept. Delta fetches clause by clause. Hector extends variable by
variable: for each row, the relation with the fewest candidates proposes values, and the others that have the variable check
them.

Relations are numbered, the negated ones first: a pipeline sees the relations before its source with their
changes, and those after it without. A negated relation N stands for 1 - N, whose change is the negative of N's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tektite.expr import Expr
from tektite.plan.algebra import Clause, ColumnNumbers, Match
from tektite.plan.conjunctions.clauses import keys_of, take_due
from tektite.plan.conjunctions.order import adds_at_most_one, connected, preferred

Has = Callable[[int, ColumnNumbers, int], bool]
"""Whether a relation has an arrangement by these leading columns already, of which so many are the key."""
PERMUTED = 4
"""Columns up to which all their orders are tried to find one that an arrangement has already."""


@dataclass(frozen=True)
class Access:
    """An arrangement of a relation by `columns`, the first `key` of which are bound before it is read."""

    relation: int
    columns: ColumnNumbers
    key: int


@dataclass(frozen=True)
class Fetch:
    """Each row with every row of the relation that agrees on what is bound: binds all variables of the clause."""

    access: Access


@dataclass(frozen=True)
class Subtract:
    """The rows that a negated relation does not hold."""

    access: Access


@dataclass(frozen=True)
class Extend:
    """Each row with every value of one variable that all of these relations allow: the one with the fewest values for this row
    lists them. Behind the key of each lies the variable.
    """

    variable: str
    extenders: tuple[Access, ...]
    completed: frozenset[int]
    """Relations whose last variable this is, so that their multiplicities count from here on."""
    counted: bool = False
    """Whether nothing after this step needs the variable, so that it is enough to count its values."""

    def is_of_two(self, relations: Sequence[Clause]) -> bool:
        """Whether two relations have the values, both looked up by what is bound and complete with this variable."""
        return len(self.extenders) == 2 and all(
            access.key
            and access.relation in self.completed
            and len(relations[access.relation].variables[self.variable]) == 1
            for access in self.extenders
        )


@dataclass(frozen=True)
class PipelineStep:
    """An action, and the predicates that are due after it."""

    action: Fetch | Subtract | Extend
    where: tuple[Expr, ...]


@dataclass(frozen=True)
class Pipeline:
    """The way of one relation's changes: predicates that apply to them alone, then the steps."""

    source: int
    where: tuple[Expr, ...]
    steps: tuple[PipelineStep, ...]


def relations_of(match: Match) -> tuple[Clause, ...]:
    """The negated clauses, as the sets of rows that they exclude, then the others."""
    negated = [Clause(keys_of(clause), tuple(clause.variables)) for clause in match.without]
    return (*negated, *match.clauses)


def pipelines_of(match: Match, relations: Sequence[Clause], has: Has, hector: bool) -> tuple[Pipeline, ...]:
    """A pipeline for each relation."""
    return tuple(_Planner(match, relations, has, hector).pipeline(source) for source in range(len(relations)))


class _Planner:
    """Makes one pipeline after the other; what is said about the present one changes as steps are added."""

    def __init__(self, match: Match, relations: Sequence[Clause], has: Has, hector: bool) -> None:
        self.relations = relations
        self.negated = len(match.without)
        self.match = match
        self.has = has
        self.hector = hector
        self.preference = [self.negated + at for at in preferred(match)]
        appearance = list(dict.fromkeys(v for at in self.preference for v in relations[at].variables))
        named = match.order is not None and match.order and isinstance(match.order[0], str)
        self.variables: list[str] = [str(v) for v in match.order or ()] if named else appearance
        self.named = bool(named)

    def pipeline(self, source: int) -> Pipeline:
        """The pipeline of one relation."""
        self.bound = set(self.relations[source].variables)
        self.waiting = list(self.match.where)
        self.barred = [at for at in range(self.negated) if at != source]
        self.left = [at for at in self.preference if at != source]
        self.steps: list[PipelineStep] = []
        where = tuple(take_due(self.waiting, self.bound))
        self._subtract()
        if self.hector:
            while self.left:
                self._next_variable()
        else:
            order = self._connected()
            for relation in order:
                self._fetch(relation)
        return Pipeline(source, where, tuple(self._counted(self.steps)))

    def _counted(self, steps: Sequence[PipelineStep]) -> list[PipelineStep]:
        """The steps, where two relations' values of a variable are counted if no predicate, no later step and no column of the
        result needs them.
        """
        needed = set(self.match.schema.names)
        found = []
        for step in reversed(steps):
            needed |= {name for predicate in step.where for name in predicate.columns()}
            action = step.action
            if isinstance(action, Extend):
                if action.variable not in needed and action.is_of_two(self.relations):
                    step = replace(step, action=replace(action, counted=True))
                read = action.extenders
            else:
                read = (action.access,)
            for access in read:
                terms = [self.relations[access.relation].terms[column] for column in access.columns[: access.key]]
                needed |= {term for term in terms if isinstance(term, str)}
            found.append(step)
        return found[::-1]

    def _connected(self) -> list[int]:
        """The remaining atoms in an order in which each shares variables with those before it, where possible."""
        match = self.match
        return connected(
            self.bound, self.relations, self.left, match.where, match.order is not None, keys_first=match.is_ordered
        )

    def _add(self, action: Fetch | Subtract | Extend, bound: Sequence[str]) -> None:
        self.bound |= set(bound)
        self.steps.append(PipelineStep(action, tuple(take_due(self.waiting, self.bound))))

    def _subtract(self) -> None:
        """Subtract negated relations as soon as their variables are bound."""
        for relation in list(self.barred):
            if all(v in self.bound for v in self.relations[relation].variables):
                self.barred.remove(relation)
                self._add(Subtract(self._access(relation)), ())

    def _bound_columns(self, relation: int) -> ColumnNumbers:
        """The columns of a relation whose variables are bound."""
        return tuple(
            c for c, term in enumerate(self.relations[relation].terms) if isinstance(term, str) and term in self.bound
        )

    def _access(self, relation: int, behind: ColumnNumbers = ()) -> Access:
        """The access by which to read a relation, given the bound variables. Constants are part of the key only where an
        arrangement has them, or where nothing else is bound: filtering what an arrangement holds for a bound variable is
        cheaper than another arrangement.
        """
        columns, constants = self._bound_columns(relation), tuple(self.relations[relation].constants)
        if constants:
            found = self._order_of(relation, (*columns, *constants), behind)
            if found is not None or not columns:
                columns = (*columns, *constants)
        found = self._order_of(relation, columns, behind)
        return Access(relation, (*columns, *behind) if found is None else found, len(columns))

    def _order_of(self, relation: int, columns: ColumnNumbers, behind: ColumnNumbers) -> ColumnNumbers | None:
        """The leading columns of an arrangement that begins with `columns` in any order, if there is one."""
        orders = permutations(columns) if len(columns) <= PERMUTED else (columns,)
        return next(((*o, *behind) for o in orders if self.has(relation, (*o, *behind), len(columns))), None)

    def _fetch(self, relation: int) -> None:
        if relation in self.left:
            self.left.remove(relation)
        self._add(Fetch(self._access(relation)), list(self.relations[relation].variables))
        self._subtract()

    # ------------------------------------------------------------------ variable by variable

    def _next_variable(self) -> None:
        for relation in self.left:
            if adds_at_most_one(self.relations[relation], self.bound):
                self._fetch(relation)
                return
        variable = self._choose()
        if variable is None:
            relation = self._connected()[0]
            self._fetch(relation)
            return
        talking = [at for at in self.left if variable in self.relations[at].variables]
        completed = frozenset(at for at in talking if self._unbound(at) == {variable})
        extenders = {at: access for at in talking if (access := self._extension(at, variable)) is not None}
        completed &= extenders.keys()
        keyed = [at for at, access in extenders.items() if access.key]
        others = [at for at in extenders if at not in keyed and (at in completed or self._is_small(at))]
        if len(keyed) == 1 and not others:
            self._fetch(keyed[0])
            return
        self.left = [at for at in self.left if at not in completed]
        self._add(Extend(variable, tuple(extenders[at] for at in (*keyed, *others)), completed), [variable])
        self._subtract()

    def _extension(self, relation: int, variable: str) -> Access | None:
        """The access by which to read a relation's values of a variable: by the bound variables, and by its constants. None if
        it knows nothing but constants and has no arrangement by them: a later step will read it by the variable.
        """
        clause = self.relations[relation]
        bound, behind = self._bound_columns(relation), clause.variables[variable]
        columns = (*bound, *clause.constants)
        found = self._order_of(relation, columns, behind)
        if found is None and clause.constants and not bound:
            return None
        return Access(relation, (*columns, *behind) if found is None else found, len(columns))

    def _is_small(self, relation: int) -> bool:
        """Whether a relation that knows nothing bound may propose all its values of a variable, in case it is smaller than what
        the others have for one row. It has two columns, so that the arrangement is one that a later step needs as well.
        """
        return len(self.relations[relation].terms) == 2

    def _unbound(self, relation: int) -> set[str]:
        return set(self.relations[relation].variables) - self.bound

    def _choose(self) -> str | None:
        """The next variable: one that several relations with bound columns talk about, the more the better; among equals, and
        where an order was given, in that order. None if no relation that is left knows a bound column.
        """
        known = [at for at in self.left if self._bound_columns(at)]
        reachable = [v for at in known for v in self._unbound(at)]
        candidates = [v for v in self.variables if v in reachable]
        if not candidates or self.named:
            return candidates[0] if candidates else None
        return max(candidates, key=reachable.count)
