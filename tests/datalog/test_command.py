"""`tektite datalog` runs Soufflé programs over fact files."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tektite.__main__ import app

PROGRAM = """
// Who can reach whom, and how far the farthest is.
.type Node <: symbol
.decl edge(from: Node, to: Node, weight: float)
.input edge
.decl blocked(n: Node)
.input blocked(filename="closed.txt", delimiter=",")
.decl reach(a: Node, b: Node)
.output reach
.decl degree(a: Node, n: number)
.output degree(filename="out.tsv")
.printsize reach
/* one step, then further */
reach(a, b) :- edge(a, b, _), !blocked(b).
reach(a, c) :- reach(a, b), reach(b, c). .plan 1:(1,0)
degree(a, n) :- edge(a, _, _), n = count : { edge(a, _, w), w > 0.5 }.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    facts = tmp_path / "facts"
    facts.mkdir()
    (facts / "edge.facts").write_text("a\tb\t1.0\nb\tc d\t0.25\nc d\ta\t2\nc d\tx\t3e2\n", newline="\n")
    (facts / "closed.txt").write_text("x\n")
    return tmp_path


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["datalog", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_program_reads_and_writes_files_as_souffle_does(folder: Path, workers: str) -> None:
    code, out, err = run(folder / "p.dl", "-F", folder / "facts", "-D", folder / "out", "-j", workers)
    assert code == 0, err
    assert out == "reach\t9\n"
    nodes = ["a", "b", "c d"]
    assert (folder / "out" / "reach.csv").read_text() == "".join(f"{a}\t{b}\n" for a in nodes for b in nodes)
    assert (folder / "out" / "out.tsv").read_text() == "a\t1\nb\t0\nc d\t2\n"
    assert "load edge from" in err and "4 facts" in err


def test_results_can_go_to_the_terminal(folder: Path) -> None:
    code, out, err = run(folder / "p.dl", "-F", folder / "facts", "-D", "-", "--quiet")
    assert code == 0
    assert "---------------\ndegree\n===============\na\t1\nb\t0\nc d\t2\n===============\n" in out
    assert err == ""


def test_explanation_is_shown_on_demand(folder: Path) -> None:
    _, out, _ = run(folder / "p.dl", "-F", folder / "facts", "-D", folder, "--explain")
    assert "reach: recursive, in a loop" in out


def test_bad_line_ends_with_its_place(folder: Path) -> None:
    (folder / "facts" / "edge.facts").write_text("a\tb\t1.0\na\tb\tmuch\n")
    code, _, err = run(folder / "p.dl", "-F", folder / "facts")
    assert code == 1
    assert "edge.facts:2: column 'weight': expected float, found 'much'" in err.replace("\n", "")


def test_bad_program_ends_with_its_place(folder: Path) -> None:
    (folder / "p.dl").write_text(".decl p(x: number)\np(x) :- q(x)\n")
    code, _, err = run(folder / "p.dl")
    assert code == 1
    assert "p.dl:2:" in err


def test_missing_files_are_named(folder: Path) -> None:
    code, _, err = run(folder / "p.dl", "-F", folder)
    assert code == 1 and "no fact file" in err
    code, _, err = run(folder / "nothing.dl")
    assert code == 1 and "cannot read the program" in err


def test_output_of_an_input_is_what_was_read(folder: Path) -> None:
    (folder / "p.dl").write_text(".decl n(x: number)\n.input n\n.output n\n")
    (folder / "facts" / "n.facts").write_text("3\n1\n2\n1\n")
    assert run(folder / "p.dl", "-F", folder / "facts", "-D", folder)[0] == 0
    assert (folder / "n.csv").read_text() == "1\n2\n3\n"


def test_recursion_that_does_not_end_is_an_error(folder: Path) -> None:
    (folder / "p.dl").write_text("n(0). n(x + 1) :- n(x).\n.output n\n")
    code, _, err = run(folder / "p.dl", "-D", folder, "--rounds", "20")
    assert code == 1
    assert "20 rounds" in err


def relation(folder: Path, declared: str, directives: str, content: str) -> str:
    """What a program writes that reads a relation p and writes it."""
    (folder / "p.dl").write_text(f".decl p({declared})\n{directives}\n")
    (folder / "facts" / "p.facts").write_text(content)
    code, _, err = run(folder / "p.dl", "-F", folder / "facts", "-D", folder)
    assert code == 0, err
    return (folder / "p.csv").read_text()


NUMBERS = "x: number, y: symbol"


@pytest.mark.parametrize(
    ("declared", "directives", "content", "expected"),
    [
        (NUMBERS, '.input p(columns="1:0")\n.output p', "a\t1\nb\t2\n", "1\ta\n2\tb\n"),
        (NUMBERS, '.input p(columns="2:0")\n.output p', "a\tx\t1\tz\nb\tx\t2\tz\n", "1\ta\n2\tb\n"),
        (NUMBERS, '.input p(columns="1:0")\n.output p', "a\t1\tmore\nb\t2\n", "1\ta\n2\tb\n"),
        ("x: symbol", '.input p(columns="1")\n.output p', "a\t1\nb\t2\n", "1\n2\n"),
        (NUMBERS, '.input p(headers=true)\n.output p(headers="true", delimiter=";")', "x\ty\n1\ta\n", "x;y\n1;a\n"),
        ("x: symbol", ".input p(headers=true)\n.output p", "x\na\n", "a\n"),
        (
            NUMBERS,
            '.input p(rfc4180=true, delimiter=",")\n.output p(rfc4180=true)',
            '1,"a,b"\n2,"say ""hi"""\n3,"two\nlines"\n4,\n',
            '1,"a,b"\n2,"say ""hi"""\n3,"two\nlines"\n4,""\n',
        ),
        ("x: symbol", ".input p(rfc4180=true)\n.output p", '"a"\n\n"b"\n', "\na\nb\n"),
    ],
)
def test_parameters_of_files_are_honoured(
    folder: Path, declared: str, directives: str, content: str, expected: str
) -> None:
    assert relation(folder, declared, directives, content) == expected


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        (".input p(compress=true)", r"p.dl:2:8: .input p: parameter 'compress' is not supported; there are: IO, filename"),
        ('.output p(columns="1:0")', r"p.dl:2:9: .output p: parameter 'columns' is not supported"),
        (".printsize p(headers=true)", r"p.dl:2:12: .printsize p: parameter 'headers' is not supported"),
        (".input p(headers=maybe)", "headers is true or false, not 'maybe'"),
        ('.input p(columns="1:1")', "different places in a line, such as 1:0, not '1:1'"),
        ('.input p(columns="1")', "columns='1' gives 1 places for the columns x, y"),
        ('.input p(delimiter="||")', "a delimiter is one character"),
        (".input p(IO=kafka)", "IO=kafka is not supported"),
    ],
)  # fmt: skip
def test_parameter_that_is_not_understood_is_refused_with_its_place(folder: Path, directive: str, message: str) -> None:
    (folder / "p.dl").write_text(f".decl p({NUMBERS})\n{directive}\n")
    (folder / "facts" / "p.facts").write_text("1\ta\n")
    code, _, err = run(folder / "p.dl", "-F", folder / "facts", "-D", folder)
    assert code == 1
    assert message in err.replace("\n", "")


