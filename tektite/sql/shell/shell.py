"""The SQL shell: what it does with each statement and each backslash command, apart from how these are typed in.

Statements end with a semicolon; a line that begins with a backslash, where no statement is open, is a command to the
shell itself. `prompt.py` is the interactive side.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tektite import sql
from tektite.engine.core import core_of
from tektite.engine.subscription import Subscription
from tektite.errors import IncorrectError, NotFoundError, TektiteError
from tektite.query.row_order import sorted_rows
from tektite.query.window_calls import Ordering
from tektite.sql.parse.splitter import SplitStatement, is_blank, split
from tektite.sql.shell.display import show

WATCH = re.compile(r"""watch\s+(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<name>[\w.]+))\s*\Z""", re.IGNORECASE)

# How often a live view looks whether something has changed: faster than people see, slow enough to cost nothing.
GLANCE = 0.1

HELP = r"""Statements end with a semicolon and may go over several lines. Besides SQL:
  WATCH view;   show a view and redraw it whenever it changes, until Ctrl-C
  \d            list tables, views and indexes
  \d NAME       describe a table or a view
  \timing       show how long each statement takes, or stop to
  \x            show each row as a list of its columns, or stop to
  \i FILE       run the statements of a file
  \?            this help
  \q            quit, as Ctrl-D does
