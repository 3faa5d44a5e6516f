"""Reads the text of a pattern: `MATCH ... WHERE ... COLUMNS (...)`, with or without `GRAPH_TABLE (graph ...)` around it."""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput, VisitError

import tektite as tk
from tektite.graph.pattern.syntax import (
    CallTerm,
    EdgePattern,
    GraphPattern,
    LiteralTerm,
    NodePattern,
    PathPattern,
    PropertyTerm,
    Quantifier,
)

GRAMMAR = r"""
start: "GRAPH_TABLE"i "(" NAME body ")" -> named
     | body -> unnamed
body: "MATCH"i path ("," path)* where? "COLUMNS"i "(" column ("," column)* ")"

path: "ANY"i? node (edge quantifier? node)*
node: "(" filler ")"
edge: "-[" filler "]->"  -> out_edge
    | "<-[" filler "]-"  -> in_edge
    | "-[" filler "]-"   -> any_edge
    | "->"               -> out_arrow
    | "<-"               -> in_arrow
    | "-"                -> any_arrow
filler: NAME? labels? where?
labels: ("IS"i | ":") NAME ("|" NAME)*
where: "WHERE"i condition

quantifier: "*"                     -> star
          | "+"                     -> plus
          | "{" INT "}"             -> exactly
          | "{" INT "," "}"         -> at_least
          | "{" INT "," INT "}"     -> between_counts
          | "{" "," INT "}"         -> at_most

column: sum ["AS"i NAME]

?condition: conjunction ("OR"i conjunction)*  -> disjunction
?conjunction: negation ("AND"i negation)*
?negation: "NOT"i negation -> not_
         | comparison
?comparison: sum
           | sum COMPARE sum -> compare
           | sum "IS"i "NULL"i -> is_null
           | sum "IS"i "NOT"i "NULL"i -> is_not_null
           | sum "IN"i "(" sum ("," sum)* ")" -> is_in
           | sum "BETWEEN"i sum "AND"i sum -> between
           | sum "LIKE"i STRING -> like
?sum: product
    | sum "+" product -> add
    | sum "-" product -> subtract
?product: atom
        | product "*" atom -> multiply
?atom: NAME "." NAME -> property
     | FLOAT -> number
     | INT -> whole
     | STRING -> text
     | "TRUE"i -> true
     | "FALSE"i -> false
     | "-" atom -> minus
     | "(" condition ")"

COMPARE: "<=" | ">=" | "<>" | "!=" | "=" | "<" | ">"
STRING: "'" ("''" | /[^']/)* "'"
FLOAT: /\d+\.\d+/
NAME: /(?!(?:MATCH|WHERE|COLUMNS|IS|AS|AND|OR|NOT|IN|BETWEEN|LIKE|ANY|NULL|TRUE|FALSE|GRAPH_TABLE)\b)[A-Za-z_]\w*/i | /"[^"]+"/

%import common.INT
%import common.WS
%ignore WS
%ignore /--[^\n]*/
"""
COMPARISONS = {"<=": "le", ">=": "ge", "<>": "ne", "!=": "ne", "=": "eq", "<": "lt", ">": "gt"}
LONGEST = 32
"""The greatest number of edges that a quantifier may ask for one by one: each is a step of the dataflow."""


def parse(text: str) -> GraphPattern:
    """The pattern of a text. An error shows the place."""
    if not isinstance(text, str):
        raise tk.IncorrectError(f"a pattern is text such as MATCH (a)-[e]->(b) COLUMNS (a.id), not {text!r}")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        shown = error.get_context(text, span=60).rstrip("\n")
        raise tk.IncorrectError(
            f"pattern: line {error.line}, column {error.column}: this does not continue a pattern:\n{shown}"
        ) from None
    try:
        found: GraphPattern = _PatternReader().transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, tk.TektiteError):
            raise error.orig_exc from None
        raise
    return found


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=False, maybe_placeholders=True)


class _Where:
    """A condition between the parts of a filler."""

    def __init__(self, term: Any) -> None:
        self.term = term


