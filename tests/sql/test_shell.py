"""`tektite sql` as people and programs use it: at a terminal, from files, from the command line, through pipes."""

from __future__ import annotations

import datetime
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tektite.__main__ import app

PROGRAM = [sys.executable, "-c", "from tektite.__main__ import main; main()", "sql"]
SETUP = "CREATE TABLE t (a INTEGER, b VARCHAR); INSERT INTO t VALUES (1, 'one'), (2, NULL), (10, 'ten');"


def run(*arguments: str, text: str = "", code: int = 0) -> Any:
    """What the command says, run in this process: starting another one takes seconds."""
    done = CliRunner().invoke(app, ["sql", *arguments], input=text)
    assert done.exit_code == code, done.stdout + done.stderr
    return done


# ---------------------------------------------------------------------- without a terminal


def test_command_prints_an_aligned_table() -> None:
    words = [*PROGRAM, "-c", SETUP, "-c", "SELECT a, b FROM t ORDER BY a"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "CREATE TABLE",
        "INSERT 0 3",
        " a  |  b",
        "----+-----",
        "  1 | one",
        "  2 |",
        " 10 | ten",
        "(3 rows)",
    ]


def test_csv_holds_results_alone() -> None:
    done = run("--csv", "-c", SETUP, "-c", "SELECT a, b FROM t ORDER BY a")
    assert done.stdout == "a,b\n1,one\n2,\n10,ten\n"


def test_json_is_an_object_a_line() -> None:
    done = run("--json", "-c", SETUP, "-c", "SELECT a, b, a / 4 AS q FROM t ORDER BY a")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"a": 1, "b": "one", "q": 0.25},
        {"a": 2, "b": None, "q": 0.5},
        {"a": 10, "b": "ten", "q": 2.5},
    ]


def test_csv_and_json_together_are_refused() -> None:
    assert "not as both" in run("--csv", "--json", code=2).stderr


def test_files_run_before_commands(tmp_path: Path) -> None:
    path = tmp_path / "setup.sql"
    path.write_text("-- a comment\n" + SETUP.replace("; ", ";\n"))
    assert run("-f", str(path), "--csv", "-c", "SELECT count(*) AS n FROM t").stdout == "n\n3\n"


def test_error_in_a_file_names_file_and_line_and_ends_with_one(tmp_path: Path) -> None:
    path = tmp_path / "wrong.sql"
    path.write_text("CREATE TABLE t (a INTEGER);\n\nSELECT b\nFROM t;\nCREATE TABLE never (a INTEGER);\n")
    done = run("-f", str(path), "-c", "SELECT 1", code=1)
    assert f"{path}:3: error: " in done.stderr
    assert "'b'" in done.stderr
    assert re.search(r"^ *\^$", done.stderr, re.MULTILINE), done.stderr
    assert "1" not in done.stdout


def test_missing_file_is_an_error() -> None:
    assert "nowhere.sql" in run("-f", "nowhere.sql", code=1).stderr


def test_statements_come_through_a_pipe() -> None:
    done = run("--csv", text=SETUP + "\nSELECT sum(a) AS s\nFROM t;\nSELECT 2 AS last")
    assert done.stdout == "s\n13\nlast\n2\n"


def test_error_in_a_pipe_ends_it_with_one() -> None:
    done = run(text="SELECT 1 AS x;\nSELEC 2;\nSELECT 3 AS y;\n", code=1)
    assert "x" in done.stdout and "y" not in done.stdout
    assert "standard input:2: error" in done.stderr


def test_commands_work_in_a_pipe() -> None:
    done = run(text="\\timing on\n" + SETUP + "\n\\d\n\\d t\n\\x\nSELECT a, b FROM t WHERE a = 1;\n\\q\nSELECT 9;\n")
    assert "Timing is on." in done.stdout
    assert re.search(r"Time: \d+\.\d+ ms", done.stdout)
    assert re.search(r"^ *t\b", done.stdout, re.MULTILINE)
    assert re.search(r"^ *b +\|", done.stdout, re.MULTILINE)
    assert "-[ row 1 ]\na | 1\nb | one\n" in done.stdout
    assert "9" not in done.stdout.splitlines()


