"""From rules to collections: components in order, recursion as loops, every predicate a set.

A predicate that is not recursive is the union of its rules, each fact once. Predicates that are defined through each
other are the variables of one loop. A loop keeps one arrangement for each predicate, by the columns that the
recursive rules look it up by; what is fed back is what the rules say of it, before equal facts become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tektite.datalog.evaluate import spread
from tektite.datalog.evaluate.bodies import Body, names
from tektite.datalog.evaluate.heads import is_fact, located, output, plain, present, project
from tektite.datalog.evaluate.kept_rows import NEWNESS, Definitions, choose, columns_in_order, improve, improvements
from tektite.datalog.rules import expressions, strata
from tektite.datalog.rules.subsumption import candidates, subsumed
from tektite.datalog.rules.types import Inference, column_names
from tektite.datalog.rules.unfold import unfold, unfoldable
from tektite.datalog.rules.unify import unify
from tektite.datalog.syntax import ir
from tektite.engine.constants import constants
from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.plan.unique import unique_columns
from tektite.query.aggregates import ColumnAggregate
from tektite.query.collection import ROUND_LIMIT, Collection
from tektite.query.loops import Loop
from tektite.values.schema import Schema
from tektite.values.types import Int

ENDLESS = 1 << 62
"""The round limit of a recursion without arithmetic. It makes no new values, so it always ends."""
ADVICE = (
    "its rules make values that were not there before: bound them, as in n < 1000, or give the program a larger max_rounds= "
    "(--max-rounds on the command line)"
)


class Evaluation:
    """Collections for predicates, made once each, on demand."""

    def __init__(
        self,
        engine: Any,
        definitions: Definitions,
        inference: Inference,
        base: Callable[[str], Collection | None],
        rounds: Callable[[str], int] = lambda predicate: ROUND_LIMIT,
        derive: Callable[[str, Collection, bool], Collection] | None = None,
        joins: Callable[[str], str] = lambda predicate: "auto",
    ) -> None:
        """`base` gives what is stored under a predicate's name. `derive` may replace a finished predicate's collection, by
        one that is shared for example; it is told whether the predicate is recursive. `rounds` is how many rounds the
        recursion of a predicate may take, and `joins` how its rules are joined.
        """
        self.joins = joins
        self.engine = engine
        self.definitions = definitions
        self.inference = inference
        self.base = base
        self.rounds = rounds
        self.derive = derive
        self.collections: dict[str, Collection] = {}
        self.unfolded: dict[str, ir.Rule] = {}
        self._inside: dict[str, Collection] = {}

    def build(self, roots: Sequence[str]) -> None:
        """Make the collections of some predicates and of all they depend on."""
        rules = self.definitions.rules
        for component in strata.components(rules, roots):
            if all([predicate in self.collections for predicate in component]):
                continue
            improved = improvements(self.definitions, component)
            strata.check(rules, component, improved)
            if strata.is_recursive(rules, component) or any(self.choices(name) for name in component):
                self._recursive(component, improved)
            else:
                self._plain(component[0])

    def schema(self, predicate: str) -> Schema:
        """Names and types of a predicate's columns."""
        types = self.inference.types(predicate)
        declared = self.definitions.declarations.get(predicate)
        chosen = column_names(predicate, len(types), declared, self.definitions.rules.get(predicate, ()))
        return Schema(dict(zip(chosen, types, strict=True)))

    def choices(self, predicate: str) -> tuple[tuple[str, ...], ...]:
        """The groups of columns on which no two facts of a predicate agree, because one of them is chosen."""
        declared = self.definitions.declarations.get(predicate)
        return declared.choices if declared is not None and predicate in self.definitions.rules else ()

    def relation(self, predicate: str) -> Collection:
        """The collection that rules read for a predicate: inside its loop, the loop's own."""
        found = self._inside.get(predicate)
        return self.collections[predicate] if found is None else found

    def unit(self) -> Collection:
        """One row."""
        return self._rows(Schema(unit=Int), [(0,)])

    def _constants(self, literals: Mapping[str, Expr]) -> Collection:
        """One row of literals."""
        columns = {name: (literal.params[0], literal.params[1]) for name, literal in literals.items()}
        return self._rows(Schema({name: type for name, (type, _) in columns.items()}),
                          [tuple(value for _, value in columns.values())])  # fmt: skip

    def _rows(self, schema: Schema, rows: Sequence[tuple[Any, ...]]) -> Collection:
        return constants(self.engine, schema, rows, as_set=True)

    # ------------------------------------------------------------------ predicates

    def _plain(self, predicate: str) -> None:
        rules = self.definitions.rules.get(predicate, ())
        stored = self.base(predicate)
        if not rules:
            if stored is None:
                raise IncorrectError(f"predicate {predicate!r} has neither facts nor rules")
            self.collections[predicate] = stored
            return
        schema = self.schema(predicate)
        parts = self._parts(predicate, rules, schema)
        if stored is not None:
            columns = zip(schema.names, stored.schema.names, strict=True)
            parts.append(stored.select(**{name: col(column) for name, column in columns}))
        improvement = self.definitions.improvements.get(predicate)
        found = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        if improvement is not None:
            order = columns_in_order((), len(schema.names), improvement)
            found = improve(found, [schema.names[at] for at in order], improvement[1]).select(*schema.names)
        elif stored is not None or not self.is_set(rules):
            found = found.distinct()
        elif len(rules) == 1 and unfoldable(rules[0]):
            self.unfolded[predicate] = rules[0]
        self._finish(predicate, found, False)

    def _finish(self, predicate: str, found: Collection, recursive: bool) -> None:
        derived = found if self.derive is None else self.derive(predicate, found, recursive)
        if derived is not found:
            self.unfolded.pop(predicate, None)
        self.collections[predicate] = derived

    def _parts(self, predicate: str, rules: Sequence[ir.Rule], schema: Schema) -> list[Collection]:
        """The facts among the rules as one collection, and a collection for each other rule."""
        facts = [rule for rule in rules if is_fact(rule)]
        parts: list[Collection] = []
        if facts:
            rows = [tuple(plain(term, t) for term, t in zip(f.terms, schema.types, strict=True)) for f in facts]
            parts.append(self._rows(schema, rows))
        return parts + [self.rule(rule, schema) for rule in rules if not is_fact(rule)]

    def is_set(self, rules: Sequence[ir.Rule]) -> bool:
        """Whether the rules derive no fact twice: a single rule that shows all its variables, an aggregate, or facts."""
        if all(is_fact(rule) for rule in rules):
            return True
        if len(rules) > 1:
            return False
        if rules[0].aggregates:
            return True
        rule = self._joined(rules[0])
        shown = {term for term in rule.terms if isinstance(term, ir.RuleVariable)}
        for literal in rule.body:
            if isinstance(literal, ir.Atom):
                stored = self._inside.get(literal.predicate) or self.collections[literal.predicate]
                if not is_distinct(stored) or not set(ir.literal_variables(literal)) <= shown:
                    return False
        return True

    def rule(self, rule: ir.Rule, schema: Schema, plainly: bool = False) -> Collection:
        """The facts of one rule, in the predicate's columns. With `plainly`, an aggregate is replaced by its operand."""
        try:
            if rule.aggregates and not plainly:
                return self.aggregated([rule], schema, as_sets=True)
            rule = self._joined(rule)
            types = self.inference.variables(rule)
            shown = [term.of if isinstance(term, ir.HeadAggregate) else term for term in rule.terms]
            wanted = sorted(names(v for term in shown for v in ir.variables(term)))
            constants = None if self._inside else self._constants
            joins = self.joins(rule.predicate)
            bindings = Body(rule, types, self.relation, self.unit, self._inside, constants, joins).bindings(wanted)
            outputs = {name: output(term, type, types)
                       for name, term, type in zip(schema.names, shown, schema.types, strict=True)}  # fmt: skip
            return present(project(bindings, outputs), schema, shown)
        except IncorrectError as error:
            raise located(error, rule) from None

    def _joined(self, rule: ir.Rule, keep_head: bool = False) -> ir.Rule:
        """The rule to join: stateless predicates are unfolded, and equal variables are merged."""
        rule = unfold(rule, self.unfolded)
        return unify(rule, self.inference.variables(rule), keep_head)

    def aggregated(self, rules: Sequence[ir.Rule], schema: Schema, as_sets: bool) -> Collection:
        """The groups of the bindings of rules with one head, by its plain terms, aggregated. With `as_sets`, bags count as
        sets.
        """
        relation = (lambda name: as_set(self.relation(name))) if as_sets else self.relation
        rules = [self._joined(rule, keep_head=True) for rule in rules]
        head = rules[0]
        types = self.inference.variables(head)
        wanted = sorted(names(v for term in head.terms for v in ir.variables(term)))
        each = [
            Body(
                rule,
                self.inference.variables(rule),
                relation,
                self.unit,
                (),
                self._constants,
                self.joins(rule.predicate),
            ).bindings(wanted)
            for rule in rules
        ]
        bindings = each[0].concat(*each[1:]) if len(each) > 1 else each[0]
        outputs: dict[str, Expr] = {}
        taken: dict[str, ColumnAggregate] = {}
        spreads: dict[str, tuple[str, str]] = {}
        keys: list[str] = []
        for name, term, type in zip(schema.names, head.terms, schema.types, strict=True):
            if not isinstance(term, ir.HeadAggregate):
                outputs[name] = output(term, type, types)
                keys.append(name)
            elif term.kind == "count" or term.of is None:
                taken[name] = ColumnAggregate("count")
            elif term.kind in spread.KINDS:
                outputs[f"of {name}"] = expressions.expression(term.of, types)
                spreads[name] = (term.kind, f"of {name}")
            else:
                outputs[f"of {name}"] = expressions.expression(term.of, types)
                kind = term.kind.replace("-", "_")
                taken[name] = ColumnAggregate(kind, f"of {name}")
        if not outputs:
            outputs["all"] = col(bindings.schema.names[0])
        grouped = project(bindings, outputs)
        shown = [term.of if isinstance(term, ir.HeadAggregate) else term for term in head.terms]
        for name, operand in zip(schema.names, shown, strict=True):
            if expressions.may_fail(operand):
                column = name if name in outputs else f"of {name}"
                grouped = grouped.filter(col(column).is_not_null())
        return spread.grouped(grouped, keys, taken, spreads).select(*schema.names)

    # ------------------------------------------------------------------ recursion

    def _recursive(self, component: tuple[str, ...], improved: Mapping[str, tuple[int, str]]) -> None:
        first, further = self._divided(component)
        recursive = [rule for found in further.values() for rule in found]
        limit = max(map(self.rounds, component)) if any(map(grows, recursive)) else ENDLESS
        begun = {
            predicate: self._begun(predicate, first[predicate], improved.get(predicate)) for predicate in component
        }
        kept: dict[str, Collection] = {}
        chosen: dict[str, Collection] = {}
        reduced = {p: (candidates(p), subsumed(p)) for p in component if subsumed(p) in component}
        computed = {name for p, (_, gone) in reduced.items() for name in (p, gone)}
        with Loop(", ".join(component), limit, shared=True, advice=ADVICE) as loop:
            variables = {}
            for predicate in component:
                if predicate in computed:
                    continue
                schema = self.schema(predicate)
                lead = looked_up_by(predicate, recursive)
                order = columns_in_order(lead, len(schema.names), improved.get(predicate))
                columns = schema.select(*(schema.names[at] for at in order))
                if self.choices(predicate):
                    columns = Schema({**dict(zip(columns.names, columns.types, strict=True)), NEWNESS: Int})
                variable = variables[predicate] = loop.variable(predicate, schema=columns)
                parts = [
                    part.with_columns(**{NEWNESS: 1}) if NEWNESS in columns.names else part for part in begun[predicate]
                ]
                every = variable.concat(*(part.select(*columns.names) for part in parts))
                if predicate in improved:
                    kept[predicate] = improve(every, columns.names, improved[predicate][1])
                elif self.choices(predicate):
                    chosen[predicate] = choose(every, self.choices(predicate))
                    kept[predicate] = chosen[predicate].select(*columns.names[:-1])
                else:
                    kept[predicate] = every.index_by([schema.names[at] for at in lead], title=predicate).distinct()
                self._inside[predicate] = kept[predicate].select(*schema.names)
            for predicate, (given, gone) in reduced.items():
                kept |= self._reduced(predicate, given, gone)
            for predicate in variables:
                schema = self.schema(predicate)
                said = [self.rule(rule, schema, plainly=predicate in improved) for rule in further[predicate]]
                said = [part.select(*kept[predicate].schema.names) for part in said]
                if predicate in chosen:
                    said = [part.with_columns(**{NEWNESS: 1}) for part in said]
                    said.append(kept[predicate].with_columns(**{NEWNESS: 0}))
                for other, (given, _) in reduced.items():
                    if given == predicate:
                        said.append(renamed(self._inside[other], schema).select(*kept[predicate].schema.names))
                variables[predicate].set(said[0].concat(*said[1:]) if len(said) > 1 else said[0])
            left = {predicate: loop.leave(kept[predicate], predicate) for predicate in component}
        self._inside.clear()
        for predicate in component:
            self._finish(predicate, left[predicate].select(*self.schema(predicate).names), True)

    def _reduced(self, predicate: str, given: str, gone: str) -> dict[str, Collection]:
        """A predicate with subsumptions, within its loop: the candidates of the round, but for those that others subsume."""
        schema = self.schema(predicate)
        removed = [self.rule(rule, self.schema(gone)) for rule in self.definitions.rules[gone]]
        self._inside[gone] = (removed[0].concat(*removed[1:]) if len(removed) > 1 else removed[0]).distinct()
        everything = renamed(self._inside[given], schema)
        stays = everything.join(renamed(self._inside[gone], schema), on=list(schema.names), how="anti")
        self._inside[predicate] = stays
        return {predicate: stays, gone: self._inside[gone]}

    def _divided(self, component: tuple[str, ...]) -> tuple[dict[str, list[ir.Rule]], dict[str, list[ir.Rule]]]:
        """Each predicate's rules that do not read the component, and those that do."""
        first: dict[str, list[ir.Rule]] = {predicate: [] for predicate in component}
        further: dict[str, list[ir.Rule]] = {predicate: [] for predicate in component}
        for predicate in component:
            for rule in self.definitions.rules[predicate]:
                within = any(other in component for other, _ in strata.dependencies(rule))
                (further if within else first)[predicate].append(rule)
        return first, further

    def _begun(self, predicate: str, rules: Sequence[ir.Rule], improvement: tuple[int, str] | None) -> list[Collection]:
        """The collections that a predicate of a loop begins with: facts, rules from outside, and rows stored under its name. A
        rule whose aggregate is the one that the loop takes anyway need not take it.
        """
        schema = self.schema(predicate)
        facts = [rule for rule in rules if is_fact(rule)]
        stored = self.base(predicate)
        parts = self._parts(predicate, facts, schema)
        for rule in rules:
            taken = [(at, term.kind) for at, term in enumerate(rule.terms) if isinstance(term, ir.HeadAggregate)]
            if not is_fact(rule):
                parts.append(self.rule(rule, schema, plainly=taken == [improvement]))
        if stored is not None:
            columns = zip(schema.names, stored.schema.names, strict=True)
            parts.append(stored.select(**{name: col(column) for name, column in columns}))
        return parts


