"""CREATE PROPERTY GRAPH: names for the tables and columns that patterns are about. The tables are the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.errors import ConflictError, IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.access.access_control import table_object
from tektite.sql.bind.definitions import EdgeLabel, GraphDefinition, NodeLabel
from tektite.sql.bind.property_graphs import stored_table
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import written_name
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.property_graphs import KIND, EdgeEnd, ElementTable
from tektite.sql.statements.create import new_name, replaceable
from tektite.sql.statements.result import Result
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def create_property_graph(runner: StatementRunner, source: StatementText, tree: exp.Create) -> Result:
    """CREATE [OR REPLACE] PROPERTY GRAPH [IF NOT EXISTS] name VERTEX TABLES (...) EDGE TABLES (...)."""
    what = f"CREATE {KIND}"
    replaced = replaceable(runner, source, tree, tree.this, KIND.lower())
    name = replaced or new_name(runner, source, tree, tree.this)
    if name is None:
        return Result(what)
    made = GraphElementReader(runner, source, name, tree).read()
    runner.definitions[name] = made
    runner.access.created(table_object(name), replaced is None)
    return Result(what)


class GraphElementReader:
    """Finds the tables and columns of one graph, and checks them before anything is changed."""

    def __init__(self, runner: StatementRunner, source: StatementText, name: str, tree: exp.Create) -> None:
        self.runner, self.source, self.name, self.tree = runner, source, name, tree
        self.reads: set[str] = set()
        self.schemas: dict[str, Schema] = {}
        self.nodes: dict[str, NodeLabel] = {}
        self.edges: dict[str, EdgeLabel] = {}
        self.labels: dict[str, str] = {}
        """The label of each table of nodes, by the name that edges call it by."""

    def read(self) -> GraphDefinition:
        elements = self.tree.expression
        for element in elements.args.get("nodes"):
            table, schema = self._relation(element)
            key = self._key(element, table, schema)
            label = self._label(element)
            alias = folded(element.args.get("alias"))
            if alias in self.labels:
                message = (
                    f"property graph {self.name!r} has two tables of nodes called {alias!r}; name one of them with AS"
                )
                raise self.source.error(message, element.args.get("alias"), ConflictError)
            self.labels[alias] = label
            self.nodes[label] = NodeLabel(table, key, self._properties(element, schema))
        for element in elements.args.get("edges"):
            table, schema = self._relation(element)
            source, target = element.args.get("ends")
            src, dst = self._end(element, source, schema), self._end(element, target, schema)
            label = self._label(element)
            self.edges[label] = EdgeLabel(table, src[0], dst[0], src[1], dst[1], self._properties(element, schema))
        return GraphDefinition(
            self.name, exp.Select(expressions=[exp.Null()]), [], self.source, self.reads, frozenset(self.reads),
            nodes=self.nodes, edges=self.edges,
        )  # fmt: skip

    def _relation(self, element: ElementTable) -> tuple[str, Schema]:
        """The name and the columns of a table or view, which the user may read."""
        node = element.this
        written = written_name(self.source, node)
        found = self.runner.relation_named(written)
        if isinstance(found, GraphDefinition):
            raise self.source.error(f"{written!r} is a property graph; name a table or a view", node, IncorrectError)
        if found is None or found.name.startswith("__"):
            hint = nearest(written, self.runner.visible())
            raise self.source.error(f"there is no table or view {written!r}: {hint}", node, NotFoundError)
        every = exp.Select(expressions=[exp.Star()], from_=exp.From(this=stored_table(found.name)))
        planned = self.runner.bind_standing(self.source, every, {})  # which checks rights
        if planned.reads_system:
            raise self.source.error(f"{written!r} is of the system; name a table or a view", node, UnsupportedError)
        self.reads |= {found.name} | planned.reads
        kinds = [planned.bound.plan.columns[column] for column in planned.bound.names]
        schema = self.schemas[found.name] = Schema(dict(zip(planned.bound.titles, kinds, strict=True)))
        return found.name, schema

    def _label(self, element: ElementTable) -> str:
        said = element.args.get("label")
        label = folded(said)
        if label in self.nodes or label in self.edges:
            message = f"property graph {self.name!r} has the label {label!r} twice; give each table one with LABEL"
            raise self.source.error(message, said, ConflictError)
        return label

    def _column(self, node: exp.Identifier, schema: Schema, table: str) -> str:
        name = folded(node)
        if name in schema.names:
            return name
        same = [known for known in schema.names if known.lower() == name.lower()]
        if len(same) == 1:
            return same[0]
        message = f"table {table!r} has no column {name!r}: {nearest(name, list(schema.names))}"
        raise self.source.error(message, node, NotFoundError)

    def _key(self, element: ElementTable, table: str, schema: Schema) -> tuple[str, ...]:
        """The columns that tell nodes apart: those that are said, or those of the primary key."""
        said = element.args.get("key")
        if said:
            return tuple(self._column(node, schema, table) for node in said)
        found = self.runner.relation_stored(table)
        unique = core_of(found).unique if isinstance(found, Table) else None
        if not unique or isinstance(found, Table) and core_of(found).semantics == "set":
            message = f"table {table!r} has no primary key: say KEY (columns) behind it"
            raise self.source.error(message, element.this, IncorrectError)
        return tuple(schema.names[at] for at in unique)

    def _properties(self, element: ElementTable, schema: Schema) -> dict[str, str]:
        said = element.args.get("properties")
        if said is None:
            return {name: name for name in schema.names}
        found: dict[str, str] = {}
        for one in said:
            name = folded(one.args.get("alias"))
            if name in found:
                raise self.source.error(f"the property {name!r} is there twice", one.args.get("alias"), ConflictError)
            found[name] = self._column(one.this, schema, folded(element.this.this))
        return found

    def _end(self, element: ElementTable, end: EdgeEnd, schema: Schema) -> tuple[str, tuple[str, ...]]:
        """The node label that an edge leads from or to, and the columns that have its key."""
        called = folded(end.this)
        if called not in self.labels:
            message = (
                f"property graph {self.name!r} has no table of nodes {called!r}: {nearest(called, list(self.labels))}"
            )
            raise self.source.error(message, end.this, NotFoundError)
        label = self.labels[called]
        node = self.nodes[label]
        columns = tuple(self._column(one, schema, folded(element.this.this)) for one in end.args["key"])
        names = self.schemas[node.table]
        references = tuple(self._column(one, names, node.table) for one in end.args["references"])
        key = node.key
        if references and sorted(references) != sorted(key):
            message = f"edges lead to the key of {called!r}, which is {', '.join(key)}"
            raise self.source.error(message, end.args["references"][0], UnsupportedError)
        if len(columns) != len(key):
            message = f"the key of {called!r} has {len(key)} columns ({', '.join(key)}), not {len(columns)}"
            raise self.source.error(message, end.args["key"][0], IncorrectError)
        if references:
            columns = tuple(columns[references.index(one)] for one in key)
        for own, other in zip(columns, key, strict=True):
            kinds = schema.types[schema.index(own)], names.types[names.index(other)]
            if kinds[0] != kinds[1]:
                message = f"{own!r} is {kinds[0]}, but the key {other!r} of {called!r} is {kinds[1]}"
                raise self.source.error(message, end.args["key"][0], IncorrectError)
        return label, columns
