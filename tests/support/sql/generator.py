"""Random queries over the tables of a world: SQL that DuckDB and Tektite must answer alike.

Where SQL leaves an answer open the generator does not go there: a LIMIT is over an order of all columns, a row_number over
one of all columns of its rows, a scalar subquery is an aggregate, a float that is rounded along the way is not compared.
Division by zero, where the two differ by a documented choice, is guarded by NULLIF.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.sql.expression_generator import COMPARISONS, Columns, ExpressionGenerator
from tests.support.sql.worlds import TYPES, Table

ORDERED = ("int", "decimal", "float", "date", "timestamp", "text", "time", "moment", "wide", "uuid")
NESTED = ("interval", "list", "texts", "struct")
"""Kinds whose values have parts."""
KINDS = tuple(TYPES)


@dataclass(frozen=True)
class Source:
    """What a FROM clause can name: a table, or a common table expression."""

    name: str
    columns: tuple[tuple[str, str], ...]


class Generator(ExpressionGenerator):
    """Makes queries; `depth` is how deep they nest."""

    def __init__(self, chance: random.Random, tables: Sequence[Table], depth: int = 2) -> None:
        super().__init__(chance)
        self.tables = [Source(table.name, table.columns) for table in tables]
        self.depth = depth
        self.aliases = 0

    def query(self) -> str:
        """A query of any kind."""
        self.aliases = 0
        # Many queries are simple, so that what fails is easy to see; some are anything but.
        self.depth = self.chance.choice((0, 1, 1, 2))
        self.intricacy = self.chance.choice((0.0, 0.1, 0.25))
        roll = self.chance.random()
        if roll < 0.07:
            return self.recursive()
        if roll < 0.17:
            return self.with_common()
        return self.relation(self.depth, [], self.kinds())[0]

    def alias(self, letter: str) -> str:
        self.aliases += 1
        return f"{letter}{self.aliases}"

    def kinds(self) -> list[str]:
        """Kinds of the columns of a relation to come: mostly such as the tables have."""
        found = [kind for table in self.tables for _, kind in table.columns]
        return [self.chance.choice(found if self.maybe(0.9) else KINDS) for _ in range(self.chance.randint(1, 4))]

    # ------------------------------------------------------------------ relations

    def relation(self, depth: int, outer: Columns, kinds: Sequence[str]) -> tuple[str, Columns]:
        """A query with columns c0, c1, ... of the kinds asked for; it may refer to columns of the query around it."""
        makers: list[Callable[[int, Columns, Sequence[str]], str]] = [self.plain, self.plain, self.grouped]
        if depth > 0:
            makers += [self.set_operation]
        if not outer:
            makers += [self.windowed]
        text = self.chance.choice(makers)(depth, outer, kinds)
        if self.maybe(0.12):
            text = self.limited(text, len(kinds))
        return text, [(f"c{place}", kind) for place, kind in enumerate(kinds)]

    def limited(self, text: str, width: int) -> str:
        terms = [
            f"{place + 1}{self.chance.choice(('', ' ASC', ' DESC'))}"
            f"{self.chance.choice(('', '', ' NULLS FIRST', ' NULLS LAST'))}"
            for place in self.chance.sample(range(width), width)
        ]
        offset = f" OFFSET {self.chance.randint(0, 3)}" if self.maybe(0.3) else ""
        alias = self.alias("l")
        return (
            f"SELECT * FROM ({text}) AS {alias} ORDER BY {', '.join(terms)} LIMIT {self.chance.randint(0, 6)}{offset}"
        )

    def plain(self, depth: int, outer: Columns, kinds: Sequence[str]) -> str:
        """SELECT [DISTINCT] ... FROM ... WHERE ..."""
        tables, scope = self.sources(depth, outer)
        items = [f"{self.value(kind, scope, outer, depth)} AS c{place}" for place, kind in enumerate(kinds)]
        distinct = "DISTINCT " if self.maybe(0.2) else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {tables}{self.where(scope, outer, depth)}"

    def where(self, scope: Columns, outer: Columns, depth: int) -> str:
        # A subquery that does not look at the query around it is nothing special, so let most of them look.
        conditions = []
        if outer and self.maybe(0.7):
            conditions.append(self.correlation(scope, outer))
        if self.maybe(0.5):
            conditions.append(self.condition(scope, outer, depth))
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def correlation(self, scope: Columns, outer: Columns) -> str:
        """A comparison of a column of the subquery with one of the query around it."""
        pairs = [(a, b) for a, kind in scope for b, other in outer if kind == other and kind != "bool"]
        if not pairs:
            return "TRUE"
        a, b = self.chance.choice(pairs)
        return f"{a} {'=' if self.maybe(0.7) else self.chance.choice(COMPARISONS)} {b}"

    def grouped(self, depth: int, outer: Columns, kinds: Sequence[str]) -> str:
        """SELECT ... GROUP BY ... HAVING ...: some columns are keys, the others aggregates."""
        tables, scope = self.sources(depth, outer)
        keys: dict[int, str] = {}
        for place, kind in enumerate(kinds):
            if self.maybe(0.5):
                keys[place] = self.value(kind, scope, [], 0)
        if self.maybe(0.15):
            keys = {}
        items = [
            f"{keys[place] if place in keys else self.aggregate(kind, scope, outer)} AS c{place}"
            for place, kind in enumerate(kinds)
        ]
        # A constant key would be read as the number of a column.
        group = [key if not key.lstrip("-").isdigit() else f"({key} + 0)" for key in keys.values()]
        text = f"SELECT {', '.join(items)} FROM {tables}{self.where(scope, outer, depth)}"
        if group:
            text += f" GROUP BY {', '.join(group)}"
        if self.maybe(0.3):
            kind = self.chance.choice(("int", "decimal", "date"))
            text += f" HAVING {self.comparison(self.aggregate(kind, scope, outer), kind, [], [])}"
        return text

    def aggregate(self, kind: str, scope: Columns, outer: Columns) -> str:
        """An aggregate whose value is of a kind."""

        def argument(of: str) -> str:
            return self.value(of, scope, [], 0)

        if kind in ORDERED and self.maybe(0.1):
            return f"quantile_disc({argument(kind)}, {self.chance.choice((0.25, 0.5, 1))}){self.filter(scope)}"
        if kind == "text" and self.maybe(0.2):
            # what is joined is what it is ordered by: ties say the same
            value = argument("text")
            order = self.chance.choice(("", " DESC"))
            distinct = self.chance.choice(("", "DISTINCT "))
            return f"string_agg({distinct}{value}, '-' ORDER BY {value}{order}){self.filter(scope)}"
        if kind == "float" and self.maybe(0.15):
            return f"median({argument('int')}){self.filter(scope)}"
        if kind == "int" and self.maybe(0.1):
            if self.maybe(0.5):
                return f"CAST(sum({self.condition(scope, [], 0)}){self.filter(scope)} AS BIGINT)"
            return f"count(DISTINCT ({argument(self.chance.choice(KINDS))}, {argument('int')}))"
        if kind == "int":
            form = self.chance.choice(("count(*)", "count", "count distinct", "sum", "min", "max"))
            if form == "count(*)":
                text = form
            elif form == "count":
                text = f"count({argument(self.chance.choice(KINDS))})"
            elif form == "count distinct":
                return f"count(DISTINCT {argument(self.chance.choice(KINDS))})"
            elif form == "sum":
                # DuckDB's sum of integers is wider than 64 bits.
                return f"CAST(sum({argument('int')}){self.filter(scope)} AS BIGINT)"
            else:
                text = f"{form}({argument('int')})"
        elif kind == "decimal":
            if self.maybe(0.5):
                return f"CAST(sum({argument('decimal')}){self.filter(scope)} AS DECIMAL(12, 2))"
            text = f"{self.chance.choice(('min', 'max'))}({argument(kind)})"
        elif kind == "float":
            text = (
                f"{self.chance.choice(('sum', 'min', 'max', 'avg'))}({argument(self.chance.choice(('float', 'int')))})"
            )
            text = text if text[0] in "as" else f"{text[:3]}({argument('float')})"
        elif kind in ("list", "texts"):
            # what is listed is what it is ordered by
            value = argument("int" if kind == "list" else "text")
            order = self.chance.choice(("", " DESC"))
            return f"array_agg({value} ORDER BY {value}{order}){self.filter(scope)}"
        elif kind == "interval" and self.maybe(0.4):
            text = f"sum({argument('interval')})"
        elif kind == "wide" and self.maybe(0.4):
            return f"CAST(sum({argument('wide')}){self.filter(scope)} AS DECIMAL(30, 2))"
        elif kind == "bool":
            return f"({self.comparison(self.aggregate('int', scope, outer), 'int', [], [])})"
        else:
            text = f"{self.chance.choice(('min', 'max'))}({argument(kind)})"
        return text + self.filter(scope)

    def filter(self, scope: Columns) -> str:
        return f" FILTER (WHERE {self.condition(scope, [], 0)})" if self.maybe(0.2) else ""

    def set_operation(self, depth: int, outer: Columns, kinds: Sequence[str]) -> str:
        parts = []
        for _ in range(2):
            text, columns = self.relation(depth - 1, outer, kinds)
            alias = self.alias("u")
            parts.append(
                f"SELECT {', '.join(f'{alias}.{name} AS {name}' for name, _ in columns)} FROM ({text}) AS {alias}"
            )
        verbs = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        chain = f"{parts[0]} {self.chance.choice(verbs)} {parts[1]}"
        # in a chain of UNION and EXCEPT the left comes first; INTERSECT would bind tighter
        while self.maybe(0.25):
            text, _ = self.relation(0, outer, kinds)
            chain = f"{chain} {self.chance.choice(verbs[:2])} SELECT * FROM ({text}) AS {self.alias('u')}"
        return chain

    def windowed(self, depth: int, outer: Columns, kinds: Sequence[str]) -> str:
        """Window functions over a relation; the others of its columns are passed on."""
        kinds_below = [*kinds, self.chance.choice(ORDERED)]
        text = self.chance.choice((self.plain, self.grouped))(max(depth - 1, 0), outer, kinds_below)
        columns = [(f"c{place}", kind) for place, kind in enumerate(kinds_below)]
        alias = self.alias("w")
        everything = ", ".join(f"{alias}.{name}" for name, _ in columns)
        items = []
        # Of rows that are alike, SQL does not say which comes first. One function may tell them apart and the answer is
        # the same bag of rows; how two of them pair up is open.
        telling = False
        for place, kind in enumerate(kinds):
            options = ["pass", "pass"]
            options += ["rank", "dense_rank", "count", "sum", "ntile"] if kind == "int" else ["min", "max"]
            options += ["nth_value", "framed"]
            options += [] if telling else ["row_number", "row_number"] if kind == "int" else ["lag"]
            option = self.chance.choice(options)
            telling = telling or option in ("row_number", "lag")
            part = f"{alias}.{self.chance.choice(columns)[0]}"
            by = f"PARTITION BY {part}" if self.maybe(0.7) else ""
            down = self.chance.choice(("", " DESC"))
            chosen_column, kind_of_order = self.chance.choice(columns)
            one = f"{alias}.{chosen_column}{down}"
            same = f"{alias}.c{place}"
            if option == "pass":
                items.append(f"{same} AS c{place}")
            elif option == "row_number":
                items.append(f"row_number() OVER ({by} ORDER BY {everything}) AS c{place}")
            elif option in ("rank", "dense_rank"):
                items.append(f"{option}() OVER ({by} ORDER BY {one}) AS c{place}")
            elif option == "lag":
                more = f", {self.chance.randint(0, 2)}, {self.constant(kind)}" if self.maybe(0.4) else ""
                items.append(
                    f"{self.chance.choice(('lag', 'lead'))}({same}{more}) OVER ({by} ORDER BY {everything}) AS c{place}"
                )
            elif option == "ntile":
                # rows that are alike may fall into two buckets: which one falls where is open, so let it tell alone
                items.append(f"{same} AS c{place}" if telling else f"ntile({self.chance.randint(1, 5)}) OVER ({by} "
                             f"ORDER BY {everything}) AS c{place}")  # fmt: skip
                telling = True
            elif option in ("nth_value", "framed"):
                call = f"nth_value({same}, {self.chance.randint(1, 3)})"
                if option == "framed":
                    call = f"{self.chance.choice(('min', 'max', 'first_value', 'last_value'))}({same})"
                low = self.chance.choice(("UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW"))
                high = self.chance.choice(("UNBOUNDED FOLLOWING", "1 FOLLOWING", "CURRENT ROW"))
                if low != "UNBOUNDED PRECEDING" or high != "UNBOUNDED FOLLOWING":
                    if telling:
                        call = f"min({same})"
                        low, high = "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"
                    telling = True
                items.append(f"{call} OVER ({by} ORDER BY {everything} ROWS BETWEEN {low} AND {high}) AS c{place}")
            else:
                order = f" ORDER BY {one}{self.frame(kind_of_order)}" if self.maybe(0.5) else ""
                chosen = (
                    f" FILTER (WHERE {self.condition(columns_of(alias, columns), [], 0)})" if self.maybe(0.2) else ""
                )
                inner = f"{option}({same}){chosen} OVER ({by}{order})"
                items.append(f"CAST({inner} AS BIGINT) AS c{place}" if option == "sum" else f"{inner} AS c{place}")
        return f"SELECT {', '.join(items)} FROM ({text}) AS {alias}"

    def frame(self, kind: str) -> str:
        """A frame that holds all peers of a row or none, so that it does not matter in which order they come."""
        offsets = {
            "int": ("0", "1", "3"), "decimal": ("0.5", "2"), "float": ("0.5", "2"),
            "date": ("INTERVAL '3' DAY", "INTERVAL '1' MONTH"), "timestamp": ("INTERVAL '36' HOUR", "INTERVAL '1' MONTH"),
        }  # fmt: skip
        if self.maybe(0.4):
            return ""
        unit = "RANGE" if kind in offsets and self.maybe(0.7) else "GROUPS"

        def edge(side: str) -> str:
            offset = self.chance.choice(offsets[kind] if unit == "RANGE" else ("0", "1", "2"))
            return self.chance.choice((f"UNBOUNDED {side}", "CURRENT ROW", f"{offset} {side}", f"{offset} {side}"))

        return f" {unit} BETWEEN {edge('PRECEDING')} AND {edge('FOLLOWING')}"

    # ------------------------------------------------------------------ FROM

    def sources(self, depth: int, outer: Columns) -> tuple[str, Columns]:
        """A FROM clause, and the columns that it offers."""
        text, scope = self.source(depth)
        for _ in range(self.chance.choice((0, 0, 1, 1, 2)) if depth > 0 else self.chance.choice((0, 0, 0, 1))):
            other, columns = self.source(depth)
            how = self.chance.choice(
                (
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "CROSS JOIN",
                    "SEMI JOIN",
                    "ANTI JOIN",
                )
            )
            if how == "CROSS JOIN":
                text = f"{text}, {other}" if self.maybe(0.5) and "JOIN" not in text else f"{text} CROSS JOIN {other}"
            else:
                text = f"{text} {how} {other} ON {self.joining(scope, columns, how)}"
            scope = scope if how in ("SEMI JOIN", "ANTI JOIN") else scope + columns
        return text, scope

    def source(self, depth: int) -> tuple[str, Columns]:
        """A table, or a subquery, with its columns qualified by its alias."""
        if depth > 0 and self.maybe(0.25):
            text, columns = self.relation(depth - 1, [], self.kinds())
            alias = self.alias("s")
            return f"({text}) AS {alias}", [(f"{alias}.{name}", kind) for name, kind in columns]
        table = self.chance.choice(self.tables)
        alias = self.alias("x")
        return f"{table.name} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in table.columns]

    def joining(self, left: Columns, right: Columns, how: str) -> str:
        """The condition of a join: mostly an equality, sometimes with more, sometimes without any."""
        pairs = [(a, b) for a, kind in left for b, other in right if kind == other and kind != "bool"]
        conditions = []
        if pairs and self.maybe(0.85):
            conditions += [
                f"{a} = {b}" for a, b in self.chance.sample(pairs, 2 if self.maybe(0.2) and len(pairs) > 1 else 1)
            ]
        if not conditions or self.maybe(0.25):
            if pairs and self.maybe(0.6):
                a, b = self.chance.choice(pairs)
                conditions.append(f"{a} {self.chance.choice(COMPARISONS)} {b}")
            else:
                conditions.append(self.condition(left + right, [], 0))
        if self.depth > 0 and self.maybe(0.08) and how not in ("SEMI JOIN", "ANTI JOIN"):
            conditions.append(self.with_subquery(left + right, [], 1))
        return " AND ".join(conditions)

    # ------------------------------------------------------------------ subqueries

    def scalar(self, kind: str, scope: Columns, depth: int) -> str:
        """A scalar subquery: one aggregate, mostly of rows that match a row of the query around it."""
        tables, columns = self.sources(0, [])
        inner = self.aggregate(kind, columns, [])
        return f"(SELECT {inner} FROM {tables}{self.where(columns, scope, 0)})"

    def with_subquery(self, scope: Columns, outer: Columns, depth: int) -> str:
        """EXISTS, IN, a quantified comparison, or a comparison with a scalar subquery."""
        around = scope if self.maybe(0.75) else []
        form = self.chance.choice(("exists", "exists", "in", "in", "quantified", "scalar"))
        kind = self.chance.choice([kind for _, kind in scope if kind != "bool"] or ["int"])
        value = self.value(kind, scope, [], 0)
        if form == "scalar":
            return f"({value} {self.chance.choice(COMPARISONS)} {self.scalar(kind, around, depth)})"
        text = self.plain(0, around, [kind]) if self.maybe(0.75) else self.grouped(0, around, [kind])
        if form == "exists":
            return f"({self.chance.choice(('', 'NOT '))}EXISTS ({text}))"
        if form == "in":
            return f"({value} {self.chance.choice(('', 'NOT '))}IN ({text}))"
        return f"({value} {self.chance.choice(COMPARISONS)} {self.chance.choice(('ANY', 'ALL'))} ({text}))"

    # ------------------------------------------------------------------ WITH

    def with_common(self) -> str:
        """A common table expression that is used twice or so."""
        text, columns = self.relation(max(self.depth - 1, 0), [], self.kinds())
        name = self.alias("common")
        saved = self.tables
        self.tables = [Source(name, tuple(columns))] * 2 + saved
        rest, _ = self.relation(self.depth, [], self.kinds())
        self.tables = saved
        return f"WITH {name} AS ({text}) {rest}"

    def recursive(self) -> str:
        """A reachability or a count that ends, and a query over it."""
        table = self.chance.choice(self.tables)
        step = self.chance.choice((
            f"SELECT n.v FROM reach AS r JOIN {table.name} AS n ON r.x = n.k",
            f"SELECT n.k FROM reach AS r JOIN {table.name} AS n ON r.x = n.v WHERE n.k <> 3",
            f"SELECT r.x + 1 FROM reach AS r WHERE r.x < {self.chance.randint(0, 7)}",
            f"SELECT n.v + 1 FROM {table.name} AS n, reach AS r WHERE n.k = r.x AND n.v < 50",
        ))  # fmt: skip
        start, _ = self.relation(0, [], ["int"])
        saved = self.tables
        self.tables = [Source("reach", (("x", "int"),)), *saved]
        rest, _ = self.relation(1, [], self.kinds())
        self.tables = saved
        return f"WITH RECURSIVE reach(x) AS (SELECT * FROM ({start}) AS start UNION {step}) {rest}"


def columns_of(alias: str, columns: Columns) -> Columns:
    """Columns as they are written behind an alias."""
    return [(f"{alias}.{name}", kind) for name, kind in columns]
