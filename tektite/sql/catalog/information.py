"""The rows of information_schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tektite.sql.access.access_control import schema_object, table_object
from tektite.sql.access.access_tables import PUBLIC
from tektite.sql.catalog.contents import CatalogContents, ColumnEntry, RelationEntry
from tektite.sql.catalog.pg_relations import CatalogRows, Row, every
from tektite.sql.catalog.pg_types import PG_TYPES, pg_type
from tektite.sql.catalog.schemas import stored_name
from tektite.values.types import DecimalType

KINDS = {"r": "BASE TABLE", "v": "VIEW"}
CONSTRAINTS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK"}


def catalog(contents: CatalogContents) -> str:
    """The name of the database."""
    return contents.settings.database


def yes(condition: bool) -> str:
    """A truth value as the standard writes it."""
    return "YES" if condition else "NO"


def information_schema_catalog_name(contents: CatalogContents) -> Iterator[Row]:
    yield {"catalog_name": catalog(contents)}


def schemata(contents: CatalogContents) -> Iterator[Row]:
    for name in contents.schemas:
        yield {
            "catalog_name": catalog(contents),
            "schema_name": name,
            "schema_owner": contents.role_name(contents.owner_oid(schema_object(name))),
        }


def tables(contents: CatalogContents) -> Iterator[Row]:
    """Tables and views, and materialised views as views: tools that list relations find them nowhere else."""
    for r in every(contents):
        if r.kind != "i":
            yield {
                "table_catalog": catalog(contents), "table_schema": r.schema, "table_name": r.name,
                "table_type": KINDS.get(r.kind, "VIEW"), "is_insertable_into": yes(r.kind == "r" and not r.is_system),
                "is_typed": "NO",
            }  # fmt: skip


def columns(contents: CatalogContents) -> Iterator[Row]:
    for r in every(contents):
        for c in r.columns if r.kind != "i" else ():
            yield {
                "table_catalog": catalog(contents), "table_schema": r.schema, "table_name": r.name, "column_name": c.name,
                "ordinal_position": c.number, "column_default": c.default, "is_nullable": yes(not c.required),
                "udt_catalog": catalog(contents), "udt_schema": "pg_catalog", "dtd_identifier": str(c.number),
                "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO", "is_generated": "NEVER",
                "is_updatable": yes(r.kind == "r" and not r.is_system), **typed(r, c),
            }  # fmt: skip


def typed(relation: RelationEntry, column: ColumnEntry) -> dict[str, Any]:
    """The columns of `information_schema.columns` that describe a type."""
    found = PG_TYPES.get(column.declared, PG_TYPES["text"]) if relation.is_system else pg_type(column.type)
    said: dict[str, Any] = {"data_type": "ARRAY" if found.category == "A" else found.shown, "udt_name": found.name}
    if isinstance(column.type, DecimalType):
        said |= {"numeric_precision": column.type.precision, "numeric_precision_radix": 10,
                 "numeric_scale": column.type.scale}  # fmt: skip
    elif found.name in ("int2", "int4", "int8"):
        said |= {"numeric_precision": found.length * 8, "numeric_precision_radix": 2, "numeric_scale": 0}
    elif found.name == "float8":
        said |= {"numeric_precision": 53, "numeric_precision_radix": 2}
    elif found.name in ("date", "time", "timestamp", "timestamptz", "interval"):
        said["datetime_precision"] = 0 if found.name == "date" else 6
    elif found.name == "text":
        said["character_octet_length"] = 1 << 30
    return said


def views(contents: CatalogContents) -> Iterator[Row]:
    for r in every(contents):
        if r.kind in ("v", "m"):
            yield {
                "table_catalog": catalog(contents), "table_schema": r.schema, "table_name": r.name,
                "view_definition": r.definition or None, "check_option": "NONE", "is_updatable": "NO",
                "is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO",
                "is_trigger_insertable_into": "NO",
            }  # fmt: skip


def named_constraint(contents: CatalogContents, relation: RelationEntry, name: str) -> Row:
    """The columns that describe a constraint in every relation."""
    return {
        "constraint_catalog": catalog(contents), "constraint_schema": relation.schema, "constraint_name": name,
        "table_catalog": catalog(contents), "table_schema": relation.schema, "table_name": relation.name,
    }  # fmt: skip


def table_constraints(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            yield {
                **named_constraint(contents, r, c.name), "constraint_type": CONSTRAINTS[c.kind], "is_deferrable": "NO",
                "initially_deferred": "NO", "enforced": "YES",
            }  # fmt: skip


def key_column_usage(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            for at, number in enumerate(c.columns if c.kind in "pu" else (), 1):
                yield {
                    **named_constraint(contents, r, c.name), "column_name": r.columns[number - 1].name,
                    "ordinal_position": at,
                }  # fmt: skip


def constraint_column_usage(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            for number in c.columns:
                yield {**named_constraint(contents, r, c.name), "column_name": r.columns[number - 1].name}


def constraint_table_usage(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            yield named_constraint(contents, r, c.name)


def check_constraints(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            if c.kind == "c":
                yield {
                    "constraint_catalog": catalog(contents), "constraint_schema": r.schema, "constraint_name": c.name,
                    "check_clause": c.definition.removeprefix("CHECK "),
                }  # fmt: skip


def enabled_roles(contents: CatalogContents) -> Iterator[Row]:
    who = contents.access.who()
    for name in [contents.settings.user] if who is None else sorted(contents.access.held(who) - {PUBLIC}):
        yield {"role_name": name}


def applicable_roles(contents: CatalogContents) -> Iterator[Row]:
    for found in contents.access.tables.members.values():
        yield {"grantee": found.member, "role_name": found.role, "is_grantable": yes(found.may_grant)}


def table_privileges(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for what in ("SELECT", "INSERT", "UPDATE", "DELETE") if r.kind == "r" else ("SELECT",) * (r.kind != "i"):
            yield {
                "grantor": contents.owner_name(r), "grantee": contents.owner_name(r), "table_catalog": catalog(contents),
                "table_schema": r.schema, "table_name": r.name, "privilege_type": what, "is_grantable": "YES",
                "with_hierarchy": yes(what == "SELECT"),
            }  # fmt: skip
        object = table_object(stored_name(r.schema, r.name))
        for grant in contents.access.tables.grants.values():
            if grant.object == object:
                yield {
                    "grantor": grant.grantor or contents.owner_name(r), "grantee": grant.grantee.replace(PUBLIC, "PUBLIC"),
                    "table_catalog": catalog(contents), "table_schema": r.schema, "table_name": r.name,
                    "privilege_type": grant.privilege, "is_grantable": yes(grant.may_grant),
                    "with_hierarchy": yes(grant.privilege == "SELECT"),
                }  # fmt: skip


INFORMATION_ROWS: dict[str, CatalogRows] = {
    "check_constraints": check_constraints, "columns": columns, "constraint_column_usage": constraint_column_usage,
    "constraint_table_usage": constraint_table_usage, "enabled_roles": enabled_roles, "applicable_roles": applicable_roles,
    "information_schema_catalog_name": information_schema_catalog_name, "key_column_usage": key_column_usage,
    "role_table_grants": table_privileges, "schemata": schemata, "table_constraints": table_constraints,
    "table_privileges": table_privileges, "tables": tables, "views": views,
}  # fmt: skip
"""The relations of information_schema that have rows; the others are empty, because there is nothing of their kind."""
