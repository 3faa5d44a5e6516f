"""Texts for the SQL parser that are often wrong: sentences of a loose grammar, and mutations of statements that are right.

The grammar puts anything anywhere: types need not fit, names need not exist, functions get any number of arguments.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.support.sql.logic import FOLDER, records

ROOT = FOLDER.parents[2]

SETUP = (
    "CREATE TABLE t (a BIGINT PRIMARY KEY, b DOUBLE, s VARCHAR, d DATE)",
    "INSERT INTO t VALUES (1, 1.5, 'x', '2024-01-01'), (2, NULL, 'y', '2024-02-29'), (3, -0.5, NULL, NULL)",
    "CREATE TABLE u (a BIGINT, m DECIMAL(8, 2), w TIMESTAMP, f BOOLEAN)",
    "INSERT INTO u VALUES (1, 2.50, '2024-01-01 10:00:00', true), (1, NULL, NULL, false), (NULL, -1, '1999-12-31', NULL)",
    "CREATE VIEW v AS SELECT a, count(*) AS n FROM u GROUP BY a",
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR, boss INTEGER, pay DECIMAL(8, 2), born DATE)",
    "INSERT INTO people VALUES (1, 'Ada', NULL, 900.00, '1990-12-10'), (2, 'Bob', 1, 500.50, NULL)",
    "CREATE TABLE visits (person INTEGER, place VARCHAR, seen TIMESTAMP, cost DOUBLE)",
    "INSERT INTO visits VALUES (1, 'park', '2024-01-01 10:00:00', 2.5), (2, NULL, NULL, NULL)",
)
VALUES = (
    "0", "1", "-1", "2", "7", "1.5", "-0.05", "1e3", "1e400", "9223372036854775807", "-9223372036854775807", "1e-9",
    "9223372036854775808", "99999999999999999999999999999999999999999", "NULL", "TRUE", "FALSE", "''", "'x'", "'%'", "'5'",
    "'nan'", "'inf'", "'2024-01-31'", "'2024-13-01'", "DATE '2024-02-29'", "TIMESTAMP '2024-01-01 10:00:00'", "'é'",
    "INTERVAL 1 DAY", "INTERVAL '1 month'", "INTERVAL '1-3' YEAR TO MONTH", "$1", "?", "$x", "current_date", "now()",
    "0.123456789012345678", "1_000", "'a''b'", "[1, 2]", "{'k': 1}", "(1, 2)", "x'ff'", "*",
)  # fmt: skip
NAMES = ("a", "b", "s", "d", "m", "w", "f", "n", "t.a", "u.a", "x.a", "zz", '"A"', "t", "t.zz")
COLUMNS = {
    "t": {"a": "n", "b": "n", "s": "s", "d": "d"}, "u": {"a": "n", "m": "n", "w": "w", "f": "f"}, "v": {"a": "n", "n": "n"},
    "people": {"id": "n", "name": "s", "pay": "n", "born": "d"},
    "visits": {"person": "n", "place": "s", "seen": "w", "cost": "n"},
    "range(3)": {"range": "n"}, "(VALUES (1, 'x')) AS x(a, s)": {"a": "n", "s": "s"},
}  # fmt: skip
"""The columns of what FROM may name, and their kinds: number, text, date, timestamp, truth value."""
LITERALS = {
    "n": ("0", "1", "-1", "2", "1.5", "-0.05", "1e3", "9223372036854775807", "NULL", "1e300", "'inf'::double", "0.5"),
    "s": ("''", "'x'", "'a%'", "'Hello'", "'5'", "NULL", "'é'"),
    "d": ("DATE '2024-02-29'", "NULL", "current_date", "DATE '9999-12-31'"),
    "w": ("TIMESTAMP '2024-01-01 10:00:00'", "now()", "NULL"),
    "f": ("TRUE", "FALSE", "NULL"),
}
FUNCTIONS = {
    "n": (
        "abs n", "sign n", "round n", "round n n", "floor n", "ceil n", "trunc n", "sqrt n", "ln n", "log n", "exp n", "pow n n",
        "greatest n n", "least n n n", "coalesce n n", "nullif n n", "length s", "strpos s s", "year d", "month d", "hour w",
        "date_part s d", "date_diff s d d", "sum n", "count n", "avg n", "min n", "max n", "median n", "quantile_cont n n",
        "stddev n", "hash64 n", "arg_max n n", "mode n", "count_if f", "if f n n", "epoch w", "mod n n", "grouping n",
    ),
    "s": (
        "upper s", "lower s", "substring s n", "substring s n n", "left s n", "right s n", "trim s", "trim s s", "replace s s s",
        "lpad s n s", "rpad s n s", "repeat s n", "reverse s", "split_part s s n", "concat s n", "concat_ws s s s", "min s",
        "regexp_replace s s s", "regexp_extract s s", "strftime d s", "dayname d", "string_agg s s", "max s", "coalesce s s",
        "typeof n", "chr n", "md5 s", "first s",
    ),
    "d": ("date_trunc s d", "last_day d", "make_date n n n", "greatest d d", "max d", "coalesce d d"),
    "w": ("date_trunc s w", "now", "min w", "coalesce w w"),
    "f": ("starts_with s s", "contains s s", "regexp_matches s s", "bool_and f", "bool_or f", "coalesce f f", "suffix s s"),
}  # fmt: skip
"""Functions with the kinds of their arguments, by the kind of their result."""
EVERY_FUNCTION = sorted(set(re.findall(r"`([a-z]\w*)\(", (ROOT / "docs" / "functions.md").read_text(encoding="utf-8"))))
"""The names of all functions, of SQL and of Python."""
OF_EVERY_TYPE = (
    *VALUES, "TIME '10:00:00'", "'2024-01-01'::timestamptz", "['a']", "[]", "[NULL]", "{'k': NULL}", "'{\"a\": 1}'::json",
    "''::blob", "1.25::decimal(38, 4)", "'00000000-0000-0000-0000-000000000000'::uuid", "'nan'::double",
)  # fmt: skip
KINDS = "nnnssdwf"
TYPES = ("INT", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR(3)", "DATE", "TIMESTAMP", "TIMESTAMP(3)", "BOOLEAN", "DECIMAL(4,1)",
         "DECIMAL(18,18)", "DECIMAL(38,2)", "DECIMAL", "INTERVAL", "INT[]", "JSON", "TIME", "UUID", "nope")  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "||", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "&", "|", "<<", ">>", "^", "**",
             "IS DISTINCT FROM", "LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO", "~", "->", "::", "IN", "BETWEEN", "@>")  # fmt: skip
ENDLESS = re.compile(r"\bRECURSIVE\b|\bCOPY\b|\brange\b|generate_series", re.IGNORECASE)
"""What is not changed at random: statements that write files, and those that might not end."""
TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|[^\w\s]|\s+")


class Mutations:
    """The statements of a test file, changed at random; `setup` are those that run as they are."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        path = chance.choice(sorted(FOLDER.glob("*.slt")))
        found = [r for r in records(path.read_text(encoding="utf-8")) if not ENDLESS.search(r.sql)]
        self.setup = [r.sql for r in found if r.kind == "statement" and r.argument == "ok"]
        self.corpus = [r.sql for r in found] or ["SELECT 1"]
        self.words = sorted({word for text in self.corpus for word in TOKEN.findall(text) if not word.isspace()})

    def statement(self) -> str:
        tokens = TOKEN.findall(self.chance.choice(self.corpus))
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            at = self.chance.randrange(len(tokens))
            kind = self.chance.randrange(8)
            if kind == 0:
                del tokens[at]
            elif kind == 1:
                tokens.insert(at, tokens[at])
            elif kind == 2:
                other = self.chance.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            elif kind == 3:
                tokens.insert(at, f" {self.chance.choice(self.words)} ")
            else:
                tokens[at] = self.alike(tokens[at])
            if not tokens:
                break
        return "".join(tokens)

    def alike(self, token: str) -> str:
        """A token of the same class: a value for a value, an operator for an operator, a word for a word."""
        if token.isspace():
            return token
        if token[0] == "'" or token[0].isdigit():
            return f" {self.chance.choice(VALUES)} "
        if not token[0].isalnum():
            return f" {self.chance.choice(OPERATORS)} "
        return self.chance.choice([word for word in self.words if word[0].isalpha()])


