"""Calls that do not fit: explains_options and explained answer them with what a method or a function takes. Python would raise a
TypeError that says less.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from tektite.errors import IncorrectError
from tektite.unknown_names import explains_names

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
    "cast": {"strict": "try_cast(type), which gives NULL"},
    "contains": {
        "case": "ilike('%part%')",
        "literal": "nothing: contains takes the text as it is, and matches(pattern) a regular expression",
        "na": "fill_null(False) of it",
        "regex": "matches(pattern)",
        "strict": "nothing: contains takes the text as it is, and matches(pattern) a regular expression",
    },
    "distinct": {"keep": "top_k(1, by=..., per='x')", "on": "unique('x')", "subset": "unique('x')"},
    "drop": {"axis": "nothing: drop leaves columns out, and filter(...) rows"},
    "drop_nulls": {"how": "filter(...) with is_not_null() of columns"},
    "drop_table": {"force": "if_exists=True", "ignore_if_not_exists": "if_exists=True"},
    "fill_null": {"strategy": "fill_null(0); or last(ignore_nulls=True).over(order_by=..., rows=(None, 0))"},
    "first": {"ignore_null": "ignore_nulls="},
    "hop": {"period": "size=", "slide": "every=", "step": "every=", "window": "size="},
    "join": {
        "by": "on=",
        "coalesce": "nothing: keys are in the result once",
        "indicator": "how='anti' for the rows without a partner",
        "join_nulls": "on=a['x'].is_same(b['x'])",
        "keys": "on=",
        "lsuffix": "suffix=, which the right side's columns get",
        "predicates": "on=condition",
        "rsuffix": "suffix=",
        "suffixes": "suffix=, which the right side's columns get",
        "lname": "suffix=, which the right side's columns get",
        "nulls_equal": "on=a['x'].is_same(b['x'])",
        "rname": "suffix='_r'",
        "using": "on=",
        "validate": "nothing: primary_key= of create_table(...) makes a column unique",
    },
    "join_asof": {
        "group_by": "by=",
        "tolerance": "a copy of the other side's time, other.with_columns(seen='at'), and filter(...) by the distance from it",
    },
    "lit": {"dtype": "type="},
    "over": {
        "frame": "rows= or range=",
        "group_by": "the columns without a name: over('k')",
        "partition_by": "the columns without a name: over('k')",
    },
    "quantile": {
        "interpolation": "nothing: it interpolates; quantile_disc of SQL takes a value that is there",
        "q": "share=",
    },
    "rank": {
        "ascending": "tk.rank().over(order_by='x', descending=True)",
        "method": "tk.rank(), tk.dense_rank() or tk.row_number()",
    },
    "replace": {"regex": "regexp_replace(pattern, new, every=True)"},
    "shift": {"fill_value": "lag(n, value)", "periods": "n="},
    "set": {"where": "the condition without a name: set(condition, x=value)"},
    "sort": {
        "ascending": "descending=",
        "desc": "descending=",
        "key": "by=",
        "nulls_first": "nulls_last=False",
        "reverse": "descending=",
    },
    "sum": {"where": "tk.col('x').filter(condition).sum()"},
    "count": {"distinct": "tk.n_unique('x')", "where": "tk.col('x').filter(condition).count()"},
    "split": {
        "by": "separator=",
        "expand": "split_part(separator, n), one for each column",
        "n": "split_part(separator, n)",
    },
    "std": {"how": "ddof=0 for the whole, ddof=1 for a sample"},
    "top_k": {"group_by": "per=", "over": "per=", "partition_by": "per=", "n": "k=", "reverse": "bottom_k(k, by=...)"},
    "bottom_k": {"group_by": "per=", "over": "per=", "partition_by": "per=", "n": "k=", "reverse": "top_k(k, by=...)"},
    "rows": {"limit": "head(n)", "n": "head(n)"},
    "snapshot": {"limit": "head(n)"},
    "unique": {"keep": "top_k(1, by=..., per='x')", "maintain_order": "sort(...)"},
    "update": {"on": "set(condition, x=value) of a table"},
    "values": {"columns": "the types: values(data, {'id': int, 'name': str})", "schema": "types="},
}
"""Other libraries' names of options, by function, each with ours."""

GROUP_OPTIONS = {
    "as_index": "keys are columns of the result",
    "dropna": "NULL is a key like others; leave it out before, by drop_nulls('k')",
    "maintain_order": "groups have no order to maintain: write agg(...).sort(...)",
    "observed": "only groups that have rows are there",
    "sort": "groups have no order: write agg(...).sort(...)",
}
"""Options of other libraries' `group_by`, which would be keys here."""

