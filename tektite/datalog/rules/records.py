"""Records and tagged values in rules: what builds them and what takes them apart becomes a function of texts.

`p([x, y])` in a body takes apart what `p` holds: it becomes `p(r), r != nil, x = first field of r, y = second field of r`. In a
head, in a negation and in a computed term a record is built. `r = [x, y]` takes `r` apart where something else binds `r`, and
builds it otherwise.

What the fields are follows from declarations: those of the predicates that hold the record, or of a structure that has a
field for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tektite.datalog.rules.safety import bound_by
from tektite.datalog.syntax import ir, statements
from tektite.errors import IncorrectError
from tektite.expr.literals import literal_word, show_word
from tektite.expr.record_text import NIL, quoted
from tektite.values.types import Float

Structures = Mapping[str, statements.Structure]
ColumnStructures = Mapping[str, Sequence[str | None]]


def without_records(text: statements.Text, columns: ColumnStructures, structures: Structures) -> statements.Text:
    """A text whose rules have functions of texts for records. `columns` names the structures of predicates' columns."""
    if not any(map(has_record, text.rules)):
        return text
    return replace(text, rules=tuple(RecordRewriter(rule, columns, structures).rewritten() for rule in text.rules))


def has_record(value: object) -> bool:
    """Whether a rule, a literal or a term has a record in it."""
    if isinstance(value, ir.Construct):
        return True
    if isinstance(value, tuple):
        return any(map(has_record, value))
    parts = ("terms", "body", "atom", "left", "right", "test", "args", "of", "branches")
    return any(has_record(getattr(value, part)) for part in parts if hasattr(value, part))


def constant(term: ir.Construct) -> ir.Constant | None:
    """A record of constants as the text that it is; None if it has variables. Whole numbers stay whole numbers.

    >>> print(constant(ir.Construct("A", (ir.Constant(1), ir.Construct(None, None), ir.Constant("a")))).value)
    $A(1, nil, "a")
    """
    if term.args is None:
        return ir.Constant(NIL)
    shown = []
    for arg in term.args:
        if isinstance(arg, ir.Construct):
            inner = constant(arg)
            if inner is None:
                return None
            shown.append(str(inner.value))
        elif isinstance(arg, ir.Constant):
            shown.append(shown_constant(arg.value, "float" if isinstance(arg.value, float) else ""))
        else:
            return None
    return ir.Constant(written(term.tag, shown))


def shown_constant(value: ir.Value, kind: str) -> str:
    """A constant as it stands in a record."""
    if isinstance(value, str):
        return quoted(value)
    return show_word(literal_word(float(value), Float), Float) if kind == "float" else str(value)


def written(tag: str | None, fields: Sequence[str]) -> str:
    """The text of a record or of a tagged value."""
    inside = ", ".join(fields)
    return f"[{inside}]" if tag is None else f"${tag}({inside})" if fields else f"${tag}"


@dataclass
class RecordPattern:
    """A record that takes a variable's value apart, or builds it."""

    variable: ir.RuleVariable
    record: ir.Construct
    position: ir.TextPosition


