"""AccessControl: what an engine knows of roles and rights, and the questions that statements ask.

Without roles everything is allowed. With roles, a session is somebody: a role, or a program that is trusted, because it holds the
engine itself. A role may do what was granted to it, to a role that it holds, or to everybody; its own objects it may do
everything with; a superuser may do everything. Every role may read system relations, of which it sees its part, whatever was
granted. `version` changes with every change, so that whoever remembers an answer knows
when to ask again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, TektiteError
from tektite.sql.access.access_tables import (
    PUBLIC,
    AccessTables,
    Grant,
    Ownership,
    Record,
    Role,
    RowPolicy,
)
from tektite.sql.access.rights_views import RightsViews
from tektite.sql.access.system_policies import SYSTEM_OBJECTS, SYSTEM_POLICIES
from tektite.sql.catalog.schemas import DATABASE, DEFAULT, name_parts
from tektite.sql.catalog.settings import SessionSettings
from tektite.sql.parse.places import nearest

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.sql.bind.definitions import Definition
    from tektite.sql.statements.runner import StatementRunner

PRIVILEGES = {
    "table": ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
    "schema": ("USAGE", "CREATE"),
    "database": ("CONNECT", "CREATE", "TEMPORARY"),
}
"""The privileges on each kind of object."""
LETTERS = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
           "USAGE": "U", "CREATE": "C", "CONNECT": "c", "TEMPORARY": "T"}  # fmt: skip
"""The letter of each privilege in PostgreSQL's access lists."""


class PermissionDenied(TektiteError):
    """Somebody may not do what a statement does."""

    code = "permission-denied"


def table_object(name: str) -> str:
    """A table, a view or a materialised view as an object of grants; `name` is its name in the engine."""
    return f"table {name}"


def schema_object(name: str) -> str:
    """A schema as an object of grants."""
    return f"schema {name}"


DATABASE_OBJECT = f"database {DATABASE}"


class Ongoing(threading.local):
    """The state of the calling thread: what it is dropping and restoring."""

    dropped: list[str] | None = None
    """What it has dropped whose rights go later; None where they go at once."""
    is_restoring = False
    """Whether it makes again what has its rights already."""


