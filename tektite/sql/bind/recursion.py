"""WITH RECURSIVE: relations defined by themselves and each other, as least solutions.

A recursive query is a union of parts. Base parts mention none of the names being defined; recursive parts mention some. A
name may have no base part: then its types and first rows come from other names. With UNION, or with a single part, each row
counts once. With UNION ALL each derivation counts, as in SQL, so a part may mention only one of the names, and only once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import col
from tektite.expr.predicates import conjunction
from tektite.query.columns import is_shown_apart
from tektite.sql.bind.clause import each_once
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.logical import (
    Apply,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Node,
    Project,
    Recall,
    Solution,
    Union,
    Variable,
)
from tektite.sql.walking import walk

if TYPE_CHECKING:
    from tektite.sql.bind.bound import Bound
    from tektite.sql.bind.query import Binder


@dataclass
class Reference:
    """A recursive name: a loop's variable while its definition is bound, its solution afterwards."""

    variable: Variable
    titles: list[str]
    fixpoint: Fixpoint | None = None

    def read(self, binder: Binder, node: exp.Expr) -> tuple[Node, list[str]]:
        """The relation, with columns of its own for each use."""
        pairs = zip(self.titles, self.variable.types, strict=True)
        names = tuple(binder.name(title, type) for title, type in pairs)
        if self.fixpoint is None:
            return Recall(self.variable, names), self.titles
        return Solution(self.fixpoint, self.variable, names), self.titles


@dataclass
class Member:
    """One of the names that are defined together."""

    name: str
    cte: exp.CTE
    base: list[exp.Expr] = field(default_factory=list)
    steps: list[exp.Expr] = field(default_factory=list)
    every: bool = False
    bound: list[Node] = field(default_factory=list)


def bind(binder: Binder, node: exp.With, scope: NameScope | None) -> None:
    """Define the names of a WITH RECURSIVE."""
    ctes = {folded(cte.args["alias"].this): cte for cte in node.expressions}
    mentions = {name: mentioned(cte.this, ctes) for name, cte in ctes.items()}
    for group in components(mentions):
        (first, *_) = group
        if len(group) == 1 and first not in mentions[first]:
            binder.ctes[first] = binder.definition(ctes[first], scope)
        else:
            solve(binder, {name: ctes[name] for name in group}, scope)


def mentioned(tree: exp.Expr, names: dict[str, exp.CTE]) -> set[str]:
    """The names among `names` that a query reads."""
    return {folded(t.this) for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)} & names.keys()


def components(edges: dict[str, set[str]]) -> list[list[str]]:
    """The names in groups that depend on each other, each group after those it depends on."""
    reach = {name: set(found) for name, found in edges.items()}
    for middle in edges:
        for name in edges:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    groups: list[list[str]] = []
    done: set[str] = set()

    def place(name: str) -> None:
        if name in done:
            return
        group = [name] + [o for o in edges if o != name and o in reach[name] and name in reach[o]]
        done.update(group)
        for member in group:
            for other in edges[member]:
                place(other)
        groups.append([n for n in edges if n in group])

    for name in edges:
        place(name)
    return groups


def solve(binder: Binder, ctes: dict[str, exp.CTE], scope: NameScope | None) -> None:
    """Bind a group of names that are defined by themselves and each other."""
    members = [split(binder, name, cte, ctes) for name, cte in ctes.items()]
    references = {member.name: begin(binder, member, scope) for member in members if member.base}
    binder.ctes |= references
    waiting = [member for member in members if not member.base]
    while waiting:
        known = ((m, step) for m in waiting for step in m.steps if mentioned(step, ctes) <= references.keys())
        member, step = next(known, (None, None))
        if member is None or step is None:
            names = ", ".join(m.name for m in waiting)
            raise binder.unsupported(f"a recursive definition without a part to begin with ({names})", waiting[0].cte)
        waiting.remove(member)
        references[member.name] = binder.ctes[member.name] = reference_to(binder, member, [binder.query(step, scope)])
    definitions = tuple(define(binder, member, references, scope) for member in members)
    fixpoint = Fixpoint(tuple(references[m.name].variable for m in members), definitions)
    for reference in references.values():
        reference.fixpoint = fixpoint


