"""Binding queries: from sqlglot's tree to a logical plan, with every name resolved and every type checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlglot import exp

from tektite import types
from tektite.errors import IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import Expr, coalesce, col, lit
from tektite.expr import type_of as expression_type
from tektite.sql import recursion, relations, windows
from tektite.sql.clause import Clause, Grouping
from tektite.sql.known import check_arguments
from tektite.sql.logical import (
    Compare,
    Distinct,
    Filter,
    Names,
    Node,
    Ordering,
    Project,
    Top,
    Union,
    Values,
    free_columns,
)
from tektite.sql.scope import Scope, folded
from tektite.sql.text import Source
from tektite.types import Type


class Tables(Protocol):
    """What a query can read."""

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        """A table's, view's or definition's plan, and the visible names of its columns."""

    def now(self, binder: Binder) -> Node:
        """A relation of one row and one column: the time."""


@dataclass
class Bound:
    """A bound query: its plan, the unique and the visible names of its columns, and the order asked for."""

    plan: Node
    names: list[str]
    titles: list[str]
    order: tuple[Ordering, ...] = ()

    def visible(self) -> Node:
        """The plan without the columns that only its order needs."""
        if list(self.plan.columns) == self.names:
            return self.plan
        return Project(self.plan, tuple((name, col(name)) for name in self.names))


@dataclass
class Definition:
    """A common table expression: its tree, what its columns are called, and the scope it is bound in."""

    tree: exp.Expr
    aliases: list[str]
    ctes: dict[str, Any] = field(default_factory=dict)
    scope: Scope | None = None


