"""The thesis's EDN syntax: patterns `[?e :attribute ?v]`, rules `[(rule ?a ?b) ...]` and queries `[:find ... :where ...]`.

An attribute is a predicate of its name (without the colon) over entity and value, or over the entity alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tektite.datalog.syntax import ir
from tektite.datalog.syntax.edn import Form, Group, Keyword, Scalar, Symbol, read, show
from tektite.errors import IncorrectError, UnsupportedError
from tektite.values.types import Type

COMPARISONS = {"=": "=", "==": "=", "not=": "!=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
FUNCTIONS = {
    "+": "+", "-": "-", "*": "*", "/": "ratio", "quot": "/", "rem": "%", "mod": "floor-mod",
    "min": "min", "max": "max", "str": "cat", "count": "strlen", "subs": "subs",
}  # fmt: skip
SAME = ("identity", "ground")
TESTS = {"clojure.string/includes?": "includes", "includes?": "includes"}
COMBINATIONS = ("not", "not-join", "or", "or-join", "and")


@dataclass(frozen=True)
class Parameter:
    """One `:in` parameter: the variables it binds, and whether it takes one tuple of values or many."""

    name: str
    variables: tuple[ir.RuleVariable, ...]
    many: bool


@dataclass(frozen=True)
class Find:
    """A query: what to find, where, and the parameters."""

    terms: tuple[ir.HeadTerm, ...]
    names: tuple[str, ...]
    keep: tuple[ir.RuleVariable, ...]
    parameters: tuple[Parameter, ...]
    body: tuple[ir.Literal, ...]
    position: ir.Position
    types: tuple[Type, ...] | None = None
    """The types of what is found, where they do not follow from the query alone: a goal's are those of its relation."""


