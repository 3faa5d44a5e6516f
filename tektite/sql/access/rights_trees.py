"""Trees of SQL that ask for the rights of whoever reads: the views of `rights_views`, and tables without their policies."""

from __future__ import annotations

from sqlglot import exp

from tektite.sql.catalog.schemas import name_parts
from tektite.sql.parse.internal_tables import HOLDER, internal_table

RIGHTS = "#rights "
"""The prefix of a name in FROM that means one of the views of rights."""
PROTECTED = "#protected "
"""The prefix of a name in FROM that means a table with all its rows, inside the condition of its policies."""


def rights_table(view: str) -> exp.Table:
    """One of the views of rights as a member of FROM."""
    return internal_table(RIGHTS + view, "#r")


def protected_table(name: str, alias: str | None = None) -> exp.Table:
    """A table with all its rows as a member of FROM, under its own name if no other is given."""
    return internal_table(PROTECTED + name, name_parts(name)[1] if alias is None else alias)


def named_column(name: str, table: str = "#r") -> exp.Column:
    """A column of a member of FROM."""
    return exp.column(name, table=exp.to_identifier(table, quoted=True), quoted=True)


def holder() -> exp.Expr:
    """The role whose rights count."""
    return exp.Placeholder(this=HOLDER)


def mine(who: str) -> exp.Expr:
    """The condition that a row of a view of rights is of whose rights count."""
    return exp.EQ(this=named_column(who), expression=holder())


def exists_in(relation: exp.Table, *conditions: exp.Expr) -> exp.Expr:
    """Whether a relation has a row that meets some conditions."""
    where = exp.Where(this=exp.and_(*conditions, copy=False))
    return exp.Exists(this=exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=relation), where=where))
