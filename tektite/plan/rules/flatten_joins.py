"""Merges nested conjunctions, so that all their relations get one order and one strategy.

| in a clause | becomes |
|---|---|
| another conjunction | clauses and conditions of the outer one |
| a filter on a table | a condition; the whole table is read through its shared index |
| a projection of a table, a conjunction or a group's results | terms of the clause, and values computed from the joined rows |
| an equality of two variables | one variable |
| an equality of two values, where nothing else connects their relations | a key that both relations compute |
| a disjunction | also what it implies for each relation alone |

Parts with other readers stay apart, and so do parts of an outer loop, which change less often than the conjunction. If the
user has given an order, relations stay as they are, and only equal variables are merged.

>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.types import Int
>>> one, two = Schema(x=Int), Schema(y=Int, z=Int)
>>> rows, pairs = Rows(one, one.encode([(1,)])), Rows(two, two.encode([(1, 2)]))
>>> inner = Match(Schema(y=Int, w=Int), (Clause(pairs, ("y", None)), Clause(rows, ("w",))), (), (), "auto")
>>> equal, either = col("x") == col("y"), (col("w") > 3) | ((col("x") < 2) & (col("w") < 1))
>>> before = Match(Schema(w=Int), (Clause(rows, ("x",)), Clause(inner, ("y", "w"))), (), (equal, either), "auto")
>>> print("\\n".join(explain(*flatten_joins([before]))))
join of (x), (x, _), (w) to (w)
  where (w > 3) | (x < 2) & (w < 1)
  where (w > 3) | (w < 1)
  1 constant row
  1 constant row
  1 constant row
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tektite.expr import Expr, col
from tektite.expr import type_of as expression_type
from tektite.expr.predicates import conjuncts, reads_only
from tektite.plan.algebra import Arrange, Clause, Match, Operator, Project, Read, Rows
from tektite.plan.equal_columns import Classes, common_type, key_of
from tektite.plan.names import free_name, take_name
from tektite.plan.rules.factor_disjunctions import implied
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.rules.prune_columns import stands_whole
from tektite.plan.rules.push_predicates import settled
from tektite.values import types
from tektite.values.schema import Schema
from tektite.values.types import Type

LARGEST = 24
"""The most relations of one conjunction: more than users join, but few enough to be put in order. Larger ones stay nested,
such as a chain of common table expressions in which each uses the one before twice. Equal parts of them are computed once.
"""


def is_deep(match: Match) -> bool:
    """Whether a conjunction may hold others, or has conditions that connect its relations."""
    if match.order is not None:
        return any([part.op == "eq" for part in match.where])
    return any([type(clause.operator) in (Project, Match) for clause in match.clauses]) or any(
        [part.op in ("eq", "or") for part in match.where]
    )


@rule_for(Match, when=is_deep)
def flatten_joins(match: Match, context: PassContext) -> Operator:
    """A conjunction of all relations that are joined with each other."""
    return flattened(match, context) if is_deep(match) else match


def flattened(match: Match, context: PassContext) -> Operator:
    """One conjunction of all relations, under a projection if some of its outputs are computed."""
    flat = _Flat(match, context)
    if match.order is None:
        flat.gather()
    flat.unify()
    if match.order is None:
        flat.connect()
    order = flat.order()
    where = [*flat.where, *implied(flat.clauses, flat.where)]
    outputs = tuple([flat.values.get(name, col(name)) for name in match.schema.names])
    shown = list(dict.fromkeys(name for output in outputs for name in output.columns()))
    clauses = without_idle(flat.clauses, {*shown, *read_by(where, flat.without), *map(str, order or ())})
    if not flat.values and identical(where, match.where) and identical(clauses, match.clauses):
        return match
    kinds = variable_types(clauses)
    shown = shown or list(kinds)[:1]
    found = replace(
        match, schema=Schema({name: kinds[name] for name in shown}), clauses=tuple(clauses), where=tuple(where),
        without=tuple(flat.without), order=order,
    )  # fmt: skip
    found = settled(found, context)
    if shown == list(match.schema.names) and all(output.op == "col" for output in outputs):
        return found
    return Project(match.schema, found, outputs, None)


def identical(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two sequences hold the very same objects."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def variable_types(clauses: Iterable[Clause]) -> dict[str, Type]:
    """The type of each variable."""
    found: dict[str, Type] = {}
    for clause in clauses:
        for name, columns in clause.variables.items():
            found.setdefault(name, clause.operator.schema.types[columns[0]])
    return found


def read_by(where: Iterable[Expr], without: Iterable[Clause]) -> set[str]:
    """The variables of conditions and of negated clauses."""
    found = {name for part in where for name in part.columns()}
    return found.union(*(clause.variables for clause in without))


def without_idle(clauses: Sequence[Clause], read: set[str]) -> list[Clause]:
    """The clauses with None for variables that occur once and that nothing reads."""
    places = Counter(term for clause in clauses for term in clause.terms if isinstance(term, str))

    def kept(term: str | Expr | None) -> str | Expr | None:
        return None if isinstance(term, str) and places[term] == 1 and term not in read else term

    return [
        Clause(c.operator, terms) if (terms := tuple([kept(term) for term in c.terms])) != c.terms else c
        for c in clauses
    ]


class _Flat:
    """A conjunction while its relations are gathered.

    `values` says how to compute the variables that no clause binds.
    """

    def __init__(self, match: Match, context: PassContext) -> None:
        self.match = match
        self.context = context
        self.clauses: list[Clause] = list(match.clauses)
        self.without = list(match.without)
        self.where = list(match.where)
        self.values: dict[str, Expr] = {}
        self.taken = {name for clause in match.clauses for name in clause.variables}

    # ------------------------------------------------------------------ clauses of what clauses hold

    def gather(self) -> None:
        """Merge the operators of clauses into this conjunction, as far as possible."""
        waiting = list(reversed(self.clauses))
        self.clauses = []
        while waiting:
            clause = waiting.pop()
            operator = clause.operator
            others = [*self.clauses, *waiting, *self.without]
            if isinstance(operator, Project):
                below = self._below(clause, operator, others)
                waiting += [] if below is None else [below]
                self.clauses += [clause] if below is None else []
            elif isinstance(operator, Match) and self._merges(operator, len(others)):
                waiting += reversed(self._merged(clause, operator))
            else:
                self.clauses.append(clause)

    def _alone(self, operator: Operator) -> bool:
        return not self.context.shared(operator)

    def _merges(self, inner: Match, others: int) -> bool:
        """Whether a conjunction becomes part of this one."""
        return (
            inner.strategy == self.match.strategy
            and inner.order is None
            and self._alone(inner)
            and inner.loop is self.match.loop
            and others + len(inner.clauses) <= LARGEST
        )

    def _merged(self, clause: Clause, inner: Match) -> list[Clause]:
        """The clauses of an inner conjunction, in the variables of this one."""
        names: dict[str, str] = {}
        for name, term in zip(inner.schema.names, clause.terms, strict=True):
            if isinstance(term, str):
                names[name] = term
        for name in (name for found in inner.clauses for name in found.variables if name not in names):
            if name not in names:
                names[name] = take_name(name, self.taken)
        for name, term in zip(inner.schema.names, clause.terms, strict=True):
            if isinstance(term, Expr):
                self.where.append(col(names[name]) == term)
        columns = {old: col(new) for old, new in names.items() if old != new}
        self.where += [part.substitute(columns) if columns else part for part in inner.where]
        self.without += [with_names(found, names) for found in inner.without]
        return [with_names(found, names) for found in inner.clauses]

    def _below(self, clause: Clause, project: Project, others: Sequence[Clause]) -> Clause | None:
        """A clause over the input of a projection, or None if the projection stays."""
        if not self._alone(project) and not self._is_table(project):
            return None
        if not self._dissolves(project.input, project.predicate is None, len(others)):
            return None
        below = project.input.schema.names
        joined = {name for other in others for name in other.variables}
        terms: dict[str, str | Expr] = {}
        values: dict[str, Expr] = {}
        pairs = [(t, o) for t, o in zip(clause.terms, project.outputs, strict=True) if t is not None]
        # prefer a column's own name to its other name
        for term, output in sorted(
            pairs, key=lambda pair: not isinstance(pair[0], str) or pair[1].params[:1] != (pair[0],)
        ):
            if output.op == "col" and output.params[0] not in terms:
                terms[output.params[0]] = term
            elif isinstance(term, Expr) or term in joined or len(clause.variables[term]) > 1:
                return None
            else:
                values[term] = output
        parts = [] if project.predicate is None else conjuncts(project.predicate)
        for name in (name for e in (*parts, *values.values()) for name in e.columns()):
            if name not in terms:
                terms[name] = take_name(name, self.taken)
        columns = {name: col(term) if isinstance(term, str) else term for name, term in terms.items()}
        self.where = [*(part.substitute(columns) for part in parts), *self.where]
        self._replace({name: value.substitute(columns) for name, value in values.items()})
        return Clause(project.input, tuple([terms.get(name) for name in below]))

    def _replace(self, values: Mapping[str, Expr]) -> None:
        """Compute variables instead of binding them."""
        if values:
            self.where = [part.substitute(values) for part in self.where]
            self.values = {name: value.substitute(values) for name, value in self.values.items()} | dict(values)

    def _is_table(self, operator: Operator) -> bool:
        """Whether an operator selects from, filters or computes from a table whose indexes everybody shares."""
        while isinstance(operator, Project):
            operator = operator.input
        return has_history(operator)

    def _dissolves(self, operator: Operator, unfiltered: bool, others: int) -> bool:
        """Whether a projection of something is better computed from the joined rows."""
        while isinstance(operator, Project):
            if not self._alone(operator) and not self._is_table(operator):
                return False
            unfiltered = unfiltered and operator.predicate is None
            operator = operator.input
        if isinstance(operator, Match):
            return self._merges(operator, others)
        return has_history(operator) or (unfiltered and stands_whole(operator))

    # ------------------------------------------------------------------ equalities

    def unify(self) -> None:
        """Variables of different relations that a condition says are equal become one. Floats stay apart: 0.0 equals -0.0."""
        kinds = variable_types(self.clauses)
        classes: Classes[str] = Classes()
        members: dict[str, set[int]] = {}
        for at, clause in enumerate(self.clauses):
            for name in clause.variables:
                members.setdefault(name, set()).add(at)
        rest: list[Expr] = []
        for part in self.where:
            pair = [classes.of(arg.params[0]) for arg in part.args if arg.op == "col"] if part.op == "eq" else []
            if (
                len(pair) == 2
                and kinds[pair[0]] == kinds[pair[1]] != types.Float
                and members[pair[0]].isdisjoint(members[pair[1]])
            ):
                classes.join(*pair)
                members[pair[0]] |= members[pair[1]]
            else:
                rest.append(part)
        names = {name: classes.of(name) for name in kinds if classes.of(name) != name}
        if not names:
            return
        columns = {name: col(of) for name, of in names.items()}
        self.where = [part.substitute(columns) for part in rest]
        self.clauses = [with_names(clause, names) for clause in self.clauses]
        self.without = [with_names(clause, names) for clause in self.without]
        self.values = {name: value.substitute(columns) for name, value in self.values.items()} | columns

    def order(self) -> tuple[int, ...] | tuple[str, ...] | None:
        """The order that was asked for, each variable by the name that stands for it."""
        if not self.match.order or isinstance(self.match.order[0], int):
            return self.match.order
        found = [self.values.get(str(name), col(str(name))) for name in self.match.order]
        return tuple(dict.fromkeys(str(variable.params[0]) for variable in found))

    def connect(self) -> None:
        """Relations that nothing connects but an equality of two values get these as keys: a variable, or a computed column."""
        for part in list(self.where):
            found = [self._place_of(side) for side in part.args] if part.op == "eq" else []
            places = [at for at in found if at is not None]
            if len(places) < 2 or not self._apart(places[0], places[1]):
                continue
            self.where = [other for other in self.where if other is not part]
            typed = {variable: (0, kind) for variable, kind in variable_types(self.clauses).items()}
            sides = [expression_type(side, typed) for side in part.args]
            wanted = common_type(*sides)
            keys = [key_of(side, wanted, kind) for side, kind in zip(part.args, sides, strict=True)]
            columns = [str(key.params[0]) for key in keys if key.op == "col"]
            variable = columns[0] if columns else take_name("#key", self.taken)
            for at, key in zip(places, keys, strict=True):
                if key.op != "col" or key.params[0] != variable:
                    self.clauses[at] = with_key(self.clauses[at], key, variable, wanted)

    def _place_of(self, side: Expr) -> int | None:
        """The relation that has all variables of an expression."""
        read = side.columns()
        return next((at for at, clause in enumerate(self.clauses) if read and reads_only(side, clause.variables)), None)

    def _apart(self, one: int, other: int) -> bool:
        """Whether no variables lead from one relation to another."""
        reached, grown = {one}, True
        known = set(self.clauses[one].variables)
        while grown:
            grown = False
            for at, clause in enumerate(self.clauses):
                if at not in reached and not known.isdisjoint(clause.variables):
                    reached.add(at)
                    known |= set(clause.variables)
                    grown = True
        return other not in reached


def has_history(operator: Operator) -> bool:
    """Whether indexes of a collection are shared: of a table or view, of constants, of what is arranged explicitly."""
    if isinstance(operator, Read):
        return not operator.readable.is_stream
    return isinstance(operator, Rows | Arrange)


def with_names(clause: Clause, names: Mapping[str, str]) -> Clause:
    """A clause with some of its variables named otherwise."""
    terms = tuple([names.get(term, term) if isinstance(term, str) else term for term in clause.terms])
    return clause if terms == clause.terms else Clause(clause.operator, terms)


def with_key(clause: Clause, key: Expr, variable: str, kind: Type) -> Clause:
    """A clause with a further column, computed from its variables."""
    given = clause.operator
    columns = {name: col(given.schema.names[places[0]]) for name, places in clause.variables.items()}
    name = free_name("#key", given.schema.names)
    wanted = types.Int if kind == types.Float else kind
    schema = Schema({**dict(zip(given.schema.names, given.schema.types, strict=True)), name: wanted})
    outputs = (*map(col, given.schema.names), key.substitute(columns))
    return Clause(Project(schema, given, outputs, None), (*clause.terms, variable))
