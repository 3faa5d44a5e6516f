"""Infers the types of predicates from those of some columns, through the rules.

Rules add types until nothing is left to add. A clash is refused, and the error names both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tektite.datalog.rules import expressions
from tektite.datalog.syntax import ir, statements
from tektite.errors import IncorrectError, TektiteError
from tektite.values.types import MOST_DIGITS, Decimal, DecimalType, Float, Int, Type


@dataclass(frozen=True)
class KnownType:
    """A type and where it comes from."""

    type: Type
    where: str


class Inference:
    """The known types of the columns of every predicate."""

    def __init__(self, known: Mapping[str, tuple[Sequence[Type], str]]) -> None:
        """`known` gives types for predicates that are declared or exist already, and says where from."""
        self.columns: dict[str, list[KnownType | None]] = {
            name: [KnownType(type, where) for type in types] for name, (types, where) in known.items()
        }
        self.declared = set(known)
        self._arity_at: dict[str, str] = {name: where for name, (_, where) in known.items()}

    def run(self, rules: Iterable[ir.Rule]) -> None:
        """Learn what the rules say, until they say nothing more."""
        rules = list(rules)
        for rule in rules:
            self._check_arity(rule.predicate, len(rule.terms), rule.where())
            for literal in rule.body:
                if isinstance(literal, ir.Atom | ir.Negation | ir.Lookup):
                    atom = literal if isinstance(literal, ir.Atom) else literal.atom
                    self._check_arity(atom.predicate, len(atom.terms), rule.where())
        changed = True
        while changed:
            changed = any([self._learn(rule) for rule in rules])
        for rule in rules:
            self._check_tests(rule)

    def _check_tests(self, rule: ir.Rule) -> None:
        types = self.variables(rule)
        for literal in rule.body:
            if isinstance(literal, ir.Comparison | ir.Condition) and all(
                v in types for v in ir.literal_variables(literal)
            ):
                try:
                    expressions.check_test(literal, types)
                except TektiteError as error:
                    raise error.reworded(f"{rule.where()}: {error}") from None

    def _check_arity(self, predicate: str, arity: int, where: str) -> None:
        if predicate not in self.columns:
            self.columns[predicate] = [None] * arity
            self._arity_at[predicate] = where
        elif len(self.columns[predicate]) != arity:
            raise IncorrectError(
                f"{where}: predicate {predicate!r} has {arity} column{'s' * (arity != 1)} here, and "
                f"{len(self.columns[predicate])} in {self._arity_at[predicate]}"
            )

    def _learn(self, rule: ir.Rule) -> bool:
        types = self.variables(rule)
        columns = self.columns[rule.predicate]
        changed = False
        for at, term in enumerate(rule.terms):
            found = head_type(term, types, rule)
            if found is None:
                continue
            before = columns[at]
            if before is None:
                columns[at] = KnownType(found, rule.where())
                changed = True
            elif before.type != found and not (
                isinstance(term, ir.Constant) and expressions.fits(term.value, before.type)
            ):
                if {before.type, found} == {Int, Float} and rule.predicate not in self.declared and found == Float:
                    columns[at] = KnownType(Float, rule.where())
                    changed = True
                    continue
                raise IncorrectError(
                    f"{rule.where()}: column {at + 1} of {rule.predicate!r} is {found} here, and {before.type} in "
                    f"{before.where}"
                )
        return changed

    def variables(self, rule: ir.Rule) -> dict[ir.RuleVariable, Type]:
        """The types of a rule's variables, as far as they are known."""
        found: dict[ir.RuleVariable, tuple[Type, str]] = {}

        def note(variable: ir.RuleVariable, type: Type, where: str) -> bool:
            before = found.setdefault(variable, (type, where))
            if before[0] != type:
                raise IncorrectError(
                    f"{rule.where()}: variable {variable.name!r} is {before[0]} in {before[1]} and {type} in {where}"
                )
            return before == (type, where)

        for literal in rule.body:
            if isinstance(literal, ir.Atom | ir.Negation | ir.Lookup):
                atom = literal if isinstance(literal, ir.Atom) else literal.atom
                for term, source in zip(atom.terms, self.columns[atom.predicate], strict=True):
                    if source is None:
                        continue
                    if isinstance(term, ir.RuleVariable) and not term.anonymous:
                        note(term, source.type, str(atom))
                    elif isinstance(term, ir.Constant) and not expressions.fits(term.value, source.type):
                        raise IncorrectError(
                            f"{rule.where()}: {term} in {atom} is {expressions.constant_type(term.value)}, but the column is "
                            f"{source.type} ({source.where})"
                        )
        for literal in rule.body:
            if isinstance(literal, ir.Lookup):
                source = self.columns[literal.atom.predicate][-1]
                if source is not None and not expressions.fits(literal.default.value, source.type):
                    raise IncorrectError(
                        f"{rule.where()}: {literal.default} is not of type {source.type}, as {literal.atom.predicate!r} is"
                    )
        equations = [e for e in rule.body if isinstance(e, ir.Comparison) and e.op == "="]
        size = -1
        while size < len(found):
            size = len(found)
            types = {variable: type for variable, (type, _) in found.items()}
            for equation in equations:
                for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
                    if isinstance(one, ir.RuleVariable) and one not in found:
                        type = self._term_type(other, types, rule)
                        if type is not None:
                            note(one, type, str(equation))
        return {variable: type for variable, (type, _) in found.items()}

    def _term_type(self, term: ir.Term, types: expressions.VariableTypes, rule: ir.Rule) -> Type | None:
        try:
            return expressions.term_type(term, types)
        except TektiteError as error:
            raise error.reworded(f"{rule.where()}: {error}") from None

    def types(self, predicate: str) -> tuple[Type, ...]:
        """The types of a predicate's columns; refuses a predicate of which one is not known."""
        columns = self.columns[predicate]
        missing = next((at for at, source in enumerate(columns) if source is None), None)
        if missing is not None:
            raise IncorrectError(
                f"the type of column {missing + 1} of {predicate!r} does not follow from its rules: no rule gives it a value "
                f"to begin with; declare it, as in .decl {predicate}({', '.join(f'c{i}: number' for i in range(len(columns)))})"
            )
        return tuple(source.type for source in columns if source is not None)


