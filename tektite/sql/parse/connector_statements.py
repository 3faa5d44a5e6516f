"""CREATE SOURCE, CREATE SINK and their DROP, read from tokens. A server runs them; see `tektite.server.connectors`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from tektite.sql.parse.statements import Statement

if TYPE_CHECKING:
    from tektite.sql.parse.parser import StatementParser


@dataclass(frozen=True)
class CreateConnector(Statement):
    """CREATE SOURCE name INTO table FROM 'path' | HTTP | SPARK, or CREATE SINK name FROM relation TO 'path or address'; WITH
    options.
    """

    kind: str
    """source or sink."""
    name: str
    relation: str
    """The table that a source writes to, or what a sink tells of."""
    place: str
    """A path, an address, `http` for what clients push, or `spark` for a stream of Spark."""
    options: dict[str, str] = field(default_factory=dict)
    may_exist: bool = False


@dataclass(frozen=True)
class DropConnector(Statement):
    """DROP SOURCE or SINK [IF EXISTS] name."""

    kind: str
    name: str
    may_miss: bool = False


def connector_statement(parser: StatementParser, start: int) -> Statement | None:
    """The statement about a source or a sink that tokens are, if they are one."""
    words = [token.text.upper() for token in parser.tokens[:2]]
    if len(words) < 2 or words[0] not in ("CREATE", "DROP") or words[1] not in ("SOURCE", "SINK"):
        return None
    kind, parser.at = words[1].lower(), 2
    is_conditional = parser.skip("IF")
    if is_conditional:
        for word in ("EXISTS",) if words[0] == "DROP" else ("NOT", "EXISTS"):
            expected(parser, word)
    name = parser.word(f"the name of a {kind}")
    if words[0] == "DROP":
        parser.end()
        return DropConnector(parser.source, start, kind, name, is_conditional)
    expected(parser, "INTO" if kind == "source" else "FROM")
    relation = parser.qualified("the name of a table" if kind == "source" else "the name of a table or view")
    expected(parser, "FROM" if kind == "source" else "TO")
    words = [word for word in ("HTTP", "SPARK") if kind == "source" and parser.skip(word)]
    place = words[0].lower() if words else text(parser, "a path or an address")
    options = options_of(parser)
    parser.end()
    return CreateConnector(parser.source, start, kind, name, relation, place, options, is_conditional)


def expected(parser: StatementParser, word: str) -> None:
    """Pass over a word that has to stand here."""
    if not parser.skip(word):
        raise parser.source.syntax_error(f"expected {word}", parser.place)


def text(parser: StatementParser, wanted: str) -> str:
    """A text in quotes."""
    if parser.at >= len(parser.tokens) or parser.tokens[parser.at].token_type != TokenType.STRING:
        raise parser.source.syntax_error(f"expected {wanted} in quotes", parser.place)
    parser.at += 1
    return str(parser.tokens[parser.at - 1].text)


def options_of(parser: StatementParser) -> dict[str, str]:
    """WITH (name = value, ...)."""
    found: dict[str, str] = {}
    if not parser.skip("WITH"):
        return found
    expected(parser, "(")
    while True:
        is_text = parser.at < len(parser.tokens) and parser.tokens[parser.at].token_type == TokenType.STRING
        name = text(parser, "an option") if is_text else parser.word("the name of an option")
        expected(parser, "=")
        if parser.at >= len(parser.tokens):
            raise parser.source.syntax_error("expected a value", parser.place)
        found[name] = str(parser.tokens[parser.at].text)
        parser.at += 1
        if not parser.skip(","):
            break
    expected(parser, ")")
    return found
