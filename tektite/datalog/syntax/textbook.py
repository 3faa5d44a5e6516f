"""The textbook syntax, as Soufflé writes it: text to rules, declarations and directives.

Identifiers in terms are variables, whatever their case; texts stand in double quotes; `_` and `?` match anything. Components
are expanded first, so that the rules of their instances are rules like any others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lark import Token, Tree

from tektite.datalog.syntax import ir, statements
from tektite.datalog.syntax.components import expanded
from tektite.datalog.syntax.declared_types import STATEMENTS, DeclaredTypes, column_type, is_structure
from tektite.datalog.syntax.grammar import parse
from tektite.datalog.syntax.preprocessor import LinePlace, preprocessed
from tektite.datalog.syntax.terms import TermReader, unquoted
from tektite.errors import IncorrectError, UnsupportedError
from tektite.values.types import Bool

GOAL = re.compile(r"^(\s*)\?-")


def parse_program(
    text: str,
    source: str = "program",
    macros: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
    known: Collection[str] = (),
) -> statements.Text:
    """The rules, facts, declarations and directives of a text. `macros` are defined before it begins; `folders` have the files
    that it includes, if they do not lie beside it. `known` are structures that earlier texts declare.

    >>> program = parse_program("reach(x, z) :- reach(x, y), edge(y, z).  // one step further")
    >>> print(*program.rules)
    reach(x, z) :- reach(x, y), edge(y, z).
    """
    given = preprocessed(text, source, macros, folders)
    reader = TextbookReader(source, given.text, given.places, known)
    statements = expanded(parse(given.text, source, "start", given.places).children, reader.wrong)
    for statement in statements:
        if statement.data in STATEMENTS:
            reader.types.add(statement)
    for statement in statements:
        if statement.data not in STATEMENTS:
            reader.statement(statement)
    return reader.result()


def parse_goal(text: str, source: str = "goal") -> ir.Atom:
    """A single atom, to be asked for: `tc("david", ?)`, or `?- tc("david", x).`; a `$name` stands for an argument that is
    given beside it.

    >>> print(parse_goal('tc("david", ?).'), parse_goal('?- tc("david", x).'))
    tc("david", _) tc("david", x)
    """
    without_mark = GOAL.sub(r"\1  ", text)  # places stay those of the text
    found = parse(without_mark.rstrip().removesuffix("."), source, "expr")
    literal = TermReader(source, text, goal=True).literal(found)
    if not isinstance(literal, ir.Atom):
        raise IncorrectError(f'{source}: a goal is one predicate, such as tc("david", ?), not {text!r}')
    return literal


class TextbookReader(TermReader):
    """Turns the parser's trees into rules."""

    def __init__(self, source: str, text: str, places: Sequence[LinePlace] | None, known: Collection[str]) -> None:
        super().__init__(source, text, places=places)
        self.types = DeclaredTypes(self.wrong, known)
        self.rules: list[ir.Rule] = []
        self.declarations: list[statements.Declaration] = []
        self.directives: list[statements.Directive] = []
        self.improvements: list[statements.Improvement] = []
        self.functors: list[statements.Functor] = []
        self.subsumptions: list[statements.Subsumption] = []
        self.notes: list[str] = []

    def result(self) -> statements.Text:
        """Everything read so far."""
        return statements.Text(
            self.source,
            tuple(self.rules),
            tuple(self.declarations),
            tuple(self.directives),
            tuple(self.improvements),
            self.types.structures(),
            tuple(self.functors),
            tuple(self.subsumptions),
            tuple(self.notes),
        )

    def written(self, tree: Tree[Any]) -> str:
        """A clause as it stands in the text, on one line; nothing where comments stand in it."""
        found = self.text[tree.meta.start_pos : tree.meta.end_pos]
        return "" if "//" in found or "/*" in found else " ".join(found.split())

    def statement(self, tree: Tree[Any]) -> None:
        """Take one statement in."""
        match tree.data:
            case "clause":
                self._clause(tree)
            case "declaration":
                self._declaration(tree)
            case "directive":
                self._directive(tree)
            case "functor":
                self._functor(tree)
            case "pragma":
                shown = " ".join(map(str, tree.children))
                self.notes.append(f"{self.position(tree)}: .pragma {shown} has no effect here")

    def _directive(self, tree: Tree[Any]) -> None:
        kind, *targets = tree.children
        each = [tuple((str(o.children[0]), unquoted(o.children[1])) for o in t.children[1:]) for t in targets]
        # Soufflé has the options behind the last relation, for all of them.
        shared = each[-1] if not any(each[:-1]) else ()
        for target, options in zip(targets, each, strict=True):
            name = str(target.children[0])
            self.directives.append(statements.Directive(str(kind)[1:], name, options or shared, self.position(target)))

    def _functor(self, tree: Tree[Any]) -> None:
        name, *columns = [child for child in tree.children if isinstance(child, Tree) or child.type != "STATEFUL"]
        if any(isinstance(child, Token) and child.type == "STATEFUL" for child in tree.children):
            raise UnsupportedError(
                f"{self.position(tree)}: functor {name} is stateful: a function must give the same value whenever it is called"
            )
        *arguments, result = [str(c.children[-1]) if isinstance(c, Tree) else str(c) for c in columns]
        kinds = [self.types.field(kind, tree) for kind in (*arguments, result)]
        self.functors.append(statements.Functor(str(name), tuple(kinds[:-1]), kinds[-1], self.position(tree)))

    def _declaration(self, tree: Tree[Any]) -> None:
        tokens = [child for child in tree.children if isinstance(child, Token)]
        names = [str(token) for token in tokens if token.type != "QUALIFIER"]
        columns = [c for c in tree.children if isinstance(c, Tree) and c.data == "column"]
        equivalence = False
        for qualifier in [str(token) for token in tokens if token.type == "QUALIFIER"]:
            if qualifier in ("input", "output", "printsize"):
                for name in names:
                    self.directives.append(statements.Directive(qualifier, name, (), self.position(tree)))
            elif qualifier == "eqrel":
                equivalence = True
        kinds = [(str(c.children[0]), self.types.resolved(str(c.children[1]), c)) for c in columns]
        typed = tuple((name, column_type(kind)) for name, kind in kinds) or ((ir.HOLDS_COLUMN, Bool),)
        if len({name for name, _ in typed}) < len(typed):
            raise self.wrong(tree, f"two columns of {names[0]!r} have one name")
        if equivalence and (len(typed) != 2 or typed[0][1] != typed[1][1]):
            raise self.wrong(tree, f"{names[0]!r} is an equivalence relation: it needs two columns of one type")
        choices = self._choices(tree, [name for name, _ in typed])
        if equivalence and choices:
            raise self.wrong(
                tree, f"{names[0]!r} is an equivalence relation, and has a choice-domain: it can be one of them"
            )
        structures = tuple(kind if is_structure(kind) else None for _, kind in kinds)
        for name in names:
            self.declarations.append(
                statements.Declaration(
                    name,
                    typed,
                    self.position(tree),
                    tuple(name for name, kind in kinds if kind == "unsigned"),
                    structures if any(structures) else (),
                    equivalence,
                    choices,
                )
            )

    def _choices(self, tree: Tree[Any], columns: list[str]) -> tuple[tuple[str, ...], ...]:
        """The groups of columns behind choice-domain."""
        found = []
        for choice in tree.children:
            if not isinstance(choice, Tree) or choice.data != "choice":
                continue
            for domain in choice.children:
                group = tuple(map(str, domain.children))
                for name in group:
                    if name not in columns:
                        raise self.wrong(
                            domain, f"choice-domain: there is no column {name!r}; there are: {', '.join(columns)}"
                        )
                found.append(group)
        return tuple(found)

    def _clause(self, tree: Tree[Any]) -> None:
        heads, *rest = tree.children
        body = next((self.body(part) for part in rest if part.data == "body"), None)
        if heads.data == "subsumed":
            self._subsumption(tree, heads, body)
            return
        literals = () if body is None else self.flat(body, tree)
        written = self.written(tree)
        for head in heads.children:
            if isinstance(head, Tree) and head.data == "binary" and is_goal(head):
                raise self.wrong(head, "'?-' asks, and rules say: give the goal to engine.query, or name it in .output")
            if not isinstance(head, Tree) or head.data != "call":
                raise self.wrong(head, "what a rule says is one predicate applied to terms")
            name, *terms = head.children
            found, beside = self.head(terms, body is not None)
            self.rules.append(ir.Rule(str(name), found, (*literals, *beside), self.position(head), written))

    def _subsumption(self, tree: Tree[Any], heads: Tree[Any], body: tuple[tuple[ir.Literal, ...], ...] | None) -> None:
        """`p(x, a) <= p(x, b) :- b <= a.`: of the facts that agree on x, the least stays."""
        left, sign, right = heads.children
        worse, better = self.literal(left), self.literal(right)
        atoms = isinstance(worse, ir.Atom) and isinstance(better, ir.Atom)
        if sign != "<=" or not atoms or not body:
            raise self.wrong(tree, "a subsumption is p(x, a) <= p(x, b) :- b <= a.")
        assert isinstance(worse, ir.Atom) and isinstance(better, ir.Atom)
        if (worse.predicate, len(worse.terms)) != (better.predicate, len(better.terms)):
            raise self.wrong(tree, f"a fact of {worse.predicate!r} is subsumed by another of it, not by {better}")
        place = self.position(tree)
        test = body[0][0] if len(body) == 1 and len(body[0]) == 1 else None
        differing = [i for i, pair in enumerate(zip(worse.terms, better.terms, strict=True)) if pair[0] != pair[1]]
        if isinstance(test, ir.Comparison) and len(differing) == 1:
            a, b = worse.terms[differing[0]], better.terms[differing[0]]
            ways = {(b, "<=", a): "min", (b, "<", a): "min", (a, ">=", b): "min", (a, ">", b): "min",
                    (b, ">=", a): "max", (b, ">", a): "max", (a, "<=", b): "max", (a, "<", b): "max"}  # fmt: skip
            kind = ways.get((test.left, test.op, test.right))
            if kind is not None:
                self.improvements.append(statements.Improvement(worse.predicate, differing[0], kind, place))
                return
        self.subsumptions.append(statements.Subsumption(worse, better, self.flat(body, tree), place))


def is_goal(tree: Tree[Any]) -> bool:
    """Whether an expression begins with `?-`, which reads like the difference of `?` and something."""
    first, sign = tree.children[:2]
    return isinstance(first, Tree) and first.data == "variable" and first.children[0] == "?" and sign == "-"
