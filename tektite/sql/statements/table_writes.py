"""The common parts of INSERT, UPDATE and DELETE: the table, its rows, and RETURNING.

A statement first finds the old and the new rows, by queries that see its transaction. Then it writes both at once, or fails
without changing anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of
from tektite.engine.table import Table
from tektite.errors import ConflictError, IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.sql.access.access_control import PermissionDenied, schema_object, table_object
from tektite.sql.access.policy_conditions import PolicyConditions
from tektite.sql.bind.functions import sql_name
from tektite.sql.bind.named_relations import Given, TargetTable, unpointed
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import name_parts, written_name
from tektite.sql.parse.internal_tables import internal_table
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied, refuse_unread
from tektite.sql.statements.result import Result
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

OWN = "#table"
"""The name under which a statement reads the table that it changes, whatever WITH calls by the table's own."""
EVERY = "#every"
"""The name under which a statement reads all rows of that table, whatever its policies show."""
NEW = "#new"
"""The name under which the conditions of policies read the rows that a statement writes."""
CHANGED = "#changed"
"""The name under which RETURNING reads the rows that a statement has changed."""


def target(runner: StatementRunner, source: StatementText, node: exp.Expr) -> Table:
    """The table that a statement changes."""
    name = written_name(source, node)
    found = runner.relation_named(name)
    if isinstance(found, Table) and core_of(found).is_system:
        raise source.error(f"{name!r} is a system relation, which the engine writes itself", node, ConflictError)
    if isinstance(found, Table) and not found.name.startswith("__"):
        return found
    if found is not None:
        raise source.error(
            f"{name!r} is a view: only tables can be changed", node, ConflictError, condition="wrong-object-type"
        )
    known = [n for n in runner.visible() if isinstance(runner.relation_stored(n), Table)]
    raise source.error(
        f"there is no table {name!r}: {nearest(name, known)}", node, NotFoundError, condition="undefined-table"
    )


@dataclass(frozen=True)
class Writing:
    """A statement that changes a table, which its own text calls `alias`."""

    runner: StatementRunner
    source: StatementText
    tree: exp.Expr
    table: Table
    alias: str
    parameters: Mapping[str, Any]
    command: str
    """INSERT, UPDATE, DELETE or TRUNCATE."""

    @staticmethod
    def of(
        runner: StatementRunner,
        source: StatementText,
        tree: exp.Expr,
        node: exp.Expr,
        parameters: Mapping[str, Any],
        command: str,
    ) -> Writing:
        table = target(runner, source, node)
        alias = node.args.get("alias")
        named = folded(alias.this) if alias is not None and alias.this is not None else folded(node.this)
        is_read = any([bool(dict.get(tree.args, part)) for part in READING])
        check_write(runner, table, command, is_read or reads_old_values(tree, named, table.schema.names))
        return Writing(runner, source, tree, table, named, parameters, command)

    def check_reads(self, values: Iterable[exp.Expr]) -> None:
        """Refuse new values that are computed from what is in the table to those who may not read it: an error, or what becomes
        of another column, would tell of it.
        """
        check_write(self.runner, self.table, self.command, any([self._may_read(value) for value in values]))

    def _may_read(self, value: exp.Expr) -> bool:
        """Whether an expression may read columns of the table. In a subquery, a name alone may be one of them."""
        own = {*self.names, self.alias}
        for column in value.find_all(exp.Column):
            parts = [folded(part) for part in column.parts]
            if column.find_ancestor(exp.Query) is None or not own.isdisjoint(parts[:-1] or parts):
                return True
        return False

    @property
    def names(self) -> list[str]:
        """The table's columns."""
        return list(self.table.schema.names)

    def column(self, name: str, of: str | None = None) -> exp.Expr:
        """A column of the table, or of what else the statement reads."""
        return exp.column(name, table=exp.to_identifier(of or self.alias, quoted=True), quoted=True)

    def own(self) -> exp.Table:
        """The table as a member of FROM: the rows that the statement may change."""
        return internal_table(OWN, self.alias)

    def every(self) -> exp.Table:
        """The table as a member of FROM, with rows that nobody shows to the user: their keys are taken."""
        return internal_table(EVERY, self.alias)

    def select(
        self,
        query: exp.Expr,
        wanted: Sequence[Type] | None = None,
        given: Mapping[str, pa.Table] | None = None,
        what: str = "",
    ) -> pa.Table:
        """The rows of a query of the statement, which may read the rows given by name. Errors of values name the table."""
        common = self.tree.args.get("with_")
        if common is not None and isinstance(query, exp.Query) and not query.args.get("with_"):
            query.set("with_", copied(common))
        changes = {"INSERT": "UPDATE", "TRUNCATE": ""}.get(self.command, self.command)
        own = {OWN: TargetTable(self.table, changes), EVERY: TargetTable(self.table, "")}
        try:
            return self.runner.select(self.source, query, self.parameters, wanted, {**own, **(given or {})})
        except TektiteError as error:
            if not what or "\nline " in str(error):
                raise
            raise error.reworded(f"{what} {self.table.name}: {error}") from None

    def write(
        self,
        what: str,
        many: int,
        new: pa.Table | None,
        old: pa.Table | None,
        checked: Sequence[tuple[str, pa.Table]] | None = None,
    ) -> Result:
        """Write the rows that come and go; the result, with what RETURNING says of the rows that came, or else went. `checked`
        are the rows that policies have to allow, by the command that they are for; otherwise those that come.
        """
        returned = self._returned(old if new is None else new)
        refuse_unread(self.source, self.tree)
        if new is not None:
            every = [("UPDATE" if old is not None else self.command, new)] if checked is None else checked
            for command, rows in every:
                check_new_rows(self.runner, self.table, rows, command, returned is not None)
        time = self.runner.write(self.table, new, old)
        return Result(f"{what} {many}", returned, time=time)

    def _returned(self, rows: pa.Table | None) -> pa.Table | None:
        returning = self.tree.args.get("returning")
        if returning is None or rows is None:
            return None
        if returning.args.get("into"):
            raise self.source.error("RETURNING ... INTO is not supported", returning, UnsupportedError)
        for part in returning.expressions:
            refuse_totals(self.source, part)
        source = exp.From(this=internal_table(CHANGED, self.alias))
        query = exp.Select(expressions=[copied(part) for part in returning.expressions], from_=source)
        return self.select(query, given={CHANGED: rows})

    def arranged(self, rows: pa.Table, given: list[str]) -> pa.Table:
        """Rows with the table's columns and types."""
        return arranged(self.runner, self.table, rows, given)

    def words(self, rows: pa.Table, columns: Sequence[int] | None = None) -> Any:
        """The rows as words (columns x rows), by which they are told apart."""
        words = self.table.schema.encode(rows, core_of(self.runner.engine).dictionary)
        return words if columns is None else np.ascontiguousarray(words[list(columns)])


