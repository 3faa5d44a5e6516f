"""Clauses as plans: their filters, the sets of negated clauses, and predicates whose variables are all bound."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import AtLeast, Clause, Match, Operator, Project
from tektite.plan.look_through import look_through
from tektite.plan.names import free_name
from tektite.plan.unique import unique_columns
from tektite.values.schema import Schema
from tektite.values.types import Float


def conditions(clause: Clause) -> list[Expr]:
    """The conditions on a clause's own rows: its constants, and columns that share a variable."""
    names = clause.operator.schema.names
    found = [col(names[column]) == constant for column, constant in clause.constants.items()]
    for first, *others in clause.variables.values():
        found += [col(names[first]) == col(names[other]) for other in others]
    return found


def matching_rows(clause: Clause) -> Operator:
    """The clause's collection without the rows that cannot match."""
    predicates = conditions(clause)
    source = clause.operator
    if not predicates:
        return source
    return Project(source.schema, source, tuple(map(col, source.schema.names)), conjunction(predicates))


def keys_of(clause: Clause) -> Operator:
    """The set of rows that a negated clause excludes, with one column for each variable."""
    source, schema = clause.operator, clause.operator.schema
    names = [schema.names[columns[0]] for columns in clause.variables.values()]
    predicates = conditions(clause)
    if not predicates and unique_columns(source) is not None and sorted(names) == sorted(schema.names):
        # It is a set already, and is read in place.
        selected = Schema(dict(zip(clause.variables, (schema.types[schema.index(n)] for n in names), strict=True)))
        return Project(selected, source, tuple(map(col, names)), None)
    keys = Schema({variable: schema.types[columns[0]] for variable, columns in clause.variables.items()})
    selected_rows = Project(keys, source, tuple(map(col, names)), conjunction(predicates) if predicates else None)
    return AtLeast(keys, selected_rows, 1)


def seen_through(match: Match) -> Match:
    """The conjunction with filters over explicit arrangements as predicates, so that the arrangements are read as they are."""
    where = list(match.where)
    clauses = []
    for number, clause in enumerate(match.clauses):
        source, columns, predicate = look_through(clause.operator)
        if source is clause.operator:
            clauses.append(clause)
            continue
        terms = list(clause.terms)
        for column, term in zip(columns, clause.terms, strict=True):
            terms[column] = term
        names = source.schema.names
        if predicate is not None:
            for name in predicate.columns():
                column = names.index(name)
                if terms[column] is None:
                    terms[column] = free_name(f"{name} of clause {number}", match.types)
            known = {names[c]: col(t) if isinstance(t, str) else t for c, t in enumerate(terms) if t is not None}
            where.append(predicate.substitute(known))
        clauses.append(Clause(source, tuple(terms)))
    return replace(match, clauses=tuple(clauses), where=tuple(where))


def with_constants(match: Match) -> tuple[Match, dict[str, Expr]]:
    """The conjunction with every variable that a predicate says is a literal replaced by it, and these literals. A row then has
    one candidate for the variable, and clauses are looked up by it. What a negated clause excludes by keeps its name.
    """
    barred = {variable for clause in match.without for variable in clause.variables}
    fixed: dict[str, Expr] = {}
    where: list[Expr] = []
    for predicate in match.where:
        variable, literal = _equation(predicate)
        known = variable is not None and literal is not None and variable not in barred and variable not in fixed
        if (
            known
            and variable is not None
            and literal is not None
            and literal.params[0] == match.types[variable] != Float
        ):
            fixed[variable] = literal
        else:
            where.append(predicate)
    if not fixed:
        return match, fixed
    clauses = [
        Clause(c.operator, tuple(fixed.get(t, t) if isinstance(t, str) else t for t in c.terms)) for c in match.clauses
    ]
    return replace(match, clauses=tuple(clauses), where=tuple(p.substitute(fixed) for p in where)), fixed


def _equation(predicate: Expr) -> tuple[str | None, Expr | None]:
    """The variable and the literal that a predicate says are equal, if that is what it says."""
    if predicate.op == "eq":
        for one, other in (predicate.args, reversed(predicate.args)):
            if one.op == "col" and other.op == "lit" and other.params[1] is not None:
                return str(one.params[0]), other
    return None, None


def take_due(waiting: list[Expr], bound: Collection[str]) -> list[Expr]:
    """Take out of `waiting` the predicates whose variables are all bound."""
    due = [predicate for predicate in waiting if all(name in bound for name in predicate.columns())]
    waiting[:] = [predicate for predicate in waiting if not any(predicate is taken for taken in due)]
    return due
