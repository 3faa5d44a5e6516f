"""Expressions as users write them: immutable trees without types.

`col("a") * 2 + 1` builds a tree. `tektite.expr.typing` types it against a schema, and `tektite.expr.program` runs it. Python
scalars (int, float, bool, str, Decimal, date, datetime, None, NumPy scalars) become literals automatically; a timedelta can be
added to and subtracted from dates and timestamps. Two expressions are equal if their `fingerprint`s are; `==` builds a
comparison.

NULL is as in SQL: arithmetic, comparison and functions of NULL are NULL; `&`, `|` and `~` are three-valued.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, ValuesView
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr import other_names
from tektite.expr.aggregate_methods import AggregateMethods
from tektite.expr.constant_set import ConstantSet
from tektite.expr.literals import literal_type, literal_value
from tektite.expr.namespaces import Namespaces
from tektite.expr.number_methods import NumberMethods
from tektite.expr.printing import printed
from tektite.expr.value_methods import ValueMethods
from tektite.unknown_options import explained, explains_options
from tektite.values.type_names import as_type
from tektite.values.types import Type

Scalar = int | float | bool | str | decimal.Decimal | datetime.date | datetime.datetime | np.generic | None


@explains_options
class Expr(AggregateMethods, NumberMethods, ValueMethods, Namespaces):
    """A node: an operation, its operands, and parameters that are not expressions.

    >>> import tektite as tk
    >>> amount = tk.col("price") * tk.col("quantity")
    >>> amount + 1
    <Expr price * quantity + 1>
    """

    __slots__ = ("_columns", "args", "fingerprint", "op", "params")

    op: str
    args: tuple[Expr, ...]
    params: tuple[Any, ...]
    fingerprint: tuple[Any, ...]
    _columns: tuple[str, ...]

    def __init__(self, op: str, args: tuple[Expr, ...] = (), params: tuple[Any, ...] = ()) -> None:
        put = object.__setattr__
        put(self, "op", op)
        put(self, "args", args)
        put(self, "params", params)
        # repr tells 1 from 1.0 and True, and 0.0 from -0.0, which compare equal in Python; a literal's type tells, too
        if op == "lit" and type(params[1]) is int:
            put(self, "fingerprint", (op, repr(params[0]), params[1]))
        else:
            put(self, "fingerprint", (op, *map(repr, params), *[arg.fingerprint for arg in args]))
        # planning reads the columns of an expression far more often than it builds one
        reading = [arg._columns for arg in args if arg._columns]
        if len(reading) > 1:
            put(self, "_columns", tuple(dict.fromkeys([name for columns in reading for name in columns])))
        else:
            put(self, "_columns", params[:1] if op == "col" else reading[0] if reading else ())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"expressions are immutable: cannot set {name!r} of {self}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"expressions are immutable: cannot delete {name!r} of {self}")

    def _made(self, op: str, args: Sequence[Any], params: tuple[Any, ...] = ()) -> Expr:
        return Expr(op, tuple(map(lift, args)), params)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.op, self.args, self.params)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __bool__(self) -> NoReturn:
        raise IncorrectError(
            f"the truth of {self} is not known until it meets a row. Write & | ~ instead of and, or, not, with "
            "parentheses around comparisons; x.between(a, b) instead of a <= x <= b; x.is_in([...]) instead of in; "
            "tk.least and tk.greatest instead of Python's min and max; x.fingerprint == y.fingerprint to ask whether two "
            "expressions are the same"
        )

    def __iter__(self) -> NoReturn:
        raise IncorrectError(
            f"{self} has no values to go through until it meets rows. Write tk.sum(...), tk.min(...), tk.max(...), tk.any(...) "
            "and tk.all(...) instead of Python's own functions of these names"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise IncorrectError(
            f"whether something is in {self} is not known until it meets a row. Write x.is_in([...]) instead of Python's in, and "
            "x.str.contains(part) for a part of a text"
        )

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"expressions have no {name!r}{other_names.of_expressions(name, type(self))}")

    # -- walking ---------------------------------------------------------------------------------------------------

    def walk(self) -> Iterator[Expr]:
        """This node and all below it; a node comes before its operands."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(reversed(node.args))

    def columns(self) -> list[str]:
        """The names of the columns it reads, each once, in the order of their first use."""
        return list(self._columns)

    def substitute(self, replacements: Mapping[str, Expr]) -> Expr:
        """The same expression with columns replaced by expressions."""
        if self.op == "col":
            return replacements.get(self.params[0], self)
        if not any(name in replacements for name in self._columns):
            return self
        args = tuple([arg.substitute(replacements) for arg in self.args])
        if all(map(operator.is_, args, self.args)):
            return self
        return type(self)(self.op, args, self.params)

    def replaced(self, other: Callable[[Expr], Expr | None]) -> Expr:
        """The same expression with `other(node)` in place of each node that it has something for, the outermost first."""
        found = other(self)
        if found is not None:
            return found
        args = tuple(arg.replaced(other) for arg in self.args)
        if all(new is old for new, old in zip(args, self.args, strict=True)):
            return self
        return type(self)(self.op, args, self.params)

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<Expr {self}>"

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: Expr | Scalar | datetime.timedelta) -> Expr:
        if isinstance(other, datetime.timedelta):
            return Expr("move", (self,), (_microseconds(other),))
        return Expr("add", (self, lift(other)))

    def __radd__(self, other: Scalar | datetime.timedelta) -> Expr:
        return self + other if isinstance(other, datetime.timedelta) else Expr("add", (lift(other), self))

    def __sub__(self, other: Expr | Scalar | datetime.timedelta) -> Expr:
        return self + -other if isinstance(other, datetime.timedelta) else Expr("sub", (self, lift(other)))

    def __rsub__(self, other: Scalar) -> Expr:
        return Expr("sub", (lift(other), self))

    def __mul__(self, other: Expr | Scalar) -> Expr:
        return Expr("mul", (self, lift(other)))

    def __rmul__(self, other: Scalar) -> Expr:
        return Expr("mul", (lift(other), self))

    def __truediv__(self, other: Expr | Scalar) -> Expr:
        return Expr("div", (self, lift(other)))

    def __rtruediv__(self, other: Scalar) -> Expr:
        return Expr("div", (lift(other), self))

    def __floordiv__(self, other: Expr | Scalar) -> Expr:
        return Expr("floordiv", (self, lift(other)))

    def __rfloordiv__(self, other: Scalar) -> Expr:
        return Expr("floordiv", (lift(other), self))

    def __mod__(self, other: Expr | Scalar) -> Expr:
        return Expr("mod", (self, lift(other)))

    def __rmod__(self, other: Scalar) -> Expr:
        return Expr("mod", (lift(other), self))

    def __pow__(self, exponent: Expr | Scalar, modulus: None = None) -> Expr:
        if modulus is not None:
            raise IncorrectError(f"pow takes two values here: write pow({self}, ...) % {modulus}")
        return Expr("power", (self, lift(exponent)))

    def __rpow__(self, base: Scalar) -> Expr:
        return Expr("power", (lift(base), self))

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))

    def __pos__(self) -> Expr:
        return self

    def __divmod__(self, other: Expr | Scalar) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __xor__(self, other: object) -> NoReturn:
        raise IncorrectError(f"{self} ^ {other}: write ** for a power, and != for either of two conditions")

    def __lshift__(self, other: object) -> NoReturn:
        raise IncorrectError(f"{self} << {other}: write * 2**n; or Collection.sql('SELECT a << b FROM self')")

    def __rshift__(self, other: object) -> NoReturn:
        raise IncorrectError(f"{self} >> {other}: write // 2**n; or Collection.sql('SELECT a >> b FROM self')")

    def __matmul__(self, other: object) -> NoReturn:
        raise IncorrectError(f"{self} @ {other}: columns are multiplied by *, and tk.sum(a * b) is their inner product")

    def __int__(self) -> NoReturn:
        raise IncorrectError(f"{self} has no value until it meets a row. Write {self}.cast(int) instead of int(...)")

    def __index__(self) -> NoReturn:
        raise IncorrectError(f"{self} has no value until it meets a row: it cannot count or choose in a list")

    def __float__(self) -> NoReturn:
        raise IncorrectError(
            f"{self} has no value until it meets a row. Write {self}.cast(float) instead of float(...)"
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise IncorrectError(
            f"{self}[{key!r}]: write .str[...] for characters of a text, .list.get(n) for an element of a list, "
            ".struct.field(name) for a field, .json.get(path) for a part of a JSON; rows are chosen by filter(...)"
        )

    def __len__(self) -> NoReturn:
        raise IncorrectError(
            f"{self} has no length until it meets a row. Write .str.len() for a text, .list.len() for a list, tk.count() for rows"
        )

    def __array_function__(self, function: Any, kinds: object, args: tuple[Any, ...], options: dict[str, Any]) -> Expr:
        """NumPy's functions of arrays: `where` and `select` are choices, and the others are refused."""
        from tektite.expr.array_functions import applied

        return applied(function, args, options)

    # -- comparison and logic --------------------------------------------------------------------------------------

    def __eq__(self, other: Expr | Scalar) -> Expr:  # type: ignore[override]
        return Expr("eq", (self, lift(other)))

    def __ne__(self, other: Expr | Scalar) -> Expr:  # type: ignore[override]
        return Expr("ne", (self, lift(other)))

    def __lt__(self, other: Expr | Scalar) -> Expr:
        return Expr("lt", (self, lift(other)))

    def __le__(self, other: Expr | Scalar) -> Expr:
        return Expr("le", (self, lift(other)))

    def __gt__(self, other: Expr | Scalar) -> Expr:
        return Expr("gt", (self, lift(other)))

    def __ge__(self, other: Expr | Scalar) -> Expr:
        return Expr("ge", (self, lift(other)))

    def __and__(self, other: Expr | Scalar) -> Expr:
        return Expr("and", (self, lift(other)))

    def __rand__(self, other: Scalar) -> Expr:
        return Expr("and", (lift(other), self))

    def __or__(self, other: Expr | Scalar) -> Expr:
        return Expr("or", (self, lift(other)))

    def __ror__(self, other: Scalar) -> Expr:
        return Expr("or", (lift(other), self))

    def __invert__(self) -> Expr:
        return Expr("not", (self,))

    def is_null(self) -> Expr:
        """Whether it is NULL; never NULL itself.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, None]}).select(tk.col("x").is_null()).collect().to_pydict()
        {'x': [False, True]}
        """
        return Expr("is_null", (self,))

    def is_not_null(self) -> Expr:
        """Whether it is not NULL; never NULL itself.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, None]}).select(tk.col("x").is_not_null()).collect().to_pydict()
        {'x': [True, False]}
        """
        return Expr("is_not_null", (self,))

    def is_same(self, other: Expr | Scalar) -> Expr:
        """Equality that treats NULL as a value: SQL's IS NOT DISTINCT FROM.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [1, None], "y": [1, None]})
        >>> rows.select(same=tk.col("x").is_same(tk.col("y")), equal=tk.col("x") == tk.col("y")).collect().to_pydict()
        {'same': [True, True], 'equal': [True, None]}
        """
        return Expr("is_same", (self, lift(other)))

    def between(self, low: Expr | Scalar, high: Expr | Scalar) -> Expr:
        """low <= self and self <= high.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, 2, 5]}).select(tk.col("x").between(2, 4)).collect().to_pydict()
        {'x': [False, True, False]}
        """
        return (self >= low) & (self <= high)

    def is_in(self, values: Any) -> Expr:
        """Whether it equals one of the values. As in SQL, NULL if it equals none and one of them is NULL. In `filter`, alone or
        after `~`, the values may be a collection of one column, or a column of another collection: the answer follows them.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> rows = engine.values({"x": [1, 2, 3]})
        >>> rows.select(tk.col("x").is_in([1, 3])).collect().to_pydict()
        {'x': [True, False, True]}
        >>> rows.filter(~tk.col("x").is_in(engine.values({"y": [1, 3]}))).collect().to_pydict()
        {'x': [2]}
        """
        if hasattr(values, "operator") or hasattr(values, "owner"):  # a collection, or a column of one
            return Expr("is_among", (self,), (Among(values),))
        if hasattr(values, "to_pylist") or hasattr(values, "tolist"):  # arrays of Arrow, NumPy and data frames
            values = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
        if not isinstance(values, list | tuple | Set | Iterator | range | ValuesView):
            raise IncorrectError(
                f"{self}.is_in(...) takes a list of values or a collection of one column, not {values!r}"
            )
        items = list(map(lift, values))
        constants = ConstantSet.of(items)
        return Expr("isin", (self, *items)) if constants is None else Expr("isin", (self,), (constants,))

    def isin(self, values: Any) -> Expr:
        """The same as `is_in`.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, 2, 3]}).select(tk.col("x").isin([1, 3])).collect().to_pydict()
        {'x': [True, False, True]}
        """
        return self.is_in(values)

    def fill_null(self, value: Expr | Scalar) -> Expr:
        """The value given where it is NULL.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, None]}).select(tk.col("x").fill_null(0)).collect().to_pydict()
        {'x': [1, 0]}
        """
        return Expr("coalesce", (self, lift(value)))

    def nullif(self, value: Expr | Scalar) -> Expr:
        """NULL where it equals the value given.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": ["a", ""]}).select(tk.col("x").nullif("")).collect().to_pydict()
        {'x': ['a', None]}
        """
        return Expr("case", (self == value, lit(None), self))

    def alias(self, name: str) -> Expr:
        """The same value under another name, where `select`, `with_columns`, `group_by` or `agg` makes a column of it.

        >>> import tektite as tk
        >>> orders = tk.Engine().create_table("orders", {"price": tk.Int, "quantity": tk.Int})
        >>> orders.select((tk.col("price") * tk.col("quantity")).alias("total"))
        <Collection (total: int)>
        """
        if not isinstance(name, str) or not name:
            raise IncorrectError(f"{self}.alias(...) takes the name of a column, not {name!r}")
        return Expr("alias", (self,), (name,))

    def cast(self, type: Any) -> Expr:
        """Convert to another type, such as `tk.Int`, `int` or `"bigint"`. A value that cannot be converted is an error; see
        `try_cast`. As in SQL, a float that lies between two integers becomes the even one (2.5 gives 2), and a decimal the one
        away from zero (2.5 gives 3).

        >>> import tektite as tk
        >>> tk.col("x").cast(int), tk.col("x").cast("decimal(12, 2)")
        (<Expr x.cast(int)>, <Expr x.cast(decimal(12, 2))>)
        """
        return Expr("cast", (self,), (as_type(type, "cast: "),))

    def try_cast(self, type: Any) -> Expr:
        """Convert text to another type; NULL if it cannot be converted.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": ["7", "seven"]}).select(tk.col("x").try_cast(int)).collect().to_pydict()
        {'x': [7, None]}
        """
        return Expr("try_cast", (self,), (as_type(type, "try_cast: "),))

    def concat(self, *others: Expr | Scalar) -> Expr:
        """This text followed by others.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": ["a", "b"]}).select(tk.col("x").concat("-", 1)).collect().to_pydict()
        {'x': ['a-1', 'b-1']}
        """
        return concat(self, *others)


class Among:
    """The values of a collection, which an expression is compared with. It is printed without its rows."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __repr__(self) -> str:
        found = getattr(self.values, "operator", None)
        columns = self.values.params if found is None else found.schema.names
        return f"the rows of ({', '.join(columns)})"


def _microseconds(span: datetime.timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


@explained
def _col(name: str, *more: Any) -> Expr:
    """The column with this name; `col.x` is short for `col("x")`. Several are given to `select` and others by their names alone:
    `select("a", "b")`.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1, 2]}).select(tk.col("x") + 1, before=tk.col.x).collect().to_pydict()
    {'x': [2, 3], 'before': [1, 2]}
    """
    if more or not isinstance(name, str):
        given: Any = name
        names = [*(given if isinstance(given, list | tuple) else [given]), *more]
        if len(names) > 1 and all(isinstance(each, str) for each in names):
            several = ", ".join(map(repr, names))
            raise IncorrectError(
                f"tk.col names one column: select({several}) takes several, and agg(...) one aggregate for each"
            )
        kinds = "; columns of a type are select([name for name, type in dict(c.schema).items() if type == tk.Int])"
        raise IncorrectError(f"a column is named by a string, not {name!r}{kinds * isinstance(name, type | Type)}")
    return _column(str(name))


@functools.lru_cache(4096)
def _column(name: str) -> Expr:
    """Thousands of queries name the same columns, and expressions do not change: they share these."""
    return Expr("col", (), (name,))


@functools.lru_cache(1024)
def _columns(names: tuple[str, ...]) -> tuple[Expr, ...]:
    return tuple([_column(name) for name in names])


def shared_columns(outputs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The same expressions. Where all of them are columns, as in most of thousands of queries, these are one tuple for all."""
    names = [e.params[0] for e in outputs if e.op == "col" and type(e) is Expr]
    return _columns(tuple(names)) if len(names) == len(outputs) else outputs


