"""Binds joins: conditions, and the columns that USING and NATURAL merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import NotFoundError, UnsupportedError
from tektite.expr import Expr, coalesce, col, lit
from tektite.expr.comparisons import ORDERING
from tektite.expr.predicates import TRUE, conjunction, conjuncts
from tektite.query.window_calls import Ordering
from tektite.sql.bind import relations
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.scope import NameScope, Relation, folded
from tektite.sql.logical import Apply, Distinct, Filter, Join, Node, Project, Top, Union, columns_of
from tektite.sql.parse.instead import CLAUSES, instead
from tektite.sql.parse.places import nearest
from tektite.sql.walking import free_columns

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder


def is_comma(node: exp.Join) -> bool:
    """Whether a join is only a comma."""
    return not any(node.args.get(name) for name in ("side", "kind", "method", "on", "using"))


def beside(plan: Node, other: Node) -> Node:
    """All pairs of two relations, the second of which may read columns of the first."""
    if free_columns(other) & plan.columns.keys():
        return Apply(plan, other, "lateral", "", "inner")
    return Join(plan, other, "inner")


def both(binder: Binder, left: NameScope, right: NameScope, node: exp.Expr) -> NameScope:
    """The scope of two members of FROM beside each other."""
    known = {(relation.alias.lower(), relation.schema) for relation in left.relations if relation.alias}
    for relation in right.relations:
        if (relation.alias.lower(), relation.schema) in known:
            message = f"{relation.alias!r} is in FROM twice: give one of them an alias"
            raise binder.source.error(
                message, node.this if isinstance(node, exp.Join) else node, condition="duplicate-alias"
            )
    merged = {name: [*left.merged.get(name, ()), *right.merged.get(name, ())] for name in (*left.merged, *right.merged)}
    return NameScope(left.parent, [*left.relations, *right.relations], merged)


def joined(
    binder: Binder, before: tuple[Node, NameScope], node: exp.Join, earlier: NameScope
) -> tuple[Node, NameScope]:
    """Joins one more relation. `earlier` is the scope of the members of FROM before the last comma."""
    plan, left = before
    right_plan, right = relations.member(binder, node.this, both(binder, earlier, left, node))
    lateral = isinstance(node.this, exp.Lateral) or bool(free_columns(right_plan) & plan.columns.keys())
    scope = both(binder, left, right, node)
    if is_comma(node):
        return beside(plan, right_plan), scope
    side, kind = (node.args.get("side") or "").upper(), (node.args.get("kind") or "").upper()
    method = (node.args.get("method") or "").upper()
    title = " ".join(f"{method} {side} {kind} JOIN".split())
    half = kind in ("SEMI", "ANTI") and side in ("", "LEFT")
    if not half and kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL", "ASOF"):
        raise binder.unsupported(title, node, instead(CLAUSES, title))
    using = list(dict.fromkeys(folded(name).lower() for name in node.args.get("using") or ()))
    if method == "NATURAL":
        using = common(left, right)
        if not using:
            raise binder.source.error(
                "NATURAL JOIN: the two sides have no column of the same name", node, condition="undefined-column"
            )
    elif not using and node.args.get("on") is None and kind != "CROSS":
        raise binder.source.error("a join needs ON or USING; CROSS JOIN pairs all rows", node)
    if node.args.get("on") is not None and (using or kind == "CROSS"):
        raise binder.source.syntax_error(f"ON does not go with {'USING' if using else 'CROSS JOIN'}", node)
    condition, clause = TRUE, None
    if using:
        condition = same_columns(binder, using, left, right, node)
    elif node.args.get("on") is not None:
        clause = ClauseContext(binder, both(binder, earlier, scope, node), "ON")
        condition = clause.predicate(node.args["on"])
    if method == "ASOF":
        if using or half or lateral or side not in ("", "LEFT") or clause is None or clause.pending:
            message = f"{title} of this is not supported: write [LEFT] ASOF JOIN table ON a.k = b.k AND a.at >= b.at"
            raise binder.source.error(message, node, UnsupportedError)
        return nearest_before(binder, plan, right_plan, condition, "left" if side else "inner", node), scope
    if half:
        if lateral:
            raise binder.unsupported(f"LATERAL in {title}", node)
        if clause is not None and clause.pending:
            return halved_by_subqueries(binder, plan, right_plan, kind.lower(), clause, condition), left
        return Join(plan, right_plan, kind.lower(), condition), left
    if clause is not None and clause.pending:
        if not side:
            return Filter(clause.attach(beside(plan, right_plan)), condition), scope
        if lateral:
            raise binder.unsupported("a subquery in the ON of JOIN LATERAL", node)
        return tested_by_subqueries(binder, plan, right_plan, side, clause, condition), scope
    result: Node
    if lateral:
        if side not in ("", "LEFT"):
            raise binder.unsupported(f"{side} JOIN LATERAL", node)
        result = Apply(plan, right_plan, "lateral", "", "left" if side else "inner", (condition,))
    elif side == "RIGHT":
        result = Join(right_plan, plan, "left", condition)
    else:
        result = Join(plan, right_plan, {"": "inner", "LEFT": "left", "FULL": "full"}[side], condition)
    return merge(binder, result, scope, using, left, right, side), scope


def nearest_before(binder: Binder, left: Node, right: Node, condition: Expr, kind: str, node: exp.Join) -> Node:
    """ASOF JOIN: each row on the left with the one row on the right that the comparison brings nearest to it."""
    found = []
    for part in conjuncts(condition):
        sides = [set(side.columns()) for side in part.args] if part.op in ORDERING else []
        if sides and sides[0] <= left.columns.keys() and sides[1] and sides[1] <= right.columns.keys():
            found.append((part.args[1], part.op in ("gt", "ge")))
        elif sides and sides[1] <= left.columns.keys() and sides[0] and sides[0] <= right.columns.keys():
            found.append((part.args[0], part.op in ("lt", "le")))
    if len(found) != 1:
        message = (
            f"ASOF JOIN needs one comparison by <, <=, > or >= of both sides, beside equalities: found {len(found)}"
        )
        raise binder.source.error(message, node)
    value, latest = found[0]
    name = binder.name("nearest", ClauseContext(binder, NameScope(), "ON").scalars.type(value, node))
    ranked = Project(right, (*columns_of(right), (name, value)))
    one = Top(Filter(ranked, condition), (), (Ordering(name, latest, False),), 1)
    return Apply(left, Project(one, tuple(columns_of(right))), "lateral", "", kind, (TRUE,))


# ---------------------------------------------------------------------- conditions with subqueries


def on_one_side(left: Node, right: Node, clause: ClauseContext) -> tuple[Node, Node]:
    """Both sides with the columns of the subqueries that read only one of them; those that read both stay in the clause."""
    waiting, clause.pending = clause.pending, []
    mixed = []
    for found in waiting:
        reads = free_columns(found.plan) | {name for test in found.tests for name in test.columns()}
        clause.pending = [found]
        if not reads & left.columns.keys():
            right = clause.attach(right)
        elif not reads & right.columns.keys():
            left = clause.attach(left)
        else:
            mixed.append(found)
    clause.pending = mixed
    return left, right


def halved_by_subqueries(
    binder: Binder, left: Node, right: Node, kind: str, clause: ClauseContext, condition: Expr
) -> Node:
    """A SEMI or ANTI JOIN whose condition has subqueries: the rows that are in some pair, or in none."""
    left, right = on_one_side(left, right, clause)
    if not clause.pending:
        return Join(left, right, kind, condition)
    matched = Filter(clause.attach(Join(left, right, "inner")), condition)
    return with_witness(binder, left, matched, kind)


def with_witness(binder: Binder, own: Node, matched: Node, kind: str) -> Node:
    """The rows of one side that are in a pair ("semi") or in none ("anti")."""
    seen = [(binder.name(name, type), name) for name, type in own.columns.items()]
    witnesses = Distinct(Project(matched, tuple((new, col(old)) for new, old in seen)))
    return Join(own, witnesses, kind, conjunction([col(old).is_same(col(new)) for new, old in seen]))


def tested_by_subqueries(
    binder: Binder, left: Node, right: Node, side: str, clause: ClauseContext, condition: Expr
) -> Node:
    """An outer join on a condition with subqueries in it.

    A subquery that reads one side is a column of that side. One that reads both sides is computed for the pairs. Then rows
    without a match are those that are in no pair for which the condition is true.
    """
    left, right = on_one_side(left, right, clause)
    if not clause.pending:
        if side == "RIGHT":
            return Join(right, left, "left", condition)
        return Join(left, right, {"LEFT": "left", "FULL": "full"}[side], condition)
    matched = Filter(clause.attach(Join(left, right, "inner")), condition)
    names = (*left.columns, *right.columns)
    kinds = left.columns | right.columns
    parts: list[Node] = [Project(matched, tuple((binder.name(n, kinds[n]), col(n)) for n in names))]
    for own, wanted in ((left, side in ("LEFT", "FULL")), (right, side in ("RIGHT", "FULL"))):
        if wanted:
            missing = with_witness(binder, own, matched, "anti")
            outputs = ((n, col(n) if n in own.columns else lit(None, kinds[n])) for n in names)
            parts.append(Project(missing, tuple((binder.name(n, kinds[n]), value) for n, value in outputs)))
    return Union(tuple(parts), names)


# ---------------------------------------------------------------------- USING and NATURAL


def common(left: NameScope, right: NameScope) -> list[str]:
    """The names that columns of both sides have."""
    known = {visible.lower() for relation in left.relations for visible, _ in relation.columns}
    names = (visible.lower() for relation in right.relations for visible, _ in relation.columns)
    return list(dict.fromkeys(name for name in names if name in known))


def same_columns(binder: Binder, using: list[str], left: NameScope, right: NameScope, node: exp.Join) -> Expr:
    """The condition of USING and NATURAL."""
    parts = []
    for name in using:
        pair = []
        for called, side in (("left", left), ("right", right)):
            found = side.find(name, "")
            if len(found) != 1:
                known = nearest(name, [v for r in side.relations for v, _ in r.columns])
                message = (
                    f"USING ({name}): {'ambiguous' if found else 'not'} among the columns on the {called}: {known}"
                )
                raise binder.source.error(message, node, NotFoundError)
            pair.append(col(found[0]))
        parts.append(ClauseContext(binder, NameScope(), "USING").scalars.compare("eq", pair[0], pair[1], node))
    return conjunction(parts)


def merge(
    binder: Binder, plan: Node, scope: NameScope, using: list[str], left: NameScope, right: NameScope, side: str
) -> Node:
    """Merge each two columns that USING names into one visible column."""
    more = []
    for name in using:
        pair = [left.find(name, "")[0], right.find(name, "")[0]]
        if side == "FULL":
            whole = coalesce(col(pair[0]), col(pair[1]))
            unique = binder.name(name, ClauseContext(binder, NameScope(), "USING").scalars.type(whole, exp.Null()))
            more.append((unique, whole))
        else:
            unique = pair[1] if side == "RIGHT" else pair[0]
        for relation in scope.relations:
            hide(relation, name, pair, unique)
        scope.merged[name] = [unique]
    return Project(plan, (*columns_of(plan), *more)) if more else plan


def hide(relation: Relation, name: str, pair: list[str], merged: str) -> None:
    """Let a relation's column of this name be the merged one, if it is one of the two that were merged."""
    for visible, unique in relation.columns:
        if visible.lower() == name and relation.hidden.get(name, unique) in pair:
            relation.hidden[name] = merged
