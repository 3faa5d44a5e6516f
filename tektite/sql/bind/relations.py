"""Binding FROM: tables, subqueries, constant rows; `joins` has the joins between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import NotFoundError, TektiteError
from tektite.expr import Expr, coalesce, col, json_texts, lit
from tektite.expr.fold import folded as constant
from tektite.expr.literals import literal_value
from tektite.sql.bind import joins, nested, recursion, time_windows
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.scope import NameScope, Relation, folded
from tektite.sql.catalog.schemas import schema_said
from tektite.sql.catalog.set_functions import ListRows, element_rows
from tektite.sql.logical import Node, Project, Series, Union, Values
from tektite.sql.parse.dialect import Dialect
from tektite.sql.parse.places import nearest
from tektite.sql.parse.read_arguments import written
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.bound import Bound
    from tektite.sql.bind.query import Binder


MOST_NUMBERS = 10_000_000
"""Rows that generate_series and range may have: they are in memory."""


def bind_from(binder: Binder, node: exp.Select, parent: NameScope | None) -> tuple[Node, NameScope]:
    """The relations of FROM, joined, and the scope that they make."""
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
    """One member of FROM and its scope. LATERAL reads what is on the left of it; the parent of that is around the query."""
    inner = node.this
    if isinstance(node, exp.Table):
        plan, scope = table(binder, node, left)
    elif isinstance(node, exp.Paren) or isinstance(node, exp.Subquery) and is_member(inner):
        plan, scope = member(binder, inner, left)
        if node.args.get("alias") is not None:
            columns = expand(binder, scope, exp.Star(), "", node)
            scope = named(binder, node, left, [unique for _, unique in columns], [title for title, _ in columns])
    elif isinstance(node, exp.Subquery):
        bound = binder.query(inner, left.parent)
        plan, scope = bound.visible(), named(binder, node, left, bound.names, bound.titles)
    elif isinstance(node, exp.Lateral):
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
    """Whether what stands in parentheses is a member of FROM, such as a join, and not a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.args.get("alias") or node.args.get("joins")) or is_member(node.this)
    return isinstance(node, exp.Table)


def named(
    binder: Binder,
    node: exp.Expr,
    left: NameScope,
    names: Iterable[str],
    titles: list[str],
    default: str = "",
    schema: str = "",
) -> NameScope:
    """The scope of one relation under its alias, or under its name in a schema."""
    alias = node.args.get("alias")
    said = None if alias is None else alias.this
    name = default if said is None else folded(said)
    columns = [folded(c) for c in alias.columns] if alias is not None else []
    shown = binder.aliased(titles, columns, node)
    return NameScope(
        left.parent, [Relation(name, list(zip(shown, names, strict=True)), schema if said is None else "")]
    )


def table(binder: Binder, node: exp.Table, left: NameScope) -> tuple[Node, NameScope]:
    """A table, a view, a definition or a common table expression, by name."""
    if isinstance(node.this, exp.Func):
        return function(binder, node, left)
    schema, name = schema_said(binder.source, node), folded(node.this)
    found = None if schema else binder.ctes.get(name)
    if isinstance(found, recursion.Reference):
        plan, titles = found.read(binder, node)
    elif found is not None:
        bound = binder.defined(found, node)
        plan, titles = bound.plan, bound.titles
    else:
        binder.relations_read += 1
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