def test_unknown_command_says_where_help_is() -> None:
    assert "\\?" in run(text="\\nonsense\n", code=1).stderr


def test_watch_without_a_terminal_shows_the_view_once() -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t"
    assert run("--csv", "-c", SETUP, "-c", view, "-c", "WATCH v").stdout == "n\n3\n"


def test_watch_takes_what_queries_take_and_leaves_nothing_behind() -> None:
    definition = "CREATE VIEW d AS SELECT b, a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM t ORDER BY a DESC"
    texts = [
        SETUP,
        definition,
        "WATCH D",
        "WATCH t",
        "WATCH m",
        "SUBSCRIBE (SELECT a FROM t WHERE a > 5)",
        "SHOW VIEWS",
    ]
    done = run("--csv", *(part for text in texts for part in ("-c", text)))
    assert done.stdout == (
        "b,a\none,1\nten,10\n,2\n"
        "a,b\n1,one\n2,\n10,ten\n"
        "a\n10\n2\n1\n"
        "a,time,diff\n10,2,1\n"
        "name,kind,rows,error\nm,materialized,3,\nd,definition,,\n"
    )
    assert "there is no table or view 'tt': did you mean 't'?" in run("-c", SETUP, "-c", "WATCH tt", code=1).stderr


def test_subscription_without_a_terminal_shows_what_there_is() -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t"
    done = run("--json", "-c", SETUP, "-c", view, "-c", "SUBSCRIBE TO v")
    assert [(row["n"], row["diff"]) for row in map(json.loads, done.stdout.splitlines())] == [(3, 1)]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in run("-c", "SELECT 'a\x1b[2Jb' AS x").stdout


