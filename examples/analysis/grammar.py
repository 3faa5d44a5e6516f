"""Context-free reachability: a grammar as Graspan takes it, compiled to Datalog.

A line `A B C` of a grammar says: an edge B from x to y and an edge C from y to z make an edge A from x to z. `A B` renames,
`A` alone makes an edge from each node to itself, and `-B` is B backwards. Any number of symbols may follow the first. A
symbol that begins no line is a label of the input's edges. `#` begins a comment.

Whatever is wrong with a grammar is a `BadGrammar` that names the line. Nothing is registered then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tektite as tk

SYMBOL = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*'*")
NODE = "node"


class BadGrammar(ValueError):
    """A grammar that cannot be read, or edges that do not fit it."""


@dataclass(frozen=True)
class Production:
    """A line of a grammar: what it derives, from what."""

    head: str
    body: tuple[str, ...]


@dataclass(frozen=True)
class Grammar:
    """The productions of a grammar, and the labels that they are made of.

    >>> grammar = read_grammar("N n  # a null assignment\\nN N e")
    >>> grammar.labels, grammar.derived
    (('e', 'n'), ('N',))
    >>> print(grammar.datalog())
    .decl edge_e(x: symbol, y: symbol)
    .decl edge_n(x: symbol, y: symbol)
    .decl N(x: symbol, y: symbol)
    N(x0, x1) :- edge_n(x0, x1).
    N(x0, x2) :- N(x0, x1), edge_e(x1, x2).
    """

    productions: tuple[Production, ...]

    @property
    def derived(self) -> tuple[str, ...]:
        """The symbols that the grammar derives."""
        return tuple(sorted({one.head for one in self.productions}))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the input's edges."""
        named = {symbol.removeprefix("-") for one in self.productions for symbol in one.body}
        return tuple(sorted(named - {*self.derived}))

    def predicate(self, symbol: str) -> str:
        """The predicate of a symbol. Primes are spelled out, and the input's labels have names of their own."""
        name = symbol.replace("'", "_prime")
        return name if symbol in self.derived else f"edge_{name}"

    def datalog(self) -> str:
        """The grammar as a Datalog program."""
        names = [self.predicate(one) for one in (*self.labels, *self.derived)]
        lines = [f".decl {name}(x: symbol, y: symbol)" for name in names]
        if any(not one.body for one in self.productions):
            lines.append(f".decl {NODE}(x: symbol)")
            for label in self.labels:
                edge = self.predicate(label)
                lines += [f"{NODE}(x) :- {edge}(x, _).", f"{NODE}(y) :- {edge}(_, y)."]
        lines += [self.rule(one) for one in self.productions]
        return "\n".join(lines)

    def rule(self, production: Production) -> str:
        head = self.predicate(production.head)
        if not production.body:
            return f"{head}(x, x) :- {NODE}(x)."
        atoms = []
        for place, symbol in enumerate(production.body):
            start, end = f"x{place}", f"x{place + 1}"
            if symbol.startswith("-"):
                start, end = end, start
            atoms.append(f"{self.predicate(symbol.removeprefix('-'))}({start}, {end})")
        return f"{head}(x0, x{len(atoms)}) :- {', '.join(atoms)}."


