"""The textbook syntax, as Soufflé writes it: text to rules, declarations and directives.

Identifiers in terms are variables, whatever their case; texts stand in double quotes; `_` and `?` match anything. What
Soufflé has beyond this subset (components, records, recursive types, functors of one's own) is refused by name.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tektite.datalog import ir
from tektite.errors import IncorrectError, UnsupportedError
from tektite.types import Float, Int, String, Type

GRAMMAR = r"""
start: statement*
?statement: clause | declaration | directive | type_alias | unsupported
clause: heads [":-" body] "."
heads: expr ("," expr)* | expr COMPARE expr -> subsumed
body: conjunction (";" conjunction)*
conjunction: literal ("," literal)*
?literal: expr COMPARE expr -> comparison
        | expr
        | "!" literal -> negation
        | "(" body ")" -> group
?expr: product
     | expr PLUS product -> binary
?product: power
        | product TIMES power -> binary
?power: unary
      | unary POWER power -> binary
?unary: MINUS unary -> minus
      | primary
?primary: call
        | NAME -> variable
        | NUMBER -> number
        | FLOAT -> float
        | STRING -> string
        | PARAMETER -> parameter
        | "(" expr ")" -> parenthesis
        | aggregate
call: NAME "(" [expr ("," expr)*] ")"
aggregate: NAME ":" block -> aggregate_all
         | NAME target ":" block -> aggregate_of
         | call ":" block -> aggregate_call
?target: target_product
       | target PLUS product -> binary
?target_product: target_primary
               | target_product TIMES power -> binary
?target_primary: call
               | NAME -> variable
               | NUMBER -> number
               | FLOAT -> float
block: "{" body "}" | call -> block_atom
declaration: ".decl" NAME ("," NAME)* "(" [column ("," column)*] ")" QUALIFIER*
column: NAME ":" NAME
directive: DIRECTIVE target_name ("," target_name)*
target_name: NAME ["(" [option ("," option)*] ")"]
option: NAME "=" (STRING | NAME | NUMBER)
type_alias: ".type" NAME [("<:" | "=") NAME ("|" NAME)*]
          | ".number_type" NAME -> number_alias
          | ".symbol_type" NAME -> symbol_alias
