"""Range filters instead of joins with changing bounds: a change reads only the rows between the old and the new bound.

In a conjunction, a relation that is one aggregate for each key (or one for all), that is joined by these keys alone, of which one
value is compared by <, <=, > or >=, and of which nothing else is read, becomes the bound of a range filter over the rest. The
rule applies only where the planner chooses order and strategy.

>>> from tektite.plan.algebra import Linear, Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.types import Int
>>> pay = Schema(who=Int, pay=Int)
>>> rows = Rows(pay, pay.encode([(1, 10), (2, 30)]))
>>> mean = Aggregate(Schema(mean=Int), rows, (), (Linear("sum", 1),))
>>> clauses = Clause(rows, ("who", "pay")), Clause(mean, ("mean",))
>>> before = Match(Schema(who=Int), clauses, (), (col("pay") > col("mean"),), "auto")
>>> print("\\n".join(explain(*range_filters([before]))))
select who
  range filter pay > mean
    2 constant rows
    select mean
      aggregate mean = sum(pay)
        2 constant rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import Expr, at_scale, col
from tektite.expr import type_of as expression_type
from tektite.expr.comparisons import MIRRORED, ORDERING, SIGNS
from tektite.expr.fold import can_fail
from tektite.expr.interval_parts import isolated
from tektite.plan.algebra import (
    Aggregate,
    Clause,
    Concat,
    First,
    Join,
    Match,
    Operator,
    Project,
    RangeFilter,
    Read,
    Reduce,
)
from tektite.plan.conjunctions.binary import join_at_a_time
from tektite.plan.equal_columns import common_type
from tektite.plan.names import free_name
from tektite.plan.rules.local import PassContext, rule_for
from tektite.values.schema import Schema
from tektite.values.types import DecimalType, Type

ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "abs"})
"""Operations that fail by an overflow alone."""


def moves(operator: Operator) -> bool:
    """Whether a relation is an aggregate, or the time. One of all rows is there in any case: a union with what it is of none."""
    match operator:
        case Project():
            return moves(operator.input)
        case Concat():
            return moves(operator.parts[0])
        case Join():
            return all(map(moves, operator.inputs))
        case First():
            return operator.count == 1
        case Reduce():
            return operator.single
        case Read():
            return operator.readable.is_single
    return isinstance(operator, Aggregate)


def compares(match: Match) -> bool:
    """Whether an open conjunction may compare with a bound."""
    return bool(match.where) and match.is_open and any([moves(clause.operator) for clause in match.clauses])


@rule_for(Match, when=compares)
def range_filters(match: Match, context: PassContext) -> Operator:
    """An open conjunction with range filters instead of joins with bounds."""
    return bounded(match) if compares(match) else match


def bounded(match: Match) -> Operator:
    """A conjunction with each of its relations as a bound that can be one."""
    if len(match.clauses) > 1:
        for at, clause in enumerate(match.clauses):
            if moves(clause.operator):
                found = with_bound(match, at)
                if found is not None:
                    return found
    return match


def with_bound(match: Match, at: int) -> Operator | None:
    """A conjunction with one relation as the bound of the others, or None if it is more than that to them."""
    clause = match.clauses[at]
    others = tuple([other for place, other in enumerate(match.clauses) if place != at])
    elsewhere = {name for other in (*others, *match.without) for name in other.variables}
    own = clause.variables.keys() - elsewhere
    if own & set(match.schema.names) or clause.constants or any(len(c) > 1 for c in clause.variables.values()):
        return None
    compared = [part for part in match.where if set(part.columns()) & own]
    rest = tuple([part for part in match.where if not set(part.columns()) & own])
    sides = apart(with_moments_apart(compared[0], match), set(clause.variables), own) if len(compared) == 1 else None
    if sides is None:
        return None
    op, value, bound = sides
    kinds = type_of(value, match), type_of(bound, match)
    if not comparable(*kinds):
        return None
    if isinstance(kinds[0], DecimalType) and isinstance(kinds[1], DecimalType) and kinds[0].scale != kinds[1].scale:
        # to the side on which no decimal of the value's scale lies between
        bound = at_scale(bound, kinds[0].scale, up=op in ("lt", "ge"))
    wanted = kinds[0] if kinds[0].kind == kinds[1].kind else common_type(*kinds)
    keys = [name for name in clause.variables if name not in own]
    read = dict.fromkeys([*match.schema.names, *keys, *value.columns()])
    rows, names = rest_of(match, others, rest, list(read))
    kept = [names[name].params[0] for name in dict.fromkeys([*match.schema.names, *keys])]
    grouped = [names[key].params[0] for key in keys]
    rows, column = with_column(rows, value.substitute(names), kinds[0], wanted, kept, grouped)
    given = clause.operator
    columns = {name: col(given.schema.names[places[0]]) for name, places in clause.variables.items()}
    # decimals have one scale here, so that their words compare
    limit = bound.substitute(columns)
    limit = limit if kinds[1].kind == wanted.kind else limit.cast(wanted)
    if keys and fails_on_values(limit, given):
        return None
    title = str(limit.params[0]) if limit.op == "col" and limit.params[0] not in keys else free_name("bound", keys)
    schema = {key: match.types[key] for key in keys} | {title: expression_type(limit, given.schema.positions)}
    bounds = Project(Schema(schema), given, (*(columns[key] for key in keys), limit), None)
    place = rows.schema.index
    filtered = RangeFilter(
        rows.schema, rows, bounds, tuple([place(names[key].params[0]) for key in keys]), tuple(range(len(keys))),
        place(column), SIGNS[op], len(keys),
    )  # fmt: skip
    return Project(match.schema, filtered, tuple([names[name] for name in match.schema.names]), None)


def fails_on_values(bound: Expr, rows: Operator) -> bool:
    """Whether a bound of many may fail on one that nothing is compared with: computed in advance, it would fail all the same. An
    overflow of a number is left to fail.
    """
    if isinstance(rows, Project):
        computed = bound.substitute(dict(zip(rows.schema.names, rows.outputs, strict=True)))
        return fails_on_values(computed, rows.input)
    parts = [bound]
    while parts:
        part = parts.pop()
        parts += part.args
        own = can_fail(part, rows.schema.positions) and not any([can_fail(a, rows.schema.positions) for a in part.args])
        if own and part.op not in ARITHMETIC:
            return True
    return False


def rest_of(
    match: Match, others: tuple[Clause, ...], where: tuple[Expr, ...], variables: list[str]
) -> tuple[Operator, dict[str, Expr]]:
    """The rest of a conjunction, and for each variable its column there. A relation that is left alone stays whole."""
    if len(others) == 1 and not match.without:
        (clause,) = others
        if not where and not clause.constants and all(len(places) == 1 for places in clause.variables.values()):
            names = clause.operator.schema.names
            return clause.operator, {name: col(names[place]) for name, (place,) in clause.variables.items()}
    schema = Schema({name: match.types[name] for name in variables})
    found = replace(match, schema=schema, clauses=others, where=where)
    rows = join_at_a_time(found, [0]) if len(found.inputs) == 1 else bounded(found)
    return rows, {name: col(name) for name in variables}


def with_column(
    rows: Operator, value: Expr, kind: Type, wanted: Type, kept: Sequence[str], keys: Sequence[str]
) -> tuple[Operator, str]:
    """A relation with a column for a value of the wanted type, and its name. A key is constant in its group: it needs another.
    Where it is not one of the relation's own, only the columns that are kept stay beside it.
    """
    if value.op == "col" and kind == wanted and value.params[0] not in keys:
        return rows, str(value.params[0])
    name = free_name("value", rows.schema.names)
    value = value if kind == wanted else value.cast(wanted)
    columns = {old: rows.schema.types[rows.schema.index(old)] for old in kept}
    return Project(Schema({**columns, name: wanted}), rows, (*map(col, columns), value), None), name


def type_of(expression: Expr, match: Match) -> Type:
    return expression_type(expression, {name: (at, type) for at, (name, type) in enumerate(match.types.items())})


def with_moments_apart(part: Expr, match: Match) -> Expr:
    """A comparison in which a difference of two moments, such as `now - at < 1 hour`, is taken apart: `now - 1 hour < at`."""
    for side in part.args:
        if side.op == "sub":
            later, earlier = (type_of(moment, match) for moment in side.args)
            return isolated(part, (later, earlier))
    return part


def apart(part: Expr, variables: set[str], own: set[str]) -> tuple[str, Expr, Expr] | None:
    """A comparison as (operation, side of the others, side of the relation), if its sides are that."""
    if part.op not in ORDERING:
        return None
    one, other = part.args
    for op, value, bound in ((part.op, one, other), (MIRRORED[part.op], other, one)):
        inside, outside = set(bound.columns()), set(value.columns())
        if inside & own and inside <= variables and outside and not outside & own:
            return op, value, bound
    return None


def comparable(one: Type, other: Type) -> bool:
    """Whether both have one type in which they compare as by themselves: whole numbers and floats do not."""
    if one == other:
        return not one.interned
    kinds = {one.kind, other.kind}
    if one.interned or other.interned:
        return False
    return kinds <= {"decimal", "float"} or kinds == {"date", "timestamp"}
