"""The condition under which a row of a protected table is seen or written, as a tree of SQL over the table's columns.

A row is seen if a permissive policy allows it and no restrictive one forbids it. A statement that is run once is checked against
the roles as they are: its condition holds what counts for its user. A standing query follows the roles: its condition asks the
views of `rights_views` whether a policy counts for the user, so that rows come and go with memberships.

In a policy, the name of a relation can stand as a condition: `USING (may_read(current_user, id))` asks whether the relation, such
as one that rules of Datalog define, has a row with these values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.sql.access.access_tables import PUBLIC, RowPolicy
from tektite.sql.access.rights_trees import exists_in, mine, named_column, rights_table
from tektite.sql.access.rights_views import EVERYTHING
from tektite.sql.access.system_policies import CONDITIONS, SYSTEM_POLICIES, SystemPolicy
from tektite.sql.catalog.schemas import name_parts
from tektite.sql.parse import parser

if TYPE_CHECKING:
    from tektite.sql.access.access_control import AccessControl

RelationColumns = Callable[[str], "tuple[str, ...] | None"]
"""The columns of a relation by its name; None if there is no such relation."""


def parsed_condition(text: str) -> exp.Expr:
    """The tree of a condition as a policy writes it."""
    (statement,) = parser.parse(f"SELECT ({text}) AS condition")
    assert isinstance(statement, parser.Plain)
    found: exp.Expr = statement.tree.expressions[0].this
    return found


@dataclass(frozen=True)
class SeenRows:
    """Some of the rows that a reader sees."""

    readers: exp.Select | None
    """One row for a reader who sees them; None if that is known already."""
    conditions: list[exp.Expr]
    """Conditions on the rows."""
    hides: tuple[str, ...] = ()
    """Columns that are NULL to the reader."""


class PolicyConditions:
    """Conditions for one reader of one table."""

    def __init__(
        self, access: AccessControl, table: str, who: str, is_standing: bool, columns: RelationColumns
    ) -> None:
        self._access = access
        self._table = table
        self._who = who
        self._is_standing = is_standing
        self._columns = columns

    def seen(self, command: str) -> exp.Expr | None:
        """The condition on rows that a command reads: SELECT, or those that UPDATE and DELETE change; None if all are seen."""
        if not self._is_standing and self._access.bypasses(self._who, self._table):
            return None
        found = self._combined("SELECT", is_new=False)
        return found if command == "SELECT" else both(found, self._combined(command, is_new=False))

    def branches(self) -> list[SeenRows]:
        """The rows that a standing query sees, in parts: each row belongs to exactly one of them.

        The first is of readers for whom policies do not count; then there is one for each permissive policy. Apart, an equality
        of a policy is a key to join by. Together they would be compared with every reader.
        """
        system = SYSTEM_POLICIES.get(self._table)
        view = "bypass" if system is None else "overseers"
        bypass = exists(view, "who", "object", (EVERYTHING, f"table {self._table}"))
        found = [SeenRows(readers_where(bypass), [])]
        if system is not None:
            bound = exp.Not(this=bypass)
            shown = [(self.condition(policy, policy.using), policy.hides) for policy in system]
            return found + [SeenRows(readers_where(bound.copy()), [where], hides) for where, hides in shown]
        allowed, limits = self._parts("SELECT", is_new=False)
        before: list[exp.Expr] = []
        for condition in allowed:
            parts = [exp.Paren(this=part.copy()) for part in [*before, condition, *limits]]
            found.append(SeenRows(readers_where(exp.Not(this=bypass.copy())), [*parts]))
            known = exp.Coalesce(this=exp.Paren(this=condition.copy()), expressions=[exp.false()])
            before.append(exp.Not(this=known))
        return found

    def written(self, command: str, is_read: bool) -> exp.Expr | None:
        """The condition on rows that INSERT or UPDATE leaves behind; with `is_read`, they have to be seen as well."""
        found = self._combined(command, is_new=True)
        if is_read or command == "UPDATE":
            found = both(found, self._combined("SELECT", is_new=False))
        return None if self._access.bypasses(self._who, self._table) else found

    def _combined(self, command: str, is_new: bool) -> exp.Expr:
        """The combined condition of the policies for a command."""
        allowed, limits = self._parts(command, is_new)
        found: exp.Expr = exp.false() if not allowed else exp.or_(*allowed, copy=False)
        return exp.and_(found, *limits, copy=False) if limits else found

    def _parts(self, command: str, is_new: bool) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """The conditions of the permissive policies for a command, and those of the restrictive ones."""
        allowed: list[exp.Expr] = []
        limits: list[exp.Expr] = []
        for policy in self._access.policies(self._table):
            text = policy.check if is_new and policy.check is not None else policy.using
            if policy.command not in ("ALL", command) or text is None:
                continue
            counts = self._counts(policy)
            if counts is False:
                continue
            condition: exp.Expr = exp.Paren(this=self.condition(policy, text))
            if policy.is_permissive:
                allowed.append(condition if counts is True else both(counts, condition))
            elif counts is True:
                limits.append(condition)
            else:
                limits.append(exp.Paren(this=exp.Or(this=exp.Not(this=exp.Paren(this=counts)), expression=condition)))
        return allowed, limits

    def _counts(self, policy: RowPolicy) -> bool | exp.Expr:
        """Whether a policy counts for the reader."""
        if PUBLIC in policy.role_names:
            return True
        if not self._is_standing:
            return bool(self._access.held(self._who) & set(policy.role_names))
        return exists("holds", "member", "role", policy.role_names)

    def condition(self, policy: RowPolicy | SystemPolicy, text: str) -> exp.Expr:
        """The condition of one policy."""
        try:
            tree = exp.Paren(this=parsed_condition(text))
        except TektiteError as error:
            raise error.reworded(f"in policy {policy.name!r} of {self._table!r}: {error}") from None
        for call in list(tree.find_all(exp.Anonymous)):
            name, given = call.name.lower(), list(call.expressions)
            if name == "pg_has_role" and len(given) >= 2:
                call.replace(role_held(list(map(self._qualified, given))))
                continue
            if isinstance(policy, SystemPolicy) and name in CONDITIONS:
                call.replace(CONDITIONS[name](self._qualified(given[0])))
                continue
            columns = self._columns(name)
            if columns is not None and len(columns) == len(given):
                call.replace(row_of(name, columns, list(map(self._qualified, given))))
        found: exp.Expr = tree.this
        return found

    def _qualified(self, value: exp.Expr) -> exp.Expr:
        """A value whose columns are the table's, also where another relation has columns of their names."""
        found = value.copy()
        for named in [found] if isinstance(found, exp.Column) else found.find_all(exp.Column):
            if not named.args.get("table") and named.name.lower() != "user":
                named.set("table", exp.to_identifier(name_parts(self._table)[1], quoted=True))
        return found


