"""The textbook syntax, as Soufflé writes it: text to rules, declarations and directives.

Identifiers in terms are variables, whatever their case; texts stand in double quotes; `_` and `?` match anything. What
Soufflé has beyond this subset (components, records, recursive types, functors of one's own) is refused by name.
"""

from __future__ import annotations

import re
from typing import Any

from lark import Token, Tree

from tektite.datalog.syntax import ir
from tektite.datalog.syntax.grammar import parse
from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr.comparisons import MIRRORED, OPPOSITE
from tektite.values.types import Float, Int, String, Type

TYPES: dict[str, Type] = {"number": Int, "unsigned": Int, "float": Float, "symbol": String}
KINDS = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "avg", "avg": "avg"}
QUALIFIERS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable")
SIGNS = {"**": "^", "mod": "%"}
TESTS = ("contains", "match")
GOAL = re.compile(r"^\s*\?-")
ALIASES = ("type_alias", "number_alias", "symbol_alias")


def parse_program(text: str, source: str = "program") -> ir.Text:
    """The rules, facts, declarations and directives of a text.

    >>> program = parse_program("reach(x, z) :- reach(x, y), edge(y, z).  // one step further")
    >>> print(*program.rules)
    reach(x, z) :- reach(x, y), edge(y, z).
    """
    reader = Reader(source, text)
    statements = parse(text, source, "start").children
    for statement in statements:
        if statement.data in ALIASES:
            reader.alias(statement)
    for statement in statements:
        if statement.data not in ALIASES:
            reader.statement(statement)
    return reader.result()


def parse_goal(text: str, source: str = "goal") -> ir.Atom:
    """A single atom, to be asked for: `tc("david", ?)`, or `?- tc("david", x).`; a `$name` stands for an argument that is
    given beside it.

    >>> print(parse_goal('tc("david", ?).'), parse_goal('?- tc("david", x).'))
    tc("david", _) tc("david", x)
    """
    found = parse(GOAL.sub("", text).strip().removesuffix("."), source, "expr")
    literal = Reader(source, text, goal=True).literal(found)
    if not isinstance(literal, ir.Atom):
        raise IncorrectError(f'{source}: a goal is one predicate, such as tc("david", ?), not {text!r}')
    return literal


