"""Refuses arguments of sqlglot's nodes that no code has read, so that nothing is silently ignored.

The nodes of a parsed statement note which of their arguments are read. Before a statement has an effect, `refuse_unread` looks
for arguments that say something and that nobody asked for. So what sqlglot knows and we do not is refused without a list of it.

Walking a tree, comparing and copying it reads nothing. Whoever binds a copy instead of the tree makes it with `copied`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import ErrorLevel, exp
from sqlglot.generators.duckdb import DuckDBGenerator

from tektite.errors import TektiteError, UnsupportedError
from tektite.sql.parse.instead import CLAUSES, FUNCTIONS, instead
from tektite.sql.parse.places import StatementText

T = TypeVar("T", bound=exp.Expr)

CALLED = {
    "sample": "TABLESAMPLE", "pivots": "PIVOT", "locks": "FOR UPDATE", "laterals": "LATERAL VIEW", "into": "INTO",
    "ilike": "* ILIKE", "key_expressions": "USING KEY", "match": "MATCH_RECOGNIZE", "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY", "sort": "SORT BY", "connect": "CONNECT BY", "default": "DEFAULT VALUES",
    "by_name": "BY NAME", "partition_by": "PARTITION BY", "order": "ORDER BY", "from_": "FROM", "tables": "a list of tables",
    "source": "TABLE", "except_": "EXCLUDE",
}  # fmt: skip
"""The spelling in SQL of arguments for which the parser has a word of its own."""
CALLED_IN: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Limit, "expressions"): "LIMIT BY",
    (exp.Table, "hints"): "a hint behind a table",
    (exp.Table, "version"): "FOR SYSTEM_TIME AS OF",
    (exp.Table, "only"): "ONLY before a table",
    (exp.Between, "symmetric"): "BETWEEN SYMMETRIC",
    (exp.Slice, "step"): "a step in a slice of a list",
    (exp.Cast, "default"): "DEFAULT in CAST",
    (exp.TryCast, "default"): "DEFAULT in CAST",
    (exp.With, "search"): "SEARCH or CYCLE in WITH",
    (exp.Ordered, "desc"): "DESC of a column of an index",
    (exp.IndexParameters, "using"): "USING in CREATE INDEX",
    (exp.IndexParameters, "include"): "INCLUDE in CREATE INDEX",
    (exp.ColumnDef, "position"): "FIRST or AFTER in ADD COLUMN",
    (exp.PrimaryKeyColumnConstraint, "options"): "an option of PRIMARY KEY",
    (exp.TruncateTable, "identity"): "RESTART or CONTINUE IDENTITY in TRUNCATE",
    (exp.TruncateTable, "option"): "CASCADE or RESTRICT in TRUNCATE",
}
"""The same, where the word depends on what it is said of."""
SELF_SAID: dict[type[exp.Expr], frozenset[str]] = {
    exp.Div: frozenset({"typed", "safe"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.ConcatWs: frozenset({"safe", "coalesce"}),
    exp.Count: frozenset({"big_int"}),
    exp.TryCast: frozenset({"safe"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.DateDiff: frozenset({"date_part_boundary"}),
    exp.RegexpExtract: frozenset({"null_if_pos_overflow"}),
    exp.RegexpReplace: frozenset({"single_replace"}),
    exp.CTE: frozenset({"materialized"}),
    exp.Cast: frozenset({"_type"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Drop: frozenset({"materialized"}),
}
"""Arguments that the dialect sets on every such node, and hints that no answer depends on."""
EMPTY = (exp.IndexParameters, exp.Credentials)
"""Nodes that the parser makes where nothing stands."""
BETWEEN_PAUSES = 500
"""Nodes that are looked at in less than a millisecond."""
ALL_READ = "all read"
"""Under which the root of a tree notes that nothing in it is unread."""


class NotedArguments(dict[str, Any]):
    """The arguments of a node; it notes those that are read."""

    __slots__ = ("read",)
    read: set[str]

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return dict.get(self, name, default)

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return dict.__getitem__(self, name)


def noting(tree: T) -> T:
    """A tree whose nodes note what is read of them."""
    for node in tree.walk():
        node.args = noted = NotedArguments(node.args)
        noted.read = set()
    return tree


def copied(tree: T) -> T:
    """A copy of a tree; what is read of the copy is read of the tree."""
    found: T = tree.copy()
    for one, other in zip(tree.walk(), found.walk(), strict=True):
        if isinstance(one.args, NotedArguments):
            other.args = noted = NotedArguments(other.args)
            noted.read = one.args.read
    return found


class SqlWriter(DuckDBGenerator):
    """Writes sums in a loop, where sqlglot recurses each time that + and - alternate."""

    def add_sql(self, expression: exp.Add) -> str:
        return self._sum(expression)

    def sub_sql(self, expression: exp.Sub) -> str:
        return self._sum(expression)

    def _sum(self, expression: exp.Add | exp.Sub) -> str:
        terms = []
        first: exp.Expr = expression
        while isinstance(first, exp.Add | exp.Sub):
            sign = self.maybe_comment("+" if isinstance(first, exp.Add) else "-", comments=first.comments)
            terms.append(f" {sign} {self.sql(first, 'expression')}")
            first = first.this
        return self.sql(first) + "".join(reversed(terms))


def written(tree: exp.Expr) -> str:
    """A tree as SQL, of which nothing is read."""
    return SqlWriter(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE).generate(tree)


def not_needed(tree: exp.Expr) -> None:
    """Let nothing of a tree count as unread: the statement does nothing, such as CREATE ... IF NOT EXISTS of what exists."""
    tree.meta[ALL_READ] = True


def read_whole(tree: exp.Expr) -> None:
    """Note that all of a tree is read, also in what it is a copy of: it says again what was read elsewhere."""
    for node in tree.walk():
        if isinstance(node.args, NotedArguments):
            node.args.read |= set(node.args)


def refuse_unread(source: StatementText, tree: exp.Expr, pause: Callable[[], None] | None = None) -> None:
    """Refuse a statement, or a part of one, that says more than was read. `pause` is called now and then."""
    waiting, looked = [tree], 0
    while waiting:
        node = waiting.pop()
        looked += 1
        if pause is not None and looked % BETWEEN_PAUSES == 0:
            pause()
        if node._meta is not None and ALL_READ in node._meta:
            continue
        arguments = node.args
        read = arguments.read if isinstance(arguments, NotedArguments) else None
        for name, value in arguments.items():
            if value and read is not None and name not in read and name not in SELF_SAID.get(type(node), ()):
                if isinstance(value, EMPTY) and not any(value.args.values()):
                    continue
                raise refused(source, node, name)
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif isinstance(value, list):
                waiting.extend(part for part in value if isinstance(part, exp.Expr))
    tree.meta[ALL_READ] = True


def refused(source: StatementText, node: exp.Expr, name: str) -> TektiteError:
    """The error that names an argument as it is written."""
    word = CALLED.get(name, name.strip("_").upper().replace("_", " "))
    special = CALLED_IN.get((type(node), name))
    if special is not None:
        return source.error(f"{special} is not supported{instead(CLAUSES, special)}", node, UnsupportedError)
    if isinstance(node, exp.DML):
        said, place = f"{word} in {node.key.upper()}", source.where(word.split()[0])
        return source.error(f"{said} is not supported{instead(CLAUSES, said)}", place, UnsupportedError)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Cast):  # its arguments have names of the parser's
        called = source.called(node)
        word = f"function {called} with these arguments"
        return source.error(f"{word} is not supported{instead(FUNCTIONS, called)}", node, UnsupportedError)
    if name not in CALLED:
        word = f"{word} in {node.key.upper()}"
    return source.error(f"{word} is not supported{instead(CLAUSES, word)}", node, UnsupportedError)
