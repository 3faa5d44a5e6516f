"""The functions that run statements, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.sql.parse import access_statements as said
from tektite.sql.parse import parser
from tektite.sql.parse.places import StatementText
from tektite.sql.statements import (
    alter,
    copy,
    create,
    drop,
    grants,
    insert,
    policies,
    roles,
    table_writes,
    transactions,
    update,
)
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

HANDLERS: dict[type[exp.Expr], Callable[[StatementRunner, StatementText, Any, Mapping[str, Any]], Result]] = {
    exp.Create: create.create,
    exp.Alter: alter.alter,
    exp.Drop: drop.drop,
    exp.Insert: insert.insert,
    exp.Update: update.update,
    exp.Delete: table_writes.delete,
    exp.TruncateTable: table_writes.truncate,
    exp.Commit: transactions.commit,
    exp.Rollback: transactions.rollback,
    exp.Copy: copy.copy,
}
WRITING = {exp.Create, exp.Alter, exp.Drop, exp.Insert, exp.Update, exp.Delete, exp.TruncateTable}
"""Statements that a transaction which only reads refuses. COPY writes only in one of its directions."""
ACCESS_HANDLERS: dict[type[parser.Statement], Callable[[StatementRunner, Any], Result]] = {
    said.CreateRole: roles.create_role,
    said.AlterRole: roles.alter_role,
    said.DropRole: roles.drop_role,
    said.TakeRole: roles.take_role,
    said.ChangeGrants: grants.change_grants,
    said.ChangeMembers: grants.change_members,
    said.ChangeOwner: grants.change_owner,
    said.ChangeOwned: roles.change_owned,
    said.ChangePolicy: policies.change_policy,
    said.SecureTable: policies.secure_table,
    said.ChangeToken: roles.change_token,
}