def read_grammar(text: str, source: str = "grammar") -> Grammar:
    """The grammar that a text says.

    >>> read_grammar("N n\\nN N 3e", "null.grammar")
    Traceback (most recent call last):
    ...
    examples.analysis.grammar.BadGrammar: null.grammar, line 2: '3e' is no symbol: a letter, then letters, digits, _ or '
    """
    productions: dict[Production, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        for word in words:
            if not SYMBOL.fullmatch(word):
                what = "a letter, then letters, digits, _ or '"
                raise BadGrammar(f"{source}, line {number}: {word!r} is no symbol: {what}")
        if not words:
            continue
        head, *body = words
        if head.startswith("-"):
            raise BadGrammar(
                f"{source}, line {number}: a line derives {head[1:]!r}, not {head!r}: turn its symbols round instead"
            )
        if body == [head]:
            raise BadGrammar(f"{source}, line {number}: {head!r} is derived from itself alone")
        productions[Production(head, tuple(body))] = None
    if not productions:
        raise BadGrammar(f"{source}: has no productions; a line is a symbol and what it is made of, such as `N N e`")
    grammar = Grammar(tuple(productions))
    check(grammar, source)
    return grammar


def check(grammar: Grammar, source: str) -> None:
    """Refuse symbols that share a predicate, and symbols that no edges can ever make."""
    names: dict[str, str] = {NODE: "the nodes"}
    for symbol in (*grammar.labels, *grammar.derived):
        name = grammar.predicate(symbol)
        if name in names:
            raise BadGrammar(f"{source}: {symbol!r} and {names[name]!r} would both be called {name!r}: rename one")
        names[name] = symbol
    productive = {*grammar.labels}
    growing = True
    while growing:
        found = {one.head for one in grammar.productions if all(s.removeprefix("-") in productive for s in one.body)}
        growing = not found <= productive
        productive |= found
    empty = [symbol for symbol in grammar.derived if symbol not in productive]
    if empty:
        raise BadGrammar(
            f"{source}: {empty[0]!r} can never be derived: each of its lines needs a symbol that needs {empty[0]!r}"
        )


Edge = tuple[str, str, str]


class Reachability:
    """The edges of an input, and what a grammar derives from them. Both are kept up to date."""

    def __init__(self, grammar: Grammar, engine: tk.Engine) -> None:
        self.grammar, self.engine = grammar, engine
        self.program = engine.datalog(grammar.datalog())

    def insert(self, edges: Iterable[Edge]) -> None:
        """Add edges (from, to, label), in one epoch."""
        self._change(edges, "insert")

    def remove(self, edges: Iterable[Edge]) -> None:
        """Remove edges, in one epoch."""
        self._change(edges, "remove")

    def _change(self, edges: Iterable[Edge], how: str) -> None:
        by_label: dict[str, list[tuple[str, str]]] = {}
        for start, end, label in edges:
            by_label.setdefault(label, []).append((start, end))
        unknown = sorted({*by_label} - {*self.grammar.labels})
        if unknown:
            known = ", ".join(self.grammar.labels)
            raise BadGrammar(f"edges with the label {unknown[0]!r}: the grammar's labels are {known}")
        with self.engine.transaction():
            for label, rows in by_label.items():
                getattr(self.engine.table(self.grammar.predicate(label)), how)(rows)

    def view(self, symbol: str) -> tk.View:
        """All edges of a symbol."""
        return self.program[self._derived(symbol)]

    def goal(self, symbol: str, start: str | None = None, end: str | None = None) -> list[tuple[str, ...]]:
        """The edges of a symbol from a node, or to one: only what leads to the answer is derived."""
        parameters: dict[str, Any] = {
            name: value for name, value in (("start", start), ("end", end)) if value is not None
        }
        terms = ["$start" if start is not None else "?", "$end" if end is not None else "?"]
        query = self.engine.query(f"{self._derived(symbol)}({', '.join(terms)})", **parameters)
        try:
            return sorted(query.rows())
        finally:
            query.drop()

    def _derived(self, symbol: str) -> str:
        if symbol not in self.grammar.derived:
            raise BadGrammar(f"the grammar does not derive {symbol!r}; it derives {', '.join(self.grammar.derived)}")
        return self.grammar.predicate(symbol)


def read_edges(path: Path) -> Iterator[Edge]:
    """Edges of a file: a line has the two nodes and the label, with spaces or tabs between them."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if words and len(words) != 3:
            raise BadGrammar(f"{path}, line {number}: an edge is two nodes and a label, found {len(words)} words")
        if words:
            yield words[0], words[1], words[2]
