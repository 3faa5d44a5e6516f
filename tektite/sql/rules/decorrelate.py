"""Turns subqueries into joins, whatever columns of the queries around them they read.

A subquery is computed for all its outer rows at once. In general it is joined with its *domain*: the distinct values of the outer
columns that it reads. These become further columns of its operators, and the result is joined with the outer rows by them
(Neumann and Kemper's unnesting). If outer columns occur only in equalities with the subquery's own columns, no domain is
needed.
"""

from __future__ import annotations

from dataclasses import replace

from tektite.expr import Expr, coalesce, col, lit
from tektite.expr.fold import is_null
from tektite.expr.predicates import FALSE, TRUE, conjunction, conjuncts
from tektite.query.aggregate_calls import AggregateCall
from tektite.sql.logical import (
    Aggregate,
    Apply,
    Distinct,
    Filter,
    Join,
    Names,
    Node,
    Once,
    Project,
    Scan,
    columns_of,
    renamed,
)
from tektite.sql.rules.domains import Domain, pulled_up, pushed_down
from tektite.sql.walking import free_columns, may_fail
from tektite.values import types


def decorrelate(root: Node, names: Names) -> Node:
    """A plan without subqueries."""

    def rewrite(node: Node) -> Node:
        if isinstance(node, Filter):
            return tested(node, names)
        if isinstance(node, Apply):
            return valued(node, names)
        return node

    return bottom_up(root, rewrite)