"""


class Quit(Exception):
    """The user has asked to leave."""


@dataclass(frozen=True)
class Command:
    """A backslash command and the line that it stands on."""

    text: str
    line: int


@dataclass
class LineReader:
    """Turns lines into statements and commands."""

    rest: str = ""
    line: int = 0
    begun: int = 1

    @property
    def is_open(self) -> bool:
        """Whether a statement has begun and not ended."""
        return not is_blank(self.rest)

    def feed(self, line: str) -> Iterator[SplitStatement | Command]:
        """The statements that one more line completes."""
        self.line += 1
        if not self.is_open:
            self.rest, self.begun = "", self.line
            if line.lstrip().startswith("\\"):
                yield Command(line.strip(), self.line)
                return
        self.rest += line if line.endswith("\n") else line + "\n"
        if ";" not in line:
            return
        statements, rest = split(self.rest, self.begun)
        self.begun += self.rest[: len(self.rest) - len(rest)].count("\n")
        self.rest = rest
        yield from statements

    def close(self) -> Iterator[SplitStatement]:
        """The rest at the end: the last statement needs no semicolon."""
        if self.is_open:
            yield from split(self.rest + ";", self.begun)[0]
        self.rest = ""


@dataclass
class Shell:
    """Runs statements on an engine and writes what they answer. With `live`, results may redraw the terminal."""

    engine: Any
    form: str = "table"
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    live: bool = False
    timing: bool = False

    # ------------------------------------------------------------------ whole texts

    def run(self, lines: Iterable[str], source: str = "") -> bool:
        """Run a text to its end or its first error; whether it got to its end. `source` names it in errors."""
        reader = LineReader()
        for line in lines:
            for step in reader.feed(line):
                if not self.attempt(step, source):
                    return False
        return all(self.attempt(step, source) for step in reader.close())

    def attempt(self, step: SplitStatement | Command, source: str = "") -> bool:
        """Run one statement or command; if it fails, say why. Whether it succeeded."""
        try:
            if isinstance(step, Command):
                self.command(step.text)
            else:
                self.statement(step.text)
        except BrokenPipeError:
            raise
        except (TektiteError, OSError) as error:
            self.out.flush()
            place = f"{source}:{step.line}: " if source else ""
            self.err.write(f"{place}error: {error}\n")
            self.err.flush()
            return False
        self.out.flush()
        return True

    # ------------------------------------------------------------------ statements

    def statement(self, text: str) -> None:
        """Run one statement and write its result."""
        start = time.perf_counter()
        watched = WATCH.match(text)
        if watched:
            self.watch(watched.group().split(None, 1)[1].strip())
            return
        result = self.engine.sql(text)
        if result.subscription is not None:
            try:
                self.follow(result.subscription)
            finally:
                self.end(result)
        elif result.table is None or result.message == "EXPLAIN":
            if result.table is not None or self.form not in ("csv", "json"):
                self.out.write(f"{result}\n")
        else:
            show(result.table, self.form, self.out)
        if self.timing:
            self.out.write(f"Time: {(time.perf_counter() - start) * 1e3:.3f} ms\n")

    def follow(self, subscription: Subscription) -> None:
        """Write the changes of a subscription: those there are, and on a terminal those that come, until Ctrl-C."""
        self.write_changes(subscription)
        if self.live:
            self.until_interrupted(lambda: self.write_changes(subscription))

    def end(self, result: Any) -> None:
        """Stop a subscription, and what was installed for it alone."""
        result.subscription.close()
        sql.runner(self.engine).shared.sweep()

    def write_changes(self, subscription: Subscription) -> None:
        table = subscription.table()
        if table.num_rows:
            show(table, self.form, self.out)

    def watch(self, name: str) -> None:
        """Show a view or a table; on a terminal, anew whenever it changes, until Ctrl-C."""
        result = self.engine.sql(f"SUBSCRIBE {name}")
        subscription: Subscription = result.subscription
        subscription.table()  # its contents: what is of interest here is when they change
        try:
            if self.live:
                self.watch_live(name, subscription)
            else:
                show(sorted_snapshot(subscription.source), self.form, self.out)
        finally:
            self.end(result)

    def watch_live(self, name: str, subscription: Subscription) -> None:
        """Draw a view or a table whenever it changes, until Ctrl-C."""
        frame, shown = Frame(self.out), subscription.source

        def draw() -> None:
            frame.draw(
                f"{name}, as of time {-1 if shown.time is None else shown.time}. Ctrl-C ends.",
                lambda to: show(sorted_snapshot(shown), self.form, to),
            )

        def redraw() -> None:
            if subscription.table().num_rows:
                draw()

        try:
            draw()
            self.until_interrupted(redraw)
        finally:
            frame.close()

    def until_interrupted(self, look: Callable[[], None]) -> None:
        """Let time pass for the engine, and look what that changed, until Ctrl-C."""
        try:
            while True:
                time.sleep(GLANCE)
                self.engine.advance()
                look()
                self.out.flush()
        except KeyboardInterrupt:
            self.out.write("\n")

    # ------------------------------------------------------------------ commands

    def command(self, text: str) -> None:
        """Run a backslash command."""
        name, _, rest = text.rstrip(";").partition(" ")
        rest = rest.strip()
        if name in ("\\q", "\\quit", "\\exit"):
            raise Quit
        if name in ("\\?", "\\h", "\\help"):
            self.out.write(HELP)
        elif name == "\\d":
            self.describe(rest)
        elif name == "\\timing":
            self.timing = switched(self.timing, rest, name)
            self.out.write(f"Timing is {'on' if self.timing else 'off'}.\n")
        elif name == "\\x":
            self.form = "expanded" if switched(self.form == "expanded", rest, name) else "table"
            self.out.write(f"Expanded display is {'on' if self.form == 'expanded' else 'off'}.\n")
        elif name == "\\i":
            self.include(rest)
        else:
            raise NotFoundError(f"there is no command {name}; \\? lists them")

    def describe(self, name: str) -> None:
        """List everything, or describe one table or view."""
        if name:
            show(self.engine.sql(f"SHOW COLUMNS FROM {name}").table, "table", self.out)
            return
        for kind in ("tables", "views", "indexes"):
            table = self.engine.sql(f"SHOW {kind}").table
            if table.num_rows:
                self.out.write(f"{kind}\n")
                show(table, "table", self.out)

    def include(self, path: str) -> None:
        if not path:
            raise IncorrectError("\\i needs the name of a file")
        with Path(path).expanduser().open(encoding="utf-8") as file:
            if not self.run(file, path):
                raise IncorrectError(f"{path} was not run to its end")


def switched(on: bool, wanted: str, command: str) -> bool:
    """A switch after a command that may say on or off, or nothing to turn it."""
    if wanted not in ("", "on", "off"):
        raise IncorrectError(f"{command} takes on or off, not {wanted!r}")
    return not on if not wanted else wanted == "on"


def sorted_snapshot(view: Any) -> Any:
    """The rows of a view or a table in its own order, or in one that does not jump from one moment to the next."""
    table = view.snapshot()
    if getattr(core_of(view), "row_order", None) is not None:
        return table
    order = [(name, Ordering(name)) for name in table.schema.names]
    return sorted_rows(table, order)


class Frame:
    """A part of the terminal that is drawn over: the alternate screen, from its top."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        out.write("\x1b[?1049h")

    def draw(self, title: str, write: Callable[[TextIO], None]) -> None:
        """Draw a title and what a function writes, cut to the size of the terminal."""
        from io import StringIO

        columns, lines = shutil.get_terminal_size()
        text = StringIO()
        write(text)
        body = text.getvalue().splitlines()
        if len(body) > lines - 2:
            hidden = len(body) - (lines - 3)
            body = [*body[: lines - 3], f"... {hidden} more lines"]
        shown = "\n".join(line[: columns - 1] for line in [title, *body])
        self.out.write(f"\x1b[H\x1b[2J{shown}\n")
        self.out.flush()

    def close(self) -> None:
        """Give the terminal back as it was."""
        self.out.write("\x1b[?1049l")
        self.out.flush()
