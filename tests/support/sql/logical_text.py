"""What a statement means before it is lowered, as lines of text."""

from __future__ import annotations

from tektite.expr import Expr
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.window_calls import Ordering
from tektite.sql.logical import (
    Aggregate,
    Compare,
    Filter,
    Fixpoint,
    Join,
    Node,
    Once,
    Project,
    Recall,
    Scan,
    Solution,
    Top,
    Union,
    Values,
    Window,
)


def explain(plan: Node) -> list[str]:
    """A line for each operator, inputs below and further in; what is read twice is shown once."""
    lines: list[str] = []
    seen: dict[int, int] = {}
    readers = counted(plan)

    def visit(node: Node, depth: int) -> None:
        if id(node) in seen:
            lines.append(f"{'  ' * depth}as #{seen[id(node)]} above")
            return
        label = ""
        if readers[id(node)] > 1 and not isinstance(node, Scan | Recall | Values):
            seen[id(node)] = len(seen) + 1
            label = f"#{seen[id(node)]} "
        lines.append(f"{'  ' * depth}{label}{line(node)}")
        for given in node.inputs:
            visit(given, depth + 1)

    visit(plan, 0)
    return lines


def counted(plan: Node) -> dict[int, int]:
    """How many readers each node has."""
    found: dict[int, int] = {id(plan): 1}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        for given in node.inputs:
            found[id(given)] = found.get(id(given), 0) + 1
            if found[id(given)] == 1:
                waiting.append(given)
    return found


def line(node: Node) -> str:
    """What one operator does."""
    match node:
        case Scan():
            return f"read {node.title}"
        case Values():
            return f"{len(node.rows)} constant row{'s' * (len(node.rows) != 1)}"
        case Filter():
            return f"filter {node.predicate}"
        case Project():
            return f"select {', '.join(output(name, value) for name, value in node.outputs)}"
        case Join():
            return f"{node.kind} join on {node.condition}"
        case Aggregate():
            calls = ", ".join(f"{name} = {call(found)}" for name, found in node.calls)
            keys = ", ".join(output(name, value) for name, value in node.keys)
            return f"group by {keys}: {calls}" if keys else f"aggregate {calls}"
        case Once():
            return f"at most one row{' for each ' + ', '.join(node.by) if node.by else ''}"
        case Union():
            return "union all"
        case Compare():
            return f"{node.kind}{' all' if node.every else ''}"
        case Top():
            by = f" for each {', '.join(node.by)}" if node.by else ""
            order = f" by {', '.join(map(ordering, node.order))}" if node.order else ""
            offset = f" after {node.offset}" if node.offset else ""
            return f"first {'rows' if node.limit is None else node.limit}{offset}{order}{by}"
        case Window():
            return f"window {', '.join(f'{name} = {found.kind}' for name, found in node.calls)}"
        case Fixpoint():
            return f"fixed point of {', '.join(v.title for v in node.variables)}"
        case Recall() | Solution():
            return f"{'recur on' if isinstance(node, Recall) else 'solution of'} {node.variable.title}"
    return type(node).__name__.lower()


def output(name: str, value: Expr) -> str:
    return name if value.op == "col" and value.params[0] == name else f"{name} = {value}"


def call(found: AggregateCall) -> str:
    inner = "*" if found.argument is None else f"{'distinct ' if found.distinct else ''}{found.argument}"
    inner += "" if found.constant is None else f", {found.constant!r}"
    if found.order:
        terms = (f"{by}{' desc' * descending}{' nulls first' * nulls}" for by, descending, nulls in found.order)
        inner += f" order by {', '.join(terms)}"
    return f"{found.kind}({inner})"


def ordering(found: Ordering) -> str:
    return f"{found.column}{' desc' if found.descending else ''}{' nulls first' if found.nulls_first else ''}"