# ---------------------------------------------------------------------- helpers


def renamed(rows: Collection, schema: Schema) -> Collection:
    """Rows with the names of a schema for their columns, in their order."""
    return rows.select(**{new: col(old) for new, old in zip(schema.names, rows.schema.names, strict=True)})


def is_distinct(collection: Collection) -> bool:
    """Whether a collection is known to hold each row once."""
    return unique_columns(collection.operator) is not None


def as_set(collection: Collection) -> Collection:
    """A collection with each row once."""
    return collection if is_distinct(collection) else collection.distinct()


def grows(rule: ir.Rule) -> bool:
    """Whether a rule may make new values."""
    computed = [
        term for literal in rule.body if isinstance(literal, ir.Comparison) for term in (literal.left, literal.right)
    ]
    return any(isinstance(term, ir.Compute | ir.HeadAggregate) for term in (*rule.terms, *computed))


def looked_up_by(predicate: str, rules: Sequence[ir.Rule]) -> tuple[int, ...]:
    """The columns by which the first recursive rule that joins a predicate looks it up."""
    for rule in rules:
        atoms = [literal for literal in rule.body if isinstance(literal, ir.Atom)]
        for atom in atoms:
            if atom.predicate != predicate:
                continue
            best: tuple[int, ...] = ()
            for other in atoms:
                if other is not atom:
                    shared = [v for v in ir.named(ir.literal_variables(other)) if v in atom.terms]
                    columns = tuple(atom.terms.index(v) for v in shared)
                    best = columns if len(columns) > len(best) else best
            if best:
                return best
    return (0,)
