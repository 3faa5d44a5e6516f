"""The grammar of the textbook syntax: text to the parser's trees, or an error that says where the text leaves the grammar.

What Soufflé has beyond the subset is refused by name where it begins, whatever follows it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tektite.errors import IncorrectError, UnsupportedError

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
?expr: bits_xor
     | expr BOR bits_xor -> binary
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
       | target PLUS target_further -> binary
?target_product: target_primary
               | target_product TIMES target_operand -> binary
?target_further: target_operand
               | target_further TIMES target_operand -> binary
?target_operand: target_primary
               | "(" expr ")" -> parenthesis
?target_primary: call
               | NAME -> variable
               | NUMBER -> number
               | FLOAT -> float
block: "{" body "}" | call -> block_atom
declaration: _DECL NAME ("," NAME)* "(" [column ("," column)*] ")" QUALIFIER*
column: NAME ":" NAME
directive: DIRECTIVE target_name ("," target_name)*
target_name: NAME ["(" [option ("," option)*] ")"]
option: NAME "=" (STRING | NAME | NUMBER)
type_alias: _TYPE NAME [("<:" | "=") NAME ("|" NAME)*]
          | _NUMBER_TYPE NAME -> number_alias
          | _SYMBOL_TYPE NAME -> symbol_alias
unsupported: UNSUPPORTED | CHOICE
_DECL: /\.decl\b/
_TYPE: /\.type\b/
_NUMBER_TYPE: /\.number_type\b/
_SYMBOL_TYPE: /\.symbol_type\b/
COMPARE: "<=" | ">=" | "!=" | "=" | "<" | ">"
PLUS: "+" | "-"
MINUS: "-"
TIMES.4: "*" | "/" | "%" | /mod\b/
BAND.4: /band\b/
BOR.4: /(bor|land|lor|lxor)\b/
BXOR.4: /bxor\b/
SHIFT.4: /(bshl|bshru|bshr)\b/
BNOT.4: /(bnot|lnot)\b(?!\s*\()/
POWER.5: "^" | "**"
DIRECTIVE.2: /\.(input|output|printsize)\b/
UNSUPPORTED.-1: /(\.|#)[a-z_]+[^\n]*/
CHOICE.4: /choice-domain\b[^\n]*/
QUALIFIER.3: /(inline|no_inline|no_magic|magic|brie|btree_delete|btree|overridable|eqrel)\b(?!\s*[(:])/
           | /(input|output|printsize)\b(?!\s*[(:])/
PARAMETER: /\$[^\W\d]\w*/
NAME: /([^\W\d]|\?)[\w?]*/
FLOAT.3: /[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?/
NUMBER.2: /0x[0-9a-fA-F]+|0b[01]+|[0-9]+u?/
STRING: /"(\\.|[^"\\\n])*"/
COMMENT: /\/\/[^\n]*/ | /\/\*(.|\n)*?\*\//
%ignore COMMENT
%ignore /\.plan\b[^\n]*/
%ignore /\s+/
"""

NOT_HERE = (
    (r"\.type\s[^\n]*$", r"\[", "records are"),
    (r"\.type\s[^{}\n]*$", r"\{", "types with constructors are"),
    (r"", r"\[", "records such as [a, b] are"),
    (r"", r"@", "functors of one's own, @f(...), are"),
    (r"\$\w+\s*$", r"\(", "constructors such as $A(...) are"),
    (r"", r"\$", "the counter $ is"),
)
"""What Soufflé has beyond this grammar: what stands before the place that does not fit, and what stands there."""


@cache
def _parser(start: str) -> Lark:
    # Refused where it begins: what follows, up to the end of a component, is not of this grammar.
    refused = {"UNSUPPORTED": refuse, "CHOICE": refuse}
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


def parse(text: str, source: str, start: str) -> Tree[Any]:
    """The tree of a text that is a `start` of the grammar.

    >>> [statement.data.value for statement in parse("p(1). .output p", "program", "start").children]
    ['clause', 'directive']
    """
    try:
        return _parser(start).parse(text)
    except Refused as refused:
        token = refused.token
        shown = " ".join(token.split()).rstrip("{ ")
        raise UnsupportedError(
            f"{source}:{token.line}:{token.column}: {shown} is Soufflé that is not supported here"
        ) from None
    except UnexpectedInput as error:
        line, column = max(error.line, 1), max(error.column, 1)
        before, after = text[: error.pos_in_stream or 0], text[error.pos_in_stream or 0 :]
        for pattern, behind, what in NOT_HERE:
            if re.search(pattern, before) and re.match(behind, after):
                raise UnsupportedError(f"{source}:{line}:{column}: {what} not supported here") from None
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