def test_reader_that_leaves_early_is_no_error() -> None:
    many = "CREATE TABLE n (a INTEGER); INSERT INTO n SELECT 1 FROM (VALUES " + ", ".join(["(1)"] * 100) + ") AS v;"
    query = "SELECT x.a FROM n AS x, n AS y, n AS z WHERE z.a > 0"
    process = subprocess.Popen(
        [*PROGRAM, "--csv", "-c", many, "-c", query], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"a\n"
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


# ---------------------------------------------------------------------- at a terminal


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """The shell in a pseudo-terminal."""

    def __init__(self, home: Path) -> None:
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            environment = os.environ | {"XDG_STATE_HOME": str(home), "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
            os.execvpe(PROGRAM[0], PROGRAM, environment)
        self.seen = ""

    def expect(self, pattern: str, seconds: float = 30.0) -> str:
        """Wait until something is written, cursor movements and colours aside; what was written up to its end."""
        deadline = time.monotonic() + seconds
        while True:
            self.seen = ESCAPES.sub("", self.seen)
            match = re.search(pattern, self.seen, re.DOTALL)
            if match:
                found, self.seen = self.seen[: match.end()], self.seen[match.end() :]
                return found
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; there is: {self.seen!r}"
            if select.select([self.descriptor], [], [], left)[0]:
                try:
                    self.seen += os.read(self.descriptor, 65536).decode(errors="replace")
                except OSError as error:
                    raise AssertionError(f"the shell ended before {pattern!r}: {self.seen!r}") from error
                # A terminal answers when it is asked where its cursor is.
                if "\x1b[6n" in self.seen:
                    os.write(self.descriptor, b"\x1b[1;1R")

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def line(self, text: str) -> None:
        self.type(text + "\r")

    def end(self) -> int:
        """Wait for the shell to leave; its exit code."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([self.descriptor], [], [], 0.05)[0]:
                with suppress(OSError):
                    self.seen += os.read(self.descriptor, 65536).decode(errors="replace")
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"the shell does not end: {self.seen!r}")

    def close(self) -> None:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.descriptor)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    made.expect("tektite>")
    yield made
    made.close()


def test_statement_may_go_over_several_lines(terminal: Terminal) -> None:
    terminal.line("SELECT 40")
    terminal.expect(r"\.\.\.>")
    terminal.line("  + 2 AS answer;")
    shown = terminal.expect(r"\(1 row\)")
    assert "answer" in shown and "42" in shown
    terminal.expect("tektite>")
    terminal.line("\\q")
    assert terminal.end() == 0


def test_error_shows_a_caret_and_the_shell_goes_on(terminal: Terminal) -> None:
    terminal.line("SELECT 1 FROM nowhere;")
    assert "^" in terminal.expect("error: .*nowhere.*\\^")
    terminal.expect("tektite>")
    terminal.line("SELECT 7 AS x;")
    terminal.expect(r"7.*\(1 row\)")


def test_interrupt_drops_the_statement_that_is_open(terminal: Terminal) -> None:
    terminal.line("SELECT nonsense")
    terminal.expect(r"\.\.\.>")
    terminal.type("\x03")
    terminal.expect("tektite>")
    terminal.line("SELECT 5 AS x;")
    terminal.expect(r"5.*\(1 row\)")
    terminal.expect("tektite>")  # before that, the terminal itself would take what is typed for an end of file
    terminal.type("\x04")
    assert terminal.end() == 0


def test_keywords_tables_and_columns_are_completed(terminal: Terminal) -> None:
    terminal.line("CREATE TABLE warehouses (location VARCHAR);")
    terminal.expect("CREATE TABLE\r\n")
    terminal.expect("tektite>")
    terminal.line("INSERT INTO warehouses VALUES ('harbour');")
    terminal.expect("INSERT 0 1")
    terminal.expect("tektite>")
    for typed, completed in (("SEL", "SELECT"), (" loca", "location"), (" FR", "FROM"), (" ware", "warehouses")):
        terminal.type(f"{typed}\t")
        terminal.expect(completed[len(typed.strip()) :])
    terminal.type(";\r")
    assert "harbour" in terminal.expect(r"\(1 row\)")


def test_history_is_kept_for_the_next_time(tmp_path: Path) -> None:
    first = Terminal(tmp_path)
    first.expect("tektite>")
    first.line("SELECT 123 AS remembered;")
    first.expect(r"\(1 row\)")
    first.expect("tektite>")
    first.line("\\q")
    assert first.end() == 0
    first.close()
    history = tmp_path / "tektite" / "sql_history"
    assert "remembered" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    second = Terminal(tmp_path)
    second.expect("tektite>")
    second.type("\x1b[A")
    second.type("\x1b[A\r")
    assert "123" in second.expect(r"\(1 row\)")
    second.close()


def test_watch_redraws_as_time_passes_until_interrupted(terminal: Terminal) -> None:
    # Something happens every second, in the time that the engine's clock shows, however slow this test is.
    begin = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    times = ", ".join(f"('{begin + datetime.timedelta(seconds=second)}')" for second in range(300))
    for line in (
        "CREATE TABLE events (happened TIMESTAMP);",
        "CREATE MATERIALIZED VIEW past AS SELECT happened FROM events WHERE happened <= now();",
        f"INSERT INTO events VALUES {times};",
        "WATCH past;",
    ):
        terminal.line(line)
    frame = r"past, as of time.*?(\d+ more lines|\(\d+ rows?\))"
    first = terminal.expect(frame)
    second = terminal.expect(frame)
    assert first != second
    terminal.type("\x03")
    terminal.line("SELECT 6 AS x;")
    terminal.expect(r"6.*\(1 row\)")


def test_tables_in_a_storage_are_there_the_next_time(tmp_path: Path) -> None:
    storage = ("--storage", str(tmp_path / "kept"))
    run(*storage, "-c", SETUP)
    assert run(*storage, "--csv", "-c", "SELECT sum(a) AS s, count(*) AS n FROM t").stdout == "s,n\n13,3\n"
