"""The arguments of `select`, `with_columns`, `group_by` and `agg`, as named expressions.

A text is the name of a column; a text as a value is `tk.lit("text")`. Numbers, dates and other Python scalars are values.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, lift
from tektite.query.aggregates import ColumnAggregate
from tektite.unknown_options import Uncalled, is_function
from tektite.values.schema import Schema

Outputs = list[tuple[str, Expr]]
AGGREGATES = (
    "sum",
    "mean",
    "avg",
    "min",
    "max",
    "median",
    "std",
    "var",
    "count",
    "n_unique",
    "any",
    "all",
    "first",
    "last",
)
AN_ARGUMENT = "an argument"
"""What errors call an aggregate that has no name."""
BUILTINS = ("sum", "min", "max", "any", "all", "len", "round", "abs")


def flat(given: Iterable[Any]) -> Iterator[Any]:
    """The members of some lists and tuples, and what is in neither."""
    for part in given:
        if isinstance(part, list | tuple):
            yield from flat(part)
        else:
            yield part


def outputs_of(verb: str, schema: Schema, columns: Iterable[Any], named: Mapping[str, Any]) -> Outputs:
    """Columns by name and by expression, each with the name of its result. `verb` is what errors call the operation."""
    found: Outputs = []
    for column in flat(columns):
        if isinstance(column, str) and column == "*" and "*" not in schema.names:
            found += [(name, col(name)) for name in schema.names]
        elif isinstance(column, str):
            schema.index(column)
            found.append((column, col(column)))
        elif isinstance(column, Expr):
            found.append((name_of(verb, column), plain(column)))
        else:
            library = type(column).__module__.partition(".")[0]
            if library in ("polars", "pyspark", "ibis", "duckdb", "sqlglot", "sqlalchemy"):
                raise IncorrectError(f"{verb}: {column!s} is an expression of {library}; write it with tk.col")
            if is_function(column):
                raise _no_function(f"{verb}: an argument", column)
            if isinstance(column, dict) and column:
                raise IncorrectError(
                    f"{verb} takes names as options: write {verb}(**{{...}}), or {verb}({_options(column)})"
                )
            raise IncorrectError(
                f"{verb} takes column names and expressions, not {column!r}; a value is tk.lit({column!r}).alias('name')"
            )
    for name, value in named.items():
        if isinstance(value, str):
            schema.index(value)
        found.append((name, _expression(verb, name, value)))
    return found


def aggregates_of(aggregates: Iterable[Any], named: Mapping[str, Any]) -> Outputs:
    """Aggregates, each with the name of its result."""
    found: Outputs = []
    for given in flat(aggregates):
        if not isinstance(given, Expr):
            raise _no_aggregate(AN_ARGUMENT, given)
        found.append((name_of("agg", given), plain(given)))
    for name, given in named.items():
        if name == "by" and not isinstance(given, Expr):
            raise IncorrectError(f"agg: groups come first: group_by({given!r}).agg(...)")
        if not isinstance(given, Expr):
            raise _no_aggregate(name, given)
        found.append((name, plain(given)))
    if not found:
        raise IncorrectError("agg needs at least one aggregate, such as n=tk.count()")
    return found


def name_of(verb: str, expression: Expr) -> str:
    """The name of an expression's result: its alias, or the first column that it reads."""
    node = expression
    while True:
        if node.op in ("alias", "col"):
            return str(node.params[0])
        if node.op in ("aggregate", "window") and not node.args:
            return str(node.params[0])
        if not node.args:
            raise IncorrectError(f"{verb}: give {expression} a name, as in {verb}(total={expression})")
        node = _branch(node) if node.op == "case" else next((arg for arg in node.args if arg.op != "lit"), node.args[0])


def _branch(choice: Expr) -> Expr:
    """The first value of a choice that is not NULL."""
    values = [*choice.args[1:-1:2], choice.args[-1]]
    return next((value for value in values if value.op != "lit" or value.params[1] is not None), values[0])


def plain(expression: Expr) -> Expr:
    """An expression without the names that parts of it were given."""
    return expression.replaced(lambda node: plain(node.args[0]) if node.op == "alias" else None)


def has_aggregate(expression: Expr) -> bool:
    """Whether an expression needs groups: it has an aggregate that no window turns into a value of each row."""
    if expression.op == "over":
        return False
    return expression.op == "aggregate" or any(map(has_aggregate, expression.args))


