"""Binds the groups, windows, outputs, order and limit of a SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, col
from tektite.sql.bind import stars, windows
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.clause import ClauseContext, Grouping, each_once
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.logical import Filter, Node, Project, Top
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import written
from tektite.sql.walking import free_columns

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder


class SelectList:
    """The parts of a SELECT that come after FROM and WHERE."""

    def __init__(self, binder: Binder, node: exp.Select, scope: NameScope, plan: Node) -> None:
        self.binder = binder
        self.node = node
        self.scope = scope
        self.plan = plan
        inner = ClauseContext(binder, scope, "an aggregate")
        self.grouping = Grouping(binder, inner, outer=set(plan.columns))
        self.clause = ClauseContext(binder, scope, "SELECT", self.grouping)
        self.clause.windows = []
        scope.clause = self.clause
        self.titles: list[str] = []
        self.outputs: list[Expr] = []
        self.trees: list[exp.Expr] = []

    def bound(self) -> Bound:
        if not self.node.expressions:
            raise self.binder.source.syntax_error("SELECT needs at least one column", self.node)
        for item in self.node.expressions:
            self._item(item)
        if self.node.args.get("windows"):
            windows.check_definitions(self.binder, self.node, self.scope)
        group = self.node.args.get("group")
        grouped = group is not None
        if group is not None:
            self._group(group)
        having = self.node.args.get("having")
        condition = None if having is None else self.clause.predicate(having.this)
        if having is not None and condition is not None and windows.of_windows(self.clause, condition):
            raise self.binder.source.error("a window function cannot be used in HAVING", having)
        qualify = self.node.args.get("qualify")
        chosen = None if qualify is None else self.clause.predicate(qualify.this)
        order = self._order()
        plan = self.plan
        if self.grouping.masks and not grouped:
            raise self.binder.source.error("GROUPING needs a GROUP BY", self.grouping.masks[0][2])
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
        known = {name for name, *_ in (*self.grouping.keys, *self.grouping.calls, *self.grouping.masks)}
        for pending in self.clause.pending:
            pending.tests = tuple(self.grouping.over_groups(test) for test in pending.tests)
            for name in free_columns(pending.plan):
                if name in self.grouping.outer and name not in known:
                    place = self.binder.places.get(name)
                    message = f"column {name!r} is neither in GROUP BY nor in an aggregate"
                    raise self.binder.source.error(message, place, condition="grouping-error")

    # ------------------------------------------------------------------ clauses

    def _item(self, item: exp.Expr) -> None:
        for title, found in stars.items(self.binder, self.scope, item):
            if isinstance(found, str):
                self.binder.places.setdefault(found, item)
            self.outputs.append(col(found) if isinstance(found, str) else self.clause.bind(found))
            self.titles.append(title_of(item) if title is None else title)
            self.trees.append(item)
            if isinstance(item, exp.Alias):
                self.clause.aliases.setdefault(self.titles[-1], self.outputs[-1])

    def _group(self, group: exp.Group) -> None:
        for kind in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(kind):
                raise self.binder.unsupported(f"GROUP BY {kind.upper().replace('_', ' ')}", group)
        if group.args.get("all"):
            self._group_by_all()
            return
        trees = group.expressions
        sets: list[list[Expr]] = [[]]
        for tree in trees:
            found = [[self._key(part) for part in parts] for parts in grouping_sets(tree)]
            for keys in found:
                for key in keys:
                    self.grouping.key(key, tree)
            sets = [[*known, *keys] for known in sets for keys in found]
        if len(sets) > 1:
            self.grouping.sets = [{key.fingerprint for key in keys} for keys in sets]

    def _group_by_all(self) -> None:
        """GROUP BY ALL: by every output without an aggregate in it."""
        totals = {name for name, *_ in (*self.grouping.calls, *self.grouping.masks)}
        for output, tree in zip(self.outputs, self.trees, strict=True):
            if not totals & set(output.columns()) and output.op != "lit":
                self.grouping.key(self._before_groups(output), tree)

    def _output(self, tree: exp.Expr, where: str) -> Expr | None:
        """The output that a number means, or a name that is no column's; None if it means none."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            at = output_place(tree, self.titles)
            if at is None:
                message = f"{where} {tree.this}: SELECT has {len(self.titles)} columns"
                raise self.binder.source.error(message, tree)
            return self.outputs[at]
        if isinstance(tree, exp.Column) and not tree.args.get("table"):
            column = folded(tree.this)
            if not self.scope.find(column, "") and column in self.titles:
                return self.outputs[self.titles.index(column)]
        return None

    def _before_groups(self, output: Expr) -> Expr:
        """An output to group by: the subqueries that it reads are columns of the rows that are grouped."""
        waiting, self.clause.pending = self.clause.pending, []
        for found in waiting:
            if found.name in output.columns():
                self.plan = found.over(self.plan)
                self.grouping.outer.add(found.name)
            else:
                self.clause.pending.append(found)
        return output

    def _key(self, tree: exp.Expr) -> Expr:
        """A key: an output by its number, a column, an output by its name, or an expression."""
        output = self._output(tree, "GROUP BY")
        if output is not None:
            return self._before_groups(output)
        clause = ClauseContext(self.binder, self.scope, "GROUP BY")
        found = clause.bind(tree)
        self.plan = clause.attach(self.plan)
        return found

    def _order(self) -> list[tuple[Expr, exp.Ordered]]:
        """The members of ORDER BY: outputs by number or name first, then expressions."""
        found = []
        terms = self.node.args["order"].expressions if self.node.args.get("order") else []
        if len(terms) == 1 and isinstance(terms[0].this, exp.Var) and terms[0].name.upper() == "ALL":
            return [(output, terms[0]) for output in self.outputs]
        for ordered in terms:
            if isinstance(ordered.this, exp.Neg) and isinstance(ordered.this.this, exp.Literal):
                raise self.binder.source.error("ORDER BY takes the number of a column, from 1 on", ordered.this)
            at = output_place(ordered.this, self.titles)
            if not self._is_column(ordered.this):
                refuse_ambiguous(self.binder.source, ordered.this, self.titles, self.outputs)
            if at is None and isinstance(ordered.this, exp.Literal) and not ordered.this.is_string:
                message = f"ORDER BY {ordered.this.this}: SELECT has {len(self.titles)} columns"
                raise self.binder.source.error(message, ordered, condition="invalid-column-reference")
            found.append((self.clause.bind(ordered.this) if at is None else self.outputs[at], ordered))
        return found

    def _is_column(self, tree: exp.Expr) -> bool:
        """Whether a name is that of one column of FROM, and no alias."""
        if not isinstance(tree, exp.Column) or len(self.scope.find(folded(tree.this), "")) != 1:
            return False
        named = [one for title, one in zip(self.titles, self.trees, strict=True) if title == folded(tree.this)]
        return not any(isinstance(one, exp.Alias) for one in named)

    def _projected(self, plan: Node, order: list[tuple[Expr, exp.Ordered]]) -> Bound:
        binder = self.binder
        outputs: list[tuple[str, Expr]] = []
        for title, output, tree in zip(self.titles, self.outputs, self.trees, strict=True):
            # a column of the query around gets a name of its own here
            local = output.op == "col" and output.params[0] in plan.columns
            kept = local and output.params[0] not in {name for name, _ in outputs}
            name = output.params[0] if kept else binder.name(title, self.clause.scalars.type(output, tree))
            outputs.append((name, output))
            binder.declare(col(name), binder.declared(output))
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
            plan = each_once(binder, plan)
        plan = binder.limited(plan, tuple(orderings), self.node)
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
            output = self._output(tree, "DISTINCT ON")
            expression = self.clause.bind(tree) if output is None else output
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