class _Columns:
    """The type of `col`: a function, and an object with a column under each name."""

    def __init__(self) -> None:
        functools.update_wrapper(self, _col)

    if TYPE_CHECKING:

        def __call__(self, name: str, *more: Any) -> Expr: ...

    else:

        def __call__(self, *names: Any, **options: Any) -> Expr:
            return _col(*names, **options)

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):
            raise AttributeError(f"tk.col has no {name!r}; the column is tk.col({name!r})")
        return _col(name)


col = _Columns()


@explained
def lit(value: Any, type: Any = None) -> Expr:
    """A constant, of the given type or of the type that its Python type implies.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1, 2]}).select(tk.col("x"), kind=tk.lit("small")).collect().to_pydict()
    {'x': [1, 2], 'kind': ['small', 'small']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    chosen = literal_type(value) if type is None else as_type(type, "lit(...): ")
    return Expr("lit", (), (chosen, literal_value(value, chosen)))


def lift(value: Any) -> Expr:
    """An expression unchanged; a Python scalar as a literal."""
    return value if isinstance(value, Expr) else lit(value)


@explained
def concat(*values: Expr | Scalar) -> Expr:
    """Concatenated texts; values of other types are cast to String. NULL if one of them is.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": ["a", None]}).select(both=tk.concat(tk.col("x"), "-", 1)).collect().to_pydict()
    {'both': ['a-1', None]}
    """
    if not values:
        raise IncorrectError("concat() needs at least 1 value(s), got 0")
    for value in values:
        if hasattr(value, "operator") or isinstance(value, list):
            raise IncorrectError(
                "tk.concat puts texts together: write one.union(other) for the rows of several collections, and "
                "one.join(other, on=...) for their columns"
            )
    parts: list[Expr] = []
    for value in map(lift, values):
        parts.extend(value.args if value.op == "concat" else (value,))
    return Expr("concat", tuple(parts))