READING = ("where", "returning", "from_", "using", "conflict")
"""Parts of a statement that read the table which it changes."""


def reads_old_values(tree: exp.Expr, named: str, columns: Sequence[str]) -> bool:
    """Whether what an UPDATE gives columns depends on the values that they have. In a subquery, a column without the name of its
    relation counts if the table has one that is called so.
    """
    if not isinstance(tree, exp.Update):
        return False
    values = [part.expression for part in tree.expressions if isinstance(part, exp.EQ)]
    found = [column for value in values for column in value.find_all(exp.Column)]
    return any([
        folded(column.args["table"]) == named if column.args.get("table") else folded(column.this) in columns
        for column in found
    ])  # fmt: skip


def check_write(runner: StatementRunner, table: Table, command: str, is_read: bool = False) -> None:
    """Refuse a command on a table to those who have no privilege for it."""
    access = runner.access
    who = access.who()
    if who is None:
        return
    access.check(who, "USAGE", schema_object(name_parts(table.name)[0]))
    for privilege in (command, "SELECT") if is_read else (command,):
        access.check(who, privilege, table_object(table.name))


def check_new_rows(runner: StatementRunner, table: Table, rows: pa.Table, command: str, is_read: bool = False) -> None:
    """Refuse rows that the policies of a table do not let the user leave behind, and those that would replace a row which the
    user may not change.
    """
    access = runner.access
    who = access.who()
    if who is None or access.bypasses(who, table.name) or not rows.num_rows:
        return
    conditions = PolicyConditions(access, table.name, who, False, runner.reader().columns_of)
    condition = conditions.written(command, is_read)
    name = name_parts(table.name)[1]
    if condition is not None:
        allowed = exp.Coalesce(this=exp.Paren(this=condition), expressions=[exp.false()])
        wrong = counted(internal_table(NEW, name), exp.Not(this=allowed))
        if number_of(runner, table, wrong, {NEW: rows}):
            raise PermissionDenied(f"new row violates row-level security policy for table {table.name!r}")
    unique, seen = core_of(table).unique, conditions.seen("UPDATE")
    if command not in ("INSERT", "UPDATE") or unique is None or core_of(table).semantics != "upsert" or seen is None:
        return
    own = exp.to_identifier(name, quoted=True)
    pairs: list[exp.Expr] = [
        exp.EQ(this=exp.column(key, table=own.copy(), quoted=True),
               expression=exp.column(key, table=exp.to_identifier(NEW, quoted=True), quoted=True))
        for key in [table.schema.names[at] for at in unique]
    ]  # fmt: skip
    same = exp.Exists(
        this=exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=internal_table(NEW, NEW)),
            where=exp.Where(this=exp.and_(*pairs, copy=False)),
        )
    )
    hidden = exp.Not(this=exp.Coalesce(this=exp.Paren(this=seen), expressions=[exp.false()]))
    taken = counted(internal_table(EVERY, name), exp.And(this=same, expression=hidden))
    if number_of(runner, table, taken, {NEW: rows, EVERY: TargetTable(table, "")}):
        raise PermissionDenied(
            f"new row violates row-level security policy for table {table.name!r}: it would replace a row that the policies hide"
        )


