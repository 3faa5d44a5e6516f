"""Pull patterns: what attributes say of the entities of an answer, as nested dicts that stay up to date.

Each attribute of a pattern is a query of its own, over the entities that lead to it: pairs of an entity and a value, which
the engine keeps like any other answer. Reading puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tektite.datalog.evaluate.goals import Plan
from tektite.datalog.evaluate.rule_store import RuleStore, close_names
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.edn_queries import Find, PullPattern
from tektite.engine.core import core_of
from tektite.engine.view import View
from tektite.errors import IncorrectError, NotFoundError

ENTITY = "db/id"


@dataclass
class PulledAttribute:
    """One attribute of a pattern: the view of its pairs, whether an entity has one value, and the branches behind its values."""

    pattern: PullPattern
    view: View
    single: bool
    inner: list[PulledAttribute] = field(default_factory=list)
    with_id: bool = False


class Pull:
    """The pattern of one column of an answer. Its views belong to it."""

    def __init__(self, store: RuleStore, source: str, width: int, place: int, patterns: Sequence[PullPattern]) -> None:
        """`source` is the view of the answer, `width` how many columns it has, `place` the one that is pulled."""
        self.store = store
        self.place = place
        self.title = f"{source} pull {place + 1}"
        self._views: list[View] = []
        entity = ir.RuleVariable("entity")
        terms = tuple(entity if at == place else ir.RuleVariable(f"_ {at}") for at in range(width))
        try:
            self.with_id, self.branches = self._branches(patterns, (ir.Atom(source, terms),), entity)
        except BaseException:
            self.drop()
            raise

    def _branches(
        self, patterns: Sequence[PullPattern], body: tuple[ir.Literal, ...], entity: ir.RuleVariable
    ) -> tuple[bool, list[PulledAttribute]]:
        """The branches of a pattern, and whether it asks for the entity itself. `body` leads to the entity."""
        found: list[PulledAttribute] = []
        for pattern in self._spelled_out(patterns):
            if pattern.attribute == ENTITY:
                continue
            stored = self.store.stored(pattern.attribute)
            if stored is None:
                known = close_names(pattern.attribute, self.store.names())
                raise NotFoundError(f"{pattern.position}: there is no attribute :{pattern.attribute}: {known}")
            unary = len(stored.schema.names) == 1
            if unary and (pattern.inner or pattern.backwards):
                raise IncorrectError(f"{pattern.position}: attribute :{pattern.attribute} has no values to follow")
            value = ir.RuleVariable(f"value {len(self._views)}")
            pair = (entity,) if unary else (value, entity) if pattern.backwards else (entity, value)
            step: tuple[ir.Literal, ...] = (*body, ir.Atom(pattern.attribute, pair, pattern.position))
            shown: tuple[ir.Term, ...] = (entity, ir.HOLDS) if unary else (entity, value)
            view = self._installed(shown, step, pattern)
            single = unary or (not pattern.backwards and self._is_single(pattern.attribute))
            branch = PulledAttribute(pattern, view, single)
            if pattern.inner:
                branch.with_id, branch.inner = self._branches(pattern.inner, step, value)
            found.append(branch)
        return any(pattern.attribute == ENTITY for pattern in patterns), found

    def _spelled_out(self, patterns: Sequence[PullPattern]) -> list[PullPattern]:
        """A pattern with all attributes in place of `*`."""
        named = {pattern.attribute for pattern in patterns if not pattern.backwards}
        found: list[PullPattern] = []
        for pattern in patterns:
            if pattern.attribute != "*":
                found.append(pattern)
                continue
            found += [
                PullPattern(name, position=pattern.position) for name in self.store.attributes() if name not in named
            ]
        return found

    def _is_single(self, attribute: str) -> bool:
        """Whether an entity has one value of an attribute."""
        tables = self.store.engine.tables
        return attribute in tables and core_of(self.store.engine.table(attribute)).semantics == "upsert"

    def _installed(self, terms: tuple[ir.Term, ...], body: tuple[ir.Literal, ...], pattern: PullPattern) -> View:
        title = f"{self.title} {pattern.key} {len(self._views) + 1}"
        find = Find(terms, ("e", "v"), (), (), body, pattern.position)
        plan = Plan(self.store, title, find, as_set=True, strategy="full")
        view = self.store.engine.install(title, plan.collection({}, {}))
        self._views.append(view)
        return view

    def read(self) -> Callable[[Any], dict[str, Any]]:
        """The pattern's map of an entity, as of the closed epoch."""
        tree = [self._read(branch) for branch in self.branches]
        return lambda entity: shown(entity, tree, self.with_id)

    def _read(self, branch: PulledAttribute) -> AttributeValues:
        values: dict[Any, list[Any]] = {}
        for entity, value in sorted(branch.view.rows()):
            values.setdefault(entity, []).append(value)
        return AttributeValues(
            branch.pattern.key, values, branch.single, [self._read(b) for b in branch.inner], branch.with_id
        )

    def drop(self) -> None:
        """Stop maintaining the views."""
        for view in reversed(self._views):
            view.drop()
        self._views = []


@dataclass
class AttributeValues:
    """The values of one attribute for all entities at one time."""

    key: str
    values: dict[Any, list[Any]]
    single: bool
    inner: list[AttributeValues]
    with_id: bool


def shown(entity: Any, nodes: Sequence[AttributeValues], with_id: bool) -> dict[str, Any]:
    """The map of some attributes of an entity. An attribute without a value is left out."""
    found: dict[str, Any] = {f":{ENTITY}": entity} if with_id else {}
    for node in nodes:
        values = node.values.get(entity)
        if values is None:
            continue
        if node.inner or node.with_id:
            values = [shown(value, node.inner, node.with_id) for value in values]
        found[node.key] = values[0] if node.single else values
    return found
