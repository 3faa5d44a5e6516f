"""The interactive side of the shell: a prompt with history and completion, statements over several lines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from tektite import errors
from tektite.sql.shell.shell import LineReader, Quit, Shell

_WORDS = """
    ALL AND ANY AS ASC AVG BETWEEN BIGINT BOOLEAN BY CASE CAST COALESCE COPY COUNT CREATE CROSS CURRENT_DATE
    CURRENT_TIMESTAMP DATE DATE_TRUNC DECIMAL DEFAULT DELETE DESC DISTINCT DOUBLE DROP ELSE END EXCEPT EXECUTE EXISTS EXPLAIN
    EXTRACT FALSE FILTER FROM FULL GROUP HAVING ILIKE IN INDEX INNER INSERT INTEGER INTERSECT INTERVAL INTO IS JOIN LAG
    LEFT LIKE LIMIT LOWER MATERIALIZED MAX MIN NATURAL NOT NOW NULL NULLIF OFFSET ON OR ORDER OUTER OVER PARTITION PREPARE
    PRIMARY KEY RANK RECURSIVE RIGHT ROW_NUMBER SELECT SET SHOW SUBSCRIBE SUBSTRING SUM TABLE TEXT THEN TIMESTAMP TRUE
    UNION UPDATE UPPER USING VALUES VARCHAR VIEW WATCH WHEN WHERE WITH
"""
KEYWORDS = tuple(_WORDS.split())
COMMANDS = ("\\d", "\\timing", "\\x", "\\i", "\\?", "\\q")
WORD = re.compile(r"[\w\\?]+\Z")


class WordCompleter(Completer):
    """Completes keywords, and the names that there are at the moment; keywords in the case in which one types."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        match = WORD.search(document.text_before_cursor)
        if match is None:
            return
        typed = match.group()
        if typed.startswith("\\"):
            found: list[str] = [word for word in COMMANDS if word.startswith(typed)]
        else:
            names = sorted(n for n in set(self.names()) if n.lower().startswith(typed.lower()))
            keywords = [word for word in KEYWORDS if word.lower().startswith(typed.lower())]
            found = names + [word.lower() if typed.islower() else word for word in keywords]
        for word in found:
            yield Completion(word, start_position=-len(typed))


def names_of(engine: Any) -> set[str]:
    """The tables, views and columns of an engine."""
    found: set[str] = set()
    try:
        names = [row[0] for kind in ("tables", "views") for row in engine.sql(f"SHOW {kind}")]
        found |= set(names)
        for name in names:
            found |= {row[0] for row in engine.sql(f'SHOW COLUMNS FROM "{name}"')}
    except errors.TektiteError:
        # A name that cannot be asked about is one that is not offered.
        pass
    return found


def history() -> History:
    """The history of typed lines: in a file that only the user can read, or in memory if there can be none."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(base) / "tektite" / "sql_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def converse(shell: Shell) -> None:
    """Ask for statements and run them until the user leaves."""
    runner: PromptSession[str] = PromptSession(
        history=history(), completer=WordCompleter(lambda: names_of(shell.engine)), complete_while_typing=False
    )
    shell.out.write("Statements end with a semicolon; \\? is for help, \\q quits.\n")
    shell.out.flush()
    reader = LineReader()
    while True:
        try:
            line = runner.prompt("    ...> " if reader.is_open else "tektite> ")
        except KeyboardInterrupt:
            reader = LineReader()
            continue
        except EOFError:
            break
        try:
            for step in reader.feed(line):
                if not shell.attempt(step):
                    break
        except Quit:
            break
        except KeyboardInterrupt:
            shell.err.write("interrupted\n")
