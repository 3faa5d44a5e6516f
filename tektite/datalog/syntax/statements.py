"""Declarations, directives, types and functors; a text as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from tektite.datalog.syntax.ir import NOWHERE, Atom, Literal, Rule, TextPosition
from tektite.values.types import Type


@dataclass(frozen=True)
class Structure:
    """A type whose values have fields: a record type, whose one tag is None, or a type of tagged values. The fields of each tag
    have names and types; a type is "number", "unsigned", "float", "symbol" or the name of another structure.
    """

    name: str
    tags: tuple[tuple[str | None, tuple[tuple[str, str], ...]], ...]

    def fields(self, tag: str | None) -> tuple[tuple[str, str], ...] | None:
        """The fields of a tag, if the type has it."""
        return dict(self.tags).get(tag)


@dataclass(frozen=True)
class Functor:
    """A function that is written in Python, declared: the types of its arguments and of its result, by name."""

    name: str
    arguments: tuple[str, ...]
    result: str
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Declaration:
    """The columns of a predicate, declared.

    `unsigned` are the columns whose facts hold no negative number, `structures` the name of the structure of each column that
    has one. `equivalence` says that the predicate is an equivalence relation. `choices` are groups of columns: of the facts that
    agree on such a group, one stays.
    """

    predicate: str
    columns: tuple[tuple[str, Type], ...]
    position: TextPosition = field(default=NOWHERE, compare=False)
    unsigned: tuple[str, ...] = ()
    structures: tuple[str | None, ...] = ()
    equivalence: bool = False
    choices: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Directive:
    """`.input`, `.output` or `.printsize` of a predicate, with its options."""

    kind: str
    predicate: str
    options: tuple[tuple[str, str], ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)

    def option(self, name: str, default: str) -> str:
        return dict(self.options).get(name, default)


@dataclass(frozen=True)
class Improvement:
    """Of two facts of a predicate that agree elsewhere, the one with the least (or greatest) value in a column stays."""

    predicate: str
    column: int
    kind: str
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Subsumption:
    """`worse <= better :- body`: a fact goes if there is another that the body allows in its place."""

    worse: Atom
    better: Atom
    body: tuple[Literal, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.worse} <= {self.better} :- {', '.join(map(str, self.body))}."


@dataclass(frozen=True)
class Text:
    """A parsed text: declarations, rules (facts among them) and directives, in its order."""

    source: str
    rules: tuple[Rule, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    directives: tuple[Directive, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    structures: tuple[Structure, ...] = ()
    functors: tuple[Functor, ...] = ()
    subsumptions: tuple[Subsumption, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for people about statements that have no effect here."""
