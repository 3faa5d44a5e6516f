"""GRAPH_TABLE as the query that it means, over the tables of a property graph.

A node or an edge of a pattern becomes a member of FROM, an edge also a condition that its ends are those nodes. An edge with a
quantifier becomes the pairs of nodes that a walk leads between: a WITH RECURSIVE, which starts at the nodes that the pattern
allows at one end. A pattern without labels, or with several, has several ways to be matched: their rows are added.

So patterns are planned as other queries are: those with a cycle worst-case optimally, and all of them over shared indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.bind.definitions import EdgeLabel, GraphDefinition, NodeLabel
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.catalog.schemas import name_parts
from tektite.sql.logical import Node
from tektite.sql.parse.places import nearest
from tektite.sql.parse.property_graphs import GraphEdge, GraphPath, MatchedPattern
from tektite.sql.parse.read_arguments import copied

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder

MOST_WAYS = 64
"""Ways that a pattern may have: each is a query of its own."""
LONGEST = 32
"""The greatest number of edges that a quantifier may ask for one by one: each is a step of the dataflow."""
START, END = "#start", "#end"
REFUSED = {(exp.Query,): "a query", (exp.AggFunc,): "an aggregate", (exp.Window,): "a window function"}
"""Constructs that a pattern may not contain. A query there would be read by the rights of the graph's owner."""


GraphWay: TypeAlias = "tuple[dict[str, str], tuple[GraphStep, ...]]"
"""A way to match a pattern: the label of each node variable, and the steps."""


@dataclass(frozen=True)
class GraphStep:
    """An edge of a pattern between two variables, with a label, or with all those that a quantified edge follows."""

    edge: GraphEdge
    name: str
    left: str
    right: str
    labels: tuple[str, ...]
    is_turned: bool = False
    """Whether it is followed against its direction."""

    @property
    def is_quantified(self) -> bool:
        return "least" in self.edge.args


def graph_table(binder: Binder, node: exp.Expr, left: NameScope) -> tuple[Node, NameScope]:
    """GRAPH_TABLE in FROM: its rows and their scope."""
    pattern = node.this.args.get("pattern")
    for kinds, what in REFUSED.items():
        inner = next(pattern.find_all(*kinds), None)
        if inner is not None:
            raise binder.unsupported(
                f"{what} within GRAPH_TABLE", inner, ": write it into the query around GRAPH_TABLE"
            )
    bound = binder.tables.graph_query(binder, pattern.this, lambda graph: PatternQuery(binder, graph, pattern).tree())
    for part in node.this.expressions:
        part.args.get("this")  # the text of the pattern
    from tektite.sql.bind.table_functions import named  # which has GRAPH_TABLE among its functions

    return bound.visible(), named(binder, node, left, bound.names, bound.titles, "graph_table")


