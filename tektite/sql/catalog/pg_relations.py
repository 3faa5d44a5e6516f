"""The rows of pg_catalog. A row is what is known of it, by column; other columns are 0, false, empty or NULL, by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tektite.sql.access.access_control import schema_object, table_object
from tektite.sql.access.access_tables import PUBLIC, Role, RowPolicy
from tektite.sql.catalog.array_text import array_text, vector_text
from tektite.sql.catalog.contents import OWNER, CatalogContents, RelationEntry
from tektite.sql.catalog.pg_types import PG_TYPES, pg_type, type_modifier
from tektite.sql.catalog.schemas import stored_name
from tektite.sql.catalog.settings import SETTINGS

Row = dict[str, Any]
CatalogRows = Callable[[CatalogContents], Iterator[Row]]

HEAP, BTREE = 2, 403
DEFAULT_COLLATION = 100
OPERATOR_CLASS = 1978
"""The operator class that the columns of an index are shown with."""


def every(contents: CatalogContents) -> list[RelationEntry]:
    """The relations of users, then those of the system."""
    return [*contents.relations, *contents.system]


def pg_namespace(contents: CatalogContents) -> Iterator[Row]:
    for name, oid in contents.schemas.items():
        object = schema_object(name)
        acl = contents.access.access_list(object) if contents.access.is_configured else None
        yield {"oid": oid, "nspname": name, "nspowner": contents.owner_oid(object), "nspacl": acl}


def pg_class(contents: CatalogContents) -> Iterator[Row]:
    indexed = {r.of for r in contents.relations if r.kind == "i"}
    for r in every(contents):
        object = table_object(stored_name(r.schema, r.name))
        secured = contents.access.tables.secured.get(object)
        method = BTREE if r.kind == "i" else 0 if r.kind == "v" else HEAP
        yield {
            "oid": r.oid, "relname": r.name, "relnamespace": contents.schemas[r.schema],
            "relowner": contents.owner_oid(object), "relam": method,
            "relfilenode": r.oid, "reltuples": float(r.rows), "relhasindex": r.oid in indexed, "relpersistence": "p",
            "relkind": r.kind, "relnatts": len(r.columns), "relispopulated": True, "relreplident": "d",
            "relhasrules": r.kind == "v", "relchecks": sum(c.kind == "c" for c in r.constraints),
            "relpages": 0, "relallvisible": 0, "relrowsecurity": secured is not None and secured.is_enabled,
            "relforcerowsecurity": secured is not None and secured.is_forced,
            "relacl": None if r.is_system else contents.access.access_list(object),
        }  # fmt: skip


def pg_attribute(contents: CatalogContents) -> Iterator[Row]:
    for r in every(contents):
        for c in r.columns:
            found = PG_TYPES.get(c.declared, PG_TYPES["text"]) if r.is_system else pg_type(c.type)
            yield {
                "attrelid": r.oid, "attname": c.name, "atttypid": found.oid, "attstattarget": -1, "attlen": found.length,
                "attnum": c.number, "attcacheoff": -1, "atttypmod": type_modifier(c.type) if not r.is_system else -1,
                "attbyval": 0 < found.length <= 8, "attalign": "d" if found.length == 8 else "i",
                "attstorage": "x" if found.length < 0 else "p", "attnotnull": c.required,
                "atthasdef": c.default is not None, "attislocal": True, "attidentity": "", "attgenerated": "",
                "attcompression": "", "attcollation": DEFAULT_COLLATION if found.category == "S" else 0,
                "attndims": 0, "attinhcount": 0, "attisdropped": False,
            }  # fmt: skip


def pg_attrdef(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.columns:
            if c.default is not None:
                oid = contents.oids.of("default", f"{r.schema}.{r.name}.{c.name}")
                yield {"oid": oid, "adrelid": r.oid, "adnum": c.number, "adbin": c.default}


def pg_type_rows(contents: CatalogContents) -> Iterator[Row]:
    for t in PG_TYPES.values():
        yield {
            "oid": t.oid, "typname": t.name, "typnamespace": contents.schemas["pg_catalog"], "typowner": OWNER,
            "typlen": t.length, "typbyval": 0 < t.length <= 8, "typtype": t.kind, "typcategory": t.category,
            "typisdefined": True, "typdelim": ",", "typelem": t.element, "typarray": t.array, "typtypmod": -1,
            "typinput": contents.oids.of("function", "array_in" if t.category == "A" and t.name[0] == "_" else f"{t.name}in"),
            "typreceive": contents.oids.of("function", t.receive),
            "typsend": contents.oids.of("function", t.send),
            "typcollation": DEFAULT_COLLATION if t.category == "S" else 0, "typalign": "i", "typstorage": "p",
        }  # fmt: skip


def pg_index(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        if r.kind == "i":
            yield {
                "indexrelid": r.oid, "indrelid": r.of, "indnatts": len(r.keys), "indnkeyatts": len(r.keys),
                "indisunique": r.is_unique, "indisprimary": r.is_primary, "indimmediate": True, "indisvalid": True,
                "indisready": True, "indislive": True, "indkey": vector_text(r.keys),
                "indcollation": vector_text([0] * len(r.keys)), "indclass": vector_text([OPERATOR_CLASS] * len(r.keys)),
                "indoption": vector_text([0] * len(r.keys)), "indnullsnotdistinct": False,
            }  # fmt: skip


def pg_constraint(contents: CatalogContents) -> Iterator[Row]:
    for r in contents.relations:
        for c in r.constraints:
            yield {
                "oid": c.oid, "conname": c.name, "connamespace": contents.schemas[r.schema], "contype": c.kind,
                "convalidated": True, "conrelid": r.oid, "conindid": c.index, "confupdtype": " ", "confdeltype": " ",
                "confmatchtype": " ", "conislocal": True, "connoinherit": True,
                "conkey": array_text(c.columns) if c.columns else None, "conbin": c.definition if c.kind == "c" else None,
            }  # fmt: skip


def pg_database(contents: CatalogContents) -> Iterator[Row]:
    yield {
        "oid": 5, "datname": contents.settings.database, "datdba": OWNER, "encoding": 6, "datlocprovider": "c",
        "datallowconn": True, "datconnlimit": -1, "datcollate": "C.UTF-8", "datctype": "C.UTF-8", "dattablespace": 1663,
    }  # fmt: skip


def role_row(contents: CatalogContents, role: Role) -> Row:
    return {
        "oid": contents.role_oid(role.name), "rolname": role.name, "rolsuper": role.is_super, "rolinherit": role.inherits,
        "rolcreaterole": role.creates_roles or role.is_super, "rolcreatedb": role.creates_schemas or role.is_super,
        "rolcanlogin": role.can_login, "rolconnlimit": -1 if role.connection_limit is None else role.connection_limit,
        "rolpassword": "********", "rolreplication": role.is_super,
        "rolbypassrls": role.bypasses_policies or role.is_super, "rolvaliduntil": role.valid_until,
    }  # fmt: skip


def pg_roles(contents: CatalogContents) -> Iterator[Row]:
    for role in contents.roles:
        yield role_row(contents, role)


def pg_user(contents: CatalogContents) -> Iterator[Row]:
    for role in contents.roles:
        if role.can_login:
            row = role_row(contents, role)
            yield {
                "usename": role.name, "usesysid": row["oid"], "usecreatedb": row["rolcreatedb"], "usesuper": role.is_super,
                "userepl": role.is_super, "usebypassrls": row["rolbypassrls"], "passwd": "********",
                "valuntil": role.valid_until,
            }  # fmt: skip


def pg_auth_members(contents: CatalogContents) -> Iterator[Row]:
    for found in contents.access.tables.members.values():
        yield {
            "roleid": contents.role_oid(found.role), "member": contents.role_oid(found.member), "grantor": OWNER,
            "admin_option": found.may_grant,
        }  # fmt: skip


def policy_rows(contents: CatalogContents) -> Iterator[tuple[RelationEntry, RowPolicy]]:
    known = {table_object(stored_name(r.schema, r.name)): r for r in contents.relations if r.kind == "r"}
    for _, policy in sorted(contents.access.tables.policies.items()):
        if policy.object in known:
            yield known[policy.object], policy


def pg_policy(contents: CatalogContents) -> Iterator[Row]:
    letters = {"ALL": "*", "SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}
    for relation, policy in policy_rows(contents):
        roles = [0 if name == PUBLIC else contents.role_oid(name) for name in policy.role_names]
        yield {
            "oid": contents.oids.of("policy", f"{policy.object}.{policy.name}"), "polname": policy.name, "polrelid": relation.oid,
            "polcmd": letters[policy.command], "polpermissive": policy.is_permissive, "polroles": array_text(roles),
            "polqual": policy.using, "polwithcheck": policy.check,
        }  # fmt: skip


def pg_policies(contents: CatalogContents) -> Iterator[Row]:
    for relation, policy in policy_rows(contents):
        yield {
            "schemaname": relation.schema, "tablename": relation.name, "policyname": policy.name,
            "permissive": "PERMISSIVE" if policy.is_permissive else "RESTRICTIVE", "roles": array_text(policy.role_names),
            "cmd": policy.command, "qual": policy.using, "with_check": policy.check,
        }  # fmt: skip


def pg_settings(contents: CatalogContents) -> Iterator[Row]:
    for name, value, about in contents.settings.rows():
        changed = name.lower() in contents.settings.changed
        first = SETTINGS[name.lower()].value
        yield {
            "name": name, "setting": value, "category": "Settings", "short_desc": about, "context": "user",
            "vartype": "string", "source": "session" if changed else "default", "boot_val": first, "reset_val": first,
        }  # fmt: skip


def pg_am(contents: CatalogContents) -> Iterator[Row]:
    yield {"oid": HEAP, "amname": "heap", "amtype": "t"}
    yield {"oid": BTREE, "amname": "btree", "amtype": "i"}


def pg_opclass(contents: CatalogContents) -> Iterator[Row]:
    yield {"oid": OPERATOR_CLASS, "opcmethod": BTREE, "opcname": "default_ops", "opcdefault": True, "opcowner": OWNER}


def pg_collation(contents: CatalogContents) -> Iterator[Row]:
    yield {
        "oid": DEFAULT_COLLATION, "collname": "default", "collnamespace": contents.schemas["pg_catalog"],
        "collowner": OWNER, "collprovider": "d", "collisdeterministic": True, "collencoding": -1,
    }  # fmt: skip


def pg_tablespace(contents: CatalogContents) -> Iterator[Row]:
    yield {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER}


def pg_language(contents: CatalogContents) -> Iterator[Row]:
    yield {"oid": 12, "lanname": "internal", "lanowner": OWNER}


def pg_tables(contents: CatalogContents) -> Iterator[Row]:
    indexed = {r.of for r in contents.relations if r.kind == "i"}
    for r in every(contents):
        if r.kind == "r":
            yield {
                "schemaname": r.schema, "tablename": r.name, "tableowner": contents.owner_name(r),
                "hasindexes": r.oid in indexed,
            }  # fmt: skip


def pg_views(contents: CatalogContents) -> Iterator[Row]:
    for r in every(contents):
        if r.kind == "v":
            yield {
                "schemaname": r.schema, "viewname": r.name, "viewowner": contents.owner_name(r),
                "definition": r.definition or None,
            }  # fmt: skip


def pg_matviews(contents: CatalogContents) -> Iterator[Row]:
    indexed = {r.of for r in contents.relations if r.kind == "i"}
    for r in contents.relations:
        if r.kind == "m":
            yield {
                "schemaname": r.schema, "matviewname": r.name, "matviewowner": contents.owner_name(r),
                "hasindexes": r.oid in indexed, "ispopulated": True, "definition": r.definition or None,
            }  # fmt: skip


def pg_indexes(contents: CatalogContents) -> Iterator[Row]:
    names = {r.oid: r.name for r in contents.relations}
    for r in contents.relations:
        if r.kind == "i":
            yield {"schemaname": r.schema, "tablename": names[r.of], "indexname": r.name, "indexdef": r.definition}


def pg_prepared_statements(contents: CatalogContents) -> Iterator[Row]:
    who = contents.runner.access.who()
    for made in contents.runner.prepared.values():
        if made.owner == who:
            yield {"name": made.name, "statement": made.source.text[made.source.start :], "from_sql": True}


PG_ROWS: dict[str, CatalogRows] = {
    "pg_am": pg_am, "pg_attrdef": pg_attrdef, "pg_attribute": pg_attribute, "pg_authid": pg_roles,
    "pg_auth_members": pg_auth_members, "pg_class": pg_class,
    "pg_collation": pg_collation, "pg_constraint": pg_constraint, "pg_database": pg_database, "pg_index": pg_index,
    "pg_indexes": pg_indexes, "pg_language": pg_language, "pg_matviews": pg_matviews, "pg_namespace": pg_namespace,
    "pg_opclass": pg_opclass, "pg_policies": pg_policies, "pg_policy": pg_policy,
    "pg_prepared_statements": pg_prepared_statements, "pg_roles": pg_roles,
    "pg_settings": pg_settings, "pg_shadow": pg_user, "pg_tables": pg_tables, "pg_tablespace": pg_tablespace,
    "pg_type": pg_type_rows, "pg_user": pg_user, "pg_views": pg_views,
}  # fmt: skip
"""The relations of pg_catalog that have rows; the others are empty, because there is nothing of their kind."""