def list_elements(
    binder: Binder, node: exp.Expr, left: NameScope, clause: ClauseContext, lists: list[Expr], title: str = "unnest"
) -> tuple[Node, NameScope]:
    """The elements of lists as a relation."""
    if clause.pending:
        raise binder.unsupported(f"a subquery in {title}", node)
    rows = ListRows(clause)
    names = [rows.add(value, node) for value in lists]
    plan: Node = rows.plan()
    alias = node.args.get("alias")
    titles = [title] * len(names)
    if len(names) == 1 and alias is not None and alias.this is not None and not alias.columns and title == "unnest":
        titles = [folded(alias.this)]
    unnest = node.this if isinstance(node, exp.Lateral) else node
    offset = unnest.args.get("offset")
    if offset:
        names.append(rows.position)
        titles.append(folded(offset) if isinstance(offset, exp.Identifier) else "ordinality")
    plan = Project(plan, tuple((name, col(name)) for name in names))
    if title in FIELDS:  # a list of pairs, as two columns
        fields = [
            (binder.name(field, kind), Expr("struct_field", (col(names[0]),), (field,)))
            for field, kind in FIELDS[title]
        ]
        plan = Project(plan, tuple(fields))
        names, titles = [name for name, _ in fields], [field for field, _ in FIELDS[title]]
    if offset and alias is not None and len(alias.columns) == len(names) - 1 and isinstance(offset, exp.Identifier):
        alias.append("columns", offset.copy())
    scope = named(binder, node, left, names, titles, title)
    return plan, of_function(scope) if len(names) == 1 else scope


def json_rows(binder: Binder, node: exp.Expr, left: NameScope, call: exp.Anonymous) -> tuple[Node, NameScope] | None:
    """A table function of JSON: its elements, keys, or pairs of them; None if it is none."""
    title = call.name.lower()
    plain = title.removesuffix("_text")
    if plain not in nested.SETS or len(call.expressions) != 1:
        return None
    clause = ClauseContext(binder, left, title)
    value = nested.SETS[plain](clause.bind(call.expressions[0]))
    if not nested.is_list(clause.scalars, value, node):
        raise binder.source.error(f"{title} needs a list", node)
    plan, scope = list_elements(binder, node, left, clause, [value], plain)
    if plain == title:
        return plan, scope
    outputs = []
    for name, kind in plan.columns.items():  # JSON as text
        shown = Expr("json_text", (col(name),)) if kind == types.Json else col(name)
        outputs.append((binder.name(name, types.String), shown))
    renamed = dict(zip(plan.columns, (name for name, _ in outputs), strict=True))
    for relation in scope.relations:
        relation.columns = [(visible, renamed[unique]) for visible, unique in relation.columns]
    return Project(plan, tuple(outputs)), scope


FIELDS = {"json_each": json_texts.PAIR.fields, "jsonb_each": json_texts.PAIR.fields}
"""Table functions whose rows are the fields of a list's elements."""


def function(binder: Binder, node: exp.Expr, left: NameScope) -> tuple[Node, NameScope]:
    """A table function: generate_series and range, whose bounds may be columns of what is on the left; pg_get_keywords."""
    call = node.this
    if isinstance(call, exp.Anonymous) and call.name.lower() == "pg_get_keywords" and not call.expressions:
        names = [binder.name(title, types.String) for title in ("word", "catcode")]
        words = sorted(word.lower() for word in Dialect.Tokenizer.KEYWORDS if word.isalpha())
        plan: Node = Values(tuple(names), (types.String,) * 2, tuple((word, "U") for word in words))
        return plan, named(binder, node, left, names, ["word", "catcode"], "pg_get_keywords")
    if isinstance(call, exp.Anonymous) and call.name.lower() in time_windows.USES:
        query = time_windows.windowed_query(binder, ClauseContext(binder, left, call.name.lower()), node, call)
        bound = binder.query(query, None)
        return bound.visible(), named(binder, node, left, bound.names, bound.titles, call.name.lower())
    if isinstance(call, exp.Anonymous):
        found = json_rows(binder, node, left, call)
        if found is not None:
            return found
    if not isinstance(call, exp.GenerateSeries):
        raise binder.unsupported(f"table function {written(call)[:40]}", node)
    exclusive = bool(call.args.get("is_end_exclusive"))
    title = "range" if exclusive else "generate_series"
    clause = ClauseContext(binder, left, title)
    values: list[Expr] = []
    for argument, default in (("start", 0), ("end", 0), ("step", 1)):
        given = call.args.get(argument)
        value = lit(default) if given is None else constant(clause.bind(given))
        if clause.scalars.type(value, given or node) != types.Int:
            raise binder.unsupported(f"{title} of anything but whole numbers", node)
        values.append(value)
    if values[2].op == "lit" and values[2].params[1] == 0:
        raise binder.source.error(f"{title}: the step cannot be 0", node)
    if not all(value.op == "lit" for value in values):
        name = binder.name(title, types.Int)
        unit = clause.attach(Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)))
        series = Series(unit, name, values[0], values[1], values[2], exclusive)
        return Project(series, ((name, col(name)),)), of_function(named(binder, node, left, [name], [title], title))
    start, end, step = (value.params[1] for value in values)
    numbers = range(start, end if exclusive else end + (1 if step > 0 else -1), step)
    if binder.first_rows is not None:  # of a query that needs no more of them
        numbers = numbers[: binder.first_rows]
    many = (numbers[-1] - start) // step + 1 if numbers else 0
    if many > MOST_NUMBERS:
        raise binder.unsupported(f"{title} of {many} numbers (at most {MOST_NUMBERS})", node)
    rows = tuple((value,) for value in numbers)
    name = binder.name(title, types.Int)
    plan = Values((name,), (types.Int,), rows)
    return plan, of_function(named(binder, node, left, [name], [title], title))


