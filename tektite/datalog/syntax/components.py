"""Components: `.comp` and `.init` replaced by the statements of each instance, before anything else looks at a program.

The relation `r` of the instance `g` is called `g.r`. A name within a component means, in this order: a parameter of the
component, what the component or one of its bases declares, what the instance around it declares, what the program declares.

A component has the statements of its bases, then its own. `.override r` leaves out the rules that its bases have for `r`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lark import Token, Tree

from tektite.datalog.syntax.declared_types import STATEMENTS, Wrong

StatementTree = Tree[Any]
DEEPEST = 100
"""Instances within instances: a component that contains itself would never end."""


@dataclass(frozen=True)
class InstanceScope:
    """The scope of an instance: the full names of its own names, and those of the program and of instances around it."""

    prefix: str = ""
    relations: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    instances: Mapping[str, str] = field(default_factory=dict)
    components: Mapping[str, StatementTree] = field(default_factory=dict)
    depth: int = 0

    def relation(self, name: str) -> str:
        """The full name of a relation."""
        first, dot, rest = name.partition(".")
        return f"{self.instances.get(first, first)}.{rest}" if dot else self.relations.get(name, name)

    def type(self, name: str) -> str:
        """The full name of a type."""
        first, dot, rest = name.partition(".")
        return f"{self.instances.get(first, first)}.{rest}" if dot else self.types.get(name, name)


@dataclass(frozen=True)
class ComponentStatement:
    """A statement of a component, with what the component's parameters stand for."""

    statement: StatementTree
    given: Mapping[str, str]


def expanded(statements: Iterable[StatementTree], wrong: Wrong) -> list[StatementTree]:
    """The statements of a program without components.

    >>> from tektite.datalog.syntax.grammar import parse
    >>> text = ".comp C { .decl r(x: number) r(1). } .init a = C  p(x) :- a.r(x)."
    >>> [statement.data.value for statement in expanded(parse(text, "program", "start").children, ValueError)]
    ['declaration', 'clause', 'clause']
    """
    statements = list(statements)
    if not any(statement.data in ("component", "instance", "override") for statement in statements):
        return statements
    members = [ComponentStatement(statement, {}) for statement in statements]
    return list(Expander(wrong).statements(members, InstanceScope()))


class Expander:
    """Expands instances within instances."""

    def __init__(self, wrong: Wrong) -> None:
        self.wrong = wrong

    def statements(self, members: Sequence[ComponentStatement], scope: InstanceScope) -> Iterable[StatementTree]:
        """The statements of an instance, or of the program, with full names."""
        components = dict(scope.components)
        relations, types, instances = dict(scope.relations), dict(scope.types), dict(scope.instances)
        for member in members:
            statement = member.statement
            if statement.data == "component":
                components[str(statement.children[0].children[0])] = statement
            elif statement.data == "declaration":
                relations |= {name: scope.prefix + name for name in declared(statement)}
            elif statement.data in STATEMENTS:
                types[str(statement.children[0])] = scope.prefix + str(statement.children[0])
            elif statement.data == "instance":
                instances[str(statement.children[0])] = scope.prefix + str(statement.children[0])
        inner = InstanceScope(scope.prefix, relations, types, instances, components, scope.depth)
        for member in members:
            statement = member.statement
            mine = InstanceScope(scope.prefix, relations, {**types, **member.given}, instances, components, scope.depth)
            if statement.data == "instance":
                yield from self._instance(statement, mine, inner)
            elif statement.data == "override" and not scope.depth:
                raise self.wrong(statement, ".override belongs into a component")
            elif statement.data not in ("component", "override"):
                yield renamed(statement, mine)

    def _instance(self, statement: StatementTree, mine: InstanceScope, scope: InstanceScope) -> Iterable[StatementTree]:
        name, of = statement.children
        if scope.depth >= DEEPEST:
            raise self.wrong(
                statement, f"instances within instances, {DEEPEST} deep: component {of.children[0]} contains itself"
            )
        members = self._members(of, mine, ())
        prefix = f"{scope.prefix}{name}."
        around = InstanceScope(prefix, scope.relations, mine.types, scope.instances, scope.components, scope.depth + 1)
        yield from self.statements(members, around)

    def _members(self, of: Tree[Any], scope: InstanceScope, within: tuple[str, ...]) -> list[ComponentStatement]:
        """The statements of a component, those of its bases first."""
        name = scope.types.get(str(of.children[0]), str(of.children[0]))
        found = scope.components.get(name)
        if found is None:
            known = ", ".join(scope.components) or "none"
            raise self.wrong(of, f"there is no component {name!r}; there are: {known}")
        if name in within:
            raise self.wrong(of, f"component {name} is its own base: {' -> '.join((*within, name))}")
        head, *rest = found.children
        parameters, arguments = list(map(str, head.children[1:])), [scope.type(str(a)) for a in of.children[1:]]
        if len(parameters) != len(arguments):
            raise self.wrong(of, f"component {name} takes {len(parameters)} types, found {len(arguments)}")
        given = dict(zip(parameters, arguments, strict=True))
        inner = InstanceScope(
            scope.prefix, scope.relations, {**scope.types, **given}, scope.instances, scope.components
        )
        bases = [part for part in rest if part.data == "component_type"]
        own = [ComponentStatement(part, given) for part in rest if part.data != "component_type"]
        inherited = [member for base in bases for member in self._members(base, inner, (*within, name))]
        for member in own:
            if member.statement.data == "override":
                self._check_override(member.statement, inherited)
        overridden = {str(m.statement.children[0]) for m in own if m.statement.data == "override"}
        kept = [member for member in inherited if not overridden.intersection(heads(member.statement))]
        return kept + own

    def _check_override(self, statement: StatementTree, inherited: Sequence[ComponentStatement]) -> None:
        name = str(statement.children[0])
        for member in inherited:
            if member.statement.data == "declaration" and name in declared(member.statement):
                if "overridable" not in map(str, member.statement.children):
                    raise self.wrong(statement, f".override {name}: the base does not declare {name!r} as overridable")
                return
        raise self.wrong(statement, f".override {name}: no base of the component declares {name!r}")


def declared(statement: StatementTree) -> list[str]:
    """The relations that a declaration declares."""
    return [str(c) for c in statement.children if isinstance(c, Token) and c.type != "QUALIFIER"]


def heads(statement: StatementTree) -> list[str]:
    """The relations that a clause has rules for."""
    if statement.data != "clause":
        return []
    return [str(h.children[0]) for h in statement.children[0].children if isinstance(h, Tree) and h.data == "call"]


def renamed(tree: Tree[Any], scope: InstanceScope) -> Tree[Any]:
    """A tree with full names of relations and types."""
    children: list[Any] = [renamed(child, scope) if isinstance(child, Tree) else child for child in tree.children]

    def full(at: int, of: Callable[[str], str]) -> None:
        token = children[at]
        children[at] = Token.new_borrow_pos(token.type, of(str(token)), token)

    match tree.data:
        case "declaration":
            for at, child in enumerate(children):
                if isinstance(child, Token) and child.type != "QUALIFIER":
                    full(at, scope.relation)
        case "call" | "target_name":
            full(0, scope.relation)
        case "column":
            full(1, scope.type)
        case "type_alias" | "number_alias" | "symbol_alias":
            for at in range(len(children)):
                full(at, scope.type)
        case "record_type" | "tagged_type":
            full(0, scope.type)
        case _:
            pass
    return Tree(tree.data, children, tree.meta)
