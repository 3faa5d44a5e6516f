"""Drops columns that nothing reads: they are not computed, not joined, not kept in state.

A collection that is joined through a shared or existing arrangement keeps all its columns.

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> two = Schema(x=Int, y=Int)
>>> rows = Rows(two, two.encode([(1, 2)]))
>>> wide = Project(Schema(x=Int, y=Int, z=Int), rows, (col("x"), col("y"), col("x") * col("y")), None)
>>> before = Project(Schema(x=Int), Concat(wide.schema, (wide, wide)), (col("x"),), None)
>>> print("\\n".join(explain(*prune_columns([before]))))
select x
  union all
    #1 select x
      1 constant row
    as #1 above
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tektite.plan.algebra import (
    Aggregate,
    Arrange,
    AtLeast,
    Clause,
    Concat,
    First,
    Join,
    Leave,
    Match,
    Negate,
    Operator,
    Project,
    RangeFilter,
    Read,
    Reduce,
    Rows,
    Variable,
)
from tektite.plan.conjunctions.strategy import choose
from tektite.plan.look_through import permutation
from tektite.plan.projections import below_renaming, renamed, selected
from tektite.plan.walk import is_shared, readers_first, transform, with_inputs


def prune_columns(roots: Sequence[Operator]) -> list[Operator]:
    """Plans without columns that are not read."""
    read: dict[Operator, set[int]] = {}
    order, bodies = readers_first(roots)
    for root in bodies:
        read[root] = everything(root)
    narrow: dict[Operator, Match] = {}
    for operator in order:
        here = read[operator]
        if type(operator) is Match:
            narrow[operator] = narrowed(operator, shown(here, operator))
            wanted = wanted_of_clauses(narrow[operator])
        elif operator.inputs and not is_shared(operator):
            wanted = wanted_of_inputs(operator, here)
        else:
            continue
        for given, columns in zip(operator.inputs, wanted, strict=True):
            read[given] = read[given] | columns if given in read else columns
    kept: dict[Operator, list[int]] = {}
    whole = True
    for operator in reversed(order):
        kept[operator] = columns_kept(operator, read[operator], kept)
        whole = whole and len(kept[operator]) == len(operator.schema.names)
    if whole:
        return list(roots)

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        if type(operator) is Match:
            return with_clauses(operator, narrow[operator], inputs, kept)
        return rebuilt(operator, inputs, kept)

    return transform(roots, rewrite)


def everything(operator: Operator) -> set[int]:
    """All columns."""
    return set(range(len(operator.schema.names)))


def some(columns: set[int], of: Operator) -> list[int]:
    """Some columns of a collection, in order: one of them at least, if it has any."""
    return sorted(columns) or ([0] if of.schema.names else [])


def shown(columns: set[int], match: Match) -> list[int]:
    """The columns of a conjunction that are read, in order. If none is, a conjunction that is extended variable by variable has
    none: it counts the values of its last variable, which that could be.
    """
    return sorted(columns) if choose(match).strategy == "hector" else some(columns, match)


def stands_whole(operator: Operator) -> bool:
    """Whether a collection is best joined with all its columns, because there is, or will be, an arrangement of it."""
    base, _ = below_renaming(operator)
    if isinstance(base, Project) and isinstance(base.input, Arrange):
        return permutation(base) is not None  # a filter that runs on what is joined
    if isinstance(base, Read):
        return not base.readable.is_stream
    return isinstance(base, Rows | Arrange | Variable | Leave | AtLeast | Aggregate | First | Reduce)


def joined(side: Operator, columns: Iterable[int]) -> set[int]:
    """The columns that are read of one side of a join that needs these."""
    base, below = below_renaming(side)
    if isinstance(base, Aggregate):  # its keys are what it is arranged by
        return set(columns) | {at for at, column in enumerate(below) if column < len(base.key)}
    return everything(side) if stands_whole(side) else set(some(set(columns), side))


def wanted_of_inputs(operator: Operator, here: set[int]) -> list[set[int]]:
    """The columns of each input that an operator reads, if some of its own columns are read."""
    match operator:
        case Project():
            outputs = [operator.outputs[at] for at in some(here, operator)]
            tests = [] if operator.predicate is None else [operator.predicate]
            schema = operator.input.schema
            return [{schema.index(name) for output in (*outputs, *tests) for name in output.columns()}]
        case Concat():
            return [set(some(here, operator)) for _ in operator.parts]
        case Negate():
            return [here]
        case Join() if (alone := only_side(operator, some(here, operator))) is not None:
            side, columns = alone
            return [set(columns) if at == side else set() for at in range(2)]
        case Join():
            sides = [set(operator.left_key), set(operator.right_key)]
            for at in some(here, operator):
                side, column = operator.outputs[at]
                sides[side].add(column)
            return [joined(side, columns) for side, columns in zip(operator.inputs, sides, strict=True)]
        case RangeFilter():
            rows = here | {*operator.input_key, operator.column}
            bounds = {*operator.bounds_key, operator.bound}
            return [joined(operator.input, rows), joined(operator.bounds, bounds)]
        case Aggregate():
            calls = [a for at, a in enumerate(operator.aggregates) if at + len(operator.key) in here]
            calls = calls or list(operator.aggregates[:1])
            return [{*operator.key, *(a.column for a in calls if a.column is not None)}]
        case First() if operator.order is not None:
            return [{*range(operator.key + operator.order), *here}]
        case Reduce() if (narrow := operator.narrowed(here)) is not None:
            return [set(narrow.inputs)]
    return [everything(given) for given in operator.inputs]


def wanted_of_clauses(match: Match) -> list[set[int]]:
    """The columns that a conjunction reads of each relation."""
    clauses = (*match.clauses, *match.without)
    return [joined(c.operator, [at for at, term in enumerate(c.terms) if term is not None]) for c in clauses]


def columns_kept(operator: Operator, here: set[int], kept: dict[Operator, list[int]]) -> list[int]:
    """The columns that an operator keeps when pruned."""
    match operator:
        case _ if is_shared(operator):
            pass
        case Match():
            return shown(here, operator)
        case Project() | Concat() | Join():
            return some(here, operator)
        case Negate() | RangeFilter():
            return kept[operator.inputs[0]]
        case Aggregate() if operator.aggregates:
            keys = range(len(operator.key))
            calls = sorted(at for at in here if at >= len(operator.key))
            return [*keys, *(calls or [len(operator.key)])]
        case First() if operator.order is not None:
            return sorted({*range(operator.key + operator.order), *here})
        case Reduce() if (narrow := operator.narrowed(here)) is not None:
            return list(narrow.outputs)
        case Read() if operator.readable.is_stream:
            return some(here, operator)
    return sorted(everything(operator))


def only_side(join: Join, columns: Sequence[int]) -> tuple[int, list[int]] | None:
    """The side of a join that has all columns which are read, and where, if the other one adds and drops no rows."""
    keys = {(0, left): right for left, right in zip(join.left_key, join.right_key, strict=True)}
    keys |= {(1, right): left for (_, left), right in keys.items()}
    for side in range(2) if join.one_to_one else ():
        found = [
            (at, c) if at == side else (side, keys.get((at, c), -1)) for at, c in (join.outputs[c] for c in columns)
        ]
        if all(column >= 0 for _, column in found):
            return side, [column for _, column in found]
    return None


def narrowed(match: Match, columns: Sequence[int]) -> Match:
    """A conjunction of which only some columns are read; variables that nothing else looks at are given up."""
    names = match.schema.names
    shown = [names[at] for at in columns]
    if tuple(shown) == names:
        return match
    gone = set(names).difference(shown)
    places: dict[str, int] = {}
    for clause in (*match.clauses, *match.without):
        for name, found in clause.variables.items():
            places[name] = places.get(name, 0) + len(found)
    gone.difference_update(*[part.columns() for part in match.where], match.order or ())
    gone = {name for name in gone if places[name] == 1}
    clauses = [
        c
        if gone.isdisjoint(c.variables)
        else Clause(c.operator, tuple([None if isinstance(t, str) and t in gone else t for t in c.terms]))
        for c in match.clauses
    ]
    return replace(match, schema=match.schema.select(*shown), clauses=tuple(clauses))


def with_clauses(
    match: Match, narrow: Match, inputs: tuple[Operator, ...], kept: dict[Operator, list[int]]
) -> Operator:
    """A narrowed conjunction over pruned relations."""
    if inputs == match.inputs:
        return narrow
    clauses = [
        clause if new is clause.operator else Clause(new, tuple([clause.terms[old] for old in kept[clause.operator]]))
        for clause, new in zip((*narrow.clauses, *narrow.without), inputs, strict=True)
    ]
    many = len(narrow.clauses)
    return replace(narrow, clauses=tuple(clauses[:many]), without=tuple(clauses[many:]))


def rebuilt(operator: Operator, inputs: tuple[Operator, ...], kept: dict[Operator, list[int]]) -> Operator:
    """An operator over pruned inputs, with only the columns that it keeps."""
    columns = kept[operator]
    whole = len(columns) == len(operator.schema.names)
    if whole and all(new is old for new, old in zip(inputs, operator.inputs, strict=True)):
        return operator
    places = [{old: new for new, old in enumerate(kept[given])} for given in operator.inputs]
    schema = operator.schema
    if not whole:
        schema = schema.select(*(schema.names[at] for at in columns))
    match operator:
        case Project():
            return Project(schema, inputs[0], tuple([operator.outputs[at] for at in columns]), operator.predicate)
        case Concat():
            parts = [selected(part, [place[at] for at in columns]) for part, place in zip(inputs, places, strict=True)]
            return Concat(schema, tuple(parts))
        case Negate():
            return Negate(schema, inputs[0])
        case Join() if (alone := only_side(operator, columns)) is not None:
            side, read = alone
            return selected(inputs[side], [places[side][c] for c in read], schema.names)
        case Join():
            keys = tuple([places[0][c] for c in operator.left_key]), tuple([places[1][c] for c in operator.right_key])
            outputs = tuple([(side, places[side][c]) for side, c in (operator.outputs[at] for at in columns)])
            return Join(schema, inputs[0], inputs[1], *keys, outputs, operator.nulls_match, operator.one_to_one)
        case RangeFilter():
            keys = (
                tuple([places[0][c] for c in operator.input_key]),
                tuple([places[1][c] for c in operator.bounds_key]),
            )
            column, bound = places[0][operator.column], places[1][operator.bound]
            return RangeFilter(schema, inputs[0], inputs[1], *keys, column, operator.comparison, bound)
        case Aggregate():
            key = tuple([places[0][c] for c in operator.key])
            calls = [operator.aggregates[at - len(operator.key)] for at in columns if at >= len(operator.key)]
            linear = [replace(a, column=None if a.column is None else places[0][a.column]) for a in calls]
            return Aggregate(schema, inputs[0], key, tuple(linear))
        case First() if operator.order is not None:
            return replace(operator, schema=schema, input=selected(inputs[0], [places[0][c] for c in columns]))
        case Reduce() if (narrow := operator.narrowed(set(columns))) is not None:
            given = selected(inputs[0], [places[0][c] for c in narrow.inputs])
            if narrow.function is None:
                return renamed(given, schema.names)
            return replace(operator, schema=schema, input=given, function=narrow.function)
        case Read() if not whole:
            return selected(operator, columns)
    assert whole and all(len(kept[given]) == len(given.schema.names) for given in operator.inputs)
    return with_inputs(operator, inputs)
