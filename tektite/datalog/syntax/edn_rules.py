"""The thesis's EDN syntax: patterns `[?e :attribute ?v]` and rules `[(rule ?a ?b) ...]`.

An attribute is a predicate of its name (without the colon) over entity and value, or over the entity alone.
"""

from __future__ import annotations

from itertools import pairwise

from tektite.datalog.syntax import ir, statements
from tektite.datalog.syntax.edn import EdnForm, EdnScalar, Group, Keyword, Symbol, read, show
from tektite.errors import IncorrectError
from tektite.expr.comparisons import OPERATIONS

COMPARISONS = {sign: sign for sign in OPERATIONS} | {"==": "=", "not=": "!=", "<>": "!="}
FUNCTIONS = {
    "+": "+", "-": "-", "*": "*", "/": "ratio", "quot": "/", "rem": "%", "mod": "floor-mod",
    "min": "min", "max": "max", "str": "cat", "count": "strlen", "subs": "subs",
}  # fmt: skip
SAME = ("identity", "ground")
TESTS = {"clojure.string/includes?": "includes", "includes?": "includes"}
COMBINATIONS = ("not", "not-join", "or", "or-join", "and")


def is_edn(text: str) -> bool:
    """Whether a text is EDN rather than the textbook syntax: it begins with a bracket.

    >>> is_edn("; a rule\\n[(p ?x) [?x :q]]"), is_edn("p(x) :- q(x).")
    (True, False)
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith(";")), "")
    return first.startswith(("[", "(", "{"))


def parse_rules(text: str, source: str = "program") -> statements.Text:
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
    return statements.Text(source, tuple(rules))


class PatternReader:
    """Turns forms into rules and queries."""

    def __init__(self) -> None:
        self._fresh = 0

    def fresh(self) -> ir.RuleVariable:
        self._fresh += 1
        return ir.RuleVariable(f"_ {self._fresh}")

    def fresh_named(self) -> ir.RuleVariable:
        """A variable that no text can name, and that is looked at."""
        self._fresh += 1
        return ir.RuleVariable(f"value {self._fresh}")

    # ------------------------------------------------------------------ rules

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
        found = tuple(self.head_term(term) for term in terms) or (ir.HOLDS,)
        return ir.Rule(show(name), found, self.clauses(clauses), head.position)

    def head_term(self, form: EdnForm) -> ir.HeadTerm:
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

    def _variable(self, form: EdnForm) -> ir.RuleVariable:
        term = self.term(form)
        if not isinstance(term, ir.RuleVariable) or term.anonymous:
            raise IncorrectError(f"{form.position}: expected a variable such as ?x, found {show(form)}")
        return term

    def term(self, form: EdnForm) -> ir.Term:
        """A variable, `_` or a value."""
        if isinstance(form, Symbol):
            if form.name == "_":
                return self.fresh()
            if form.name.startswith("?") and len(form.name) > 1:
                return ir.RuleVariable(form.name[1:])
            raise IncorrectError(
                f"{form.position}: expected a variable such as ?{form.name}, or a value; found {form.name}"
            )
        if isinstance(form, EdnScalar):
            return ir.Constant(form.value)
        if isinstance(form, Keyword):
            return ir.Constant(f":{form.name}")
        raise IncorrectError(f"{form.position}: expected a variable or a value, found {show(form)}")

    # ------------------------------------------------------------------ clauses

    def clauses(self, forms: list[EdnForm]) -> tuple[ir.Literal, ...]:
        """The literals of some clauses."""
        return tuple(self.clause(form) for form in forms)

    def clause(self, form: EdnForm) -> ir.Literal:
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
        return ir.Atom(name.name, tuple(map(self.term, rest)) or (ir.HOLDS,), form.position)

    def _combined(self, how: str, form: Group, rest: list[EdnForm]) -> ir.Literal:
        """Clauses that are negated, alternatives, or taken together."""
        outer = None
        if how.endswith("-join"):
            outer, rest = self._outer(form, rest), rest[1:]
        if not rest:
            raise IncorrectError(f"{form.position}: {show(form)} needs at least one clause")
        if how.startswith("not"):
            return ir.Conjunction(self.clauses(rest), outer, form.position)
        branches = (self.clauses(rest),) if how == "and" else tuple(map(self._branch, rest))
        if not all(branches):
            raise IncorrectError(f"{form.position}: {show(form)} has a branch without a clause")
        return ir.Disjunction(branches, outer, form.position)

    def _outer(self, form: Group, rest: list[EdnForm]) -> tuple[ir.RuleVariable, ...]:
        if not rest or not isinstance(rest[0], Group) or rest[0].kind != "vector":
            raise IncorrectError(f"{form.position}: {show(form.items[0])} begins with the variables it shares, [?x]")
        return tuple(self._variable(item) for item in rest[0].items)

    def _branch(self, form: EdnForm) -> tuple[ir.Literal, ...]:
        if isinstance(form, Group) and form.items and isinstance(form.items[0], Symbol) and form.items[0].name == "and":
            return self.clauses(list(form.items[1:]))
        return (self.clause(form),)

    def _pattern(self, form: Group) -> ir.Literal:
        items = list(form.items)
        if is_source(items[0]):
            if show(items[0]) != "$":
                return self._from_source(form)
            items = items[1:]
        if len(items) not in (2, 3):
            raise IncorrectError(f"{form.position}: a pattern is [entity :attribute value], found {show(form)}")
        entity, attribute, *value = items
        terms = [self.term(item) for item in (entity, *value)]
        if isinstance(attribute, Symbol):
            variable = self.fresh() if attribute.name == "_" else self._variable(attribute)
            return ir.AttributePattern(terms[0], variable, terms[1] if value else None, form.position)
        if not isinstance(attribute, Keyword):
            raise IncorrectError(
                f"{form.position}: the attribute in the middle is a keyword, as :knows, or a variable; found {show(attribute)}"
            )
        name, backwards = forward(attribute.name)
        if backwards:
            if not value:
                raise IncorrectError(
                    f"{form.position}: {show(form)}: a reverse attribute needs a value: [?v {show(attribute)} ?e]"
                )
            return ir.Atom(name, (terms[1], terms[0]), form.position)
        return (
            ir.Atom(name, tuple(terms), form.position)
            if value
            else ir.AttributePattern(terms[0], name, None, form.position)
        )

    def _from_source(self, form: Group) -> ir.Literal:
        """`[$relation ?a ?b]`: a row of a relation."""
        source, *items = form.items
        if not items or any(isinstance(item, Keyword) for item in items[1:2]):
            raise IncorrectError(
                f"{form.position}: {show(form)}: a source names a relation of the engine, and its rows have no attributes: "
                f"[{show(source)} ?a ?b]"
            )
        return ir.Atom(show(source)[1:], tuple(map(self.term, items)), form.position)

    def _call(self, form: Group, call: Group) -> ir.Literal:
        """`[(< ?x 3)]`, or `[(+ ?x 1) ?y]`."""
        if call.kind != "list" or not call.items or not isinstance(call.items[0], Symbol):
            raise IncorrectError(f"{form.position}: expected a predicate such as [(< ?x 3)], found {show(form)}")
        name = call.items[0].name
        if name in ("get-else", "missing?"):
            return self._about_attribute(form, call, name)
        if name == "ground" and len(call.items) == 2 and isinstance(call.items[1], Group):
            return self._ground(form, call.items[1])
        terms = tuple(self._computed(item) for item in call.items[1:])
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

    def _about_attribute(self, form: Group, call: Group, name: str) -> ir.Literal:
        """`[(get-else $ ?e :attribute default) ?v]` and `[(missing? $ ?e :attribute)]`."""
        items = [item for item in call.items[1:] if not is_source(item)]
        wanted = 3 if name == "get-else" else 2
        if len(items) != wanted or not isinstance(items[1], Keyword) or len(form.items) != wanted - 1:
            written = "[(get-else $ ?e :attribute default) ?v]" if wanted == 3 else "[(missing? $ ?e :attribute)]"
            raise IncorrectError(f"{form.position}: {name} is written {written}; found {show(form)}")
        entity, attribute = self.term(items[0]), items[1].name
        if name == "missing?":
            return ir.Conjunction((ir.AttributePattern(entity, attribute, None, form.position),), None, form.position)
        default = self.term(items[2])
        if not isinstance(default, ir.Constant):
            raise IncorrectError(f"{form.position}: the default of get-else is a value, found {show(items[2])}")
        value = self.fresh_named()
        found = ir.Lookup(ir.Atom(attribute, (entity, value), form.position), default)
        bound = ir.Comparison("=", self.term(form.items[1]), value, form.position)
        return ir.Disjunction(((found, bound),), None, form.position)

    def _ground(self, form: Group, given: Group) -> ir.Literal:
        """`[(ground [1 2]) [?x ...]]`, `[(ground [[1 2] [3 4]]) [[?x ?y]]]` and `[(ground [1 2]) [?x ?y]]`."""
        into = form.items[1] if len(form.items) == 2 else None
        wrong = IncorrectError(
            f"{form.position}: {show(form)}: ground binds [?x ...] to a list of values, [?x ?y] to one of as many values, and "
            "[[?x ?y]] to a list of such lists"
        )
        if not isinstance(into, Group) or into.kind != "vector" or not into.items or given.kind != "vector":
            raise wrong
        first, last = into.items[0], into.items[-1]
        if isinstance(first, Group):
            names, rows = first.items, [item.items if isinstance(item, Group) else () for item in given.items]
        elif isinstance(last, Symbol) and last.name == "...":
            names, rows = into.items[:-1], [(item,) for item in given.items]
        else:
            names, rows = into.items, [given.items]
        if not rows or any(len(row) != len(names) for row in rows):
            raise wrong
        variables = [self.term(name) for name in names]
        branches = [
            tuple(
                ir.Comparison("=", variable, self.term(item), form.position)
                for variable, item in zip(variables, row, strict=True)
            )
            for row in rows
        ]
        return ir.Disjunction(tuple(branches), None, form.position)

    def _computed(self, form: EdnForm) -> ir.Term:
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


def is_source(form: EdnForm) -> bool:
    """Whether a form names a source: `$`, or `$relation`."""
    return isinstance(form, Symbol) and form.name.startswith("$")


def forward(name: str) -> tuple[str, bool]:
    """An attribute's name, and whether it is written backwards.

    >>> forward("person/_knows"), forward("_knows"), forward("knows")
    (('person/knows', True), ('knows', True), ('knows', False))
    """
    space, slash, last = name.rpartition("/")
    return (f"{space}{slash}{last[1:]}", True) if last.startswith("_") and len(last) > 1 else (name, False)
