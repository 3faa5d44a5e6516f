"""Binding FROM: tables, subqueries, constant rows; `joins` has the joins between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import Expr, coalesce, col
from tektite.expr.fold import folded as constant
from tektite.expr.literals import literal_value
from tektite.sql.bind import constant_sets, joins, nested, pivots, recursion, stars
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.list_relations import list_elements
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.bind.table_functions import function, named
from tektite.sql.catalog.schemas import schema_said
from tektite.sql.catalog.set_functions import element_rows
from tektite.sql.logical import Node, Project, Union, Values
from tektite.sql.parse.internal_tables import is_internal
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.bound import Bound
    from tektite.sql.bind.query import Binder


def bind_from(binder: Binder, node: exp.Select, parent: NameScope | None) -> tuple[Node, NameScope]:
    """The joined relations of FROM, and their scope."""
    source = node.args.get("from_")
    if source is None:
        return Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)), NameScope(parent)
    # a comma binds less than JOIN: what stands between commas is joined first
    groups = [member(binder, source.this, NameScope(parent))]
    for join in node.args.get("joins") or ():
        if joins.is_comma(join):
            groups.append(member(binder, join.this, around(binder, groups, parent, join)))
            around(binder, groups, parent, join)  # which refuses a name that is there already
        else:
            groups[-1] = joins.joined(binder, groups[-1], join, around(binder, groups[:-1], parent, join))
    plan = groups[0][0]
    for other, _ in groups[1:]:
        plan = joins.beside(plan, other)
    return plan, around(binder, groups, parent, node)


def around(binder: Binder, groups: list[tuple[Node, NameScope]], parent: NameScope | None, node: exp.Expr) -> NameScope:
    """The scope of some members of FROM together."""
    scope = NameScope(parent)
    for _, found in groups:
        scope = joins.both(binder, scope, found, node)
    return scope


def member(binder: Binder, node: exp.Expr, left: NameScope) -> tuple[Node, NameScope]:
    """One member of FROM and its scope. LATERAL reads the members on its left, whose parent scope is that around the query."""
    inner = node.this
    if node.args.get("pivots"):
        bound = pivots.pivoted(binder, node, left)
        plan, scope = bound.visible(), named(binder, pivots.alias_of(node), left, bound.names, bound.titles)
    elif isinstance(node, exp.Table):
        plan, scope = table(binder, node, left)
    elif isinstance(node, exp.Paren) or isinstance(node, exp.Subquery) and is_member(inner):
        plan, scope = member(binder, inner, left)
        if node.args.get("alias") is not None:
            columns = stars.expand(binder, scope, exp.Star(), "", node)
            scope = named(binder, node, left, [unique for _, unique in columns], [title for title, _ in columns])
    elif isinstance(node, exp.Subquery):
        bound = binder.query(inner, left.parent)
        plan, scope = bound.visible(), named(binder, node, left, bound.names, bound.titles)
    elif isinstance(node, exp.Lateral):
        applied = node.args.get("cross_apply")
        if applied is not None:
            word = "CROSS APPLY" if applied else "OUTER APPLY"
            raise binder.unsupported(word, node)
        if isinstance(inner, exp.Subquery):
            bound = binder.query(inner, left)
            plan, scope = bound.visible(), named(binder, node, left, bound.names, bound.titles)
        elif isinstance(inner, exp.GenerateSeries | exp.Anonymous):
            plan, scope = function(binder, node, left)
        elif isinstance(inner, exp.Unnest):
            clause = ClauseContext(binder, left, "UNNEST")
            plan, scope = list_elements(binder, node, left, clause, [clause.bind(part) for part in inner.expressions])
        else:
            raise binder.unsupported("LATERAL of anything but a query or generate_series", node)
    elif isinstance(node, exp.Unnest):
        plan, scope = elements(binder, node, left)
    elif isinstance(node, exp.Values):
        bound = constant_rows(binder, node.expressions, left.parent, node)
        plan, scope = bound.plan, named(binder, node, left, bound.names, bound.titles)
    else:
        raise binder.unsupported(f"{node.key.upper()} in FROM", node)
    for join in node.args.get("joins") or ():
        plan, scope = joins.joined(binder, (plan, scope), join, left)
    return plan, scope


def is_member(node: exp.Expr) -> bool:
    """Whether parentheses hold a member of FROM, such as a join, and not a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.args.get("alias") or node.args.get("joins")) or is_member(node.this)
    return isinstance(node, exp.Table)