class PatternQuery:
    """The query that one pattern means."""

    def __init__(self, binder: Binder, graph: GraphDefinition, pattern: MatchedPattern) -> None:
        self.binder, self.graph, self.pattern = binder, graph, pattern
        self.names: dict[int, str] = {}
        self.ways: list[GraphWay] = []
        paths: list[GraphPath] = pattern.args["paths"]
        self.nodes = [part for path in paths for part in path.args["nodes"]]
        self.edges = [part for path in paths for part in path.args["edges"]]
        for number, part in enumerate([*self.nodes, *self.edges]):
            said = part.args.get("this")
            self.names[id(part)] = f"#{number}" if said is None else folded(said)
        self.where = conjuncts(pattern.args.get("where"))
        inline = [(part, conjuncts(part.args.get("where"))) for part in [*self.nodes, *self.edges]]
        self.where += [term for part, terms in inline for term in terms if "least" not in part.args]

    def tree(self) -> exp.Expr:
        """The query: the union of all ways to match."""
        self._check_variables()
        self.ways = ways = list(self._ways())
        self._check_properties()
        query: exp.Expr = self._way(*ways[0])
        for way in ways[1:]:
            query = exp.Union(this=query, expression=self._way(*way), distinct=False)
        return query

    # ------------------------------------------------------------------ names

    def _check_variables(self) -> None:
        """Refuse a variable that stands for two edges, or for a node and an edge."""
        seen = {self.names[id(node)] for node in self.nodes}
        for edge in self.edges:
            name = self.names[id(edge)]
            if name in seen:
                said = edge.args.get("this")
                raise self.binder.source.error(
                    f"the edge variable {name!r} is used twice; give each edge its own", said
                )
            seen.add(name)

    def _check_properties(self) -> None:
        """Refuse properties that no way has, and those of edges with a quantifier, which stand for many."""
        error = self.binder.source.error
        nodes = {self.names[id(node)] for node in self.nodes}
        edges = {self.names[id(edge)]: edge for edge in self.edges}
        known = ", ".join(sorted(name for name in (*nodes, *edges) if not name.startswith("#"))) or "none"
        parts = [*self.pattern.expressions, *(part for part in (self.pattern.args.get("where"),) if part is not None)]
        inline = [(part, part.args.get("where")) for part in [*self.nodes, *self.edges]]
        terms = [(None, term) for term in parts] + [(part, term) for part, term in inline if term is not None]
        for own, term in terms:
            if isinstance(term, exp.Star):
                raise error(
                    "COLUMNS takes variable.* for the properties of a node or an edge, not *", term, IncorrectError
                )
            for column in term.find_all(exp.Column):
                variable, name = folded(column.args.get("table")), folded(column.this)
                if not variable:
                    message = f"{name}: a property is written variable.{name}; variables are {known}"
                    raise error(message, column, IncorrectError)
                if variable not in nodes and variable not in edges:
                    raise error(f"there is no {variable!r} in MATCH; there are {known}", column, NotFoundError)
                quantified = variable in edges and "least" in edges[variable].args
                if quantified and own is not edges[variable]:
                    message = (
                        f"{variable!r} stands for many edges, so that it has no one {name!r}; put conditions into the "
                        "brackets of the edge"
                    )
                    raise error(message, column, UnsupportedError)
                if own is not None and "least" in own.args and variable != self.names[id(own)]:
                    raise error(
                        "the condition of an edge with a quantifier may read that edge alone", column, UnsupportedError
                    )
                have = self._properties(variable)
                if not isinstance(column.this, exp.Star) and name not in have:
                    raise error(
                        f"{variable}.{name}: there is no property {name!r}; there are {', '.join(have) or 'none'}",
                        column,
                        NotFoundError,
                    )

    def _properties(self, variable: str) -> list[str]:
        """The properties that a variable has in some way."""
        found: dict[str, None] = {}
        for nodes, steps in self.ways:
            if variable in nodes:
                found |= dict.fromkeys(self.graph.nodes[nodes[variable]].properties)
            for step in steps:
                if step.name == variable:
                    found |= dict.fromkeys(name for label in step.labels for name in self.graph.edges[label].properties)
        return list(found)

    # ------------------------------------------------------------------ ways

    def _ways(self) -> Iterator[GraphWay]:
        """Each choice of labels: the label of each node variable, and the steps. There is one at least, and not too many."""
        labels: dict[str, list[str]] = {}
        for node in self.nodes:
            possible = self._labels(node, self.graph.nodes, "node")
            name = self.names[id(node)]
            labels[name] = [label for label in labels.get(name, possible) if label in possible]
            if not labels[name]:
                message = f"the node {name!r} cannot have all the labels that it is given"
                raise self.binder.source.error(message, node.args.get("this"), IncorrectError)
        steps = [
            (edge, self.names[id(path.args["nodes"][at])], self.names[id(path.args["nodes"][at + 1])])
            for path in self.pattern.args["paths"]
            for at, edge in enumerate(path.args["edges"])
        ]
        many = 0
        for way in self._chosen(steps, {}, labels, ()):
            many += 1
            if many > MOST_WAYS:
                raise self.binder.unsupported(f"a pattern that can be matched in more than {MOST_WAYS} ways", self.nodes[0],
                                              ": name labels, as in (a IS label)")  # fmt: skip
            yield way
        if not many:
            message = f"no labels of property graph {self.graph.name!r} fit: no edge leads as the pattern does"
            raise self.binder.source.error(message, self.pattern.this, IncorrectError)

    def _labels(self, part: exp.Expr, known: dict[str, NodeLabel] | dict[str, EdgeLabel], kind: str) -> list[str]:
        """The labels that a node or an edge may have."""
        said = part.args.get("labels") or []
        for label in said:
            if folded(label) not in known:
                message = f"property graph {self.graph.name!r} has no {kind} label {folded(label)!r}: "
                raise self.binder.source.error(message + nearest(folded(label), list(known)), label, NotFoundError)
        return list(dict.fromkeys(map(folded, said))) or list(known)

    def _chosen(
        self,
        left: Sequence[tuple[GraphEdge, str, str]],
        chosen: dict[str, str],
        labels: dict[str, list[str]],
        steps: tuple[GraphStep, ...],
    ) -> Iterator[GraphWay]:
        """Every completion of a choice: the edges first, since they decide about their nodes."""
        if left:
            for step, source, target in self._labelled(*left[0]):
                ends = {step.left: source, step.right: target}
                again = step.is_turned and step.edge.args["direction"] == "any" and not step.is_quantified
                if step.left == step.right and (source != target or again):
                    continue
                if all(label in labels[name] and chosen.get(name, label) == label for name, label in ends.items()):
                    yield from self._chosen(left[1:], chosen | ends, labels, (*steps, step))
            return
        free = [name for name in labels if name not in chosen]
        if not free:
            yield chosen, steps
            return
        for label in labels[free[0]]:
            yield from self._chosen([], chosen | {free[0]: label}, labels, steps)

    def _labelled(self, edge: GraphEdge, left: str, right: str) -> Iterator[tuple[GraphStep, str, str]]:
        """A step with each label that it may have, and the node labels at its left and right."""
        name, direction = self.names[id(edge)], edge.args["direction"]
        labels = self._labels(edge, self.graph.edges, "edge")
        if "least" in edge.args:
            said = edge.args.get("labels")
            for label in labels if said else ():
                found = self.graph.edges[label]
                if found.source != found.target:
                    raise self.binder.unsupported(
                        f"a quantifier of an edge that leads from {found.source} to {found.target}", edge,
                        ": such edges lead between nodes of one label, so that one can follow another",
                    )  # fmt: skip
            for node in self.graph.nodes:
                usable = [one for one in labels if self.graph.edges[one].source == self.graph.edges[one].target == node]
                if usable:
                    yield GraphStep(edge, name, left, right, tuple(usable), direction == "in"), node, node
            return
        for label in labels:
            found = self.graph.edges[label]
            if direction in ("out", "any"):
                yield GraphStep(edge, name, left, right, (label,)), found.source, found.target
            if direction in ("in", "any"):
                yield GraphStep(edge, name, left, right, (label,), True), found.target, found.source

    # ------------------------------------------------------------------ one way

    def _way(self, nodes: dict[str, str], steps: tuple[GraphStep, ...]) -> exp.Expr:
        """The query of one way."""
        members = [self._node(name, label) for name, label in nodes.items()]
        where = [copied(term) for term in self.where]
        for step in steps:
            if step.is_quantified:
                members.append(self._walks(step, nodes))
                left, right = (step.right, step.left) if self._starts_right(step) else (step.left, step.right)
            else:
                members.append(self._edge(step.name, step.labels[0]))
                left, right = (step.right, step.left) if step.is_turned else (step.left, step.right)
            width = len(self.graph.nodes[nodes[left]].key)
            for variable, prefix in ((left, START), (right, END)):
                where += [
                    exp.EQ(this=column(step.name, f"{prefix}{at}"), expression=column(variable, f"#{at}"))
                    for at in range(width)
                ]
            if (
                step.is_turned
                and step.edge.args["direction"] == "any"
                and not step.is_quantified
                and nodes[left] == nodes[right]
            ):
                # an edge from a node to itself counts once, not once in each direction
                other = [
                    exp.NEQ(this=column(left, f"#{at}"), expression=column(right, f"#{at}")) for at in range(width)
                ]
                where.append(exp.Paren(this=exp.or_(*other)))
        chosen = []
        for part in self.pattern.expressions:
            if isinstance(part, exp.Column) and isinstance(part.this, exp.Star):
                variable = folded(part.args.get("table"))
                chosen += [column(variable, name) for name in self._properties(variable)]
            else:
                chosen.append(copied(part))
        joins = [exp.Join(this=member) for member in members[1:]]
        query = exp.Select(expressions=chosen, from_=exp.From(this=members[0]), joins=joins)
        if where:
            query.set("where", exp.Where(this=exp.and_(*where, copy=False)))
        return query

    def _missing(self, variable: str, has: dict[str, str]) -> list[exp.Expr]:
        """NULL for the properties that the pattern reads of a variable, and that this label lacks."""
        found = [column for column in self.pattern.find_all(exp.Column) if folded(column.args.get("table")) == variable]
        every = any(isinstance(column.this, exp.Star) for column in found)
        read = self._properties(variable) if every else dict.fromkeys(folded(column.this) for column in found)
        return [exp.alias_(exp.Null(), name, quoted=True) for name in read if name not in has]

    def _node(self, variable: str, label: str) -> exp.Subquery:
        found = self.graph.nodes[label]
        keys = [(f"#{at}", name) for at, name in enumerate(found.key)]
        return self._member(
            found.table, [*keys, *found.properties.items()], variable, self._missing(variable, found.properties)
        )

    def _edge(self, variable: str, label: str) -> exp.Subquery:
        found = self.graph.edges[label]
        ends = [
            (f"{prefix}{at}", name)
            for prefix, names in ((START, found.src), (END, found.dst))
            for at, name in enumerate(names)
        ]
        return self._member(
            found.table, [*ends, *found.properties.items()], variable, self._missing(variable, found.properties)
        )

    def _member(self, table: str, columns: list[tuple[str, str]], alias: str, more: list[exp.Expr]) -> exp.Subquery:
        """Columns of a table under names, as a member of FROM."""
        chosen: list[exp.Expr] = [exp.alias_(exp.column(quoted(name)), title, quoted=True) for title, name in columns]
        return subquery(exp.Select(expressions=[*chosen, *more], from_=exp.From(this=stored_table(table))), alias)

    # ------------------------------------------------------------------ walks

    def _own(self, variable: str) -> list[exp.Expr]:
        """The conditions that are about one variable alone, as far as a loop can take them in."""
        waiting = self.binder.placeholders is not None  # then a parameter is a column of the query around
        return [
            term
            for term in self.where
            if {folded(found.args.get("table")) for found in term.find_all(exp.Column)} == {variable}
            and not (waiting and any(term.find_all(exp.Placeholder, exp.Parameter)))
        ]

    def _starts_right(self, step: GraphStep) -> bool:
        return bool(self._own(step.right)) and not self._own(step.left)

    def _walks(self, step: GraphStep, nodes: dict[str, str]) -> exp.Subquery:
        """The pairs of nodes, each once, that a quantified edge leads between: from those that the pattern allows at an end."""
        least: int = step.edge.args["least"]
        most: int | None = step.edge.args["most"]
        if max(least, most or 0) > LONGEST:
            raise self.binder.unsupported(
                f"a quantifier of {max(least, most or 0)} edges",
                step.edge,
                f": up to {LONGEST}, or * and + without an end",
            )
        if most is not None and most < max(least, 1):
            raise self.binder.source.error(
                f"the quantifier {{{least},{most}}} has no edge to match", step.edge, IncorrectError
            )
        backwards = self._starts_right(step)
        variable = step.right if backwards else step.left
        width = len(self.graph.nodes[nodes[variable]].key)
        starts, ends = ([f"{prefix}{at}" for at in range(width)] for prefix in (START, END))
        chosen = [
            exp.alias_(column(variable, f"#{at}"), name, quoted=True)
            for name_list in (starts, ends)
            for at, name in enumerate(name_list)
        ]
        first = exp.Select(
            expressions=chosen, from_=exp.From(this=self._node(variable, nodes[variable])), distinct=exp.Distinct()
        )
        own = [copied(term) for term in self._own(variable)]
        if own:
            first.set("where", exp.Where(this=exp.and_(*own, copy=False)))
        edges = self._walked_edges(step, nodes[variable], backwards)
        titles = [*starts, *ends]
        ctes = [common("#edges", edges, None), common("#walk0", first, titles)]

        def longer(walk: str) -> exp.Select:
            on = [
                exp.EQ(this=column(walk, end), expression=column("#edges", start))
                for start, end in zip(starts, ends, strict=True)
            ]
            chosen = [*(column(walk, name) for name in starts), *(column("#edges", name) for name in ends)]
            return exp.Select(
                expressions=chosen, from_=exp.From(this=named_table(walk)),
                joins=[exp.Join(this=named_table("#edges"))], where=exp.Where(this=exp.and_(*on)), distinct=exp.Distinct(),
            )  # fmt: skip

        last = least if most is None else most
        for length in range(1, last + 1):
            ctes.append(common(f"#walk{length}", longer(f"#walk{length - 1}"), titles))
        query: exp.Expr
        if most is None:
            ctes.append(
                common(
                    "#walks",
                    exp.Union(this=all_of(f"#walk{least}"), expression=longer("#walks"), distinct=True),
                    titles,
                )
            )
            query = all_of("#walks")
        else:
            query = all_of(f"#walk{least}")
            for length in range(least + 1, most + 1):
                query = exp.Union(this=query, expression=all_of(f"#walk{length}"), distinct=True)
        query.set("with_", exp.With(expressions=ctes, recursive=True))
        return subquery(query, step.name)

    def _walked_edges(self, step: GraphStep, node: str, backwards: bool) -> exp.Expr:
        """The edges that a quantified edge follows, as pairs in the direction of the walk. What dangles leads nowhere."""
        parts: list[exp.Expr] = []
        for label in step.labels:
            found = self.graph.edges[label]
            width = len(found.src)
            own = conjuncts(step.edge.args.get("where"))
            is_any = step.edge.args["direction"] == "any"
            for is_turned in (False, True) if is_any else (step.is_turned != backwards,):
                ends = (END, START) if is_turned else (START, END)
                chosen = [
                    exp.alias_(column(step.name, f"{given}{at}"), f"{wanted}{at}", quoted=True)
                    for wanted, given in zip((START, END), ends, strict=True)
                    for at in range(width)
                ]
                members = [self._edge(step.name, label), self._node("#from", node), self._node("#to", node)]
                where = [copied(term) for term in own]
                for variable, prefix in (("#from", START), ("#to", END)):
                    where += [
                        exp.EQ(this=column(step.name, f"{prefix}{at}"), expression=column(variable, f"#{at}"))
                        for at in range(width)
                    ]
                parts.append(
                    exp.Select(
                        expressions=chosen,
                        from_=exp.From(this=members[0]),
                        joins=[exp.Join(this=one) for one in members[1:]],
                        where=exp.Where(this=exp.and_(*where, copy=False)),
                        distinct=exp.Distinct(),
                    )  # fmt: skip
                )
        query = parts[0]
        for part in parts[1:]:
            query = exp.Union(this=query, expression=part, distinct=True)
        return query


def conjuncts(term: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all be true."""
    while isinstance(term, exp.Paren):
        term = term.this
    if term is None:
        return []
    return [*conjuncts(term.this), *conjuncts(term.expression)] if isinstance(term, exp.And) else [term]


def quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def column(variable: str, name: str) -> exp.Column:
    return exp.Column(this=quoted(name), table=quoted(variable))


def subquery(query: exp.Expr, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=quoted(alias)))


def stored_table(name: str) -> exp.Table:
    """A relation by the name that the engine knows it by, whatever the search path."""
    schema, own = name_parts(name)
    return exp.Table(this=quoted(own), db=quoted(schema))


def named_table(name: str) -> exp.Table:
    return exp.Table(this=quoted(name))


def common(name: str, query: exp.Expr, titles: list[str] | None) -> exp.CTE:
    """A member of WITH."""
    return exp.CTE(
        this=query, alias=exp.TableAlias(this=quoted(name), columns=[quoted(title) for title in titles or ()])
    )


def all_of(name: str) -> exp.Select:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=named_table(name)))
