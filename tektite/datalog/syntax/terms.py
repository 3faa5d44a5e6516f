"""Bodies and terms of the textbook syntax: the parser's trees to literals and terms.

A term that needs a literal of its own (an aggregate within an expression, the numbers of a range) becomes a variable, and its
literal stands beside the one that has the term.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lark import Token, Tree

from tektite.datalog.syntax import ir
from tektite.datalog.syntax.grammar import place_of
from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr.comparisons import MIRRORED, OPPOSITE

KINDS = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "avg", "avg": "avg"}
SIGNS = {"**": "^", "mod": "%"}
TESTS = ("contains", "match")
AUTOINC = (
    "autoinc() is not supported: its values depend on the order in which rules run, and a fact that is derived a second time "
    "would get another number. Make the number from the fact's own values, as a record [a, b] or with ord"
)


class TermReader:
    """Turns trees of bodies and terms into literals and terms."""

    def __init__(
        self, source: str, text: str, goal: bool = False, places: Sequence[tuple[str, int]] | None = None
    ) -> None:
        """With `goal`, a `$name` stands for an argument. `places` has the file and line that each line comes from."""
        self.places = places
        self.source = source
        self.text = text
        self.goal = goal
        self._fresh = 0
        self._beside: list[ir.Literal] = []

    def position(self, tree: Tree[Any] | Token) -> ir.TextPosition:
        meta: Any = tree if isinstance(tree, Token) else tree.meta
        source, line = place_of(getattr(meta, "line", 1) or 1, self.source, self.places)
        return ir.TextPosition(source, line, getattr(meta, "column", 1) or 1)

    def wrong(self, tree: Tree[Any] | Token, problem: str) -> IncorrectError:
        return IncorrectError(f"{self.position(tree)}: {problem}")

    @contextmanager
    def _literals_beside(self) -> Iterator[list[ir.Literal]]:
        """Collects the literals that terms need beside the one they stand in."""
        before, self._beside = self._beside, []
        try:
            yield self._beside
        finally:
            self._beside = before

    # ------------------------------------------------------------------ bodies

    def body(self, tree: Tree[Any]) -> tuple[tuple[ir.Literal, ...], ...]:
        """The alternatives of a body, each a group of literals."""
        return tuple(tuple(self.literal(child) for child in conjunction.children) for conjunction in tree.children)

    def literal(self, tree: Any) -> ir.Literal:
        """A literal of a body, with what its terms need beside it."""
        with self._literals_beside() as beside:
            found = self._literal(tree)
        return found if not beside else ir.Disjunction(((*beside, found),), None, self.position(tree))

    def _literal(self, tree: Any) -> ir.Literal:
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
                return self.atom(tree)
            case "variable" if tree.children[0] in ("true", "false"):
                one, other = ir.Constant(1), ir.Constant(1 if tree.children[0] == "true" else 0)
                return ir.Comparison("=", one, other, self.position(tree))
        raise self.wrong(tree, "a body consists of predicates, negations and comparisons; this is a value")

    def atom(self, tree: Tree[Any]) -> ir.Atom:
        """A predicate applied to terms. One without columns has one that says that it holds."""
        name, *terms = tree.children
        return ir.Atom(str(name), tuple(map(self.term, terms)) or (ir.HOLDS,), self.position(tree))

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
        with self._literals_beside() as beside:
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
            literals = self.flat(self.body(block.children[0]), block)
        return ir.Aggregation(result, kind, of, (*literals, *beside), self.position(tree))

    def flat(self, branches: tuple[tuple[ir.Literal, ...], ...], tree: Tree[Any]) -> tuple[ir.Literal, ...]:
        """The literals of a body; one that has alternatives is one literal."""
        if len(branches) == 1:
            return branches[0]
        return (ir.Disjunction(branches, None, self.position(tree)),)

    # ------------------------------------------------------------------ terms

    def fresh(self, name: str) -> ir.RuleVariable:
        """A variable that no text can name."""
        self._fresh += 1
        return ir.RuleVariable(f"{name} {self._fresh}")

    def head(self, terms: list[Any], has_body: bool) -> tuple[tuple[ir.HeadTerm, ...], tuple[ir.Literal, ...]]:
        """The terms of a head, and the literals that they need in the body."""
        with self._literals_beside() as beside:
            found = tuple(self._head_term(term, has_body) for term in terms)
        return found or (ir.HOLDS,), tuple(beside)

    def _head_term(self, tree: Any, has_body: bool) -> ir.HeadTerm:
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
        return self.term(tree)

    def term(self, tree: Any) -> ir.Term:
        """A term."""
        match tree.data:
            case "variable":
                name = str(tree.children[0])
                if name == "nil":
                    return ir.Construct(None, None)
                return self.fresh("_") if name in ("_", "?") else ir.RuleVariable(name.removeprefix("?"))
            case "number":
                return ir.Constant(self._number(tree))
            case "float":
                return ir.Constant(ir.written_number(tree.children[0]))
            case "string":
                return ir.Constant(unquoted(tree.children[0]))
            case "parameter":
                name = str(tree.children[0])
                return ir.RuleVariable(name) if self.goal else ir.Construct(name[1:], ())
            case "branch":
                tag, *terms = tree.children
                return ir.Construct(str(tag)[1:], tuple(map(self.term, terms)))
            case "record":
                return ir.Construct(None, tuple(map(self.term, tree.children)))
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
            case "own_call":
                name, *terms = tree.children
                return ir.Compute(f"@{name}", tuple(map(self.term, terms)))
            case "call":
                return self._call(tree)
        result = self.fresh("value")
        self._beside.append(self.aggregate(tree, result))
        return result

    def _call(self, tree: Tree[Any]) -> ir.Term:
        name, *terms = tree.children
        match str(name):
            case "autoinc":
                raise UnsupportedError(f"{self.position(tree)}: {AUTOINC}")
            case "as" if len(terms) == 2:
                return self.term(terms[0])
            case "range" if len(terms) in (2, 3):
                result = self.fresh("value")
                given = ir.Compute("range", tuple(map(self.term, terms)))
                self._beside.append(ir.Comparison("=", result, given, self.position(tree)))
                return result
        return ir.Compute(str(name), tuple(map(self.term, terms)))

    def _number(self, tree: Tree[Any]) -> int:
        text = str(tree.children[0]).removesuffix("u")
        value = int(text, 0) if text[:2] in ("0x", "0b") else int(text)
        if value >= 2**63:
            raise self.wrong(tree, f"the number {text} does not fit into 64 bits")
        return value


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