def title_of(item: exp.Expr) -> str:
    """The name of an output."""
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
    if isinstance(item, exp.CurrentVersion):  # sqlglot's name of version()
        return "version"
    if isinstance(item, exp.Func):
        return item.sql_name().lower()
    try:
        return written(item).lower()[:60]
    except RecursionError:  # a chain of thousands of operators, too deep for the parser's printer
        return item.key


def refuse_ambiguous(source: StatementText, tree: exp.Expr, titles: list[str], outputs: Sequence[Expr]) -> None:
    """Refuse a bare name that several outputs have which are not the same."""
    if not isinstance(tree, exp.Column) or tree.args.get("table"):
        return
    name = folded(tree.this)
    if len({output.fingerprint for title, output in zip(titles, outputs, strict=True) if title == name}) > 1:
        raise source.error(
            f"{name!r} is ambiguous: several columns of SELECT are called so", tree, condition="ambiguous-column"
        )


def output_place(tree: exp.Expr, titles: list[str]) -> int | None:
    """The place of the output that a number or a bare name means, if it means one."""
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return int(tree.this) - 1 if tree.this.isdigit() and 0 < int(tree.this) <= len(titles) else None
    if isinstance(tree, exp.Column) and not tree.args.get("table"):
        name = folded(tree.this)
        return titles.index(name) if name in titles else None
    return None
