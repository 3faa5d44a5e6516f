"""Runs files of sqllogictest, as SQLite, DuckDB and others keep them.

    statement ok | error
    query <types> [nosort | rowsort | valuesort] [label]
    skipif <system>, onlyif <system>, hash-threshold <n>, halt

The answer behind ---- is one value a line, one row a line with tabs between the values, or `<n> values hashing to <md5>`. Types
are T for text, I for whole numbers and R for others, which have three places. A construct that Tektite refuses by name counts as
refused, not as wrong. `python -m tests.support.sql.sqllogictest FILE...` prints what each file comes to.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tektite as tk

SYSTEM = "tektite"
HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")


@dataclass
class Outcome:
    """What a file comes to: how many records agree, which are refused by name, and which are wrong, each with its line."""

    right: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Record:
    """One record: its line, its words, its SQL and the lines of its answer."""

    line: int
    words: list[str]
    sql: str
    answer: list[str]


def records(text: str) -> Iterator[Record]:
    """The records of a file that are for us."""
    line = 1
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        begin, line = line, line + block.count("\n") + 2
        lines = [(begin + at, found) for at, found in enumerate(block.split("\n")) if not found.startswith("#")]
        while lines and not lines[0][1].strip():
            lines.pop(0)
        wanted = True
        while lines and lines[0][1].split()[:1] in (["skipif"], ["onlyif"]):
            kind, system = lines.pop(0)[1].split()[:2]
            wanted &= (system.lower() == SYSTEM) == (kind == "onlyif")
        if not lines or not wanted:
            continue
        number, head = lines[0]
        words = head.split()
        if words[0] == "halt":
            return
        body = [found for _, found in lines[1:]]
        cut = body.index("----") if "----" in body else len(body)
        if words[0] in ("statement", "query"):
            yield Record(number, words, "\n".join(body[:cut]), body[cut + 1 :])


def run(text: str, engine: tk.Engine) -> Outcome:
    """What the records of a text come to on an engine."""
    outcome = Outcome()
    for record in records(text):
        try:
            rows = engine.sql(record.sql).rows()
        except tk.TektiteError as error:
            said = str(error).splitlines()[0]
            if record.words[:2] == ["statement", "error"]:
                outcome.right += 1
            elif isinstance(error, tk.UnsupportedError):
                outcome.refused.append(f"line {record.line}: {said}")
            else:
                outcome.wrong.append(f"line {record.line}: {type(error).__name__}: {said}")
        except Exception as error:
            outcome.wrong.append(f"line {record.line}: {type(error).__name__}: {error}")
        else:
            fault = "no error" if record.words[:2] == ["statement", "error"] else difference(record, rows)
            if fault is None:
                outcome.right += 1
            else:
                outcome.wrong.append(f"line {record.line}: {fault}")
    return outcome


def difference(record: Record, rows: list[tuple[Any, ...]]) -> str | None:
    """How an answer differs from the one in the file; None if it does not."""
    if record.words[0] == "statement":
        return None
    types = record.words[1] if len(record.words) > 1 else ""
    order = record.words[2] if len(record.words) > 2 else "nosort"
    if rows and len(rows[0]) != len(types):
        return f"{len(rows[0])} columns instead of {len(types)}"
    found = [[cell(value, type) for value, type in zip(row, types, strict=True)] for row in rows]
    if order == "rowsort":
        found.sort()
    values = [value for row in found for value in row]
    if order == "valuesort":
        values.sort()
    hashed = HASHED.fullmatch(record.answer[0]) if len(record.answer) == 1 else None
    if hashed:
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
        agree = (len(values), digest) == (int(hashed[1]), hashed[2])
        return None if agree else f"{len(values)} values hashing to {digest}"
    expected = [line.split("\t") for line in record.answer]
    if len(types) > 1 and all(len(line) == len(types) for line in expected):
        wanted = [value for line in (sorted(expected) if order == "rowsort" else expected) for value in line]
    else:
        wanted = record.answer
    wanted = sorted(wanted) if order == "valuesort" else wanted
    return None if values == wanted else f"answers {values} instead of {wanted}"


def cell(value: Any, type: str) -> str:
    """A value as the files write it."""
    if value is None:
        return "NULL"
    if type == "I":
        return str(int(value))
    if type == "R":
        return f"{float(value):.3f}"
    return str(value) or "(empty)"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tk.Engine() as made:
            found = run(Path(name).read_text(encoding="utf-8"), made)
        print(f"{name}: {found.right} right, {len(found.refused)} refused, {len(found.wrong)} wrong")
        for said in (*found.wrong, *found.refused):
            print(f"  {said}")
