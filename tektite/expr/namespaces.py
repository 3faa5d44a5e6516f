"""`.str` and `.dt`: functions of texts, and of dates and timestamps, under the names that Polars and pandas have for them.

Every one of them is a method of expressions, or made of these.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from tektite.errors import IncorrectError
from tektite.expr import other_names
from tektite.expr.nested_namespaces import JsonMethods, ListMethods, StructMethods
from tektite.expr.value_namespace import ValueNamespace
from tektite.unknown_options import explains_options
from tektite.values import types
from tektite.values.arguments import whole_number

if TYPE_CHECKING:
    from tektite.expr.ast import Expr


class Namespaces:
    """The namespaces of an expression."""

    __slots__ = ()

    @property
    def str(self) -> TextMethods:
        """Functions of text.

        >>> import tektite as tk
        >>> tk.col("name").str.upper()
        <Expr name.upper()>
        """
        return TextMethods(self)

    @property
    def dt(self) -> DateMethods:
        """Functions of dates and timestamps.

        >>> import tektite as tk
        >>> tk.col("at").dt.year()
        <Expr at.year()>
        """
        return DateMethods(self)

    @property
    def list(self) -> ListMethods:
        """Functions of lists.

        >>> import tektite as tk
        >>> tk.col("tags").list.len()
        <Expr tags.list.len()>
        """
        return ListMethods(self)

    @property
    def struct(self) -> StructMethods:
        """Functions of structs.

        >>> import tektite as tk
        >>> tk.col("point").struct.field("x")
        <Expr point.struct.field('x')>
        """
        return StructMethods(self)

    @property
    def json(self) -> JsonMethods:
        """Functions of JSON.

        >>> import tektite as tk
        >>> tk.col("event").json.text("$.user")
        <Expr event.json.text('$.user')>
        """
        return JsonMethods(self)


@explains_options
class TextMethods(ValueNamespace):
    """Functions of a text. Positions of `slice` count from 0, those of `substring` from 1."""

    _NAME = "str"
    _KIND = "a text"
    _OTHER_NAMES = other_names.TEXT_METHODS

    def __getitem__(self, key: int | slice) -> Expr:
        """Characters as Python counts them: `x.str[0]`, `x.str[-1]`, `x.str[1:3]`, `x.str[-3:]`. One that is not there is NULL.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": ["abc", "d"]})
        >>> rows.select(a=tk.col("x").str[0:2], b=tk.col("x").str[-1], c=tk.col("x").str[1]).collect().to_pydict()
        {'a': ['ab', 'd'], 'b': ['c', 'd'], 'c': ['b', None]}
        """
        length = self._value.length()
        place = whole_number(key)
        if place is not None:
            start = place + 1 if place >= 0 else length + place + 1
            there = length > place if place >= 0 else length >= -place
            return self._value._made("case", (there, self._value.substring(start, 1), None))
        bounds: tuple[Any, Any] = (
            (key.start, key.stop) if isinstance(key, slice) and key.step in (None, 1) else (key, key)
        )
        if not all(bound is None or whole_number(bound) is not None for bound in bounds):
            raise IncorrectError(
                f"{self._value}.str[...] takes whole numbers, as in str[0], str[1:3] and str[-3:], not {key!r}"
            )
        first, stop = map(whole_number, bounds)
        from tektite.expr.free_functions import greatest, least

        if first is not None and first < 0:
            begin: Any = greatest(length + first, 0)
        else:
            begin = first or 0
        if stop is None:
            return self._value.substring(begin + 1)
        end: Any = stop if stop >= 0 else length + stop
        if isinstance(begin, int) and isinstance(end, int):
            return self._value.substring(begin + 1, max(end - begin, 0))
        return self._value.substring(begin + 1, greatest(least(end, length) - begin, 0))

    def __iter__(self) -> NoReturn:
        raise IncorrectError(f"{self._value} has no characters to go through until it meets rows; use .str.split('')")

    def upper(self) -> Expr:
        """Converted to upper case."""
        return self._value.upper()

    def lower(self) -> Expr:
        """Converted to lower case."""
        return self._value.lower()

    to_uppercase = upper
    to_lowercase = lower

    def len(self) -> Expr:
        """The number of characters (code points)."""
        return self._value.length()

    len_chars = length = len

    def strip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at both ends."""
        return self._value.strip(characters)

    def lstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the start."""
        return self._value.lstrip(characters)

    def rstrip(self, characters: str | None = None) -> Expr:
        """Without the given characters (white space by default) at the end."""
        return self._value.rstrip(characters)

    strip_chars = strip
    strip_chars_start = lstrip
    strip_chars_end = rstrip

    def starts_with(self, prefix: Expr | str) -> Expr:
        """Whether the text starts with another."""
        return self._value.startswith(prefix)

    def ends_with(self, suffix: Expr | str) -> Expr:
        """Whether the text ends with another."""
        return self._value.endswith(suffix)

    startswith = starts_with
    endswith = ends_with

    def contains(self, part: Expr | str) -> Expr:
        """Whether the text contains another, letter by letter. For regular expressions, use `matches`."""
        return self._value.contains(part)

    def matches(self, pattern: str) -> Expr:
        """Whether the text contains a match of a regular expression (RE2)."""
        return self._value.matches(pattern)

    def like(self, pattern: str) -> Expr:
        """SQL's LIKE: % matches any text, _ any character."""
        return self._value.like(pattern)

    def ilike(self, pattern: str) -> Expr:
        """LIKE that ignores case."""
        return self._value.ilike(pattern)

    def replace_all(self, old: Expr | str, new: Expr | str) -> Expr:
        """Replaces every occurrence of `old` by `new`, letter by letter."""
        return self._value.replace(old, new)

    def extract(self, pattern: str, group: int = 1) -> Expr:
        """A group of the first match of a regular expression (RE2), 0 for all of it; empty if there is none."""
        return self._value.regexp_extract(pattern, group)

    def slice(self, offset: int, length: Expr | int | None = None) -> Expr:
        """`length` characters behind the first `offset` ones; a negative offset counts from the end."""
        before = whole_number(offset)
        if before is None:
            raise IncorrectError(f"{self._value}.str.slice(...) takes a whole number as its offset, not {offset!r}")
        return self._value.substring(before + 1 if before >= 0 else before, length)

    def substring(self, start: Expr | int, length: Expr | int | None = None) -> Expr:
        """`length` characters from `start` on, which counts from 1, as in SQL."""
        return self._value.substring(start, length)

    def head(self, n: int) -> Expr:
        """The first `n` characters."""
        return self._value.substring(1, _count(n, "head"))

    def tail(self, n: int) -> Expr:
        """The last `n` characters."""
        from tektite.expr.free_functions import least

        length = self._value.length()
        return self._value.substring(length - least(_count(n, "tail"), length) + 1)

    def pad_start(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded at the start, or cut at the end, to a length."""
        return self._value.lpad(length, fill)

    def pad_end(self, length: Expr | int, fill: Expr | str = " ") -> Expr:
        """Padded or cut at the end, to a length."""
        return self._value.rpad(length, fill)

    def zfill(self, length: Expr | int) -> Expr:
        """Padded with zeros at the start, to a length."""
        return self._value.lpad(length, "0")

    def reverse(self) -> Expr:
        """The characters in reverse order."""
        return self._value.reverse()

    def repeat(self, times: Expr | int) -> Expr:
        """The text repeated; empty if `times` is negative."""
        return self._value.repeat(times)

    def split_part(self, separator: Expr | str, part: Expr | int) -> Expr:
        """One of the parts between separators, counted from 1, or from the end if negative; empty if there is none."""
        return self._value.split_part(separator, part)

    def split(self, separator: Expr | str) -> Expr:
        """The parts between separators, as a list; the characters, if the separator is empty."""
        from tektite.expr.ast import Expr, lift

        return Expr("text_split", (self._value, lift(separator)))

    def position(self, part: Expr | str) -> Expr:
        """The position at which another text first occurs, counted from 1; 0 if it does not."""
        return self._value.position(part)

    def to_date(self, format: str | None = None, strict: bool = True) -> Expr:
        """The date that a text such as 2024-02-29 says, or one in a `format` such as `%d.%m.%Y`. A text that says none is an
        error, or NULL if not `strict`.
        """
        return self._read(format, strict, "to_date", types.Date)

    def to_datetime(self, format: str | None = None, strict: bool = True) -> Expr:
        """The timestamp that a text such as 2024-02-29 13:45:30 says, or one in a `format`: SQL's `strptime`. A text that says
        none is an error, or NULL if not `strict`.
        """
        return self._read(format, strict, "to_datetime", types.Timestamp)

    def _read(self, format: str | None, strict: bool, what: str, type: types.Type) -> Expr:
        from tektite.expr.ast import Expr
        from tektite.expr.date_functions import read_format

        if format is None:
            return self._value.cast(type) if strict else self._value.try_cast(type)
        if not isinstance(format, str):
            raise IncorrectError(f"{self._value}.str.{what}(...) takes a format such as '%d.%m.%Y', not {format!r}")
        try:
            shape = read_format(format)
        except IncorrectError as error:
            raise IncorrectError(f"{self._value}.str.{what}(...): {error}") from None
        found = Expr("strptime" if strict else "try_strptime", (self._value,), (shape,))
        return found if type == types.Timestamp else found.cast(type)

    def join(self, separator: str = ",", order_by: Any = None, descending: Any = False) -> Expr:
        """An aggregate: the texts of a group, one after the other, in an order; in their own order if none is given.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> tags = engine.create_table("tags", {"page": tk.Int, "tag": tk.String})
        >>> view = engine.install("listed", tags.group_by("page").agg(tags=tk.col("tag").str.join(" ")))
        >>> _ = tags.insert([(1, "new"), (1, "blue")])
        >>> view.rows()
        [(1, 'blue new')]
        """
        from tektite.expr.aggregate_methods import directions, expressions_of
        from tektite.expr.ast import Expr

        if not isinstance(separator, str):
            raise IncorrectError(
                f"{self._value}.str.join(...) takes a text to put between the others, not {separator!r}"
            )
        by = expressions_of(order_by, "join") or (self._value,)
        return Expr("aggregate", (self._value, *by), ("join", separator, directions(descending, len(by), "join")))


@explains_options
class DateMethods(ValueNamespace):
    """Functions of a date, a timestamp or an interval."""

    _NAME = "dt"
    _KIND = "a date or a timestamp"
    _OTHER_NAMES = other_names.DATE_METHODS

    def part(self, name: str) -> Expr:
        """A field by its name, such as `week`; the names are those of SQL's `extract`. An interval has fields too."""
        from tektite.expr.ast import Expr
        from tektite.expr.date_functions import CLOCK, FIELDS

        if not isinstance(name, str) or (name not in FIELDS and name not in CLOCK):
            raise IncorrectError(f"{self._value}.dt.part({name!r}): the fields are {', '.join((*FIELDS, *CLOCK))}")
        return Expr("date_part", (self._value,), (name,))

    def year(self) -> Expr:
        """The year."""
        return self._value.year()

    def quarter(self) -> Expr:
        """The quarter, 1 to 4."""
        return self._value.quarter()

    def month(self) -> Expr:
        """The month, 1 to 12."""
        return self._value.month()

    def week(self) -> Expr:
        """The week of the year by ISO 8601, 1 to 53."""
        return self.part("week")

    def iso_year(self) -> Expr:
        """The year that the week belongs to, by ISO 8601."""
        return self.part("isoyear")

    def day(self) -> Expr:
        """The day of the month, 1 to 31."""
        return self._value.day()

    def ordinal_day(self) -> Expr:
        """The day of the year, 1 to 366."""
        return self.part("doy")

    def weekday(self) -> Expr:
        """The day of the week as in Python and pandas: Monday is 0, Sunday 6. (Polars counts from 1: that is `isoweekday`.)"""
        return self._value.weekday()

    def isoweekday(self) -> Expr:
        """The day of the week by ISO 8601: Monday is 1, Sunday 7."""
        return self.part("isodow")

    def hour(self) -> Expr:
        """The hour of a timestamp, 0 to 23."""
        return self._value.hour()

    def minute(self) -> Expr:
        """The minute of a timestamp, 0 to 59."""
        return self._value.minute()

    def second(self) -> Expr:
        """The whole second of a timestamp, 0 to 59."""
        return self._value.second()

    def epoch(self) -> Expr:
        """Seconds since 1970, as a Float."""
        return self.part("epoch")

    def total_days(self, *, fractional: bool = False) -> Expr:
        """The length of an interval, such as the difference of two timestamps, in days; a month counts as 30. Whole ones, or with
        `fractional=True` a Float with what is left. So are the others of these names.

        >>> import datetime as dt, tektite as tk
        >>> trips = tk.Engine().values({"left": [dt.datetime(2026, 1, 1, 9)], "back": [dt.datetime(2026, 1, 2, 21)]})
        >>> away = tk.col("back") - tk.col("left")
        >>> trips.select(days=away.dt.total_days(fractional=True), hours=away.dt.total_hours()).collect().to_pylist()
        [{'days': 1.5, 'hours': 36}]
        """
        return self._length(86_400_000_000, fractional)

    def total_hours(self, *, fractional: bool = False) -> Expr:
        """The length of an interval in hours: see `total_days`."""
        return self._length(3_600_000_000, fractional)

    def total_minutes(self, *, fractional: bool = False) -> Expr:
        """The length of an interval in minutes: see `total_days`."""
        return self._length(60_000_000, fractional)

    def total_seconds(self, *, fractional: bool = False) -> Expr:
        """The length of an interval in seconds: see `total_days`."""
        return self._length(1_000_000, fractional)

    def total_milliseconds(self, *, fractional: bool = False) -> Expr:
        """The length of an interval in milliseconds: see `total_days`."""
        return self._length(1_000, fractional)

    def total_microseconds(self) -> Expr:
        """The length of an interval in microseconds: see `total_days`."""
        return self._length(1, False)

    def _length(self, unit: int, fractional: bool) -> Expr:
        from tektite.expr.ast import Expr

        return Expr("interval_length", (self._value,), (unit, bool(fractional)))

    def date(self) -> Expr:
        """The date of a timestamp."""
        return self._value.truncate("day").cast(types.Date)

    def truncate(self, every: str | datetime.timedelta) -> Expr:
        """The start of its year, quarter, month, week (Monday), day, hour, minute or second, with the same type; or that of the
        stretch of time such as `15m` that it lies in.
        """
        return self._value.truncate(every)

    def month_start(self) -> Expr:
        """The first day of its month, as a date."""
        return self._value.truncate("month").cast(types.Date)

    def month_end(self) -> Expr:
        """The last day of its month, as a date."""
        return self._value.truncate("month").add_months(1).add_days(-1).cast(types.Date)

    def add_days(self, days: Expr | int) -> Expr:
        """Some days later."""
        return self._value.add_days(days)

    def add_months(self, months: Expr | int) -> Expr:
        """Some months later; the month's last day if it has no such day."""
        return self._value.add_months(months)

    def in_zone(self, zone: str) -> Expr:
        """The local time in a time zone of a moment (`tk.TimestampTz`), as a timestamp."""
        from tektite.expr.ast import Expr
        from tektite.expr.zones import zone_named

        return Expr("in_zone", (self._value,), (zone_named(zone),))

    def from_zone(self, zone: str) -> Expr:
        """The moment at which the clocks of a time zone show a timestamp."""
        from tektite.expr.ast import Expr
        from tektite.expr.zones import zone_named

        return Expr("from_zone", (self._value,), (zone_named(zone),))

    def strftime(self, shape: str) -> Expr:
        """As a text: `%Y-%m-%d`. The letters are those of SQL's `strftime`."""
        from tektite.expr.ast import Expr
        from tektite.expr.date_functions import FORMATS, unknown_letter

        if not isinstance(shape, str):
            raise IncorrectError(f"{self._value}.dt.strftime(...) takes a format such as '%Y-%m-%d', not {shape!r}")
        letter = unknown_letter(shape)
        if letter is not None:
            raise IncorrectError(f"{self._value}.dt.strftime({shape!r}): %{letter} is none of {', '.join(FORMATS)}")
        return Expr("strftime", (self._value,), (shape,))

    to_string = strftime


def _count(n: Any, what: str) -> int:
    characters = whole_number(n, 0)
    if characters is None:
        raise IncorrectError(f"{what} takes a number of characters, not {n!r}")
    return characters