FILTER_OPTIONS = {
    "items": "columns are chosen by select('a', 'b')",
    "like": "columns are chosen by select([name for name in c.schema.names if 'part' in name])",
    "regex": "columns are chosen by sql('SELECT COLUMNS(...) FROM self')",
}
"""Options of other libraries' `filter`, which would be columns here."""

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
    "create_index": "several columns are a list, as in table.create_index(['a', 'b'])",
    "rename": "a column gets another name by rename({'old': 'new'}) or rename(old='new')",
    "is_in": "values are a list: is_in([1, 2])",
    "install": "a name comes first: install('name', query)",
    "create_table": "columns are a dict: create_table('name', {'column': type})",
    "remove": "rows are a list: remove([(1, 'a')]); delete(condition) removes those for which a condition holds",
    "update": "rows are a list; set(condition, x=value) changes columns",
    "lookup": "a key is given by its values alone: lookup(1)",
    "iterate": "a function gives the next round: iterate(lambda reached: ...)",
    "Table": "a table is made by engine.create_table(name, {'column': type})",
    "View": "a view is made by engine.create_view(name, query)",
    "Collection": "a collection is a table, a view, engine.values(rows), or what their methods return",
    "Subscription": "it is made by subscribe() of a view or a table",
    "Session": "it is made by engine.session()",
    "Transaction": "it is made by engine.transaction()",
}
"""The usual intention of a call with too many or too few arguments, by function."""


_COLUMN = "it is a column: write it without (), and a function of it as a method, such as .abs()"
_RELATION = "its rows are .rows(), and .to_arrow() or .to_pandas()"
_SESSION = "a query is .sql(text), and a table .table(name)"
_CHANGES = "its changes are read by a for loop or poll(timeout)"
OBJECTS = {
    "Expr": _COLUMN, "Case": _COLUMN, "OwnColumn": _COLUMN,
    "Grouped": "aggregates are .agg(n=tk.count())",
    "When": "the value is .then(value)",
    "Subscription": _CHANGES, "RemoteSubscription": _CHANGES,
    "Engine": _SESSION, "Session": _SESSION, "RemoteSession": _SESSION, "AsyncSession": f"{_SESSION}, both after await",
    "AsyncTable": "its rows are await .rows()", "AsyncView": "its rows are await .rows()",
    "TextMethods": "write .str.upper()", "DateMethods": "write .dt.year()", "ListMethods": "write .list.get(0)",
    "JsonMethods": "write .json.get('name')",
}  # fmt: skip
"""The hint for a call of an object that is no function, by its class."""