class Sentences:
    """Random statements of a grammar."""

    setup = SETUP

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.columns: list[tuple[str, str]] = []

    def statement(self) -> str:
        return self.one(*[self.query] * 12, self.insert, self.update, self.delete, self.create, self.other)

    # ------------------------------------------------------------------ the grammar

    def one(self, *choices: str | Callable[[], str]) -> str:
        found = self.chance.choice(choices)
        return found if isinstance(found, str) else found()

    def maybe(self, share: float, text: Callable[[], str]) -> str:
        return text() if self.chance.random() < share else ""

    def many(self, part: Callable[[], str], least: int = 1, most: int = 3) -> str:
        return ", ".join(part() for _ in range(self.chance.randint(least, most)))

    def query(self, depth: int = 2) -> str:
        text = self.select(depth)
        if self.chance.random() < 0.15:
            kind = self.one("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "UNION BY NAME")
            text = f"{text} {kind} {self.select(depth - 1)}"
        if self.chance.random() < 0.1:
            text = f"WITH {self.one('q', 't', 'q(a)', 'q(a, b)')} AS ({self.select(depth - 1)}) {text}"
        text += self.maybe(0.2, lambda: f" ORDER BY {self.many(lambda: self.ordered(depth - 1))}")
        return text + self.maybe(0.15, lambda: f" LIMIT {self.one('0', '1', '2', self.value)}")

    def select(self, depth: int, width: int | None = None) -> str:
        outer = self.columns
        source = self.maybe(0.9, lambda: f" FROM {self.source(depth)}")
        distinct = self.maybe(0.1, lambda: self.one("DISTINCT ", "ALL ", "DISTINCT ON (1) "))
        outputs = ", ".join(self.output(depth) for _ in range(width or self.chance.randint(1, 3)))
        text = f"SELECT {distinct}{outputs}{source}"
        text += self.maybe(0.3, lambda: f" WHERE {self.expression(depth, 'f')}")
        text += self.maybe(0.2, lambda: f" GROUP BY {self.one('ALL', '1', 'ROLLUP (1)', lambda: self.many(self.name))}")
        text += self.maybe(0.1, lambda: f" HAVING {self.expression(depth, 'f')}")
        text += self.maybe(0.05, lambda: f" QUALIFY {self.expression(depth, 'f')}")
        self.columns = outer
        return text

    def output(self, depth: int) -> str:
        if self.chance.random() < 0.08:
            return self.one("*", "t.*", "* EXCLUDE (a)", "* REPLACE (1 AS a)", "COLUMNS('a')", "* LIKE 'a%'",
                            "* RENAME (a AS z)", "max(COLUMNS(*))", "COLUMNS('(')")  # fmt: skip
        return self.expression(depth) + self.maybe(0.3, lambda: " AS " + self.one("a", "k", '"Q"', "n"))

    def source(self, depth: int) -> str:
        """FROM; what it names is what names may mean in the query."""
        found: list[tuple[str, str]] = []
        used: list[str] = []

        def member() -> str:
            table = self.chance.choice(list(COLUMNS))
            alias = "" if table not in used and self.chance.random() < 0.7 else f"x{len(used)}"
            used.append(table)
            name = alias or table
            if "(" not in table or alias:
                found.extend((f"{name}.{column}", kind) for column, kind in COLUMNS[table].items())
            found.extend(COLUMNS[table].items())
            return f"{table} AS {alias}" if alias and " AS " not in table else table

        text = member()
        if depth > 0 and self.chance.random() < 0.15:
            text = f"({self.query(depth - 1)}) AS x"
        while self.chance.random() < 0.3:
            kind = self.one(
                ",", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "CROSS JOIN", "NATURAL JOIN", "SEMI JOIN", "ANTI JOIN",
                "ASOF JOIN", ", LATERAL",
            )  # fmt: skip
            self.columns = found
            text += f" {kind} ({self.select(0)}) y" if kind == ", LATERAL" else f" {kind} {member()}"
            if kind not in (",", ", LATERAL", "CROSS JOIN", "NATURAL JOIN"):
                text += self.one(" USING (a)", " ON true", lambda: f" ON {self.expression(depth - 1, 'f')}")
        self.columns = found
        return text

    def ordered(self, depth: int) -> str:
        return self.one("1", "2", "ALL", lambda: self.expression(depth)) + self.one("", "", " DESC", " NULLS FIRST")

    def expression(self, depth: int, kind: str = "") -> str:
        """An expression of a kind; now and then of another."""
        if not kind or self.chance.random() < 0.03:
            kind = self.chance.choice(KINDS)
        if depth <= 0 or self.chance.random() < 0.2:
            return self.leaf(kind)
        return self.one(
            *[lambda: self.operation(depth, kind)] * 3, *[lambda: self.call(depth, kind)] * 4, lambda: self.cast(depth),
            self.any_call,
            lambda: self.case(depth, kind), lambda: self.subquery(depth), lambda: self.window(depth, kind),
            lambda: self.test(depth), lambda: f"({self.expression(depth - 1, kind)})",
        )  # fmt: skip

    def leaf(self, kind: str) -> str:
        named = [name for name, found in self.columns if found == kind]
        if named and self.chance.random() < 0.65:
            return self.chance.choice(named)
        return self.chance.choice(VALUES) if self.chance.random() < 0.04 else self.chance.choice(LITERALS[kind])

    def value(self) -> str:
        return self.chance.choice(VALUES)

    def name(self) -> str:
        if self.columns and self.chance.random() < 0.95:
            return self.chance.choice(self.columns)[0]
        return self.chance.choice(NAMES)

    def operation(self, depth: int, kind: str) -> str:
        signs = {
            "n": ["+", "-", "*", "/", "//", "%", "&", "|", "<<", "^"],
            "s": ["||"],
            "f": ["AND", "OR"],
            "d": ["+ INTERVAL 1 DAY - 1 +"],
            "w": ["-"],
        }
        sign = self.chance.choice(OPERATORS) if self.chance.random() < 0.05 else self.chance.choice(signs[kind])
        if kind in "dw" and self.chance.random() < 0.7:
            length = self.one("1 day", "3 months", "36 hours")
            return f"{self.expression(depth - 1, kind)} {self.one('+', '-')} INTERVAL '{length}'"
        before = self.maybe(0.1, lambda: self.one("-", "~", "NOT ", "+"))
        return f"{before}{self.expression(depth - 1, kind)} {sign} {self.expression(depth - 1, kind)}"

    def call(self, depth: int, kind: str) -> str:
        name, *kinds = self.chance.choice(FUNCTIONS[kind]).split()
        if self.chance.random() < 0.04:
            kinds = kinds[1:] if self.chance.random() < 0.5 else [*kinds, "n"]
        first = "'month'" if name in ("date_trunc", "date_diff", "date_part") else None
        inside = ", ".join(first if first and not at else self.expression(depth - 1, k) for at, k in enumerate(kinds))
        if name in ("sum", "count", "avg", "min", "max", "string_agg", "first", "median"):
            inside = self.maybe(0.1, lambda: "DISTINCT ") + inside + self.maybe(0.1, lambda: f" ORDER BY {self.name()}")
            return f"{name}({inside})" + self.maybe(0.1, lambda: f" FILTER (WHERE {self.expression(0, 'f')})")
        return f"{name}({inside})"

    def any_call(self) -> str:
        """Any function with any values."""
        inside = self.many(lambda: self.one(self.name, self.chance.choice(OF_EVERY_TYPE)), 0, 4)
        return f"{self.chance.choice(EVERY_FUNCTION)}({inside})" + self.maybe(
            0.2, lambda: self.one(" OVER ()", " FILTER (WHERE TRUE)")
        )

    def cast(self, depth: int) -> str:
        inside, type = self.expression(depth - 1), self.chance.choice(TYPES)
        return self.one(f"CAST({inside} AS {type})", f"TRY_CAST({inside} AS {type})", f"({inside})::{type}")

    def case(self, depth: int, kind: str) -> str:
        condition, value = self.expression(depth - 1, "f"), self.expression(depth - 1, kind)
        other = self.expression(depth - 1, kind)
        return self.one(
            f"CASE WHEN {condition} THEN {value} ELSE {other} END", f"CASE {value} WHEN {other} THEN {value} END"
        )

    def subquery(self, depth: int) -> str:
        inside = self.select(depth - 1, 1)
        value = self.expression(0)
        return self.one(
            f"({inside} LIMIT 1)", f"(SELECT max(x) FROM ({inside}) AS z(x))", f"EXISTS ({inside})", f"{value} IN ({inside})",
            f"{value} NOT IN ({inside})", f"{value} = ANY ({inside})", f"{value} < ALL ({inside})",
        )  # fmt: skip

    def window(self, depth: int, kind: str) -> str:
        call = self.one("row_number()", "rank()", f"lag({self.expression(0, kind)}, 1, {self.leaf(kind)})",
                        f"sum({self.expression(0, 'n')})", f"first_value({self.expression(0, kind)})",
                        f"lead({self.expression(0, kind)}, {self.expression(0, 'n')} IGNORE NULLS)",
                        f"count(DISTINCT {self.expression(0)})", f"nth_value({self.expression(0, kind)}, {self.leaf('n')})",
                        lambda: self.call(1, kind))  # fmt: skip
        frame = self.one("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                         " GROUPS 1 PRECEDING", f" ROWS {self.value()} PRECEDING", " ROWS UNBOUNDED FOLLOWING",
                         f" ROWS BETWEEN {self.leaf('n')} PRECEDING AND {self.leaf('n')} FOLLOWING")  # fmt: skip
        frame += self.maybe(0.2, lambda: f" EXCLUDE {self.one('TIES', 'GROUP', 'CURRENT ROW', 'NO OTHERS')}")
        by = self.one("", f"PARTITION BY {self.expression(0)} ")
        return f"{call} OVER ({by}ORDER BY {self.ordered(0)}{frame})"

    def test(self, depth: int) -> str:
        kind = self.chance.choice(KINDS)
        value, low, high = (self.expression(depth - 1, kind) for _ in range(3))
        sign = self.one("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
        return self.one(
            f"{value} IS NULL", f"{value} BETWEEN {low} AND {high}", f"{value} IN ({low}, {high})", f"{value} {sign} {low}",
            f"{value} LIKE {low}", f"{value} IS TRUE", f"({value}, {low}) = ({high}, {low})",
        )  # fmt: skip

    def insert(self) -> str:
        table = self.one("t", "u", "t (a)", "t (a, b)", "u (a, a)", "nope", "v")
        rows = self.many(lambda: f"({self.many(lambda: self.expression(1), 1, 4)})", 1, 2)
        text = f"INSERT {self.one('', '', 'OR REPLACE ', 'OR IGNORE ')}INTO {table} "
        text += self.one(f"VALUES {rows}", self.query, "DEFAULT VALUES")
        text += self.maybe(
            0.2, lambda: self.one(" ON CONFLICT DO NOTHING", " ON CONFLICT (a) DO UPDATE SET b = excluded.b")
        )
        return text + self.maybe(0.1, lambda: f" RETURNING {self.output(1)}")

    def update(self) -> str:
        text = f"UPDATE {self.one('t', 'u', 'nope')} SET {self.name()} = {self.expression(2)}"
        text += self.maybe(0.2, lambda: f" FROM {self.source(0)}")
        return text + self.maybe(0.6, lambda: f" WHERE {self.expression(1)}")

    def delete(self) -> str:
        return f"DELETE FROM {self.one('t', 'u', 'nope')}" + self.maybe(0.9, lambda: f" WHERE {self.expression(2)}")

    def create(self) -> str:
        columns = self.many(
            lambda: (
                f"{self.one('a', 'b', 'c')} {self.one(*TYPES)}"
                + self.one("", " NOT NULL", " DEFAULT 1", " UNIQUE", f" CHECK ({self.expression(1, 'f')})")
            )
        )
        return self.one(
            f"CREATE TABLE {self.one('made', 't', 'IF NOT EXISTS t')} ({columns})", f"CREATE VIEW made AS {self.query()}",
            f"CREATE TABLE made AS {self.query()}", f"CREATE INDEX i ON {self.one('t', 'u', 'v')} ({self.name()})",
            f"CREATE OR REPLACE VIEW v2 AS {self.query()}",
        )  # fmt: skip

    def alter(self) -> str:
        action = self.one(
            f"ADD COLUMN {self.one('n', 'a')} {self.one(*TYPES)}{self.one('', ' DEFAULT 1', ' NOT NULL')}",
            f"DROP COLUMN {self.name()}", "RENAME COLUMN m TO mm", "RENAME mm TO m", f"ADD CHECK ({self.expression(1, 'f')})",
            f"ADD CONSTRAINT k UNIQUE ({self.one('a', 'w', 'a, f')})", "DROP CONSTRAINT k", "ALTER f SET NOT NULL",
            f"ALTER a TYPE {self.one(*TYPES)}", f"ALTER m SET DEFAULT {self.value()}", "ADD FOREIGN KEY (a) REFERENCES t (a)",
        )  # fmt: skip
        return f"ALTER TABLE {self.one('u', 'u', 't', 'v', 'nope')} {action}"

    def pivot(self) -> str:
        values = self.many(lambda: self.leaf("n"))
        return self.one(
            f"PIVOT u ON a IN ({values}) USING {self.one('sum(m)', 'max(w) AS q, count(*)', 'first(f ORDER BY a)')}",
            "PIVOT u ON a", "UNPIVOT u ON a, m INTO NAME k VALUE z", "UNPIVOT t ON COLUMNS(* EXCLUDE s)",
            f"SELECT * FROM t PIVOT (sum(b) FOR s IN ('x', 'y') GROUP BY {self.one('a', 'd', 'zz')})",
            "SELECT * FROM session(u, w, INTERVAL '1 hour', a)", f"SELECT * FROM range({self.leaf('w')}, now(), INTERVAL 1 DAY)",
        )  # fmt: skip

    def other(self) -> str:
        return self.one(
            "SHOW TABLES", "SHOW VIEWS", "DESCRIBE t", f"EXPLAIN {self.query()}", "DROP TABLE nope", "DROP VIEW IF EXISTS made",
            "TRUNCATE u", f"PREPARE p AS {self.query()}", f"EXECUTE p({self.value()})", "DEALLOCATE p", "VACUUM", "BEGIN",
            "COMMIT", "REFRESH MATERIALIZED VIEW v", self.alter, self.pivot,
            "ROLLBACK", f"SELECT {self.value()};;{self.query()}", f"CALL {self.name()}()", "SET x = 1", "PRAGMA version",
        )  # fmt: skip