class AccessControl:
    """Roles and rights of one engine.

    A storage has the rights on an object before it has the object, and loses them after it: whatever ends the process, nothing is
    there without its owner. Rights that are left without their object go when somebody makes one of that name.
    """

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self.tables = AccessTables(runner.engine)
        self.views = RightsViews(runner, self.tables)
        self.version = 0
        """Grows with every change."""
        self._held: dict[str, frozenset[str]] = {}
        self._ongoing = Ongoing()
        core_of(runner.engine).hooks.owners.append(lambda name: self.owner(table_object(name)))

    @property
    def is_configured(self) -> bool:
        """Whether there are roles."""
        return self.tables.are_open

    def begin(self) -> None:
        """Let there be roles: what PostgreSQL grants everybody to begin with is granted."""
        if not self.is_configured:
            self.tables.open()
            self.change([Grant(schema_object(DEFAULT), "USAGE", PUBLIC), Grant(DATABASE_OBJECT, "CONNECT", PUBLIC)])

    def change(self, new: Iterable[Record] = (), gone: Iterable[Record] = ()) -> None:
        """Add or replace records, and remove others."""
        self.tables.change(new, gone)
        self.version += 1
        self._held.clear()

    # ------------------------------------------------------------------ who

    def who(self) -> str | None:
        """The role whose rights the caller's statements have; None for a superuser."""
        return self.who_is(self._runner.settings) if self.is_configured else None

    def who_is(self, settings: SessionSettings) -> str | None:
        """The role whose rights the statements of a session have; None for a superuser."""
        if not self.is_configured or (settings.is_trusted and settings.user == settings.login):
            return None
        return settings.user

    def role(self, name: str) -> Role:
        """A role by its name."""
        found = self.tables.roles.get(name)
        if found is None:
            raise NotFoundError(f"there is no role {name!r}: {nearest(name, self.tables.roles)}")
        return found

    def is_super(self, who: str | None) -> bool:
        """Whether somebody may do everything."""
        if who is None:
            return True
        role = self.tables.roles.get(who)
        return role is not None and role.is_super

    def held(self, who: str) -> frozenset[str]:
        """The roles whose rights somebody has: itself, those it holds, and everybody's. Of a role that there is not, none."""
        found = self._held.get(who)
        if found is None:
            found = self._held[who] = self._closure(who, inheriting=True)
        return found

    def is_member(self, who: str | None, role: str) -> bool:
        """Whether somebody may act as a role."""
        return self.is_super(who) or (who is not None and role in self._closure(who, inheriting=False))

    def _closure(self, who: str, inheriting: bool) -> frozenset[str]:
        roles = self.tables.roles
        if who not in roles:
            return frozenset()
        found, waiting = {who, PUBLIC}, [who]
        while waiting:
            member = waiting.pop()
            if inheriting and not roles[member].inherits:
                continue
            more = [m.role for m in self.tables.members.values() if m.member == member and m.role not in found]
            found.update(more)
            waiting.extend(role for role in more if role in roles)
        return frozenset(found)

    # ------------------------------------------------------------------ what they may do

    def may(self, who: str | None, privilege: str, object: str) -> bool:
        """Whether somebody has a privilege on an object."""
        if self.is_super(who):
            return True
        assert who is not None
        roles = self.held(who)
        owner = self.tables.owners.get(object)
        if owner is not None and owner.owner in roles:
            return True
        if roles and privilege == "SELECT" and object in SYSTEM_OBJECTS:
            return True
        grants = self.tables.grants
        return any([(object, privilege, role) in grants for role in roles])

    def knows(self, who: str | None, name: str) -> bool:
        """Whether somebody is told that there is a table or view: it owns it, or has some privilege on it."""
        if not self.is_configured or self.is_super(who):
            return True
        object = table_object(name)
        return self.owns(who, object) or any([self.may(who, each, object) for each in PRIVILEGES["table"]])

    def knows_schema(self, who: str | None, name: str) -> bool:
        """Whether somebody is told that there is a schema: it owns it, or has some privilege on it."""
        if not self.is_configured or self.is_super(who):
            return True
        return any([self.may(who, each, schema_object(name)) for each in PRIVILEGES["schema"]])

    def owns(self, who: str | None, object: str) -> bool:
        """Whether an object is somebody's, by itself or by a role that it holds."""
        if self.is_super(who):
            return True
        owner = self.tables.owners.get(object)
        return who is not None and owner is not None and owner.owner in self.held(who)

    def owner(self, object: str) -> str | None:
        """The owner of an object; None if it belongs to superusers alone."""
        found = self.tables.owners.get(object)
        return None if found is None else found.owner

    def check(self, who: str | None, privilege: str, object: str) -> None:
        """Refuse what somebody has no privilege for."""
        if not self.may(who, privilege, object):
            kind, _, name = object.partition(" ")
            raise PermissionDenied(
                f"permission denied for {kind} {name!r}: {who!r} has no {privilege} on it. Its owner or a superuser grants it: "
                f"GRANT {privilege} ON {'' if kind == 'table' else kind.upper() + ' '}{name} TO {who}"
            )

    def check_owner(self, who: str | None, object: str) -> None:
        """Refuse what only the owner may do."""
        if not self.owns(who, object):
            kind, _, name = object.partition(" ")
            raise PermissionDenied(f"permission denied: {who!r} must be owner of {kind} {name!r}")

    def check_super(self, who: str | None, what: str) -> None:
        """Refuse what only a superuser may do."""
        if not self.is_super(who):
            raise PermissionDenied(f"permission denied: {who!r} must be superuser {what}")

    def check_creates_roles(self, who: str | None) -> None:
        """Refuse to let somebody make roles who may not."""
        if not self.is_super(who) and not (who in self.tables.roles and self.role(str(who)).creates_roles):
            raise PermissionDenied(f"permission denied to create or change roles: {who!r} has no CREATEROLE")

    def needs(self, who: str | None, found: Table | View | Definition) -> list[tuple[str | None, str]]:
        """The objects that a read of a relation needs, each with its reader. A view needs what its owner reads for it."""
        if not self.is_configured or who is None:
            return []
        wanted: dict[tuple[str | None, str], None] = {}
        system = core_of(self._runner.engine).system.names()

        def visit(reader: str | None, relation: Any) -> None:
            name = relation.name
            wanted[(reader, table_object(name))] = None
            if name not in system:  # what the engine says of itself is in no schema that anybody has rights on
                wanted[(reader, schema_object(name_parts(name)[0]))] = None
            owner = self.owner(table_object(name))
            if owner is not None:
                for read in sorted(self._runner.named_by(name)):
                    below = self._runner.relation_stored(read)
                    if below is not None and (owner, table_object(read)) not in wanted:
                        visit(owner, below)

        visit(who, found)
        return list(wanted)

    def check_read(self, who: str | None, found: Table | View | Definition) -> None:
        """Refuse to let somebody read a relation who may not."""
        for reader, object in self.needs(who, found):
            privilege = "USAGE" if object.startswith("schema ") else "SELECT"
            if reader == who:
                self.check(who, privilege, object)
            elif not self.may(reader, privilege, object):
                raise PermissionDenied(
                    f"permission denied for table {found.name!r}: {reader!r}, who owns it or a view below it, may not read all "
                    "that it reads"
                )

    def sees_all(self, who: str | None, name: str) -> bool:
        """Whether somebody may read a table or view, and policies hide nothing of it."""
        schema = schema_object(name_parts(name)[0])
        may = self.may(who, "SELECT", table_object(name)) and self.may(who, "USAGE", schema)
        return may and self.bypasses(who, name)

    def check_create(self, who: str | None, schema: str) -> None:
        """Refuse to let somebody make something in a schema who may not."""
        if self.is_configured:
            self.check(who, "CREATE", schema_object(schema))

    # ------------------------------------------------------------------ policies

    def is_system(self, name: str) -> bool:
        """Whether what users see of a relation is what the policies of `system_policies` show."""
        return name in SYSTEM_POLICIES

    def is_secured(self, name: str) -> bool:
        """Whether a table's rows are seen by policies alone."""
        if self.is_system(name):
            return True
        found = self.tables.secured.get(table_object(name))
        return found is not None and found.is_enabled

    def bypasses(self, who: str | None, name: str) -> bool:
        """Whether the policies of a table do not count for somebody."""
        if self.is_super(who) or not self.is_secured(name):
            return True
        assert who is not None
        if self.is_system(name):
            return any((table_object(name), "SELECT", role) in self.tables.grants for role in self.held(who) - {PUBLIC})
        role = self.tables.roles.get(who)
        if role is not None and role.bypasses_policies:
            return True
        found = self.tables.secured.get(table_object(name))
        return self.owns(who, table_object(name)) and found is not None and not found.is_forced

    def policies(self, name: str) -> list[RowPolicy]:
        """The policies of a table, in the order of their names."""
        return [policy for key, policy in sorted(self.tables.policies.items()) if key[0] == table_object(name)]

    def allows_directly(self, who: str | None, privilege: str, found: Table | View) -> bool:
        """Whether somebody may read or write a relation without a plan, which would have the conditions of its policies."""
        if who is None or not self.is_configured:
            return True
        if not self.bypasses(who, found.name):
            return False
        needs = self.needs(who, found) if privilege == "SELECT" else [(who, table_object(found.name))]
        return all([self.may(by, "USAGE" if on.startswith("schema ") else privilege, on) for by, on in needs])

    # ------------------------------------------------------------------ what comes and goes

    def created(self, object: str, is_new: bool = True) -> None:
        """Something is made: whoever makes it owns it, and what was said of another one of that name is gone, unless it takes
        the place of that one.
        """
        who = self.who()
        # A program that holds the engine makes again what its users have rights on.
        if who is not None and is_new and not self._ongoing.is_restoring:
            self.change(
                [Ownership(object, who)], [one for one in self._said_of({object}) if type(one) is not Ownership]
            )

    @contextmanager
    def creating(self, object: str, is_new: bool) -> Iterator[None]:
        """`created`, around what makes something that is durable at once; taken back if that fails."""
        self.created(object, is_new)
        try:
            yield
        except BaseException:
            if is_new:
                self.dropped([object])
            raise

    def give(self, objects: Iterable[str], owner: str) -> None:
        """Let a role own objects. What was granted on one to its owner, before or from here on, goes along with owning it."""
        tables, gone = self.tables, []
        names = list(objects)
        for object in names:
            owners = {owner, self.owner(object)}
            gone += [grant for grant in tables.grants.values() if grant.object == object and grant.grantee in owners]
        self.change([Ownership(object, owner) for object in names], gone)

    def dropped(self, objects: Iterable[str]) -> None:
        """Objects are gone, and what was said of them."""
        if not self.is_configured:
            return
        if self._ongoing.dropped is not None:
            self._ongoing.dropped += objects
            return
        records = self._said_of({*objects})
        if records:
            self.change(gone=records)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Within the block, objects that the calling thread makes keep the rights that are recorded for them."""
        self._ongoing.is_restoring = True
        try:
            yield
        finally:
            self._ongoing.is_restoring = False

    @contextmanager
    def dropping_later(self) -> Iterator[None]:
        """Within the block, objects that the calling thread drops keep their rights. They lose them at its end, when their
        other records are gone.
        """
        dropped = self._ongoing.dropped = list[str]()
        try:
            yield
        finally:
            self._ongoing.dropped = None
            self.dropped(dropped)

    def _said_of(self, names: set[str]) -> list[Record]:
        tables = self.tables
        records: list[Record] = [o for o in tables.owners.values() if o.object in names]
        records += [grant for grant in tables.grants.values() if grant.object in names]
        records += [policy for policy in tables.policies.values() if policy.object in names]
        records += [secured for secured in tables.secured.values() if secured.object in names]
        return records

    def renamed(self, before: str, after: str) -> None:
        """An object has another name: what was said of it is said of that."""
        if not self.is_configured or before == after:
            return
        tables = self.tables
        found: list[Any] = [o for o in tables.owners.values() if o.object == before]
        found += [grant for grant in tables.grants.values() if grant.object == before]
        found += [policy for policy in tables.policies.values() if policy.object == before]
        found += [secured for secured in tables.secured.values() if secured.object == before]
        if found:
            self.change([record._replace(object=after) for record in found], found)

    def check_role_unused(self, name: str) -> None:
        """Refuse to drop a role that owns something or was granted something."""
        owned = [o.object for o in self.tables.owners.values() if o.owner == name]
        granted = [g.object for g in self.tables.grants.values() if name == g.grantee]
        named = [f"policy {p.name}" for p in self.tables.policies.values() if name in p.role_names]
        for objects, why in ((owned, "owns"), (granted, "has privileges on"), (named, "is named in")):
            if objects:
                raise ConflictError(
                    f"cannot drop role {name!r}: it {why} {', '.join(sorted(set(objects)))}; REASSIGN OWNED BY and DROP OWNED BY "
                    "take that away"
                ).about(condition="dependent-objects-still-exist")

    def access_list(self, object: str) -> str | None:
        """The grants on an object as PostgreSQL writes them; None if there are none."""
        found: dict[tuple[str, str], str] = {}
        kind = object.partition(" ")[0]
        owner = self.owner(object) or ""
        grants = [g for g in self.tables.grants.values() if g.object == object]
        if not grants:
            return None
        if owner:
            found[(owner, owner)] = "".join(LETTERS[p] for p in PRIVILEGES[kind])
        for grant in sorted(grants, key=lambda g: PRIVILEGES[kind].index(g.privilege)):
            key = ("" if grant.grantee == PUBLIC else grant.grantee, grant.grantor)
            found[key] = found.get(key, "") + LETTERS[grant.privilege] + "*" * grant.may_grant
        return "{" + ",".join(f"{grantee}={letters}/{grantor}" for (grantee, grantor), letters in found.items()) + "}"