def of_function(scope: NameScope) -> NameScope:
    """The scope of a function's rows."""
    for relation in scope.relations:
        relation.is_function = True
    return scope


def constant_rows(binder: Binder, tuples: list[exp.Expr], scope: NameScope | None, node: exp.Expr) -> Bound:
    """VALUES: constants as one relation; rows with other expressions as the union of their queries."""
    from tektite.sql.bind.bound import Bound

    width = len(tuples[0].expressions) if isinstance(tuples[0], exp.Tuple) else 1
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
        for values, clause in zip(parts, clauses, strict=True):
            unit = clause.attach(Values((binder.name("unit", types.Int),), (types.Int,), ((0,),)))
            pairs = zip(titles, values, wanted, strict=True)
            rows.append(Project(unit, tuple((binder.name(t, w), constant(value.cast(w))) for t, value, w in pairs)))
        return Bound(Union(tuple(rows), names), list(names), titles)
    try:
        constants = tuple(tuple(map(literal_value, (v.params[1] for v in row), wanted)) for row in parts)
    except TektiteError as error:
        raise binder.source.error(str(error), node) from None
    return Bound(Values(names, tuple(wanted), constants), list(names), titles)


def expand(
    binder: Binder, scope: NameScope, star: exp.Star, table: str, node: exp.Expr, schema: str = ""
) -> list[tuple[str, str]]:
    """The columns that * stands for, as (visible, unique)."""
    if star.args.get("replace") or star.args.get("rename"):
        raise binder.unsupported("* REPLACE or RENAME", node)
    if not scope.relations:
        raise binder.source.error("* needs a FROM", node)
    found: list[tuple[str, str]] = []
    if table:
        relations = [r for r in scope.relations if r.is_called(table, schema)]
        if not relations:
            hint = nearest(table, [r.alias for r in scope.relations])
            raise binder.source.error(f"there is no table {table!r} in FROM: {hint}", node, NotFoundError)
        found = [pair for r in relations for pair in r.columns]
    else:
        seen: set[str] = set()
        for relation in scope.relations:
            for visible, unique in relation.columns:
                merged = relation.hidden.get(visible.lower())
                if merged is None:
                    found.append((visible, unique))
                elif merged not in seen:
                    found.append((visible, merged))
                    seen.add(merged)
    left_out = {folded(c.this if isinstance(c, exp.Column) else c) for c in star.args.get("except_") or ()}
    unknown = left_out - {visible for visible, _ in found}
    if unknown:
        name = sorted(unknown)[0]
        raise binder.source.error(f"EXCLUDE: there is no column {name!r}: {nearest(name, [v for v, _ in found])}", node)
    if len(left_out) and all(visible in left_out for visible, _ in found):
        raise binder.source.error("EXCLUDE leaves no column of *", node)
    return [pair for pair in found if pair[0] not in left_out]
