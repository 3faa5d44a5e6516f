"""Functions that say who may do what: has_table_privilege and its like.

Each takes a user or none, an object by its name or oid, and privileges with commas between them. The object may be a column, so
that a tool asks for all tables at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import NotFoundError
from tektite.expr import Expr, lit
from tektite.sql.access.access_control import DATABASE_OBJECT, schema_object, table_object
from tektite.sql.catalog.constant_lookup import looked_up
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.schemas import SYSTEM, stored_name
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

Objects = Callable[[CatalogContents], "tuple[Mapping[str, str], Mapping[int, str]]"]
"""The objects of a kind: by name, and by oid."""


def reader(scalars: Scalars, node: exp.Func, given: list[Expr], many: int) -> tuple[str | None, list[Expr]]:
    """The role whose privileges are asked for, and the other arguments. A call with one argument more names the role."""
    contents = scalars.context.contents()
    access = contents.access
    if len(given) <= many:
        return access.who(), given
    name = given[0].params[1] if given[0].op == "lit" else None
    if isinstance(name, int):
        name = contents.role_name(name)
    if name is None or given[0].op != "lit":
        return access.who(), given[1:]
    if name not in {role.name for role in contents.roles} and name != "public":
        raise scalars.source.error(f"there is no role {name!r}", node, NotFoundError)
    is_trusted = contents.settings.is_trusted and name == contents.settings.login
    return None if is_trusted or not access.is_configured else str(name), given[1:]


def asked(scalars: Scalars, node: exp.Func, given: list[Expr], objects: Objects, many: int = 2) -> Expr:
    """Whether somebody has one of some privileges on an object."""
    contents = scalars.context.contents()
    who, (object, *rest) = reader(scalars, node, given, many)
    said = rest[-1].params[1] if rest and rest[-1].op == "lit" else "SELECT"
    privileges = [part.strip().upper().removesuffix(" WITH GRANT OPTION") for part in str(said).split(",")]
    names, oids = objects(contents)
    access = contents.access

    def may(found: str) -> bool:
        return not found or any(access.may(who, privilege, found) for privilege in privileges)

    if scalars.type(object, node) == types.String:
        if object.op == "lit" and object.params[1] is not None and object.params[1] not in names:
            raise scalars.source.error(f"there is no such object: {object.params[1]!r}", node, NotFoundError)
        return looked_up(object, {name: may(found) for name, found in names.items()}, types.Bool)
    return looked_up(object, {oid: may(found) for oid, found in oids.items()}, types.Bool)


def tables(contents: CatalogContents) -> tuple[dict[str, str], dict[int, str]]:
    """Tables and views; those of the system may be read by everybody."""
    every = [*contents.relations, *contents.system]
    oids = {r.oid: "" if r.is_system else table_object(stored_name(r.schema, r.name)) for r in every}
    names = {f"{r.schema}.{r.name}": oids[r.oid] for r in every}
    shown = {shown.replace('"', ""): oids[oid] for oid, shown in contents.visible_names.items()}
    return {**names, **shown}, oids


def schemas(contents: CatalogContents) -> tuple[dict[str, str], dict[int, str]]:
    names = {name: "" if name in SYSTEM else schema_object(name) for name in contents.schemas}
    return names, {oid: names[name] for name, oid in contents.schemas.items()}


def databases(contents: CatalogContents) -> tuple[dict[str, str], dict[int, str]]:
    return {contents.settings.database: DATABASE_OBJECT}, {5: DATABASE_OBJECT}


def of_table(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """HAS_TABLE_PRIVILEGE([user,] table, privileges)."""
    return asked(scalars, node, given, tables)


def of_column(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """HAS_COLUMN_PRIVILEGE([user,] table, column, privileges): columns have the privileges of their table."""
    return asked(scalars, node, given, tables, 3)


def of_schema(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """HAS_SCHEMA_PRIVILEGE([user,] schema, privileges)."""
    return asked(scalars, node, given, schemas)


def of_database(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """HAS_DATABASE_PRIVILEGE([user,] database, privileges)."""
    return asked(scalars, node, given, databases)


def of_role(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """PG_HAS_ROLE([user,] role, privilege): USAGE is to have its rights, MEMBER to be able to take it."""
    contents = scalars.context.contents()
    who, (role, *rest) = reader(scalars, node, given, 2)
    is_member = bool(rest) and rest[-1].op == "lit" and "MEMBER" in str(rest[-1].params[1]).upper()
    access = contents.access

    def holds(name: str) -> bool:
        if access.is_super(who) or who is None:
            return True
        return access.is_member(who, name) if is_member else name in access.held(who)

    held = {role.name: holds(role.name) for role in contents.roles}
    if scalars.type(role, node) == types.String:
        return looked_up(role, held, types.Bool)
    return looked_up(role, {contents.role_oid(name): found for name, found in held.items()}, types.Bool, lit(holds("")))
