"""The body of a rule as a collection of bindings: one column for each variable that is wanted.

Positive atoms are clauses of one `match`, as long as variables connect them. An equation computes a variable from
others; where it connects what nothing else does, one part is completed, the variable computed, and the parts joined on
it. Parts that nothing connects are multiplied. Look-ups with a default follow last, then what they make comparable.

How a `match` is kept up to date is its own choice, with one exception: in a recursive rule that drops a variable on its way,
such as a of `edge(a, x), sg(a, b), edge(b, y)`, the clauses are joined two at a time, beginning with the recursive one. The
result of the first join is then consolidated before the second join. Otherwise each fact would be derived once for every value of
the dropped variable, in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tektite.datalog.rules import expressions
from tektite.datalog.syntax import ir
from tektite.engine.core import core_of
from tektite.expr import Expr, col
from tektite.plan import algebra as plan
from tektite.plan.conjunctions.strategy import is_cyclic
from tektite.query.collection import Collection
from tektite.query.match import Joins, match
from tektite.values.types import Type

BodyClause = tuple[Collection, Sequence[str | Expr | None]]
RelationOf = Callable[[str], Collection]
Constants = Callable[[Mapping[str, Expr]], Collection]
UNIT = "the unit"
"""A column that is the same in all rows. No text can name a variable with a space in it."""


@dataclass(eq=False)
class Part:
    """Some clauses that variables connect, and the tests that concern them alone."""

    clauses: list[BodyClause]
    variables: set[str]
    tests: list[Expr] = field(default_factory=list)
    recursive: bool = False


class Body:
    """Builds the bindings of one rule's body."""

    def __init__(
        self,
        rule: ir.Rule,
        types: Mapping[ir.RuleVariable, Type],
        relation: RelationOf,
        unit: Callable[[], Collection],
        inside: Container[str] = (),
        constants: Constants | None = None,
        joins: str = "auto",
    ) -> None:
        """`relation` gives the collection of a predicate; `unit` one with a single row, for bodies without atoms; `inside` are
        the predicates that are defined through each other here; `constants` makes a collection of one row of literals; `joins`
        forces a join strategy.
        """
        self.constants = constants
        self.joins = joins
        self.rule = rule
        self.inside = inside
        self.types = types
        self.relation = relation
        self.unit = unit
        self.equations = [c for c in rule.body if isinstance(c, ir.Comparison) and c.op == "="]
        self.tests: list[tuple[set[str], Expr]] = []
        for literal in rule.body:
            if isinstance(literal, ir.Comparison) and literal.op != "=":
                self._test(literal)
            elif isinstance(literal, ir.Condition):
                self.tests.append((names(ir.variables(literal.test)), expressions.expression(literal.test, types)))
        self.negations = [literal.atom for literal in rule.body if isinstance(literal, ir.Negation)]
        self.lookups = [literal for literal in rule.body if isinstance(literal, ir.Lookup)]

    def _test(self, literal: ir.Comparison) -> None:
        variables = names([*ir.variables(literal.left), *ir.variables(literal.right)])
        self.tests.append((variables, expressions.comparison(literal.op, literal.left, literal.right, self.types)))

    def bindings(self, wanted: Sequence[str]) -> Collection:
        """The bindings of the wanted variables, each as often as the body holds for them."""
        self.wanted = set(wanted) | {v for a in self.negations for v in names(ir.named(ir.literal_variables(a)))}
        self.wanted |= {v for lookup in self.lookups for v in names(ir.literal_variables(lookup))}
        atoms = [literal for literal in self.rule.body if isinstance(literal, ir.Atom)]
        atoms.sort(key=lambda atom: atom.predicate not in self.inside)
        parts = self._parts(atoms)
        self._connect(parts)
        while len(parts) > 1:
            parts[:2] = [self._multiplied(parts[0], parts[1])]
            self._connect(parts)
        if not parts:
            parts = [Part([(self.unit(), (UNIT,))], {UNIT})]
            self._connect(parts)
        (part,) = parts
        for lookup in self.lookups:
            part = self._looked_up(part, lookup)
            self._connect([part])
        if len(wanted) == 0:
            wanted = sorted(part.variables)[:1]
        return self._complete(part, wanted, self.negations)

    # ------------------------------------------------------------------ parts

    def _clause(self, atom: ir.Atom) -> BodyClause:
        collection = self.relation(atom.predicate)
        found: list[str | Expr | None] = []
        for term, type in zip(atom.terms, collection.schema.types, strict=True):
            if isinstance(term, ir.RuleVariable):
                found.append(None if term.anonymous else term.name)
            else:
                assert isinstance(term, ir.Constant)
                found.append(expressions.literal(term.value, type))
        return collection, found

    def _visible(self, clause: BodyClause, atom: ir.Atom) -> BodyClause:
        """A clause with a variable at least: one that is anonymous, or one that stands for an atom of constants alone."""
        collection, found = clause
        if any(isinstance(term, str) for term in found):
            return clause
        for at, term in enumerate(atom.terms):
            if isinstance(term, ir.RuleVariable):
                return collection, [term.name if i == at else other for i, other in enumerate(found)]
        for name, constant in zip(collection.schema.names, found, strict=True):
            assert isinstance(constant, Expr)
            collection = collection.filter(col(name) == constant)
        return collection.select(**{f"holds {atom}": 1}), [f"holds {atom}"]

    def _by_index(self, clause: BodyClause, constants: dict[str, Expr]) -> BodyClause:
        """A clause in which a constant that an index of what is stored finds is a variable, noted among the constants."""
        collection, given = clause
        operator = collection.operator
        if self.constants is None or not isinstance(operator, plan.Read) or operator.readable.is_stream:
            return clause
        for at, term in enumerate(given):
            if isinstance(term, Expr) and core_of(collection.engine).is_arranged(
                collection, collection.schema.names[at]
            ):
                same = (name for name, other in constants.items() if other.fingerprint == term.fingerprint)
                variable = next(same, f"constant {len(constants)}")
                constants[variable] = term
                terms_: list[str | Expr | None] = [variable if i == at else other for i, other in enumerate(given)]
                for i, other in enumerate(terms_):
                    if isinstance(other, Expr):  # tested on what the index finds, so that the index is read as it is
                        name = f"{collection.schema.names[i]} beside {variable} {len(self.tests)}"
                        self.tests.append(({name}, col(name) == other))
                        terms_[i] = name
                return collection, terms_
        return clause

    def _parts(self, atoms: Sequence[ir.Atom]) -> list[Part]:
        """The clauses of atoms, grouped by the variables that connect them, in the order they are given in."""
        constants: dict[str, Expr] = {}
        found = [
            (self._visible(self._by_index(self._clause(a), constants), a), a.predicate in self.inside) for a in atoms
        ]
        if constants and self.constants is not None:
            found.insert(0, ((self.constants(constants), list(constants)), False))
        clauses = [clause for clause, _ in found]
        parts: list[Part] = []
        for clause, inside in found:
            variables = {term for term in clause[1] if isinstance(term, str)}
            near = [part for part in parts if part.variables & variables]
            made = Part([c for part in near for c in part.clauses] + [clause], variables)
            made.variables = variables.union(*(part.variables for part in near))
            made.recursive = inside or any(part.recursive for part in near)
            parts = [part for part in parts if part not in near] + [made]
        order = {id(clause): at for at, clause in enumerate(clauses)}
        return sorted(parts, key=lambda part: min(order[id(clause)] for clause in part.clauses))

    def _connect(self, parts: list[Part]) -> None:
        """Use every equation and every test that the parts have values for."""
        again = True
        while again:
            again = False
            for equation in list(self.equations):
                if self._solve(equation, parts):
                    self.equations.remove(equation)
                    again = True
        for part in parts:
            part.tests += [test for variables, test in self.tests if variables <= part.variables]
            self.tests = [test for test in self.tests if not test[0] <= part.variables]

    def _solve(self, equation: ir.Comparison, parts: list[Part]) -> bool:
        both = names([*ir.variables(equation.left), *ir.variables(equation.right)])
        for part in parts:
            if both <= part.variables:
                part.tests.append(expressions.comparison("=", equation.left, equation.right, self.types))
                return True
        for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
            if not isinstance(one, ir.RuleVariable):
                continue
            for part in parts:
                if names(ir.variables(other)) <= part.variables:
                    self._compute(one, other, part, parts)
                    return True
        return False

    def _compute(self, variable: ir.RuleVariable, term: ir.Term, part: Part, parts: list[Part]) -> None:
        """Give a part a further variable, and join it with the part that has that variable already."""
        value = expressions.expression(term, self.types)
        type = self.types[variable]
        if isinstance(term, ir.Constant):
            value = expressions.literal(term.value, type)
        kept = self._needed(part, parts) | names(ir.variables(term))
        made = self._complete(part, sorted(kept & part.variables) or sorted(part.variables)[:1])
        made = made.with_columns(**{variable.name: value})
        if expressions.may_fail(term):
            made = made.filter(col(variable.name).is_not_null())
        part.clauses = [(made, made.schema.names)]
        part.variables = set(made.schema.names)
        part.tests = []
        for other in parts:
            if other is not part and variable.name in other.variables:
                part.clauses += other.clauses
                part.variables |= other.variables
                part.tests += other.tests
                part.recursive |= other.recursive
                parts.remove(other)
                return

    def _needed(self, part: Part, parts: Sequence[Part]) -> set[str]:
        """The variables that something beside the part itself looks at."""
        found = self.wanted.union(*(other.variables for other in parts if other is not part))
        for equation in self.equations:
            found |= names([*ir.variables(equation.left), *ir.variables(equation.right)])
        return found.union(*(variables for variables, _ in self.tests))

    def _complete(self, part: Part, wanted: Sequence[str], negated: Sequence[ir.Atom] = ()) -> Collection:
        """A part as a collection, with what is needed of it beside what is wanted."""
        without = [self._clause(atom) for atom in negated]
        strategy = self.joins
        if (
            strategy == "auto"
            and part.recursive
            and len(part.clauses) > 2
            and not part.variables <= {*wanted, *self.wanted}
        ):
            edges = [{term for term in found if isinstance(term, str)} for _, found in part.clauses]
            strategy = "auto" if is_cyclic(edges) else "binary"
        return match(*part.clauses, find=wanted, where=part.tests, without=without, joins=cast(Joins, strategy))

    def _multiplied(self, one: Part, other: Part) -> Part:
        """Every binding of one part with every binding of another, which nothing connects."""
        sides = []
        for part in (one, other):
            kept = sorted(self._needed(part, ()) & part.variables)
            sides.append(self._complete(part, kept or sorted(part.variables)[:1]))
        both = sides[0].join(sides[1], how="cross")
        return Part([(both, both.schema.names)], set(both.schema.names))

    def _looked_up(self, part: Part, lookup: ir.Lookup) -> Part:
        """A part with one more variable: what a predicate has for some others, or a default."""
        *keys, value = lookup.atom.terms
        assert isinstance(value, ir.RuleVariable)
        name = value.name
        while name in part.variables:  # an equation has computed it already: then both must agree
            name += "'"
        rows = self._complete(part, sorted(part.variables))
        table = self.relation(lookup.atom.predicate)
        columns = table.schema.names
        on = {f"key {at}": expressions.expression(key, self.types) for at, key in enumerate(keys)}
        mine = rows.with_columns(**on)
        theirs = table.select(**{key: col(columns[at]) for at, key in enumerate(on)}, **{name: col(columns[-1])})
        there = mine.join(theirs, on=list(on)).select(*rows.schema.names, name)
        missing = mine.join(theirs.select(*on), on=list(on), how="anti")
        default = expressions.literal(lookup.default.value, table.schema.types[-1])
        made = there.concat(missing.select(*rows.schema.names, **{name: default}))
        tests = [] if name == value.name else [col(name) == col(value.name)]
        return Part([(made, made.schema.names)], set(made.schema.names), tests)


def names(variables: Iterable[ir.RuleVariable]) -> set[str]:
    """The names of some variables."""
    return {variable.name for variable in variables}
