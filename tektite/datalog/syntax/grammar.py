"""The grammar of the textbook syntax: text to the parser's trees, or an error that says where the text leaves the grammar.

A directive that is not known is refused by name where it begins, whatever follows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tektite.errors import IncorrectError, UnsupportedError

GRAMMAR = r"""
start: statement*
?statement: clause | declaration | directive | type_alias | functor | component | instance | override | pragma | unsupported
clause: heads [":-" body] "."
heads: expr ("," expr)* | expr COMPARE expr -> subsumed
body: conjunction (";" conjunction)*
conjunction: literal ("," literal)*
?literal: expr COMPARE expr -> comparison
        | expr
        | "!" literal -> negation
        | "(" body ")" -> group
?expr: logic_xor
     | expr LOR logic_xor -> binary
?logic_xor: logic_and
          | logic_xor LXOR logic_and -> binary
?logic_and: bits_or
          | logic_and LAND bits_or -> binary
?bits_or: bits_xor
        | bits_or BOR bits_xor -> binary
?bits_xor: bits_and
         | bits_xor BXOR bits_and -> binary
?bits_and: shifted
         | bits_and BAND shifted -> binary
?shifted: sum
        | shifted SHIFT sum -> binary
?sum: product
    | sum PLUS product -> binary
?product: unary
        | product TIMES unary -> binary
?unary: MINUS unary -> minus
      | BNOT unary -> complement
      | power
?power: primary
      | primary POWER unary -> binary
?primary: value
        | "(" expr ")" -> parenthesis
        | aggregate
?value: call
      | NAME -> variable
      | NUMBER -> number
      | FLOAT -> float
      | STRING -> string
      | PARAMETER -> parameter
      | PARAMETER "(" [expr ("," expr)*] ")" -> branch
      | "[" [expr ("," expr)*] "]" -> record
      | "@" NAME "(" [expr ("," expr)*] ")" -> own_call
call: name "(" [expr ("," expr)*] ")"
?name: NAME | QUALIFIED
aggregate: NAME ":" block -> aggregate_all
         | NAME target ":" block -> aggregate_of
         | call ":" block -> aggregate_call
?target: target_xor
       | target BOR further_xor -> binary
?target_xor: target_and
           | target_xor BXOR further_and -> binary
?target_and: target_shifted
           | target_and BAND further_shifted -> binary
?target_shifted: target_sum
               | target_shifted SHIFT further_sum -> binary
?target_sum: target_product
           | target_sum PLUS further_product -> binary
?target_product: target_power
               | target_product TIMES further_power -> binary
?target_power: target_value
             | target_value POWER further_power -> binary
?target_value: value
?further_xor: further_and
            | further_xor BXOR further_and -> binary
?further_and: further_shifted
            | further_and BAND further_shifted -> binary
?further_shifted: further_sum
                | further_shifted SHIFT further_sum -> binary
?further_sum: further_product
            | further_sum PLUS further_product -> binary
?further_product: further_power
                | further_product TIMES further_power -> binary
?further_power: further_value
              | further_value POWER further_power -> binary
?further_value: value
              | "(" expr ")" -> parenthesis
              | MINUS further_value -> minus
block: "{" body "}" | call -> block_atom
declaration: _DECL NAME ("," NAME)* "(" [column ("," column)*] ")" (QUALIFIER | choice)*
column: NAME ":" (name | TABLE_TYPE)
choice: _CHOICE domain ("," domain)*
domain: NAME | "(" NAME ("," NAME)* ")"
directive: DIRECTIVE target_name ("," target_name)*
target_name: name ["(" [option ("," option)*] ")"]
option: NAME "=" (STRING | NAME | NUMBER | FLOAT)
type_alias: _TYPE name [("<:" | "=") (name | TABLE_TYPE) ("|" (name | TABLE_TYPE))*]
          | _NUMBER_TYPE name -> number_alias
          | _SYMBOL_TYPE name -> symbol_alias
          | _TYPE name "=" "[" [column ("," column)*] "]" -> record_type
          | _TYPE name "=" tagged ("|" tagged)* -> tagged_type
