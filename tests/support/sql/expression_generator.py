"""Random expressions over the columns of a scope: values of a kind, and conditions."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tests.support.sql.worlds import DOMAINS, TYPES, literal

Columns = list[tuple[str, str]]  # how a column is written in the query, and its kind
NUMBERS = ("int", "decimal", "float")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
FIELDS = (
    "year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "isoyear", "decade", "century", "hour", "minute", "second",
)  # fmt: skip


class ExpressionGenerator(ABC):
    """Makes expressions; `intricacy` is how many of them have an operator or a function."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.intricacy = 0.0

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    # ------------------------------------------------------------------ values

    def column(self, kind: str, scope: Columns) -> str | None:
        found = [name for name, other in scope if other == kind]
        return self.chance.choice(found) if found else None

    def constant(self, kind: str) -> str:
        if self.maybe(0.06):
            return f"CAST(NULL AS {TYPES[kind]})"
        return literal(self.chance.choice(DOMAINS[kind]))

    def value(self, kind: str, scope: Columns, outer: Columns, depth: int) -> str:
        """An expression of a kind."""
        roll = self.chance.random()
        column = self.column(kind, scope if not (outer and self.maybe(0.1)) else outer)
        if depth > 0 and roll < 0.07 and scope:
            return self.scalar(kind, scope, depth)
        if roll < 0.07 + self.intricacy and scope:
            return self.computed(kind, scope, outer, depth)
        return column if column is not None and roll < 0.9 else self.constant(kind)

    def computed(self, kind: str, scope: Columns, outer: Columns, depth: int) -> str:
        """An expression with an operator or a function, CASE included."""

        def part(of: str = kind) -> str:
            return self.value(of, scope, outer, 0)

        if kind == "bool":
            return f"({self.condition(scope, outer, depth)})"
        if self.maybe(0.3):
            return self.chance.choice(
                (
                    lambda: f"CASE WHEN {self.condition(scope, outer, 0)} THEN {part()} ELSE {part()} END",
                    lambda: f"CASE WHEN {self.condition(scope, outer, 0)} THEN {part()} END",
                    lambda: f"CASE {part('int')} WHEN 0 THEN {part()} WHEN 1 THEN {part()} ELSE {part()} END",
                    lambda: f"COALESCE({part()}, {part()})",
                    lambda: f"NULLIF({part()}, {part()})",
                )
            )()
        options: dict[str, Sequence[Callable[[], str]]] = {
            "int": (
                lambda: f"({part()} + {part()})",
                lambda: f"({part()} - {part()})",
                lambda: f"({part()} * {self.chance.randint(-2, 3)})",
                lambda: f"({part()} % {self.chance.choice((2, 3, 7))})",
                lambda: f"abs({part()})",
                lambda: f"(- {part()})",
                lambda: f"length({part('text')})",
                lambda: f"extract(year FROM {part('date')})",
                lambda: f"extract(day FROM {part('date')})",
                lambda: f"extract({self.chance.choice(FIELDS)} FROM {part(self.chance.choice(('date', 'timestamp')))})",
                lambda: (
                    f"extract({self.chance.choice(('day', 'hour', 'minute'))} FROM {part('timestamp')} - {part('timestamp')})"
                ),
                lambda: f"date_diff('{self.chance.choice(('day', 'month', 'year'))}', {part('date')}, {part('date')})",
                lambda: f"CAST(round({part()}, -1) AS BIGINT)",
                lambda: f"CAST({part('bool')} AS BIGINT)",
                lambda: f"len({part(self.chance.choice(('list', 'texts')))})",
                lambda: f"{part('list')}[{self.chance.choice((1, 2, -1, 0))}]",
                lambda: f"({part('struct')}).x",
                lambda: f"extract({self.chance.choice(('hour', 'minute', 'second'))} FROM {part('time')})",
                lambda: f"extract({self.chance.choice(('year', 'month', 'day', 'hour'))} FROM {part('interval')})",
                lambda: f"extract({self.chance.choice(FIELDS)} FROM {part('moment')})",
            ),
            "time": (
                lambda: f"({part()} + INTERVAL '{self.chance.randint(-3, 40)}' HOUR)",
                lambda: f"CAST({part('timestamp')} AS TIME)",
            ),
            "moment": (
                lambda: f"({part()} + {part('interval')})",
                lambda: f"({part()} - INTERVAL '{self.chance.randint(0, 14)}' DAY)",
                lambda: f"CAST({part('timestamp')} AS TIMESTAMPTZ)",
                lambda: f"date_trunc('{self.chance.choice(('month', 'day', 'hour'))}', {part()})",
                lambda: f"({part('timestamp')} AT TIME ZONE 'America/New_York')",
            ),
            "interval": (
                lambda: f"({part()} + {part()})",
                lambda: f"({part()} * {self.chance.randint(-2, 3)})",
                lambda: f"({part('timestamp')} - {part('timestamp')})",
                lambda: f"({part('moment')} - {part('moment')})",
                lambda: f"(- {part()})",
                lambda: f"to_days(CAST({part('int')} AS INTEGER))",
            ),
            "list": (
                lambda: f"[{part('int')}, {part('int')}]",
                lambda: f"list_concat({part()}, {part()})",
                lambda: f"list_append({part()}, {part('int')})",
                lambda: f"{part()}[{self.chance.randint(1, 2)}:{self.chance.randint(1, 3)}]",
                lambda: f"list_sort({part()})",
                lambda: f"list_reverse({part()})",
            ),
            "texts": (
                lambda: f"[{part('text')}, {part('text')}]",
                lambda: f"list_concat({part()}, {part()})",
                lambda: f"string_split({part('text')}, 'b')",
            ),
            "struct": (lambda: f"{{'x': {part('int')}, 'y': {part('text')}}}",),
            "wide": (
                lambda: f"CAST({part()} + {part()} AS DECIMAL(30, 2))",
                lambda: f"CAST({part()} - {part('int')} AS DECIMAL(30, 2))",
                lambda: f"(- {part()})",
                lambda: f"CAST({part('int')} AS DECIMAL(30, 2))",
                lambda: f"CAST({part()} * 3 AS DECIMAL(30, 2))",
            ),
            "uuid": (lambda: f"coalesce({part()}, {part()})",),
            "decimal": (
                lambda: f"CAST({part()} + {part()} AS DECIMAL(8, 2))",
                lambda: f"CAST({part()} - {part()} AS DECIMAL(8, 2))",
                lambda: f"CAST({part()} * {part('int')} AS DECIMAL(8, 2))",
                lambda: f"CAST({part('int')} AS DECIMAL(8, 2))",
            ),
            "float": (
                lambda: f"({part()} + {part()})",
                lambda: f"({part()} * {self.chance.choice((0.5, 2))})",
                lambda: f"CAST({part('int')} AS DOUBLE)",
                lambda: f"({part()} / {self.chance.choice((2, 4))})",
            ),
            "date": (
                lambda: f"CAST({part()} + INTERVAL '{self.chance.randint(-3, 40)}' DAY AS DATE)",
                lambda: f"CAST({part()} - INTERVAL '{self.chance.randint(0, 14)}' MONTH AS DATE)",
                lambda: f"CAST({part('timestamp')} AS DATE)",
            ),
            "timestamp": (
                lambda: f"({part()} + {part('interval')})",
                lambda: f"({part('moment')} AT TIME ZONE 'Europe/Berlin')",
                lambda: f"({part()} + INTERVAL '{self.chance.randint(-3, 40)}' HOUR)",
                lambda: f"({part()} - INTERVAL '{self.chance.randint(0, 14)}' DAY)",
                lambda: f"CAST({part('date')} AS TIMESTAMP)",
            ),
            "text": (
                lambda: f"({part()} || {part()})",
                lambda: f"upper({part()})",
                lambda: f"lower({part()})",
                lambda: f"substring({part()}, {self.chance.randint(1, 2)}, {self.chance.randint(0, 2)})",
                lambda: f"trim({part()})",
                lambda: f"replace({part()}, 'a', 'xy')",
                lambda: f"regexp_replace({part()}, '[ab]', '<\\0>', 'g')",
                lambda: f"regexp_extract({part()}, '(.)b', 1)",
                lambda: f"strftime({part('timestamp')}, '%d/%m/%Y %H:%M %a %j')",
                lambda: f"lpad({part()}, 4, 'xy')",
                lambda: f"concat_ws('-', {part()}, {part('int')}, {part()})",
                lambda: f"dayname({part('date')})",
                lambda: f"CAST({part(self.chance.choice(('time', 'uuid', 'list', 'wide', 'interval')))} AS VARCHAR)",
                lambda: f"({part('struct')}).y",
                lambda: f"{part('texts')}[{self.chance.choice((1, 2, -1))}]",
                lambda: f"array_to_string({part(self.chance.choice(('list', 'texts')))}, '-')",
            ),
        }
        return self.chance.choice(options[kind])()

    @abstractmethod
    def scalar(self, kind: str, scope: Columns, depth: int) -> str:
        """A scalar subquery."""

    # ------------------------------------------------------------------ conditions

    def condition(self, scope: Columns, outer: Columns, depth: int) -> str:
        """A truth value, which may be unknown."""
        roll = self.chance.random()
        if roll < 0.08:
            return f"({self.condition(scope, outer, depth)} AND {self.condition(scope, outer, depth)})"
        if roll < 0.2:
            return f"({self.condition(scope, outer, depth)} OR {self.condition(scope, outer, depth)})"
        if roll < 0.27:
            return f"(NOT {self.condition(scope, outer, depth)})"
        if depth > 0 and roll < 0.5:
            return self.with_subquery(scope, outer, depth)
        kind = self.chance.choice(scope)[1] if scope else "int"
        value = self.value(kind, scope, outer, 0)
        if kind == "timestamp" and self.maybe(0.2):
            length = f"INTERVAL '{self.chance.choice((-1, 0, 2, 30))}' HOUR"
            other = self.value("timestamp", scope, outer, 0)
            return f"({value} - {other} {self.chance.choice(COMPARISONS)} {length})"
        if kind in ("int", "bool") and self.maybe(0.05):
            return f"({value} = '{self.chance.choice(DOMAINS[kind])}')"
        if kind in ("list", "texts") and self.maybe(0.3):
            return f"list_contains({value}, {self.value('int' if kind == 'list' else 'text', scope, outer, 0)})"
        if roll < 0.58:
            return f"({value} IS {self.chance.choice(('', 'NOT '))}NULL)"
        if kind == "bool":
            return self.chance.choice(
                (f"{value}", f"({value} IS TRUE)", f"({value} IS NOT FALSE)", f"({value} = TRUE)")
            )
        if roll < 0.64:
            items = ", ".join(self.constant(kind) for _ in range(self.chance.randint(1, 3)))
            return f"({value} {self.chance.choice(('', 'NOT '))}IN ({items}))"
        if roll < 0.68:
            verb = self.chance.choice(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            return f"({value} {verb} {self.value(kind, scope, outer, 0)})"
        if kind == "text" and roll < 0.82:
            pattern = self.chance.choice(("a%", "%b", "%a%", "_", "__", "a\\_b", "", "%", "A%", "a_b"))
            verb = self.chance.choice(("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"))
            escape = " ESCAPE '\\'" if "\\" in pattern else ""
            if self.maybe(0.15):
                return f"({value} {self.chance.choice(('', 'NOT '))}SIMILAR TO '[a-z]b?.*')"
            return f"({value} {verb} '{pattern}'{escape})"
        return f"({self.comparison(value, kind, scope, outer)})"

    def comparison(self, value: str, kind: str, scope: Columns, outer: Columns) -> str:
        if self.maybe(0.12):
            low, high = self.constant(kind), self.constant(kind)
            return f"{value} {self.chance.choice(('', 'NOT '))}BETWEEN {low} AND {high}"
        other = kind
        if kind in NUMBERS and self.maybe(0.15):
            other = self.chance.choice(NUMBERS)
        return f"{value} {self.chance.choice(COMPARISONS)} {self.value(other, scope, outer, 0)}"

    @abstractmethod
    def with_subquery(self, scope: Columns, outer: Columns, depth: int) -> str:
        """A condition with a subquery."""
