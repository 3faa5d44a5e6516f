"""Roles: CREATE, ALTER and DROP ROLE, SET ROLE, tokens, and what becomes of a role's objects."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.errors import ConflictError, NotFoundError
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.access.access_tables import PUBLIC, Membership, Record, Role, Token
from tektite.sql.access.verifiers import Verifier, new_token, token_digest
from tektite.sql.parse.access_statements import AlterRole, ChangeOwned, ChangeToken, CreateRole, DropRole, TakeRole
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.statements import drop
from tektite.sql.statements.create import kind_of
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

RESERVED = (PUBLIC, "none", "current_user", "session_user", "current_role")
OWN_OPTIONS = {"password"}
"""Options of a role that it may change itself."""
POWERS = {"is_super", "bypasses_policies"}
"""Options that superusers alone may give."""


def create_role(runner: StatementRunner, statement: CreateRole) -> Result:
    """CREATE ROLE name with options; CREATE USER is one that can log in."""
    access, source = runner.access, statement.source
    who = access.who()
    access.begin()
    access.check_creates_roles(who)
    name, options = statement.name, {"can_login": statement.is_user, **statement.options}
    check_powers(runner, options, who)
    if name in RESERVED or not name or "," in name or name.startswith("pg_"):
        raise source.error(f"{name!r} cannot be the name of a role", source.where(name))
    if name in access.tables.roles:
        if statement.may_exist:
            return Result("CREATE ROLE")
        raise source.error(
            f"there is a role {name!r} already", source.where(name), ConflictError, condition="duplicate-object"
        )
    records: list[Record] = [changed(source, Role(name), options)]
    for role in options.get("in_roles", ()):
        records.append(Membership(access.role(role).name, name))
    for member in options.get("members", ()):
        records.append(Membership(name, access.role(member).name))
    for member in options.get("admins", ()):
        records.append(Membership(name, access.role(member).name, True))
    access.change(records)
    return Result("CREATE ROLE")


def alter_role(runner: StatementRunner, statement: AlterRole) -> Result:
    """ALTER ROLE name with options. Everybody may change their own password."""
    access = runner.access
    who = access.who()
    name = statement.name or runner.settings.user
    role = access.role(name)
    if who != name or not set(statement.options) <= OWN_OPTIONS:
        access.check_creates_roles(who)
        if role.is_super:
            access.check_super(who, f"to change {name!r}, who is")
    check_powers(runner, statement.options, who)
    wrong = [option for option in ("in_roles", "members", "admins") if option in statement.options]
    if wrong:
        raise statement.source.error("ALTER ROLE takes no roles: GRANT role TO member makes members", None)
    access.change([changed(statement.source, role, statement.options)])
    return Result("ALTER ROLE")


def check_powers(runner: StatementRunner, options: dict[str, Any], who: str | None) -> None:
    """Refuse to let somebody give a role what it does not have itself."""
    for option in POWERS & set(options):
        if options[option]:
            runner.access.check_super(who, "to make superusers and those who bypass policies")


def changed(source: StatementText, role: Role, options: dict[str, Any]) -> Role:
    """A role with other options."""
    found = {name: value for name, value in options.items() if name in Role._fields}
    if "password" in options:
        found["verifier"] = None if options["password"] is None else verifier_of(options["password"])
    if found.get("valid_until") is not None:
        found["valid_until"] = moment(source, found["valid_until"])
    return role._replace(**found)


def verifier_of(password: str) -> str:
    """The verifier of a password, which may be given as one."""
    if password.startswith("SCRAM-SHA-256$"):
        return str(Verifier.parse(password))
    return str(Verifier.of(password))


def moment(source: StatementText, text: str) -> datetime.datetime | None:
    """A time as VALID UNTIL says it; None for ever."""
    if text.lower() == "infinity":
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise source.error(f"{text!r} is no time, such as 2030-01-01 12:00", source.where("UNTIL")) from None
    return found.astimezone(datetime.UTC).replace(tzinfo=None) if found.tzinfo is not None else found


def drop_role(runner: StatementRunner, statement: DropRole) -> Result:
    """DROP ROLE: refused while it owns something or was granted something."""
    access, source = runner.access, statement.source
    who = access.who()
    gone: list[Record] = []
    for name in statement.names:
        role = access.tables.roles.get(name)
        if role is None:
            if statement.may_miss:
                continue
            raise source.error(
                f"there is no role {name!r}: {nearest(name, access.tables.roles)}", source.where(name), NotFoundError
            )
        access.check_creates_roles(who)
        if role.is_super:
            access.check_super(who, f"to drop {name!r}, who is")
        if name == runner.settings.login or name == who:
            raise source.error(f"{name!r} is the user of this session", source.where(name), ConflictError)
        access.check_role_unused(name)
        gone.append(role)
        gone += [m for m in access.tables.members.values() if name in (m.role, m.member)]
        gone += [t for t in access.tables.tokens.values() if t.role == name]
    if gone:
        access.change(gone=gone)
    return Result("DROP ROLE")


def take_role(runner: StatementRunner, statement: TakeRole) -> Result:
    """SET ROLE, RESET ROLE, SET SESSION AUTHORIZATION."""
    access, settings = runner.access, runner.settings
    if statement.name is None:
        settings.user = settings.login
        return Result("SET" if statement.source.word(statement.source.start).upper() == "SET" else "RESET")
    login = None if settings.is_trusted or not access.is_configured else settings.login
    role = access.role(statement.name)
    if statement.is_login and not access.is_super(login) and role.name != settings.login:
        access.check_super(login, "to be somebody else")
    if not access.is_member(login, role.name):
        raise PermissionDenied(f"permission denied to set role {role.name!r}: {login!r} is no member of it")
    settings.user = role.name
    return Result("SET")


def change_owned(runner: StatementRunner, statement: ChangeOwned) -> Result:
    """REASSIGN OWNED BY roles TO role; DROP OWNED BY roles: what they own goes, and what was granted to them."""
    access = runner.access
    who = access.who()
    roles = {access.role(name or runner.settings.user).name for name in statement.roles}
    for role in roles:
        if not access.is_member(who, role):
            raise PermissionDenied(f"permission denied: {who!r} is no member of {role!r}")
    owned = [o for o in access.tables.owners.values() if o.owner in roles]
    if statement.owner is not None:
        owner = access.role(statement.owner or runner.settings.user).name
        access.give([o.object for o in owned], owner)
        return Result("REASSIGN OWNED")
    for one in owned:
        kind, _, name = one.object.partition(" ")
        found = runner.relation_stored(name) if kind == "table" else None
        if found is not None:
            for reader in drop.all_readers(runner, name):
                drop.remove(runner, *reader)
            drop.remove(runner, kind_of(runner, name).upper(), name)
        elif kind == "schema":
            runner.schemas.discard(name)
    access.dropped([o.object for o in owned])
    gone: list[Record] = [g for g in access.tables.grants.values() if g.grantee in roles]
    for policy in list(access.tables.policies.values()):
        left = tuple(name for name in policy.role_names if name not in roles)
        if left != policy.role_names:
            gone.append(policy)
            if left:
                access.change([policy._replace(roles=",".join(left))])
                gone.pop()
    if gone:
        access.change(gone=gone)
    return Result("DROP OWNED")


def change_token(runner: StatementRunner, statement: ChangeToken) -> Result:
    """CREATE TOKEN: the token is shown once, and its digest is kept. DROP TOKEN."""
    access, source = runner.access, statement.source
    who = access.who()
    known = access.tables.tokens.get(statement.name)
    if not statement.is_new:
        if known is None:
            if statement.may_miss:
                return Result("DROP TOKEN")
            hint = nearest(statement.name, access.tables.tokens)
            raise source.error(
                f"there is no token {statement.name!r}: {hint}", source.where(statement.name), NotFoundError
            )
        if who != known.role:
            access.check_creates_roles(who)
        access.change(gone=[known])
        return Result("DROP TOKEN")
    access.begin()
    if known is not None:
        raise source.error(
            f"there is a token {statement.name!r} already",
            source.where(statement.name),
            ConflictError,
            condition="duplicate-object",
        )
    role = access.role(statement.role or runner.settings.user)
    if who != role.name:
        access.check_creates_roles(who)
        if role.is_super:
            access.check_super(who, f"to make a token of {role.name!r}, who is")
    token = new_token()
    until = None if statement.valid_until is None else moment(source, statement.valid_until)
    access.change([Token(statement.name, role.name, token_digest(token), until)])
    return Result("CREATE TOKEN", pa.table({"token": [token]}))