def _expression(verb: str, name: str, value: Any) -> Expr:
    if is_function(value):
        raise _no_function(f"{verb}: {name}", value)
    if isinstance(value, ColumnAggregate):
        raise IncorrectError(f"{verb}: {name} is {value!r}, not a column or an expression")
    return col(value) if isinstance(value, str) else plain(lift(value))


def _options(given: Mapping[Any, Any]) -> str:
    """The items of a mapping, written as options."""
    return ", ".join(f"{name}={value if isinstance(value, Expr) else repr(value)}" for name, value in given.items())


def method_of(function: object) -> str:
    """The call of a method of an expression that was named and not called; empty for anything else.

    >>> method_of(col("x").abs), method_of(print)
    ('x.abs()', '')
    """
    return function.call if isinstance(function, Uncalled) else ""


def _no_function(what: str, function: object) -> IncorrectError:
    """An error that says what to write in place of a function of the whole query, or of a value."""
    call = method_of(function)
    if call:
        return IncorrectError(f"{what} is a method, not a column or an expression: write {call}")
    name = getattr(function, "__name__", repr(function))
    return IncorrectError(
        f"{what} is the function {name}, not a column or an expression: write what it computes, with the collection's "
        "columns, such as c['x'] + 1 or tk.col('x') + 1; map_batches(function) calls a function of Python with the rows"
    )


def no_condition(schema: Schema, found: object) -> IncorrectError:
    """An error that says what to write in place of something that is no condition."""
    instead = ""
    if isinstance(found, str):
        written = f"tk.col({found!r})" if found in schema.names else f"tk.sql_expr({found!r})"
        instead = f": a text is a value in conditions; write filter({written})"
    elif isinstance(found, bool):
        instead = f": all rows, or none, are tk.lit({found})"
    elif isinstance(found, dict) and found:
        instead = f": write filter({_options(found)})"
    elif method_of(found):
        instead = f": it is a method; write {method_of(found)}"
    elif is_function(found):
        instead = ": it is a function; write the condition itself, with tk.col('x') for a column"
    return IncorrectError(f"filter takes an expression such as col('x') > 1, not {found!r}{instead}")


def _no_aggregate(name: str, given: Any) -> IncorrectError:
    """An error that says what to write in place of something that is no aggregate."""
    for builtin in BUILTINS:
        if given is getattr(builtins, builtin):
            instead = "tk.count()" if builtin == "len" else f"tk.{builtin}('x')"
            return IncorrectError(f"agg: {name} is Python's own {builtin}, not an aggregate; write {instead}")
    if isinstance(given, dict):
        named = ", ".join(f"tk.{kind}({column!r})" for column, kind in given.items())
        return IncorrectError(f"agg: {name} is a dict, not an aggregate; write agg({named or 'n=tk.count()'})")
    if isinstance(given, tuple) and len(given) == 2 and given[1] in AGGREGATES:
        return IncorrectError(
            f"agg: {name} is the pair {given!r}, not an aggregate; write {name}=tk.{given[1]}({given[0]!r})"
        )
    if isinstance(given, str) and given in AGGREGATES:
        column = "x" if name == AN_ARGUMENT else name
        return IncorrectError(f"agg: {name} is the text {given!r}, not an aggregate; write tk.{given}({column!r})")
    if isinstance(given, str):
        return IncorrectError(
            f"agg: {name} is the text {given!r}, not an aggregate; write tk.sum({given!r}) for example. (Python's own "
            "min('amount') is 'a': import tektite as tk, and write tk.min('amount'))"
        )
    call = method_of(given)
    if call:
        return IncorrectError(f"agg: {name} is a method, not an aggregate; write {call}")
    if is_function(given):
        kind = getattr(given, "__name__", "")
        known = f"tk.{kind}('x')" if kind in AGGREGATES else "an aggregate such as tk.sum('x')"
        advice = "tk.count()" if kind == "count" else known
        return IncorrectError(
            f"agg: {name} is a function, not an aggregate; write {advice}, or Collection.reduce(function, by=...)"
        )
    return IncorrectError(f"agg: {name} is {given!r}, not an aggregate such as tk.sum('x')")


def check_no_null_comparison(predicate: Expr) -> None:
    """Raise if a predicate compares with None: that is never true."""
    for node in predicate.walk():
        if node.op in ("eq", "ne") and any(arg.op == "lit" and arg.params[1] is None for arg in node.args):
            value = next((arg for arg in node.args if arg.op != "lit"), node.args[0])
            instead = "is_null" if node.op == "eq" else "is_not_null"
            raise IncorrectError(f"filter: {node}: nothing is equal or unequal to None; use {value}.{instead}()")
