"""The command `tektite sql`: runs the given texts, or standard input, or an interactive prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tektite.sql.shell.shell import Quit, Shell

SUCCESS, FAILURE, INTERRUPTED = 0, 1, 130


def run_texts(engine: Any, files: Sequence[Path], texts: Sequence[str], form: str, timing: bool = False) -> int:
    """Run files, then texts; without either, standard input, with a prompt where it is a terminal. The exit code.

    A text ends at its first error, with exit code 1; at a prompt one goes on.
    """
    shell = Shell(engine, form=form, timing=timing, live=sys.stdout.isatty())
    try:
        for path in files:
            try:
                lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            except (OSError, UnicodeDecodeError) as error:
                shell.err.write(f"error: cannot read {path}: {error}\n")
                return FAILURE
            if not shell.run(lines, str(path)):
                return FAILURE
        for text in texts:
            if not shell.run(text.splitlines(keepends=True)):
                return FAILURE
        if files or texts:
            return SUCCESS
        if sys.stdin.isatty():
            from tektite.sql.shell.prompt import converse

            converse(shell)
            return SUCCESS
        return SUCCESS if shell.run(sys.stdin, "standard input") else FAILURE
    except Quit:
        return SUCCESS
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough, as `head` has; what is still buffered may go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