def head_type(term: ir.HeadTerm, types: expressions.VariableTypes, rule: ir.Rule) -> Type | None:
    """The type of a head's term, if it is known."""
    try:
        if not isinstance(term, ir.HeadAggregate):
            return expressions.term_type(term, types)
        of = None if term.of is None else expressions.term_type(term.of, types)
    except TektiteError as error:
        raise error.reworded(f"{rule.where()}: {error}") from None
    if term.kind in ("count", "count-distinct"):
        return Int
    if (
        term.kind in ("sum", "avg", "median", "variance", "stddev")
        and of is not None
        and of not in (Int, Float)
        and of.kind != "decimal"
    ):
        raise IncorrectError(f"{rule.where()}: {term} is taken of {of}, not of a number")
    if isinstance(of, DecimalType) and of.interned and term.kind == "sum":
        return Decimal(MOST_DIGITS, of.scale)
    return Float if term.kind in ("avg", "median", "variance", "stddev") and of is not None else of


def column_names(
    predicate: str, arity: int, declared: statements.Declaration | None, rules: Sequence[ir.Rule]
) -> tuple[str, ...]:
    """The names of a predicate's columns: as declared, or the variables of its first rule that names them all."""
    if declared is not None:
        return tuple(name for name, _ in declared.columns)
    for rule in rules:
        names = []
        for at, term in enumerate(rule.terms):
            plain = isinstance(term, ir.RuleVariable) and " " not in term.name
            aggregate = isinstance(term, ir.HeadAggregate) and isinstance(term.of, ir.RuleVariable | None)
            names.append(str(term) if plain else str(term).replace("(", "_").strip(")_") if aggregate else f"c{at}")
        if len(set(names)) == len(names) and not all(isinstance(term, ir.Constant) for term in rule.terms):
            return tuple(names)
    return tuple(f"c{at}" for at in range(arity))
