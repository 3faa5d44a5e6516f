"""Describes a statement before it runs: the types of its parameters, and the columns of its result.

A parameter has the type of the column that it is compared with or written to, or the type that it is cast to. Otherwise it is a
text, because a constant text is converted to the type that is needed. The statement is bound twice: with NULLs in
place of the parameters, which fit anywhere, to see what each one meets; then with NULLs of the types found. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import Expr, col, lit
from tektite.expr import type_of as expression_type
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.functions import column_type
from tektite.sql.bind.query import Binder
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.catalog_lookup import said_type
from tektite.sql.catalog.pg_types import OID, PG_TYPES, REGISTERED
from tektite.sql.logical import outer_columns
from tektite.sql.parse import parser
from tektite.sql.parse.parser import label_of
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import copied
from tektite.sql.statements.prepared_names import found_prepared, refused
from tektite.sql.statements.table_writes import target
from tektite.values import types
from tektite.values.types import Type
from tektite.values.words import type_of_field

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.sql.statements.runner import StatementRunner

NamedTypes = list[tuple[str, Type]]
"""Titles and types, in order; a title may come twice."""
TEXTUAL = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.DPipe)
COUNTED = (exp.Limit, exp.Offset)


@dataclass(frozen=True)
class Description:
    """The parameters of a statement by label, in order, and the columns of its result; None if it gives no rows."""

    parameters: dict[str, Type]
    columns: NamedTypes | None
    declared: tuple[str, ...] = ()
    """PostgreSQL's names for the types of columns of system relations; empty for others."""


def describe(
    runner: StatementRunner, statement: parser.Statement, declared: Mapping[str, Type] | None = None
) -> Description:
    """The parameters and the result columns of a statement. `declared` are types that the caller knows, by label."""
    return StatementDescriber(runner, statement, declared or {}).description()


