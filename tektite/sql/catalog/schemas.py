"""Schemas: a table `t` of schema `s` is the engine's table `s.t`; one of the default schema `public` is the engine's `t`.

So programs, Datalog and storage know every table by one name, and a schema exists where a table's name says so. `main`, as DuckDB
calls it, is `public`.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.sql.bind.scope import DEFAULT_SCHEMA, SAME_SCHEMA, folded
from tektite.sql.parse.places import StatementText

DEFAULT = DEFAULT_SCHEMA
SYSTEM = ("pg_catalog", "information_schema")
"""Schemas that hold what is known of the others."""
DATABASE = "tektite"
"""The name of the engine's one database, for names of three parts."""


def same_schema(name: str) -> str:
    """The name of a schema, whichever of its names is given."""
    return SAME_SCHEMA.get(name, name)


def stored_name(schema: str, name: str) -> str:
    """The engine's name of a table of a schema.

    >>> stored_name("s", "t"), stored_name("public", "t")
    ('s.t', 't')
    """
    return name if same_schema(schema) in ("", DEFAULT) else f"{schema}.{name}"


def name_parts(stored: str) -> tuple[str, str]:
    """The schema and the name of what the engine knows by one name.

    >>> name_parts("s.t"), name_parts("t")
    (('s', 't'), ('public', 't'))
    """
    schema, dot, name = stored.partition(".")
    return (schema, name) if dot and schema and name else (DEFAULT, stored)


def sql_name(stored: str) -> str:
    """The engine's name of a relation as a statement writes it: schema and name, quoted.

    >>> print(sql_name("order"), sql_name('s.a"b'))
    "public"."order" "s"."a""b"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name_parts(stored))


def schema_said(source: StatementText, node: exp.Expr) -> str:
    """The schema that stands before a name; empty if none does."""
    database = folded(node.args.get("catalog"))
    if database not in ("", DATABASE):
        message = f"there is one database, {DATABASE!r}: a name has a schema and a name, as in public.t"
        raise source.error(message, node, UnsupportedError)
    return same_schema(folded(node.args.get("db")))


def written_name(source: StatementText, node: exp.Expr) -> str:
    """The name of a table as a statement writes it, with its schema if that is written."""
    schema = schema_said(source, node)
    name = folded(node.this)
    return f"{schema}.{name}" if schema else name


def implied_schemas(stored: Iterable[str]) -> set[str]:
    """The schemas that names of the engine say."""
    return {name_parts(name)[0] for name in stored}


def only_table(source: StatementText, tree: exp.Expr) -> str | None:
    """The name that SELECT * FROM name, and nothing more, mentions."""
    if not isinstance(tree, exp.Select) or [type(e) for e in tree.expressions] != [exp.Star]:
        return None
    said = {name for name, value in tree.args.items() if value}
    table = tree.args.get("from_")
    if table is None or said != {"expressions", "from_"} or not isinstance(table.this, exp.Table):
        return None
    return written_name(source, table.this) if isinstance(table.this.this, exp.Identifier) else None
