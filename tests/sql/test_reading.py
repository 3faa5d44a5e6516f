"""Texts are cut into statements where these end, however the text arrives."""

from __future__ import annotations

import pytest

from tektite.sql.parse.splitter import SplitStatement, is_blank, split
from tektite.sql.shell.shell import Command, LineReader


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT ';';x", ["SELECT ';'"], "x"),
        ("SELECT 'it''s; so';", ["SELECT 'it''s; so'"], ""),
        ("SELECT 'open; ", [], "SELECT 'open; "),
        ('SELECT "a;b";', ['SELECT "a;b"'], ""),
        ("/* ; */ SELECT 1; -- ; no", ["SELECT 1"], " -- ; no"),
        ("/* open ;", [], "/* open ;"),
        ("SELECT $$ ; $$; $a$ ; $$ ; $a$;", ["SELECT $$ ; $$", "$a$ ; $$ ; $a$"], ""),
        ("SELECT $1; SELECT $2;", ["SELECT $1", "SELECT $2"], ""),
        (";; a;;b;", ["a", "b"], ""),
    ],
)
def test_statement_ends_at_its_semicolon(text: str, statements: list[str], rest: str) -> None:
    found, left = split(text)
    assert ([statement.text for statement in found], left) == (statements, rest)


def test_statements_know_the_line_they_begin_on() -> None:
    found, _ = split("SELECT 1;\n\n-- comment\n  SELECT\n 2; SELECT 3;")
    assert found == [SplitStatement("SELECT 1", 1), SplitStatement("SELECT\n 2", 4), SplitStatement("SELECT 3", 5)]


def test_comments_alone_are_nothing() -> None:
    assert is_blank(" -- a\n/* b */ ")
    assert not is_blank("/* open")


def test_lines_become_statements_and_commands() -> None:
    reader = LineReader()
    lines = ["\\timing on", "SELECT", "  1; SELECT 2;", "", "SELECT '", "\\q", "';", "\\q", "SELECT 3"]
    steps = [step for line in lines for step in reader.feed(line)]
    assert steps == [
        Command("\\timing on", 1),
        SplitStatement("SELECT\n  1", 2),
        SplitStatement("SELECT 2", 3),
        SplitStatement("SELECT '\n\\q\n'", 5),
        Command("\\q", 8),
    ]
    assert list(reader.close()) == [SplitStatement("SELECT 3", 9)]