def table(binder: Binder, node: exp.Table, left: NameScope) -> tuple[Node, NameScope]:
    """A table, a view, a definition or a common table expression, by name."""
    if isinstance(node.this, exp.Func):
        return function(binder, node, left)
    schema, name = schema_said(binder.source, node), folded(node.this)
    found = None if schema or is_internal(node) else binder.ctes.get(name)
    if isinstance(found, recursion.Reference):
        plan, titles = found.read(binder, node)
    elif found is not None:
        bound = binder.defined(found, node)
        plan, titles = bound.plan, bound.titles
    else:
        binder.relations_read += 1
        binder.relations_bound += 1
        written = f"{schema}.{name}" if schema else name
        plan, titles = binder.tables.relation(written, binder, node)
        schema = schema or binder.tables.schema_of(written)
    return plan, named(binder, node, left, plan.columns, titles, name, schema)


def elements(binder: Binder, node: exp.Unnest, left: NameScope) -> tuple[Node, NameScope]:
    """UNNEST of lists, or of an array of the system catalogs: the elements, and their positions WITH ORDINALITY."""
    clause = ClauseContext(binder, left, "UNNEST")
    arrays = [clause.bind(part) for part in node.expressions]
    if all(nested.is_list(clause.scalars, array, node) for array in arrays):
        return list_elements(binder, node, left, clause, arrays)
    if len(arrays) != 1:
        raise binder.unsupported("UNNEST of several arrays", node)
    array = arrays[0]
    plan, position, element = element_rows(clause, array, node)
    if clause.pending:
        raise binder.unsupported("a subquery in UNNEST", node)
    alias = node.args.get("alias")
    own = folded(alias.this) if alias is not None and alias.this is not None else "unnest"
    names, titles = [element], [own]
    if node.args.get("offset"):
        names.append(position)
        titles.append("ordinality")
    plan = Project(plan, tuple((name, col(name)) for name in names))
    return plan, named(binder, node, left, names, titles, own)


def constant_rows(binder: Binder, tuples: list[exp.Expr], scope: NameScope | None, node: exp.Expr) -> Bound:
    """VALUES: constants as one relation; rows with other expressions as the union of their queries."""
    from tektite.sql.bind.bound import Bound

    width = len(tuples[0].expressions) if isinstance(tuples[0], exp.Tuple) else 1
    plain = constant_sets.rows_of(ClauseContext(binder, NameScope(scope), "VALUES").scalars, tuples, width)
    if plain is not None:
        found_types, found_rows = plain
        shown = [f"col{at}" for at in range(width)]
        unique = tuple(binder.name(title, type) for title, type in zip(shown, found_types, strict=True))
        return Bound(Values(unique, tuple(found_types), tuple(found_rows)), list(unique), shown)
    parts: list[list[Expr]] = []
    clauses: list[ClauseContext] = []
    for row in tuples:
        trees = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(trees) != width:
            raise binder.source.error(f"a row of {len(trees)} values among rows of {width}", row)
        clause = ClauseContext(binder, NameScope(scope), "VALUES")
        parts.append([constant(clause.bind(tree)) for tree in trees])
        clauses.append(clause)
    wanted = []
    for at in range(width):
        # one constant of each type suffices to find the type of a column
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
        for values, clause in zip(parts, clauses, strict=True):
            unit = clause.attach(Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)))
            pairs = zip(titles, values, wanted, strict=True)
            rows.append(Project(unit, tuple((binder.name(t, w), constant(value.cast(w))) for t, value, w in pairs)))
        return Bound(Union(tuple(rows), names), list(names), titles)
    try:
        constants = tuple(tuple(map(literal_value, (v.params[1] for v in row), wanted)) for row in parts)
    except TektiteError as error:
        raise binder.source.placed(error, node) from None
    return Bound(Values(names, tuple(wanted), constants), list(names), titles)
