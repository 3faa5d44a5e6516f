"""ALTER TABLE: columns, names, defaults and constraints.

| action | while views, indexes or prepared statements read the table |
|---|---|
| ADD, DROP, RENAME COLUMN, ALTER COLUMN TYPE, RENAME TO | refused, with the readers' names |
| SET and DROP DEFAULT, SET and DROP NOT NULL, ADD and DROP CONSTRAINT | allowed |

The actions of a statement count together: all of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.altered_tables import replace_table
from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of, set_constraints, set_defaults
from tektite.engine.table import Table
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import col
from tektite.sql.access.access_control import table_object
from tektite.sql.bind.functions import column_type
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import stored_name, written_name
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import not_needed, refuse_unread
from tektite.sql.statements.constraints import TableConstraints, default_value, named
from tektite.sql.statements.result import Result
from tektite.sql.statements.table_writes import target
from tektite.storage.description import CheckConstraint, InputDescription, UniqueConstraint
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


@dataclass
class Alteration:
    """A table as it will be: its declaration and defaults, and the expression in the old columns that each column has."""

    runner: StatementRunner
    source: StatementText
    table: Table
    declared: InputDescription
    defaults: dict[str, Any]
    name: str
    values: dict[str, exp.Expr] = field(default_factory=dict)
    changes_rows: bool = False

    def column(self, node: exp.Expr) -> str:
        """A column that there is."""
        name = folded(node.this if isinstance(node, exp.Column) else node)
        if name not in self.declared.schema.names:
            hint = nearest(name, self.declared.schema.names)
            raise self.source.error(
                f"table {self.table.name!r} has no column {name!r}: {hint}",
                node,
                NotFoundError,
                condition="undefined-column",
            )
        return name

    def with_columns(self, columns: Mapping[str, Any], **changed: Any) -> None:
        """Declare other columns."""
        self.declared = replace(self.declared, schema=Schema(dict(columns)), **changed)
        self.changes_rows = True

    @property
    def columns(self) -> dict[str, Any]:
        """The columns with their types."""
        return dict(zip(self.declared.schema.names, self.declared.schema.types, strict=True))

    @property
    def constraints(self) -> TableConstraints:
        """Reads constraints of the table."""
        return TableConstraints(
            self.runner, self.source, self.table.name, self.columns, self.declared.stream, list(self.declared.key),
            list(self.declared.required), {}, list(self.declared.checks), list(self.declared.uniques),
        )  # fmt: skip

    # ------------------------------------------------------------------ columns

    def add_column(self, action: exp.ColumnDef) -> None:
        """ADD COLUMN: rows that are there have its DEFAULT, or NULL."""
        name = folded(action.this)
        if name in self.declared.schema.names:
            if action.args.get("exists"):
                not_needed(action)
                return
            message = f"table {self.table.name!r} has a column {name!r} already"
            raise self.source.error(message, action, ConflictError, condition="duplicate-column")
        if action.kind is None:
            raise self.source.error(f"column {name!r} needs a type", action)
        kind = column_type(self.source, action.kind)
        found = self.constraints
        found.columns[name] = kind
        known = len(found.key)
        for tree, wish in found.of_column(action, name):
            found.add_check(tree, wish)
        if len(found.key) > known:
            raise self.source.error("ADD COLUMN ... PRIMARY KEY is not supported: " + ANOTHER, action, UnsupportedError)
        self.defaults |= found.defaults
        default = found.defaults.get(name)
        self.values[name] = exp.Null() if default is None else exp.Parameter(this=exp.Var(this=f"default_{name}"))
        self.with_columns(
            found.columns, required=tuple(found.required), checks=tuple(found.checks), uniques=tuple(found.uniques)
        )

    def drop_column(self, action: exp.Drop) -> None:
        """DROP COLUMN: not one of the key, nor one that a constraint reads, unless CASCADE drops that, too."""
        (node,) = action.args["tables"]
        name = folded(node.this if isinstance(node, exp.Column) else node)
        cascade, declared = bool(action.args.get("cascade")), self.declared
        action.args.get("restrict")
        if action.args.get("exists") and name not in declared.schema.names:
            not_needed(action)
            return
        name = self.column(node)
        if name in declared.key:
            message = f"column {name!r} is part of the key of table {self.table.name!r}: {ANOTHER}"
            raise self.source.error(message, node, ConflictError)
        if len(declared.schema.names) == 1:
            raise self.source.error(
                f"column {name!r} is the only one of table {self.table.name!r}", node, ConflictError
            )
        readers = [c.name for c in declared.constraints if name in c.columns]
        if readers and not cascade:
            shown = ", ".join(map(repr, readers))
            message = f"constraint {shown} of table {self.table.name!r} reads column {name!r}: DROP CONSTRAINT first, or CASCADE"
            raise self.source.error(message, node, ConflictError)
        self.values.pop(name)
        self.defaults.pop(name, None)
        self.with_columns(
            {column: kind for column, kind in self.columns.items() if column != name},
            required=tuple(column for column in declared.required if column != name),
            checks=tuple(check for check in declared.checks if check.name not in readers),
            uniques=tuple(unique for unique in declared.uniques if unique.name not in readers),
        )

    def rename_column(self, action: exp.Expr, old: exp.Expr, new: exp.Expr) -> None:
        """RENAME COLUMN: also in the key and in constraints."""
        if action.args.get("exists") and folded(old.this) not in self.declared.schema.names:
            not_needed(action)
            return
        before, after = self.column(old), folded(new.this)
        if after in self.declared.schema.names:
            raise self.source.error(
                f"table {self.table.name!r} has a column {after!r} already",
                new,
                ConflictError,
                condition="duplicate-column",
            )

        def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(after if name == before else name for name in names)

        declared = self.declared
        self.values = {after if name == before else name: value for name, value in self.values.items()}
        self.defaults = {after if name == before else name: value for name, value in self.defaults.items()}
        checks = []
        for check in declared.checks:
            condition = check.condition.substitute({before: col(after)})
            # the text that was written has the former name in it
            text = check.text if before not in check.columns else str(condition)
            checks.append(CheckConstraint(check.name, text, condition))
        self.with_columns(
            dict(zip(renamed(declared.schema.names), declared.schema.types, strict=True)),
            key=renamed(declared.key), required=renamed(declared.required), shard=renamed(declared.shard), checks=tuple(checks),
            uniques=tuple(UniqueConstraint(unique.name, renamed(unique.columns)) for unique in declared.uniques),
        )  # fmt: skip

    def alter_column(self, action: exp.AlterColumn) -> None:
        """ALTER COLUMN: its DEFAULT, NOT NULL or type."""
        name = self.column(action.this)
        declared = self.declared
        if action.args.get("dtype") is not None:
            using = action.args.get("using")
            if any(name in c.columns for c in declared.constraints):
                message = f"a constraint of table {self.table.name!r} reads column {name!r}: DROP CONSTRAINT first"
                raise self.source.error(message, action, ConflictError)
            kind = column_type(self.source, action.args["dtype"])
            if using:
                self.values[name] = using.copy()
                not_needed(using)
            self.defaults.pop(name, None)
            self.with_columns(self.columns | {name: kind})
        elif action.args.get("allow_null") is not None:
            if name in declared.key and action.args.get("allow_null"):
                raise self.source.error(
                    f"column {name!r} is part of the primary key, which has no NULL", action, ConflictError
                )
            action.args.get("drop")
            others = tuple(column for column in declared.required if column != name)
            more = () if action.args["allow_null"] or name in declared.key else (name,)
            self.declared = replace(declared, required=(*others, *more))
        else:
            said, gone = action.args.get("default"), action.args.get("drop")
            if said is None and not gone:
                raise self.source.error(
                    "ALTER COLUMN takes TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL and DROP NOT NULL",
                    action,
                    UnsupportedError,
                )
            value = None if said is None else default_value(self.runner, self.source, said, self.columns[name])
            self.defaults.pop(name, None)
            if value is not None:
                self.defaults[name] = value

    # ------------------------------------------------------------------ constraints

    def add_constraint(self, action: exp.AddConstraint) -> None:
        """ADD [CONSTRAINT name] CHECK | UNIQUE."""
        found = self.constraints
        for item in action.expressions:
            inner = item.expressions[0] if isinstance(item, exp.Constraint) and item.expressions else item
            if isinstance(inner, exp.PrimaryKey):
                raise self.source.error(f"ADD PRIMARY KEY is not supported: {ANOTHER}", item, UnsupportedError)
            found.of_table(item)
        self.declared = replace(self.declared, checks=tuple(found.checks), uniques=tuple(found.uniques))

    def drop_constraint(self, action: exp.Drop) -> None:
        """DROP CONSTRAINT name."""
        (node,) = action.args["tables"]
        name, declared = folded(node.this), self.declared
        if not named(declared.constraints, name):
            if action.args.get("exists"):
                not_needed(action)
                return
            known = [constraint.name for constraint in declared.constraints]
            message = f"table {self.table.name!r} has no constraint {name!r}: {nearest(name, known)}"
            raise self.source.error(message, node, NotFoundError)
        action.args.get("cascade"), action.args.get("restrict")
        checks = tuple(check for check in declared.checks if check.name != name)
        uniques = tuple(unique for unique in declared.uniques if unique.name != name)
        self.declared = replace(declared, checks=checks, uniques=uniques)

    # ------------------------------------------------------------------ the end

    def carry_out(self) -> None:
        """Let the table be so, or refuse it and change nothing."""
        runner, core = self.runner, core_of(self.table)
        if not self.changes_rows and self.name == self.table.name:
            if self.declared != core.describe():
                set_constraints(core, self.declared)
            set_defaults(core, self.defaults)
            return
        engine = core_of(runner.engine)
        with engine.lock.held, engine.undisturbed():  # whatever is written goes into the old table or into the new one
            self._replace()

    def _replace(self) -> None:
        """Put a table with the rows as they are to be in the place of this one."""
        runner, core = self.runner, core_of(self.table)
        self.refuse_readers()
        rows = None
        if not self.declared.stream:
            outputs = [exp.alias_(value.copy(), name, quoted=True) for name, value in self.values.items()]
            own = exp.Table(this=exp.to_identifier(self.table.name.rpartition(".")[2], quoted=True))
            if "." in self.table.name:
                own.set("db", exp.to_identifier(self.table.name.partition(".")[0], quoted=True))
            query = exp.Select(expressions=outputs, from_=exp.From(this=own))
            given = {f"default_{name}": value for name, value in self.defaults.items()}
            rows = runner.select(self.source, query, given, list(self.declared.schema.types))
            rows = rows.rename_columns(list(self.declared.schema.names))
        runner.remembered.forget(self.table.name)
        made = replace_table(core_of(runner.engine), core, self.declared, rows, self.name)
        set_defaults(core_of(made), self.defaults)

    def refuse_readers(self) -> None:
        """Refuse to change the columns or the name of a table that others read."""
        runner, name = self.runner, self.table.name
        if runner.transaction is not None and runner.transaction.changes(self.table):
            message = f"cannot alter table {name!r}: the open transaction has changed it; COMMIT or ROLLBACK first"
            raise self.source.error(message, None, ConflictError)
        readers = runner.readers(name)
        if runner.access.is_configured:
            readers += [f"policy {policy.name}" for policy in runner.access.policies(name)]
        if readers:
            shown = ", ".join(map(repr, readers))
            message = (
                f"cannot alter the columns or the name of table {name!r}: {shown} read{'s' * (len(readers) == 1)} it. Drop what "
                "reads it first, and create it again"
            )
            raise self.source.error(message, None, ConflictError)


ANOTHER = "CREATE TABLE another one, and INSERT INTO it SELECT ..."


def alter(runner: StatementRunner, source: StatementText, tree: exp.Alter, parameters: Mapping[str, Any]) -> Result:
    """ALTER TABLE [IF EXISTS] name action, ..."""
    kind = (tree.args.get("kind") or "").upper()
    if kind != "TABLE":
        raise source.error(
            f"ALTER {kind} is not supported: DROP it and CREATE another one", source.where(kind), UnsupportedError
        )
    if tree.args.get("exists") and runner.relation_named(written_name(source, tree.this)) is None:
        not_needed(tree)
        return Result("ALTER TABLE")
    table = target(runner, source, tree.this)
    runner.access.check_owner(runner.access.who(), table_object(table.name))
    core = core_of(table)
    values: dict[str, exp.Expr] = {name: exp.column(name, quoted=True) for name in table.schema.names}
    found = Alteration(runner, source, table, core.describe(), defaults_of(core), table.name, values)
    to = [option for option in tree.args.get("options") or () if isinstance(option, exp.ToTableProperty)]
    for action in tree.args.get("actions") or ():
        take(found, action, to)
    refuse_unread(source, tree)
    own = None if runner.transaction is None else runner.transaction.writes
    if any(writes is not own and writes.rows(core) for writes in core_of(runner.engine).snapshots.writes()):
        message = (
            f"cannot alter table {table.name!r}: an open transaction of another session has changed it; try again later"
        )
        raise source.error(message, tree.this, ConflictError)
    try:
        found.carry_out()
    except TektiteError as error:
        raise source.placed(error, tree) from None
    runner.access.renamed(table_object(table.name), table_object(found.name))
    return Result("ALTER TABLE")


def take(found: Alteration, action: exp.Expr, to: Sequence[exp.Expr]) -> None:
    """Note what one action of ALTER TABLE says."""
    if isinstance(action, exp.ColumnDef):
        found.add_column(action)
    elif isinstance(action, exp.Drop):
        kinds: dict[str, Callable[[exp.Drop], None]] = {
            "COLUMN": found.drop_column,
            "CONSTRAINT": found.drop_constraint,
        }
        said = (action.args.get("kind") or "").upper()
        if said not in kinds:
            raise found.source.error(f"ALTER TABLE DROP {said} is not supported", action, UnsupportedError)
        kinds[said](action)
    elif isinstance(action, exp.RenameColumn):
        found.rename_column(action, action.this, action.args["to"])
    elif isinstance(action, exp.AlterRename) and to:  # RENAME a TO b
        found.rename_column(action, action.this, to[0].this)
    elif isinstance(action, exp.AlterRename):
        rename_table(found, action)
    elif isinstance(action, exp.AlterColumn):
        found.alter_column(action)
    elif isinstance(action, exp.AddConstraint):
        found.add_constraint(action)
    else:
        raise found.source.error(f"ALTER TABLE {action.key.upper()} is not supported", action, UnsupportedError)


def rename_table(found: Alteration, action: exp.AlterRename) -> None:
    """RENAME TO name: in the same schema."""
    node = action.this
    name = folded(node.this)
    schema = found.table.name.partition(".")[0] if "." in found.table.name else ""
    if node.args.get("db"):
        raise found.source.error(
            "RENAME TO takes a name without a schema: the table stays in its own", node, UnsupportedError
        )
    made = stored_name(schema, name) if schema else name
    if made.startswith("__"):
        raise found.source.error(f"names that begin with __ are reserved: {made!r}", node)
    if found.runner.relation_stored(made) is not None or made in found.runner.indexes:
        raise found.source.error(
            f"there is something named {made!r} already", node, ConflictError, condition="duplicate-table"
        )
    found.name = made
