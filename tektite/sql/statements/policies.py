"""Policies on rows: CREATE, ALTER and DROP POLICY, and ROW LEVEL SECURITY of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.table import Table
from tektite.errors import ConflictError, NotFoundError, TektiteError
from tektite.sql.access.access_control import table_object
from tektite.sql.access.access_tables import PUBLIC, Record, RowPolicy, SecuredTable
from tektite.sql.access.policy_conditions import PolicyConditions
from tektite.sql.access.rights_trees import protected_table
from tektite.sql.bind.named_relations import ReaderIdentity, unpointed
from tektite.sql.parse.access_statements import ChangePolicy, SecureTable
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.statements.grants import grantee, refuse_system
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def secured_table(runner: StatementRunner, source: StatementText, written: str) -> Table:
    """The table whose policies are changed, by its owner."""
    found = runner.relation_named(written)
    if not isinstance(found, Table) or found.name.startswith("__"):
        known = [name for name in runner.visible() if isinstance(runner.relation_stored(name), Table)]
        place = source.where(written.rpartition(".")[2])
        raise source.error(
            f"there is no table {written!r}: {nearest(written, known)}",
            place,
            NotFoundError,
            condition="undefined-table",
        )
    runner.access.begin()
    runner.access.check_owner(runner.access.who(), table_object(found.name))
    refuse_system(runner, source, written, "shows everybody what is theirs, by rules that cannot be changed")
    return found


def change_policy(runner: StatementRunner, statement: ChangePolicy) -> Result:
    """CREATE POLICY, ALTER POLICY, DROP POLICY."""
    source = statement.source
    table = secured_table(runner, source, statement.table)
    access = runner.access
    known = access.tables.policies.get((table_object(table.name), statement.name))
    done = Result(f"{statement.what} POLICY")
    if statement.what == "CREATE" and known is not None:
        message = f"there is a policy {statement.name!r} on {table.name!r} already"
        raise source.error(message, source.where(statement.name), ConflictError, condition="duplicate-object")
    if statement.what != "CREATE" and known is None:
        if statement.may_miss:
            return done
        names = [policy.name for policy in access.policies(table.name)]
        message = f"there is no policy {statement.name!r} on {table.name!r}: {nearest(statement.name, names)}"
        raise source.error(message, source.where(statement.name), NotFoundError)
    if statement.what == "DROP":
        assert known is not None
        change(runner, table, gone=known)
        return done
    roles = None if statement.roles is None else ",".join(grantee(runner, name) for name in statement.roles)
    if known is None:
        made = RowPolicy(table_object(table.name), statement.name, statement.command, statement.is_permissive,
                         roles or PUBLIC, statement.using, statement.check)  # fmt: skip
    else:
        made = known._replace(
            roles=known.roles if roles is None else roles,
            using=known.using if statement.using is None else statement.using,
            check=known.check if statement.check is None else statement.check,
        )
    check_policy(runner, statement, table, made)
    change(runner, table, new=made)
    return done


def check_policy(runner: StatementRunner, statement: ChangePolicy, table: Table, policy: RowPolicy) -> None:
    """Refuse a policy that makes no sense, before anybody reads by it."""
    source = statement.source
    if policy.command in ("SELECT", "DELETE") and policy.check is not None:
        raise source.error(f"WITH CHECK cannot be applied to {policy.command}", source.where("CHECK"))
    if policy.command == "INSERT" and policy.using is not None:
        raise source.error("only WITH CHECK can be applied to INSERT", source.where("USING"))
    for text in (policy.using, policy.check):
        if text is None:
            continue
        tree = conditions(runner, table, policy, text)
        query = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=protected_table(table.name)),
            where=exp.Where(this=tree),
        )
        try:
            runner.bind_for(StatementText(text), query, ReaderIdentity(None))
        except TektiteError as error:
            raise error.reworded(f"policy {policy.name!r} of {table.name!r}: {unpointed(error)}") from None


def conditions(runner: StatementRunner, table: Table, policy: RowPolicy, text: str) -> exp.Expr:
    """The condition of one policy as a tree."""
    return PolicyConditions(runner.access, table.name, "", False, runner.reader().columns_of).condition(policy, text)


def change(runner: StatementRunner, table: Table, new: Record | None = None, gone: Record | None = None) -> None:
    """Change what the policies of a table say, for standing queries as well."""
    refuse_views(runner, table)
    runner.access.change([] if new is None else [new], [] if gone is None else [gone])
    runner.shared.replan(table.name)


def secure_table(runner: StatementRunner, statement: SecureTable) -> Result:
    """ALTER TABLE ... ROW LEVEL SECURITY."""
    table = secured_table(runner, statement.source, statement.table)
    object = table_object(table.name)
    known = runner.access.tables.secured.get(object) or SecuredTable(object, False)
    changes: dict[str, Any] = statement.changes
    made = known._replace(**changes)
    if made != known:
        change(runner, table, new=made)
    return Result("ALTER TABLE")


def refuse_views(runner: StatementRunner, table: Table) -> None:
    """Refuse to change the policies by which a materialised view was installed."""
    views = sorted(view for view, secured in runner.standing_secured.items() if table.name in secured)
    if views:
        raise ConflictError(
            f"cannot change the policies of {table.name!r}: {', '.join(map(repr, views))} "
            f"{'was' if len(views) == 1 else 'were'} installed with them; drop {'it' if len(views) == 1 else 'them'} first"
        )
