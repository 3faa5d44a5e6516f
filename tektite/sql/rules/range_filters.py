"""Comparisons with a value that moves: when it moves, only the rows between its old and its new place are touched.

In a block, a relation that is one aggregate for each key (or one for all), that is joined by these keys alone, of which one
value is compared by <, <=, > or >=, and of which nothing else is read, becomes the bound of a range filter over the rest.
"""

from __future__ import annotations

from tektite.expr import Expr, at_scale, col
from tektite.expr.comparisons import MIRRORED, ORDERING
from tektite.expr.predicates import conjunction
from tektite.sql.logical import Aggregate, Block, Filter, Names, Node, Project, RangeFilter, Scan, type_of
from tektite.sql.walking import transform
from tektite.values import types
from tektite.values.types import DecimalType, Type


def range_filters(root: Node, names: Names) -> Node:
    """Range filters instead of joins with what moves."""

    def rewrite(node: Node) -> Node:
        while isinstance(node, Block):
            found = with_range_filter(node, names)
            if found is None:
                return node
            node = found
        return node

    return transform(root, rewrite)


def moves(node: Node) -> bool:
    """Whether a relation is an aggregate, or the time."""
    if isinstance(node, Project | Filter):
        return moves(node.input)
    return isinstance(node, Aggregate) or (isinstance(node, Scan) and node.single)


def with_range_filter(node: Block, names: Names) -> Node | None:
    """A block with one of its relations as a bound, if one can be."""
    for at, relation in enumerate(node.relations):
        if moves(relation) and len(node.relations) > 1 and not set(node.outputs) & set(relation.columns):
            found = range_filter(node, at, names)
            if found is not None:
                return found
    return None


def range_filter(node: Block, at: int, names: Names) -> Node | None:
    """One relation of a block as the bound of the others, or None if it is more than that to them."""
    bound_relation = node.relations[at]
    others = tuple(relation for place, relation in enumerate(node.relations) if place != at)
    own = set(bound_relation.columns)
    keys: list[tuple[Expr, Expr]] = []
    comparison: tuple[str, Expr, Expr] | None = None
    rest: list[Expr] = []
    for part in node.conjuncts:
        if not set(part.columns()) & own:
            rest.append(part)
            continue
        sides = apart(part, own)
        if sides is None or (part.op in ORDERING and comparison is not None):
            return None
        op, value, bound = sides
        if op == "eq":
            keys.append((value, bound))
        else:
            comparison = (op, value, bound)
    if comparison is None:
        return None
    op, value, bound = comparison
    columns = {name: type for relation in others for name, type in relation.columns.items()}
    kinds = type_of(value, columns), type_of(bound, bound_relation.columns)
    if not comparable(*kinds):
        return None
    if isinstance(kinds[0], DecimalType) and isinstance(kinds[1], DecimalType) and kinds[0].scale != kinds[1].scale:
        # to the side on which no decimal of the value's scale lies between
        bound = at_scale(bound, kinds[0].scale, up=op in ("lt", "ge"))
    read = {name for expression in (value, *(one for one, _ in keys)) for name in expression.columns()}
    source: Node
    if len(others) == 1:
        source = Filter(others[0], conjunction(rest)) if rest else others[0]
    else:
        kept = [name for name in columns if name in read or name in node.outputs]
        source = Block(others, tuple(rest), outputs=tuple(kept))
    source, left = computed(source, [value, *(one for one, _ in keys)], names, tuple(source.columns))
    bound_relation, right = computed(bound_relation, [bound, *(other for _, other in keys)], names)
    result: Node = RangeFilter(
        source, bound_relation, tuple(zip(left[1:], right[1:], strict=True)), left[0], op, right[0]
    )
    return Project(result, tuple((name, col(name)) for name in node.outputs))


def apart(part: Expr, own: set[str]) -> tuple[str, Expr, Expr] | None:
    """A conjunct as (comparison, side of the others, side of the relation), if its sides are that."""
    if part.op not in (*ORDERING, "eq"):
        return None
    one, other = part.args
    if set(other.columns()) <= own and other.columns() and not set(one.columns()) & own and one.columns():
        return part.op, one, other
    if set(one.columns()) <= own and one.columns() and not set(other.columns()) & own and other.columns():
        return MIRRORED[part.op], other, one
    return None


def comparable(one: Type, other: Type) -> bool:
    """Whether both have one type in which they compare as by themselves: whole numbers and floats do not."""
    if one == other:
        return one != types.String
    kinds = {one.kind, other.kind}
    return kinds <= {"decimal", "float"} or kinds == {"date", "timestamp"}


def computed(node: Node, wanted: list[Expr], names: Names, kept: tuple[str, ...] = ()) -> tuple[Node, list[str]]:
    """A relation with a column for each scalar, and their names; of its own columns, those that are kept."""
    outputs = {name: col(name) for name in kept}
    found: list[str] = []
    for expression in wanted:
        if expression.op == "col" and expression.params[0] not in found:
            found.append(expression.params[0])
        else:
            found.append(names.new("value"))
        outputs[found[-1]] = expression
    return (node if list(outputs) == list(node.columns) else Project(node, tuple(outputs.items()))), found
