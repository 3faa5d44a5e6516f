"""Functions of expressions that are not methods: `coalesce`, `least`, `hash64`, both divisions, and keys to order rows by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tektite.errors import IncorrectError
from tektite.expr.ast import Expr, Scalar, concat, lift, lit
from tektite.expr.cases import when
from tektite.unknown_options import explained
from tektite.values.types import String


def _check_not_texts_alone(function: str, values: Sequence[object], *first: str) -> None:
    """Refuse texts that are meant to be columns."""
    if all(isinstance(value, str) for value in values):
        columns = ", ".join([*first, *(f"tk.col({value!r})" for value in values)])
        raise IncorrectError(
            f"{function}() of texts alone is a text: columns are {function}({columns}), and texts tk.lit(...)"
        )


def _variadic(op: str, least_count: int, doc: str) -> Callable[..., Expr]:
    def build(*values: Expr | Scalar) -> Expr:
        if len(values) < least_count:
            raise IncorrectError(f"{op}() needs at least {least_count} value(s), got {len(values)}")
        _check_not_texts_alone(op, values)
        return Expr(op, tuple(map(lift, values)))

    build.__name__ = build.__qualname__ = op
    build.__doc__ = doc
    return explained(build)


coalesce = _variadic(
    "coalesce",
    1,
    """The first of the values that is not NULL.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"nick": [None, "Al"], "name": ["Ada", "Alan"]})
    >>> rows.select(shown=tk.coalesce(tk.col("nick"), tk.col("name"))).collect().to_pydict()
    {'shown': ['Ada', 'Al']}
    """,
)
least = _variadic(
    "least",
    1,
    """The least of the values; NULLs are ignored.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [3, None], "y": [5, 4]}).select(z=tk.least(tk.col("x"), tk.col("y"))).collect().to_pydict()
    {'z': [3, 4]}
    """,
)
greatest = _variadic(
    "greatest",
    1,
    """The greatest of the values; NULLs are ignored.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [3, None]}).select(z=tk.greatest(tk.col("x"), 2)).collect().to_pydict()
    {'z': [3, 2]}
    """,
)
hash64 = _variadic(
    "hash64",
    1,
    """A hash of the values as an Int, the same on every machine. NULL counts as a value of its own.

    >>> import tektite as tk
    >>> users = tk.Engine().values({"name": ["Ada", "Alan", "Grace", "Barbara"]})
    >>> users.filter(tk.hash64(tk.col("name")) % 4 == 0).collect().to_pydict()  # of many users, a quarter
    {'name': ['Barbara']}
    """,
)


@explained
def truncdiv(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """The quotient rounded towards zero, as in SQL and Datalog: truncdiv(-3, 2) is -1, while -3 // 2 is -2.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"x": [-3, 3]})
    >>> rows.select(towards_zero=tk.truncdiv(tk.col("x"), 2), down=tk.col("x") // 2).collect().to_pydict()
    {'towards_zero': [-1, 1], 'down': [-2, 1]}
    """
    return Expr("truncdiv", (lift(left), lift(right)))


@explained
def truncmod(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """The remainder of `truncdiv`, with the sign of the dividend, as in SQL and Datalog: truncmod(-3, 2) is -1 where -3 % 2 is 1.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"x": [-3, 3]})
    >>> rows.select(towards_zero=tk.truncmod(tk.col("x"), 2), down=tk.col("x") % 2).collect().to_pydict()
    {'towards_zero': [-1, 1], 'down': [1, 1]}
    """
    return Expr("truncmod", (lift(left), lift(right)))


@explained
def concat_ws(separator: Expr | str, *values: Expr | Scalar) -> Expr:
    """The values that are not NULL as texts, one after the other, with a separator between them.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"name": ["Ada", "Alan"], "town": ["London", None]})
    >>> rows.select(shown=tk.concat_ws(", ", tk.col("name"), tk.col("town"))).collect().to_pydict()
    {'shown': ['Ada, London', 'Alan']}
    """
    if not values:
        raise IncorrectError("concat_ws(separator, ...) needs at least 1 value, got 0")
    _check_not_texts_alone("concat_ws", values, repr(separator))
    between, pieces = lift(separator), []
    before: Expr = lit(False)
    for value in map(lift, values):
        pieces.append(coalesce(concat(when(before, between).otherwise(""), value.cast(String)), ""))
        before = before | value.is_not_null()
    return when(between.is_not_null(), concat(*pieces)).otherwise(None)


@explained
def now() -> Expr:
    """The time as of each epoch, as a timestamp of UTC, or of the session's time zone if it has another one: SQL's `now()`. In a
    query that compares a column with it, rows come and go as time passes.

    >>> import datetime as dt, tektite as tk
    >>> engine = tk.Engine()
    >>> events = engine.create_table("events", {"at": tk.Timestamp})
    >>> recent = engine.install("recent", events.filter(tk.col("at") > tk.now() - dt.timedelta(hours=1)))
    >>> _ = events.insert([(dt.datetime.now(dt.UTC).replace(tzinfo=None),), (dt.datetime(2020, 1, 1),)])
    >>> len(recent)
    1
    """
    return Expr("now")


@explained
def sql_expr(text: str) -> Expr:
    """An expression of SQL, as in `SELECT text FROM self`: for functions and subqueries that have no method here.
    It can be part of another expression, in `select`, `with_columns`, `filter`, `group_by` and `agg`. For queries there is
    `Collection.sql`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"x": [1, 2], "y": [5, None]})
    >>> rows.select("x", tags=tk.sql_expr("[x, y]"), other=tk.sql_expr("y") + 1).sort("x").collect().to_pylist()
    [{'x': 1, 'tags': [1, 5], 'other': 6}, {'x': 2, 'tags': [2, None], 'other': None}]
    """
    if not isinstance(text, str):
        raise IncorrectError(f"sql_expr takes an expression of SQL as a text, not {text!r}")
    return Expr("sql_expr", (), (text,))


def key(value: Expr) -> Expr:
    """The value as joins and groups compare it: -0.0 is 0.0."""
    return Expr("key", (value,))


def rank(value: Expr, descending: bool = False) -> Expr:
    """An Int that orders like the value, or in reverse. NULL stays NULL."""
    return Expr("rank", (value,), (descending,))


def text_word(value: Expr, number: int) -> Expr:
    """The bytes 7 * number to 7 * number + 6 of a text as an Int; bytes after its end are 0. Texts compare like the
    sequence of their words.
    """
    return Expr("text_word", (value,), (number,))


def at_scale(value: Expr, scale: int, up: bool) -> Expr:
    """The decimal of `scale` places nearest to a decimal: the least that is not below it, or the greatest that is not
    above.

    A decimal of that many places compares with it as with the value itself. Neither digits that are rounded away nor added
    places can overflow.
    """
    return Expr("at_scale", (value,), (scale, up))