def counted(relation: exp.Table, condition: exp.Expr) -> exp.Select:
    """The query that counts the rows of a relation that meet a condition."""
    return exp.Select(
        expressions=[exp.Count(this=exp.Star())], from_=exp.From(this=relation), where=exp.Where(this=condition)
    )


def number_of(runner: StatementRunner, table: Table, query: exp.Select, given: Given) -> int:
    """The number that a query about the policies of a table gives."""
    try:
        rows = runner.select(StatementText(f"policies of {table.name}"), query, {}, None, given)
    except TektiteError as error:
        raise error.reworded(f"in the policies of {table.name!r}: {unpointed(error)}") from None
    found: int = rows.column(0)[0].as_py()
    return found


def refuse_totals(source: StatementText, tree: exp.Expr) -> None:
    """Refuse what RETURNING would make of all rows together: it says something of each row."""
    for node in tree.walk(prune=lambda found: isinstance(found, exp.Query)):
        if isinstance(node, exp.AggFunc | exp.Window):
            what = "an aggregate" if isinstance(node, exp.AggFunc) else "a window function"
            raise source.error(f"{what} cannot be used in RETURNING", node)


def arranged(runner: StatementRunner, found: Table, rows: pa.Table, given: list[str]) -> pa.Table:
    """Rows with the table's columns and types; columns that are not given are what DEFAULT says, or NULL."""
    defaults = defaults_of(core_of(found))
    arrays = []
    for field in found.schema.arrow:
        if field.name not in given:
            value = pa.scalar(defaults.get(field.name), field.type)
            arrays.append(pa.repeat(value, rows.num_rows))
            continue
        column = rows.column(given.index(field.name))
        try:
            arrays.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise IncorrectError(f"column {field.name!r} of {found.name!r} is {field.type}: {error}") from None
        except pa.ArrowNotImplementedError:
            message = f"column {field.name!r} of {found.name!r} is {field.type}, not {column.type}: cast it"
            raise IncorrectError(message) from None
    return pa.Table.from_arrays(arrays, schema=found.schema.arrow)


def is_default(tree: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT."""
    if isinstance(tree, exp.Column) and not tree.table and not tree.this.quoted:
        tree = tree.this
    return isinstance(tree, exp.Var | exp.Identifier) and tree.name.upper() == "DEFAULT"


def default_tree(found: Table, column: str) -> exp.Expr:
    """The value of DEFAULT for a column: the constant of its declaration, or NULL."""
    value = defaults_of(core_of(found)).get(column)
    if value is None:
        return exp.Null()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    type = found.schema.types[found.schema.index(column)]
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(sql_name(type), dialect="duckdb"))


# ---------------------------------------------------------------------- DELETE


def delete(
    runner: StatementRunner,
    source: StatementText,
    tree: exp.Delete,
    parameters: Mapping[str, Any],
    command: str = "DELETE",
) -> Result:
    """DELETE FROM table [USING ...] WHERE ... [RETURNING ...]"""
    if tree.args.get("tables") or tree.this is None:
        raise source.syntax_error("DELETE needs FROM")
    writing = Writing.of(runner, source, tree, tree.this, parameters, command)
    where = tree.args.get("where")
    if tree.args.get("using"):
        where = with_match(tree.args["using"], where)
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=writing.own()), where=where and copied(where))
    rows = writing.select(query)
    return writing.write("DELETE", rows.num_rows, None, rows)


def with_match(members: list[exp.Expr], where: exp.Expr | None) -> exp.Where:
    """The condition that there is a match among the members of a FROM."""
    first, *others = [copied(member) for member in members]
    joins = [exp.Join(this=other) for other in others]
    matches = exp.Select(
        expressions=[exp.Literal.number(1)], from_=exp.From(this=first), joins=joins, where=where and copied(where)
    )
    return exp.Where(this=exp.Exists(this=matches))


def truncate(
    runner: StatementRunner, source: StatementText, tree: exp.TruncateTable, parameters: Mapping[str, Any]
) -> Result:
    """TRUNCATE table: DELETE without a condition."""
    for node in tree.expressions:
        target(runner, source, node)
    refuse_unread(source, tree)
    done = [delete(runner, source, exp.Delete(this=node), parameters, "TRUNCATE") for node in tree.expressions]
    return Result("TRUNCATE TABLE", time=done[-1].time)
