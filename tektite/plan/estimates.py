"""Estimates the number of rows of a plan, from the sizes of its sources and rules of thumb for operators.

The figures choose between orders of joins and are shown by EXPLAIN; no answer depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tektite.expr import Expr
from tektite.expr.predicates import conjuncts
from tektite.plan.algebra import (
    Aggregate,
    Arrange,
    AtLeast,
    Clause,
    Concat,
    First,
    Inspect,
    Join,
    Leave,
    Match,
    Negate,
    Operator,
    Project,
    RangeFilter,
    Read,
    Readable,
    Rows,
)

SELECTIVITY = {"eq": 0.05, "isin": 0.1, "like": 0.1, "ilike": 0.1, "startswith": 0.1, "lt": 0.4, "le": 0.4, "gt": 0.4,
               "ge": 0.4, "is_null": 0.05, "ne": 0.95}  # fmt: skip
"""The share of rows that pass a comparison; a half for those not listed."""
UNKNOWN = 1000.0
"""The estimate for sources of unknown size, such as a variable of a loop."""


def selectivity(part: Expr) -> float:
    """The share of the rows that passes a conjunct."""
    if part.op == "or":
        return min(1.0, sum(selectivity(arg) for arg in part.args))
    if part.op == "and":
        return selectivity(part.args[0]) * selectivity(part.args[1])
    if part.op == "not":
        return 1 - selectivity(part.args[0])
    return SELECTIVITY.get(part.op, 0.5)


def passing(parts: Iterable[Expr]) -> float:
    """The share of the rows that passes all conjuncts."""
    share = 1.0
    for part in parts:
        share *= selectivity(part)
    return share


class Sizes:
    """The numbers of rows of the sources that a plan was made with: those that were given, and otherwise the present ones."""

    def __init__(self, given: Mapping[Readable, int] | None = None) -> None:
        self._given = given or {}
        self.used: dict[Readable, int] = {}
        """The sources whose sizes were asked for. A plan depends on the sizes of no others."""

    def of(self, source: Readable) -> int:
        """The number of rows of a source."""
        found = self.used.get(source)
        if found is None:
            known = self._given.get(source)
            found = self.used[source] = source.size if known is None else known
        return found


class Estimates:
    """Estimates of the parts of some plans, each made once."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        self._made: dict[Operator, float] = {}
        self._sizes = sizes or Sizes()

    def of(self, operator: Operator) -> float:
        """About how many rows a plan adds or removes; at least one."""
        return max(1.0, abs(self._signed(operator)))

    def _signed(self, operator: Operator) -> float:
        """The sum of multiplicities, which is negative for removed rows."""
        found = self._made.get(operator)
        if found is None:
            found = self._made[operator] = self._estimate(operator)
        return found

    def _estimate(self, operator: Operator) -> float:
        match operator:
            case Read():
                return float(max(self._sizes.of(operator.readable), 1))
            case Rows():
                return float(operator.words.shape[1])
            case Project():
                parts = [] if operator.predicate is None else conjuncts(operator.predicate)
                return self.of(operator.input) * passing(parts)
            case Concat():
                return sum(map(self._signed, operator.parts))
            case Negate():
                return -self.of(operator.input)
            case Arrange() | Inspect():
                return self.of(operator.input)
            case Join():
                left, right = map(self.of, operator.inputs)
                return max(left, right) if operator.left_key else left * right
            case Match():
                return self._conjunction(operator)
            case RangeFilter():
                return self.of(operator.input) * 0.4
            case AtLeast():
                return float(self.of(operator.input) ** 0.9)
            case Aggregate():
                return float(
                    self.of(operator.input) ** (0.0 if not operator.key else 0.8 if len(operator.key) < 3 else 0.9)
                )
            case First():
                rows = self.of(operator.input)
                return min(rows, float(operator.count) * (rows**0.8 if operator.key else 1.0))
            case Leave():
                return UNKNOWN
        return max(map(self.of, operator.inputs), default=UNKNOWN)

    def _conjunction(self, match: Match) -> float:
        """The size of the largest relation after its conditions, times those of unconnected ones: joins mostly follow keys."""
        sizes = sorted((self.of(clause.operator) for clause in match.clauses), reverse=True)
        share = passing(match.where) * 0.5 ** len(match.without)
        links = -len(set().union(*(clause.variables for clause in match.clauses)))
        for clause in match.clauses:
            share *= SELECTIVITY["eq"] ** len(clause.constants)
            links += len(clause.variables)
            others = set().union(*(other.variables for other in match.clauses if other is not clause))
            if isinstance(clause.operator, AtLeast) and clause.variables.keys() <= others:
                share *= 0.5  # a semi join
        rows = sizes[0]
        for size in sizes[1 : max(1, len(sizes) - links)]:
            rows *= size
        return rows * share


def share_of(clause: Clause, where: Iterable[Expr]) -> float:
    """The share of a relation's rows that passes its conditions: those of the conjunction, and those below it."""
    own = [part for part in where if part.columns() and set(part.columns()) <= clause.variables.keys()]
    share = passing(own) * SELECTIVITY["eq"] ** len(clause.constants)
    operator = clause.operator
    while isinstance(operator, Project):
        share *= 1.0 if operator.predicate is None else passing(conjuncts(operator.predicate))
        operator = operator.input
    return share