def bottom_up(root: Node, rewrite: object) -> Node:
    """Rewrite inputs first, but leave the subqueries that a filter tests to the filter."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        found = done.get(id(node))
        if found is None:
            if isinstance(node, Filter):
                found = rewrite(Filter(visit_chain(node.input), node.predicate))  # type: ignore[operator]
            else:
                found = rewrite(node.with_inputs(*map(visit, node.inputs)) if node.inputs else node)  # type: ignore[operator]
            done[id(node)] = found
        return found

    def visit_chain(node: Node) -> Node:
        if isinstance(node, Apply) and node.kind != "lateral":
            return node.with_inputs(visit_chain(node.left), visit(node.right))
        return visit(node)

    return visit(root)


# ---------------------------------------------------------------------- what becomes of a subquery


def tested(node: Filter, names: Names) -> Node:
    """A filter over subqueries: those whose result is only tested, by itself, keep or drop rows; others give columns."""
    applies: list[Apply] = []
    plan = node.input
    while isinstance(plan, Apply) and plan.kind != "lateral":
        applies.append(plan)
        plan = plan.left
    parts = conjuncts(node.predicate)
    # tests of the outer rows alone first: the fewer rows a subquery is computed for, the better
    made = {apply.name for apply in applies}
    own = [part for part in parts if not made & set(part.columns())]
    parts = [part for part in parts if made & set(part.columns())]
    # what may fail is tested last: a subquery may keep rows away from it
    risky = [part for part in own if applies and may_fail(part, plan)]
    own = [part for part in own if not any(part is other for other in risky)]
    plan = Filter(plan, conjunction(own)) if own else plan
    for apply in reversed(applies):
        uses = [part for part in parts if apply.name in part.columns()]
        wanted = [truth_of(part, apply.name) for part in uses]
        elsewhere = any(apply.name in test.columns() for other in applies for test in other.tests)
        if apply.kind != "scalar" and uses and None not in wanted and not elsewhere:
            for truth in wanted:
                plan = kept(plan, apply, bool(truth), names)
            parts = [part for part in parts if apply.name not in part.columns()]
        else:  # what the filter of HAVING does not use is for SELECT
            plan = valued(replace(apply, left=plan), names)
        now = [part for part in parts if set(part.columns()) <= set(plan.columns) | free_columns(node)]
        if now and not made & {name for part in now for name in part.columns()} - set(plan.columns):
            plan = Filter(plan, conjunction(now))
            parts = [part for part in parts if not any(part is other for other in now)]
    parts += risky
    return Filter(plan, conjunction(parts)) if parts else plan


def truth_of(part: Expr, name: str) -> bool | None:
    """The truth value that a conjunct demands of a column, if it does nothing else."""
    if part.op == "col":
        return True
    return False if part.op == "not" and part.args[0].op == "col" else None


def kept(plan: Node, apply: Apply, truth: bool, names: Names) -> Node:
    """The rows for which a subquery has a row, or has none; for which a comparison with its rows is true, or is false."""
    inner = apply.right
    if apply.kind == "exists":
        return matched(plan, inner, "semi" if truth else "anti", TRUE, names)
    test = comparison(apply)
    if truth:
        return matched(plan, inner, "semi", test, names)
    if len(apply.tests) > 1 or apply.comparison != "eq":
        return matched(plan, inner, "anti", coalesce(test, True), names)
    # x NOT IN q: nothing in q equals x, nothing in q is NULL, and x is not NULL unless q is empty
    (value,) = apply.tests
    (column,) = inner.columns
    plan = matched(plan, inner, "anti", test, names)
    plan = matched(plan, fresh(Filter(inner, col(column).is_null()), names), "anti", TRUE, names)
    return matched(plan, fresh(inner, names), "anti", value.is_null(), names)


def comparison(apply: Apply) -> Expr:
    """The comparison of an `any` with one row of its subquery."""
    pairs = zip(apply.tests, apply.right.columns, strict=True)
    return conjunction([Expr(apply.comparison, (test, col(name))) for test, name in pairs])


def fresh(inner: Node, names: Names) -> Node:
    """A subquery once more, under other names."""
    return renamed(inner, [names.new(name) for name in inner.columns])


def matched(plan: Node, inner: Node, kind: str, condition: Expr, names: Names) -> Node:
    """A semi or anti join with a subquery that may read the plan's columns."""
    outer = free_columns(inner) & set(plan.columns)
    if not outer:
        return Join(plan, inner, kind, condition)
    pulled = pulled_up(inner, outer, names, through_groups=False)
    if pulled is not None:
        return Join(plan, pulled.plan, kind, conjunction([condition, *pulled.conditions]))
    # the condition reads the subquery's columns, and outer ones: it is tested inside, where both are
    used = outer | (set(condition.columns()) & set(plan.columns))
    domain = Domain.of(plan, sorted(used, key=list(plan.columns).index), names)
    reached = Filter(pushed_down(inner, domain, names), condition.substitute(domain.columns))
    witnesses = Distinct(Project(reached, tuple((name, col(name)) for name in domain.names)))
    return Join(plan, witnesses, kind, domain.condition())


def valued(apply: Apply, names: Names) -> Node:
    """The outer rows with the subquery's result as a column."""
    plan, inner = apply.left, apply.right
    if apply.kind == "scalar":
        return scalar(plan, inner, apply.name, names)
    if apply.kind == "exists":
        return marked(plan, inner, apply.name, names)
    if apply.kind == "lateral":
        return lateral(apply, names)
    # true if one row compares so, else NULL if one may, else false
    test = comparison(apply)
    sure, unsure = names.new("sure"), names.new("unsure")
    found = marked(plan, inner, sure, names, test)
    again = fresh(inner, names)
    found = marked(found, again, unsure, names, comparison(replace(apply, right=again)).is_null())
    result = Expr("case", (col(sure), TRUE, col(unsure), lit(None, types.Bool), FALSE))
    return Project(found, (*columns_of(plan), (apply.name, result)))


def lateral(apply: Apply, names: Names) -> Node:
    """The outer rows, each with the rows of a relation that reads their columns."""
    plan, inner = apply.left, apply.right
    condition = conjunction(apply.tests)
    outer = free_columns(inner) & set(plan.columns)
    if not outer:
        return Join(plan, inner, apply.comparison, condition)
    domain = Domain.of(plan, sorted(outer, key=list(plan.columns).index), names)
    found = pushed_down(inner, domain, names)
    joined = Join(plan, found, apply.comparison, conjunction([domain.condition(), condition]))
    return Project(joined, tuple((name, col(name)) for name in apply.columns))


