"""Calls that do not fit: explains_options and explained answer them with what a method or a function takes. Python would raise a
TypeError that says less.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from tektite.errors import IncorrectError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {
    "Engine": {
        "database": "storage=path",
        "path": "storage=path",
        "url": "storage=path, or tk.connect(url) for a server",
        "memory": "memory_limit=",
        "n_workers": "workers=",
        "parallelism": "workers=",
        "threads": "workers=",
    },
    "create_table": {
        "columns": "the schema without a name: create_table(name, {'column': type})",
        "data": "the rows in place of the schema: create_table(name, rows)",
        "exist_ok": "if_exists='keep'",
        "if_not_exists": "if_exists='keep'",
        "index": "order_by=, or create_index(table, columns)",
        "key": "primary_key=",
        "keys": "primary_key=",
        "kind": "mode=",
        "not_null": "required=",
        "nullable": "required=, with the columns that are not",
        "overwrite": "if_exists='replace'",
        "partition_by": "shard_by=",
        "pk": "primary_key=",
        "primarykey": "primary_key=",
        "replace": "if_exists='replace'",
    },
    "create_view": {
        "exist_ok": "if_exists='keep'",
        "key": "order_by=",
        "materialized": "nothing: every view is kept up to date",
        "or_replace": "if_exists='replace'",
        "overwrite": "if_exists='replace'",
        "replace": "if_exists='replace'",
        "sql": "the text without a name: create_view(name, text)",
    },
    "hop": {"period": "size=", "slide": "every=", "step": "every=", "window": "size="},
    "join": {
        "by": "on=",
        "keys": "on=",
        "lsuffix": "suffix=, which the right side's columns get",
        "predicates": "on=condition",
        "rsuffix": "suffix=",
        "suffixes": "suffix=, which the right side's columns get",
        "using": "on=",
    },
    "lit": {"dtype": "type="},
    "sort": {"ascending": "descending=", "key": "by=", "reverse": "descending="},
    "sum": {"where": "tk.col('x').filter(condition).sum()"},
    "count": {"distinct": "tk.n_unique('x')", "where": "tk.col('x').filter(condition).count()"},
    "values": {"columns": "the types: values(data, {'id': int, 'name': str})", "schema": "types="},
}
"""What other libraries call options, by function: what to write instead."""

_ONE = "an aggregate is taken of one column: agg(tk.{0}('a'), tk.{0}('b'))"
CALLS = {
    "all": "all columns are select('*'), and tk.all(condition) is whether it holds in every row",
    "any": "tk.any(condition) is whether it holds in some row",
    "max": f"{_ONE.format('max')}; the greatest of several columns is tk.greatest(...)",
    "min": f"{_ONE.format('min')}; the least of several columns is tk.least(...)",
    "sum": f"{_ONE.format('sum')}; the sum of several columns is tk.col('a') + tk.col('b')",
    "rank": "what rows are ranked by is said by tk.rank().over(order_by='x')",
    "dense_rank": "what rows are ranked by is said by tk.dense_rank().over(order_by='x')",
    "row_number": "the order is said by tk.row_number().over(order_by='x')",
    "insert": "rows are a list: insert([(1, 'a'), (2, 'b')])",
    "create_index": "several columns are a list: create_index(table, ['a', 'b'])",
    "rename": "a column gets another name by rename({'old': 'new'}) or rename(old='new')",
    "is_in": "values are a list: is_in([1, 2])",
    "install": "a name comes first: install('name', query)",
}
"""What is usually meant by a call with too many or too few arguments, by function."""


def explains_options(kind: C) -> C:
    """Let the public methods of a class, and its constructor, name what they take, where Python would name the function alone.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1]}).sort("x", ascending=False)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: sort has no option 'ascending'; use descending=; it takes by, descending, nulls_last
    """
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _explaining(method, kind.__name__ if name == "__init__" else name, 1))
    return kind


def explained(function: F) -> F:
    """A function that names what it takes.

    >>> import tektite as tk
    >>> tk.count("x", distinct=True)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: count has no option 'distinct'; use tk.n_unique('x'); it takes value
    """
    found: Any = _explaining(function, getattr(function, "__name__", "it"), 0)
    return found  # type: ignore[no-any-return]


def _explaining(function: Callable[..., Any], name: str, own: int) -> Callable[..., Any]:
    """The function with explanations; `own` is how many of its first parameters callers do not see."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError:
            _check_call(function, name, own, args, options)
            raise

    return call


def _check_call(
    function: Callable[..., Any], name: str, own: int, args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Raise what is wrong with a call, if its arguments are not those of the function."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        names = list(signature.parameters)[own:]
        takes = f"it takes {', '.join(names)}" if names else "it takes nothing"
        wrong = next((option for option in options if option not in names), None)
        unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
        if wrong is not None:
            instead = OPTIONS.get(name, {}).get(wrong)
            what = f"has no option {wrong!r}" + (f"; use {instead}" if instead else "")
        else:
            what = f"was called otherwise than it can be: {error}" + (f"; {CALLS[name]}" if name in CALLS else "")
        for option in options:
            if wrong is None and option in names and signature.parameters[option].kind in unnamed:
                what = f"takes {option} without its name: {name}({options[option]!r})"
        raise IncorrectError(f"{name} {what}; {takes}") from None
