"""Scopes: which columns a name may mean in a query, and in the queries around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import NotFoundError, UnsupportedError
from tektite.sql.parse.places import StatementText, nearest

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext


DEFAULT_SCHEMA = "public"
"""The schema of what is named without one."""
SAME_SCHEMA = {"main": DEFAULT_SCHEMA}
"""Other names of schemas."""


def folded(node: exp.Expr | None) -> str:
    """An identifier as it is compared: in lower case, unless quoted."""
    if node is None:
        return ""
    if isinstance(node, exp.Placeholder | exp.Parameter):
        raise UnsupportedError(f"a parameter cannot stand for a name: {node.name!r}")
    name = node.name
    return name if node.args.get("quoted") else name.lower()


UNIQUE = "unique column"
"""Under which a column that COLUMNS stands for notes which one it is, whatever others have its name."""


@dataclass
class Relation:
    """One member of FROM: its alias, and its columns as (visible name, unique name)."""

    alias: str
    columns: list[tuple[str, str]]
    schema: str = ""
    """The schema that its name is in, where it is called by its name."""
    catalog: str = ""
    """Its own name, if it is a relation of pg_catalog."""
    is_function: bool = False
    """Whether it is the rows of a function, of one column."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Visible names that a USING has merged with another relation's, with the column that it made: found only with the alias
    before them.
    """

    def is_called(self, table: str, schema: str = "") -> bool:
        """Whether a name before a column, which may be empty, means this relation."""
        if schema and SAME_SCHEMA.get(schema, schema) != (self.schema or DEFAULT_SCHEMA):
            return False
        return not table or self.alias.lower() == table.lower()


@dataclass
class NameScope:
    """The relations that a query's names refer to."""

    parent: NameScope | None = None
    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, list[str]] = field(default_factory=dict)
    """Columns that USING made of two, by visible name; several where joins between commas each have one."""
    clause: ClauseContext | None = None
    """The outputs of the query, while they are bound: aggregates of its columns in the queries within it belong to them."""

    def find(self, column: str, table: str, schema: str = "") -> list[str]:
        """The unique names that a column's name may mean here. Of a relation's columns that differ in case only, it means the one
        that is written so.
        """
        folded_name = column.lower()
        if not table and folded_name in self.merged:
            return self.merged[folded_name]
        found = []
        for relation in self.relations:
            if not relation.is_called(table, schema) or (not table and folded_name in relation.hidden):
                continue
            mine = [(visible, unique) for visible, unique in relation.columns if visible.lower() == folded_name]
            exact = [unique for visible, unique in mine if visible == column]
            found += exact or [unique for _, unique in mine]
        return found

    def around(self) -> Iterator[NameScope]:
        """This scope, then those around it."""
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def resolve(self, node: exp.Column, source: StatementText) -> tuple[str, int]:
        """The unique name that a column means, and how many queries further out it is found."""
        column, table, schema = folded(node.this), folded(node.args.get("table")), folded(node.args.get("db"))
        for depth, scope in enumerate(self.around()):
            found = scope.find(column, table, schema)
            if len(found) > 1:
                shown = f"{table}.{column}" if table else column
                raise source.error(
                    f"column {shown!r} is ambiguous: write the table before it, as in t.{column}",
                    node,
                    condition="ambiguous-column",
                )
            if not found and not table:
                # the only column of a function's rows goes by the name of these as well
                found = [
                    r.columns[0][1] for r in scope.relations if r.is_function and r.alias.lower() == column.lower()
                ]
            if found:
                return found[0], depth
        raise self._unknown(column, table, schema, node, source)

    def _unknown(self, column: str, table: str, schema: str, node: exp.Column, source: StatementText) -> Exception:
        relations = [r for scope in self.around() for r in scope.relations]
        if table and not any(r.is_called(table, schema) for r in relations):
            hint = nearest(table, [r.alias for r in relations if r.alias])
            shown = f"{schema}.{table}" if schema else table
            return source.error(
                f"there is no table {shown!r} in FROM: {hint}", node, NotFoundError, condition="undefined-table"
            )
        names = [v for r in relations if r.is_called(table, schema) for v, _ in r.columns]
        where = f" in {table!r}" if table else ""
        quoted = isinstance(node.this, exp.Identifier) and node.this.quoted and not table
        text = f". Double quotes are for names; a text is '{column}'" if quoted else ""
        return source.error(
            f"there is no column {column!r}{where}: {nearest(column, names)}{_output_note(column, table, node)}{text}",
            node,
            NotFoundError,
            condition="undefined-column",
        )


def _output_note(column: str, table: str, node: exp.Column) -> str:
    """The hint of an error if the name is an output of the SELECT whose condition names it."""
    select = node.find_ancestor(exp.Select)
    outputs = () if select is None or table else select.expressions
    if not any(isinstance(output, exp.Alias) and output.alias.lower() == column.lower() for output in outputs):
        return ""
    return f". {column!r} is an output of SELECT: repeat its expression, or write FROM (SELECT ...) WHERE {column} ..."
