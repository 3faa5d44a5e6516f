"""The binary strategy: a conjunction as joins of two, whose intermediate results are arranged.

Relations are read through shared arrangements. Predicates run on the output of a join before it is arranged, so that `where`
never copies an index. Constants and repeated variables select rows before the first join.
"""

from __future__ import annotations

from collections.abc import Sequence

from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Clause, Concat, Join, Match, Negate, Operator, Project, Read
from tektite.plan.conjunctions.clauses import keys_of, matching_rows, take_due
from tektite.values.schema import Schema


def join_at_a_time(match: Match, order: Sequence[int]) -> Operator:
    """The plan that joins the clauses one after the other in this order. Its columns are the conjunction's."""
    waiting = list(match.where)
    first, *rest = (match.clauses[at] for at in order)
    source: Operator = matching_rows(first)
    places = {variable: columns[0] for variable, columns in first.variables.items()}
    if not rest:
        source, places = _selected(match, source, places, list(places))
    for number, clause in enumerate(rest):
        later = rest[number + 1 :]
        bound = [*places, *(variable for variable in clause.variables if variable not in places)]
        due = take_due(waiting, bound)
        wanted = _wanted(match, bound, later, [name for predicate in waiting for name in predicate.columns()])
        tested = dict.fromkeys(name for predicate in due for name in predicate.columns())
        source = _joined(match, source, places, clause, [*wanted, *(v for v in tested if v not in wanted)])
        if due:
            source = _tested(match, source, list(wanted), due)
        places = {variable: at for at, variable in enumerate(wanted)}
    due = take_due(waiting, places)
    if due:
        source = _tested(match, source, list(places), due)
    for clause in match.without:
        source = _without(source, places, clause)
    if source.schema == match.schema:
        return source
    return Project(match.schema, source, tuple(map(col, match.schema.names)), None)


def _tested(match: Match, source: Operator, variables: Sequence[str], due: Sequence[Expr]) -> Operator:
    """Some variables of the rows that pass predicates."""
    schema = Schema({variable: match.types[variable] for variable in variables})
    return Project(schema, source, tuple(map(col, schema.names)), conjunction(due))


def _selected(
    match: Match, source: Operator, places: dict[str, int], variables: Sequence[str]
) -> tuple[Operator, dict[str, int]]:
    """A clause's collection with its variables for columns."""
    schema = Schema({variable: match.types[variable] for variable in variables})
    names = [source.schema.names[places[variable]] for variable in variables]
    return Project(schema, source, tuple(map(col, names)), None), {v: at for at, v in enumerate(variables)}


def _wanted(match: Match, bound: Sequence[str], later: Sequence[Clause], waiting: Sequence[str]) -> dict[str, None]:
    """The bound variables that are still needed, in the order of the result if that is all."""
    needed = {*match.schema.names, *waiting}.union(*(clause.variables for clause in (*later, *match.without)))
    names = match.schema.names
    is_result = not later and needed == set(names)
    return dict.fromkeys(names if is_result else [variable for variable in bound if variable in needed])


def _joined(match: Match, left: Operator, places: dict[str, int], clause: Clause, kept: Sequence[str]) -> Operator:
    right = matching_rows(clause)
    shared = _in_order_of_index([v for v in clause.variables if v in places], left, places, clause)
    outputs = tuple((0, places[v]) if v in places else (1, clause.variables[v][0]) for v in kept)
    schema = Schema({variable: match.types[variable] for variable in kept})
    left_key = tuple(places[variable] for variable in shared)
    right_key = tuple(clause.variables[variable][0] for variable in shared)
    return Join(schema, left, right, left_key, right_key, outputs)


def _in_order_of_index(shared: list[str], left: Operator, places: dict[str, int], clause: Clause) -> list[str]:
    """The variables to join by, in an order in which one of the sides is arranged already, if there is one."""
    sides = ((left, places), (clause.operator, {v: columns[0] for v, columns in clause.variables.items()}))
    for side, columns in sides if len(shared) > 1 else ():
        wanted = {columns[variable]: variable for variable in shared}
        for order in side.readable.orders if isinstance(side, Read) else ():
            if set(order[: len(wanted)]) == wanted.keys():
                return [wanted[column] for column in order[: len(wanted)]]
    return shared


def _without(source: Operator, places: dict[str, int], clause: Clause) -> Operator:
    """The rows of `source` that a negated clause has no match for."""
    keys = keys_of(clause)
    width = range(len(source.schema.names))
    key = tuple(places[variable] for variable in clause.variables)
    matched = Join(source.schema, source, keys, key, tuple(range(len(key))), tuple((0, column) for column in width))
    return Concat(source.schema, (source, Negate(source.schema, matched)))
