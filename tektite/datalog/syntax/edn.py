"""EDN, the data notation of the thesis's queries: text to lists, vectors, symbols and values, each with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tektite.datalog.syntax.ir import NOWHERE, TextPosition, Value, written_number
from tektite.datalog.syntax.terms import unquoted
from tektite.errors import IncorrectError

GRAMMAR = r"""
start: form*
?form: list | vector | map | atom
list: "(" form* ")"
vector: "[" form* "]"
map: "{" form* "}"
atom: STRING | FLOAT | INTEGER | KEYWORD | SYMBOL
STRING: /"(\\.|[^"\\])*"/
FLOAT.3: /[-+]?[0-9]+(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)/
INTEGER.2: /[-+]?[0-9]+N?(?![0-9A-Za-z.])/
KEYWORD: /:[^\s()\[\]{}",;]+/
SYMBOL: /[^\s()\[\]{}",;:0-9][^\s()\[\]{}",;]*/
COMMENT: /;[^\n]*/
%ignore COMMENT
%ignore /[\s,]+/
"""


@dataclass(frozen=True)
class Symbol:
    """A name: `?x`, `sum`, `_`."""

    name: str
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Keyword:
    """A name that stands for itself: `:find`, `:person/knows`; `name` is without the colon."""

    name: str
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class EdnScalar:
    """A number, a text or a truth value."""

    value: Value
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Group:
    """Forms within ( ), [ ] or { }; `kind` is list, vector or map."""

    kind: str
    items: tuple[EdnForm, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)


EdnForm = Symbol | Keyword | EdnScalar | Group


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True)


def read(text: str, source: str = "query") -> tuple[EdnForm, ...]:
    """All forms of a text.

    >>> (form,) = read("[:find ?x]")
    >>> [item.name for item in form.items]
    ['find', '?x']
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        line, column = max(error.line, 1), max(error.column, 1)
        end = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
        token = getattr(error, "token", getattr(error, "char", ""))
        found = "the end of the text; is a bracket missing?" if end else repr(str(token))
        raise IncorrectError(f"{source}:{line}:{column}: did not expect {found} here") from None
    return tuple(_form(child, source) for child in tree.children)


def _form(tree: Any, source: str) -> EdnForm:
    position = TextPosition(source, getattr(tree.meta, "line", 1), getattr(tree.meta, "column", 1))
    if tree.data != "atom":
        return Group(str(tree.data), tuple(_form(child, source) for child in tree.children), position)
    token: Token = tree.children[0]
    text = str(token)
    match token.type:
        case "STRING":
            return EdnScalar(unquoted(text), position)
        case "FLOAT":
            return EdnScalar(written_number(text), position)
        case "INTEGER":
            value = int(text.removesuffix("N"))
            if not -(2**63) < value < 2**63:
                raise IncorrectError(f"{position}: the number {text} does not fit into 64 bits")
            return EdnScalar(value, position)
        case "KEYWORD":
            return Keyword(text[1:], position)
    if text in ("true", "false"):
        return EdnScalar(text == "true", position)
    if text == "nil":
        raise IncorrectError(f"{position}: nil is not a value here; leave the clause out")
    return Symbol(text, position)


def show(form: EdnForm) -> str:
    """A form as text, for messages."""
    match form:
        case Symbol():
            return form.name
        case Keyword():
            return f":{form.name}"
        case EdnScalar():
            return f'"{form.value}"' if isinstance(form.value, str) else str(form.value).lower()
        case Group():
            opening, closing = {"list": ("(", ")"), "vector": ("[", "]"), "map": ("{", "}")}[form.kind]
            return opening + " ".join(map(show, form.items)) + closing
