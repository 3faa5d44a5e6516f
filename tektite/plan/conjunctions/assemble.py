"""Makes nodes of planned pipelines: arrangements to read, layouts of rows, actions and the steps between them.

Rows that wait for an action begin with the columns of its key. After these come the variables that later actions need. So each
part is assembled from its end: the next action says which columns it wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tektite.dataflow import pipeline_actions
from tektite.dataflow.graph import LinearStep as GraphStep
from tektite.dataflow.linear import NegateStep, ProgramStep, SelectStep
from tektite.dataflow.pipelines import PipelinesNode, PipelineSource
from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Clause, ColumnNumbers, Match
from tektite.plan.conjunctions.pipelines import Access, Extend, Fetch, Pipeline, PipelineStep, Subtract
from tektite.plan.names import free_name
from tektite.plan.stream import Stream
from tektite.values.schema import Schema
from tektite.values.types import Int, Type

if TYPE_CHECKING:
    from tektite.dataflow.arrange import Arranged
    from tektite.plan.render import Renderer


@dataclass(frozen=True)
class ConstantWord:
    """A column with the same word in every row."""

    word: int


LayoutTerm = str | ConstantWord
Layout = tuple[LayoutTerm, ...]
ChainEntry = tuple[pipeline_actions.Action | None, Layout]
"""The next action and the columns that it wants. At the end of a pipeline: None, and the columns of the result."""


def accesses(pipelines: Sequence[Pipeline]) -> list[Access]:
    """Every arrangement that the pipelines read, once. Those by more columns come first, because they can replace others."""
    found: dict[Access, None] = {}
    for step in (step for pipeline in pipelines for step in pipeline.steps):
        match step.action:
            case Fetch(access) | Subtract(access):
                found[access] = None
            case Extend(_, extenders):
                found |= dict.fromkeys(extenders)
    return sorted(found, key=lambda access: -len(access.columns))


def begins(access: Access, other: Access) -> bool:
    """Whether the columns of an access begin with the key of another access."""
    return access.relation == other.relation and access.columns[: len(other.columns)] == other.columns


class Assembly:
    """Assembles the pipelines of one conjunction."""

    def __init__(
        self,
        renderer: Renderer,
        match: Match,
        relations: Sequence[Clause],
        plans: Sequence[Pipeline],
        constants: Mapping[str, Expr],
    ) -> None:
        """`constants` are columns of the result that no clause binds."""
        self.match = match
        self.relations = relations
        self.renderer = renderer
        self.dictionary = renderer.dictionary
        self.terms = [
            tuple(ConstantWord(self._word(t)) if isinstance(t, Expr) else t for t in r.terms) for r in relations
        ]
        self.result: Layout = tuple(
            ConstantWord(self._word(constants[name])) if name in constants else name for name in match.schema.names
        )
        scope = renderer.scope(match)
        self.arranged: dict[Access, Arranged] = {}
        wanted = accesses(plans)
        for access in wanted:
            operator = relations[access.relation].operator
            # What is read without a key is read in all shards, whatever columns decide them.
            key = access.key or len(access.columns)
            if access.key and not renderer.has_arrangement(operator, access.columns, key):
                # Sharded by fewer columns, it serves look-ups by fewer too.
                key = min(other.key for other in wanted if other.key and begins(access, other))
            self.arranged[access] = renderer.arranged(operator, access.columns, None, key)
            renderer.pass_in(self.arranged[access].scope, scope)
        negated = len(match.without)
        self.node = PipelinesNode(scope, renderer.shards, len(match.schema.names), len(relations), negated, "match")
        self.results: set[ColumnNumbers | None] = set()
        for plan in plans:
            self._pipeline(plan)

    def stream(self) -> Stream:
        """The changes of the result."""
        placed = self.results.pop() if len(self.results) == 1 else None
        return Stream(self.node.scope, [(self.node.port, (), 0)], placed)

    # ------------------------------------------------------------------ one pipeline

    def _pipeline(self, plan: Pipeline) -> None:
        self.source = plan.source
        self.keys: dict[pipeline_actions.Action, Layout] = {}
        self.lookups: list[pipeline_actions.KeyLookup] = []
        entry: ChainEntry = (None, self.result)
        for step in reversed(plan.steps):
            entry = self._step(step, entry)
        target = entry[0]
        arranged = self._choose_source(plan.source, entry)
        steps = self._first_steps(plan, arranged, entry)
        self.node.sources.append(PipelineSource(self.node, arranged, plan.source, steps, target, self.lookups))
        self._settle(target, self._order(plan.source, arranged, arranged.sharded_by))
        if isinstance(target, pipeline_actions.FetchAction | pipeline_actions.SubtractAction) and target.lookup.settled:
            target.lookup.sorted = self._order(plan.source, arranged, target.lookup.key) == self.keys[target]

    def _settle(self, action: pipeline_actions.Action | None, placed: Layout | None) -> None:
        """Follow rows through the actions to see where they are in the shard that an action reads already. `placed` is what
        decides the shard of the rows at first.
        """
        while action is not None:
            if not isinstance(action, pipeline_actions.IntersectAction):
                place = self.keys[action][: len(action.lookup.route)]
                action.lookup.settled |= placed == place
                placed = place
            action = action.branch.target
        if placed is not None and all(term in self.result for term in placed):
            self.results.add(tuple(self.result.index(term) for term in placed))
        else:
            self.results.add(None)

    def _first_steps(self, plan: Pipeline, arranged: Arranged, entry: ChainEntry) -> list[GraphStep]:
        """The steps from a relation's changes to the first layout, without rows that fail the relation's own conditions."""
        clause = self.relations[plan.source]
        names = [f"#{column}" for column in arranged.columns]
        types = {f"#{column}": type for column, type in enumerate(clause.operator.schema.types)}
        variables = {variable: f"#{columns[0]}" for variable, columns in clause.variables.items()}
        predicates = [col(f"#{column}") == constant for column, constant in clause.constants.items()]
        for first, *others in clause.variables.values():
            predicates += [col(f"#{first}") == col(f"#{other}") for other in others]
        columns = {variable: col(name) for variable, name in variables.items()}
        predicates += [predicate.substitute(columns) for predicate in plan.where]
        wanted = [variables[term] if isinstance(term, str) else term for term in entry[1]]
        steps = self._steps(names, types, predicates, wanted)
        if plan.source < len(self.match.without):
            steps.append(NegateStep())
        return steps

    def _choose_source(self, relation: int, entry: ChainEntry) -> Arranged:
        """The arrangement whose changes start the pipeline: one in the order of the first look-up, if there is one."""
        action, _ = entry
        found = [arranged for access, arranged in self.arranged.items() if access.relation == relation]
        key = self.keys[action] if action is not None else ()
        return next((a for a in found if self._order(relation, a, len(key)) == key), found[0])

    def _order(self, relation: int, arranged: Arranged, columns: int) -> Layout | None:
        """The terms of the leading columns of an arrangement; None if one of them has none."""
        terms = [self.terms[relation][column] for column in arranged.columns[:columns]]
        known = tuple(term for term in terms if term is not None)
        return known if len(known) == len(terms) else None

    # ------------------------------------------------------------------ steps

    def _step(self, step: PipelineStep, after: ChainEntry) -> ChainEntry:
        match step.action:
            case Fetch(access):
                return self._fetch(access, step.where, after)
            case Subtract(access):
                return self._subtract(access, step.where, after)
            case Extend():
                return self._extend(step.action, step.where, after)

    def _lookup(self, access: Access, wanted: Sequence[LayoutTerm]) -> tuple[pipeline_actions.KeyLookup, Layout]:
        """A look-up, and the layout of the rows it is for: its key, then the variables that are wanted."""
        terms = (self.terms[access.relation][column] for column in access.columns[: access.key])
        key = tuple(term for term in terms if term is not None)
        rest = tuple(v for v in dict.fromkeys(wanted) if v not in key)
        layout: Layout = (*key, *rest)
        lookup = self.node.lookup(self.arranged[access], self.source, access.relation, access.key, len(layout))
        self.lookups.append(lookup)
        return lookup, layout

    def _entry(self, action: pipeline_actions.Action, layout: Layout) -> ChainEntry:
        self.keys[action] = layout[: action.lookup.key]
        return action, layout

    def _connect(
        self, action: pipeline_actions.Action, produced: Sequence[LayoutTerm], where: Sequence[Expr], after: ChainEntry,
        types: dict[str, Type] | None = None,
    ) -> None:  # fmt: skip
        """Connect an action to the next one. `types` has the types of produced columns that are not variables."""
        steps = self._steps(produced, self.match.types | (types or {}), where, after[1])
        action.branch = pipeline_actions.Branch(steps, after[0])

    def _fetch(self, access: Access, where: Sequence[Expr], after: ChainEntry) -> ChainEntry:
        clause = self.relations[access.relation]
        new = {
            v: columns
            for v, columns in clause.variables.items()
            if not any(c in access.columns[: access.key] for c in columns)
        }
        wanted = variables_of(after[1], where)
        lookup, layout = self._lookup(access, [v for v in wanted if v not in new])
        places = {v: columns[0] for v, columns in new.items()}
        tested = {c: col(v) for v, columns in new.items() for c in columns[1:]}
        tested |= {c: literal for c, literal in clause.constants.items() if c not in access.columns[: access.key]}
        named = {c: free_name(f"column {c}", self.match.types) for c in tested}
        columns = {name: c for c, name in named.items()}
        compared = [name for expression in tested.values() for name in expression.columns()]
        produced = list(dict.fromkeys([*wanted, *compared, *columns]))
        places |= columns
        spec = [
            lookup.data + self.arranged[access].columns.index(places[name]) if name in places else layout.index(name)
            for name in produced
        ]
        action = pipeline_actions.FetchAction(lookup, spec)
        entry = self._entry(action, layout)
        equal = [col(named[c]) == expression for c, expression in tested.items()]
        types = {name: clause.operator.schema.types[c] for name, c in columns.items()}
        self._connect(action, produced, [*equal, *where], after, types)
        return entry

    def _subtract(self, access: Access, where: Sequence[Expr], after: ChainEntry) -> ChainEntry:
        lookup, layout = self._lookup(access, variables_of(after[1], where))
        action = pipeline_actions.SubtractAction(lookup)
        entry = self._entry(action, layout)
        self._connect(action, layout, where, after)
        return entry

    def _extend(self, extend: Extend, where: Sequence[Expr], after: ChainEntry) -> ChainEntry:
        """Extend rows by a variable, with all arrangements that have it."""
        variable = extend.variable
        wanted = [v for v in variables_of(after[1], where) if v != variable]
        keys = [
            tuple(self.terms[access.relation][column] for column in access.columns[: access.key])
            for access in extend.extenders
        ]
        carried = [*(term for key in keys for term in key if term is not None), *wanted]
        first, layout = self._lookup(extend.extenders[0], carried)
        extenders: list[pipeline_actions.Extender] = []
        for access, key in zip(extend.extenders, keys, strict=True):
            lookup = first
            if extenders:
                lookup = self.node.lookup(self.arranged[access], self.source, access.relation, access.key, first.data)
                self.lookups.append(lookup)
            columns = np.array([layout.index(term) for term in key if term is not None], np.int64)
            equal = len(self.relations[access.relation].variables[variable])
            completed = access.relation in extend.completed
            extenders.append(
                pipeline_actions.Extender(lookup, columns, equal, completed, not (access.key or completed))
            )
        spec = [layout.index(v) for v in wanted]
        action: pipeline_actions.Action
        if extend.is_of_two(self.relations):
            action = pipeline_actions.IntersectTwoAction(extenders, spec, extend.counted)
        else:
            action = pipeline_actions.IntersectAction(extenders, spec)
        entry = self._entry(action, layout)
        self._connect(action, wanted if extend.counted else [*wanted, variable], where, after)
        return entry

    # ------------------------------------------------------------------ linear steps

    def _steps(
        self,
        produced: Sequence[LayoutTerm],
        types: dict[str, Type],
        where: Sequence[Expr],
        wanted: Sequence[LayoutTerm],
    ) -> list[GraphStep]:
        """Filter rows with the columns `produced`, and bring them into the layout that is wanted."""
        steps: list[GraphStep] = []
        names = list(produced)
        if where:
            kept = [term for term in dict.fromkeys(wanted) if isinstance(term, str)]
            places = [free_name(f"place {at}", types) for at in range(len(names))]
            unnamed = {place: (at, Int) for at, place in enumerate(places)}
            outputs = [col(places[names.index(name)]) for name in kept]
            columns = {name: (at, types[name]) for at, name in enumerate(names) if isinstance(name, str)}
            program = self.renderer.program(outputs, conjunction(where), columns | unnamed)
            steps.append(ProgramStep(program, len(names)))
            names = [*kept]
        constants: list[int] = []
        columns_wanted = []
        for term in wanted:
            if isinstance(term, str):
                columns_wanted.append(names.index(term))
            else:
                constants.append(term.word)
                columns_wanted.append(-len(constants))
        if columns_wanted != list(range(len(names))):
            steps.append(SelectStep(columns_wanted, constants))
        return steps

    def _word(self, literal: Expr) -> int:
        """The word of a literal."""
        type, value = literal.params
        words = Schema({"literal": type}).encode([(value,)], self.dictionary)
        if type.interned:
            self.dictionary.pin(words)
            self.renderer.flow.constants += (words,)
        return int(words[0, 0])


def variables_of(layout: Sequence[LayoutTerm], where: Sequence[Expr]) -> list[str]:
    """The variables of a layout and of predicates, each once."""
    tested = [name for predicate in where for name in predicate.columns()]
    return list(dict.fromkeys([*(term for term in layout if isinstance(term, str)), *tested]))
