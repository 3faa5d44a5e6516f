"""The oracle: what any plan comes to, computed from scratch.

`Brute(contents).value(plan)` is the plan's collection as a dict from row to multiplicity, given the contents of the
inputs in the same form. It keeps nothing between calls, knows no times, and iterates every loop in lockstep until
none of its variables changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.plan import algebra as plan
from tektite.query.group_functions import TopRows
from tests.support.expression_twin import evaluate

Row = tuple[Any, ...]
Bag = dict[Row, int]
ROUNDS = 1000


def bag(pairs: Iterable[tuple[Row, int]]) -> Bag:
    """Pairs of row and multiplicity, added up."""
    total: Bag = defaultdict(int)
    for row, many in pairs:
        total[row] += many
    return {row: many for row, many in total.items() if many}


def pick(row: Row, columns: Iterable[int]) -> Row:
    return tuple(row[c] for c in columns)


def groups(rows: Bag, key: Iterable[int]) -> dict[Row, Bag]:
    """The rows by their key columns."""
    key = tuple(key)
    found: dict[Row, Bag] = defaultdict(dict)
    for row, many in rows.items():
        found[pick(row, key)][row] = many
    return found


class Brute:
    """Evaluates plans over one state of the inputs."""

    def __init__(self, contents: Mapping[Any, Bag], dictionary: Any = None) -> None:
        """`contents` is by input; `dictionary` gives texts the order of their words, which `First` breaks ties by."""
        self.contents = contents
        self.dictionary = dictionary
        # One frame for each loop that is running: what its operators come to in the present round.
        self.frames: dict[plan.Loop | None, dict[plan.Operator, Bag]] = {None: {}}

    def value(self, operator: plan.Operator) -> Bag:
        """What the operator comes to in the present rounds of the loops around it."""
        found = self.frames[operator.loop].get(operator)
        if found is None:
            if isinstance(operator, plan.Leave):
                self._run(operator.of)
                return self.frames[operator.loop][operator]
            found = self._evaluate(operator)
            self.frames[operator.loop][operator] = found
        return found

    def _run(self, loop: plan.Loop) -> None:
        """Iterate a loop until its variables stay as they are; keep what leaves it."""
        entries = {v: (self.value(v.initial), v.starts) for v in loop.variables if v.initial and v.starts is not None}
        last = max([row[starts] for rows, starts in entries.values() for row in rows], default=0)
        state = {v: self.value(v.initial) if v.initial is not None else {} for v in loop.variables if v not in entries}
        for number in range(ROUNDS):
            there = {
                v: {row: many for row, many in rows.items() if row[starts] <= number}
                for v, (rows, starts) in entries.items()
            }
            self.frames[loop] = state | there
            following = {v: self.value(loop.definitions[v]) for v in state}
            if following == state and number >= last:
                break
            state = following
        else:
            raise AssertionError(f"loop {loop.name!r} does not converge")
        for leave in loop.leaves:
            self.frames[loop.parent][leave] = self.value(leave.inner)
        del self.frames[loop]

    def _evaluate(self, operator: plan.Operator) -> Bag:
        match operator:
            case plan.Read():
                definition = getattr(operator.readable, "definition", None)
                return self.contents[operator.readable.facade] if definition is None else self.value(definition)
            case plan.Project():
                return self._project(operator)
            case plan.MapBatches():
                return self._map(operator)
            case plan.Concat():
                return bag(pair for part in operator.parts for pair in self.value(part).items())
            case plan.Negate():
                return {row: -many for row, many in self.value(operator.input).items()}
            case plan.Arrange() | plan.Inspect():
                return self.value(operator.input)
            case plan.Join():
                return self._join(operator)
            case plan.Match():
                return self._match(operator)
            case plan.AtLeast():
                return {row: 1 for row, many in self.value(operator.input).items() if many >= operator.times}
            case plan.Aggregate():
                return self._aggregate(operator)
            case plan.First():
                return self._first(operator)
            case plan.Reduce():
                return self._reduce(operator)
        raise NotImplementedError(type(operator).__name__)

    def _project(self, operator: plan.Project) -> Bag:
        out: list[tuple[Row, int]] = []
        for row, many in self.value(operator.input).items():
            named = dict(zip(operator.input.schema.names, row, strict=True))
            if operator.predicate is None or evaluate(operator.predicate, named) is True:
                out.append((tuple(evaluate(e, named) for e in operator.outputs), many))
        return bag(out)

    def _map(self, operator: plan.MapBatches) -> Bag:
        found = self.value(operator.input)
        schema = operator.input.schema
        empty = schema.decode(np.empty((len(schema.names), 0), np.int64), self.dictionary)
        columns = zip(*found, strict=True) if found else [()] * len(schema.names)
        arrays = [pa.array(column, type) for column, type in zip(columns, empty.schema.types, strict=True)]
        made = operator.function(pa.table(arrays, list(schema.names)))
        table, origins = made if operator.many else (made, range(len(found)))
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        many = list(found.values())
        return bag((row, many[origin]) for row, origin in zip(rows, origins, strict=True))

    def _join(self, operator: plan.Join) -> Bag:
        right = groups(self.value(operator.right), operator.right_key)
        out: list[tuple[Row, int]] = []
        for row, many in self.value(operator.left).items():
            key = pick(row, operator.left_key)
            if operator.nulls_match or None not in key:
                for other, times in right.get(key, {}).items():
                    out.append((tuple((row, other)[side][column] for side, column in operator.outputs), many * times))
        return bag(out)

    def _match(self, operator: plan.Match) -> Bag:
        found: list[tuple[dict[str, Any], int]] = [({}, 1)]
        for clause in operator.clauses:
            rows = self.value(clause.operator).items()
            found = [
                (more, many * times)
                for values, many in found
                for row, times in rows
                if (more := extended(values, clause.terms, row)) is not None
            ]
        out = [
            (tuple(values[name] for name in operator.schema.names), many)
            for values, many in found
            if all(evaluate(predicate, values) is True for predicate in operator.where)
            and not any(self._holds(clause, values) for clause in operator.without)
        ]
        return bag(out)

    def _holds(self, clause: plan.Clause, values: dict[str, Any]) -> bool:
        """Whether a clause has a row for these values."""
        rows = self.value(clause.operator).items()
        return sum(many for row, many in rows if extended(values, clause.terms, row) is not None) > 0

    def _aggregate(self, operator: plan.Aggregate) -> Bag:
        out: Bag = {}
        for key, rows in groups(self.value(operator.input), operator.key).items():
            if sum(rows.values()):
                out[(*key, *(linear(a, rows) for a in operator.aggregates))] = 1
        return out

    def _first(self, operator: plan.First) -> Bag:
        out: Bag = {}
        schema = operator.schema
        for rows in groups(self.value(operator.input), range(operator.key)).values():
            left = operator.count
            words = {row: tuple(schema.encode([row], self.dictionary)[:, 0].tolist()) for row in rows}
            tied = None
            for row in sorted(rows, key=words.__getitem__, reverse=operator.last):
                leading = words[row][operator.key : operator.key + operator.ties]
                if left == 0 and (not operator.ties or leading != tied):
                    break
                if rows[row] > 0:
                    taken = min(left, rows[row])
                    out[row] = rows[row] if operator.ties else taken
                    left -= taken
                    tied = leading
        return out

    def _top_by_text(self, operator: plan.Reduce, function: TopRows) -> Bag:
        """Text by text, anything else by its words, ties by the words of the whole row."""
        out: Bag = {}
        for rows in groups(self.value(operator.input), range(operator.key)).values():
            words = {row: operator.schema.encode([row], self.dictionary)[:, 0].tolist() for row in rows}
            ordered = sorted((row for row in rows if rows[row] > 0), key=words.__getitem__)
            for column, down, _ in reversed(function.order):
                value = {row: row[column] if isinstance(row[column], str) else words[row][column] for row in ordered}
                there = sorted((row for row in ordered if row[column] is not None), key=value.__getitem__, reverse=down)
                ordered = there + [row for row in ordered if row[column] is None]
            left = function.count
            for row in ordered:
                if taken := min(left, rows[row]):
                    out[row] = taken
                    left -= taken
        return out

    def _reduce(self, operator: plan.Reduce) -> Bag:
        if isinstance(operator.function, TopRows):
            return self._top_by_text(operator, operator.function)
        out: list[tuple[Row, int]] = []
        for key, rows in groups(self.value(operator.input), range(operator.key)).items():
            found = operator.function(key, [(row[operator.key :], many) for row, many in rows.items()])
            out += [(key + tuple(values), 1) for values in found]
        return bag(out)


def extended(values: dict[str, Any], terms: Iterable[Any], row: Row) -> dict[str, Any] | None:
    """The values with those that a row gives to the terms' variables; None if they do not agree."""
    found = dict(values)
    for term, value in zip(terms, row, strict=True):
        if term is None:
            continue
        if not isinstance(term, str):
            if value is None or value != term.params[1]:
                return None
        elif term in found:
            if value is None or found[term] is None or value != found[term]:
                return None
        else:
            found[term] = value
    return found


def linear(aggregate: plan.Linear, rows: Bag) -> Any:
    """A count, sum or average over a group."""
    column = aggregate.column
    if column is None:
        return sum(rows.values())
    there = [(row[column], many) for row, many in rows.items() if row[column] is not None]
    seen = sum(many for _, many in there)
    if aggregate.kind == "count":
        return seen
    if not seen:
        return None
    total = sum(value * many for value, many in there)
    return total if aggregate.kind == "sum" else total / seen
