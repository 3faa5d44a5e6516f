"""A plan as plain data: operators with numbers, what each is made of, and the loops that they are in. For pictures of plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tektite.plan.algebra import Leave, Loop, Match, Operator, Variable
from tektite.plan.explain import line
from tektite.plan.walk import is_shared, walk


def graph_data(root: Operator, rows: Callable[[Operator], float]) -> tuple[dict[str, Any], dict[Operator, int]]:
    """The data of a plan, given estimates of rows, and the numbers of its operators. The root is the first operator.

    An operator has `inputs` (numbers) and `loops`, the names of the loops around it, the outermost first. A variable of a loop
    has `feedback`: the number of its definition, whose rows it gets a round later.

    >>> from tektite.plan.algebra import AtLeast, Rows
    >>> from tektite.values.schema import Schema
    >>> from tektite.values.types import Int
    >>> schema = Schema(x=Int)
    >>> data, _ = graph_data(AtLeast(schema, Rows(schema, schema.encode([(1,), (3,)])), 1), lambda operator: 2)
    >>> [(each["kind"], each["text"], each["inputs"]) for each in data["operators"]]
    [('AtLeast', 'distinct', [1]), ('Rows', '2 constant rows', [])]
    """
    numbers = {operator: number for number, operator in enumerate(walk([root]))}
    return {"operators": [_operator(each, numbers, rows) for each in numbers]}, numbers


def _operator(operator: Operator, numbers: dict[Operator, int], rows: Callable[[Operator], float]) -> dict[str, Any]:
    inputs: tuple[Operator, ...] = () if is_shared(operator) else operator.inputs
    if isinstance(operator, Leave):
        inputs = (operator.inner,)
    found: dict[str, Any] = {
        "id": numbers[operator], "kind": type(operator).__name__, "text": line(operator),
        "where": [str(part) for part in operator.where] if isinstance(operator, Match) else [],
        "columns": list(operator.schema.names), "rows": round(rows(operator)), "loops": _loops(operator.loop),
        "shared": is_shared(operator),
    }  # fmt: skip
    if isinstance(operator, Variable):
        inputs = () if operator.initial is None else (operator.initial,)
        definition = operator.of.definitions.get(operator)
        found["feedback"] = None if definition is None else numbers[definition]
    return found | {"inputs": [numbers[given] for given in inputs]}


def _loops(loop: Loop | None) -> list[str]:
    found: list[str] = []
    while loop is not None:
        found.append(loop.name)
        loop = loop.parent
    return found[::-1]
