"""Binding FROM: tables, subqueries, constant rows and the joins between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import NotFoundError, TektiteError
from tektite.expr import Expr, coalesce, col, lit
from tektite.expr.fold import folded as constant
from tektite.expr.literals import literal_value
from tektite.expr.predicates import TRUE, conjunction
from tektite.sql.bind import recursion
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.scope import NameScope, Relation, folded
from tektite.sql.logical import Apply, Distinct, Filter, Join, Node, Project, Union, Values, columns_of
from tektite.sql.parse.known_arguments import check_arguments
from tektite.sql.parse.places import nearest
from tektite.sql.walking import free_columns
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.bound import Bound
    from tektite.sql.bind.query import Binder


def bind_from(binder: Binder, node: exp.Select, parent: NameScope | None) -> tuple[Node, NameScope]:
    """The relations of FROM, joined, and the scope that they make."""
    scope = NameScope(parent)
    source = node.args.get("from_")
    if source is None:
        return Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)), scope
    # a comma binds less than JOIN: what stands between commas is joined first
    groups = [member(binder, source.this, scope)]
    for join in node.args.get("joins") or ():
        if is_comma(join):
            check_arguments(binder.source, join)
            groups.append(member(binder, join.this, scope))
        else:
            groups[-1] = joined(binder, groups[-1], join, scope)
    plan, *others = groups
    for other in others:
        plan = beside(plan, other)
    return plan, scope


def beside(plan: Node, other: Node) -> Node:
    """All pairs of two relations, the second of which may read columns of the first."""
    if free_columns(other) & plan.columns.keys():
        return Apply(plan, other, "lateral", "", "inner")
    return Join(plan, other, "inner")


def is_comma(node: exp.Join) -> bool:
    """Whether a join is only a comma."""
    return not any(node.args.get(name) for name in ("side", "kind", "method", "on", "using"))


def member(binder: Binder, node: exp.Expr, scope: NameScope) -> Node:
    """One member of FROM, which is added to the scope."""
    check_arguments(binder.source, node)
    if isinstance(node, exp.Table):
        return table(binder, node, scope)
    if isinstance(node, exp.Subquery):
        inner = node.this
        if isinstance(inner, exp.Table | exp.Subquery) and not node.args.get("alias"):
            plan = member(binder, inner, scope)
            for join in node.args.get("joins") or ():
                plan = joined(binder, plan, join, scope)
            return plan
        bound = binder.query(inner, scope.parent)
        plan = add(binder, node, scope, bound.visible(), bound.titles)
    elif isinstance(node, exp.Lateral):
        if not isinstance(node.this, exp.Subquery):
            raise binder.unsupported("LATERAL of anything but a query", node)
        bound = binder.query(node.this, scope)
        plan = add(binder, node, scope, bound.visible(), bound.titles)
    elif isinstance(node, exp.Paren):
        plan = member(binder, node.this, scope)
    elif isinstance(node, exp.Values):
        found = constant_rows(binder, node.expressions, scope.parent, node)
        plan = add(binder, node, scope, found.plan, found.titles)
    else:
        raise binder.unsupported(f"{node.key.upper()} in FROM", node)
    for join in node.args.get("joins") or ():
        plan = joined(binder, plan, join, scope)
    return plan


def add(binder: Binder, node: exp.Expr, scope: NameScope, plan: Node, titles: list[str], default: str = "") -> Node:
    """Put a relation into the scope under its alias."""
    alias = node.args.get("alias")
    name = folded(alias.this) if alias is not None and alias.this is not None else default
    columns = [folded(c) for c in alias.columns] if alias is not None else []
    if name and any(r.alias.lower() == name.lower() for r in scope.relations):
        raise binder.source.error(f"{name!r} is in FROM twice: give one of them an alias", node)
    names = binder.aliased(titles, columns, node)
    scope.relations.append(Relation(name, list(zip(names, plan.columns, strict=True))))
    return plan


def table(binder: Binder, node: exp.Table, scope: NameScope) -> Node:
    """A table, a view, a definition or a common table expression, by name."""
    if isinstance(node.this, exp.Func):
        return function(binder, node, scope)
    if node.args.get("db") or node.args.get("catalog"):
        raise binder.unsupported("a schema before the name of a table", node)
    name = folded(node.this)
    found = binder.ctes.get(name)
    if isinstance(found, recursion.Reference):
        plan, titles = found.read(binder, node)
    elif found is not None:
        bound = binder.defined(found, node)
        plan, titles = bound.plan, bound.titles
    else:
        plan, titles = binder.tables.relation(name, binder, node)
    plan = add(binder, node, scope, plan, titles, name)
    for join in node.args.get("joins") or ():
        plan = joined(binder, plan, join, scope)
    return plan


def function(binder: Binder, node: exp.Table, scope: NameScope) -> Node:
    """A table function: only generate_series and range of constants."""
    call = node.this
    if not isinstance(call, exp.GenerateSeries):
        raise binder.unsupported(f"table function {call.sql('duckdb')[:40]}", node)
    bounds = []
    for name in ("start", "end", "step"):
        given = call.args.get(name)
        value = None if given is None else ClauseContext(binder, NameScope(), "generate_series").bind(given)
        if value is not None and (value.op != "lit" or type(value.params[1]) is not int):
            raise binder.unsupported("generate_series of anything but whole constants", node)
        bounds.append(None if value is None else value.params[1])
    start, end, step = bounds[0] or 0, bounds[1] or 0, 1 if bounds[2] is None else bounds[2]
    if step == 0:
        raise binder.source.error("generate_series: the step cannot be 0", node)
    last = end if call.args.get("is_end_exclusive") else end + (1 if step > 0 else -1)
    rows = tuple((value,) for value in range(start, last, step))
    name = binder.name("generate_series", types.Int)
    return add(binder, node, scope, Values((name,), (types.Int,), rows), ["generate_series"], "generate_series")


def constant_rows(binder: Binder, tuples: list[exp.Expr], scope: NameScope | None, node: exp.Expr) -> Bound:
    """VALUES: constants as one relation; rows with other expressions as the union of their queries."""
    from tektite.sql.bind.bound import Bound

    width = len(tuples[0].expressions) if isinstance(tuples[0], exp.Tuple) else 1
    parts: list[list[Expr]] = []
    for row in tuples:
        trees = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(trees) != width:
            raise binder.source.error(f"a row of {len(trees)} values among rows of {width}", row)
        clause = ClauseContext(binder, NameScope(scope), "VALUES")
        parts.append([constant(clause.bind(tree)) for tree in trees])
        if clause.pending:
            raise binder.unsupported("a subquery in VALUES", row)
    wanted = []
    for at in range(width):
        # constants of one type say the same of a column's type, however many there are
        kinds = {
            value.params[0] if value.op == "lit" else value.fingerprint: value for value in (row[at] for row in parts)
        }
        column = coalesce(*kinds.values())
        wanted.append(ClauseContext(binder, NameScope(scope), "VALUES").scalars.type(column, node))
    titles = [f"col{at}" for at in range(width)]
    names = tuple(binder.name(title, type) for title, type in zip(titles, wanted, strict=True))
    simple = all(value.op == "lit" for row in parts for value in row)
    if not simple:
        rows = []
        for values in parts:
            unit = Values((binder.name("unit", types.Int),), (types.Int,), ((0,),))
            pairs = zip(titles, values, wanted, strict=True)
            rows.append(Project(unit, tuple((binder.name(t, w), constant(value.cast(w))) for t, value, w in pairs)))
        return Bound(Union(tuple(rows), names), list(names), titles)
    try:
        constants = tuple(tuple(map(literal_value, (v.params[1] for v in row), wanted)) for row in parts)
    except TektiteError as error:
        raise binder.source.error(str(error), node) from None
    return Bound(Values(names, tuple(wanted), constants), list(names), titles)


# ---------------------------------------------------------------------- joins


def joined(binder: Binder, plan: Node, node: exp.Join, scope: NameScope) -> Node:
    """One more relation joined to those before it."""
    check_arguments(binder.source, node)
    side, kind = (node.args.get("side") or "").upper(), (node.args.get("kind") or "").upper()
    method = (node.args.get("method") or "").upper()
    named = " ".join(f"{method} {side} {kind} JOIN".split())
    half = kind in ("SEMI", "ANTI") and side in ("", "LEFT")
    if not half and kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL"):
        raise binder.unsupported(named, node)
    before = list(scope.relations)
    merged = dict(scope.merged)
    right = member(binder, node.this, scope)
    after = scope.relations[len(before) :]
    using = [folded(name) for name in node.args.get("using") or ()]
    if method == "NATURAL":
        left_names = {v for r in before for v, _ in r.columns if v not in r.hidden}
        using = [v for r in after for v, _ in r.columns if v in left_names]
        if not using:
            raise binder.source.error("NATURAL JOIN: the two sides have no column of the same name", node)
    elif not using and node.args.get("on") is None and kind != "CROSS" and not is_comma(node):
        raise binder.source.error("a join needs ON or USING; CROSS JOIN pairs all rows", node)
    condition, clause = TRUE, None
    if using:
        condition = same_columns(binder, using, before, merged, after, node)
    elif node.args.get("on") is not None:
        clause = ClauseContext(binder, scope, "ON")
        condition = clause.predicate(node.args["on"])
    if half:
        if clause is not None and clause.pending or isinstance(node.this, exp.Lateral):
            raise binder.unsupported(f"a subquery in {named}", node)
        scope.relations[len(before) :] = []
        return Join(plan, right, kind.lower(), condition)
    if clause is not None and clause.pending:
        if not side:
            return Filter(clause.attach(Join(plan, right, "inner")), condition)
        if isinstance(node.this, exp.Lateral):
            raise binder.unsupported("a subquery in the ON of JOIN LATERAL", node)
        return tested_by_subqueries(binder, plan, right, side, clause, condition)
    result: Node
    if isinstance(node.this, exp.Lateral):
        if side not in ("", "LEFT"):
            raise binder.unsupported(f"{side} JOIN LATERAL", node)
        result = Apply(plan, right, "lateral", "", "left" if side else "inner", (condition,))
    elif side == "RIGHT":
        result = Join(right, plan, "left", condition)
    else:
        result = Join(plan, right, {"": "inner", "LEFT": "left", "FULL": "full"}[side], condition)
    return merge(binder, result, scope, using, before, merged, after, side) if using else result


def tested_by_subqueries(
    binder: Binder, left: Node, right: Node, side: str, clause: ClauseContext, condition: Expr
) -> Node:
    """An outer join on a condition with subqueries in it.

    A subquery that reads one side is a column of that side. One that reads both is computed for the pairs; then the rows
    without a match are those that are in no pair which the condition lets through.
    """
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
    if not mixed:
        if side == "RIGHT":
            return Join(right, left, "left", condition)
        return Join(left, right, {"LEFT": "left", "FULL": "full"}[side], condition)
    matched = Filter(clause.attach(Join(left, right, "inner")), condition)
    names = (*left.columns, *right.columns)
    kinds = left.columns | right.columns
    parts: list[Node] = [Project(matched, tuple((binder.name(n, kinds[n]), col(n)) for n in names))]
    for own, wanted in ((left, side in ("LEFT", "FULL")), (right, side in ("RIGHT", "FULL"))):
        if wanted:
            seen = [(binder.name(name, type), name) for name, type in own.columns.items()]
            witnesses = Distinct(Project(matched, tuple((new, col(old)) for new, old in seen)))
            missing = Join(own, witnesses, "anti", conjunction([col(old).is_same(col(new)) for new, old in seen]))
            outputs = ((n, col(n) if n in own.columns else lit(None, kinds[n])) for n in names)
            parts.append(Project(missing, tuple((binder.name(n, kinds[n]), value) for n, value in outputs)))
    return Union(tuple(parts), names)


def same_columns(
    binder: Binder,
    using: list[str],
    before: list[Relation],
    merged: dict[str, str],
    after: list[Relation],
    node: exp.Join,
) -> Expr:
    """The condition of USING and NATURAL."""
    parts = []
    for name in using:
        pair = []
        for side, relations in (("left", before), ("right", after)):
            given = merged if side == "left" else {}
            found = NameScope(None, relations, given).find(name, "")
            if len(found) != 1:
                known = nearest(name, [v for r in relations for v, _ in r.columns])
                message = f"USING ({name}): {'ambiguous' if found else 'not'} among the columns on the {side}: {known}"
                raise binder.source.error(message, node, NotFoundError)
            pair.append(col(found[0]))
        parts.append(ClauseContext(binder, NameScope(), "USING").scalars.compare("eq", pair[0], pair[1], node))
    return conjunction(parts)


def merge(
    binder: Binder, plan: Node, scope: NameScope, using: list[str], before: list[Relation], merged: dict[str, str],
    after: list[Relation], side: str,
) -> Node:  # fmt: skip
    """Make one visible column of each two that USING names."""
    more = []
    for name in using:
        left = NameScope(None, before, merged).find(name, "")[0]
        right = NameScope(None, after).find(name, "")[0]
        for relation in (*before, *after):
            relation.hidden |= {v for v, _ in relation.columns if v == name}
        if side == "FULL":
            both = coalesce(col(left), col(right))
            unique = binder.name(name, ClauseContext(binder, NameScope(), "USING").scalars.type(both, exp.Null()))
            more.append((unique, both))
        else:
            unique = right if side == "RIGHT" else left
        scope.merged[name] = unique
    return Project(plan, (*columns_of(plan), *more)) if more else plan


def expand(binder: Binder, scope: NameScope, star: exp.Star, table: str, node: exp.Expr) -> list[tuple[str, str]]:
    """The columns that * stands for, as (visible, unique)."""
    if star.args.get("replace") or star.args.get("rename"):
        raise binder.unsupported("* REPLACE or RENAME", node)
    if not scope.relations:
        raise binder.source.error("* needs a FROM", node)
    found: list[tuple[str, str]] = []
    if table:
        relations = [r for r in scope.relations if r.alias.lower() == table.lower()]
        if not relations:
            hint = nearest(table, [r.alias for r in scope.relations])
            raise binder.source.error(f"there is no table {table!r} in FROM: {hint}", node, NotFoundError)
        found = [pair for r in relations for pair in r.columns]
    else:
        seen: set[str] = set()
        for relation in scope.relations:
            for visible, unique in relation.columns:
                if visible in relation.hidden and visible in scope.merged:
                    if visible not in seen:
                        found.append((visible, scope.merged[visible]))
                        seen.add(visible)
                else:
                    found.append((visible, unique))
    left_out = {folded(c.this if isinstance(c, exp.Column) else c) for c in star.args.get("except_") or ()}
    unknown = left_out - {visible for visible, _ in found}
    if unknown:
        name = sorted(unknown)[0]
        raise binder.source.error(f"EXCLUDE: there is no column {name!r}: {nearest(name, [v for v, _ in found])}", node)
    return [pair for pair in found if pair[0] not in left_out]
