"""ParametrisedQuery: a query whose constants stand in comparisons with columns, with labels in their place.

Two clients that ask for `device = 7` and `device = 9` ask one query with two arguments. A constant becomes an argument if it is
compared with something that has a column, and the client's own parameters do everywhere but in LIMIT and OFFSET. Texts take the
type of what they are compared with, as they do in the query itself. Equal constants are one argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import lit
from tektite.expr.fold import folded as folded_constant
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.query import Binder
from tektite.sql.bind.scope import NameScope
from tektite.sql.parse import parser
from tektite.sql.parse.parser import label_of
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import copied, written
from tektite.sql.statements.describe import describe
from tektite.sql.statements.value_keys import as_key
from tektite.values import types
from tektite.values.types import DecimalType, Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ)
COUNTED = (exp.Limit, exp.Offset)


@dataclass(frozen=True)
class ParametrisedQuery:
    """A query with labels for its arguments, their types, and the values of one client."""

    source: StatementText
    tree: exp.Expr
    labels: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    values: tuple[Any, ...] = ()
    original: exp.Expr | None = None
    """The query as the client wrote it."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The values of the client's own parameters."""

    @property
    def text(self) -> str:
        """The query as SQL, with labels."""
        return written(self.tree)

    def alone(self) -> ParametrisedQuery:
        """The same query for these values alone."""
        if self.original is None:
            parameters = dict(zip(self.labels, self.values, strict=True))
            return ParametrisedQuery(self.source, self.tree, parameters=parameters)
        return ParametrisedQuery(self.source, self.original, parameters=self.parameters)


def parametrised(
    runner: StatementRunner, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]
) -> ParametrisedQuery:
    """A query with arguments in place of its constants."""
    plain = ParametrisedQuery(source, tree, original=tree, parameters=parameters)
    changed = copied(tree)
    constants: dict[str, tuple[str, exp.Expr]] = {}
    for node in arguments(changed):
        label, _ = constants.setdefault(written(node), (f"{len(constants) + 1}", node.copy()))
        node.replace(exp.Placeholder(this=f"a{label}"))
    try:
        for node in list(changed.find_all(*COUNTED)):
            inner = node.expression
            if isinstance(inner, exp.Placeholder | exp.Parameter) and label_of(inner) in parameters:
                inner.replace(exp.Literal.number(int(parameters[label_of(inner)])))
        found = {f"a{label}": constant(runner, source, node, parameters) for label, node in constants.values()}
        met = describe(runner, parser.Plain(source, source.start, changed)).parameters if texts(found) else {}
        values = {label: fitted(value, type, met.get(label)) for label, (value, type) in found.items()}
    except (TektiteError, ValueError, TypeError):
        return plain
    if any([value is None for value, _ in values.values()]):
        return plain  # NULL says no type
    return ParametrisedQuery(
        source, changed, tuple(values), tuple([type for _, type in values.values()]),
        tuple([value for value, _ in values.values()]), tree, parameters,
    )  # fmt: skip


def arguments(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a query that become arguments."""
    found: list[exp.Expr] = []
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        if not isinstance(node.parent, COUNTED):
            found.append(node)
    for comparison in list(tree.find_all(*COMPARISONS)):
        parts = [part for part in comparison.args.values() if isinstance(part, exp.Expr)]
        if any([part.find(exp.Column) is not None for part in parts]):
            found += [part for part in parts if is_constant(part)]
    return found


def is_constant(node: exp.Expr) -> bool:
    """Whether a part of a query is a constant: a literal, one with a sign, or a text with its type."""
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    if isinstance(node, exp.Cast) and type(node) is exp.Cast:
        return isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Literal)


def constant(
    runner: StatementRunner, source: StatementText, node: exp.Expr, parameters: Mapping[str, Any]
) -> tuple[Any, Type]:
    """The value of a constant and its type."""
    clause = ClauseContext(Binder(source, runner.reader(), parameters), NameScope(), "a condition")
    value = clause.bind(node)
    found, kind = runner.constant(value, clause.scalars.type(value, node), source, node)
    return as_key(found), kind


def texts(found: Mapping[str, tuple[Any, Type]]) -> bool:
    """Whether there is a text among some constants: what it is compared with decides on its type."""
    return any([type == types.String for _, type in found.values()])


def fitted(value: Any, type: Type, met: Type | None) -> tuple[Any, Type]:
    """A constant with the type of its argument: a text becomes what it is compared with, decimals have room for digits."""
    if type == types.String and met is not None and met != types.String:
        cast = folded_constant(lit(value).cast(met))
        if cast.op != "lit":
            raise ValueError(value)
        return cast.params[1], met
    return (value, types.Decimal(18, max(type.scale, 4))) if isinstance(type, DecimalType) else (value, type)