def split(binder: Binder, name: str, cte: exp.CTE, group: dict[str, exp.CTE]) -> Member:
    """The base parts and the recursive parts of a definition."""
    member = Member(name, cte)
    tree = cte.this
    kinds = set()
    parts: list[exp.Expr] = []
    while isinstance(tree, exp.Union):
        if any(tree.args.get(clause) for clause in ("order", "limit", "offset", "with_")):
            raise binder.unsupported("ORDER BY, LIMIT or WITH in a recursive query", tree)
        kinds.add(tree.args.get("distinct") is False)
        parts.append(tree.expression)
        tree = tree.this
    parts.append(tree)
    if len(kinds) > 1:
        raise binder.unsupported("UNION beside UNION ALL in a recursive query", cte)
    member.every = kinds == {True}
    for part in reversed(parts):
        (member.steps if mentioned(part, group) else member.base).append(part)
    return member


def begin(binder: Binder, member: Member, scope: NameScope | None) -> Reference:
    """Bind the base parts, which determine the columns and types."""
    return reference_to(binder, member, [binder.query(part, scope) for part in member.base])


def reference_to(binder: Binder, member: Member, bounds: list[Bound]) -> Reference:
    """A name with the columns and types of some of its parts. Binds the base parts."""
    parts = binder.unify([bound.visible() for bound in bounds], member.cte)
    aliases = [folded(c) for c in member.cte.args["alias"].columns]
    titles = binder.aliased(bounds[0].titles, aliases, member.cte)
    member.bound = parts if member.base else []
    return Reference(Variable(member.name, tuple(parts[0].columns.values())), titles)


def define(binder: Binder, member: Member, references: dict[str, Reference], scope: NameScope | None) -> Node:
    """The whole definition: the union of the base parts and the recursive parts."""
    variable = references[member.name].variable
    parts = list(member.bound)
    for step in member.steps:
        plan = binder.query(step, scope).visible()
        unified = binder.unify([*parts[:1], plan], step)[-1]
        if tuple(unified.columns.values()) != variable.types:
            found = ", ".join(map(str, plan.columns.values()))
            wanted = ", ".join(map(str, variable.types))
            message = (
                f"{member.name!r} begins with columns of types {wanted}, but its recursive part gives {found}: cast"
            )
            raise binder.source.error(message, step)
        check_linear(binder, member, {known.variable for known in references.values()}, plan, step)
        parts.append(unified)
    names = tuple(
        binder.name(title, type) for title, type in zip(references[member.name].titles, variable.types, strict=True)
    )
    union = Union(tuple(parts), names)
    if member.every:
        return union
    return first_found(binder, variable, union) if any(map(is_shown_apart, variable.types)) else Distinct(union)


def first_found(binder: Binder, variable: Variable, found: Node) -> Node:
    """Each row once, where equal rows may differ, such as `1 month` and `30 days`: the one of the earliest round, and of these
    the least. What a step makes of a row that was replaced by an equal one could be another equal one, and so on for ever.
    """

    def names() -> tuple[str, ...]:
        return tuple(binder.name(title, type) for title, type in found.columns.items())

    known = Recall(variable, names())
    same = [col(new).is_same(col(old)) for new, old in zip(found.columns, known.names, strict=True)]
    new = each_once(binder, Join(found, known, "anti", conjunction(same)))
    return Union((Recall(variable, names()), new), names())


def check_linear(binder: Binder, member: Member, own: set[Variable], plan: Node, tree: exp.Expr) -> None:
    """Refuse recursion through operators that are not monotone, and recursion that would count rows differently from SQL. A
    query inside may have recursion of its own.
    """

    def recalls(node: Node) -> int:
        return sum(isinstance(found, Recall) and found.variable in own for found in walk(node))

    def visit(node: Node) -> None:
        if not recalls(node) or isinstance(node, Recall):
            return
        allowed = isinstance(node, Filter | Project | Union) or (isinstance(node, Distinct) and not member.every)
        if isinstance(node, Join):
            allowed = node.kind == "inner" or (node.kind in ("left", "semi", "anti") and not recalls(node.right))
        if isinstance(node, Apply):
            allowed = not recalls(node.right)
        if not allowed:
            what = "a subquery" if isinstance(node, Apply) else type(node).__name__.upper()
            raise binder.unsupported(f"recursion of {member.name!r} through {what}", tree)
        for given in node.inputs:
            visit(given)

    visit(plan)
    if member.every and recalls(plan) != 1:
        raise binder.unsupported(f"UNION ALL with {recalls(plan)} recursive references in one part", tree)
