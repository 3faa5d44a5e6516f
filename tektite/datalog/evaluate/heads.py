"""Heads of rules: facts, and columns computed from the bindings of a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tektite.datalog.rules import expressions
from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.query.collection import Collection
from tektite.values.schema import Schema
from tektite.values.types import Type


def is_fact(rule: ir.Rule) -> bool:
    """Whether a rule is a fact: no body, and constants only."""
    return not rule.body and all(isinstance(term, ir.Constant) for term in rule.terms)


def plain(term: ir.HeadTerm, type: Type) -> Any:
    """The value of a fact's term, as its column's type."""
    assert isinstance(term, ir.Constant)
    return expressions.plain_value(term.value, type)


def output(term: ir.HeadTerm | None, type: Type, types: Mapping[ir.RuleVariable, Type]) -> Expr:
    """A head's term as an expression of its column's type."""
    assert term is not None and not isinstance(term, ir.HeadAggregate)
    if isinstance(term, ir.Constant):
        return expressions.literal(term.value, type)
    found = expressions.expression(term, types)
    return found.cast(type) if expressions.term_type(term, types) != type else found


def project(bindings: Collection, outputs: Mapping[str, Expr]) -> Collection:
    """Columns computed from bindings."""
    return bindings.select(**outputs)


def present(found: Collection, schema: Schema, shown: Sequence[ir.HeadTerm | None]) -> Collection:
    """The rows in which all computed terms have a value."""
    for name, term in zip(schema.names, shown, strict=True):
        if expressions.may_fail(term):
            found = found.filter(col(name).is_not_null())
    return found


def located(error: IncorrectError, rule: ir.Rule) -> IncorrectError:
    """The error, with its rule if the message does not name one."""
    return error if str(error).startswith("rule ") else error.reworded(f"{rule.where()}: {error}")
