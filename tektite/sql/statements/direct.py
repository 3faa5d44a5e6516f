"""Statements that need no plan: INSERT of given rows, and SELECT of the rows under a key.

Statements that clients run thousands of times a second are mostly of these two kinds. They are recognised once, when the
statement is prepared, and answer as the planned statement would. Before running one, check that it still `stands`: that its
table or view still has that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.expr.literals import MAX_INT
from tektite.sql.bind.scope import folded
from tektite.sql.parse import parser
from tektite.sql.parse.parser import label_of
from tektite.values.schema import Schema
from tektite.values.types import DecimalType, Type
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore
    from tektite.sql.statements.runner import StatementRunner

PLAIN_INSERT = {"this", "expression"}
PLAIN_SELECT = {"expressions", "from_", "where"}
PLAIN_TABLE = {"this"}
LARGE = 18
"""Digits that no decimal has."""


@dataclass(frozen=True)
class RowInsert:
    """INSERT INTO table (columns) VALUES (parameters), one row or several."""

    name: str
    """The name of the table in the statement."""
    table: Table
    cells: tuple[tuple[str | None, ...], ...]
    """For each row and each column of the table the label of its value; None is the column's default."""
    defaults: tuple[Any, ...]
    declared: tuple[tuple[str, str], ...]
    """The defaults of the table's declaration."""
    rounding: tuple[tuple[int, Decimal], ...]
    """The columns of decimals, and the last place that each has: what is behind it is rounded, as a cast does."""

    @property
    def source(self) -> InputCore:
        """The core of the table that takes the rows."""
        return core_of(self.table)

    def stands(self, runner: StatementRunner) -> bool:
        """Whether the name still means the table, with the same defaults."""
        source = self.source
        is_it = runner.relation_named(self.name) is self.table
        return is_it and not source.closed and source.declared.defaults == self.declared

    def rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows that it inserts with these values."""
        found = [
            [default if label is None else values[label] for label, default in zip(row, self.defaults, strict=True)]
            for row in self.cells
        ]
        for at, place in self.rounding:
            for row in found:
                row[at] = rounded(row[at], place)
        return [tuple(row) for row in found]


@dataclass(frozen=True)
class LookupByKey:
    """SELECT columns FROM table or view WHERE column = parameter AND ..., where the columns are those it is ordered by first."""

    name: str
    """The name of the table or view in the statement."""
    found: Table | View
    labels: tuple[str, ...]
    """The labels of the key's values, in the order of the columns."""
    outputs: tuple[int, ...]
    columns: tuple[tuple[str, Type], ...]
    key: Schema
    """The columns of the key."""
    shape: Schema
    """The columns of the result."""

    def stands(self, runner: StatementRunner) -> bool:
        """Whether the name still means the table or view, and it can be read without waiting."""
        if runner.relation_named(self.name) is not self.found:
            return False
        core = core_of(self.found)
        return not isinstance(core, ViewCore) or (core.engine.is_current(core) and core.error is None)

    def rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows with these values."""
        dictionary = core_of(self.found).engine.dictionary
        with dictionary.text_use():
            words = self._words(values)
            return [] if words is None else self.shape.decode_rows(words, dictionary)

    def table(self, values: Mapping[str, Any]) -> pa.Table:
        """The rows with these values, as a table."""
        dictionary = core_of(self.found).engine.dictionary
        with dictionary.text_use():
            words = self._words(values)
            return self.shape.arrow.empty_table() if words is None else self.shape.decode(words, dictionary)

    def _words(self, values: Mapping[str, Any]) -> Words | None:
        """The words of the rows with these values; None if there are none. NULL equals nothing. The dictionary is being read."""
        key = tuple([values[label] for label in self.labels])
        if None in key:
            return None
        core = core_of(self.found)
        wanted: Sequence[int] = key
        kinds = zip(self.key.types, key, strict=True)
        if not all(
            [kind.kind == "int" and type(value) is int and -MAX_INT <= value <= MAX_INT for kind, value in kinds]
        ):
            wanted = self.key.encode([key], core.engine.dictionary)[:, 0].tolist()
        lead = wanted[0]
        words = core.words(None, True, lead) if isinstance(core, ViewCore) else core.words(None, lead)
        for column, word in zip(core.columns[1 : len(key)], wanted[1:], strict=True):
            words = words[:, words[column] == word]
        if not words.shape[1]:
            return None
        counts = words[-1].tolist()
        if min(counts) < 0:
            self.found.lookup(*key)  # which says that this is no collection
        if counts.count(1) < len(counts):
            words = np.repeat(words, np.maximum(counts, 0), axis=1)
        found: Words = words[list(self.outputs)]
        return found


def row_insert(runner: StatementRunner, statement: parser.Statement, given: Mapping[str, Type]) -> RowInsert | None:
    """The insert of rows that a statement is, if it is one. `given` are the types of its parameters."""
    tree = statement.tree if isinstance(statement, parser.Plain) else None
    if not isinstance(tree, exp.Insert) or said(tree) != PLAIN_INSERT or not isinstance(tree.expression, exp.Values):
        return None
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    node = tree.this if schema is None else schema.this
    found = named(runner, node)
    if not isinstance(found, Table) or core_of(found).is_stream:
        return None
    names = list(found.schema.names) if schema is None else [folded(c) for c in schema.expressions]
    kinds = dict(zip(found.schema.names, found.schema.types, strict=True))
    if len(set(names)) < len(names) or not set(names) <= set(kinds) or said(tree.expression) != {"expressions"}:
        return None
    cells = []
    for row in tree.expression.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else []
        if len(values) != len(names) or not all(map(is_parameter, values)):
            return None
        labels = {name: label_of(value) for name, value in zip(names, values, strict=True)}
        if any(given.get(label) is None or given[label].kind != kinds[name].kind for name, label in labels.items()):
            return None
        cells.append(tuple([labels.get(name) for name in kinds]))
    defaults = defaults_of(core_of(found))
    rounding = [(at, kind.scale) for at, kind in enumerate(kinds.values()) if isinstance(kind, DecimalType)]
    places = tuple([(at, Decimal(1).scaleb(-scale)) for at, scale in rounding])
    return RowInsert(
        folded(node.this), found, tuple(cells), tuple([defaults.get(name) for name in kinds]),
        core_of(found).declared.defaults, places,
    )  # fmt: skip


def key_lookup(runner: StatementRunner, statement: parser.Statement, given: Mapping[str, Type]) -> LookupByKey | None:
    """The look-up by key that a statement is, if it is one. `given` are the types of its parameters."""
    tree = statement.tree if isinstance(statement, parser.Plain) else None
    if not isinstance(tree, exp.Select) or said(tree) != PLAIN_SELECT:
        return None
    node = tree.args["from_"].this
    found = named(runner, node)
    if not isinstance(found, Table | View) or core_of(found).is_stream:
        return None
    conditions = conjuncts(tree.args["where"].this)
    names = list(found.schema.names)
    key: dict[int, str] = {}
    for condition in conditions:
        pair = equality(condition, names)
        if pair is None or names.index(pair[0]) in key:
            return None
        at = names.index(pair[0])
        type = found.schema.types[at]
        kind = type.kind
        if type.has_keys or kind == "decimal" or given.get(pair[1]) is None or given[pair[1]].kind != kind:
            return None
        key[at] = pair[1]
    order = core_of(found).columns
    if set(order[: len(key)]) != set(key):
        return None
    outputs = selected(tree.expressions, names)
    if outputs is None:
        return None
    columns = tuple([(title, found.schema.types[at]) for title, at in outputs])
    if any(type.kind == "timestamptz" for _, type in columns):  # which is shown by the clocks of the session's zone
        return None
    leading = order[: len(key)]
    return LookupByKey(
        folded(node.this), found, tuple([key[at] for at in leading]), tuple([at for _, at in outputs]), columns,
        found.schema.select(*[names[at] for at in leading]), Schema(dict(columns)),
    )  # fmt: skip


# ---------------------------------------------------------------------- parts of trees


def said(tree: exp.Expr) -> set[str]:
    """The arguments of a node that say something, none of which is read by this."""
    return {name for name, value in dict.items(tree.args) if value}


def named(runner: StatementRunner, node: exp.Expr) -> Any:
    """The relation that a bare name stands for; None for any other tree."""
    if not isinstance(node, exp.Table) or said(node) != PLAIN_TABLE or not isinstance(node.this, exp.Identifier):
        return None
    found = runner.relation_named(folded(node.this))
    return None if found is None or found.name.startswith("__") else found


def rounded(value: Any, place: Decimal) -> Any:
    """A decimal without what lies behind a place; what is none, or too large, stays.

    >>> rounded(Decimal("1.005"), Decimal("0.01")), rounded(Decimal("-2.5"), Decimal(1)), rounded(None, Decimal(1))
    (Decimal('1.01'), Decimal('-3'), None)
    """
    if not isinstance(value, Decimal) or not value.is_finite() or value.adjusted() > LARGE:
        return value
    return value.quantize(place, ROUND_HALF_UP)


def is_parameter(node: object) -> bool:
    return isinstance(node, exp.Placeholder | exp.Parameter)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND stands between."""
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return conjuncts(tree.this) if isinstance(tree, exp.Paren) else [tree]


