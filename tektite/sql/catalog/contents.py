"""The contents of an engine for the system catalogs: schemas, relations with their columns, keys and indexes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of
from tektite.engine.input_core import InputCore
from tektite.sql.access.access_tables import Role
from tektite.sql.bind.definitions import GraphDefinition
from tektite.sql.catalog.oids import Oids
from tektite.sql.catalog.pg_types import own_type, shown_type
from tektite.sql.catalog.schemas import SYSTEM, name_parts, stored_name
from tektite.sql.catalog.settings import SessionSettings
from tektite.sql.catalog.system_columns import SYSTEM_COLUMNS
from tektite.sql.parse.read_arguments import written
from tektite.storage.description import UniqueConstraint
from tektite.values.computed_once import computed_once
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.access.access_control import AccessControl
    from tektite.sql.statements.runner import StatementRunner

UNKNOWN = -1
"""The number of rows of a relation whose size is not known, as PostgreSQL has it in reltuples."""

PART = re.compile(r'\s*"((?:[^"]|"")*)"\s*|([^".]+)')
"""A part of a name as it is written: quoted, or plain."""

OWNER = 10
"""The oid of whoever may do everything without being a role."""


@dataclass(frozen=True)
class ColumnEntry:
    """A column of a relation. `declared` is PostgreSQL's type of a system relation's column; empty for others."""

    name: str
    type: Type
    number: int
    required: bool = False
    default: str | None = None
    declared: str = ""


@dataclass(frozen=True)
class ConstraintEntry:
    """A PRIMARY KEY, UNIQUE or CHECK of a table, with the index that stands for it."""

    oid: int
    name: str
    kind: str
    columns: tuple[int, ...]
    definition: str
    index: int = 0


@dataclass(frozen=True)
class RelationEntry:
    """A table (r), a view (v), a materialised view (m) or an index (i)."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[ColumnEntry, ...]
    definition: str = ""
    constraints: tuple[ConstraintEntry, ...] = ()
    rows: int = UNKNOWN
    bytes: int = 0
    of: int = 0
    """The relation that an index is of."""
    keys: tuple[int, ...] = ()
    """The columns of an index, by number."""
    is_primary: bool = False
    is_unique: bool = False

    @property
    def is_system(self) -> bool:
        return self.schema in SYSTEM