class RecordRewriter:
    """Rewrites one rule."""

    def __init__(self, rule: ir.Rule, columns: ColumnStructures, structures: Structures) -> None:
        self.rule = rule
        self.columns = columns
        self.structures = structures
        self.known: dict[ir.RuleVariable, str] = {}
        self._made = 0

    def rewritten(self) -> ir.Rule:
        """The rule without records."""
        if not has_record(self.rule):
            return self.rule
        size = -1
        while size < len(self.known):
            size = len(self.known)
            self._learn_terms(self.rule.predicate, self.rule.terms)
            self._learn(self.rule.body)
        body = self._body(self.rule.body, ())
        kinds = self.columns.get(self.rule.predicate) or [None] * len(self.rule.terms)
        terms = [self._head(term, kind) for term, kind in zip(self.rule.terms, kinds, strict=False)]
        return replace(self.rule, terms=tuple(terms), body=body)

    def _head(self, term: ir.HeadTerm, kind: str | None) -> ir.HeadTerm:
        if isinstance(term, ir.HeadAggregate):
            return term if term.of is None else replace(term, of=self.built(term.of, kind))
        return self.built(term, kind)

    def fresh(self) -> ir.RuleVariable:
        """A variable that no text can name."""
        self._made += 1
        return ir.RuleVariable(f"record {self._made}")

    def wrong(self, problem: str) -> IncorrectError:
        return IncorrectError(f"{self.rule.where()}: {problem}")

    # ------------------------------------------------------------------ structures of variables

    def _learn_terms(self, predicate: str, terms: Iterable[ir.HeadTerm]) -> None:
        for term, kind in zip(terms, self.columns.get(predicate, ()), strict=False):
            self._learn_term(term, kind)

    def _learn_term(self, term: ir.HeadTerm, kind: str | None) -> None:
        if kind is None or kind not in self.structures:
            return
        if isinstance(term, ir.RuleVariable):
            self.known.setdefault(term, kind)
        elif isinstance(term, ir.Construct) and term.args is not None:
            fields = self.structures[kind].fields(term.tag)
            for arg, (_, field) in zip(term.args, fields or (), strict=False):
                self._learn_term(arg, field)

    def _learn(self, body: Iterable[ir.Literal]) -> None:
        for literal in body:
            match literal:
                case ir.Atom():
                    self._learn_terms(literal.predicate, literal.terms)
                case ir.Negation():
                    self._learn_terms(literal.atom.predicate, literal.atom.terms)
                case ir.Comparison():
                    for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                        self._learn_term(one, self.kind(other))
                case ir.Conjunction() | ir.Aggregation():
                    self._learn(literal.body)
                case ir.Disjunction():
                    for branch in literal.branches:
                        self._learn(branch)
                case _:
                    pass

    def kind(self, term: ir.Term) -> str | None:
        """The structure of a term, if it is known."""
        if isinstance(term, ir.RuleVariable):
            return self.known.get(term)
        if isinstance(term, ir.Construct) and term.tag is not None:
            having = [s.name for s in self.structures.values() if s.fields(term.tag) is not None]
            return having[0] if len(having) == 1 else None
        return None

    def fields(self, term: ir.Construct, kind: str | None) -> tuple[tuple[str, str], ...]:
        """The fields of a record or of a tagged value, which must have as many arguments."""
        kind = kind or self.kind(term)
        assert term.args is not None
        if kind is None:
            raise self.wrong(
                f"what the fields of {term} are does not follow from the rule: declare the predicate that holds it with the "
                "type of the record"
            )
        found = self.structures[kind].fields(term.tag)
        if found is None:
            shown = ", ".join(f"${tag}" if tag else "records" for tag, _ in self.structures[kind].tags)
            raise self.wrong(f"{term} is not of type {kind}, which has: {shown}")
        if len(found) != len(term.args):
            raise self.wrong(f"{term} has {len(term.args)} fields, and type {kind} has {len(found)} there")
        return found

    # ------------------------------------------------------------------ terms

    def built(self, term: ir.Term, kind: str | None) -> ir.Term:
        """A term that builds its records."""
        if isinstance(term, ir.Compute):
            return replace(term, args=tuple(self.built(arg, None) for arg in term.args))
        if not isinstance(term, ir.Construct):
            return term
        if term.args is None:
            return self.nil(kind)
        fields = self.fields(term, kind)
        args = [self.built(arg, field) for arg, (_, field) in zip(term.args, fields, strict=True)]
        if all(isinstance(arg, ir.Constant) for arg in args):
            shown = []
            for arg, (_, field) in zip(args, fields, strict=True):
                assert isinstance(arg, ir.Constant)
                nested = field in self.structures
                shown.append(str(arg.value) if nested else shown_constant(arg.value, field))
            return ir.Constant(written(term.tag, shown))
        shape = " ".join([term.tag or "", *(shape_of(field) for _, field in fields)])
        return ir.Compute("record", (ir.Constant(shape), *args))

    def nil(self, kind: str | None) -> ir.Constant:
        """The record without fields, where a record type is wanted."""
        if kind is None or kind not in self.structures or self.structures[kind].fields(None) is None:
            raise self.wrong(
                "nil is a record, and no declaration says that a record stands there: declare the column with a record type"
            )
        return ir.Constant(NIL)

    def taken_apart(self, pattern: RecordPattern) -> list[ir.Literal]:
        """The condition under which a variable matches a record, and the record's variables computed from it."""
        whole, record, place = pattern.variable, pattern.record, pattern.position
        if record.args is None:
            return [ir.Comparison("=", whole, self.nil(self.known.get(whole)), place)]
        fields = self.fields(record, self.known.get(whole))
        test: ir.Literal = ir.Comparison("!=", whole, ir.Constant(NIL), place)
        if record.tag is not None:
            test = ir.Condition(ir.Compute("is_branch", (whole, ir.Constant(record.tag))), place)
        found = [test]
        for at, (arg, (_, field)) in enumerate(zip(record.args, fields, strict=True)):
            if isinstance(arg, ir.RuleVariable) and arg.anonymous:
                continue
            part = ir.Compute("field", (whole, ir.Constant(at), ir.Constant(shape_of(field))))
            if isinstance(arg, ir.Construct):
                inner = self.fresh()
                self.known[inner] = field
                found.append(ir.Comparison("=", inner, part, place))
                found += self.taken_apart(RecordPattern(inner, arg, place))
            else:
                found.append(ir.Comparison("=", arg, part, place))
        return found

    # ------------------------------------------------------------------ bodies

    def _body(self, body: Sequence[ir.Literal], given: Iterable[ir.RuleVariable]) -> tuple[ir.Literal, ...]:
        """A body without records; `given` are the variables that the body around it binds."""
        found: list[ir.Literal] = []
        patterns: list[RecordPattern] = []
        for literal in flat(body):
            match literal:
                case ir.Atom():
                    atom, own = self._atom(literal)
                    found.append(atom)
                    patterns += own
                case ir.Comparison() if literal.op == "=" and has_record((literal.left, literal.right)):
                    patterns += self._equated(literal)
                case _:
                    found.append(literal)
        found = self._patterns(found, patterns, given)
        bound = bound_by(found, given)
        return tuple(self._nested(literal, bound) for literal in found)

    def _atom(self, atom: ir.Atom) -> tuple[ir.Atom, list[RecordPattern]]:
        """An atom with variables for its records, and the records."""
        kinds = self.columns.get(atom.predicate) or [None] * len(atom.terms)
        terms: list[ir.Term] = []
        patterns = []
        for term, kind in zip(atom.terms, kinds, strict=False):
            if isinstance(term, ir.Construct) and term.args is None:
                term = self.nil(kind)
            elif isinstance(term, ir.Construct):
                variable = self.fresh()
                if kind is not None:
                    self.known[variable] = kind
                patterns.append(RecordPattern(variable, term, atom.position))
                term = variable
            terms.append(term)
        return replace(atom, terms=tuple(terms)), patterns

    def _equated(self, literal: ir.Comparison) -> list[RecordPattern]:
        """An equation with a record, as patterns of a variable."""
        found = []
        variable = next((side for side in (literal.left, literal.right) if isinstance(side, ir.RuleVariable)), None)
        kind = self.kind(literal.left) or self.kind(literal.right)
        if variable is None:
            variable = self.fresh()
        if kind is not None:
            self.known.setdefault(variable, kind)
        for side in (literal.left, literal.right):
            if isinstance(side, ir.Construct):
                found.append(RecordPattern(variable, side, literal.position))
            elif side != variable:
                raise self.wrong(f"{literal}: a record is compared with a record or a variable")
        return found

    def _patterns(
        self, body: list[ir.Literal], patterns: list[RecordPattern], given: Iterable[ir.RuleVariable]
    ) -> list[ir.Literal]:
        """A body with the patterns that its variables match: what is bound is taken apart, the rest is built."""
        found = list(body)
        given = set(given)
        while patterns:
            bound = bound_by(found, given)
            ready = next((p for p in patterns if p.variable in bound), None)
            if ready is not None:
                found += self.taken_apart(ready)
            else:
                complete = (p for p in patterns if all(v in bound for v in ir.variables(p.record)))
                ready = next(complete, patterns[0])
                built = self.built(ready.record, self.known.get(ready.variable))
                found.append(ir.Comparison("=", ready.variable, built, ready.position))
            patterns.remove(ready)
        return found

    def _nested(self, literal: ir.Literal, bound: set[ir.RuleVariable]) -> ir.Literal:
        """A literal whose own bodies and terms have no records. What it builds has its values from the body around it."""
        match literal:
            case ir.Negation() if has_record(literal):
                kinds = self.columns.get(literal.atom.predicate) or [None] * len(literal.atom.terms)
                if any(v.anonymous or v not in bound for t in literal.atom.terms if isinstance(t, ir.Construct)
                       for v in ir.variables(t)):  # fmt: skip
                    return ir.Conjunction(self._body((literal.atom,), bound), None, literal.position)
                terms = [self.built(t, kind) for t, kind in zip(literal.atom.terms, kinds, strict=False)]
                return ir.Negation(replace(literal.atom, terms=tuple(terms)))
            case ir.Comparison():
                kind = self.kind(literal.left) or self.kind(literal.right)
                return replace(literal, left=self.built(literal.left, kind), right=self.built(literal.right, kind))
            case ir.Condition():
                test = self.built(literal.test, None)
                assert isinstance(test, ir.Compute)
                return replace(literal, test=test)
            case ir.Conjunction():
                return replace(literal, body=self._body(literal.body, bound))
            case ir.Aggregation():
                of = None if literal.of is None else self.built(literal.of, self.kind(literal.of))
                return replace(literal, of=of, body=self._body(literal.body, bound))
            case ir.Disjunction():
                return replace(literal, branches=tuple(self._body(branch, bound) for branch in literal.branches))
        return literal


def flat(body: Iterable[ir.Literal]) -> Iterable[ir.Literal]:
    """A body in which a choice of one stands as its literals."""
    for literal in body:
        if isinstance(literal, ir.Disjunction) and len(literal.branches) == 1 and literal.outer is None:
            yield from flat(literal.branches[0])
        else:
            yield literal


def shape_of(field: str) -> str:
    """The form of a field in a record: a number, a float, a quoted symbol, or a structure as it is."""
    return {"unsigned": "number", "number": "number", "float": "float", "symbol": "symbol"}.get(field, "structure")
