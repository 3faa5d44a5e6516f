"""The common form of rules: terms, literals and rules, each with its place in the text.

Positions are for messages; two rules that differ in nothing else are equal. A variable written `_` is
anonymous: it stands once, matches anything, and is never looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite

from tektite.expr.record_text import PythonFunction

Value = int | float | str | bool


class WrittenNumber(float):
    """A number with a point of which no float has all digits: it keeps its text, for a decimal that it may stand for."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def __neg__(self) -> WrittenNumber:
        return _written(self.text[1:] if self.text.startswith("-") else f"-{self.text}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrittenNumber) and Decimal(self.text) == Decimal(other.text)

    def __hash__(self) -> int:
        return hash(Decimal(self.text))


def written_number(text: str) -> float:
    """A number with a point.

    >>> written_number("1.50"), written_number("99999999999999999999.01"), -written_number("99999999999999999999.01")
    (1.5, 99999999999999999999.01, -99999999999999999999.01)
    """
    value = float(text)
    return value if not isfinite(value) or Decimal(repr(value)) == Decimal(text) else _written(text)


def _written(text: str) -> WrittenNumber:
    found = WrittenNumber(text)
    found.text = text
    return found


AGGREGATES = ("count", "sum", "min", "max", "avg", "count-distinct", "median", "variance", "stddev")


@dataclass(frozen=True)
class TextPosition:
    """A place in a text."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


NOWHERE = TextPosition("program", 1, 1)


@dataclass(frozen=True)
class RuleVariable:
    """A name for a value, the same throughout one rule."""

    name: str

    @property
    def anonymous(self) -> bool:
        return self.name.startswith("_ ")

    def __str__(self) -> str:
        return "_" if self.anonymous else self.name


@dataclass(frozen=True)
class Constant:
    """A value written in the text."""

    value: Value

    # 1, 1.0 and True are equal in Python, and three constants here.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value).__name__, self.value))

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, str):
            return '"' + self.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(self.value)


@dataclass(frozen=True)
class Compute:
    """A function of other terms: an operator sign or a function's name, and what it is applied to."""

    op: str
    args: tuple[Term, ...]

    def __str__(self) -> str:
        if len(self.args) == 2 and not self.op[0].isalpha():
            return f"({self.args[0]} {self.op} {self.args[1]})"
        if len(self.args) == 1 and self.op == "-":
            return f"-{self.args[0]}"
        return f"{self.op}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class FunctorCall(Compute):
    """A function that is written in Python, of other terms."""

    function: PythonFunction


@dataclass(frozen=True)
class HeadAggregate:
    """An aggregate in a head: of what the term comes to in each binding of the body, or of the bindings themselves."""

    kind: str
    of: Term | None

    def __str__(self) -> str:
        return f"{self.kind}({'' if self.of is None else self.of})"


@dataclass(frozen=True)
class Construct:
    """A record `[a, b]`, a tagged value `$Tag(a, b)`, or nil, which has no args. `rules.records` replaces it."""

    tag: str | None
    args: tuple[Term, ...] | None

    def __str__(self) -> str:
        if self.args is None:
            return "nil"
        shown = ", ".join(map(str, self.args))
        return f"[{shown}]" if self.tag is None else f"${self.tag}({shown})" if self.args else f"${self.tag}"


HOLDS = Constant(True)
"""The one value in the one column of a predicate that is written without columns."""
HOLDS_COLUMN = "holds"

Term = RuleVariable | Constant | Compute | Construct
HeadTerm = Term | HeadAggregate


@dataclass(frozen=True)
class Atom:
    """A predicate applied to terms."""

    predicate: str
    terms: tuple[Term, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True)
class Negation:
    """True where no fact matches the atom; its anonymous variables match anything."""

    atom: Atom

    @property
    def position(self) -> TextPosition:
        return self.atom.position

    def __str__(self) -> str:
        return f"!{self.atom}"


@dataclass(frozen=True)
class Comparison:
    """A comparison of two terms; `=` also gives a variable the value of the other side."""

    op: str
    left: Term
    right: Term
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Condition:
    """A function that is true or false, such as contains(a, b)."""

    test: Compute
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return str(self.test)


@dataclass(frozen=True)
class Aggregation:
    """`result = kind of : { body }`: an aggregate over the bindings of a body of its own.

    `outer` are the variables of the body whose values the rule around it gives, None before `rules.scopes` has decided;
    `witnesses` are those whose values the body gives to the rule. All other variables of the body are its own.
    """

    result: RuleVariable
    kind: str
    of: Term | None
    body: tuple[Literal, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)
    outer: tuple[RuleVariable, ...] | None = None
    witnesses: tuple[RuleVariable, ...] = ()

    def __str__(self) -> str:
        of = "" if self.of is None else f" {self.of}"
        return f"{self.result} = {self.kind}{of} : {{ {', '.join(map(str, self.body))} }}"


@dataclass(frozen=True)
class Conjunction:
    """A negated group of literals, `(not ...)`; `outer` are the variables it shares with the rest, None for all it can."""

    body: tuple[Literal, ...]
    outer: tuple[RuleVariable, ...] | None
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"!({', '.join(map(str, self.body))})"


@dataclass(frozen=True)
class Disjunction:
    """One of several groups of literals; `outer` are the variables that the rest may see, None for all."""

    branches: tuple[tuple[Literal, ...], ...]
    outer: tuple[RuleVariable, ...] | None = None
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return "(" + "; ".join(", ".join(map(str, branch)) for branch in self.branches) + ")"


@dataclass(frozen=True)
class Lookup:
    """An atom whose last term is looked up by the others; where there is no such fact, it is `default`."""

    atom: Atom
    default: Constant

    @property
    def position(self) -> TextPosition:
        return self.atom.position

    def __str__(self) -> str:
        return f"{self.atom} else {self.default}"


@dataclass(frozen=True)
class AttributePattern:
    """`[entity attribute value]` where it depends on the attributes that there are: the attribute is a variable, or there is no
    value and the attribute may have one. `rules.patterns` replaces it.
    """

    entity: Term
    attribute: str | RuleVariable
    value: Term | None
    position: TextPosition = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        shown = f":{self.attribute}" if isinstance(self.attribute, str) else f"?{self.attribute}"
        return f"[{self.entity} {shown}{'' if self.value is None else f' {self.value}'}]"


Literal = Atom | Negation | Comparison | Condition | Aggregation | Conjunction | Disjunction | Lookup | AttributePattern


@dataclass(frozen=True)
class Rule:
    """The head holds where the body does. A rule without a body is a fact."""

    predicate: str
    terms: tuple[HeadTerm, ...]
    body: tuple[Literal, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)
    written: str = field(default="", compare=False)
    """The rule as its author wrote it, for messages, where it is known."""

    def __str__(self) -> str:
        head = f"{self.predicate}({', '.join(map(str, self.terms))})"
        return f"{head} :- {', '.join(map(str, self.body))}." if self.body else f"{head}."

    @property
    def aggregates(self) -> tuple[int, ...]:
        """The places of the aggregates in the head."""
        return tuple(at for at, term in enumerate(self.terms) if isinstance(term, HeadAggregate))

    def where(self) -> str:
        """The rule and its place, for messages."""
        return f"rule {(self.written or str(self))!r} ({self.position})"


def variables(of: HeadTerm | None) -> Iterator[RuleVariable]:
    """The variables of a term, in order, with repetitions."""
    if isinstance(of, RuleVariable):
        yield of
    elif isinstance(of, Compute | Construct):
        for arg in of.args or ():
            yield from variables(arg)
    elif isinstance(of, HeadAggregate):
        yield from variables(of.of)


def literal_variables(literal: Literal) -> Iterator[RuleVariable]:
    """The variables of a literal, in order, with repetitions; of nested bodies all, except for what an aggregate whose scope is
    decided keeps to itself.
    """
    match literal:
        case Atom():
            for term in literal.terms:
                yield from variables(term)
        case Negation() | Lookup():
            yield from literal_variables(literal.atom)
        case Comparison():
            yield from variables(literal.left)
            yield from variables(literal.right)
        case Condition():
            yield from variables(literal.test)
        case Aggregation():
            yield literal.result
            if literal.outer is not None:
                yield from (*literal.outer, *literal.witnesses)
            else:
                yield from variables(literal.of)
                yield from body_variables(literal.body)
        case Conjunction():
            yield from body_variables(literal.body)
        case Disjunction():
            for branch in literal.branches:
                yield from body_variables(branch)
        case AttributePattern():
            for part in (literal.entity, literal.attribute, literal.value):
                yield from variables(None if isinstance(part, str) else part)


def body_variables(body: Iterable[Literal]) -> Iterator[RuleVariable]:
    """The variables of some literals, in order, with repetitions."""
    for literal in body:
        yield from literal_variables(literal)


def plain_variables(body: Iterable[Literal]) -> Iterator[RuleVariable]:
    """The variables of some literals, without those that stand only in the body of an aggregate whose scope is not decided."""
    for literal in body:
        match literal:
            case Aggregation() if literal.outer is None:
                yield literal.result
            case Conjunction():
                yield from plain_variables(literal.body)
            case Disjunction():
                for branch in literal.branches:
                    yield from plain_variables(branch)
            case _:
                yield from literal_variables(literal)


def named(found: Iterable[RuleVariable]) -> tuple[RuleVariable, ...]:
    """Each variable that has a name, once, in order."""
    return tuple(dict.fromkeys(v for v in found if not v.anonymous))