def marked(plan: Node, inner: Node, name: str, names: Names, condition: Expr = TRUE) -> Node:
    """The outer rows with a column that says whether a subquery has a row for which the condition is true."""
    outer = (free_columns(inner) | set(condition.columns())) & set(plan.columns)
    if not outer:
        some = names.new("rows")
        tested_rows = inner if condition.fingerprint == TRUE.fingerprint else Filter(inner, condition)
        counted = Aggregate(tested_rows, (), ((some, AggregateCall("count")),))
        joined: Node = Join(plan, counted, "inner")
        return Project(joined, (*columns_of(plan), (name, col(some) > 0)))
    domain = Domain.of(plan, sorted(outer, key=list(plan.columns).index), names)
    reached: Node = pushed_down(inner, domain, names)
    if condition.fingerprint != TRUE.fingerprint:
        reached = Filter(reached, condition.substitute(domain.columns))
    witnesses = Distinct(Project(reached, tuple((n, col(n)) for n in domain.names)))
    there = names.new("there")
    seen = Project(witnesses, (*columns_of(witnesses), (there, TRUE)))
    joined = Join(plan, seen, "left", domain.condition())
    return Project(joined, (*columns_of(plan), (name, col(there).is_not_null())))


def scalar(plan: Node, inner: Node, name: str, names: Names) -> Node:
    """The outer rows with the only value of a subquery."""
    outer = free_columns(inner) & set(plan.columns)
    (value,) = inner.columns
    if not outer:
        if exactly_one(inner):
            joined: Node = Join(plan, inner, "inner")
        else:
            joined = Join(plan, Once(inner, ()), "left")
        return Project(joined, (*columns_of(plan), (name, col(value))))
    default = of_nothing(inner)
    pulled = pulled_up(inner, outer, names, through_groups=True)
    if pulled is not None:
        found = Once(pulled.plan, pulled.keys) if pulled.keys else pulled.plan
        joined = Join(plan, found, "left", conjunction(pulled.conditions))
    else:
        domain = Domain.of(plan, sorted(outer, key=list(plan.columns).index), names)
        found = Once(pushed_down(inner, domain, names), tuple(domain.names))
        joined = Join(plan, found, "left", domain.condition())
    result = col(value)
    if default is not None:
        # an aggregate of no rows may have a value: count(*) is 0
        there = names.new("there")
        joined = Join(
            joined.left, Project(joined.right, (*columns_of(joined.right), (there, TRUE))), "left", joined.condition
        )
        result = Expr("case", (col(there), result, default))
    return Project(joined, (*columns_of(plan), (name, result)))


def exactly_one(inner: Node) -> bool:
    """Whether a relation has one row, whatever its input holds."""
    if isinstance(inner, Project):
        return exactly_one(inner.input)
    return (isinstance(inner, Aggregate) and not inner.keys) or (isinstance(inner, Scan) and inner.single)


def of_nothing(inner: Node) -> Expr | None:
    """The value for no rows of a scalar subquery that is an aggregate without keys, if it is not NULL."""
    substitutions: list[dict[str, Expr]] = []
    node = inner
    while isinstance(node, Project):
        substitutions.append(dict(node.outputs))
        node = node.input
    if not isinstance(node, Aggregate) or node.keys:
        return None
    types_of = node.columns
    values = {name: lit(0 if call.kind == "count" else None, types_of[name]) for name, call in node.calls}
    (name,) = inner.columns
    expression = col(name)
    for outputs in substitutions:
        expression = expression.substitute(outputs)
    result = expression.substitute(values)
    counts = any(call.kind == "count" for name, call in node.calls if name in expression.columns())
    return result if counts or not strict(expression) else None


def strict(expression: Expr) -> bool:
    """Whether a scalar is NULL where the aggregates that it reads are."""
    return is_null(expression.substitute({name: lit(None, types.Int) for name in expression.columns()}))