class Reader:
    """Turns the parser's trees into rules."""

    def __init__(self, source: str, text: str, goal: bool = False) -> None:
        """With `goal`, a `$name` stands for an argument."""
        self.source = source
        self.text = text
        self.goal = goal
        self.rules: list[ir.Rule] = []
        self.declarations: list[ir.Declaration] = []
        self.directives: list[ir.Directive] = []
        self.improvements: list[ir.Improvement] = []
        self.aliases: dict[str, tuple[Tree[Any], list[str]]] = {}
        self._fresh = 0

    def result(self) -> ir.Text:
        """Everything read so far."""
        return ir.Text(
            self.source, tuple(self.rules), tuple(self.declarations), tuple(self.directives), tuple(self.improvements)
        )

    def position(self, tree: Tree[Any] | Token) -> ir.Position:
        meta: Any = tree if isinstance(tree, Token) else tree.meta
        return ir.Position(self.source, getattr(meta, "line", 1) or 1, getattr(meta, "column", 1) or 1)

    def wrong(self, tree: Tree[Any] | Token, problem: str) -> IncorrectError:
        return IncorrectError(f"{self.position(tree)}: {problem}")

    def written(self, tree: Tree[Any]) -> str:
        """A clause as it stands in the text, on one line; nothing where comments stand in it."""
        found = self.text[tree.meta.start_pos : tree.meta.end_pos]
        return "" if "//" in found or "/*" in found else " ".join(found.split())

    # ------------------------------------------------------------------ statements

    def statement(self, tree: Tree[Any]) -> None:
        """Take one statement in."""
        kind, children = tree.data, tree.children
        if kind == "clause":
            self._clause(tree)
        elif kind == "declaration":
            self._declaration(tree)
        elif kind == "directive":
            for target in children[1:]:
                name, *options = target.children
                pairs = tuple((str(o.children[0]), unquoted(o.children[1])) for o in options)
                self.directives.append(ir.Directive(str(children[0])[1:], str(name), pairs, self.position(target)))

    def alias(self, tree: Tree[Any]) -> None:
        """Take in a type that is another's name, or a union of such."""
        name, *of = map(str, tree.children)
        if tree.data != "type_alias":
            of = ["number" if tree.data == "number_alias" else "symbol"]
        if name in TYPES or name in self.aliases:
            raise self.wrong(tree, f"there is a type {name!r} already")
        self.aliases[name] = (tree, of or ["symbol"])

    def _type(self, name: str, tree: Tree[Any], within: tuple[str, ...] = ()) -> str:
        """Which of the types that there are a name stands for."""
        if name in TYPES:
            return name
        if name not in self.aliases:
            raise self.wrong(tree, f"there is no type {name!r}; there are: {', '.join((*TYPES, *self.aliases))}")
        place, of = self.aliases[name]
        if name in within:
            raise self.wrong(place, f"type {name} is defined by itself")
        found = {self._type(other, place, (*within, name)) for other in of}
        if len({TYPES[kind] for kind in found}) > 1:
            raise self.wrong(
                place, f"type {name} is a union of numbers and texts; declare them as columns of their own"
            )
        return found.pop() if len(found) == 1 else "number"

    def _declaration(self, tree: Tree[Any]) -> None:
        names = [str(c) for c in tree.children if isinstance(c, Token) and c.type == "NAME"]
        columns = [c for c in tree.children if isinstance(c, Tree)]
        qualifiers = [str(c) for c in tree.children if isinstance(c, Token) and c.type == "QUALIFIER"]
        if not columns:
            raise UnsupportedError(
                f"{self.position(tree)}: predicate {names[0]!r} has no columns: give it at least one"
            )
        for qualifier in qualifiers:
            if qualifier in ("input", "output", "printsize"):
                for name in names:
                    self.directives.append(ir.Directive(qualifier, name, (), self.position(tree)))
            elif qualifier not in QUALIFIERS:
                raise UnsupportedError(f"{self.position(tree)}: a relation that is {qualifier!r} is not supported")
        kinds = [(str(c.children[0]), self._type(str(c.children[1]), c)) for c in columns]
        typed = tuple((name, TYPES[kind]) for name, kind in kinds)
        unsigned = tuple(name for name, kind in kinds if kind == "unsigned")
        if len({name for name, _ in typed}) < len(typed):
            raise self.wrong(tree, f"two columns of {names[0]!r} have one name")
        for name in names:
            self.declarations.append(ir.Declaration(name, typed, self.position(tree), unsigned))

    def _clause(self, tree: Tree[Any]) -> None:
        heads, *rest = tree.children
        body = next((self.body(part) for part in rest if part.data == "body"), None)
        if heads.data == "subsumed":
            self._subsumption(tree, heads, body)
            return
        literals = () if body is None else self._flat(body, tree)
        written = self.written(tree)
        for head in heads.children:
            if isinstance(head, Tree) and head.data == "binary" and is_goal(head):
                raise self.wrong(head, "'?-' asks, and rules say: give the goal to engine.query, or name it in .output")
            if not isinstance(head, Tree) or head.data != "call":
                raise self.wrong(head, "what a rule says is one predicate applied to terms")
            name, *terms = head.children
            found = tuple(self.head_term(term, body is not None) for term in terms)
            if not found:
                raise UnsupportedError(
                    f"{self.position(head)}: predicate {str(name)!r} has no columns: give it at least one"
                )
            self.rules.append(ir.Rule(str(name), found, literals, self.position(head), written))

    def _flat(self, branches: tuple[tuple[ir.Literal, ...], ...], tree: Tree[Any]) -> tuple[ir.Literal, ...]:
        if len(branches) == 1:
            return branches[0]
        return (ir.Disjunction(branches, None, self.position(tree)),)

    def _subsumption(self, tree: Tree[Any], heads: Tree[Any], body: tuple[tuple[ir.Literal, ...], ...] | None) -> None:
        """`p(x, a) <= p(x, b) :- b <= a.`: of the facts that agree on x, the least stays."""
        left, sign, right = heads.children
        worse, better = self.literal(left), self.literal(right)
        test = body[0][0] if body and len(body) == 1 and len(body[0]) == 1 else None
        if (
            sign == "<="
            and isinstance(worse, ir.Atom)
            and isinstance(better, ir.Atom)
            and isinstance(test, ir.Comparison)
        ):
            differing = [i for i, pair in enumerate(zip(worse.terms, better.terms, strict=False)) if pair[0] != pair[1]]
            if worse.predicate == better.predicate and len(worse.terms) == len(better.terms) and len(differing) == 1:
                a, b = worse.terms[differing[0]], better.terms[differing[0]]
                ways = {(b, "<=", a): "min", (b, "<", a): "min", (a, ">=", b): "min", (a, ">", b): "min",
                        (b, ">=", a): "max", (b, ">", a): "max", (a, "<=", b): "max", (a, "<", b): "max"}  # fmt: skip
                kind = ways.get((test.left, test.op, test.right))
                if kind is not None:
                    place = self.position(tree)
                    self.improvements.append(ir.Improvement(worse.predicate, differing[0], kind, place))
                    return
        raise UnsupportedError(
            f"{self.position(tree)}: subsumption is supported where one column is compared and the others are equal: "
            "p(x, a) <= p(x, b) :- b <= a."
        )

    # ------------------------------------------------------------------ bodies

    def body(self, tree: Tree[Any]) -> tuple[tuple[ir.Literal, ...], ...]:
        """The alternatives of a body, each a group of literals."""
        return tuple(tuple(self.literal(child) for child in conjunction.children) for conjunction in tree.children)

    def literal(self, tree: Any) -> ir.Literal:
        """A literal of a body."""
        match tree.data:
            case "comparison":
                return self._comparison(tree)
            case "negation":
                return self._negated(tree)
            case "group":
                branches = self.body(tree.children[0])
                return ir.Disjunction(branches, None, self.position(tree))
            case "parenthesis":
                return self.literal(tree.children[0])
            case "call":
                name, *terms = tree.children
                if name in TESTS:
                    return ir.Condition(ir.Compute(str(name), tuple(map(self.term, terms))), self.position(tree))
                return ir.Atom(str(name), tuple(map(self.term, terms)), self.position(tree))
            case "variable" if tree.children[0] in ("true", "false"):
                one, other = ir.Constant(1), ir.Constant(1 if tree.children[0] == "true" else 0)
                return ir.Comparison("=", one, other, self.position(tree))
        raise self.wrong(tree, "a body consists of predicates, negations and comparisons; this is a value")

    def _negated(self, tree: Tree[Any]) -> ir.Literal:
        inner = self.literal(tree.children[0])
        if isinstance(inner, ir.Atom):
            return ir.Negation(inner)
        if isinstance(inner, ir.Comparison):
            return ir.Comparison(OPPOSITE[inner.op], inner.left, inner.right, inner.position)
        if isinstance(inner, ir.Condition):
            return ir.Condition(ir.Compute("not", (inner.test,)), inner.position)
        return ir.Conjunction((inner,), None, self.position(tree))

    def _comparison(self, tree: Tree[Any]) -> ir.Literal:
        left, sign, right = tree.children
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Tree) and other.data.startswith("aggregate"):
                return self._aggregation(tree, one, str(sign), other)
        return ir.Comparison(str(sign), self.term(left), self.term(right), self.position(tree))

    def _aggregation(self, tree: Tree[Any], result: Tree[Any], sign: str, of: Tree[Any]) -> ir.Literal:
        term = self.term(result)
        if sign == "=" and isinstance(term, ir.RuleVariable) and not term.anonymous:
            return self.aggregate(of, term)
        fresh = self.fresh("value")
        if sign == "=" and isinstance(term, ir.RuleVariable):  # `_ = max x : { ... }`, for the sake of its witnesses
            return self.aggregate(of, fresh)
        both = (self.aggregate(of, fresh), ir.Comparison(sign, term, fresh, self.position(tree)))
        if result is not tree.children[0]:
            both = (both[0], ir.Comparison(MIRRORED[sign], term, fresh, self.position(tree)))
        return ir.Disjunction((both,), None, self.position(tree))

    def aggregate(self, tree: Tree[Any], result: ir.RuleVariable) -> ir.Aggregation:
        """An aggregate over a body of its own."""
        first, *rest = tree.children
        of: ir.Term | None = None
        if tree.data == "aggregate_call":
            name, terms = first.children[0], first.children[1:]
            if len(terms) != 1:
                raise self.wrong(tree, f"{name} is taken of one term")
            of = self.term(terms[0])
        else:
            name = first
            of = self.term(rest[0]) if tree.data == "aggregate_of" else None
        kind = KINDS.get(str(name))
        if kind is None:
            raise self.wrong(tree, f"there is no aggregate {str(name)!r}; there are: {', '.join(KINDS)}")
        if (of is None) != (kind == "count"):
            raise self.wrong(
                tree, f"{name} is taken of {'nothing: write count : { ... }' if kind == 'count' else 'a term'}"
            )
        block = rest[-1]
        literals: tuple[ir.Literal, ...]
        if block.data == "block_atom":
            literals = (self.literal(block.children[0]),)
        else:
            literals = self._flat(self.body(block.children[0]), block)
        return ir.Aggregation(result, kind, of, literals, self.position(tree))

    # ------------------------------------------------------------------ terms

    def fresh(self, name: str) -> ir.RuleVariable:
        """A variable that no text can name."""
        self._fresh += 1
        return ir.RuleVariable(f"{name} {self._fresh}")

    def head_term(self, tree: Any, has_body: bool) -> ir.HeadTerm:
        """A term of a head, where `sum(x)` and its like are aggregates."""
        if isinstance(tree, Tree) and tree.data == "call" and has_body:
            name, *terms = tree.children
            if str(name) in KINDS and len(terms) <= 1:
                kind = KINDS[str(name)]
                if not terms and kind != "count":
                    raise self.wrong(tree, f"{name} is taken of a term: {name}(x)")
                of = self.term(terms[0]) if terms else None
                if isinstance(of, ir.RuleVariable) and of.anonymous and kind == "count":
                    of = None
                return ir.HeadAggregate(kind, of)
        if isinstance(tree, Tree) and tree.data.startswith("aggregate"):
            raise self.wrong(tree, "an aggregate over a body of its own goes into the body: n = count : { ... }")
        return self.term(tree)

    def term(self, tree: Any) -> ir.Term:
        """A term."""
        match tree.data:
            case "variable":
                name = str(tree.children[0])
                if name == "nil":
                    raise UnsupportedError(f"{self.position(tree)}: nil, as records have it, is not supported here")
                return self.fresh("_") if name in ("_", "?") else ir.RuleVariable(name.removeprefix("?"))
            case "number":
                return ir.Constant(self._number(tree))
            case "float":
                return ir.Constant(float(tree.children[0]))
            case "string":
                return ir.Constant(unquoted(tree.children[0]))
            case "parameter":
                if not self.goal:
                    raise UnsupportedError(
                        f"{self.position(tree)}: {tree.children[0]}: constructors are not supported; arguments belong to goals"
                    )
                return ir.RuleVariable(str(tree.children[0]))
            case "parenthesis":
                return self.term(tree.children[0])
            case "minus":
                inner = self.term(tree.children[-1])
                if isinstance(inner, ir.Constant) and isinstance(inner.value, int | float):
                    return ir.Constant(-inner.value)
                return ir.Compute("-", (inner,))
            case "complement":
                return ir.Compute(str(tree.children[0]), (self.term(tree.children[-1]),))
            case "binary":
                left, sign, right = tree.children
                return ir.Compute(SIGNS.get(str(sign), str(sign)), (self.term(left), self.term(right)))
            case "call":
                name, *terms = tree.children
                if name == "autoinc":
                    raise UnsupportedError(f"{self.position(tree)}: autoinc() is not supported here")
                return ir.Compute(str(name), tuple(map(self.term, terms)))
        raise self.wrong(tree, "an aggregate stands alone on one side of a comparison: n = count : { ... }")

    def _number(self, tree: Tree[Any]) -> int:
        text = str(tree.children[0]).removesuffix("u")
        value = int(text, 0) if text[:2] in ("0x", "0b") else int(text)
        if value >= 2**63:
            raise self.wrong(tree, f"the number {text} does not fit into 64 bits")
        return value


def is_goal(tree: Tree[Any]) -> bool:
    """Whether an expression begins with `?-`, which reads like the difference of `?` and something."""
    first, sign = tree.children[:2]
    return isinstance(first, Tree) and first.data == "variable" and first.children[0] == "?" and sign == "-"


ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def unquoted(token: Any) -> str:
    """The text that a token stands for.

    >>> unquoted('"a\\\\tb"'), unquoted("file")
    ('a\\tb', 'file')
    """
    text = str(token)
    if not text.startswith('"'):
        return text
    return ESCAPE.sub(lambda found: ESCAPES.get(found[1], found[1]), text[1:-1])
