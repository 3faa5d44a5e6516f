"""Statements that are about the session and not about data: transactions, SET and SHOW, cursors, DISCARD, COPY, ADVANCE.

They are recognised by their words, before the SQL parser sees them. What begins like one of them and goes on otherwise is left
to the parser, or refused by it.

A pattern holds up all clients while it is matched, so the time that it takes grows with the text and not faster: of two parts
that may both match blanks, the first one gives none back (`\\s*+`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tektite.sql.parse.parser import SHOWN
from tektite.sql.parse.splitter import significant, split

NAME: Final = r'(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")'
PATH: Final = rf"{NAME}(?:\s*\.\s*{NAME}){{0,2}}"
"""A name with the schema and the database before it, if they are said."""
BLOCK: Final = r"(?:\s+(?:WORK|TRANSACTION))?"

FORMS: Final[tuple[tuple[str, str], ...]] = (
    ("begin", rf"(?:BEGIN{BLOCK}|START\s+TRANSACTION)(?P<modes>\s+(?:ISOLATION|READ|NOT|DEFERRABLE)\b.*)?"),
    ("commit", rf"(?:COMMIT|END){BLOCK}(?:\s+AND\s+NO\s+CHAIN)?"),
    ("rollback_to", rf"ROLLBACK{BLOCK}\s+TO(?:\s+SAVEPOINT)?\s+(?P<name>{NAME})"),
    ("rollback", rf"(?:ROLLBACK|ABORT){BLOCK}(?:\s+AND\s+NO\s+CHAIN)?"),
    ("savepoint", rf"SAVEPOINT\s+(?P<name>{NAME})"),
    ("release", rf"RELEASE(?:\s+SAVEPOINT)?\s+(?P<name>{NAME})"),
    ("modes", r"SET\s+(?:LOCAL\s+)?(?:TRANSACTION|(?P<session>SESSION)\s+CHARACTERISTICS\s+AS\s+TRANSACTION)\b(?P<modes>.*)"),
    ("constraints", r"SET\s+CONSTRAINTS\s+ALL\s+(?:DEFERRED|IMMEDIATE)"),
    ("set", r"SET\s+(?:SESSION\s+|LOCAL\s+)?TIME\s+ZONE\s+(?P<zone>.+)"),
    ("set", rf"SET\s+(?:SESSION\s+|LOCAL\s+)?(?P<name>(?!ROLE\b){NAME}(?:\.{NAME})?)\s*(?:=|\bTO\b)\s*(?P<value>.+)"),
    ("set", r"SET\s+(?P<name>NAMES)\s+(?P<value>.+)"),
    ("reset", rf"RESET\s+(?P<name>(?!ROLE\b|SESSION\b){NAME}(?:\.{NAME})?)"),
    ("show", r"SHOW\s+(?P<name>TRANSACTION\s+ISOLATION\s+LEVEL|TIME\s+ZONE)"),
    ("show", rf"SHOW\s+(?P<name>(?!(?:{'|'.join(SHOWN)})\b){NAME}(?:\.{NAME})?)"),
    ("discard", r"DISCARD\s+(?P<name>ALL|PLANS|SEQUENCES|TEMP|TEMPORARY)"),
    ("deallocate", rf"DEALLOCATE\s+(?:PREPARE\s+)?(?P<name>{NAME})"),
    ("declare", rf"DECLARE\s+(?P<name>{NAME})\s+(?P<binary>BINARY\s+)?(?:(?:INSENSITIVE|ASENSITIVE|NO\s+SCROLL|SCROLL)\s+)*"
                r"CURSOR(?:\s+(?P<hold>WITH|WITHOUT)\s+HOLD)?\s+FOR\s+(?P<value>.+)"),
    ("fetch", rf"(?P<verb>FETCH|MOVE)\s+(?:(?P<value>NEXT|FIRST|ALL|FORWARD\s+ALL|FORWARD\s+\d+|FORWARD|\d+)\s+)?"
              rf"(?:(?:FROM|IN)\s+)?(?P<name>{NAME})"),
    ("close", rf"CLOSE\s+(?P<name>{NAME})"),
    ("unlisten", r"UNLISTEN\s+.*"),
    ("copy_in", rf"COPY\s+(?P<name>{PATH})\s*+(?P<columns>\([^)]*\))?\s*+FROM\s+STDIN\b(?P<value>.*)"),
    ("copy_out", rf"COPY\s+(?P<name>{PATH})\s*+(?P<columns>\([^)]*\))?\s*+TO\s+STDOUT\b(?P<value>.*)"),
    ("copy_out", r"COPY\s*\((?P<query>.*)\)\s*TO\s+STDOUT\b(?P<value>.*)"),
    ("advance", r"ADVANCE(?:\s+TO\s+(?P<value>\d+))?"),
)  # fmt: skip
_FORMS = [(kind, re.compile(rf"{form}\s*", re.IGNORECASE | re.DOTALL)) for kind, form in FORMS]
_FIRST = re.compile(
    r"(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|SET|RESET|SHOW|DISCARD|DEALLOCATE|DECLARE|FETCH|MOVE|CLOSE|"
    r"UNLISTEN|COPY|ADVANCE)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SessionCommand:
    """A statement about the session: its kind, and the parts of it by their names in `FORMS`."""

    kind: str
    parts: dict[str, str | None]

    def part(self, name: str) -> str:
        """A part of it, empty if it was left out."""
        return (self.parts.get(name) or "").strip()

    @property
    def name(self) -> str:
        """The name of the command's object, folded as SQL folds names."""
        return folded_name(self.part("name"))

    @property
    def path(self) -> list[str]:
        """The name of the command's object with the schema and database that are written, each folded as SQL folds names."""
        return [folded_name(part) for part in re.findall(NAME, self.part("name"))]


@dataclass(frozen=True)
class Piece:
    """One statement of a text: its own text, and where in the whole text it begins."""

    text: str
    offset: int


def pieces(text: str) -> list[Piece]:
    """The statements of a text.

    >>> pieces("SELECT 1; -- one\\nSELECT ';'")
    [Piece(text='SELECT 1', offset=0), Piece(text="SELECT ';'", offset=17)]
    """
    if ";" not in text:
        begin = significant(text)
        return [Piece(text[begin:].rstrip(), begin)] if text[begin:].strip() else []
    found, at = [], 0
    for part in split(text + "\n;")[0]:
        at = text.find(part.text, at)
        found.append(Piece(part.text, at))
        at += len(part.text)
    return found


def command(text: str) -> SessionCommand | None:
    """The command that a statement is, if it is one.

    >>> command("set session Application_Name to 'x'").parts
    {'name': 'Application_Name', 'value': "'x'"}
    >>> command("SELECT 1"), command("SHOW TABLES")
    (None, None)
    """
    if _FIRST.match(text) is None:
        return None
    for kind, form in _FORMS:
        found = form.fullmatch(text)
        if found is not None:
            return SessionCommand(kind, found.groupdict())
    return None


def folded_name(text: str) -> str:
    """A name as SQL folds it: in small letters, unless it is quoted.

    >>> folded_name('"My T"'), folded_name("T")
    ('My T', 't')
    """
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()


def unquoted(text: str) -> str:
    """The value of SET: a text in quotes, or a word.

    >>> unquoted(" 'it''s' "), unquoted("utf8")
    ("it's", 'utf8')
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text
