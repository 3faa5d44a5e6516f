"""Removes outer columns from a correlated subquery: pulls equalities up, or pushes a domain down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tektite.errors import UnsupportedError
from tektite.expr import Expr, col, lit
from tektite.expr.predicates import conjunction, conjuncts
from tektite.sql.logical import (
    Aggregate,
    Apply,
    Compare,
    Distinct,
    Filter,
    Join,
    Names,
    Node,
    Once,
    Project,
    Series,
    Top,
    Union,
    Window,
    columns_of,
)
from tektite.sql.walking import free_columns
from tektite.values import types
from tektite.values.types import Type

# ---------------------------------------------------------------------- pulling equalities up


@dataclass
class Pulled:
    """A subquery that reads no outer columns, and the conditions under which its rows belong to an outer row."""

    plan: Node
    conditions: list[Expr]
    keys: tuple[str, ...]
    """The columns of the plan that the conditions equate with outer ones."""
    grouped: bool = False
    """Whether groups without rows are missing, for which the subquery has a row. Then only projections may follow."""


def pulled_up(inner: Node, outer: set[str], names: Names, through_groups: bool) -> Pulled | None:
    """A subquery without the conjuncts that read outer columns, or None if it reads them elsewhere.

    With `through_groups` the conjuncts must be equalities, and aggregates get the subquery's side of them as keys.
    """
    if isinstance(inner, Filter):
        below = pulled_up(inner.input, outer, names, through_groups)
        if below is None or below.grouped:
            return None
        own: list[Expr] = []
        correlated: list[Expr] = []
        for part in conjuncts(inner.predicate):
            (correlated if set(part.columns()) & outer else own).append(part)
        plan = Filter(below.plan, conjunction(own)) if own else below.plan
        keys = list(below.keys)
        if through_groups:
            more: list[tuple[str, Expr]] = []
            conditions = []
            for part in correlated:
                sides = equality(part, outer)
                if sides is None:
                    return None
                outside, inside = sides
                if inside.op != "col":
                    key = names.new("key")
                    more.append((key, inside))
                    inside = col(key)
                keys.append(inside.params[0])
                conditions.append(outside == inside)
            plan = Project(plan, (*columns_of(plan), *more)) if more else plan
            return Pulled(plan, [*below.conditions, *conditions], tuple(dict.fromkeys(keys)))
        return Pulled(plan, [*below.conditions, *correlated], ())
    if not free_columns(inner) & outer:
        return Pulled(inner, [], ())
    if set(inner.used) & outer:
        return None
    if isinstance(inner, Project):
        below = pulled_up(inner.input, outer, names, through_groups)
        if below is None:
            return None
        needed = {name for part in below.conditions for name in part.columns() if name in below.plan.columns}
        needed -= {name for name, output in inner.outputs if output.op == "col" and output.params[0] == name}
        if needed & {name for name, _ in inner.outputs}:
            return None
        return replace(below, plan=Project(below.plan, (*inner.outputs, *((n, col(n)) for n in sorted(needed)))))
    if isinstance(inner, Aggregate) and through_groups and not inner.keys:
        below = pulled_up(inner.input, outer, names, through_groups)
        if below is None or below.grouped or not below.keys:
            return None
        group = tuple((name, col(name)) for name in below.keys)
        return replace(below, plan=Aggregate(below.plan, group, inner.calls), grouped=True)
    if isinstance(inner, Distinct | Top) and not through_groups and getattr(inner, "limit", None) is None:
        # whether there is a row does not depend on duplicates, nor on an order
        if isinstance(inner, Top) and inner.offset:
            return None
        return pulled_up(inner.input, outer, names, through_groups)
    if isinstance(inner, Join) and inner.kind in ("inner", "left", "semi", "anti"):
        if free_columns(inner.right) & outer:
            if inner.kind != "inner" or free_columns(inner.left) & outer:
                return None
            below = pulled_up(inner.right, outer, names, through_groups)
            return None if below is None or below.grouped else replace(below, plan=replace(inner, right=below.plan))
        below = pulled_up(inner.left, outer, names, through_groups)
        return None if below is None or below.grouped else replace(below, plan=replace(inner, left=below.plan))
    return None


def equality(part: Expr, outer: set[str]) -> tuple[Expr, Expr] | None:
    """The outer and the inner side of an equality between the two, if a conjunct is one."""
    if part.op != "eq":
        return None
    one, other = part.args
    for outside, inside in ((one, other), (other, one)):
        if (
            set(outside.columns()) <= outer
            and inside.columns()
            and not set(inside.columns()) & outer
            and outside.columns()
        ):
            return outside, inside
    return None


# ---------------------------------------------------------------------- pushing a domain down


@dataclass
class Domain:
    """The different values of some outer columns, under names of their own. Equal values that a subquery may tell apart, such as
    `1 month` and `30 days`, are different here: the columns hold their words.
    """

    plan: Node
    outer: dict[str, Type]
    names: list[str]

    @classmethod
    def of(cls, plan: Node, outer: list[str], names: Names) -> Domain:
        kinds = plan.columns
        own = [names.new(name) for name in outer]
        values = Project(plan, tuple((new, word_of(col(old), kinds[old])) for new, old in zip(own, outer, strict=True)))
        return cls(Distinct(values), {name: kinds[name] for name in outer}, own)

    @property
    def columns(self) -> dict[str, Expr]:
        """The domain's column of each outer column, by the outer column's name."""
        pairs = zip(self.outer.items(), self.names, strict=True)
        return {
            old: Expr("reinterpret", (col(new),), (kind,)) if kind.has_keys else col(new) for (old, kind), new in pairs
        }

    def condition(self) -> Expr:
        """The condition that an outer row has the domain's values; NULL is one of them."""
        pairs = zip(self.outer.items(), self.names, strict=True)
        return conjunction([word_of(col(old), kind).is_same(col(new)) for (old, kind), new in pairs])

    def again(self, names: Names) -> tuple[Domain, Expr]:
        """The same domain under other names, and that both agree."""
        own = [names.new(name) for name in self.names]
        plan = Project(self.plan, tuple((new, col(old)) for new, old in zip(own, self.names, strict=True)))
        same = conjunction([col(a).is_same(col(b)) for a, b in zip(self.names, own, strict=True)])
        return Domain(plan, self.outer, own), same


