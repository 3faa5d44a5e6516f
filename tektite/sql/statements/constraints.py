"""Constraints of CREATE TABLE and ALTER TABLE: PRIMARY KEY, NOT NULL, UNIQUE, CHECK, DEFAULT."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from tektite.engine.declarations import check_constraint, unique_constraint
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import Expr
from tektite.expr.fold import folded as folded_constant
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.query import Binder
from tektite.sql.bind.scope import NameScope, Relation, folded
from tektite.sql.parse.instead import CLAUSES, NO_NUMBERS, instead
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import written
from tektite.storage.description import CheckConstraint, UniqueConstraint
from tektite.values.schema import Schema
from tektite.values.types import Type
from tektite.values.words import arrow_type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

UNNAMED = "__unnamed"
"""The name that the parser gives to a constraint that must have one and has none."""
REFERENCES = (
    "foreign keys are not supported: a materialized view with SELECT ... FROM {table} ANTI JOIN {other} ON ... lists rows that "
    "refer to nothing"
)


@dataclass
class TableConstraints:
    """The constraints of one table while its declaration is read. `columns` are its columns."""

    runner: StatementRunner
    source: StatementText
    table: str
    columns: dict[str, Type]
    is_stream: bool = False
    key: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    checks: list[CheckConstraint] = field(default_factory=list)
    uniques: list[UniqueConstraint] = field(default_factory=list)

    # ------------------------------------------------------------------ of columns

    def of_column(self, item: exp.ColumnDef, column: str) -> list[tuple[exp.Expr, str]]:
        """Note what is said of a column beside its type; the CHECKs, whose columns may not be known yet, with their names."""
        waiting: list[tuple[exp.Expr, str]] = []
        for constraint in item.args.get("constraints") or ():
            kind = constraint.kind
            name = "" if constraint.this is None else folded(constraint.this)
            if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                if self.key:
                    first = self.key[0]
                    message = (
                        f"columns {first!r} and {column!r} are both PRIMARY KEY: write PRIMARY KEY ({first}, {column})"
                    )
                    raise self.source.error(message, item)
                self.key.append(column)
            elif isinstance(kind, exp.DefaultColumnConstraint):
                found = default_value(self.runner, self.source, kind.this, self.columns[column])
                if found is not None:
                    self.defaults[column] = found
            elif isinstance(kind, exp.NotNullColumnConstraint):
                if not kind.args.get("allow_null"):
                    self.required.append(column)
            elif isinstance(kind, exp.UniqueColumnConstraint):
                self.add_unique(kind, name, [column])
            elif isinstance(kind, exp.CheckColumnConstraint):
                waiting.append((kind, name or f"{self.table}_{column}_check"))
            elif isinstance(kind, exp.Reference):
                raise self.foreign(kind, constraint)
            else:
                what = (written(kind) if kind is not None else "") or "of this kind"
                numbered = (
                    isinstance(kind, exp.GeneratedAsIdentityColumnConstraint) and kind.args.get("expression") is None
                )
                message = (
                    f"constraint {what} of column {column!r} is not supported{f': {NO_NUMBERS}' if numbered else ''}"
                )
                raise self.source.error(message, constraint, UnsupportedError)
        return waiting

    # ------------------------------------------------------------------ of tables

    def of_table(self, item: exp.Expr) -> None:
        """Note a constraint that stands for itself, with a name or without."""
        name = ""
        if isinstance(item, exp.Constraint):
            name = "" if folded(item.this) == UNNAMED else folded(item.this)
            if len(item.expressions) != 1:
                raise self.source.error("a constraint is one of PRIMARY KEY, UNIQUE and CHECK", item, UnsupportedError)
            item = item.expressions[0]
        if isinstance(item, exp.PrimaryKey):
            self.add_primary_key(item)
        elif isinstance(item, exp.UniqueColumnConstraint):
            parts = item.this.expressions if item.this is not None else []
            self.add_unique(
                item, name, [folded(part.this if isinstance(part, exp.Ordered) else part) for part in parts]
            )
        elif isinstance(item, exp.CheckColumnConstraint):
            self.add_check(item, name)
        elif isinstance(item, exp.ForeignKey):
            raise self.foreign(item.args.get("reference"), item)
        else:
            said = "LIKE" if isinstance(item, exp.LikeProperty) else written(item)[:40]
            said = f"{said} in CREATE TABLE"
            raise self.source.error(f"{said} is not supported{instead(CLAUSES, said)}", item, UnsupportedError)

    def add_primary_key(self, item: exp.PrimaryKey) -> None:
        if self.key:
            raise self.source.error(f"table {self.table!r} has two PRIMARY KEYs: name all columns of one, as in "
                                    "PRIMARY KEY (a, b)", item)  # fmt: skip
        for part in item.expressions:
            column = folded(part.this if isinstance(part, exp.Ordered | exp.Column) else part)
            if column in self.key:
                raise self.source.error(f"PRIMARY KEY names column {column!r} twice", part)
            self.known(column, "PRIMARY KEY", part)
            self.key.append(column)

    def add_unique(self, item: exp.Expr, name: str, columns: list[str]) -> None:
        if item.args.get("nulls"):
            raise self.source.error("UNIQUE NULLS NOT DISTINCT is not supported", item, UnsupportedError)
        for column in columns:
            self.known(column, "UNIQUE", item)
        made = name or self.free_name(f"{self.table}_{'_'.join(columns)}_key")
        self.refuse_taken(made, item)
        try:
            self.uniques.append(unique_constraint(self.table, self.is_stream, made, tuple(columns)))
        except TektiteError as error:
            raise self.source.placed(error, item) from None

    def add_check(self, item: exp.Expr, name: str) -> None:
        """CHECK (condition): of the row's own columns, without subqueries, aggregates and the time."""
        made = name or self.free_name(f"{self.table}_check")
        self.refuse_taken(made, item)
        condition = self.condition(item.this)
        item.args.get("enforced")
        text = written(item.this)
        try:
            found = check_constraint(f"table {self.table!r}: CHECK", Schema(self.columns), made, condition, text)
        except TektiteError as error:
            raise self.source.placed(error, item) from None
        self.checks.append(found)

    def condition(self, tree: exp.Expr) -> Expr:
        """The condition of a CHECK, over the table's columns."""
        binder = Binder(self.source, self.runner.reader())
        names = {column: binder.name(column, type) for column, type in self.columns.items()}
        scope = NameScope(None, [Relation(self.table, list(names.items()))])
        clause = ClauseContext(binder, scope, "CHECK")
        found = clause.predicate(tree)
        if clause.pending:
            raise self.source.error("CHECK takes the columns of its row: no subquery, and no current time", tree)
        by_name = {unique: column for column, unique in names.items()}
        return found.replaced(lambda node: Expr("col", (), (by_name[node.params[0]],)) if node.op == "col" else None)

    # ------------------------------------------------------------------ names

    def known(self, column: str, what: str, node: exp.Expr) -> None:
        if column not in self.columns:
            message = f"{what}: there is no column {column!r}: {nearest(column, self.columns)}"
            raise self.source.error(message, node, NotFoundError, condition="undefined-column")

    @property
    def names(self) -> list[str]:
        """The names of its constraints."""
        return [*(check.name for check in self.checks), *(unique.name for unique in self.uniques)]

    def free_name(self, wish: str) -> str:
        """A name for a constraint that is not taken."""
        return free(wish, self.names)

    def refuse_taken(self, name: str, node: exp.Expr) -> None:
        if name in self.names:
            raise self.source.error(
                f"table {self.table!r} has a constraint {name!r} already",
                node,
                ConflictError,
                condition="duplicate-object",
            )

    def foreign(self, reference: exp.Expr | None, node: exp.Expr) -> TektiteError:
        """The error for a foreign key."""
        other = reference.find(exp.Table) if reference is not None else None
        message = REFERENCES.format(table=self.table, other="other" if other is None else other.name)
        return self.source.error(message, node, UnsupportedError)