class _PatternReader(Transformer[Token, Any]):
    """Turns lark's tree into a pattern. Nodes and edges without a name get one that no text can have."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def _named(self, name: str | None) -> str:
        if name is not None:
            return name
        self.count += 1
        return f"#{self.count}"

    def NAME(self, token: Token) -> str:
        return str(token).strip('"')

    def INT(self, token: Token) -> int:
        return int(token)

    def STRING(self, token: Token) -> str:
        return str(token)[1:-1].replace("''", "'")

    def named(self, parts: list[Any]) -> GraphPattern:
        graph, (paths, where, columns) = parts
        return GraphPattern(graph, paths, where, columns)

    def unnamed(self, parts: list[Any]) -> GraphPattern:
        paths, where, columns = parts[0]
        return GraphPattern(None, paths, where, columns)

    def body(self, parts: list[Any]) -> tuple[Any, ...]:
        paths = tuple(part for part in parts if isinstance(part, PathPattern))
        where = next((part.term for part in parts if isinstance(part, _Where)), None)
        return paths, where, tuple(part for part in parts if isinstance(part, tuple))

    def column(self, parts: list[Any]) -> tuple[str | None, Any]:
        term, name = parts
        return name, term

    def path(self, parts: list[Any]) -> PathPattern:
        nodes = tuple(part for part in parts if isinstance(part, NodePattern))
        edges: list[EdgePattern] = []
        for part in parts:
            if isinstance(part, EdgePattern):
                edges.append(part)
            elif isinstance(part, Quantifier):
                last = edges.pop()
                edges.append(EdgePattern(last.variable, last.direction, last.labels, last.where, part, last.named))
        return PathPattern(nodes, tuple(edges))

    def filler(self, parts: list[Any]) -> tuple[str | None, tuple[str, ...], Any]:
        name = next((part for part in parts if isinstance(part, str)), None)
        labels = next((part for part in parts if isinstance(part, tuple)), ())
        return name, labels, next((part.term for part in parts if isinstance(part, _Where)), None)

    def labels(self, parts: list[str]) -> tuple[str, ...]:
        return tuple(parts)

    def where(self, parts: list[Any]) -> _Where:
        return _Where(parts[0])

    def node(self, parts: list[Any]) -> NodePattern:
        name, labels, where = parts[0]
        return NodePattern(self._named(name), labels, where)

    def _edge(self, direction: str, filler: tuple[str | None, tuple[str, ...], Any]) -> EdgePattern:
        name, labels, where = filler
        return EdgePattern(self._named(name), direction, labels, where, named=name is not None)

    def out_edge(self, parts: list[Any]) -> EdgePattern:
        return self._edge("out", parts[0])

    def in_edge(self, parts: list[Any]) -> EdgePattern:
        return self._edge("in", parts[0])

    def any_edge(self, parts: list[Any]) -> EdgePattern:
        return self._edge("any", parts[0])

    def out_arrow(self, _: list[Any]) -> EdgePattern:
        return self._edge("out", (None, (), None))

    def in_arrow(self, _: list[Any]) -> EdgePattern:
        return self._edge("in", (None, (), None))

    def any_arrow(self, _: list[Any]) -> EdgePattern:
        return self._edge("any", (None, (), None))

    def _quantifier(self, least: int, most: int | None) -> Quantifier:
        if max(least, most or 0) > LONGEST:
            raise tk.UnsupportedError(
                f"pattern: a quantifier asks for {max(least, most or 0)} edges; it may count up to {LONGEST}, or be unbounded (*)"
            )
        if most is not None and most < max(least, 1):
            raise tk.IncorrectError(f"pattern: the quantifier {{{least},{most}}} has no edge to match")
        return Quantifier(least, most)

    def star(self, _: list[Any]) -> Quantifier:
        return Quantifier(0, None)

    def plus(self, _: list[Any]) -> Quantifier:
        return Quantifier(1, None)

    def exactly(self, parts: list[int]) -> Quantifier:
        return self._quantifier(parts[0], parts[0])

    def at_least(self, parts: list[int]) -> Quantifier:
        return self._quantifier(parts[0], None)

    def between_counts(self, parts: list[int]) -> Quantifier:
        return self._quantifier(parts[0], parts[1])

    def at_most(self, parts: list[int]) -> Quantifier:
        return self._quantifier(0, parts[0])

    def _call(self, op: str, parts: list[Any]) -> Any:
        return CallTerm(op, tuple(parts))

    def disjunction(self, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self._call("or", parts)

    def conjunction(self, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self._call("and", parts)

    def not_(self, parts: list[Any]) -> Any:
        return self._call("not", parts)

    def compare(self, parts: list[Any]) -> Any:
        left, op, right = parts
        return self._call(COMPARISONS[str(op)], [left, right])

    def is_null(self, parts: list[Any]) -> Any:
        return self._call("is_null", parts)

    def is_not_null(self, parts: list[Any]) -> Any:
        return self._call("is_not_null", parts)

    def is_in(self, parts: list[Any]) -> Any:
        return self._call("or", [self._call("eq", [parts[0], part]) for part in parts[1:]])

    def between(self, parts: list[Any]) -> Any:
        value, low, high = parts
        return self._call("and", [self._call("ge", [value, low]), self._call("le", [value, high])])

    def like(self, parts: list[Any]) -> Any:
        return self._call("like", [parts[0], LiteralTerm(parts[1])])

    def add(self, parts: list[Any]) -> Any:
        return self._call("add", parts)

    def subtract(self, parts: list[Any]) -> Any:
        return self._call("subtract", parts)

    def multiply(self, parts: list[Any]) -> Any:
        return self._call("multiply", parts)

    def minus(self, parts: list[Any]) -> Any:
        return self._call("minus", parts)

    def property(self, parts: list[str]) -> PropertyTerm:
        return PropertyTerm(parts[0], parts[1])

    def number(self, parts: list[Token]) -> LiteralTerm:
        return LiteralTerm(float(parts[0]))

    def whole(self, parts: list[int]) -> LiteralTerm:
        return LiteralTerm(parts[0])

    def text(self, parts: list[str]) -> LiteralTerm:
        return LiteralTerm(parts[0])

    def true(self, _: list[Any]) -> LiteralTerm:
        return LiteralTerm(True)

    def false(self, _: list[Any]) -> LiteralTerm:
        return LiteralTerm(False)