class StatementDescriber:
    """Works out the description of one statement."""

    def __init__(self, runner: StatementRunner, statement: parser.Statement, declared: Mapping[str, Type]) -> None:
        self.runner = runner
        self.statement = statement
        self.source: StatementText = statement.source
        labels = sorted(parser.parameters_of(statement), key=lambda label: (not label.isdigit(), label.zfill(9)))
        self.types: dict[str, Type] = {label: declared.get(label, types.String) for label in labels}
        self.declared: tuple[str, ...] = ()
        self.unknown = {label for label in labels if label not in declared}

    def description(self) -> Description:
        statement = self.statement
        match statement:
            case parser.Plain():
                columns = self.plain(statement.tree)
            case parser.Explain():
                columns = [("plan", types.String)]
            case parser.Subscribe():
                columns = [*self.query(statement.tree), ("time", types.Int), ("diff", types.Int)]
            case parser.Show():
                result = self.runner.statement(statement, {}).table
                assert result is not None
                columns = [(field.name, type_of_field(field)) for field in result.schema]
            case parser.Execute() if (prepared := found_prepared(self.runner, statement.name)) is not None:
                inner = parser.Plain(prepared.source, prepared.source.start, prepared.tree)
                try:
                    found = describe(self.runner, inner)
                except PermissionDenied as error:
                    raise refused(prepared, self.runner.access.who(), error) from None
                return Description(self.types, found.columns, found.declared)
            case _:
                columns = None
        return Description(self.types, columns, self.declared)

    def plain(self, tree: exp.Expr) -> NamedTypes | None:
        if isinstance(tree, exp.Query | exp.Values):
            return self.query(tree)
        if isinstance(tree, exp.Insert):
            return self.insert(tree)
        if isinstance(tree, exp.Update | exp.Delete):
            return self.changed_rows(tree)
        return None

    # ------------------------------------------------------------------ queries

    def query(self, tree: exp.Expr, wanted: Sequence[Type] = ()) -> NamedTypes:
        """The columns of a query, whose outputs are to be of the types wanted."""
        if self.unknown & {label_of(node) for node in placeholders(tree)}:
            self.infer(tree, wanted)
        return self.bound_columns(tree)

    def infer(self, tree: exp.Expr, wanted: Sequence[Type] = ()) -> None:
        """Find the types of parameters in a query that nothing is known of yet."""
        for at, output in enumerate(outputs(tree)):
            for cell in output:
                if is_placeholder(cell) and at < len(wanted):
                    self.found(label_of(cell), wanted[at])
        binder = self.binder()
        binder.meanings = {}
        binder.placeholders = {label: lit(None) for label in self.types} | counts(tree)
        try:
            with outer_columns(binder.columns):
                binder.query(tree, None)
        except TektiteError:
            pass  # what was bound before the mistake has been noted, and the mistake is told when the statement is run
        for node in placeholders(tree):
            type = self.type_met(node, binder)
            if type is not None:
                self.found(label_of(node), type)

    def found(self, label: str, type: Type) -> None:
        if label in self.unknown:
            self.types[label] = type
            self.unknown.discard(label)

    def type_met(self, node: exp.Expr, binder: Binder) -> Type | None:
        """The type of what a parameter meets, if that has one."""
        around = node.parent
        while isinstance(around, exp.Paren | exp.Neg):
            node, around = around, around.parent
        if isinstance(around, COUNTED):
            return types.Int
        if isinstance(around, TEXTUAL):
            return types.String
        if isinstance(around, exp.Cast) and said_type(around.args["to"]) in REGISTERED:
            return types.String  # a name, for the oid that has it
        if isinstance(around, exp.Cast) and said_type(around.args["to"]).startswith("_"):
            return list_type(self.source, around.args["to"])
        if isinstance(around, exp.Cast):
            return self.type_of(around, binder)
        if isinstance(around, exp.Any | exp.All):  # an array of what it is compared with
            met = self.type_met(around, binder)
            return None if met is None else types.ListType("list", met)
        if isinstance(around, exp.Binary | exp.Between | exp.In | exp.Coalesce | exp.Tuple | exp.If | exp.Case):
            for other in parts_beside(around, node):
                type = self.type_of(other, binder)
                if type is not None:
                    return type
        return None

    def type_of(self, node: exp.Expr, binder: Binder) -> Type | None:
        meaning = None if binder.meanings is None else binder.meanings.get(id(node))
        if not isinstance(meaning, Expr) or (meaning.op == "lit" and meaning.params[1] is None):
            return None
        try:
            return expression_type(meaning, binder.columns)
        except TektiteError:
            return None

    def bound_columns(self, tree: exp.Expr) -> NamedTypes:
        """The columns of a query whose parameters have the types that are known."""
        try:
            bound = self.bound(tree, {label: lit(None, type) for label, type in self.types.items()})
        except TektiteError:
            # Where a constant is needed, such as the name of a field or the number of a dimension, NULL does not do.
            samples = {types.String: lambda label: lit(label.zfill(2)), types.Int: lambda label: lit(1)}
            if not any(type in samples for type in self.types.values()):
                raise
            given = {
                label: samples[type](label) if type in samples else lit(None, type)
                for label, type in self.types.items()
            }
            bound = self.bound(tree, given)
        kinds = bound.plan.columns
        found = [(title, kinds[name]) for title, name in zip(bound.titles, bound.names, strict=True)]
        # An oid that is shown as a name is a text in the result.
        shown = zip(found, self.declared, strict=True)
        return [(title, types.String if said in REGISTERED else type) for (title, type), said in shown]

    def bound(self, tree: exp.Expr, parameters: dict[str, Expr]) -> Bound:
        """A query with some expressions in place of its parameters."""
        binder = self.binder()
        binder.placeholders = parameters | counts(tree)
        with outer_columns(binder.columns):
            found = binder.query(tree, None)
        self.declared = tuple([binder.declared(col(name)) for name in found.names])
        return found

    def binder(self) -> Binder:
        return Binder(self.source, self.runner.reader())

    # ------------------------------------------------------------------ changes

    def insert(self, tree: exp.Insert) -> NamedTypes | None:
        schema = tree.this if isinstance(tree.this, exp.Schema) else None
        table = target(self.runner, self.source, tree.this if schema is None else schema.this)
        names = list(table.schema.names) if schema is None else [folded(c) for c in schema.expressions]
        known = dict(zip(table.schema.names, table.schema.types, strict=True))
        if tree.expression is not None:
            self.infer(tree.expression, [known[name] for name in names if name in known])
        conflict = tree.args.get("conflict")
        for part in conflict.expressions if conflict is not None else ():
            if isinstance(part, exp.EQ) and is_placeholder(part.expression) and part.this.name in known:
                self.found(label_of(part.expression), known[part.this.name])
        return self.returned(tree, table, None)

    def changed_rows(self, tree: exp.Update | exp.Delete) -> NamedTypes | None:
        table = target(self.runner, self.source, tree.this)
        # SET x = $1 is written like a comparison, and its parameter is of the column's type as in one.
        sets = [copied(part) for part in tree.expressions] if isinstance(tree, exp.Update) else []
        others = tree.args.get("from_") if isinstance(tree, exp.Update) else None
        joined = [others.this] if others is not None else list(tree.args.get("using") or ())
        where = tree.args.get("where")
        query = exp.Select(
            expressions=[*sets, exp.Literal.number(1)],
            from_=exp.From(this=copied(tree.this)),
            joins=[exp.Join(this=copied(other)) for other in joined],
            where=where and copied(where),
        )
        self.infer(query)
        return self.returned(tree, table, tree.this.args.get("alias"))

    def returned(self, tree: exp.Expr, table: Table, alias: exp.Expr | None) -> NamedTypes | None:
        """The columns of RETURNING."""
        returning = tree.args.get("returning")
        if returning is None:
            return None
        source = exp.Table(this=exp.to_identifier(table.name, quoted=True), alias=alias and alias.copy())
        outputs = [copied(part) for part in returning.expressions]
        return self.query(exp.Select(expressions=outputs, from_=exp.From(this=source)))


