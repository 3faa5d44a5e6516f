"""Checks and rewrites tokens before sqlglot parses them: finds mistakes that it would accept, and removes ambiguities.

A JOIN without a kind is an INNER one, so that it is not taken for a comma; the question marks of a statement are $1, $2, ...
A word of `COLUMN_WORDS` that stands where it means nothing else is a name, as PostgreSQL and DuckDB read it.
In `$1,$2` and `$a,$b` sqlglot would see the head of a text in dollar quotes: the tag of such a text is a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

from tektite.errors import UnsupportedError
from tektite.sql.parse.places import StatementText

if TYPE_CHECKING:
    from tektite.sql.parse.dialect import Dialect

JOINING = {
    TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.OUTER, TokenType.INNER, TokenType.CROSS, TokenType.SEMI,
    TokenType.ANTI, TokenType.NATURAL, TokenType.ASOF, TokenType.POSITIONAL, TokenType.STRAIGHT_JOIN,
}  # fmt: skip
"""Tokens that may precede JOIN and belong to it."""
UNFINISHED = {"GROUP", "ORDER", "PARTITION"}
"""Words that sqlglot takes for names where BY is missing."""
COLUMN_WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "IF": (("(",), ("EXISTS",), ("NOT", "EXISTS")),
    "CUBE": (("(",),),
    "ROLLUP": (("(",),),
    "MAP": (("(",), ("{",), ("[",)),
    "LOCK": (("IN", "SHARE"),),
    "INSTALL": (),
    "EXCLUDE": (("(",), ("CURRENT",), ("GROUP",), ("TIES",), ("NO",)),
}
"""Words that may name a column, though sqlglot takes them for its own in some places. What may stand behind a word that is no
name; a statement's first word is none, nor is EXCLUDE behind a star.
"""
NUMBER = re.compile(r"(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?")
"""A number; sqlglot takes the sign behind an exponent for a part of it, as in 1e3+1."""
CLOSING = {"'": "'", '"': '"', "/*": "*/"}
PARAMETERS = re.compile(
    r"""'[^']*' | "[^"]*" | --[^\n]* | /\*.*?\*/ | (?P<tag>\$(?:[a-zA-Z_]\w*)?\$).*?(?P=tag)
    | (?P<dollar>\$(?=\d) | (?<!\w)\$(?=[^\W\d]))""",
    re.VERBOSE | re.DOTALL,
)
"""The dollar signs of parameters, and what may hide others."""
STAND_IN = "\\"
"""A character that is always a token of its own."""


def tokenized(text: str, dialect: Dialect) -> list[Token]:
    """The tokens of a text. The dollar signs of parameters are tokenized as another character, so that no text in
    dollar quotes begins with one.
    """
    if "$" not in text:
        return dialect.tokenize(text)
    masked = PARAMETERS.sub(lambda found: STAND_IN if found["dollar"] else found.group(), text)
    return [
        like(token, TokenType.PARAMETER, "$") if token.text == STAND_IN and text[token.start] == "$" else token
        for token in dialect.tokenize(masked)
    ]


def is_name(tokens: list[Token], at: int) -> bool:
    """Whether a token is one of `COLUMN_WORDS`, and names a column."""
    word = tokens[at].text.upper()
    quoted = tokens[at].token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    if word not in COLUMN_WORDS or quoted or not at:
        return False
    if word == "EXCLUDE" and tokens[at - 1].token_type == TokenType.STAR:
        return False
    behind = [token.text.upper() for token in tokens[at + 1 : at + 3]]
    return all(tuple(behind[: len(other)]) != other for other in COLUMN_WORDS[word])


def checked(source: StatementText, tokens: list[Token], dialect: Dialect) -> list[Token]:
    """The tokens of a statement as sqlglot is to see them."""
    found: list[Token] = []
    marks = 0
    read = list(whole_numbers(source, tokens, dialect))
    for at, token in enumerate(read):
        if is_name(read, at):
            token = like(token, TokenType.IDENTIFIER, token.text)
        before = found[-1] if found else None
        if token.token_type == TokenType.COMMA and before is not None and before.token_type == TokenType.COMMA:
            raise source.syntax_error("something is missing between two commas", token.start)
        if (
            is_text(token)
            and before is not None
            and is_text(before)
            and "\n" not in source.text[before.end : token.start]
        ):
            raise source.syntax_error("texts that are one text stand in lines of their own", token.start)
        if token.token_type == TokenType.PIPE_GT:
            raise source.error("|> is not supported: write a SELECT", token.start, UnsupportedError)
        if token.token_type in (TokenType.HEREDOC_STRING, TokenType.RAW_STRING):
            token = like(token, TokenType.STRING, token.text)
        if token.token_type == TokenType.L_PAREN and before is not None and before.token_type == TokenType.SESSION:
            found[-1] = like(
                before, TokenType.VAR, before.text
            )  # a function here, which sqlglot knows as a scope of settings
        if token.text.upper() == "CHECK" and before is not None and before.text.upper() == "ADD":
            # sqlglot reads ADD CONSTRAINT name CHECK alone
            found += [like(token, TokenType.CONSTRAINT, "CONSTRAINT"), like(token, TokenType.IDENTIFIER, "__unnamed")]
        if token.token_type == TokenType.JOIN and before is not None and before.token_type not in JOINING:
            found.append(like(token, TokenType.INNER, "INNER"))
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?":
            marks += 1
            found += [like(token, TokenType.PARAMETER, "$"), like(token, TokenType.NUMBER, str(marks))]
            continue
        found.append(token)
    last = found[-1]
    if last.token_type == TokenType.VAR and last.text.upper() in UNFINISHED and len(found) > 1:
        raise source.syntax_error(f"{last.text.upper()} needs BY", last.start)
    return found


def is_text(token: Token) -> bool:
    """Whether a token is a text in quotes."""
    return token.token_type == TokenType.STRING


def as_query(tokens: list[Token]) -> list[Token]:
    """The tokens of a statement. PIVOT or UNPIVOT where a query begins is a query in FROM, which may be ordered and limited."""
    start = next((at for at in range(len(tokens)) if begins_pivot(tokens, at)), None)
    if start is None:
        return tokens
    depth, cut, close = 0, len(tokens), len(tokens)
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not depth and kind in (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET):
            cut = min(cut, at)
        if depth < 0:  # the end of the parentheses that it stands in
            close = at
            break
    cut = min(cut, close)
    head = [(TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"), (TokenType.L_PAREN, "(")]
    end = like(tokens[cut - 1], TokenType.R_PAREN, ")")
    made = [*(like(tokens[start], kind, text) for kind, text in head), *tokens[start:cut], end, *tokens[cut:close]]
    return [*tokens[:start], *made, *as_query(tokens[close:])] if close < len(tokens) else [*tokens[:start], *made]


def begins_pivot(tokens: list[Token], at: int) -> bool:
    """Whether a query begins at a token, as PIVOT t ON ...: behind nothing, behind AS or AS (, or behind what INSERT names."""
    if tokens[at].token_type not in (TokenType.PIVOT, TokenType.UNPIVOT):
        return False
    if at == 0:
        return True
    if at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN:  # FROM t PIVOT (...)
        return False
    before = tokens[at - 2 : at] if tokens[at - 1].token_type == TokenType.L_PAREN else tokens[at - 1 : at]
    return before[0].token_type == TokenType.ALIAS or tokens[0].token_type == TokenType.INSERT


def whole_numbers(source: StatementText, tokens: list[Token], dialect: Dialect) -> Iterator[Token]:
    """The tokens; where one goes on behind a number, what stands there without a blank is read anew."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        number = NUMBER.match(token.text) if token.token_type == TokenType.NUMBER else None
        if number is None or number.end() == len(token.text) or not source.text.startswith(token.text, token.start):
            yield token
            continue
        begin, end = token.start + number.end(), token.end + 1
        while at < len(tokens) and tokens[at].start == end:
            end = tokens[at].end + 1
            at += 1
        yield Token(TokenType.NUMBER, number.group(), token.line, token.col, token.start, begin - 1)
        rest = []
        for part in dialect.tokenize(source.text[begin:end]):
            place = begin + part.start
            rest.append(Token(part.token_type, part.text, token.line, token.col, place, begin + part.end))
        yield from whole_numbers(source, rest, dialect)


def like(token: Token, kind: TokenType, text: str) -> Token:
    """Another token at the place of one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def unclosed(text: str) -> tuple[int, str]:
    """The position of a quote or a comment that is not closed, and the characters that open it; the end of the text if there is
    none.
    """
    at = 0
    while at < len(text):
        opening = text[at : at + 2] if text.startswith("/*", at) else text[at]
        if text.startswith("--", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif opening in CLOSING:
            end = text.find(CLOSING[opening], at + len(opening))
            if end < 0:
                return at, opening
            at = end + len(CLOSING[opening])
        else:
            at += 1
    return len(text), ""
