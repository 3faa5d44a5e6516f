"""The common parts of INSERT, UPDATE and DELETE: the table, its rows, and RETURNING.

A statement first finds the old and the new rows, by queries that see its transaction. Then it writes both at once, or fails
without changing anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of
from tektite.engine.table import Table
from tektite.errors import ConflictError, IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import written_name
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied, refuse_unread
from tektite.sql.statements.result import Result
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

OWN = "#table"
"""The name under which a statement reads the table that it changes, whatever WITH calls by the table's own."""
CHANGED = "#changed"
"""The name under which RETURNING reads the rows that a statement has changed."""


def target(runner: StatementRunner, source: StatementText, node: exp.Expr) -> Table:
    """The table that a statement changes."""
    name = written_name(source, node)
    found = runner.relation_named(name)
    if isinstance(found, Table) and not found.name.startswith("__"):
        return found
    if found is not None:
        raise source.error(f"{name!r} is a view: only tables can be changed", node, ConflictError)
    known = [n for n in runner.known() if isinstance(runner.relation_stored(n), Table)]
    raise source.error(f"there is no table {name!r}: {nearest(name, known)}", node, NotFoundError)


@dataclass(frozen=True)
class Writing:
    """A statement that changes a table, which its own text calls `alias`."""

    runner: StatementRunner
    source: StatementText
    tree: exp.Expr
    table: Table
    alias: str
    parameters: Mapping[str, Any]

    @staticmethod
    def of(
        runner: StatementRunner, source: StatementText, tree: exp.Expr, node: exp.Expr, parameters: Mapping[str, Any]
    ) -> Writing:
        table = target(runner, source, node)
        alias = node.args.get("alias")
        named = folded(alias.this) if alias is not None and alias.this is not None else folded(node.this)
        return Writing(runner, source, tree, table, named, parameters)

    @property
    def names(self) -> list[str]:
        """The table's columns."""
        return list(self.table.schema.names)

    def column(self, name: str, of: str | None = None) -> exp.Expr:
        """A column of the table, or of what else the statement reads."""
        return exp.column(name, table=exp.to_identifier(of or self.alias, quoted=True), quoted=True)

    def own(self) -> exp.Table:
        """The table as a member of FROM."""
        return table_reference(OWN, self.alias)

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
        try:
            return self.runner.select(self.source, query, self.parameters, wanted, {OWN: self.table, **(given or {})})
        except TektiteError as error:
            if not what or "\nline " in str(error):
                raise
            raise type(error)(f"{what} {self.table.name}: {error}") from None

    def write(self, what: str, many: int, new: pa.Table | None, old: pa.Table | None) -> Result:
        """Write the rows that come and go; the result, with what RETURNING says of the rows that came, or else went."""
        returned = self._returned(old if new is None else new)
        refuse_unread(self.source, self.tree)
        self.runner.write(self.table, new, old)
        return Result(f"{what} {many}", returned)

    def _returned(self, rows: pa.Table | None) -> pa.Table | None:
        returning = self.tree.args.get("returning")
        if returning is None or rows is None:
            return None
        if returning.args.get("into"):
            raise self.source.error("RETURNING ... INTO is not supported", returning, UnsupportedError)
        for part in returning.expressions:
            refuse_totals(self.source, part)
        source = exp.From(this=table_reference(CHANGED, self.alias))
        query = exp.Select(expressions=[copied(part) for part in returning.expressions], from_=source)
        return self.select(query, given={CHANGED: rows})

    def arranged(self, rows: pa.Table, given: list[str]) -> pa.Table:
        """Rows with the table's columns and types."""
        return arranged(self.runner, self.table, rows, given)

    def words(self, rows: pa.Table, columns: Sequence[int] | None = None) -> Any:
        """The rows as words (columns x rows), by which they are told apart."""
        words = self.table.schema.encode(rows, core_of(self.runner.engine).dictionary)
        return words if columns is None else np.ascontiguousarray(words[list(columns)])


def refuse_totals(source: StatementText, tree: exp.Expr) -> None:
    """Refuse what RETURNING would make of all rows together: it says something of each row."""
    for node in tree.walk(prune=lambda found: isinstance(found, exp.Query)):
        if isinstance(node, exp.AggFunc | exp.Window):
            what = "an aggregate" if isinstance(node, exp.AggFunc) else "a window function"
            raise source.error(f"{what} cannot be used in RETURNING", node)


def table_reference(name: str, alias: str) -> exp.Table:
    """A member of FROM by its name as it is, under an alias."""
    return exp.Table(
        this=exp.to_identifier(name, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )


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


# ---------------------------------------------------------------------- DELETE


def delete(runner: StatementRunner, source: StatementText, tree: exp.Delete, parameters: Mapping[str, Any]) -> Result:
    """DELETE FROM table [USING ...] WHERE ... [RETURNING ...]"""
    if tree.args.get("tables") or tree.this is None:
        raise source.error("syntax error: DELETE needs FROM")
    writing = Writing.of(runner, source, tree, tree.this, parameters)
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
    for node in tree.expressions:
        delete(runner, source, exp.Delete(this=node), parameters)
    return Result("TRUNCATE TABLE")
