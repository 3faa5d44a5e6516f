"""A pattern whose labels are chosen, as a conjunction of clauses: `tk.match` keeps it up to date, worst-case optimally if it
has a cycle.

A node variable `a` is the variable `a` of the conjunction, which stands for the node's key. Its property is the variable
`a.name`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import tektite as tk
from tektite.graph.pattern.labels import PatternStep, Way
from tektite.graph.pattern.quantified import walked
from tektite.graph.pattern.syntax import CallTerm, GraphPattern, LiteralTerm, PropertyTerm, conjuncts, properties
from tektite.graph.property_graph import PropertyGraph

OPERATORS: dict[str, Callable[..., tk.Expr]] = {
    "and": lambda *found: reduce(operator.and_, found),
    "or": lambda *found: reduce(operator.or_, found),
    "not": operator.invert,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "minus": operator.neg,
    "is_null": lambda found: found.is_null(),
    "is_not_null": lambda found: found.is_not_null(),
    "like": lambda found, pattern: found.str.like(pattern),
}
PatternClause = tuple[tk.Collection, tuple[str | None, ...]]


class WayPlan:
    """The conjunction of one way. `types` has the type of each property that some way has; a way without it has NULL."""

    def __init__(
        self, graph: PropertyGraph, pattern: GraphPattern, way: Way, types: dict[PropertyTerm, tk.Type]
    ) -> None:
        self.graph, self.pattern, self.way, self.types = graph, pattern, way, types
        self.edges = {step.edge.variable: step for step in way.steps}
        quantified = {step.edge.variable for step in way.steps if step.edge.quantifier is not None}
        inline = [(part.variable, term) for part in pattern.parts for term in conjuncts(part.where)]
        self.where = conjuncts(pattern.where) + [term for name, term in inline if name not in quantified]

    # ------------------------------------------------------------------ expressions

    def expression(self, term: Any, own: str | None = None) -> tk.Expr:
        """A term over the variables of the conjunction; or, of the variable `own`, over the columns of its label."""
        if isinstance(term, PropertyTerm):
            name = self.place(term) if own is None else self._column(term)
            return tk.lit(None, self.types[term]) if name is None else tk.col(name)
        if isinstance(term, LiteralTerm):
            return tk.lit(term.value)
        assert isinstance(term, CallTerm)
        operands = [
            part.value if term.op == "like" and isinstance(part, LiteralTerm) else self.expression(part, own)
            for part in term.operands
        ]
        return OPERATORS[term.op](*operands)

    def _column(self, term: PropertyTerm) -> str | None:
        """The column of a property, if the label of its variable has it."""
        return term.property if term.property in self._schema(term.variable).names else None

    def _schema(self, variable: str) -> tk.Schema:
        if variable in self.way.nodes:
            return self.graph.node(self.way.nodes[variable]).rows.schema
        return self.graph.edge(self.edges[variable].labels[0]).rows.schema

    def place(self, term: PropertyTerm) -> str | None:
        """The variable of the conjunction that has a property; None if the label has none of this name."""
        variable = term.variable
        if self._column(term) is None:
            return None
        if variable in self.way.nodes:
            return variable if term.property == self.graph.node(self.way.nodes[variable]).key else str(term)
        step = self.edges[variable]
        label = self.graph.edge(step.labels[0])
        ends = {
            label.src: step.right if step.turned else step.left,
            label.dst: step.left if step.turned else step.right,
        }
        return ends.get(term.property, str(term))

    def columns_of(self, variable: str) -> tuple[str, ...]:
        """The properties of a variable in this way."""
        return self._schema(variable).names

    def type(self, term: PropertyTerm) -> tk.Type | None:
        """The type of a property in this way."""
        schema = self._schema(term.variable)
        return schema.types[schema.index(term.property)] if term.property in schema.names else None

    # ------------------------------------------------------------------ clauses

    def collection(self, columns: dict[str, Any]) -> tk.Collection:
        """The result, with these columns."""
        wanted = [*self.where, *columns.values()]
        read = dict.fromkeys(found for term in wanted for found in properties(term))
        clauses = [
            self._step(step, [term for term in read if term.variable == step.edge.variable]) for step in self.way.steps
        ]
        touched = {step.left for step in self.way.steps} | {step.right for step in self.way.steps}
        for variable in self.way.nodes:
            own = [term for term in read if term.variable == variable]
            if not self.graph.checked or variable not in touched or self._needed(own):
                clauses.append(self._node(variable, own))
        variables = {name for _, terms in clauses for name in terms if name is not None}
        places = [self.place(term) for value in columns.values() for term in properties(value)]
        find = list(dict.fromkeys(name for name in places if name is not None)) or sorted(variables)[:1]
        found = tk.match(*clauses, find=find, where=[*self._conditions(), *self._loops()])
        return found.select(**{name: self.expression(value) for name, value in columns.items()})

    def _needed(self, own: list[PropertyTerm]) -> bool:
        """Whether the properties that are read need the node's row: its key is in the edge, too."""
        return any(self.place(term) not in (None, term.variable) for term in own)

    def _conditions(self) -> list[tk.Expr]:
        return [self.expression(term) for term in self.where]

    def _loops(self) -> list[tk.Expr]:
        """An edge in any direction that leads from a node to itself counts once, not once for each direction."""
        return [
            tk.col(step.left) != tk.col(step.right)
            for step in self.way.steps
            if step.again and self.way.nodes[step.left] == self.way.nodes[step.right]
        ]

    def _node(self, variable: str, own: list[PropertyTerm]) -> PatternClause:
        node = self.graph.node(self.way.nodes[variable])
        terms = {node.key: variable}
        terms |= {
            term.property: str(term) for term in own if self._column(term) is not None and term.property != node.key
        }
        return node.rows.select(list(terms)), tuple(terms.values())

    def _step(self, step: PatternStep, own: list[PropertyTerm]) -> PatternClause:
        if step.edge.quantifier is not None:
            return self._quantified(step)
        label = self.graph.edge(step.labels[0])
        left, right = (step.right, step.left) if step.turned else (step.left, step.right)
        terms = {label.src: left, label.dst: right}
        terms |= {
            term.property: str(term)
            for term in own
            if term.property in label.rows.schema.names and term.property not in terms
        }
        return label.rows.select(list(terms)), tuple(terms.values())

    def _quantified(self, step: PatternStep) -> PatternClause:
        """The pairs that a quantified edge leads between, from the end of which the pattern says more."""
        parts = []
        for label in step.labels:
            edge = self.graph.edge(label)
            conditions = [self.expression(term, step.edge.variable) for term in conjuncts(step.edge.where)]
            rows = edge.rows.filter(conditions) if conditions else edge.rows
            if not self.graph.checked:
                node = self.graph.node(edge.source)
                for end in (edge.src, edge.dst):
                    rows = rows.join(node.rows, left_on=end, right_on=node.key, how="semi")
            if not step.turned:
                parts.append(rows.select(src=edge.src, dst=edge.dst))
            if step.turned or step.edge.direction == "any":
                parts.append(rows.select(src=edge.dst, dst=edge.src))
        edges = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        left, right = self._own(step.left), self._own(step.right)
        assert step.edge.quantifier is not None
        if right and not left:
            pairs = walked(self._starts(step.right), edges.select(src="dst", dst="src"), step.edge.quantifier)
            return pairs, (step.right, step.left)
        pairs = walked(self._starts(step.left), edges, step.edge.quantifier)
        return pairs, (step.left, step.right)

    def _own(self, variable: str) -> list[Any]:
        """The conditions that are about one variable alone."""
        return [term for term in self.where if {found.variable for found in properties(term)} == {variable}]

    def _starts(self, variable: str) -> tk.Collection:
        """(start): the nodes that a variable may be, by the conditions that are about it alone."""
        node = self.graph.node(self.way.nodes[variable])
        conditions = [self.expression(term, variable) for term in self._own(variable)]
        rows = node.rows.filter(conditions) if conditions else node.rows
        return rows.select(start=node.key)