def placeholders(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parameters in a tree."""
    return tree.find_all(exp.Placeholder, exp.Parameter)


def counts(tree: exp.Expr) -> dict[str, Expr]:
    """Numbers in place of the parameters that are a LIMIT or an OFFSET, which NULL cannot stand for."""
    limits = [node.expression for node in tree.find_all(*COUNTED) if is_placeholder(node.expression)]
    return {label_of(node): lit(0) for node in limits}


def is_placeholder(node: object) -> bool:
    return isinstance(node, exp.Placeholder | exp.Parameter)


def outputs(tree: exp.Expr) -> list[list[exp.Expr]]:
    """The trees of each output column: of a SELECT list, or of the rows of VALUES."""
    if isinstance(tree, exp.Select):
        return [[item.this if isinstance(item, exp.Alias) else item] for item in tree.expressions]
    if isinstance(tree, exp.Values):
        rows = [row.expressions for row in tree.expressions if isinstance(row, exp.Tuple)]
        return [list(cells) for cells in zip(*rows, strict=False)]
    return []


def parts_beside(around: exp.Expr, node: exp.Expr) -> Iterator[exp.Expr]:
    """The trees in an expression beside one of them, near ones first; of a branch of CASE, those of the other branches."""
    for value in around.args.values() if not isinstance(around, exp.If) else ():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and part is not node and not is_placeholder(part):
                yield part.args["true"] if isinstance(part, exp.If) else part
    if isinstance(around, exp.If) and isinstance(around.parent, exp.Case):
        yield from parts_beside(around.parent, around)


def list_type(source: StatementText, to: exp.DataType) -> Type:
    """The type of lists that a cast to an array names; of one that only the catalogs have, of the texts or numbers it holds."""
    try:
        return column_type(source, to)
    except TektiteError:
        element = PG_TYPES.get(said_type(to).removeprefix("_"))
        return types.ListType("list", OID if element is not None and element.category == "N" else types.String)
