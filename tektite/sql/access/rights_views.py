"""Roles and rights as views that are kept up to date, which standing queries are joined with.

| view | a row says |
|---|---|
| holds (member, role) | the member has the rights of the role: of itself, of what it is granted, of everybody |
| readers (who, object) | who may read the table or use the schema; `*` is everything |
| bypass (who, object) | the policies of the table do not count for who |
| overseers (who, object) | who sees all of the system relation: superusers, and roles that were granted SELECT on it |
| sees (who, object) | who may read the table and use its schema |
| sees_all (who, object) | the same, and no policy of the table counts for who |

So a grant that is withdrawn is a change of the data like any other: what depended on it is retracted in the same epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.view import View
from tektite.sql.access.access_tables import PUBLIC, AccessTables
from tektite.sql.catalog.schemas import DEFAULT
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
OVERSEERS = f"""
SELECT holds.member AS who, grants.object FROM holds JOIN grants ON grants.grantee = holds.role
WHERE grants.privilege = 'SELECT' AND grants.grantee <> '{PUBLIC}'
UNION SELECT name, '{EVERYTHING}' FROM roles WHERE is_super
"""
SEES = f"""
SELECT of_tables.who, of_tables.object FROM (
    SELECT who, object, CASE WHEN object LIKE 'table %.%' THEN 'schema ' || split_part(substring(object, 7), '.', 1)
                             ELSE 'schema {DEFAULT}' END AS needed
    FROM readers WHERE object LIKE 'table %') AS of_tables
JOIN readers AS of_schemas ON of_schemas.who = of_tables.who AND of_schemas.object = of_tables.needed
"""
SEES_ALL = f"""
SELECT who, object FROM sees WHERE object NOT IN (SELECT object FROM secured WHERE is_enabled)
UNION SELECT sees.who, sees.object FROM sees JOIN bypass ON bypass.who = sees.who AND bypass.object = sees.object
UNION SELECT sees.who, sees.object FROM sees JOIN bypass ON bypass.who = sees.who AND bypass.object = '{EVERYTHING}'
"""
QUERIES = {
    "holds": (HOLDS, ()), "readers": (READERS, ("holds",)), "bypass": (BYPASS, ("holds",)),
    "overseers": (OVERSEERS, ("holds",)), "sees": (SEES, ("readers",)), "sees_all": (SEES_ALL, ("sees", "bypass")),
}  # fmt: skip
"""The query of each view, and the views that it reads."""


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
            text, below = QUERIES[name]
            read = {other: self.named(other) for other in below}
            (statement,) = parser.parse(text.strip())
            assert isinstance(statement, parser.Plain)
            planned = self._runner.bind_given(statement.source, statement.tree, {**given, **read})
            made = self._runner.collection(planned)
            found = self._runner.engine.install(f"{HIDDEN_PREFIX}access_{name}", made)
            self._views[name] = found
        return found