class Binder:
    """Binds the queries of one statement."""

    def __init__(self, source: Source, tables: Tables, parameters: Mapping[str, Any] | None = None) -> None:
        self.source = source
        self.tables = tables
        self.parameters = parameters or {}
        self.names = Names()
        self.columns: dict[str, tuple[int, Type]] = {}
        self.places: dict[str, exp.Expr] = {}
        self.ctes: dict[str, Any] = {}
        self.expanding: list[str] = []
        self.placeholders: dict[str, Expr] | None = None
        """The columns that stand for a prepared statement's parameters, by number or name."""

    def name(self, wish: str, type: Type) -> str:
        """A new column."""
        name = self.names.new(wish)
        self.columns[name] = (0, type)
        return name

    def unsupported(self, what: str, node: exp.Expr) -> TektiteError:
        return self.source.error(f"{what} is not supported", node, UnsupportedError)

    def parameter(self, node: exp.Expr) -> Expr:
        """The value of a parameter, or the column that stands for it."""
        label = node.name if isinstance(node.this, exp.Expr) else str(node.this or "")
        if self.placeholders is not None:
            if label not in self.placeholders:
                raise self.source.error(f"there is no parameter ${label}", node, NotFoundError)
            return self.placeholders[label]
        if label not in self.parameters:
            given = ", ".join(self.parameters) or "none"
            raise self.source.error(
                f"there is no value for parameter {label!r}; given are: {given}", node, NotFoundError
            )
        try:
            return lit(self.parameters[label])
        except (TypeError, TektiteError) as error:
            raise self.source.error(f"parameter {label!r}: {error}", node, IncorrectError) from None

    # ------------------------------------------------------------------ queries

    def query(self, node: exp.Expr, scope: Scope | None) -> Bound:
        """A query, in the scope of the query around it."""
        outer = self.ctes
        try:
            return self._query(node, scope)
        finally:
            self.ctes = outer

    def _query(self, node: exp.Expr, scope: Scope | None) -> Bound:
        while isinstance(node, exp.Subquery | exp.Paren) and not modifiers(node):
            node = node.this
        check_arguments(self.source, node)
        with_clause = node.args.get("with_")
        if with_clause is not None:
            self.ctes = dict(self.ctes)
            self._with(with_clause, scope)
        if isinstance(node, exp.Select):
            return self.select(node, scope)
        if isinstance(node, exp.SetOperation):
            return self._modified(node, self._set_operation(node, scope))
        if isinstance(node, exp.Values):
            return self._values(node, scope)
        if isinstance(node, exp.Subquery):
            return self._modified(node, self.query(node.this, scope))
        raise self.unsupported(f"{node.key.upper()} as a query", node)

    def _with(self, node: exp.With, scope: Scope | None) -> None:
        if node.args.get("recursive"):
            recursion.bind(self, node, scope)
            return
        for cte in node.expressions:
            self.ctes[folded(cte.args["alias"].this)] = self.definition(cte, scope)

    def definition(self, cte: exp.CTE, scope: Scope | None) -> Definition:
        """What a WITH clause says of one name."""
        return Definition(cte.this, [folded(c) for c in cte.args["alias"].columns], dict(self.ctes), scope)

    def defined(self, found: Definition, node: exp.Expr) -> Bound:
        """A common table expression's query, bound anew for each use of it."""
        outer, self.ctes = self.ctes, found.ctes
        try:
            bound = self.query(found.tree, found.scope)
        finally:
            self.ctes = outer
        return Bound(bound.visible(), bound.names, self.aliased(bound.titles, found.aliases, node))

    def aliased(self, titles: list[str], aliases: list[str], node: exp.Expr) -> list[str]:
        """Visible names with the first of them replaced by a list of aliases."""
        if len(aliases) > len(titles):
            raise self.source.error(f"{len(aliases)} names for {len(titles)} columns", node)
        return [*aliases, *titles[len(aliases) :]]

    # ------------------------------------------------------------------ SELECT

    def select(self, node: exp.Select, scope: Scope | None) -> Bound:
        """SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT."""
        plan, here = relations.bind_from(self, node, scope)
        where = node.args.get("where")
        if where is not None:
            clause = Clause(self, here, "WHERE")
            predicate = clause.predicate(where.this)
            plan = Filter(clause.attach(plan), predicate)
        return SelectList(self, node, here, plan).bound()

    # ------------------------------------------------------------------ set operations and values

    def _set_operation(self, node: exp.SetOperation, scope: Scope | None) -> Bound:
        if node.args.get("by_name") or node.args.get("on"):
            raise self.unsupported("BY NAME", node)
        # a long chain of UNIONs nests to the left: walk down it instead of recursing
        chain: list[exp.SetOperation] = []
        first: exp.Expr = node
        while isinstance(first, exp.SetOperation) and (
            first is node or not modifiers(first) and not first.args.get("with_")
        ):
            chain.append(first)
            first = first.this
        found = self.query(first, scope)
        for operation in reversed(chain):
            found = self.combine(operation, found, self.query(operation.expression, scope))
        return found

    def combine(self, node: exp.SetOperation, left: Bound, right: Bound) -> Bound:
        """UNION, INTERSECT or EXCEPT of two queries."""
        one, other = self.unify([left.visible(), right.visible()], node)
        names = [self.name(title, type) for title, type in zip(left.titles, one.columns.values(), strict=True)]
        every = node.args.get("distinct") is False
        plan: Node
        if isinstance(node, exp.Union):
            plan = Union((one, other), tuple(names))
            plan = plan if every else Distinct(plan)
        else:
            kind = "except" if isinstance(node, exp.Except) else "intersect"
            compared = Compare(one, other, kind, every)
            plan = Project(compared, tuple((new, col(old)) for new, old in zip(names, one.columns, strict=True)))
        return Bound(plan, names, left.titles)

    def unify(self, parts: list[Node], node: exp.Expr) -> list[Node]:
        """Relations with the same number of columns, each column cast to the type that fits all parts."""
        width = len(parts[0].columns)
        if any(len(part.columns) != width for part in parts):
            widths = " and ".join(str(len(part.columns)) for part in parts)
            raise self.source.error(f"queries of {widths} columns cannot be combined", node)
        wanted: list[Type] = []
        for at in range(width):
            given = {
                f"{i}": (0, list(part.columns.values())[at]) for i, part in enumerate(parts) if not nothing(part, at)
            }
            try:
                wanted.append(expression_type(coalesce(*map(col, given)), given) if given else types.Int)
            except TektiteError:
                found = " and ".join(str(t) for _, t in given.values())
                raise self.source.error(f"column {at + 1} is {found}: cast one of them", node) from None
        return [self.cast(part, wanted) for part in parts]

    def cast(self, part: Node, wanted: list[Type]) -> Node:
        """A relation with its columns of these types."""
        if list(part.columns.values()) == wanted:
            return part
        outputs = []
        for at, ((name, found), type) in enumerate(zip(part.columns.items(), wanted, strict=True)):
            value = col(name) if found == type else lit(None, type) if nothing(part, at) else col(name).cast(type)
            outputs.append((self.name(name, type), value))
        return Project(part, tuple(outputs))

    def _values(self, node: exp.Values, scope: Scope | None) -> Bound:
        return self._modified(node, relations.constant_rows(self, node.expressions, scope, node))

    def _modified(self, node: exp.Expr, bound: Bound) -> Bound:
        """ORDER BY and LIMIT behind a set operation or a query in parentheses: over its columns alone."""
        order = []
        for ordered in node.args["order"].expressions if node.args.get("order") else ():
            at = output_place(ordered.this, bound.titles)
            if at is None:
                raise self.source.error("ORDER BY here takes columns of the result, by name or number", ordered)
            order.append(self.ordering(ordered, bound.names[at]))
        limit, offset = self.limits(node)
        plan = bound.plan
        if limit is not None or offset:
            plan = Top(plan, (), tuple(order), limit, offset)
        return Bound(plan, bound.names, bound.titles, tuple(order) or bound.order)

    def ordering(self, node: exp.Ordered, name: str) -> Ordering:
        """One member of ORDER BY, NULLs last unless it says otherwise."""
        check_arguments(self.source, node)
        return Ordering(name, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def limits(self, node: exp.Expr) -> tuple[int | None, int]:
        """LIMIT and OFFSET."""
        limit = node.args.get("limit")
        count = None
        if limit is not None:
            tree = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
                raise self.unsupported("LIMIT by percentage or WITH TIES", limit)
            if not isinstance(tree, exp.Null):
                count = 1 if tree is None else self._count(tree, "LIMIT")
        offset = node.args.get("offset")
        return count, 0 if offset is None else self._count(offset.expression, "OFFSET")

    def _count(self, node: exp.Expr, what: str) -> int:
        value = Clause(self, Scope(), what).bind(node)
        if value.op != "lit" or type(value.params[1]) is not int or value.params[1] < 0:
            raise self.source.error(f"{what} takes a whole number that is not negative", node)
        return int(value.params[1])

    def window(self, node: exp.Window, clause: Clause) -> Expr:
        """A window function: a column of the window operator over the clause's relation."""
        return col(windows.declare(self, node, clause))


class SelectList:
    """What a SELECT makes of the rows that FROM and WHERE gave."""

    def __init__(self, binder: Binder, node: exp.Select, scope: Scope, plan: Node) -> None:
        self.binder = binder
        self.node = node
        self.scope = scope
        self.plan = plan
        inner = Clause(binder, scope, "an aggregate")
        self.grouping = Grouping(binder, inner, outer=set(plan.columns))
        self.clause = Clause(binder, scope, "SELECT", self.grouping)
        self.clause.windows = []
        self.titles: list[str] = []
        self.outputs: list[Expr] = []
        self.trees: list[exp.Expr] = []

    def bound(self) -> Bound:
        if not self.node.expressions:
            raise self.binder.source.error("syntax error: SELECT needs at least one column", self.node)
        for item in self.node.expressions:
            self._item(item)
        group = self.node.args.get("group")
        grouped = group is not None
        if group is not None:
            self._group(group)
        having = self.node.args.get("having")
        condition = None if having is None else self.clause.predicate(having.this)
        qualify = self.node.args.get("qualify")
        chosen = None if qualify is None else self.clause.predicate(qualify.this)
        order = self._order()
        plan = self.plan
        if grouped or self.grouping.calls or condition is not None:
            plan = self.grouping.apply(plan)
            over = self.grouping.over_groups
            self.outputs = [over(output) for output in self.outputs]
            condition = None if condition is None else over(condition)
            chosen = None if chosen is None else over(chosen)
            order = [(over(expression), tree) for expression, tree in order]
            self._subqueries_over_groups()
        else:
            over = unchanged
        plan = self.clause.attach(plan)
        if condition is not None:
            plan = Filter(plan, condition)
        if self.clause.windows:
            plan = windows.apply(self.binder, plan, self.clause, over)
            if chosen is not None:
                plan = Filter(plan, chosen)
        elif chosen is not None:
            raise self.binder.source.error("QUALIFY needs a window function", self.node.args["qualify"])
        return self._projected(plan, order)

    def _subqueries_over_groups(self) -> None:
        """Subqueries beside aggregates see the groups' columns."""
        known = {name for name, _ in self.grouping.keys} | {name for name, _ in self.grouping.calls}
        for pending in self.clause.pending:
            pending.tests = tuple(self.grouping.over_groups(test) for test in pending.tests)
            for name in free_columns(pending.plan):
                if name in self.grouping.outer and name not in known:
                    place = self.binder.places.get(name)
                    message = f"column {name!r} is neither in GROUP BY nor in an aggregate"
                    raise self.binder.source.error(message, place)

    # ------------------------------------------------------------------ clauses

    def _item(self, item: exp.Expr) -> None:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            table = folded(item.args.get("table")) if isinstance(item, exp.Column) else ""
            for title, unique in relations.expand(self.binder, self.scope, star, table, item):
                self.titles.append(title)
                self.outputs.append(col(unique))
                self.trees.append(item)
                self.binder.places.setdefault(unique, item)
            return
        self.outputs.append(self.clause.bind(item))
        self.titles.append(title_of(item))
        self.trees.append(item)

    def _group(self, group: exp.Group) -> None:
        for kind in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(kind):
                raise self.binder.unsupported(f"GROUP BY {kind.upper().replace('_', ' ')}", group)
        trees = group.expressions
        if group.args.get("all"):
            trees = [tree for tree in self.trees if not tree.find(exp.AggFunc)]
        sets: list[list[Expr]] = [[]]
        for tree in trees:
            found = [[self._key(part) for part in parts] for parts in grouping_sets(tree)]
            for keys in found:
                for key in keys:
                    self.grouping.key(key, tree)
            sets = [[*known, *keys] for known in sets for keys in found]
        if len(sets) > 1:
            self.grouping.sets = [{key.fingerprint for key in keys} for keys in sets]

    def _key(self, tree: exp.Expr) -> Expr:
        """A key: an output by its number, a column, an output by its name, or an expression."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            at = output_place(tree, self.titles)
            if at is None:
                message = f"GROUP BY {tree.this}: SELECT has {len(self.titles)} columns"
                raise self.binder.source.error(message, tree)
            return self.outputs[at]
        if isinstance(tree, exp.Column) and not tree.args.get("table"):
            column = folded(tree.this)
            if not self.scope.find(column, "") and column in self.titles:
                return self.outputs[self.titles.index(column)]
        clause = Clause(self.binder, self.scope, "GROUP BY")
        found = clause.bind(tree)
        self.plan = clause.attach(self.plan)
        return found

    def _order(self) -> list[tuple[Expr, exp.Ordered]]:
        """What ORDER BY orders by: outputs by number or name first, then expressions."""
        found = []
        for ordered in self.node.args["order"].expressions if self.node.args.get("order") else ():
            at = output_place(ordered.this, self.titles)
            if at is None and isinstance(ordered.this, exp.Literal) and not ordered.this.is_string:
                message = f"ORDER BY {ordered.this.this}: SELECT has {len(self.titles)} columns"
                raise self.binder.source.error(message, ordered)
            found.append((self.clause.bind(ordered.this) if at is None else self.outputs[at], ordered))
        return found

    def _projected(self, plan: Node, order: list[tuple[Expr, exp.Ordered]]) -> Bound:
        binder = self.binder
        outputs: list[tuple[str, Expr]] = []
        for title, output, tree in zip(self.titles, self.outputs, self.trees, strict=True):
            # a column of the query around gets a name of its own here
            local = output.op == "col" and output.params[0] in plan.columns
            kept = local and output.params[0] not in {name for name, _ in outputs}
            name = output.params[0] if kept else binder.name(title, self.clause.scalars.type(output, tree))
            outputs.append((name, output))
        names = [name for name, _ in outputs]
        distinct = self.node.args.get("distinct")
        chosen = self._distinct_on(distinct, plan, outputs)
        orderings = []
        for expression, tree in order:
            place = next((n for n, o in outputs if o.fingerprint == expression.fingerprint), None)
            if place is None:
                if distinct is not None and not chosen:
                    raise binder.source.error("with DISTINCT, ORDER BY takes columns of SELECT", tree)
                place = binder.name("order", self.clause.scalars.type(expression, tree))
                outputs.append((place, expression))
            orderings.append(binder.ordering(tree, place))
        if [(name, col(name).fingerprint) for name in plan.columns] != [(n, o.fingerprint) for n, o in outputs]:
            plan = Project(plan, tuple(outputs))
        if chosen:
            plan = Top(plan, chosen, tuple(orderings), 1)
        elif distinct is not None:
            plan = Distinct(plan)
        limit, offset = binder.limits(self.node)
        if limit is not None or offset:
            plan = Top(plan, (), tuple(orderings), limit, offset)
        return Bound(plan, names, self.titles, tuple(orderings))

    def _distinct_on(
        self, distinct: exp.Distinct | None, plan: Node, outputs: list[tuple[str, Expr]]
    ) -> tuple[str, ...]:
        """DISTINCT ON: the columns of which each value is taken once, the first row in the order."""
        on = None if distinct is None else distinct.args.get("on")
        if on is None:
            return ()
        if self.grouping.calls or self.node.args.get("group"):
            raise self.binder.unsupported("DISTINCT ON beside aggregates", self.node)
        chosen = []
        for tree in on.expressions:
            expression = self.clause.bind(tree)
            if self.clause.pending:
                raise self.binder.unsupported("a subquery in DISTINCT ON", tree)
            name = next((n for n, o in outputs if o.fingerprint == expression.fingerprint), None)
            if name is None:
                name = self.binder.name("on", self.clause.scalars.type(expression, tree))
                outputs.append((name, expression))
            chosen.append(name)
        return tuple(dict.fromkeys(chosen))


# ---------------------------------------------------------------------- small things


def grouping_sets(tree: exp.Expr) -> list[list[exp.Expr]]:
    """The sets of keys that a member of GROUP BY stands for."""
    if isinstance(tree, exp.Rollup):
        parts = [members(part) for part in tree.expressions]
        return [[key for part in parts[:count] for key in part] for count in range(len(parts), -1, -1)]
    if isinstance(tree, exp.Cube):
        parts = [members(part) for part in tree.expressions]
        chosen = [[part for at, part in enumerate(parts) if number >> at & 1] for number in range(1 << len(parts))]
        return [[key for part in some for key in part] for some in reversed(chosen)]
    if isinstance(tree, exp.GroupingSets):
        return [found for part in tree.expressions for found in grouping_sets(part)]
    return [members(tree)] if isinstance(tree, exp.Tuple | exp.Paren) else [[tree]]


def members(tree: exp.Expr) -> list[exp.Expr]:
    """The expressions of a list in parentheses, or one that stands alone."""
    if isinstance(tree, exp.Tuple):
        return list(tree.expressions)
    return [tree.this] if isinstance(tree, exp.Paren) else [tree]


def unchanged(expression: Expr) -> Expr:
    return expression


def modifiers(node: exp.Expr) -> bool:
    """Whether a set operation or a query in parentheses is ordered or limited, or defines names."""
    return any(node.args.get(clause) for clause in ("order", "limit", "offset", "with_"))


def title_of(item: exp.Expr) -> str:
    """What an output is called."""
    if isinstance(item, exp.Alias):
        return folded(item.args["alias"])
    while isinstance(item, exp.Paren):
        item = item.this
    if isinstance(item, exp.Column):
        return folded(item.this)
    if isinstance(item, exp.Cast):
        return title_of(item.this) if isinstance(item.this, exp.Column) else "cast"
    if isinstance(item, exp.Anonymous):
        return item.name.lower()
    if isinstance(item, exp.Func):
        return item.sql_name().lower()
    return item.sql("duckdb").lower()[:60]


def output_place(tree: exp.Expr, titles: list[str]) -> int | None:
    """Which output a number or a bare name means, if it means one."""
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return int(tree.this) - 1 if tree.this.isdigit() and 0 < int(tree.this) <= len(titles) else None
    if isinstance(tree, exp.Column) and not tree.args.get("table"):
        name = folded(tree.this)
        return titles.index(name) if name in titles else None
    return None


def nothing(part: Node, at: int) -> bool:
    """Whether a column is a bare NULL, which fits any type."""
    if isinstance(part, Union):
        return all(nothing(given, at) for given in part.parts)
    if not isinstance(part, Project):
        return isinstance(part, Values) and all(row[at] is None for row in part.rows)
    expression = part.outputs[at][1]
    return expression.op == "lit" and expression.params[1] is None
