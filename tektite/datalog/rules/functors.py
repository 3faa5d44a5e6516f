"""Functions in Python: `@f(x)` in rules becomes a call of the function that was given for `.functor f`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tektite.datalog.syntax import ir, statements
from tektite.datalog.syntax.declared_types import column_type
from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.expr.record_text import PythonFunction
from tektite.unknown_options import is_function

MOST_ARGUMENTS = 3
"""Arguments that the memo of a function takes (`tektite.expr.text`)."""


def with_functors(text: statements.Text, given: Mapping[str, Callable[..., Any]]) -> statements.Text:
    """A text whose calls have the Python functions that they call."""
    if not given and not text.functors and not any("@" in str(rule) for rule in text.rules):
        return text
    declared = {functor.name: functor for functor in text.functors}
    functions: dict[str, PythonFunction] = {}
    for functor in text.functors:
        if functor.name in given:
            functions[functor.name] = python_function(functor, given[functor.name])

    def called(term: Any) -> Any:
        if not isinstance(term, ir.Compute) or not term.op.startswith("@"):
            return term
        name = term.op[1:]
        if name not in declared:
            known = ", ".join(f"@{other}" for other in declared) or "none"
            raise NotFoundError(f"there is no functor {term.op}; declared are: {known}")
        if name not in functions:
            raise NotFoundError(f"functor {term.op} has no function: give engine.datalog functors={{{name!r}: ...}}")
        if len(term.args) != len(functions[name].arguments):
            raise IncorrectError(f"{term}: the functor takes {len(functions[name].arguments)} values")
        return ir.FunctorCall(term.op, term.args, functions[name])

    rules = []
    for rule in text.rules:
        try:
            rules.append(mapped(rule, called))
        except (IncorrectError, NotFoundError) as error:
            raise error.reworded(f"{rule.where()}: {error}") from None
    return replace(text, rules=tuple(rules))


def python_function(functor: statements.Functor, function: Callable[..., Any]) -> PythonFunction:
    """A declared functor with its function."""
    if not is_function(function):
        raise IncorrectError(
            f"{functor.position}: functor {functor.name!r} is given {function!r}, which is no function"
        )
    if not 1 <= len(functor.arguments) <= MOST_ARGUMENTS:
        raise UnsupportedError(
            f"{functor.position}: functor {functor.name!r} takes {len(functor.arguments)} values; one to {MOST_ARGUMENTS} are "
            "supported: put several into a record"
        )
    types = [column_type(kind) for kind in (*functor.arguments, functor.result)]
    return PythonFunction(functor.name, function, tuple(types[:-1]), types[-1])


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A rule, or a part of one, with every term changed, inner terms first."""
    if isinstance(value, tuple):
        return tuple(mapped(part, change) for part in value)
    if not is_dataclass(value) or isinstance(value, ir.TextPosition | PythonFunction | type):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value)}
    made = {name: mapped(part, change) for name, part in parts.items()}
    changed = {name: part for name, part in made.items() if part is not parts[name]}
    return change(replace(value, **changed) if changed else value)
