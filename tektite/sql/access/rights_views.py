"""Roles and rights as views that are kept up to date, which standing queries are joined with.

| view | a row says |
|---|---|
| holds (member, role) | the member has the rights of the role: of itself, of what it is granted, of everybody |
| readers (who, object) | who may read the table or use the schema; `*` is everything |
| bypass (who, object) | the policies of the table do not count for who |

So a grant that is withdrawn is a change of the data like any other: what depended on it is retracted in the same epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.view import View
from tektite.sql.access.access_tables import PUBLIC, AccessTables
from tektite.sql.parse import parser

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

EVERYTHING = "*"
"""Stands for every object."""
HOLDS = f"""
WITH RECURSIVE found(member, role) AS (
    SELECT name, name FROM roles
    UNION
    SELECT found.member, members.role FROM found
    JOIN members ON members.member = found.role JOIN roles ON roles.name = members.member WHERE roles.inherits)
SELECT member, role FROM found UNION ALL SELECT name, '{PUBLIC}' FROM roles
"""
READERS = f"""
SELECT holds.member AS who, grants.object FROM holds JOIN grants ON grants.grantee = holds.role
WHERE grants.privilege IN ('SELECT', 'USAGE')
UNION SELECT holds.member, owners.object FROM holds JOIN owners ON owners.owner = holds.role
UNION SELECT name, '{EVERYTHING}' FROM roles WHERE is_super
"""
BYPASS = f"""
SELECT holds.member AS who, owners.object FROM holds JOIN owners ON owners.owner = holds.role
LEFT JOIN secured ON secured.object = owners.object WHERE NOT coalesce(secured.is_forced, false)
UNION SELECT name, '{EVERYTHING}' FROM roles WHERE is_super OR bypasses_policies
"""
QUERIES = {"holds": HOLDS, "readers": READERS, "bypass": BYPASS}


class RightsViews:
    """The views of one engine, each made when a standing query first needs it."""

    def __init__(self, runner: StatementRunner, tables: AccessTables) -> None:
        self._runner = runner
        self._tables = tables
        self._views: dict[str, View] = {}

    def named(self, name: str) -> View:
        """One of the views."""
        found = self._views.get(name)
        if found is None:
            given = dict(self._tables.tables)
            read: dict[str, View] = {} if name == "holds" else {"holds": self.named("holds")}
            (statement,) = parser.parse(QUERIES[name].strip())
            assert isinstance(statement, parser.Plain)
            planned = self._runner.bind_given(statement.source, statement.tree, {**given, **read})
            made = self._runner.collection(planned)
            found = self._runner.engine.install(f"{HIDDEN_PREFIX}access_{name}", made)
            self._views[name] = found
        return found
