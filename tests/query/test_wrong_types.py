"""Whatever is given to a method of queries or expressions, it works or raises one of Tektite's own errors."""

from __future__ import annotations

import datetime
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tektite as tk
from tektite import col

ARITY = ("missing", "positional argument", "unexpected keyword")
"""What Python says of a call with too few or too many arguments."""
NOT_QUERIES = {"explain", "inspect", "iterate"}


@pytest.fixture(scope="module")
def c() -> Iterator[tk.Table]:
    with tk.Engine() as engine:
        yield engine.create_table("c", {"x": tk.Int, "t": tk.String, "f": tk.Float, "d": tk.Date, "b": tk.Bool})


def things(c: tk.Collection) -> list[Any]:
    """Values of all kinds that somebody might give."""
    return [
        None, 5, -1, 1.5, "x", "nope", b"x", [], [1], ["x"], [None], {"x": 1}, object(), col("x"), ("x", "t"), tk.count(), True,
        len, datetime.timedelta(1), c, tk.Int, set(), {},
    ]  # fmt: skip


def tried(function: Callable[..., object], /, *args: Any, **named: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            function(*args, **named)
    except tk.TektiteError:
        pass
    except TypeError as error:
        assert any(words in str(error) for words in ARITY), f"{function}(*{args}, **{named}): {error}"


def methods(found: object) -> list[str]:
    return [name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name))]


@pytest.mark.parametrize("name", sorted({*methods(tk.Collection)} - NOT_QUERIES))
def test_methods_of_collections(name: str, c: tk.Table) -> None:
    method = getattr(c.select("x", "t"), name)
    given = things(c)
    for value in given:
        tried(method, value)
        for option in list(inspect.signature(method).parameters):
            tried(method, **{option: value})
    for pair in itertools.product(given, given[:14]):
        tried(method, *pair)


@pytest.mark.parametrize("option", ["on", "how", "left_on", "right_on", "suffix"])
def test_options_of_joins(option: str, c: tk.Table) -> None:
    for value in things(c):
        tried(c.join, c, **({"on": "x"} | {option: value}))
        tried(c.join, c, **{option: value})


@pytest.mark.parametrize("name", methods(tk.Expr))
def test_methods_of_expressions(name: str, c: tk.Table) -> None:
    method = getattr(col("x"), name)
    if name not in ("walk", "columns", "substitute", "replaced"):
        for value in things(c):
            tried(lambda value=value: c.select(y=method(value)))


@pytest.mark.parametrize("column", [col("t").str, col("d").dt], ids=["str", "dt"])
def test_methods_of_namespaces(column: object, c: tk.Table) -> None:
    given = things(c)
    for name in methods(column):
        method = getattr(column, name)
        for args in [(), *((value,) for value in given), *itertools.product(given[:14], given[:14])]:
            tried(lambda args=args, method=method: c.select(y=method(*args)))


def test_functions_and_windows(c: tk.Table) -> None:
    functions = [getattr(tk, name) for name in tk.__all__ if inspect.isfunction(getattr(tk, name))]
    for function, value in itertools.product(functions, things(c)):
        tried(lambda function=function, value=value: c.select(y=function(value)))
    for option, value in itertools.product(("order_by", "descending", "rows"), things(c)):
        tried(lambda option=option, value=value: c.select(y=tk.sum("x").over(**({"order_by": "x"} | {option: value}))))
    for verb, value in itertools.product((c.select, c.with_columns, c.agg, c.group_by("x").agg, c.group_by), things(c)):
        tried(verb, value)
        tried(verb, y=value)
    for option, value in itertools.product(("find", "where", "without", "strategy", "order"), things(c)):
        tried(tk.match, (c, ("x", "t", None, None, None)), **{option: value})
