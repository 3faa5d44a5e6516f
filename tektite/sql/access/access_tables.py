"""Roles, grants, owners and policies as tables that SQL does not show: standing queries are joined with them, and a storage keeps
them with the epochs.

A copy of each is held here, by key, for statements that are checked once. `change` writes tables and copies together, in an epoch
of its own. The tables are made when the first role is; an engine without roles has none of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_type_hints

from tektite.engine.core import HIDDEN_PREFIX, core_of
from tektite.engine.write_set import WriteSet
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.table import Table

PUBLIC = "public"
"""The role that everybody holds."""


class Role(NamedTuple):
    """A user, or a role that users hold."""

    name: str
    is_super: bool = False
    can_login: bool = False
    inherits: bool = True
    creates_roles: bool = False
    creates_schemas: bool = False
    bypasses_policies: bool = False
    verifier: str | None = None
    valid_until: datetime.datetime | None = None
    connection_limit: int | None = None
    row_limit: int | None = None
    """Rows that one statement may give."""
    memory_limit: int | None = None
    """Bytes that one statement may take."""
    query_limit: int | None = None
    """Standing queries that it may have at a time: materialized views and subscriptions."""
    is_described: bool = False
    """Whether it comes from the description of the server, at each start."""


class Membership(NamedTuple):
    """A member holds a role."""

    role: str
    member: str
    may_grant: bool = False
    """WITH ADMIN OPTION."""


class Grant(NamedTuple):
    """A privilege on an object, which is written with its kind: `table s.t`, `schema s`, `database tektite`."""

    object: str
    privilege: str
    grantee: str
    grantor: str = ""
    may_grant: bool = False
    """WITH GRANT OPTION."""


class Ownership(NamedTuple):
    """The owner of an object: the role that made it, which may do everything with it."""

    object: str
    owner: str


class RowPolicy(NamedTuple):
    """A policy on the rows of a table."""

    object: str
    name: str
    command: str = "ALL"
    is_permissive: bool = True
    roles: str = PUBLIC
    """Names with commas between them."""
    using: str | None = None
    check: str | None = None

    @property
    def role_names(self) -> tuple[str, ...]:
        return tuple(self.roles.split(","))


class SecuredTable(NamedTuple):
    """A table whose rows are seen by policies alone."""

    object: str
    is_enabled: bool = True
    is_forced: bool = False
    """Whether that holds for its owner, too."""


class Token(NamedTuple):
    """A token by which a program proves to be a user."""

    name: str
    role: str
    digest: str
    valid_until: datetime.datetime | None = None


Record: TypeAlias = Role | Membership | Grant | Ownership | RowPolicy | SecuredTable | Token

KEYS: dict[type[Any], tuple[str, int]] = {
    Role: ("roles", 1), Membership: ("members", 2), Grant: ("grants", 3), Ownership: ("owners", 1), RowPolicy: ("policies", 2),
    SecuredTable: ("secured", 1), Token: ("tokens", 1),
}  # fmt: skip
"""The name of each table, and how many of its columns are the key."""
TYPES: dict[type, Type] = {str: types.String, bool: types.Bool, int: types.Int, datetime.datetime: types.Timestamp}


def columns_of(record: type[Any]) -> dict[str, Type]:
    """The columns of a record's table."""
    hints = get_type_hints(record)
    return {name: TYPES[(get_args(hint) or (hint,))[0]] for name, hint in hints.items()}


class AccessTables:
    """The tables of one engine, and copies of their rows by key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.tables: dict[str, Table] = {}
        """The tables by name, once there are any."""
        self.roles: dict[str, Role] = {}
        self.members: dict[tuple[str, str], Membership] = {}
        self.grants: dict[tuple[str, str, str], Grant] = {}
        self.owners: dict[str, Ownership] = {}
        self.policies: dict[tuple[str, str], RowPolicy] = {}
        self.secured: dict[str, SecuredTable] = {}
        self.tokens: dict[str, Token] = {}
        storage = core_of(engine).storage
        if storage is not None and stored_name("roles") in storage.unclaimed:
            self.open()

    @property
    def are_open(self) -> bool:
        return bool(self.tables)

    def open(self) -> None:
        """Make the tables, or find those that are stored."""
        for record, (name, many) in KEYS.items():
            columns = columns_of(record)
            key = list(columns)[:many]
            made = self._engine.create_table(
                stored_name(name), columns, mode="upsert", primary_key=key, if_exists="keep"
            )
            self._copies(record).update({key_of(found): found for found in [record(*row) for row in made.rows()]})
            self.tables[name] = made

    def change(self, new: Iterable[Record] = (), gone: Iterable[Record] = ()) -> None:
        """Add or replace records, and remove others, in one epoch."""
        writes = WriteSet()
        added, removed = list(new), list(gone)
        replaced = {(type(record), key_of(record)) for record in added}
        removed = [record for record in removed if (type(record), key_of(record)) not in replaced]
        for verb, diff, records in (("remove", -1, removed), ("insert", 1, added)):
            for kind, (name, _) in KEYS.items():
                rows: list[Sequence[Any]] = [tuple(record) for record in records if type(record) is kind]
                if rows:
                    core_of(self.tables[name]).write(rows, None, diff, verb, writes)
        core_of(self._engine).commit(writes)
        for record in removed:
            self._copies(type(record)).pop(key_of(record), None)
        for record in added:
            self._copies(type(record))[key_of(record)] = record

    def _copies(self, record: type[Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = getattr(self, KEYS[record][0])
        return found


def key_of(record: Any) -> Any:
    """The key of a record: its first columns, or the first alone."""
    many = KEYS[type(record)][1]
    return record[0] if many == 1 else tuple(record[:many])


def stored_name(name: str) -> str:
    """The engine's name of a table."""
    return f"{HIDDEN_PREFIX}access_{name}"