def _refuse_call(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__name__
    raise IncorrectError(f"{kind}() is not a function: {OBJECTS.get(kind, _RELATION)}")


def _formatted(self: object, form: str) -> str:
    if form:
        raise IncorrectError(f"{form!r} is no format of {type(self).__name__}; use {{...}} alone, or format its values")
    return str(self)


def _refuse_block(self: object, *_: object) -> NoReturn:
    way = next((word for word, name in _BLOCKS.items() if getattr(type(self), name) is not _refuse_block), None)
    kind = type(self).__name__
    advice = f"write `{way}`" if way else "it needs no closing; `with engine.transaction():` makes several writes one"
    raise IncorrectError(f"{kind} is not a context manager of this kind: {advice}")


_BLOCKS = {"with": "__enter__", "async with": "__aenter__"}


def is_function(value: object) -> bool:
    """Whether a value can be called. Objects of the public classes can not, though they have an answer to it.

    >>> import tektite as tk
    >>> is_function(print), is_function(tk.col("x"))
    (True, False)
    >>> tk.col("x")()
    Traceback (most recent call last):
    tektite.errors.IncorrectError: Expr() is not a function: it is a column: write it without (), and a function of it as a ...
    """
    return callable(value) and type(value).__call__ is not _refuse_call


def check_arguments(function: Callable[..., Any], args: tuple[Any, ...], what: str) -> None:
    """Raise if a function of the caller's does not take what it is to be called with.

    >>> check_arguments(lambda: 3, (1,), "iterate: the body takes the collection of each round")
    Traceback (most recent call last):
    tektite.errors.IncorrectError: iterate: the body takes the collection of each round, and <lambda>() does not: too many ...
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C do not tell
        return
    try:
        signature.bind(*args)
    except TypeError as error:
        raise IncorrectError(f"{what}, and {getattr(function, '__name__', function)}() does not: {error}") from None


REFUSALS: dict[str, Callable[..., Any]] = {
    "__call__": _refuse_call, "__format__": _formatted, "__enter__": _refuse_block, "__exit__": _refuse_block,
    "__aenter__": _refuse_block, "__aexit__": _refuse_block,
}  # fmt: skip
"""Methods that a public class gets where it defines none."""


def explains_options(kind: C) -> C:
    """Let the public methods of a class, and its constructor, name what they take, where Python would name the function alone.
    Its objects say what to write where they are called as functions are, and in place of a name that they do not have.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1]}).sort("x", ascending=False)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: sort has no option 'ascending'; use descending=; it takes by, descending, nulls_last
    """
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _explaining(method, kind.__name__ if name == "__init__" else name, 1))
    for name, refusal in REFUSALS.items():
        if not any(name in vars(base) for base in kind.__mro__[:-1]):
            setattr(kind, name, refusal)
    return explains_names(kind)


def explained(function: F) -> F:
    """A function that names what it takes.

    >>> import tektite as tk
    >>> tk.count("x", distinct=True)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: count has no option 'distinct'; use tk.n_unique('x'); it takes value
    """
    found: Any = _explaining(function, getattr(function, "__name__", "it").lstrip("_"), 0)
    return found  # type: ignore[no-any-return]


class Uncalled:
    """A method that was named and not called. It is called like any other; whatever else is done with it says how."""

    def __init__(self, method: Any, owner: object, name: str) -> None:
        self._method = method
        self._owner = owner
        self._called = name
        self.__wrapped__ = method
        self.__doc__ = method.__doc__

    @property
    def _name(self) -> str:
        return f"{self._owner}.{self._called}"

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._method(*args, **options)

    @property
    def call(self) -> str:
        """The call that gives its value."""
        return f"{self._name}()"

    def __repr__(self) -> str:
        return f"<{self._name}, a method: {self._name}() is its value>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"{self._name} is a method, which has no {name!r}; use {self._name}().{name}")


def _refused(self: Uncalled, *others: Any) -> NoReturn:
    raise IncorrectError(f"{self._name} is a method: write {self._name}() for its value")


OPERATORS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos and rand or ror xor invert"
for _operator in (*OPERATORS.split(), "eq", "ne", "lt", "le", "gt", "ge", "getitem", "bool"):
    setattr(Uncalled, f"__{_operator}__", _refused)


class Methods:
    """A base for classes that have methods alone, such as `.dt`. A method that is not called says so, where Python would name
    the two types that it cannot add.

    >>> import tektite as tk
    >>> tk.col("at").dt.hour + 1
    Traceback (most recent call last):
    tektite.errors.IncorrectError: at.dt.hour is a method: write at.dt.hour() for its value
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    if not TYPE_CHECKING:  # type checkers know that it is a method

        def __getattribute__(self, name: str) -> Any:
            found = object.__getattribute__(self, name)
            if name.startswith("_") or not callable(found):
                return found
            return Uncalled(found, self._value, f"{type(self)._NAME}.{name}")


class _Method:
    """A function of a class of which each instance has an `Uncalled`."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(cast(Any, self), function)

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        function: Any = self.__wrapped__  # type: ignore[attr-defined]
        return function if owner is None else Uncalled(MethodType(function, owner), owner, function.__name__)


def explains_missing_calls(kind: C) -> C:
    """Let the public methods of a class say that they are to be called, where something else is done with them.

    >>> import tektite as tk
    >>> tk.col("x").abs > 3
    Traceback (most recent call last):
    tektite.errors.IncorrectError: x.abs is a method: write x.abs() for its value
    """
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, _Method(method))
    return kind


def _explaining(function: Callable[..., Any], name: str, own: int) -> Callable[..., Any]:
    """The function with explanations; `own` is how many of its first parameters callers do not see."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return (
                function(*args, **options) if options else function(*args)
            )  # of no options Python would make two dicts
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
            found = OPTIONS.get(name, {}).get(wrong, "")
            note = found.removeprefix("nothing: ")
            what = f" has no option {wrong!r}"
            if found:
                what += f"; use {found}" if note == found else f", and needs none: {note}"
            elif name in CALLS:
                what += f"; {CALLS[name]}"
        else:
            what = f"(): {error}" + (f"; {CALLS[name]}" if name in CALLS else "")
        for option in options:
            if wrong is None and option in names and signature.parameters[option].kind in unnamed:
                what = f" takes {option} without its name: {name}({options[option]!r})"
        raise IncorrectError(f"{name}{what}; {takes}") from None
