"""Methods of expressions that are functions of texts, of dates and timestamps, and of bits."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.expr.durations import truncation
from tektite.expr.regular_expressions import checked_group, checked_pattern, checked_replacement
from tektite.unknown_options import explains_missing_calls, explains_options

if TYPE_CHECKING:
    from tektite.expr.ast import Expr


@explains_missing_calls
@explains_options
class ValueMethods:
    """Methods of expressions that depend on the type of the value."""

    __slots__ = ()

    def _made(self, op: str, args: Sequence[Any], params: tuple[Any, ...] = ()) -> Expr:
        """A node over this module's operands. Python scalars become literals."""
        raise NotImplementedError

    # -- text ------------------------------------------------------------------------------------------------------

    def length(self) -> Expr:
        """The number of characters (code points).

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["tea", "größer"]}).select(tk.col("w").length()).collect().to_pydict()
        {'w': [3, 6]}
        """
        return self._made("length", (self,))

    def lower(self) -> Expr:
        """Converted to lower case.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["Tea"]}).select(tk.col("w").lower()).collect().to_pydict()
        {'w': ['tea']}
        """
        return self._made("lower", (self,))

    def upper(self) -> Expr:
        """Converted to upper case.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["Tea"]}).select(tk.col("w").upper()).collect().to_pydict()
        {'w': ['TEA']}
        """
        return self._made("upper", (self,))

    def strip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at both ends.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["  tea ", "--tea-"]})
        >>> rows.select(tk.col("w").strip(), dashes=tk.col("w").strip("-")).collect().to_pydict()
        {'w': ['tea', '--tea-'], 'dashes': ['  tea ', 'tea']}
        """
        return self._made("strip", (self,), () if characters is None else (characters,))

    def lstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the start.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["  tea "]}).select(tk.col("w").lstrip()).collect().to_pydict()
        {'w': ['tea ']}
        """
        return self._made("lstrip", (self,), () if characters is None else (characters,))

    def rstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the end.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["  tea "]}).select(tk.col("w").rstrip()).collect().to_pydict()
        {'w': ['  tea']}
        """
        return self._made("rstrip", (self,), () if characters is None else (characters,))

    def substring(self, start: Expr | int, length: Expr | int | None = None) -> Expr:
        """`length` characters from `start` on. `start` counts from 1, as in SQL; a negative one counts from the end.

        Positions before the first character are empty: substring(0, 2) is one character. A negative length counts as 0.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["salty"]})
        >>> rows.select(tk.col("w").substring(2, 3), end=tk.col("w").substring(-2)).collect().to_pydict()
        {'w': ['alt'], 'end': ['ty']}
        """
        return self._made("substring", (self, start, *(() if length is None else (length,))))

    def startswith(self, prefix: Expr | str) -> Expr:
        """Whether the text starts with another.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["tea", "salt"]}).select(tk.col("w").startswith("te")).collect().to_pydict()
        {'w': [True, False]}
        """
        return self._made("startswith", (self, prefix))

    def endswith(self, suffix: Expr | str) -> Expr:
        """Whether the text ends with another.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["tea", "salt"]}).select(tk.col("w").endswith("lt")).collect().to_pydict()
        {'w': [False, True]}
        """
        return self._made("endswith", (self, suffix))

    def contains(self, part: Expr | str) -> Expr:
        """Whether the text contains another.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["tea", "salt"]}).select(tk.col("w").contains("al")).collect().to_pydict()
        {'w': [False, True]}
        """
        return self._made("contains", (self, part))

    def like(self, pattern: str, escape: str | None = None) -> Expr:
        """SQL's LIKE: % matches any text, _ any character. `escape` before either makes it literal.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["tea", "salt"]}).select(tk.col("w").like("_a%")).collect().to_pydict()
        {'w': [False, True]}
        """
        return self._made("like", (self,), _checked_pattern(pattern, escape))

    def ilike(self, pattern: str, escape: str | None = None) -> Expr:
        """LIKE that ignores case.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["Tea", "salt"]}).select(tk.col("w").ilike("t%")).collect().to_pydict()
        {'w': [True, False]}
        """
        return self._made("ilike", (self,), _checked_pattern(pattern, escape))

    def replace(self, old: Expr | str, new: Expr | str) -> Expr:
        """Replaces every occurrence of `old` by `new`; nothing if `old` is empty.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["a-b-c"]}).select(tk.col("w").replace("-", "+")).collect().to_pydict()
        {'w': ['a+b+c']}
        """
        return self._made("replace", (self, old, new))

    def position(self, part: Expr | str) -> Expr:
        """The position at which another text first occurs, counted from 1; 0 if it does not.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["salt", "tea"]}).select(tk.col("w").position("lt")).collect().to_pydict()
        {'w': [3, 0]}
        """
        return self._made("position", (self, part))

    def reverse(self) -> Expr:
        """The characters in reverse order.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["salt"]}).select(tk.col("w").reverse()).collect().to_pydict()
        {'w': ['tlas']}
        """
        return self._made("reverse", (self,))

    def lpad(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded at the start, or cut at the end, to a length.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["7", "12345"]}).select(tk.col("w").lpad(3, "0")).collect().to_pydict()
        {'w': ['007', '123']}
        """
        return self._made("lpad", (self, length, fill))

    def rpad(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded or cut at the end, to a length.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["7", "12345"]}).select(tk.col("w").rpad(3, ".")).collect().to_pydict()
        {'w': ['7..', '123']}
        """
        return self._made("rpad", (self, length, fill))

    def matches(self, pattern: str) -> Expr:
        """Whether the text contains a match of a regular expression (RE2).

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["a1", "b"]}).select(tk.col("w").matches("[0-9]")).collect().to_pydict()
        {'w': [True, False]}
        """
        return self._made("matches", (self,), (checked_pattern(pattern, f"{self}.matches(...)"),))

    def regexp_replace(self, pattern: str, replacement: str, every: bool = False) -> Expr:
        r"""The first match of a regular expression (RE2) replaced, or every one; `\1` stands for its first group.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["a1b2"]})
        >>> rows.select(tk.col("w").regexp_replace("[0-9]", "#", every=True)).collect().to_pydict()
        {'w': ['a#b#']}
        """
        checked_replacement(pattern, replacement, f"{self}.regexp_replace(...)")
        return self._made("regexp_replace", (self,), (pattern, replacement, every))

    def regexp_extract(self, pattern: str, group: int = 0) -> Expr:
        """The first match of a regular expression (RE2), or one of its groups; empty if there is none.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["id=17", "none"]})
        >>> rows.select(tk.col("w").regexp_extract("id=([0-9]+)", 1)).collect().to_pydict()
        {'w': ['17', '']}
        """
        what = f"{self}.regexp_extract(...)"
        return self._made("regexp_extract", (self,), (checked_pattern(pattern, what), checked_group(group, what)))

    def like_text(self, pattern: Expr) -> Expr:
        """SQL's LIKE with a pattern that varies by row.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["tea", "salt"], "p": ["t%", "x%"]})
        >>> rows.select(tk.col("w").like_text(tk.col("p"))).collect().to_pydict()
        {'w': [True, False]}
        """
        return self._made("like_text", (self, pattern))

    def repeat(self, times: Expr | int) -> Expr:
        """The text repeated; empty if `times` is negative.

        >>> import tektite as tk
        >>> tk.Engine().values({"w": ["ab"]}).select(tk.col("w").repeat(3)).collect().to_pydict()
        {'w': ['ababab']}
        """
        return self._made("repeat", (self, times))

    def split_part(self, separator: Expr | str, part: Expr | int) -> Expr:
        """One of the parts between separators, counted from 1, or from the end if negative; empty if there is none.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"w": ["a,b,c"]})
        >>> rows.select(tk.col("w").split_part(",", 2), last=tk.col("w").split_part(",", -1)).collect().to_pydict()
        {'w': ['b'], 'last': ['c']}
        """
        return self._made("split_part", (self, separator, part))

    # -- dates and timestamps --------------------------------------------------------------------------------------

    def year(self) -> Expr:
        """The year of a date or timestamp.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").year()).collect().to_pydict()
        {'t': [2026]}
        """
        return self._made("year", (self,))

    def quarter(self) -> Expr:
        """The quarter, 1 to 4.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").quarter()).collect().to_pydict()
        {'t': [4]}
        """
        return self._made("quarter", (self,))

    def month(self) -> Expr:
        """The month, 1 to 12.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").month()).collect().to_pydict()
        {'t': [11]}
        """
        return self._made("month", (self,))

    def day(self) -> Expr:
        """The day of the month, 1 to 31.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").day()).collect().to_pydict()
        {'t': [18]}
        """
        return self._made("day", (self,))

    def weekday(self) -> Expr:
        """The day of the week as in Python: Monday is 0, Sunday 6.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").weekday()).collect().to_pydict()
        {'t': [2]}
        """
        return self._made("weekday", (self,))

    def hour(self) -> Expr:
        """The hour of a timestamp, 0 to 23.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").hour()).collect().to_pydict()
        {'t': [7]}
        """
        return self._made("hour", (self,))

    def minute(self) -> Expr:
        """The minute of a timestamp, 0 to 59.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").minute()).collect().to_pydict()
        {'t': [45]}
        """
        return self._made("minute", (self,))

    def second(self) -> Expr:
        """The whole second of a timestamp, 0 to 59.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.datetime(2026, 11, 18, 7, 45, 30)]})
        >>> rows.select(tk.col("t").second()).collect().to_pydict()
        {'t': [30]}
        """
        return self._made("second", (self,))

    def add_days(self, days: Expr | int) -> Expr:
        """A date or timestamp some days later.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> tk.Engine().values({"t": [dt.date(2026, 1, 31)]}).select(tk.col("t").add_days(1)).collect().to_pydict()
        {'t': [datetime.date(2026, 2, 1)]}
        """
        return self._made("add_days", (self, days))

    def add_months(self, months: Expr | int) -> Expr:
        """A date or timestamp some months later; the month's last day if it has no such day.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.date(2026, 1, 31)]})
        >>> rows.select(tk.col("t").add_months(1)).collect().to_pydict()
        {'t': [datetime.date(2026, 2, 28)]}
        """
        return self._made("add_months", (self, months))

    def truncate(self, every: str | datetime.timedelta) -> Expr:
        """The start of its year, quarter, month, week (Monday), day, hour, minute or second, with the same type; or that of the
        stretch of time that it lies in, one of many that are `15m`, `6h` or a `datetime.timedelta` long, counted from a Monday.
        That is SQL's `time_bucket`.

        >>> import datetime as dt
        >>> import tektite as tk
        >>> rows = tk.Engine().values({"t": [dt.date(2026, 1, 31)]})
        >>> rows.select(tk.col("t").truncate("month")).collect().to_pydict()
        {'t': [datetime.date(2026, 1, 1)]}
        >>> times = tk.Engine().values({"t": [dt.datetime(2026, 1, 31, 9, 50)]})
        >>> times.select(tk.col("t").truncate("15m")).collect().to_pydict()
        {'t': [datetime.datetime(2026, 1, 31, 9, 45)]}
        """
        unit, microseconds = truncation(every)
        if unit is None:
            return self._made("time_bucket", (self,), (microseconds,))
        return self._made("truncate", (self,), (unit,))

    # -- bits ------------------------------------------------------------------------------------------------------

    def bit_and(self, other: Expr | int) -> Expr:
        """Bitwise and of integers (`&` is the logical one).

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [6, 8]}).select(tk.col("x").bit_and(3)).collect().to_pydict()
        {'x': [2, 0]}
        """
        return self._made("bit_and", (self, other))

    def bit_or(self, other: Expr | int) -> Expr:
        """Bitwise or of integers.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [6, 8]}).select(tk.col("x").bit_or(3)).collect().to_pydict()
        {'x': [7, 11]}
        """
        return self._made("bit_or", (self, other))

    def bit_xor(self, other: Expr | int) -> Expr:
        """Bitwise exclusive or of integers.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [6, 8]}).select(tk.col("x").bit_xor(3)).collect().to_pydict()
        {'x': [5, 11]}
        """
        return self._made("bit_xor", (self, other))

    def bit_not(self) -> Expr:
        """Inverts every bit of an integer.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [6, -1]}).select(tk.col("x").bit_not()).collect().to_pydict()
        {'x': [-7, 0]}
        """
        return self._made("bit_not", (self,))

    def shift_left(self, bits: Expr | int) -> Expr:
        """Shifts bits up. Losing a bit or the sign is an overflow.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1, 3]}).select(tk.col("x").shift_left(4)).collect().to_pydict()
        {'x': [16, 48]}
        """
        return self._made("shift_left", (self, bits))

    def shift_right(self, bits: Expr | int) -> Expr:
        """Shifts bits down; keeps the sign.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [64, -64]}).select(tk.col("x").shift_right(4)).collect().to_pydict()
        {'x': [4, -4]}
        """
        return self._made("shift_right", (self, bits))


def _checked_pattern(pattern: str, escape: str | None) -> tuple[str, ...]:
    if not isinstance(pattern, str):
        raise IncorrectError(f"the pattern of LIKE is a string, not {pattern!r}")
    if escape is None:
        return (pattern,)
    if not isinstance(escape, str) or len(escape) != 1:
        raise IncorrectError(f"the escape of LIKE is one character, not {escape!r}")
    return pattern, escape