def is_edn(text: str) -> bool:
    """Whether a text is EDN rather than the textbook syntax: it begins with a bracket.

    >>> is_edn("; a rule\\n[(p ?x) [?x :q]]"), is_edn("p(x) :- q(x).")
    (True, False)
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith(";")), "")
    return first.startswith(("[", "(", "{"))


def parse_rules(text: str, source: str = "program") -> ir.Text:
    """The rules of a text: `[(head ?a) clause ...]`, one after the other or all in one vector.

    >>> print(*parse_rules("[(knows ?a ?b) [?a :person/knows ?x] (knows ?x ?b)]").rules)
    knows(a, b) :- person/knows(a, x), knows(x, b).
    """
    reader = PatternReader()
    forms = list(read(text, source))
    rules: list[ir.Rule] = []
    while forms:
        form = forms.pop(0)
        if not isinstance(form, Group) or not form.items:
            raise IncorrectError(f"{form.position}: a rule is [(name ?a ?b) clause ...], not {show(form)}")
        first = form.items[0]
        if isinstance(first, Keyword) and first.name == "find":
            raise IncorrectError(f"{form.position}: this is a query; give it to engine.query")
        if isinstance(first, Group) and first.kind == "vector":
            forms[:0] = form.items
        else:
            rules.append(reader.rule(form))
    return ir.Text(source, tuple(rules))


def parse_query(text: str, source: str = "query") -> Find:
    """A query `[:find ... :in ... :with ... :where ...]`."""
    forms = read(text, source)
    if len(forms) != 1 or not isinstance(forms[0], Group):
        raise IncorrectError(f"{source}: a query is one vector, [:find ... :where ...]")
    return PatternReader().query(forms[0])


class PatternReader:
    """Turns forms into rules and queries."""

    def __init__(self) -> None:
        self._fresh = 0

    def fresh(self) -> ir.RuleVariable:
        self._fresh += 1
        return ir.RuleVariable(f"_ {self._fresh}")

    # ------------------------------------------------------------------ rules and queries

    def rule(self, form: Group) -> ir.Rule:
        """`[(head ?a ?b) clause ...]`."""
        head, *clauses = form.items
        if (
            not isinstance(head, Group)
            or head.kind != "list"
            or not head.items
            or not isinstance(head.items[0], Symbol)
        ):
            raise IncorrectError(f"{form.position}: a rule begins with its head, (name ?a ?b), not {show(head)}")
        name, *terms = head.items
        if not terms:
            raise UnsupportedError(f"{head.position}: rule {show(name)} has no arguments: give it at least one")
        found = tuple(self.head_term(term) for term in terms)
        return ir.Rule(show(name), found, self.clauses(clauses), head.position)

    def query(self, form: Group) -> Find:
        """`[:find ... :in ... :with ... :where ...]`."""
        sections: dict[str, list[Form]] = {}
        current: list[Form] | None = None
        for item in form.items:
            if isinstance(item, Keyword) and item.name in ("find", "in", "with", "where"):
                if item.name in sections:
                    raise IncorrectError(f"{item.position}: :{item.name} stands here a second time")
                current = sections[item.name] = []
            elif current is None:
                raise IncorrectError(f"{item.position}: a query begins with :find, not {show(item)}")
            else:
                current.append(item)
        for needed in ("find", "where"):
            if not sections.get(needed):
                raise IncorrectError(f"{form.position}: the query has no :{needed}")
        terms, names = self._found(sections["find"])
        keep = tuple(self._variable(item) for item in sections.get("with", []))
        parameters = tuple(self._parameters(sections.get("in", [])))
        return Find(terms, names, keep, parameters, self.clauses(sections["where"]), form.position)

    def _found(self, items: list[Form]) -> tuple[tuple[ir.HeadTerm, ...], tuple[str, ...]]:
        terms: list[ir.HeadTerm] = []
        names: list[str] = []
        for item in items:
            if isinstance(item, Symbol) and item.name in (".", "..."):
                raise UnsupportedError(f"{item.position}: :find gives a collection of rows; take one from its rows()")
            if isinstance(item, Group) and item.kind == "vector":
                raise UnsupportedError(f"{item.position}: :find takes variables and aggregates, not {show(item)}")
            term = self.head_term(item)
            name = f"{term.kind}_{term.of}" if isinstance(term, ir.HeadAggregate) else str(term)
            while name in names:
                name += "_"
            terms.append(term)
            names.append(name)
        return tuple(terms), tuple(names)

    def _parameters(self, items: list[Form]) -> list[Parameter]:
        found = []
        for item in items:
            if isinstance(item, Symbol) and item.name in ("$", "%"):
                continue
            if isinstance(item, Symbol):
                variable = self._variable(item)
                found.append(Parameter(variable.name, (variable,), many=False))
                continue
            if not isinstance(item, Group) or not item.items:
                raise IncorrectError(f"{item.position}: a parameter is ?x, [?x ...], [?x ?y] or [[?x ?y]]")
            if isinstance(item.items[0], Group):
                variables = tuple(self._variable(i) for i in item.items[0].items)
                many = True
            else:
                many = isinstance(item.items[-1], Symbol) and item.items[-1].name == "..."
                variables = tuple(self._variable(i) for i in (item.items[:-1] if many else item.items))
            found.append(Parameter("_".join(v.name for v in variables), variables, many))
        names = [variable.name for parameter in found for variable in parameter.variables]
        for name in names:
            if names.count(name) > 1:
                raise IncorrectError(
                    f"{items[0].position}: :in has ?{name} twice: give each parameter a name of its own"
                )
        return found

    def head_term(self, form: Form) -> ir.HeadTerm:
        """A variable, a constant or an aggregate."""
        if isinstance(form, Group) and form.kind == "list" and form.items and isinstance(form.items[0], Symbol):
            name, *terms = form.items
            kind = show(name)
            if kind not in ir.AGGREGATES:
                raise IncorrectError(
                    f"{form.position}: there is no aggregate {kind!r}; there are: {', '.join(ir.AGGREGATES)}"
                )
            if len(terms) != 1:
                raise IncorrectError(f"{form.position}: {kind} is taken of one variable")
            return ir.HeadAggregate(kind, self._variable(terms[0]))
        return self.term(form)

    def _variable(self, form: Form) -> ir.RuleVariable:
        term = self.term(form)
        if not isinstance(term, ir.RuleVariable) or term.anonymous:
            raise IncorrectError(f"{form.position}: expected a variable such as ?x, found {show(form)}")
        return term

    def term(self, form: Form) -> ir.Term:
        """A variable, `_` or a value."""
        if isinstance(form, Symbol):
            if form.name == "_":
                return self.fresh()
            if form.name.startswith("?") and len(form.name) > 1:
                return ir.RuleVariable(form.name[1:])
            raise IncorrectError(
                f"{form.position}: expected a variable such as ?{form.name}, or a value; found {form.name}"
            )
        if isinstance(form, Scalar):
            return ir.Constant(form.value)
        if isinstance(form, Keyword):
            return ir.Constant(f":{form.name}")
        raise IncorrectError(f"{form.position}: expected a variable or a value, found {show(form)}")

    # ------------------------------------------------------------------ clauses

    def clauses(self, forms: list[Form]) -> tuple[ir.Literal, ...]:
        """The literals of some clauses."""
        return tuple(self.clause(form) for form in forms)

    def clause(self, form: Form) -> ir.Literal:
        """A pattern, a predicate, a rule, or a combination of them."""
        if not isinstance(form, Group) or not form.items or form.kind == "map":
            raise IncorrectError(f"{form.position}: expected a clause such as [?e :attribute ?v], found {show(form)}")
        if form.kind == "vector":
            first = form.items[0]
            if isinstance(first, Group):
                return self._call(form, first)
            return self._pattern(form)
        name = form.items[0]
        if not isinstance(name, Symbol):
            raise IncorrectError(f"{form.position}: expected a rule, not, or, found {show(name)}")
        rest = list(form.items[1:])
        if name.name in COMBINATIONS:
            return self._combined(name.name, form, rest)
        return ir.Atom(name.name, tuple(map(self.term, rest)), form.position)

    def _combined(self, how: str, form: Group, rest: list[Form]) -> ir.Literal:
        """Clauses that are negated, alternatives, or taken together."""
        outer = None
        if how.endswith("-join"):
            outer, rest = self._outer(form, rest), rest[1:]
        if not rest:
            raise IncorrectError(f"{form.position}: {show(form)} combines clauses, and there is none in it")
        if how.startswith("not"):
            return ir.Conjunction(self.clauses(rest), outer, form.position)
        branches = (self.clauses(rest),) if how == "and" else tuple(map(self._branch, rest))
        if not all(branches):
            raise IncorrectError(f"{form.position}: {show(form)} has a branch without a clause")
        return ir.Disjunction(branches, outer, form.position)

    def _outer(self, form: Group, rest: list[Form]) -> tuple[ir.RuleVariable, ...]:
        if not rest or not isinstance(rest[0], Group) or rest[0].kind != "vector":
            raise IncorrectError(f"{form.position}: {show(form.items[0])} begins with the variables it shares, [?x]")
        return tuple(self._variable(item) for item in rest[0].items)

    def _branch(self, form: Form) -> tuple[ir.Literal, ...]:
        if isinstance(form, Group) and form.items and isinstance(form.items[0], Symbol) and form.items[0].name == "and":
            return self.clauses(list(form.items[1:]))
        return (self.clause(form),)

    def _pattern(self, form: Group) -> ir.Literal:
        if len(form.items) not in (2, 3):
            raise IncorrectError(f"{form.position}: a pattern is [entity :attribute value], found {show(form)}")
        entity, attribute, *value = form.items
        if not isinstance(attribute, Keyword):
            raise IncorrectError(
                f"{form.position}: the attribute in the middle must be written out, as :knows; found {show(attribute)}"
            )
        return ir.Atom(attribute.name, tuple(map(self.term, (entity, *value))), form.position)

    def _call(self, form: Group, call: Group) -> ir.Literal:
        """`[(< ?x 3)]`, or `[(+ ?x 1) ?y]`."""
        if call.kind != "list" or not call.items or not isinstance(call.items[0], Symbol):
            raise IncorrectError(f"{form.position}: expected a predicate such as [(< ?x 3)], found {show(form)}")
        name, terms = call.items[0].name, tuple(self._computed(item) for item in call.items[1:])
        if len(form.items) == 1:
            if name in COMPARISONS and (len(terms) == 2 or (len(terms) > 2 and COMPARISONS[name] != "!=")):
                pairs = [ir.Comparison(COMPARISONS[name], *pair, form.position) for pair in pairwise(terms)]
                return pairs[0] if len(pairs) == 1 else ir.Disjunction((tuple(pairs),), None, form.position)
            if name in TESTS and len(terms) == 2:
                return ir.Condition(ir.Compute("contains", (terms[1], terms[0])), form.position)
            known = ", ".join([*COMPARISONS, *TESTS])
            raise IncorrectError(
                f"{form.position}: there is no predicate {name!r} of {len(terms)} terms; there are: {known}"
            )
        if len(form.items) != 2:
            raise IncorrectError(f"{form.position}: a function gives one value: [(+ ?x 1) ?y]")
        same = name in SAME and len(terms) == 1
        value = terms[0] if same else self._function(call, name, terms)
        return ir.Comparison("=", self.term(form.items[1]), value, form.position)

    def _computed(self, form: Form) -> ir.Term:
        if isinstance(form, Group) and form.kind == "list" and form.items and isinstance(form.items[0], Symbol):
            terms = tuple(self._computed(item) for item in form.items[1:])
            return self._function(form, form.items[0].name, terms)
        return self.term(form)

    def _function(self, form: Group, name: str, terms: tuple[ir.Term, ...]) -> ir.Term:
        if name not in FUNCTIONS or not terms:
            known = ", ".join([*FUNCTIONS, *SAME])
            raise IncorrectError(f"{form.position}: there is no function {name!r}; there are: {known}")
        op = FUNCTIONS[name]
        if op in ("+", "*") and len(terms) > 2:
            left, *rest = terms
            for term in rest:
                left = ir.Compute(op, (left, term))
            return left
        return ir.Compute(op, terms)