def both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """The conjunction of two conditions."""
    return exp.And(this=exp.Paren(this=one), expression=exp.Paren(this=other))


def exists(view: str, who: str, what: str, values: tuple[str, ...]) -> exp.Expr:
    """Whether a view of rights has a row of the reader with one of the values."""
    right = exp.In(this=named_column(what), expressions=[exp.Literal.string(value) for value in values])
    return exists_in(rights_table(view), mine(who), right)


def role_held(given: list[exp.Expr]) -> exp.Expr:
    """pg_has_role(user, role, privilege) as a look at the roles."""
    who, role = given[:2]
    return exists_in(
        rights_table("holds"),
        exp.EQ(this=named_column("member"), expression=who),
        exp.EQ(this=named_column("role"), expression=role),
    )


def row_of(name: str, columns: tuple[str, ...], given: list[exp.Expr]) -> exp.Expr:
    """Whether a relation has a row with some values."""
    alias = exp.TableAlias(this=exp.to_identifier("#r", quoted=True))
    relation = exp.Table(this=exp.to_identifier(name), alias=alias)
    parts = [exp.EQ(this=named_column(title), expression=value) for title, value in zip(columns, given, strict=True)]
    return exists_in(relation, *parts)


def readers_where(condition: exp.Expr) -> exp.Select:
    """One row if a condition holds of the reader."""
    one = exp.alias_(exp.Literal.number(1), "#one", quoted=True)
    return exp.Select(expressions=[one], where=exp.Where(this=condition))