def free(wish: str, taken: Collection[str]) -> str:
    """A name that is not taken: the one that is wished for, or one with a number behind it."""
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}{number}"
    return name


def named(constraints: Iterable[CheckConstraint | UniqueConstraint], name: str) -> bool:
    """Whether one of some constraints has a name."""
    return any(constraint.name == name for constraint in constraints)


def default_value(runner: StatementRunner, source: StatementText, tree: exp.Expr, kind: Type) -> Any:
    """The constant of a column's type that a DEFAULT says."""
    clause = ClauseContext(Binder(source, runner.reader()), NameScope(), "DEFAULT")
    value = clause.bind(tree)
    if clause.scalars.type(value, tree) != kind:
        value = value.cast(kind)
        clause.scalars.type(value, tree)
    value = folded_constant(value)
    if value.op != "lit":
        raise source.error("DEFAULT takes a constant of the column's type", tree, UnsupportedError)
    found = value.params[1]
    if found is not None and not can_be_stored(found, kind):
        raise source.error(
            f"DEFAULT of a column of type {kind} is not supported: give the value in INSERT", tree, UnsupportedError
        )
    return found


def can_be_stored(value: Any, kind: Type) -> bool:
    """Whether a declaration, which keeps defaults as texts, gives back the same value."""
    arrow = arrow_type(kind)
    try:
        text = pa.scalar(value, arrow).cast(pa.string()).as_py()
        return bool(pa.scalar(text).cast(arrow).as_py() == pa.scalar(value, arrow).as_py())
    except (pa.ArrowException, TypeError, ValueError):
        return False
