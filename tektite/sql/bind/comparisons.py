"""Binds comparisons: `=`, BETWEEN, IN, ANY and ALL, EXISTS, IS, LIKE and SIMILAR TO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, coalesce, lit
from tektite.expr.comparisons import MIRRORED, OPPOSITE
from tektite.expr.constant_set import ConstantSet
from tektite.expr.fold import folded as folded_constant
from tektite.expr.interval_parts import IntervalParts
from tektite.expr.predicates import FALSE, TRUE, conjunction
from tektite.sql.bind import constant_sets, nested, patterns
from tektite.sql.catalog import catalog_lookup
from tektite.sql.parse.read_arguments import written
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

QUERY = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def comparison(scalars: Scalars, node: exp.Expr, op: str) -> Expr:
    left, right = node.this, node.expression
    if isinstance(left, exp.Any | exp.All):
        left, right, op = right, left, MIRRORED[op]
    if isinstance(right, exp.Any | exp.All):
        return quantified(scalars, node, op, left, right)
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        return rows(scalars, node, op, left, right)
    one, other = scalars.any(left), scalars.any(right)
    for tree, found, against in ((left, one, other), (right, other, one)):
        beside_list = isinstance(against, Expr) and (
            scalars.context.declared(against)[:1] == "_" or nested.is_list(scalars, against, node)
        )
        if is_list(scalars, tree, found) and not beside_list:
            name = written(tree)
            raise scalars.error(f"the value of {name} is a list: write x IN ({name}), or x = ANY({name})", node)
    if any(isinstance(side, Expr) and scalars.type(side, node) == types.Interval for side in (one, other)):
        one, other = (side.value() if isinstance(side, IntervalParts) else side for side in (one, other))
    if isinstance(one, IntervalParts) and isinstance(other, IntervalParts) and one.ends is other.ends is None:
        return scalars.compare(op, one.length(), other.length(), node)
    sides = [found.value() if isinstance(found, IntervalParts) else found for found in (one, other)]
    return scalars.compare(op, sides[0], sides[1], node)


def rows(scalars: Scalars, node: exp.Expr, op: str, left: exp.Expr, right: exp.Expr) -> Expr:
    """Comparison of rows of values."""
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        raise scalars.unsupported("comparison of a row with a single value", node)
    if len(left.expressions) != len(right.expressions):
        raise scalars.error(f"rows of {len(left.expressions)} and {len(right.expressions)} values", node)
    pairs = [(scalars.bind(a), scalars.bind(b)) for a, b in zip(left.expressions, right.expressions, strict=True)]
    if op in ("eq", "ne"):
        same = conjunction([scalars.compare("eq", a, b, node) for a, b in pairs])
        return same if op == "eq" else ~same
    found = scalars.compare(op, *pairs[-1], node)
    for a, b in reversed(pairs[:-1]):  # the first pair that differs decides
        found = scalars.compare(op[0] + "t", a, b, node) | (scalars.compare("eq", a, b, node) & found)
    return found


def quantified(scalars: Scalars, node: exp.Expr, op: str, left: exp.Expr, right: exp.Any | exp.All) -> Expr:
    """x = ANY (query) and x < ALL (query). ALL means that no row has the opposite comparison."""
    query = right.this
    while isinstance(query, exp.Paren):
        query = query.this
    if isinstance(query, exp.Array):
        if (op, type(right)) in (("eq", exp.Any), ("ne", exp.All)):
            value = scalars.bind(left)
            many = constant_sets.written(scalars, value, query.expressions, node)
            if many is not None:
                return among(scalars, node, op, value, many)
        tests = [scalars.compare(op, scalars.bind(left), scalars.bind(item), node) for item in query.expressions]
        if isinstance(right, exp.All):
            return conjunction(tests)
        return disjunction_of(tests)
    if not isinstance(query, QUERY):
        return in_array(scalars, node, op, left, right, query)
    tested = (scalars.bind(left),)
    if isinstance(right, exp.All):
        return ~scalars.context.subquery("any", query, OPPOSITE[op], tested)
    return scalars.context.subquery("any", query, op, tested)


def in_array(
    scalars: Scalars, node: exp.Expr, op: str, left: exp.Expr, right: exp.Any | exp.All, array: exp.Expr
) -> Expr:
    """x = ANY (array): of a constant array all comparisons, of others whether x is an element."""
    value, bound = scalars.bind(left), scalars.bind(array)
    constant = folded_constant(bound)
    if constant.op == "lit" and constant.params[1] is None:
        return lit(None, types.Bool)
    if constant.op == "lit" and (op, type(right)) in (("eq", exp.Any), ("ne", exp.All)):
        many = constant_sets.of_array(scalars, value, constant, node)
        if many is not None:
            return among(scalars, node, op, value, many)
    if nested.is_list(scalars, bound, node):
        if constant.op != "lit":
            return in_list(scalars, node, op, value, right, bound)
        kind, parts = constant.params
        return in_constants(scalars, node, op, value, right, [lit(part, kind.element) for part in parts])
    found = catalog_lookup.in_array(scalars, value, bound, node)
    if isinstance(found, list):
        return in_constants(scalars, node, op, value, right, found)
    if (op, type(right)) == ("eq", exp.Any):
        return scalars.checked(found, node)
    if (op, type(right)) == ("ne", exp.All):
        return scalars.checked(~found, node)
    raise scalars.unsupported("ANY or ALL of an array with anything but = ANY and <> ALL", node)


def among(scalars: Scalars, node: exp.Expr, op: str, value: Expr, constants: ConstantSet) -> Expr:
    """x = ANY and x <> ALL of many constants."""
    found = scalars.checked(constant_sets.is_one_of(value, constants), node)
    return found if op == "eq" else ~found


def in_constants(
    scalars: Scalars, node: exp.Expr, op: str, value: Expr, right: exp.Any | exp.All, elements: list[Expr]
) -> Expr:
    """A comparison with all elements of a constant array."""
    if elements and (op, type(right)) in (("eq", exp.Any), ("ne", exp.All)):
        found = scalars.checked(value.isin([scalars.as_said(element, value, node) for element in elements]), node)
        return found if op == "eq" else ~found
    tests = [scalars.compare(op, value, element, node) for element in elements]
    return conjunction(tests) if isinstance(right, exp.All) else disjunction_of(tests)


def in_list(scalars: Scalars, node: exp.Expr, op: str, value: Expr, right: exp.Any | exp.All, lists: Expr) -> Expr:
    """x = ANY (list) and x <> ALL (list)."""
    if (op, type(right)) not in (("eq", exp.Any), ("ne", exp.All)):
        raise scalars.unsupported("ANY or ALL of a list with anything but = ANY and <> ALL", node)
    found = Expr("list_contains", (lists, value))
    present = Expr("list_length", (Expr("list_order", (lists,), ("present",)),))
    known = Expr("case", (found, TRUE, present < Expr("list_length", (lists,)), lit(None, types.Bool), found))
    return scalars.checked(known if op == "eq" else ~known, node)


def same(scalars: Scalars, node: exp.NullSafeEQ) -> Expr:
    return scalars.checked(scalars.bind(node.this).is_same(scalars.bind(node.expression)), node)


def different(scalars: Scalars, node: exp.NullSafeNEQ) -> Expr:
    return scalars.checked(~scalars.bind(node.this).is_same(scalars.bind(node.expression)), node)


def between(scalars: Scalars, node: exp.Between) -> Expr:
    value, low, high = (scalars.bind(part) for part in (node.this, node.args["low"], node.args["high"]))
    return scalars.compare("ge", value, low, node) & scalars.compare("le", value, high, node)


def member(scalars: Scalars, node: exp.In) -> Expr:
    query = node.args.get("query")
    if query is not None:
        tests = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        return scalars.context.subquery("any", query, "eq", tuple(scalars.bind(test) for test in tests))
    if isinstance(node.this, exp.Tuple):
        result = FALSE
        for item in node.expressions:
            result = result | rows(scalars, node, "eq", node.this, item)
        return result
    value = scalars.bind(node.this)
    field = node.args.get("field")
    listed = node.expressions if field is None else [field]
    many = constant_sets.written(scalars, value, listed, node)
    if many is not None:
        return among(scalars, node, "eq", value, many)
    items = [found for item in listed for found in elements(scalars, value, item, node)]
    if not items:
        return FALSE
    in_lists = []
    if not nested.is_list(scalars, value, node):  # the parameter of a prepared statement may be a list
        in_lists = [item for item in items if item.op == "col" and nested.is_list(scalars, item, node)]
    tests = [in_list(scalars, node, "eq", value, exp.Any(), lists) for lists in in_lists]
    others = [scalars.as_said(item, value, node) for item in items if not any(item is lists for lists in in_lists)]
    if others:
        tests.append(scalars.checked(value.isin(others), node))
    return disjunction_of(tests)


def elements(scalars: Scalars, value: Expr, item: exp.Expr, node: exp.In) -> list[Expr]:
    """The values of an item of IN: itself, or the elements of a parameter that is a list."""
    bound = scalars.bind(item)
    if is_list(scalars, item, bound):
        found = catalog_lookup.in_array(scalars, value, bound, node)
        if isinstance(found, list):
            return found
    elif node.args.get("field") is not None:
        raise scalars.unsupported("IN without parentheses, with anything but a parameter that is a list,", node)
    return [bound]


def is_list(scalars: Scalars, node: exp.Expr, bound: Expr | IntervalParts) -> bool:
    """Whether a tree is a parameter whose value is a list."""
    if not isinstance(node, exp.Parameter | exp.Placeholder) or not isinstance(bound, Expr):
        return False
    return scalars.context.declared(bound) == "_text"


def exists(scalars: Scalars, node: exp.Exists) -> Expr:
    return scalars.context.subquery("exists", node.this, "eq", ())


def is_a(scalars: Scalars, node: exp.Is) -> Expr:
    value, what = scalars.bind(node.this), node.expression
    if isinstance(what, exp.Null):
        return value.is_null()
    if isinstance(what, exp.Boolean):
        return scalars.checked(coalesce(value if what.this else ~value, False), node)
    if isinstance(what, exp.Not) and isinstance(what.this, exp.Null):
        return value.is_not_null()
    raise scalars.unsupported("this form of IS", node)


def like(scalars: Scalars, node: exp.Expr) -> Expr:
    escape = None
    if isinstance(node, exp.Escape):
        character = scalars.bind(node.expression)
        node = node.this
        said = character.params[1] if character.op == "lit" else 0
        if said is None:
            scalars.bind(node.this), scalars.bind(node.expression), node.args.get("negate")
            return lit(None, types.Bool)
        if not isinstance(said, str) or len(said) > 1:
            raise scalars.error("ESCAPE takes one constant character, or none at all", node)
        escape = said or None
    pattern = folded_constant(scalars.bind(node.expression))
    value = scalars.bind(node.this)
    is_negated = bool(node.args.get("negate"))
    if pattern.op != "lit" or not (pattern.params[1] is None or isinstance(pattern.params[1], str)):
        if escape is not None:
            raise scalars.unsupported("LIKE with ESCAPE and a pattern that is not a constant", node.expression)
        both = (value.lower(), pattern.lower()) if isinstance(node, exp.ILike) else (value, pattern)
        compared = scalars.checked(both[0].like_text(both[1]), node)
        return ~compared if is_negated else compared
    if pattern.params[1] is None:
        return lit(None, types.Bool)
    match = value.ilike if isinstance(node, exp.ILike) else value.like
    found = scalars.checked(match(pattern.params[1], escape), node)
    return ~found if is_negated else found


def similar(scalars: Scalars, node: exp.SimilarTo) -> Expr:
    """SIMILAR TO: whether a regular expression matches the whole text, as in DuckDB."""
    return scalars.checked(patterns.of_pattern(scalars, node), node)


def disjunction_of(tests: list[Expr]) -> Expr:
    """The disjunction of some conditions."""
    parts = tests or [FALSE]
    while len(parts) > 1:  # in pairs: a long list stays a shallow tree
        parts = [parts[i] | parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]