def equality(tree: exp.Expr, names: Sequence[str]) -> tuple[str, str] | None:
    """The column and the label of `column = parameter`."""
    if not isinstance(tree, exp.EQ):
        return None
    column, value = (tree.this, tree.expression) if is_parameter(tree.expression) else (tree.expression, tree.this)
    name = column_name(column, names)
    return None if name is None or not is_parameter(value) else (name, label_of(value))


def column_name(node: exp.Expr, names: Sequence[str]) -> str | None:
    if not isinstance(node, exp.Column) or said(node) != {"this"} or not isinstance(node.this, exp.Identifier):
        return None
    name = folded(node.this)
    return name if name in names else None


def selected(items: Sequence[exp.Expr], names: Sequence[str]) -> list[tuple[str, int]] | None:
    """The titles and places of the columns of a SELECT list that holds columns alone, each once."""
    if len(items) == 1 and isinstance(items[0], exp.Star) and not said(items[0]):
        return [(name, at) for at, name in enumerate(names)]
    found = []
    for item in items:
        is_alias = isinstance(item, exp.Alias)
        name = column_name(item.this if is_alias else item, names)
        if name is None:
            return None
        title = folded(item.args["alias"]) if is_alias else name
        found.append((title, names.index(name)))
    return found if len({title for title, _ in found}) == len(found) else None
