"""Computes conditions and join keys that may fail on a row last, over the rows that pass everything else.

A conjunction is maintained by several pipelines, and each would count a failure in between differently. Over the result, an
error appears and disappears with its row, and the other conditions guard it.

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.types import Int
>>> pair = Schema(x=Int, y=Int)
>>> rows = Rows(pair, pair.encode([(1, 2)]))
>>> clauses = (Clause(rows, ("a", "b")), Clause(rows, ("b", "c")))
>>> before = Match(Schema(a=Int), clauses, (), (col("a") < 9, col("a") + col("c") > 5), "auto")
>>> after, = guard_failures([before])
>>> print(explain(after)[0])
select a where a + c > 5
>>> [str(part) for part in after.input.where]
['a < 9']

A key that may fail is computed over the join of its relation with those that do not need it, which guard it:

>>> keyed = Project(Schema(x=Int, key=Int), rows, (col("x"), col("y") + 1), None)
>>> clauses = (Clause(keyed, ("a", "k")), Clause(rows, ("a", "b")), Clause(rows, ("k", "c")))
>>> after, = guard_failures([Match(Schema(c=Int), clauses, (), (), "auto")])
>>> print("\\n".join(line for line in explain(after) if "constant" not in line))
join of (k), (k, c) to (c)
  select k = #y + 1
    join of (a, #y), (a, b) to (#y)
      select x, #y = y
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from tektite.expr import Expr, col
from tektite.expr.fold import can_fail
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Clause, Match, Operator, Project
from tektite.plan.names import take_name
from tektite.plan.walk import transform, walk, with_inputs
from tektite.values.schema import Schema
from tektite.values.types import Type


def guard_failures(roots: Sequence[Operator]) -> list[Operator]:
    """Plans whose conjunctions have no condition that may fail."""
    if not any([type(operator) is Match and _computes(operator) for operator in walk(roots)]):
        return list(roots)

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        return guarded(keys_last(inlined(found))) if isinstance(found, Match) else found

    return transform(roots, rewrite)


def _computes(match: Match) -> bool:
    """Whether a conjunction has conditions, or relations that compute something: nothing else can fail."""
    return bool(match.where) or any([type(clause.operator) is Project for clause in match.clauses])


def inlined(match: Match) -> Match:
    """A conjunction in which conditions, not relations, compute values that may fail and that nothing else reads."""
    conditions = {name for part in match.where for name in part.columns()}
    if not conditions:
        return match
    for at, clause in enumerate(match.clauses):
        others = {
            v for place, other in enumerate((*match.clauses, *match.without)) if place != at for v in other.variables
        }
        elsewhere = others | set(match.schema.names)
        if isinstance(clause.operator, Project):
            values = {v: e for v, e in computed_failing(clause).items() if v in conditions and v not in elsewhere}
            if values:
                first, inputs = with_inputs_of(clause, values, set(match.types))
                instead = {v: e.substitute(inputs) for v, e in values.items()}
                clauses = (*match.clauses[:at], first, *match.clauses[at + 1 :])
                where = tuple([part.substitute(instead) for part in match.where])
                return inlined(replace(match, clauses=clauses, where=where))
    return match


def computed_failing(clause: Clause) -> dict[str, Expr]:
    """The variables that a clause computes, each by an expression that may fail."""
    rows, found = clause.operator, {}
    assert isinstance(rows, Project)
    for variable, places in clause.variables.items():
        expression = rows.outputs[places[0]]
        if expression.op != "col" and len(places) == 1 and can_fail(expression, rows.input.schema.positions):
            found[variable] = expression
    return found


def with_inputs_of(clause: Clause, values: Mapping[str, Expr], taken: set[str]) -> tuple[Clause, dict[str, Expr]]:
    """A clause without some variables that it computes, but with those that they are computed from, and which these are."""
    rows = clause.operator
    assert isinstance(rows, Project)
    given = rows.input.schema
    needed = [name for name in given.names if any([name in e.columns() for e in values.values()])]
    inputs = {name: take_name(f"#{name}", taken) for name in needed}
    kept = [place for place, term in enumerate(clause.terms) if not (isinstance(term, str) and term in values)]
    names: set[str] = set()
    own = {take_name(rows.schema.names[place], names): rows.schema.types[place] for place in kept}
    own |= {take_name(inputs[name], names): given.types[given.index(name)] for name in needed}
    outputs = (*(rows.outputs[place] for place in kept), *map(col, needed))
    terms = (*(clause.terms[place] for place in kept), *inputs.values())
    first = Clause(Project(Schema(own), rows.input, outputs, rows.predicate), terms)
    return first, {name: col(variable) for name, variable in inputs.items()}


def keys_last(match: Match) -> Match:
    """An open conjunction without a computed key that may fail on rows which another relation would remove."""
    if match.is_open and len(match.clauses) > 2:
        for at in range(len(match.clauses)):
            found = key_last(match, at)
            if found is not None:
                return keys_last(found)
    return match


def key_last(match: Match, at: int) -> Match | None:
    """A conjunction in which the keys of a relation that may fail are computed over its join with the relations that do not need
    them; None if it has no such key, or if nothing guards it.
    """
    clause = match.clauses[at]
    if not isinstance(clause.operator, Project):
        return None
    keys = failing_keys(match, at)
    others = [other for place, other in enumerate(match.clauses) if place != at]
    guards = guards_of(clause, others, match.where, keys)
    if not keys or not guards:
        return None
    first, inputs = with_inputs_of(clause, keys, set(match.types))
    # Everything that can be decided without the keys.
    inner = (first, *guards)
    bound = {variable for each in inner for variable in each.variables}
    where = tuple([part for part in match.where if set(part.columns()) <= bound])
    without = tuple([each for each in match.without if set(each.variables) <= bound])
    outer = [other for other in others if other not in guards]
    left = tuple([part for part in match.where if not set(part.columns()) <= bound])
    not_yet = tuple([each for each in match.without if not set(each.variables) <= bound])
    read = {*match.schema.names, *(name for part in left for name in part.columns())}
    read |= {variable for each in (*outer, *not_yet) for variable in each.variables}
    types = {variable: type for each in reversed(inner) for variable, type in types_of(each).items()}
    shown = [variable for variable in types if variable in read]
    guarded_rows = Match(
        Schema({v: types[v] for v in dict.fromkeys([*shown, *(e.params[0] for e in inputs.values())])}), inner, without,
        where, match.strategy,
    )  # fmt: skip
    computed = {key: expression.substitute(inputs) for key, expression in keys.items()}
    schema = Schema({v: types[v] for v in shown} | {key: match.types[key] for key in keys})
    last = Project(schema, guarded(guarded_rows), (*map(col, shown), *computed.values()), None)
    return replace(match, clauses=(Clause(last, schema.names), *outer), without=not_yet, where=left)


def failing_keys(match: Match, at: int) -> dict[str, Expr]:
    """The variables by which a relation is joined with others and which it computes by an expression that may fail."""
    others = {v for place, other in enumerate(match.clauses) if place != at for v in other.variables}
    return {v: expression for v, expression in computed_failing(match.clauses[at]).items() if v in others}


def guards_of(clause: Clause, others: Sequence[Clause], where: Sequence[Expr], keys: Container[str]) -> list[Clause]:
    """The relations that are joined with one, directly or through each other, or tested together with it, without any of its
    keys.
    """
    free = [other for other in others if not any(variable in keys for variable in other.variables)]
    tests = [set(part.columns()) for part in where if not any(name in keys for name in part.columns())]
    reached = {variable for variable in clause.variables if variable not in keys}
    found: list[Clause] = []

    def is_reached(variables: set[str]) -> bool:
        return bool(reached & variables) or any(reached & test and variables & test for test in tests)

    while more := [other for other in free if other not in found and is_reached(set(other.variables))]:
        found += more
        reached |= {variable for other in more for variable in other.variables}
    return [other for other in others if other in found]


def types_of(clause: Clause) -> dict[str, Type]:
    """The types of a clause's variables."""
    types = clause.operator.schema.types
    return {variable: types[places[0]] for variable, places in clause.variables.items()}


def guarded(match: Match) -> Operator:
    """A conjunction under a filter by its conditions that may fail."""
    types = {variable: (0, type) for variable, type in match.types.items()}
    risky = [part for part in match.where if can_fail(part, types)]
    if not risky:
        return match
    safe = tuple([part for part in match.where if not any(part is other for other in risky)])
    names = match.schema.names
    tested = [name for part in risky for name in part.columns() if name not in names]
    columns = dict(zip(names, match.schema.types, strict=True)) | {name: match.types[name] for name in tested}
    inner = replace(match, schema=Schema(columns), where=safe)
    return Project(match.schema, inner, tuple([col(name) for name in names]), conjunction(risky))