@dataclass
class CatalogContents:
    """The objects of one engine as one session sees them."""

    runner: StatementRunner
    settings: SessionSettings
    oids: Oids = field(default_factory=Oids)

    @property
    def access(self) -> AccessControl:
        """Roles and rights."""
        return self.runner.access

    @computed_once
    def roles(self) -> list[Role]:
        """The roles; without any, the user of the session, who may do everything."""
        known = list(self.access.tables.roles.values())
        if self.settings.is_trusted and self.settings.login not in self.access.tables.roles:
            known.insert(0, Role(self.settings.login, True, True, True, True, True, True))
        return known

    def role_oid(self, name: str) -> int:
        """The oid of a role."""
        is_first = self.settings.is_trusted and name == self.settings.login
        return OWNER if is_first or name not in self.access.tables.roles else self.oids.of("role", name)

    def owner_oid(self, object: str) -> int:
        """The oid of who owns an object; what nobody owns belongs to superusers."""
        owner = self.access.owner(object)
        return OWNER if owner is None else self.role_oid(owner)

    def owner_name(self, relation: RelationEntry) -> str:
        """The owner of a relation."""
        owner = self.access.owner(f"table {stored_name(relation.schema, relation.name)}")
        return self.role_name(OWNER) if owner is None else owner

    def role_name(self, oid: int) -> str:
        """The name of a role by its oid; of the owner of what nobody owns, the user who may do everything."""
        names = {self.role_oid(role.name): role.name for role in self.roles}
        return names.get(oid) or (self.settings.login if self.settings.is_trusted else "tektite")

    @computed_once
    def schemas(self) -> dict[str, int]:
        """The oids of the schemas, by name."""
        return {name: self.oids.of("schema", name) for name in self.runner.visible_schemas()}

    @computed_once
    def system(self) -> list[RelationEntry]:
        """The system relations."""
        found = []
        for (schema, name), (kind, columns) in SYSTEM_COLUMNS.items():
            parts = tuple(
                ColumnEntry(title, own_type(type), at, declared=type)
                for at, (title, type) in enumerate(columns.items(), 1)
            )
            found.append(RelationEntry(self.oids.of("relation", f"{schema}.{name}"), schema, name, kind, parts))
        return found

    @computed_once
    def relations(self) -> list[RelationEntry]:
        """Tables, views and indexes that users made."""
        core, shown = core_of(self.runner.engine), set(self.runner.visible())
        found: list[RelationEntry] = []
        for table in sorted(core.inputs.values(), key=lambda table: table.name):
            if table.name in shown and not table.is_system:
                found.extend(self._table(table))
        for view in sorted(core.views.values(), key=lambda view: view.name):
            if view.name in shown:
                text = self._text(view.name, self.runner.view_texts.get(view, ""), self.runner.reads.get(view.name, ()))
                rows = view.trace.count if self._sees_all(view.name) else UNKNOWN
                found.append(self._relation(view.name, "m", view.schema.names, view.schema.types, text, rows))
        for definition in sorted(self.runner.definitions.values(), key=lambda definition: definition.name):
            if definition.name not in shown or isinstance(definition, GraphDefinition):
                continue
            names = tuple(self.runner.titles(definition.aliases))
            text = self._text(definition.name, written(definition.tree), definition.reads)
            found.append(self._relation(definition.name, "v", names, definition.types, text))
        known = {f"{r.schema}.{r.name}": r for r in found}
        for index in self.runner.indexes.values():
            of = known.get(".".join(name_parts(index.table)))
            if of is not None:
                numbers = tuple(c.number for name in index.columns for c in of.columns if c.name == name)
                found.append(self._index(of, index.name, numbers))
        return found

    def _sees_all(self, name: str) -> bool:
        """Whether the user may know how many rows a relation has: it may read all of them."""
        return self.access.sees_all(self.access.who_is(self.settings), name)

    def _text(self, name: str, text: str, reads: Iterable[str]) -> str:
        """The text of a view for those who may know it: its owner, and whoever may read the view and all that it reads."""
        owns = self.access.owns(self.access.who_is(self.settings), f"table {name}")
        return text if owns or all(self._sees_all(each) for each in (name, *reads)) else ""

    def _relation(
        self, stored: str, kind: str, names: tuple[str, ...], types: tuple[Type, ...], text: str, rows: int = UNKNOWN
    ) -> RelationEntry:
        schema, name = name_parts(stored)
        columns = tuple(ColumnEntry(n, t, at) for at, (n, t) in enumerate(zip(names, types, strict=True), 1))
        return RelationEntry(self.oids.of("relation", f"{schema}.{name}"), schema, name, kind, columns, text, rows=rows)

    def _table(self, table: InputCore) -> list[RelationEntry]:
        """A table, and the indexes of its keys."""
        schema, name = name_parts(table.name)
        declared = table.describe()
        keyed = declared.key if declared.unique or declared.semantics == "upsert" else ()
        required = {*keyed, *declared.required}
        defaults = defaults_of(table)
        columns = tuple(
            ColumnEntry(n, t, at, n in required, default_text(defaults[n], t) if n in defaults else None)
            for at, (n, t) in enumerate(zip(table.schema.names, table.schema.types, strict=True), 1)
        )
        oid = self.oids.of("relation", f"{schema}.{name}")
        constraints = []
        indexes = []
        if keyed:
            numbers = tuple(table.schema.names.index(column) + 1 for column in keyed)
            title = f"{name}_pkey"
            listed = ", ".join(quoted_name(column) for column in keyed)
            made = RelationEntry(oid, schema, name, "r", columns)
            indexes.append(self._index(made, title, numbers, is_primary=True))
            number = self.oids.of("constraint", f"{schema}.{name}.{title}")
            constraints.append(ConstraintEntry(number, title, "p", numbers, f"PRIMARY KEY ({listed})", indexes[0].oid))
        for said in declared.constraints:
            numbers = tuple(table.schema.names.index(column) + 1 for column in said.columns)
            number, index = self.oids.of("constraint", f"{schema}.{name}.{said.name}"), 0
            if isinstance(said, UniqueConstraint):
                made = RelationEntry(oid, schema, name, "r", columns)
                indexes.append(self._index(made, said.name, numbers, is_unique=True))
                index = indexes[-1].oid
            kind = "u" if isinstance(said, UniqueConstraint) else "c"
            constraints.append(ConstraintEntry(number, said.name, kind, numbers, str(said), index))
        entry = RelationEntry(
            oid,
            schema,
            name,
            "r",
            columns,
            constraints=tuple(constraints),
            rows=0 if table.is_stream else table.trace.count if self._sees_all(table.name) else UNKNOWN,
        )
        return [entry, *indexes]

    def _index(
        self, of: RelationEntry, name: str, numbers: tuple[int, ...], is_primary: bool = False, is_unique: bool = False
    ) -> RelationEntry:
        columns = tuple(
            ColumnEntry(of.columns[number - 1].name, of.columns[number - 1].type, at)
            for at, number in enumerate(numbers, 1)
        )
        listed = ", ".join(quoted_name(column.name) for column in columns)
        unique = "UNIQUE " if is_primary or is_unique else ""
        text = f"CREATE {unique}INDEX {quoted_name(name)} ON {qualified(of)} USING btree ({listed})"
        oid = self.oids.of("relation", f"{of.schema}.{name}")
        return RelationEntry(
            oid,
            of.schema,
            name,
            "i",
            columns,
            text,
            of=of.oid,
            keys=numbers,
            is_primary=is_primary,
            is_unique=is_primary or is_unique,
        )

    # ------------------------------------------------------------------ what functions ask

    def is_visible(self, relation: RelationEntry) -> bool:
        """Whether a relation is found by its name alone."""
        for schema in ("pg_catalog", *self.settings.search_path):
            if any(r.schema == schema and r.name == relation.name for r in (*self.relations, *self.system)):
                return schema == relation.schema
        return False

    @computed_once
    def visible_names(self) -> dict[int, str]:
        """The text that names each relation: with its schema where that is needed."""
        first: dict[str, str] = {}
        path = ("pg_catalog", *self.settings.search_path)
        every = [*self.relations, *self.system]
        for schema in reversed(path):
            first |= {r.name: r.schema for r in every if r.schema == schema}
        return {r.oid: quoted_name(r.name) if first.get(r.name) == r.schema else qualified(r) for r in every}

    @computed_once
    def hidden(self) -> list[int]:
        """The oids of relations that are not found by their names alone."""
        return [oid for oid, name in self.visible_names.items() if "." in name]

    def relation_oid(self, text: str) -> int | None:
        """The oid of a relation by its name, with a schema or without."""
        parts = written_parts(text)
        if len(parts) < 2:
            (name,) = parts or [""]
            oids = {shown.replace('"', ""): oid for oid, shown in self.visible_names.items()}
            return oids.get(name) or oids.get(name.lower())
        *_, schema, name = parts
        every = [*self.relations, *self.system]
        return next((r.oid for r in every if r.schema == schema.lower() and r.name in (name, name.lower())), None)


def written_parts(text: str) -> list[str]:
    """The parts of a name as a text has it: between dots, without quotes and the spaces around them.

    >>> written_parts('public."My.table"'), written_parts(' "public" . "t" '), written_parts("t")
    (['public', 'My.table'], ['public', 't'], ['t'])
    """
    found = PART.findall(text)
    return [
        quoted.replace('""', '"') if quoted else plain.strip() for quoted, plain in found if quoted or plain.strip()
    ]


def quoted_name(name: str) -> str:
    """A name as SQL takes it.

    >>> quoted_name("total"), quoted_name("My table")
    ('total', '"My table"')
    """
    if name.isidentifier() and name == name.lower() and name.isascii():
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def qualified(relation: RelationEntry) -> str:
    """A relation's name with its schema."""
    return f"{quoted_name(relation.schema)}.{quoted_name(relation.name)}"


def default_text(value: Any, type: Type) -> str:
    """A DEFAULT as an expression."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) or type.kind == "decimal":
        return str(value)
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'::{shown_type(type)}"