unsupported: UNSUPPORTED
COMPARE: "<=" | ">=" | "!=" | "=" | "<" | ">"
PLUS: "+" | "-"
MINUS: "-"
TIMES: "*" | "/" | "%" | "band" | "bor" | "bxor" | "mod"
POWER: "^" | "**"
DIRECTIVE.2: ".input" | ".output" | ".printsize"
UNSUPPORTED.2: /(\.(comp|init|functor|override|pragma|limitsize|lattice)|#(include|define|ifdef|ifndef))\b[^\n]*/
QUALIFIER.3: /(inline|no_inline|no_magic|magic|brie|btree_delete|btree|overridable|eqrel|choice-domain)\b(?!\s*[(:])/
           | /(input|output|printsize)\b(?!\s*[(:])/
PARAMETER: /\$[A-Za-z_][A-Za-z0-9_]*/
NAME: /[A-Za-z_?][A-Za-z0-9_?]*/
FLOAT.3: /[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?/
NUMBER.2: /0x[0-9a-fA-F]+|0b[01]+|[0-9]+u?/
STRING: /"(\\.|[^"\\\n])*"/
COMMENT: /\/\/[^\n]*/ | /\/\*(.|\n)*?\*\//
%ignore COMMENT
%ignore /\.plan\b[^\n]*/
%ignore /\s+/
"""

TYPES: dict[str, Type] = {"number": Int, "unsigned": Int, "float": Float, "symbol": String}
KINDS = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "avg", "avg": "avg"}
QUALIFIERS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable")
SIGNS = {"**": "^", "mod": "%"}
TESTS = ("contains", "match")
GOAL = re.compile(r"^\s*\?-")


@cache
def _parser(start: str) -> Lark:
    return Lark(GRAMMAR, parser="lalr", start=start, propagate_positions=True, maybe_placeholders=False)


def parse_program(text: str, source: str = "program") -> ir.Text:
    """The rules, facts, declarations and directives of a text.

    >>> program = parse_program("reach(x, z) :- reach(x, y), edge(y, z).  // one step further")
    >>> print(*program.rules)
    reach(x, z) :- reach(x, y), edge(y, z).
    """
    reader = Reader(source)
    for statement in _parse(text, source, "start").children:
        reader.statement(statement)
    return reader.result()


def parse_goal(text: str, source: str = "goal") -> ir.Atom:
    """A single atom, to be asked for: `tc("david", ?)`, or `?- tc("david", x).`; a `$name` stands for an argument that is
    given beside it.

    >>> print(parse_goal('tc("david", ?).'), parse_goal('?- tc("david", x).'))
    tc("david", _) tc("david", x)
    """
    found = _parse(GOAL.sub("", text).strip().removesuffix("."), source, "expr")
    literal = Reader(source).literal(found)
    if not isinstance(literal, ir.Atom):
        raise IncorrectError(f'{source}: a goal is one predicate, such as tc("david", ?), not {text!r}')
    return literal


def _parse(text: str, source: str, start: str) -> Tree[Any]:
    try:
        return _parser(start).parse(text)
    except UnexpectedInput as error:
        line, column = max(error.line, 1), max(error.column, 1)
        if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
            found = "the end of the text; is a '.' or a parenthesis missing?"
        elif isinstance(error, UnexpectedCharacters):
            found = repr(error.char)
        else:
            found = repr(str(getattr(error, "token", "")))
        shown = "\n" + error.get_context(text, 60).rstrip() if error.pos_in_stream is not None else ""
        raise IncorrectError(f"{source}:{line}:{column}: did not expect {found} here{shown}") from None


class Reader:
    """Turns the parser's trees into rules."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.rules: list[ir.Rule] = []
        self.declarations: list[ir.Declaration] = []
        self.directives: list[ir.Directive] = []
        self.improvements: list[ir.Improvement] = []
        self.types = dict(TYPES)
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
        elif kind == "type_alias":
            name, *of = map(str, children)
            found = {self._type(str(other), tree) for other in of} or {String}
            if len(found) > 1:
                raise self.wrong(
                    tree, f"type {name} is a union of numbers and texts; declare them as columns of their own"
                )
            self.types[name] = found.pop()
        elif kind in ("number_alias", "symbol_alias"):
            self.types[str(children[0])] = Int if kind == "number_alias" else String
        else:
            raise UnsupportedError(f"{self.position(tree)}: {children[0]} is Soufflé that is not supported here")

    def _type(self, name: str, tree: Tree[Any]) -> Type:
        if name not in self.types:
            raise self.wrong(tree, f"there is no type {name!r}; there are: {', '.join(self.types)}")
        return self.types[name]

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
        typed = tuple((str(c.children[0]), self._type(str(c.children[1]), c)) for c in columns)
        if len({name for name, _ in typed}) < len(typed):
            raise self.wrong(tree, f"two columns of {names[0]!r} have one name")
        for name in names:
            self.declarations.append(ir.Declaration(name, typed, self.position(tree)))

    def _clause(self, tree: Tree[Any]) -> None:
        heads, *rest = tree.children
        body = next((self.body(part) for part in rest if part.data == "body"), None)
        if heads.data == "subsumed":
            self._subsumption(tree, heads, body)
            return
        literals = () if body is None else self._flat(body, tree)
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
            self.rules.append(ir.Rule(str(name), found, literals, self.position(head)))

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
            opposite = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
            return ir.Comparison(opposite[inner.op], inner.left, inner.right, inner.position)
        if isinstance(inner, ir.Condition):
            return ir.Condition(ir.Compute("not", (inner.test,)), inner.position)
        if isinstance(inner, ir.Disjunction):
            return ir.Conjunction((inner,), None, self.position(tree))
        raise self.wrong(tree, f"cannot negate {inner}")

    def _comparison(self, tree: Tree[Any]) -> ir.Literal:
        left, sign, right = tree.children
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Tree) and other.data.startswith("aggregate"):
                return self._aggregation(tree, one, str(sign), other)
        return ir.Comparison(str(sign), self.term(left), self.term(right), self.position(tree))

    def _aggregation(self, tree: Tree[Any], result: Tree[Any], sign: str, of: Tree[Any]) -> ir.Literal:
        term = self.term(result)
        if sign == "=" and isinstance(term, ir.Variable) and not term.anonymous:
            return self.aggregate(of, term)
        fresh = self.fresh("value")
        both = (self.aggregate(of, fresh), ir.Comparison(sign, term, fresh, self.position(tree)))
        if sign not in ("=", "!=") and result is not tree.children[0]:
            flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
            both = (both[0], ir.Comparison(flipped[sign], term, fresh, self.position(tree)))
        return ir.Disjunction((both,), None, self.position(tree))

    def aggregate(self, tree: Tree[Any], result: ir.Variable) -> ir.Aggregation:
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

    def fresh(self, name: str) -> ir.Variable:
        """A variable that no text can name."""
        self._fresh += 1
        return ir.Variable(f"{name} {self._fresh}")

    def head_term(self, tree: Any, has_body: bool) -> ir.HeadTerm:
        """A term of a head, where `sum(x)` and its like are aggregates."""
        if isinstance(tree, Tree) and tree.data == "call" and has_body:
            name, *terms = tree.children
            if str(name) in KINDS and len(terms) <= 1:
                kind = KINDS[str(name)]
                if not terms and kind != "count":
                    raise self.wrong(tree, f"{name} is taken of a term: {name}(x)")
                of = self.term(terms[0]) if terms else None
                if isinstance(of, ir.Variable) and of.anonymous and kind == "count":
                    of = None
                return ir.Aggregate(kind, of)
        if isinstance(tree, Tree) and tree.data.startswith("aggregate"):
            raise self.wrong(tree, "an aggregate over a body of its own goes into the body: n = count : { ... }")
        return self.term(tree)

    def term(self, tree: Any) -> ir.Term:
        """A term."""
        match tree.data:
            case "variable":
                name = str(tree.children[0])
                return self.fresh("_") if name in ("_", "?") else ir.Variable(name.removeprefix("?"))
            case "number":
                return ir.Constant(self._number(tree))
            case "float":
                return ir.Constant(float(tree.children[0]))
            case "string":
                return ir.Constant(unquoted(tree.children[0]))
            case "parameter":
                return ir.Variable(str(tree.children[0]))
            case "parenthesis":
                return self.term(tree.children[0])
            case "minus":
                inner = self.term(tree.children[-1])
                if isinstance(inner, ir.Constant) and isinstance(inner.value, int | float):
                    return ir.Constant(-inner.value)
                return ir.Compute("-", (inner,))
            case "binary":
                left, sign, right = tree.children
                return ir.Compute(SIGNS.get(str(sign), str(sign)), (self.term(left), self.term(right)))
            case "call":
                name, *terms = tree.children
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
