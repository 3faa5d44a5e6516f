"""Prints a plan: one operator a line, its inputs indented below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tektite.expr import Expr
from tektite.expr.predicates import conjuncts
from tektite.plan.algebra import (
    Aggregate,
    Arrange,
    AtLeast,
    Concat,
    First,
    Inspect,
    Join,
    Leave,
    Linear,
    Loop,
    MapBatches,
    Match,
    Negate,
    Operator,
    Project,
    RangeFilter,
    Read,
    Reduce,
    Rows,
    Variable,
    count_uses,
    describe,
)
from tektite.plan.walk import is_shared

Note = Callable[[Operator], str]


def explain(root: Operator, note: Note = lambda operator: "") -> list[str]:
    """The lines of a plan. A part that is read twice is shown once. `note` adds text to the end of an operator's line.

    >>> from tektite.expr import col
    >>> from tektite.plan.projections import filtered
    >>> from tektite.values.schema import Schema
    >>> from tektite.values.types import Int
    >>> schema = Schema(x=Int, y=Int)
    >>> rows = Rows(schema, schema.encode([(1, 2), (3, 4)]))
    >>> print("\\n".join(explain(AtLeast(schema, filtered(rows, [col("x") > 1]), 1))))
    distinct
      filter x > 1
        2 constant rows
    """
    lines: list[str] = []
    seen: dict[Operator, int] = {}
    loops: set[Loop] = set()
    uses = count_uses(root)

    def visit(operator: Operator, depth: int) -> None:
        indent = "  " * depth
        if operator in seen:
            lines.append(f"{indent}as #{seen[operator]} above")
            return
        label = ""
        if uses.get(operator, 0) > 1 and not isinstance(operator, Read | Rows | Variable) and not is_shared(operator):
            seen[operator] = len(seen) + 1
            label = f"#{seen[operator]} "
        lines.append(f"{indent}{label}{line(operator)}{note(operator)}")
        if isinstance(operator, Match):
            lines.extend(f"{indent}  where {part}" for part in operator.where)
        if is_shared(operator):
            return
        for given in operator.inputs:
            visit(given, depth + 1)
        if isinstance(operator, Leave) and operator.of not in loops:
            loops.add(operator.of)
            for variable, definition in operator.of.definitions.items():
                lines.append(f"{indent}  {variable.name} is")
                visit(definition, depth + 2)
            visit(operator.inner, depth + 1)

    visit(root, 0)
    return lines


def line(operator: Operator) -> str:
    """The line of one operator."""
    names = operator.schema.names
    match operator:
        case Read():
            return f"read {operator.readable.name}"
        case Rows():
            many = operator.words.shape[1]
            return f"{many} constant row{'s' * (many != 1)}"
        case Project():
            return _projection(operator)
        case MapBatches():
            return f"map by {_name(operator.function)}"
        case Concat():
            return "union all"
        case Negate():
            return "negate"
        case Arrange():
            shared = f" of {describe(operator)}, shared" if is_shared(operator) else ""
            return f"index by ({_listed(names[column] for column in operator.key)}){shared}"
        case Join():
            keys = zip(operator.left_key, operator.right_key, strict=True)
            left, right = operator.left.schema.names, operator.right.schema.names
            on = _listed(f"{left[a]} = {right[b]}" for a, b in keys)
            return f"join on {on}{' or both NULL' if operator.nulls_match else ''}" if on else "join of all pairs"
        case Match():
            return _conjunction(operator)
        case RangeFilter():
            mine, theirs = operator.input.schema.names, operator.bounds.schema.names
            keys = zip(operator.input_key, operator.bounds_key, strict=True)
            by = _listed(f"{mine[a]} = {theirs[b]}" for a, b in keys)
            test = f"{mine[operator.column]} {operator.comparison} {theirs[operator.bound]}"
            return f"range filter {test}{' by ' + by if by else ''}"
        case AtLeast():
            return "distinct" if operator.times == 1 else f"rows that are there {operator.times} times"
        case Aggregate():
            return _aggregate(operator)
        case First():
            by = f" for each {_listed(names[: operator.key])}" if operator.key else ""
            return f"{'last' if operator.last else 'first'} {operator.count} by {_listed(names[operator.key :])}{by}"
        case Reduce():
            by = f" for each {_listed(names[: operator.key])}" if operator.key else ""
            return f"{_name(operator.function)}{by}"
        case Inspect():
            return f"inspect by {_name(operator.function)}"
        case Variable() if operator.starts is not None:
            return f"enter in the round that {operator.schema.names[operator.starts]} says"
        case Variable():
            return f"recur on {operator.name}"
        case Leave():
            return f"solution of {describe(operator)}"
    return type(operator).__name__.lower()


def _projection(operator: Project) -> str:
    shown = [_output(name, value) for name, value in zip(operator.schema.names, operator.outputs, strict=True)]
    if operator.predicate is None:
        return f"select {_listed(shown)}"
    predicate = " and ".join(map(str, conjuncts(operator.predicate))) or "True"
    if tuple(shown) == operator.input.schema.names:
        return f"filter {predicate}"
    return f"select {_listed(shown)} where {predicate}"


def _conjunction(operator: Match) -> str:
    clauses = [_listed("_" if term is None else str(term) for term in clause.terms) for clause in operator.clauses]
    without = [_listed("_" if term is None else str(term) for term in clause.terms) for clause in operator.without]
    found = f"join of ({'), ('.join(clauses)})"
    if without:
        found += f" without ({'), ('.join(without)})"
    if operator.order:
        places = [_title(operator.clauses[o].operator) if isinstance(o, int) else o for o in operator.order]
        found += f" in the order {_listed(places)}"
    return f"{found} to ({_listed(operator.schema.names)})"


def _title(operator: Operator) -> str:
    """A relation of a join, in a word."""
    while isinstance(operator, Project):
        operator = operator.input
    return (
        describe(operator) if not operator.inputs or isinstance(operator, Arrange) else type(operator).__name__.lower()
    )


def _aggregate(operator: Aggregate) -> str:
    given, names = operator.input.schema.names, operator.schema.names
    keys = [_renamed(name, given[column]) for name, column in zip(names, operator.key, strict=False)]
    calls = [
        f"{name} = {_linear(linear, given)}"
        for name, linear in zip(names[len(keys) :], operator.aggregates, strict=True)
    ]
    return f"group by {_listed(keys)}: {_listed(calls)}" if keys else f"aggregate {_listed(calls)}"


def _linear(linear: Linear, given: tuple[str, ...]) -> str:
    return f"{linear.kind}({'*' if linear.column is None else given[linear.column]})"


def _output(name: str, value: Expr) -> str:
    return name if value.op == "col" and value.params[0] == name else f"{name} = {value}"


def _renamed(name: str, of: str) -> str:
    return name if name == of else f"{name} = {of}"


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
