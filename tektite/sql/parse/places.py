"""Places in a text, and errors that show the line with a caret under the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TypeVar

from sqlglot import exp

from tektite.errors import FaultError, IncorrectError, TektiteError

E = TypeVar("E", bound=TektiteError)
NAME = re.compile(r"[A-Za-z_]\w*")
CALL = re.compile(r"([A-Za-z_]\w*)\s*\(\s*(?:DISTINCT\s+)?\Z", re.IGNORECASE)
"""The head of a function call, up to its first argument."""
HEAD = 200
"""Characters before the first argument in which the head is looked for: a search takes the square of them."""
KEYWORD = "keyword"
"""Under which a tree's node notes where the last token stands that it was read from."""
POINTED = re.compile(r"\nline \d+: .*\n *\^\Z")
"""The end of a message that points at a place."""
WIDTH = 100
"""How much of a long line an error shows."""


class StatementText:
    """The text of one or several statements, of which the one in question lies between `start` and `end`."""

    def __init__(self, text: str, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.start = start
        self.end = len(text) if end is None else end

    @property
    def statement(self) -> str:
        """The text of the statement alone.

        >>> StatementText("SELECT 1; SELECT 2; SELECT 3", 10, 18).statement
        'SELECT 2'
        """
        return self.text[self.start : self.end]

    def error(
        self,
        message: str,
        at: exp.Expr | int | None = None,
        kind: type[TektiteError] = IncorrectError,
        condition: str = "",
    ) -> TektiteError:
        """An error that points at a part of the statement, or at a place in its text; else at the statement. `condition` is what
        PostgreSQL calls it, for programs.
        """
        place = at if isinstance(at, int) else self.start if at is None else self.place(at)
        found = kind(f"{message}\n{self.point(place)}")
        before = self.text[:place]
        found.details.update(line=before.count("\n") + 1, column=place - (before.rfind("\n") + 1) + 1)
        if condition:
            found.details["condition"] = condition
        return found

    def syntax_error(self, message: str, at: exp.Expr | int | None = None) -> TektiteError:
        """An error of what cannot be read."""
        return self.error(f"syntax error: {message}", at, condition="syntax-error")

    def place(self, node: exp.Expr) -> int:
        """The position at which a part of the statement begins. A part without a position of its own has that of the part
        around it.
        """
        around: exp.Expr | None = node
        while around is not None:
            found = self.known_place(around)
            if found is not None:
                return found
            around = around.parent
        return self.start

    def known_place(self, node: exp.Expr) -> int | None:
        """The position at which a part of the statement begins, if it is known. The parser does not tell where a function's
        name stands: it is in front of the parenthesis before its first argument.
        """
        found = position(node)
        if found is not None and isinstance(node, exp.Func):
            call = CALL.search(self.text, max(0, found - HEAD), found)
            return found if call is None else call.start(1)
        return found

    def called(self, node: exp.Expr) -> str:
        """The name of a function as the statement writes it, or as the parser does where it is not found."""
        place = self.known_place(node)
        written = None if place is None else NAME.match(self.text, place)
        known = (
            node.name
            if isinstance(node, exp.Anonymous)
            else node.sql_name()
            if isinstance(node, exp.Func)
            else node.key
        )
        if isinstance(node, exp.Func) and written is not None and self.text[written.end() :].lstrip().startswith("("):
            return written.group().lower()
        return known.lower()

    def where(self, word: str) -> int:
        """The position of the first such keyword in the statement; that of the statement, if it has none."""
        found = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE).search(self.text, self.start)
        return self.start if found is None else found.start()

    def placed(self, error: TektiteError, at: exp.Expr | int | None = None) -> TektiteError:
        """An error that points at a place in the text, as it may do already."""
        if POINTED.search(str(error)):
            return error
        found = self.error(str(error.args[0]), at, type(error))
        found.details.update({name: value for name, value in error.details.items() if name not in found.details})
        if isinstance(error, FaultError) and isinstance(found, FaultError):
            found.view = error.view
        found.shows_row = error.shows_row
        return found

    def word(self, place: int) -> str:
        """The word that begins at a place; empty if there is none."""
        found = NAME.match(self.text, place)
        return "" if found is None else found.group()

    def point(self, place: int) -> str:
        """The line that a place is in, and a caret under it."""
        place = min(place, len(self.text))
        start = self.text.rfind("\n", 0, place) + 1
        end = self.text.find("\n", place)
        line = self.text[start : len(self.text) if end < 0 else end]
        offset = place - start
        number = self.text.count("\n", 0, place) + 1
        if len(line) > WIDTH:
            cut = max(0, min(offset - WIDTH // 2, len(line) - WIDTH))
            line = ("..." if cut else "") + line[cut : cut + WIDTH] + ("..." if cut + WIDTH < len(line) else "")
            offset += (3 if cut else 0) - cut
        head = f"line {number}: "
        return f"{head}{line}\n{' ' * (len(head) + offset)}^"


def position(node: exp.Expr) -> int | None:
    """The position in the text at which a part of a statement begins, as far as the parser tells; that of its keyword, if no
    part of it has a position.
    """
    found = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(found) if found else node.meta.get(KEYWORD)


def nearest(name: str, among: Iterable[str]) -> str:
    """A sentence that offers the name nearest to one that does not exist, and lists what there is."""
    known = list(dict.fromkeys(among))
    close = difflib.get_close_matches(name, known, 1, 0.6)
    listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}there are: {listed or 'none'}"
