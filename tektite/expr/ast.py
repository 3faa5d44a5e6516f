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
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, ValuesView
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr import other_names
from tektite.expr.aggregate_methods import AggregateMethods
from tektite.expr.literals import literal_type, literal_value
from tektite.expr.namespaces import Namespaces
from tektite.values.type_names import as_type

Scalar = int | float | bool | str | decimal.Decimal | datetime.date | datetime.datetime | np.generic | None

# how each prints, and how tightly it binds in Python, so that Python can read the printed form
INFIX = {
    "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1),
    "or": ("|", 2), "and": ("&", 3),
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "floordiv": ("//", 5), "mod": ("%", 5),
}  # fmt: skip
PREFIX = {"neg": "-", "not": "~"}
TIGHTEST = 6
FREE = frozenset({"coalesce", "least", "greatest", "hash64", "concat", "truncdiv", "truncmod"})  # printed as functions
NAMESPACED = {"date_part": "dt.part", "strftime": "dt.strftime"}
RANKING = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})


class Expr(AggregateMethods, Namespaces):
    """A node: an operation, its operands, and parameters that are not expressions."""

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
        # repr tells 1 from 1.0 and True, and 0.0 from -0.0, which compare equal in Python
        put(self, "fingerprint", (op, *map(repr, params), *(arg.fingerprint for arg in args)))
        # planning reads the columns of an expression far more often than it builds one
        read = params[:1] if op == "col" else dict.fromkeys(name for arg in args for name in arg._columns)
        put(self, "_columns", tuple(read))

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

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"expressions have no {name!r}{other_names.advice(name, other_names.METHODS)}")

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
        return type(self)(self.op, tuple(arg.substitute(replacements) for arg in self.args), self.params)

    def replaced(self, other: Callable[[Expr], Expr | None]) -> Expr:
        """The same expression with `other(node)` in place of each node that it has something for, the outermost first."""
        found = other(self)
        if found is not None:
            return found
        args = tuple(arg.replaced(other) for arg in self.args)
        if all(new is old for new, old in zip(args, self.args, strict=True)):
            return self
        return type(self)(self.op, args, self.params)

    # -- printing --------------------------------------------------------------------------------------------------

    def _binding(self) -> int:
        """How tightly the printed form binds."""
        if self.op in INFIX:
            return INFIX[self.op][1]
        if self.op == "lit" and str(self).startswith("-"):
            return TIGHTEST - 1
        return TIGHTEST if self.op in PREFIX else TIGHTEST + 1

    def _within(self, binding: int) -> str:
        return f"({self})" if self._binding() < binding else str(self)

    def __str__(self) -> str:
        if self.op == "col":
            return str(self.params[0])
        if self.op == "lit":
            value = self.params[1]
            return repr(value) if value is None or isinstance(value, str | bool | int | float) else f"'{value}'"
        if self.op in INFIX:
            sign, binding = INFIX[self.op]
            # comparisons would chain without parentheses, a - (b - c) needs them
            left = binding + 1 if binding == 1 else binding
            return f"{self.args[0]._within(left)} {sign} {self.args[1]._within(binding + 1)}"
        if self.op in PREFIX:
            return PREFIX[self.op] + self.args[0]._within(TIGHTEST)
        if self.op == "case":
            pairs = zip(self.args[0:-1:2], self.args[1:-1:2], strict=True)
            whens = ".".join(f"when({condition}).then({value})" for condition, value in pairs)
            return f"{whens}.otherwise({self.args[-1]})"
        if self.op == "move":
            return f"({self.args[0]._within(4)} + {datetime.timedelta(microseconds=self.params[0])!r})"
        if self.op in ("aggregate", "window", "over"):
            return _shown_call(self)
        shown = [repr(param) if isinstance(param, str) else str(param) for param in self.params]
        if self.op in FREE:
            return f"{self.op}({', '.join([str(arg) for arg in self.args] + shown)})"
        if self.op == "isin":
            return f"{self.args[0]._within(TIGHTEST + 1)}.isin([{', '.join(map(str, self.args[1:]))}])"
        rest = ", ".join([str(arg) for arg in self.args[1:]] + shown)
        return f"{self.args[0]._within(TIGHTEST + 1)}.{NAMESPACED.get(self.op, self.op)}({rest})"

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

    def __pow__(self, exponent: Expr | Scalar) -> Expr:
        return Expr("power", (self, lift(exponent)))

    def __rpow__(self, base: Scalar) -> Expr:
        return Expr("power", (lift(base), self))

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))

    def __abs__(self) -> Expr:
        return Expr("abs", (self,))

    def abs(self) -> Expr:
        """The absolute value."""
        return Expr("abs", (self,))

    def sign(self) -> Expr:
        """-1, 0 or 1, as an Int. A NaN counts as greater than zero."""
        return Expr("sign", (self,))

    def round(self, digits: int = 0) -> Expr:
        """The nearest number with so many digits behind the point, of the same type. Halves are rounded away from zero, as in SQL
        (Python rounds them to the even neighbour).
        """
        return Expr("round", (self,), (_whole(digits, "round(digits)"),))

    def __round__(self, digits: int = 0) -> Expr:
        return self.round(digits)

    def floor(self) -> Expr:
        """The greatest whole number that is not greater, of the same type."""
        return Expr("floor", (self,))

    def ceil(self) -> Expr:
        """The least whole number that is not less, of the same type."""
        return Expr("ceil", (self,))

    def trunc(self) -> Expr:
        """The whole number next to it on the way to zero, of the same type."""
        return Expr("trunc", (self,))

    def sqrt(self) -> Expr:
        """The square root; NULL if there is none."""
        return Expr("sqrt", (self,))

    def ln(self) -> Expr:
        """The natural logarithm; NULL if there is none."""
        return Expr("ln", (self,))

    def exp(self) -> Expr:
        """The exponential."""
        return Expr("exp", (self,))

    def power(self, exponent: Expr | Scalar) -> Expr:
        """Raised to a power, as a Float; NULL if that is not a number."""
        return Expr("power", (self, lift(exponent)))

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
        """Whether it is NULL; never NULL itself."""
        return Expr("is_null", (self,))

    def is_not_null(self) -> Expr:
        """Whether it is not NULL; never NULL itself."""
        return Expr("is_not_null", (self,))

    def is_same(self, other: Expr | Scalar) -> Expr:
        """Equality that treats NULL as a value: SQL's IS NOT DISTINCT FROM."""
        return Expr("is_same", (self, lift(other)))

    def between(self, low: Expr | Scalar, high: Expr | Scalar) -> Expr:
        """low <= self and self <= high."""
        return (self >= low) & (self <= high)

    def is_in(self, values: Any) -> Expr:
        """Whether it equals one of the values. As in SQL, NULL if it equals none and one of them is NULL. For the values
        of another collection, use `join(..., how="semi")`.
        """
        if hasattr(values, "to_pylist") or hasattr(values, "tolist"):  # arrays of Arrow, NumPy and data frames
            values = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
        if not isinstance(values, list | tuple | Set | Iterator | range | ValuesView):
            raise IncorrectError(
                f"{self}.is_in(...) takes a list of values, not {values!r}; for the rows of a collection, join with how='semi'"
            )
        return Expr("isin", (self, *map(lift, values)))

    def isin(self, values: Any) -> Expr:
        """The same as `is_in`."""
        return self.is_in(values)

    def fill_null(self, value: Expr | Scalar) -> Expr:
        """The value given where it is NULL."""
        return coalesce(self, value)

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
        `try_cast`.

        >>> import tektite as tk
        >>> tk.col("x").cast(int), tk.col("x").cast("decimal(12, 2)")
        (<Expr x.cast(int)>, <Expr x.cast(decimal(12, 2))>)
        """
        return Expr("cast", (self,), (as_type(type, "cast: "),))

    def try_cast(self, type: Any) -> Expr:
        """Convert text to another type; NULL if it cannot be converted."""
        return Expr("try_cast", (self,), (as_type(type, "try_cast: "),))

    # -- text ------------------------------------------------------------------------------------------------------

    def length(self) -> Expr:
        """The number of characters (code points)."""
        return Expr("length", (self,))

    def lower(self) -> Expr:
        """Converted to lower case."""
        return Expr("lower", (self,))

    def upper(self) -> Expr:
        """Converted to upper case."""
        return Expr("upper", (self,))

    def strip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at both ends."""
        return Expr("strip", (self,), () if characters is None else (characters,))

    def lstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the start."""
        return Expr("lstrip", (self,), () if characters is None else (characters,))

    def rstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the end."""
        return Expr("rstrip", (self,), () if characters is None else (characters,))

    def substring(self, start: Expr | int, length: Expr | int | None = None) -> Expr:
        """`length` characters from `start` on. `start` counts from 1, as in SQL; a negative one counts from the end.

        Positions before the first character are empty: substring(0, 2) is one character. A negative length counts as 0.
        """
        return Expr("substring", (self, lift(start), *(() if length is None else (lift(length),))))

    def concat(self, *others: Expr | Scalar) -> Expr:
        """This text followed by others."""
        return concat(self, *others)

    def startswith(self, prefix: Expr | str) -> Expr:
        """Whether the text starts with another."""
        return Expr("startswith", (self, lift(prefix)))

    def endswith(self, suffix: Expr | str) -> Expr:
        """Whether the text ends with another."""
        return Expr("endswith", (self, lift(suffix)))

    def contains(self, part: Expr | str) -> Expr:
        """Whether the text contains another."""
        return Expr("contains", (self, lift(part)))

    def like(self, pattern: str, escape: str | None = None) -> Expr:
        """SQL's LIKE: % matches any text, _ any character. `escape` before either makes it literal."""
        return Expr("like", (self,), _checked_pattern(pattern, escape))

    def ilike(self, pattern: str, escape: str | None = None) -> Expr:
        """LIKE that ignores case."""
        return Expr("ilike", (self,), _checked_pattern(pattern, escape))

    def replace(self, old: Expr | str, new: Expr | str) -> Expr:
        """Replaces every occurrence of `old` by `new`; nothing if `old` is empty."""
        return Expr("replace", (self, lift(old), lift(new)))

    def position(self, part: Expr | str) -> Expr:
        """Where another text first occurs, counted from 1; 0 if it does not."""
        return Expr("position", (self, lift(part)))

    def reverse(self) -> Expr:
        """The characters in reverse order."""
        return Expr("reverse", (self,))

    def lpad(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded at the start, or cut at the end, to a length."""
        return Expr("lpad", (self, lift(length), lift(fill)))

    def rpad(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded or cut at the end, to a length."""
        return Expr("rpad", (self, lift(length), lift(fill)))

    def matches(self, pattern: str) -> Expr:
        """Whether the text contains a match of a regular expression (RE2)."""
        return Expr("matches", (self,), (pattern,))

    def regexp_replace(self, pattern: str, replacement: str, every: bool = False) -> Expr:
        r"""The first match of a regular expression (RE2) replaced, or every one; `\1` stands for its first group."""
        return Expr("regexp_replace", (self,), (pattern, replacement, every))

    def regexp_extract(self, pattern: str, group: int = 0) -> Expr:
        """The first match of a regular expression (RE2), or one of its groups; empty if there is none."""
        return Expr("regexp_extract", (self,), (pattern, group))

    def like_text(self, pattern: Expr) -> Expr:
        """SQL's LIKE with a pattern that varies by row."""
        return Expr("like_text", (self, lift(pattern)))

    def repeat(self, times: Expr | int) -> Expr:
        """The text repeated; empty if `times` is negative."""
        return Expr("repeat", (self, lift(times)))

    def split_part(self, separator: Expr | str, part: Expr | int) -> Expr:
        """One of the parts between separators, counted from 1, or from the end if negative; empty if there is none."""
        return Expr("split_part", (self, lift(separator), lift(part)))

    # -- dates and timestamps --------------------------------------------------------------------------------------

    def year(self) -> Expr:
        """The year of a date or timestamp."""
        return Expr("year", (self,))

    def quarter(self) -> Expr:
        """The quarter, 1 to 4."""
        return Expr("quarter", (self,))

    def month(self) -> Expr:
        """The month, 1 to 12."""
        return Expr("month", (self,))

    def day(self) -> Expr:
        """The day of the month, 1 to 31."""
        return Expr("day", (self,))

    def weekday(self) -> Expr:
        """The day of the week as in Python: Monday is 0, Sunday 6."""
        return Expr("weekday", (self,))

    def hour(self) -> Expr:
        """The hour of a timestamp, 0 to 23."""
        return Expr("hour", (self,))

    def minute(self) -> Expr:
        """The minute of a timestamp, 0 to 59."""
        return Expr("minute", (self,))

    def second(self) -> Expr:
        """The whole second of a timestamp, 0 to 59."""
        return Expr("second", (self,))

    def add_days(self, days: Expr | int) -> Expr:
        """A date or timestamp some days later."""
        return Expr("add_days", (self, lift(days)))

    def add_months(self, months: Expr | int) -> Expr:
        """A date or timestamp some months later; the month's last day if it has no such day."""
        return Expr("add_months", (self, lift(months)))

    def truncate(self, unit: str) -> Expr:
        """The start of its year, quarter, month, week (Monday), day, hour, minute or second, with the same type."""
        if not isinstance(unit, str):
            raise IncorrectError(f"truncate takes a unit such as 'month', not {unit!r}")
        return Expr("truncate", (self,), (unit,))

    # -- bits ------------------------------------------------------------------------------------------------------

    def bit_and(self, other: Expr | int) -> Expr:
        """Bitwise and of integers (`&` is the logical one)."""
        return Expr("bit_and", (self, lift(other)))

    def bit_or(self, other: Expr | int) -> Expr:
        """Bitwise or of integers."""
        return Expr("bit_or", (self, lift(other)))

    def bit_xor(self, other: Expr | int) -> Expr:
        """Bitwise exclusive or of integers."""
        return Expr("bit_xor", (self, lift(other)))

    def bit_not(self) -> Expr:
        """Inverts every bit of an integer."""
        return Expr("bit_not", (self,))

    def shift_left(self, bits: Expr | int) -> Expr:
        """Shifts bits up. Losing a bit or the sign is an overflow."""
        return Expr("shift_left", (self, lift(bits)))

    def shift_right(self, bits: Expr | int) -> Expr:
        """Shifts bits down; keeps the sign."""
        return Expr("shift_right", (self, lift(bits)))


class Case(Expr):
    """A chain of when(condition, value) that can be extended. Where no condition is true it is NULL, or `otherwise`."""

    __slots__ = ()

    @overload
    def when(self, condition: Expr | bool) -> When: ...
    @overload
    def when(self, condition: Expr | bool, value: Expr | Scalar) -> Case: ...
    def when(self, condition: Expr | bool, value: Any = ...) -> When | Case:
        """The value where this condition is true and no earlier one is."""
        found = When(condition, self.args[:-1])
        return found if value is ... else found.then(value)

    def otherwise(self, value: Expr | Scalar) -> Expr:
        """The value where no condition is true."""
        return Expr("case", (*self.args[:-1], lift(value)))


class When:
    """A condition that waits for its value: `then(value)` gives it."""

    def __init__(self, condition: Expr | bool, before: tuple[Expr, ...]) -> None:
        self._condition = lift(condition)
        self._before = before

    def then(self, value: Expr | Scalar) -> Case:
        """The value where the condition is true and no earlier one is."""
        return Case("case", (*self._before, self._condition, lift(value), lit(None)))

    def __repr__(self) -> str:
        return f"<when({self._condition}), which needs .then(value)>"


def _microseconds(span: datetime.timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _whole(number: Any, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise IncorrectError(f"{what} takes a whole number, not {number!r}")
    return number


def _shown_call(call: Expr) -> str:
    """An aggregate, or a window function, as Python has it."""
    if call.op == "over":
        partition, descending, frame = call.params
        by = [str(arg) for arg in call.args[1 : 1 + partition]]
        order = [str(arg) for arg in call.args[1 + partition :]]
        shown = [
            *by,
            *([f"order_by=[{', '.join(order)}]"] if order else []),
            *(["descending=..."] if any(descending) else []),
        ]
        return f"{call.args[0]}.over({', '.join(shown)}{f', {frame[0]}={frame[1:]}' if frame else ''})"
    kind, *constants = call.params
    given = ", ".join(repr(constant) for constant in constants if constant is not None)
    if call.op == "aggregate" and not call.args or kind in RANKING:
        return f"{kind}({given})"
    return f"{call.args[0]._within(TIGHTEST + 1)}.{kind}({given})"


def _checked_pattern(pattern: str, escape: str | None) -> tuple[str, ...]:
    if not isinstance(pattern, str):
        raise IncorrectError(f"the pattern of LIKE is a string, not {pattern!r}")
    if escape is None:
        return (pattern,)
    if not isinstance(escape, str) or len(escape) != 1:
        raise IncorrectError(f"the escape of LIKE is one character, not {escape!r}")
    return pattern, escape


def col(name: str) -> Expr:
    """The column with this name."""
    if not isinstance(name, str):
        raise IncorrectError(f"a column is named by a string, not {name!r}")
    return _column(str(name))


@functools.lru_cache(4096)
def _column(name: str) -> Expr:
    """Thousands of queries name the same columns, and expressions do not change: they share these."""
    return Expr("col", (), (name,))


def lit(value: Any, type: Any = None) -> Expr:
    """A constant, of the given type or of the type that its Python type implies."""
    if isinstance(value, np.generic):
        value = value.item()
    chosen = literal_type(value) if type is None else as_type(type, "lit(...): ")
    return Expr("lit", (), (chosen, literal_value(value, chosen)))


def lift(value: Any) -> Expr:
    """An expression unchanged; a Python scalar as a literal."""
    return value if isinstance(value, Expr) else lit(value)


@overload
def when(condition: Expr | bool) -> When: ...
@overload
def when(condition: Expr | bool, value: Expr | Scalar) -> Case: ...
def when(condition: Expr | bool, value: Any = ...) -> When | Case:
    """A choice: `when(a > 0).then("positive").when(a < 0).then("negative").otherwise("zero")`. Texts are literals here; a column
    is `col("name")`. `when(a > 0, "positive")` is short for `when(a > 0).then("positive")`.

    >>> import tektite as tk
    >>> tk.when(tk.col("n") > 9).then("many").when(tk.col("n") > 0).then("few").otherwise("none")
    <Expr when(n > 9).then('many').when(n > 0).then('few').otherwise('none')>
    """
    found = When(condition, ())
    return found if value is ... else found.then(value)


def _variadic(op: str, least_count: int, doc: str) -> Callable[..., Expr]:
    def build(*values: Expr | Scalar) -> Expr:
        if len(values) < least_count:
            raise IncorrectError(f"{op}() needs at least {least_count} value(s), got {len(values)}")
        return Expr(op, tuple(map(lift, values)))

    build.__name__ = build.__qualname__ = op
    build.__doc__ = doc
    return build


coalesce = _variadic("coalesce", 1, "The first of the values that is not NULL.")
least = _variadic("least", 1, "The least of the values; NULLs are ignored.")
greatest = _variadic("greatest", 1, "The greatest of the values; NULLs are ignored.")
hash64 = _variadic(
    "hash64", 1, "A hash of the values as an Int, the same on every machine. NULL counts as a value of its own."
)


def concat(*values: Expr | Scalar) -> Expr:
    """Concatenated texts; values of other types are cast to String. NULL if one of them is."""
    if not values:
        raise IncorrectError("concat() needs at least 1 value(s), got 0")
    parts: list[Expr] = []
    for value in map(lift, values):
        parts.extend(value.args if value.op == "concat" else (value,))
    return Expr("concat", tuple(parts))


def truncdiv(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """The quotient rounded towards zero, as in SQL and Datalog: truncdiv(-3, 2) is -1, while -3 // 2 is -2."""
    return Expr("truncdiv", (lift(left), lift(right)))


def truncmod(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """What `truncdiv` leaves, with the sign of the dividend, as in SQL and Datalog: truncmod(-3, 2) is -1, while -3 % 2 is 1."""
    return Expr("truncmod", (lift(left), lift(right)))


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
