"""GRANT and REVOKE: privileges on tables, views and schemas, and memberships of roles; and who owns an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.engine.core import core_of
from tektite.errors import ConflictError, IncorrectError, NotFoundError
from tektite.sql.access.access_control import (
    DATABASE_OBJECT,
    PRIVILEGES,
    PermissionDenied,
    schema_object,
    table_object,
)
from tektite.sql.access.access_tables import PUBLIC, Grant, Membership, Record
from tektite.sql.access.system_policies import SYSTEM_OBJECTS
from tektite.sql.catalog.schemas import DATABASE, name_parts, same_schema
from tektite.sql.parse.access_statements import ChangeGrants, ChangeMembers, ChangeOwner
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def named_object(runner: StatementRunner, source: StatementText, kind: str, name: str) -> str:
    """An object of grants by the name that a statement gives it."""
    if kind == "table":
        found = runner.relation_named(name)
        if found is None or found.name.startswith("__"):
            raise source.error(
                f"there is no table or view {name!r}: {nearest(name, runner.visible())}",
                source.where(name.rpartition(".")[2]),
                NotFoundError,
                condition="undefined-table",
            )
        return table_object(found.name)
    if kind == "database":
        if name != DATABASE:
            raise source.error(f"there is one database, {DATABASE!r}", source.where(name), NotFoundError)
        return DATABASE_OBJECT
    if same_schema(name) not in runner.schema_names():
        raise source.error(
            f"there is no schema {name!r}: {nearest(name, runner.visible_schemas())}",
            source.where(name),
            NotFoundError,
            condition="undefined-schema",
        )
    return schema_object(same_schema(name))


def objects_of(runner: StatementRunner, statement: ChangeGrants) -> list[str]:
    """The objects that a statement is about."""
    if statement.kind != "all tables":
        return [named_object(runner, statement.source, statement.kind, name) for name in statement.objects]
    schemas = {named_object(runner, statement.source, "schema", name).partition(" ")[2] for name in statement.objects}
    return [table_object(name) for name in runner.visible() if name_parts(name)[0] in schemas]


def grantee(runner: StatementRunner, name: str) -> str:
    """A role that is granted something: the user of the session, everybody, or one by its name."""
    if name == PUBLIC:
        return PUBLIC
    return runner.access.role(name or runner.settings.user).name


def change_grants(runner: StatementRunner, statement: ChangeGrants) -> Result:
    """GRANT or REVOKE privileges ON objects TO or FROM roles."""
    access, source = runner.access, statement.source
    access.begin()
    kind = "table" if statement.kind == "all tables" else statement.kind
    objects = objects_of(runner, statement)
    privileges = statement.privileges or PRIVILEGES[kind]
    for privilege in privileges:
        if privilege not in PRIVILEGES[kind]:
            message = f"there is no privilege {privilege} on a {kind}: there are {', '.join(PRIVILEGES[kind])}"
            raise source.error(message, source.where(privilege))
    roles = [grantee(runner, name) for name in statement.roles]
    if PUBLIC in roles and not SYSTEM_OBJECTS.isdisjoint(objects):
        name = min(SYSTEM_OBJECTS.intersection(objects)).partition(" ")[2]
        message = (
            f"everybody may read {name!r}, and sees its part of it: name the roles that are to see all, or no longer"
        )
        raise source.error(message, source.where("public"))
    who = access.who()
    grantor = who or ""
    records: list[Grant] = []
    for object in objects:
        allowed = [p for p in privileges if may_grant(runner, who, p, object)]
        if not allowed or (statement.privileges and len(allowed) < len(privileges)):
            kind_said, _, name = object.partition(" ")
            raise PermissionDenied(
                f"permission denied for {kind_said} {name!r}: {who!r} is not its owner and has no privilege WITH GRANT OPTION"
            )
        for role in roles:
            for privilege in allowed:
                known = access.tables.grants.get((object, privilege, role))
                if statement.is_grant:
                    by = known.grantor if known is not None else grantor
                    option = statement.with_option or (known is not None and known.may_grant)
                    records.append(Grant(object, privilege, role, by, option))
                elif known is not None:
                    records.append(known)
    if statement.is_grant:
        if records:
            access.change(records)
        return Result("GRANT")
    return revoke(runner, statement, records)


def may_grant(runner: StatementRunner, who: str | None, privilege: str, object: str) -> bool:
    """Whether somebody may grant a privilege on an object."""
    access = runner.access
    if access.owns(who, object):
        return True
    grants = [access.tables.grants.get((object, privilege, role)) for role in access.held(str(who))]
    return any([grant is not None and grant.may_grant for grant in grants])


def revoke(runner: StatementRunner, statement: ChangeGrants, records: list[Grant]) -> Result:
    """Take grants back, with those that others gave because of them."""
    access = runner.access
    dependent: list[Grant] = []
    waiting = list(records)
    while waiting:
        one = waiting.pop()
        more = [
            g
            for g in access.tables.grants.values()
            if one.may_grant and (g.object, g.privilege, g.grantor) == (one.object, one.privilege, one.grantee)
            and g not in records and g not in dependent
        ]  # fmt: skip
        dependent += more
        waiting += more
    if dependent and not statement.cascade:
        shown = ", ".join(sorted({g.grantee for g in dependent}))
        raise ConflictError(
            f"cannot revoke: {shown} got the privilege by the grant option; REVOKE ... CASCADE takes it from all"
        )
    new: list[Record] = [g._replace(may_grant=False) for g in records] if statement.with_option else []
    gone: list[Record] = list(dependent) if statement.with_option else [*records, *dependent]
    if new or gone:
        access.change(new, gone)
    return Result("REVOKE")


def change_members(runner: StatementRunner, statement: ChangeMembers) -> Result:
    """GRANT roles TO members; REVOKE roles FROM members."""
    access = runner.access
    access.begin()
    who = access.who()
    new: list[Record] = []
    gone: list[Record] = []
    for name in statement.roles:
        role = access.role(name)
        admin = access.tables.members.get((role.name, str(who)))
        if role.is_super:
            access.check_super(who, f"to grant {name!r}, who is")
        elif admin is None or not admin.may_grant:
            access.check_creates_roles(who)
        for member_name in statement.members:
            member = grantee(runner, member_name)
            if member == PUBLIC:
                raise IncorrectError("everybody cannot be a member of a role: grant its privileges to PUBLIC")
            known = access.tables.members.get((role.name, member))
            if not statement.is_grant:
                if known is not None and statement.with_option:
                    new.append(known._replace(may_grant=False))
                elif known is not None:
                    gone.append(known)
                continue
            if role.name == member or access.is_member(role.name, member):
                raise ConflictError(f"{role.name!r} is a member of {member!r}: roles cannot hold each other")
            new.append(Membership(role.name, member, statement.with_option or (known is not None and known.may_grant)))
    if new or gone:
        access.change(new, gone)
    return Result("GRANT ROLE" if statement.is_grant else "REVOKE ROLE")


def change_owner(runner: StatementRunner, statement: ChangeOwner) -> Result:
    """ALTER ... OWNER TO role."""
    access = runner.access
    access.begin()
    who = access.who()
    object = named_object(runner, statement.source, statement.kind, statement.name)
    access.check_owner(who, object)
    refuse_system(runner, statement.source, statement.name, "has no owner but superusers")
    owner = access.role(statement.owner or runner.settings.user).name
    if not access.is_member(who, owner):
        raise PermissionDenied(f"permission denied: {who!r} is no member of {owner!r}, who is to own {object}")
    if statement.kind == "table" and owner != access.owner(object):
        refuse_standing(runner, object)
    access.give([object], owner)
    return Result("ALTER TABLE" if statement.kind == "table" else "ALTER SCHEMA")


def refuse_system(runner: StatementRunner, source: StatementText, name: str, why: str) -> None:
    """Refuse to change whose a system relation is, and who sees which rows of it."""
    found = runner.relation_named(name)
    if found is not None and found.name in core_of(runner.engine).system.names():
        raise source.error(
            f"{name!r} is a system relation: it {why}", source.where(name.rpartition(".")[2]), ConflictError
        )


def refuse_standing(runner: StatementRunner, object: str) -> None:
    """Refuse to change whose rights a materialised view was installed with."""
    name = object.partition(" ")[2]
    secured = runner.standing_secured.get(name)
    if secured:
        shown = ", ".join(sorted(secured))
        raise ConflictError(
            f"view {name!r} was installed with the rights of its owner on {shown}: drop it, and let its new owner create it"
        )
