"""SessionRights: what the user of a session may do, for requests that do not go through statements.

A statement is checked where it is bound. A request for a table by its name is checked here, each time. Where policies say which
rows the user sees, the request is answered by the statement that says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import NotFoundError, TektiteError
from tektite.server.web.answers import described
from tektite.sql import runner
from tektite.sql.access.access_control import PermissionDenied, table_object
from tektite.sql.access.system_policies import SYSTEM_POLICIES
from tektite.sql.bind.definitions import Definition
from tektite.sql.catalog.schemas import name_parts, sql_name
from tektite.sql.parse.places import nearest
from tektite.sql.statements.disclosure import disclosed, hidden_error, sees_below
from tektite.sql.statements.table_writes import check_new_rows, check_write

if TYPE_CHECKING:
    from tektite.server.sessions import ClientSession


class SessionRights:
    """The rights of one session's user. All methods but `is_bound` are called in the session, with the engine's lock held."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._sql = runner(session.server.engine)

    @property
    def who(self) -> str | None:
        """The role whose rights count; None for a superuser."""
        return self._sql.access.who_is(self._session.settings)

    @property
    def is_bound(self) -> bool:
        """Whether rights are checked."""
        return self.who is not None

    def relation(self, name: str, kind: str | None = None) -> Table | View:
        """A table or a view by its name. Who has no right to it is not told what it is, and hears of no other names."""
        engine = self._session.server.engine
        tables, views = engine.tables, engine.views
        if self.is_bound and name not in SYSTEM_POLICIES and not self._sql.access.knows(self.who, name):
            if name in (tables if kind == "table" else views if kind == "view" else (*tables, *views)):
                self._sql.access.check(self.who, "SELECT", table_object(name))
            told = self._sql.visible() if kind is None else self.visible(kind)
            what = "table or view" if kind is None else kind
            raise NotFoundError(f"there is no {what} {name[:100]!r}: {nearest(name, told)}")
        if kind == "table" or (kind is None and (name in tables or name in SYSTEM_POLICIES)):
            return engine.table(name)
        try:
            return engine.view(name)
        except NotFoundError:
            if kind is not None:
                raise
            raise NotFoundError(f"there is no table or view {name[:100]!r}") from None

    def readable(self, name: str) -> Table | View | Definition:
        """The table or view of a name that a read can name, also a view that is only a definition."""
        found = self._sql.definitions.get(name)
        if found is None:
            return self.relation(name)
        if not self._sql.access.knows(self.who, name):
            self._sql.access.check(self.who, "SELECT", table_object(name))
        return found

    def described(self, name: str, kind: str | None) -> dict[str, Any]:
        """Describes a relation to a client."""
        found = self.readable(name) if kind != "table" else self.relation(name, kind)
        if not isinstance(found, Definition):
            return described(found if kind is None else self.relation(name, kind))
        schema = self._sql.described(found)
        time = core_of(self._session.server.engine).epoch - 1
        return {
            "name": name, "kind": "view", "columns": list(schema.names), "types": [str(kind) for kind in schema.types],
            "time": time,
        }  # fmt: skip

    def key_columns(self, found: Table | View | Definition) -> list[str]:
        """The columns by which rows are looked up, the first ones first."""
        if isinstance(found, Definition):
            return list(self._sql.described(found).names)
        return [found.schema.names[at] for at in core_of(found).columns]

    def table(self, name: str) -> Table:
        """A table by its name, as `relation` finds it."""
        found = self.relation(name, "table")
        assert isinstance(found, Table)
        return found

    def view(self, name: str) -> View:
        """A view by its name, as `relation` finds it."""
        found = self.relation(name, "view")
        assert isinstance(found, View)
        return found

    def visible(self, kind: str) -> list[str]:
        """The names of the tables, or of the views, that the user is told of."""
        engine = self._session.server.engine
        names = engine.tables if kind == "table" else engine.views
        return [name for name in names if self._sql.access.knows(self.who, name)]

    def reads_all(self, found: Table | View | Definition) -> TypeGuard[Table | View]:
        """Whether all rows that a relation has are the user's to see; refuses one that it may not read. A definition has none."""
        if self.is_bound:
            self._sql.access.check_read(self.who, found)
        if isinstance(found, Definition):
            return False
        return not self.is_bound or self._sql.access.bypasses(self.who, found.name)

    def may_read(self, name: str) -> bool:
        """Whether the user has the privilege to read a relation."""
        return self._sql.access.may(self.who, "SELECT", table_object(name))

    def seen_in_part(self) -> list[str]:
        """The system relations of which the user sees what is about what it may read, and not all."""
        return [name for name in SYSTEM_POLICIES if not self._sql.access.bypasses(self.who, name)]

    def check_definition(self, found: View) -> None:
        """Refuse to tell how a view is computed, unless the user may read it and all that it reads."""
        access, who = self._sql.access, self.who
        if who is None:
            return
        access.check_read(who, found)
        if not sees_below(self._sql, who, [found.name]):
            raise PermissionDenied(
                f"permission denied: a plan tells sizes and constants of what {found.name!r} reads, and not all of that is for "
                f"{who!r}"
            )

    def disclosed(self, error: BaseException) -> BaseException:
        """An error as the user may know it, of a request of which is not known what it reads. May be called without the engine's
        lock.
        """
        if not isinstance(error, TektiteError) or self._sql.access.is_super(self.who):
            return error
        return hidden_error(error)

    def disclosure(self, names: Sequence[str] | None) -> Callable[[TektiteError], TektiteError]:
        """A function that removes from errors of a query what the present user may not see of the relations that it reads."""
        sql, who = self._sql, self.who
        return lambda error: disclosed(sql, who, names, error)

    def rows(self, found: Table | View | Definition, condition: str = "", values: tuple[object, ...] = ()) -> pa.Table:
        """The rows of a relation that the user sees, and that a condition leaves."""
        parameters = {str(at): value for at, value in enumerate(values, 1)}
        table = self._sql.run(f"SELECT * FROM {sql_name(found.name)} {condition}", parameters).table
        assert table is not None
        return table

    def check_insert(self, table: Table, rows: pa.Table | None = None) -> bool:
        """Refuse an insert that the user may not make; whether its rows have to be checked by this once they are known."""
        check_write(self._sql, table, "INSERT")
        if not self.is_bound or self._sql.access.bypasses(self.who, table.name):
            return False
        if rows is not None:
            check_new_rows(self._sql, table, rows, "INSERT")
        return True

    def check_remove(self, table: Table) -> None:
        """Refuse to let the user remove rows by their values, which tells whether they are there; where policies count, DELETE
        does that.
        """
        check_write(self._sql, table, "DELETE", is_read=True)
        if self.is_bound and not self._sql.access.bypasses(self.who, table.name):
            self._sql.access.check_super(
                self.who, f"to remove given rows of {table.name!r}, which has policies: DELETE FROM asks them"
            )

    def check_create(self, name: str) -> None:
        """Refuse a table or view that the user may not make."""
        self._sql.access.check_create(self.who, name_parts(name)[0])

    def creating(self, name: str, is_new: bool) -> AbstractContextManager[None]:
        """Around what makes something for the user."""
        return self._sql.access.creating(table_object(name), is_new)

    def check_owner(self, name: str) -> None:
        """Refuse what only the owner of a relation may do."""
        self._sql.access.check_owner(self.who, table_object(name))

    def dropped(self, name: str) -> None:
        """A relation is gone."""
        self._sql.access.dropped([table_object(name)])

    def advance(self, to: int | None) -> int:
        """Close the open epoch, or all before a time, which only superusers choose: a time that is far away is everybody's."""
        if to is not None:
            self.check_super("to choose the time to which it advances; without one, the open epoch is closed")
        return self._session.server.engine.advance(to)

    def check_super(self, what: str) -> None:
        """Refuse what only those may do who may do everything."""
        self._sql.access.check_super(self.who, what)

    def check_rules(self) -> None:
        """Refuse rules of Datalog, attributes and facts to those who may not do everything: rules read tables as they are. What
        they define can be granted.
        """
        self.rules_check()()

    def rules_check(self) -> Callable[[], None]:
        """A check that raises when the present user may not use rules."""
        access, who = self._sql.access, self.who
        return lambda: access.check_super(
            who, "to use rules, attributes and facts; what rules define is granted by GRANT SELECT"
        )

    @property
    def may_use_rules(self) -> bool:
        """Whether rules are the user's to use."""
        return self._sql.access.is_super(self.who)