def word_of(value: Expr, kind: Type) -> Expr:
    """A value of a type in which different words may be equal as what tells these apart."""
    return Expr("reinterpret", (value,), (types.String if kind.interned else types.Int,)) if kind.has_keys else value


def pushed_down(node: Node, domain: Domain, names: Names) -> Node:
    """The rows of a subquery for each row of its domain, with the domain's columns beside its own."""
    if not free_columns(node) & set(domain.outer):
        return Join(domain.plan, node, "inner")
    bound = node.with_expressions(lambda expression: expression.substitute(domain.columns))
    passed = [(name, col(name)) for name in domain.names]
    match bound:
        case Filter() | Series():
            return bound.with_inputs(pushed_down(bound.input, domain, names))
        case Project():
            return Project(pushed_down(bound.input, domain, names), (*bound.outputs, *passed))
        case Distinct():
            return bound.with_inputs(pushed_down(bound.input, domain, names))
        case Aggregate():
            below = pushed_down(bound.input, domain, names)
            groups = Aggregate(below, (*passed, *bound.keys), bound.calls)
            return groups if bound.keys else of_every_row(groups, domain, names)
        case Top():
            by = tuple(dict.fromkeys((*bound.by, *domain.names)))
            return replace(bound, input=pushed_down(bound.input, domain, names), by=by)
        case Once():
            return replace(bound, input=pushed_down(bound.input, domain, names), by=(*bound.by, *domain.names))
        case Window():
            calls = tuple((name, replace(call, by=(*call.by, *domain.names))) for name, call in bound.calls)
            return Window(pushed_down(bound.input, domain, names), calls)
        case Union():
            parts = []
            for part in bound.parts:
                mine, _ = domain.again(names)
                below = pushed_down(part, mine, names)
                parts.append(Project(below, tuple((n, col(n)) for n in (*part.columns, *mine.names))))
            return Union(tuple(parts), (*bound.names, *domain.names))
        case Join():
            return join_pushed_down(bound, domain, names)
        case Compare():
            other, _ = domain.again(names)
            left = pushed_down(bound.left, domain, names)
            right = pushed_down(bound.right, other, names)
            lefts = Project(left, tuple((n, col(n)) for n in (*bound.left.columns, *domain.names)))
            rights = Project(right, tuple((n, col(n)) for n in (*bound.right.columns, *other.names)))
            return bound.with_inputs(lefts, rights)
    what = "WITH RECURSIVE" if not isinstance(node, Apply) else type(node).__name__
    raise UnsupportedError(f"{what} in a subquery that reads columns of the query around it is not supported")


def of_every_row(groups: Aggregate, domain: Domain, names: Names) -> Node:
    """An aggregate without keys has a row for every row of its domain, even for an empty group."""
    other, same = domain.again(names)
    keys = [(new, col(old)) for new, old in zip(other.names, domain.names, strict=True)]
    renamed = Project(groups, (*keys, *((name, col(name)) for name, _ in groups.calls)))
    joined = Join(domain.plan, renamed, "left", same)
    counts = [name for name, call in groups.calls if call.kind == "count"]
    outputs = [
        (name, Expr("coalesce", (col(name), lit(0))) if name in counts else col(name)) for name, _ in groups.calls
    ]
    return Project(joined, (*((name, col(name)) for name in domain.names), *outputs))


def join_pushed_down(node: Join, domain: Domain, names: Names) -> Node:
    """A join for each row of a domain."""
    outer = set(domain.outer)
    on_left, on_right = bool(free_columns(node.left) & outer), bool(free_columns(node.right) & outer)
    if node.kind == "inner" and not on_right:
        return node.with_inputs(pushed_down(node.left, domain, names), node.right)
    if node.kind == "inner" and not on_left:
        return node.with_inputs(node.left, pushed_down(node.right, domain, names))
    left = pushed_down(node.left, domain, names)
    if node.kind in ("semi", "anti", "left") and not on_right:
        return node.with_inputs(left, node.right)
    other, same = domain.again(names)
    right = pushed_down(node.right, other, names)
    joined = Join(left, right, node.kind, conjunction([*conjuncts(node.condition), same]))
    if node.kind != "full":
        return joined
    both = [
        (mine, Expr("coalesce", (col(mine), col(theirs))))
        for mine, theirs in zip(domain.names, other.names, strict=True)
    ]
    kept = [(name, col(name)) for name in (*node.left.columns, *node.right.columns)]
    return Project(joined, (*kept, *both))