tagged: name "{" [column ("," column)*] "}"
functor: _FUNCTOR NAME "(" [functor_column ("," functor_column)*] ")" ":" name STATEFUL?
functor_column: [NAME ":"] name
component: _COMP component_type [":" component_type ("," component_type)*] "{" statement* "}"
instance: _INIT NAME "=" component_type
component_type: name ["<" name ("," name)* ">"]
override: _OVERRIDE NAME
pragma: _PRAGMA STRING [STRING]
unsupported: UNSUPPORTED
TABLE_TYPE.2: /decimal\s*\(\s*\d+\s*(,\s*\d+\s*)?\)(\[\])*|[A-Za-z_]\w*(\[\])+/
_DECL: /\.decl\b/
_TYPE: /\.type\b/
_NUMBER_TYPE: /\.number_type\b/
_SYMBOL_TYPE: /\.symbol_type\b/
_FUNCTOR: /\.(functor|declfun)\b/
_COMP: /\.comp\b/
_INIT: /\.init\b/
_OVERRIDE: /\.override\b/
_PRAGMA: /\.pragma\b/
_CHOICE.4: /choice-domain\b/
STATEFUL: "stateful"
COMPARE: "<=" | ">=" | "!=" | "=" | "<" | ">"
PLUS: "+" | "-"
MINUS: "-"
TIMES.4: "*" | "/" | "%" | /mod\b/
LOR.4: /lor\b/
LXOR.4: /lxor\b/
LAND.4: /land\b/
BAND.4: /band\b/
BOR.4: /bor\b/
BXOR.4: /bxor\b/
SHIFT.4: /(bshl|bshru|bshr)\b/
BNOT.4: /(bnot|lnot)\b(?!\s*\()/
POWER.5: "^" | "**"
DIRECTIVE.2: /\.(input|output|printsize)\b/
UNSUPPORTED.-1: /(\.|#)[a-z_]+[^\n]*/
QUALIFIER.3: /(inline|no_inline|no_magic|magic|brie|btree_delete|btree|overridable|eqrel)\b(?!\s*[(:])/
           | /(input|output|printsize)\b(?!\s*[(:])/
PARAMETER: /\$[^\W\d]\w*/
NAME: /([^\W\d]|\?)[\w?]*/
QUALIFIED.1: /[^\W\d][\w?]*(\.[^\W\d][\w?]*)+/
FLOAT.3: /[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?/
NUMBER.2: /0x[0-9a-fA-F]+|0b[01]+|[0-9]+u?/
STRING: /"(\\.|[^"\\\n])*"/
COMMENT: /\/\/[^\n]*/ | /\/\*(.|\n)*?\*\//
%ignore COMMENT
%ignore /\.plan\b[^\n]*/
%ignore /\s+/
"""

NOT_HERE = ((r"", r"\$", "the counter $ is not supported: its values depend on the order in which rules run, and a fact that is "
             "derived a second time would get another number"),)  # fmt: skip
"""Constructs of Soufflé that this grammar lacks: the text before the error, the text at the error, and the reason."""


@cache
def _parser(start: str) -> Lark:
    refused = {"UNSUPPORTED": refuse}  # where it begins: what follows is not of this grammar
    return Lark(
        GRAMMAR, parser="lalr", start=start, propagate_positions=True, maybe_placeholders=False, lexer_callbacks=refused
    )


class Refused(Exception):
    """A token that begins what is not supported."""

    def __init__(self, token: Token) -> None:
        self.token = token


def refuse(token: Token) -> Token:
    """Stop at a token."""
    raise Refused(token)


INSTEAD = {
    ".limitsize": ": rounds= limits recursion, and LIMIT in SQL reads some of a predicate's facts",
    ".lattice": ": min and max in a head keep the least or greatest value, and subsumption (<=) any other",
}
"""How to write what is not supported."""


def instead_of(directive: str) -> str:
    """Another way to what a directive is for, if there is one."""
    return next((said for word, said in INSTEAD.items() if directive.startswith(word)), "")


def parse(text: str, source: str, start: str, places: Sequence[tuple[str, int]] | None = None) -> Tree[Any]:
    """The tree of a text that is a `start` of the grammar. `places` has the file and line that each line comes from.

    >>> [statement.data.value for statement in parse("p(1). .output p", "program", "start").children]
    ['clause', 'directive']
    """
    try:
        return _parser(start).parse(text)
    except Refused as refused:
        token = refused.token
        shown = " ".join(token.split()).rstrip("{ ")
        source, line = place_of(token.line or 1, source, places)
        raise UnsupportedError(
            f"{source}:{line}:{token.column}: {shown} is Soufflé that is not supported here{instead_of(shown)}"
        ) from None
    except UnexpectedInput as error:
        source, line = place_of(max(error.line, 1), source, places)
        column = max(error.column, 1)
        before, after = text[: error.pos_in_stream or 0], text[error.pos_in_stream or 0 :]
        for pattern, behind, what in NOT_HERE:
            if re.search(pattern, before) and re.match(behind, after):
                raise UnsupportedError(f"{source}:{line}:{column}: {what}") from None
        if after.startswith('"') and not re.match(r'"(\\.|[^"\\\n])*"', after):
            raise IncorrectError(
                f"{source}:{line}:{column}: this text does not end on its line: a '\"' is missing"
            ) from None
        if after.startswith("/*") or (before.endswith("/") and after.startswith("*")):
            raise IncorrectError(f"{source}:{line}:{column}: this comment does not end: a '*/' is missing") from None
        if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
            found = "the end of the text; is a '.' or a parenthesis missing?"
        elif isinstance(error, UnexpectedCharacters):
            found = repr(error.char)
        else:
            found = repr(str(getattr(error, "token", "")))
        shown = "\n" + error.get_context(text, 60).rstrip() if error.pos_in_stream is not None else ""
        raise IncorrectError(f"{source}:{line}:{column}: did not expect {found} here{shown}") from None


def place_of(line: int, source: str, places: Sequence[tuple[str, int]] | None) -> tuple[str, int]:
    """The file and the line that a line of a program comes from."""
    return places[line - 1] if places and line <= len(places) else (source, line)
