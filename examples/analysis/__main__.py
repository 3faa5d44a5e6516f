"""`python -m examples.analysis`: questions about Java and C programs, answered from facts, kept up to date while files change."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tektite as tk
from examples.analysis.c import questions as of_c
from examples.analysis.fact_base import Facts
from examples.analysis.grammar import Reachability, read_edges, read_grammar
from examples.analysis.java import questions as of_java
from examples.analysis.watched import Analysis

# How often files are looked at. Nobody edits faster.
PAUSE = 0.2


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.analysis", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    java = commands.add_parser("java", help="ask about jars and class files", epilog=listed(of_java.QUESTIONS))
    java.set_defaults(run=run_java)
    java.add_argument("question", choices=of_java.QUESTIONS, metavar="QUESTION")
    java.add_argument(
        "--context", choices=of_java.CONTEXTS, default="insensitive", help="what tells calls and objects apart"
    )
    for name in ("entry", "source", "sink", "sanitizer"):
        java.add_argument(f"--{name}", action="append", default=[], help=HELP[name])
    c = commands.add_parser("c", help="ask about C sources and .ll files", epilog=listed(of_c.QUESTIONS))
    c.set_defaults(run=run_c)
    c.add_argument("question", choices=of_c.QUESTIONS, metavar="QUESTION")
    c.add_argument("--clang", action="append", default=[], help="an option for clang, such as --clang=-DNDEBUG")
    for command in (java, c):
        command.add_argument("paths", nargs="+", type=existing, help="files and folders")
        command.add_argument("--watch", action="store_true", help="go on, and print what changes when a file does")
        command.add_argument("--containing", default="", help="print only rows in which a column contains this text")
        command.add_argument("-j", type=int, default=1, dest="workers", help="threads")
    facts = commands.add_parser("facts", help="write facts as Soufflé reads them")
    facts.set_defaults(run=run_facts)
    facts.add_argument("language", choices=["java", "c"])
    facts.add_argument("paths", nargs="+", type=existing)
    facts.add_argument("--out", type=Path, required=True, help="the folder")
    reach = commands.add_parser("reach", help="what a grammar derives from labelled edges (context-free reachability)")
    reach.set_defaults(run=run_reach)
    reach.add_argument("grammar", type=existing)
    reach.add_argument("edges", type=existing, help="lines of two nodes and a label")
    reach.add_argument("symbol")
    reach.add_argument("--start", help="only from this node: derives what leads there, and nothing else")
    reach.add_argument("--end", help="only to this node")
    return parser.parse_args(words)


HELP = {
    "entry": "a method that is entered, such as 'a.B.main(java.lang.String[])void'; without any, all public ones are",
    "source": "taint: a method whose results are tainted, CLASS.METHOD",
    "sink": "taint: an argument that must not be, CLASS.METHOD:INDEX; -1 is the receiver",
    "sanitizer": "taint: a method whose results are clean, CLASS.METHOD",
}


def listed(questions: dict[str, tuple[str, str]]) -> str:
    return "Questions: " + "; ".join(f"{name}: {meaning}" for name, (_, meaning) in questions.items())


def existing(text: str) -> Path:
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no {text}")
    return path


def run_java(given: argparse.Namespace) -> None:
    with of_java.analysis(given.paths, given.workers) as found:
        found.state("EntryPoint", [(entry,) for entry in given.entry])
        found.state("TaintSource", [method(one) for one in given.source])
        found.state("TaintSanitizer", [method(one) for one in given.sanitizer])
        found.state("TaintSink", [(*method(one.rpartition(":")[0]), int(one.rpartition(":")[2])) for one in given.sink])
        answer(found, of_java.predicate(given.question, given.context), given)


def method(text: str) -> tuple[str, str]:
    """Class and name of a method."""
    class_, _, name = text.rpartition(".")
    if not class_:
        raise ValueError(f"{text!r} names no method: write CLASS.METHOD")
    return class_, name


def run_c(given: argparse.Namespace) -> None:
    with of_c.analysis(given.paths, given.clang, given.workers) as found:
        answer(found, of_c.QUESTIONS[given.question][0], given)


def answer(found: Analysis, predicate: str, given: argparse.Namespace) -> None:
    """Print the answer, and with --watch what changes."""
    changed = found.refresh()
    note(f"{changed} facts")
    view = found.ask(predicate)
    rows = chosen(view.rows(), given.containing)
    show(sorted(rows), "")
    note(f"{len(rows)} rows")
    while given.watch:
        time.sleep(PAUSE)
        try:
            changed = found.refresh()
        except ValueError as error:  # a file that is half written, or does not compile
            note(str(error))
            time.sleep(PAUSE * 5)
            continue
        if changed:
            started = time.perf_counter()
            after = chosen(view.rows(), given.containing)
            note(f"{changed} facts changed; the answer followed in {1000 * (time.perf_counter() - started):.0f} ms")
            show(sorted(rows - after), "- ")
            show(sorted(after - rows), "+ ")
            rows = after


def chosen(rows: Iterable[tuple[Any, ...]], part: str) -> set[tuple[Any, ...]]:
    return {row for row in rows if any(part in str(value) for value in row)}


def run_facts(given: argparse.Namespace) -> None:
    extract: Callable[[Sequence[Path]], Any] = of_java.extract if given.language == "java" else of_c.extract
    written = write_facts(extract(given.paths).values(), given.out)
    note(f"{written} facts in {given.out}")


def write_facts(units: Iterable[Facts], folder: Path) -> int:
    """Write the facts of some units, a file for each relation. Gives their number."""
    found: dict[str, dict[tuple[Any, ...], None]] = {}
    for unit in units:
        for relation, rows in unit.items():
            found.setdefault(relation, {}).update(dict.fromkeys(rows))
    folder.mkdir(parents=True, exist_ok=True)
    for relation, facts in found.items():
        lines = ("\t".join(map(str, row)) + "\n" for row in facts)
        (folder / f"{relation}.facts").write_text("".join(lines), encoding="utf-8")
    return sum(map(len, found.values()))


def run_reach(given: argparse.Namespace) -> None:
    grammar = read_grammar(given.grammar.read_text(encoding="utf-8"), str(given.grammar))
    with tk.Engine() as engine:
        reachability = Reachability(grammar, engine)
        reachability.insert(read_edges(given.edges))
        if given.start is None and given.end is None:
            show(sorted(reachability.view(given.symbol).rows()), "")
        else:
            show(reachability.goal(given.symbol, given.start, given.end), "")


def show(rows: Iterable[tuple[Any, ...]], mark: str) -> None:
    for row in rows:
        print(mark + "\t".join(map(str, row)))


def note(text: str) -> None:
    print(text, file=sys.stderr)


def main(words: Sequence[str] | None = None) -> int:
    """Run a command. Gives the exit status."""
    given = arguments(words)
    try:
        given.run(given)
    except (ValueError, tk.TektiteError) as error:
        note(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