def test_relation_that_is_read_and_has_rules_is_written_as_a_whole(folder: Path) -> None:
    directives = '.input p\np(x + 1, "more") :- p(x, _), x < 2.\np(0, "fact").\n.output p\n.printsize p'
    assert relation(folder, NUMBERS, directives, "1\ta\n") == "0\tfact\n1\ta\n1\tmore\n2\tmore\n"


def test_stored_relation_has_several_outputs(folder: Path) -> None:
    (folder / "p.dl").write_text(f".decl p({NUMBERS})\n.input p\n.output p\n.output p(IO=stdout)\n.printsize p\n")
    (folder / "facts" / "p.facts").write_text("1\ta\n")
    code, out, err = run(folder / "p.dl", "-F", folder / "facts", "-D", folder)
    assert code == 0, err
    assert (folder / "p.csv").read_text() == "1\ta\n"
    assert "1\ta\n===============\np\t1\n" in out


def test_package_runs_as_a_module() -> None:
    found = subprocess.run([sys.executable, "-m", "tektite", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("tektite ")


LANGUAGE = """
#include "lib/common.dl"
#define LIMIT 3
#ifdef SMALL
.decl small(x: number)
.output small(IO=stdout, headers=true)
small(x) :- number_of(x), x < LIMIT.
#endif
.pragma "legacy"
.output number_of, pair(IO=json), pair_in(IO=sqlite, filename="out.db"), holds, ratio(IO=stdout), holds_too(IO=stdout)
.type Tree = Leaf {} | Node { left: Tree, n: number, right: Tree }
.decl pair(p: Pair, t: Tree)
pair(p, $Node($Leaf, n, $Leaf)) :- pair_in(p, _), p = [n, _].
.decl pair_in(p: Pair, t: Tree)
.input pair_in
.decl holds()
holds() :- number_of(1), flag().
.decl flag()
.input flag
.decl holds_too()
holds_too() :- holds().
.decl ratio(f: float)
ratio(0.1). ratio(2).
.functor twice(x: number): number
number_of(@twice(x)) :- number_of(x), x < 3.
"""


@pytest.fixture
def language(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "common.dl").write_text(
        ".type Pair = [n: number, s: symbol]\n.decl number_of(x: number)\n.input number_of(IO=jsonfile)\n"
    )
    (tmp_path / "p.dl").write_text(LANGUAGE)
    (tmp_path / "f.py").write_text("def twice(x):\n    return helper(x)\n\ndef helper(x):\n    return 2 * x\n")
    (tmp_path / "number_of.json").write_text('[[1], {"x": 5}]')
    (tmp_path / "flag.facts").write_text("()\n")
    (tmp_path / "pair_in.facts").write_text("[1, a b]\t$Leaf\n[2, c]\t$Node($Leaf, 3, $Node($Leaf, 4, $Leaf))\n")
    return tmp_path


def test_program_with_files_of_every_format_runs_as_it_is(language: Path) -> None:
    code, out, err = run(
        language / "p.dl", "-F", language, "-D", language / "out", "-M", "SMALL", "-l", language / "f.py"
    )
    assert code == 0, err
    assert '.pragma "legacy" has no effect' in err.replace("\n", "")
    assert out == (
        "---------------\nsmall\nx\n===============\n1\n2\n===============\n"
        "---------------\nratio\n===============\n0.10000000000000001\n2\n===============\n"
        "---------------\nholds_too\n===============\n()\n===============\n"
    )
    assert (language / "out" / "number_of.csv").read_text() == "1\n2\n4\n5\n"
    assert (language / "out" / "holds.csv").read_text() == "()\n"
    found = json.loads((language / "out" / "pair.json").read_text())
    leaf = {"tag": "Leaf", "fields": []}
    assert found == [
        [[1, "a b"], {"tag": "Node", "fields": [leaf, 1, leaf]}],
        [[2, "c"], {"tag": "Node", "fields": [leaf, 2, leaf]}],
    ]
    with closing(sqlite3.connect(language / "out" / "out.db")) as database:
        rows = database.execute("SELECT * FROM pair_in").fetchall()
    assert rows == [("[1, a b]", "$Leaf"), ("[2, c]", "$Node($Leaf, 3, $Node($Leaf, 4, $Leaf))")]


@pytest.mark.parametrize("kind", ["file", "json", "sqlite"])
def test_facts_that_were_written_are_read_again(tmp_path: Path, kind: str) -> None:
    declared = """
        .type P = [n: number, s: symbol, t: T]   .type T = A {} | B { x: float, p: P }
        .decl r(p: P, n: number, s: symbol, f: float)
    """
    facts = 'r([1, "a", $B(0.5, nil)], 2, "x y", 0.25). r(nil, -3, "", 1). r([2, "b", $A], 7, "z", 2).'
    (tmp_path / "one.dl").write_text(f'{declared} {facts} .output r(IO={kind}, filename="r.out")')
    (tmp_path / "two.dl").write_text(f'{declared} .input r(IO={kind}, filename="r.out") .output r(IO=stdout)')
    assert run(tmp_path / "one.dl", "-D", tmp_path)[0] == 0
    code, out, err = run(tmp_path / "two.dl", "-F", tmp_path)
    assert code == 0, err
    rows = out.split("===============\n")[1].splitlines()
    assert sorted(rows) == ["[1, a, $B(0.5, nil)]\t2\tx y\t0.25", "[2, b, $A]\t7\tz\t2", "nil\t-3\t\t1"]


BAD = {
    "a record that is cut off": ("[1, a", "pair_in.facts:1: column 'p': expected a value of type Pair"),
    "a tag that there is not": ("[1, a]\t$Bush", r"column 't': expected a value of type Tree, found '\$Bush'"),
    "a number that is none": ("[x, a]\t$Leaf", "expected a value of type number, found 'x, a]'"),
    "something behind a record": ("[1, a] b\t$Leaf", "did not expect 'b' behind a value of type Pair"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD.keys())
def test_record_that_does_not_fit_is_named_with_its_place(language: Path, line: str, message: str) -> None:
    (language / "pair_in.facts").write_text(line if "\t" in line else f"{line}\t$Leaf")
    code, _, err = run(language / "p.dl", "-F", language, "-D", language / "out", "-l", language / "f.py")
    assert code == 1
    assert re.search(message, err.replace("\n", "")), err


def test_errors_name_the_included_file_and_its_line(language: Path) -> None:
    (language / "lib" / "common.dl").write_text("\n\n.decl number_of(x: nothing)\n")
    code, _, err = run(language / "p.dl", "-F", language)
    assert code == 1
    assert "common.dl:3:17: there is no type 'nothing'" in err.replace("\n", "")
