"""Context-free reachability: grammars as Datalog, goals, changes, and errors that name the line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from examples.analysis import __main__ as command
from examples.analysis.grammar import BadGrammar, Grammar, Reachability, read_edges, read_grammar
from tests.support.executors import make_engine

GRAMMARS = Path(command.__file__).parent / "grammars"
Edge = tuple[str, str, str]
pytestmark = pytest.mark.executors


def derived(grammar: Grammar, edges: set[Edge]) -> dict[str, set[tuple[str, str]]]:
    """The slow twin: every production over all pairs, until nothing changes."""
    nodes = {node for edge in edges for node in edge[:2]}
    found = {label: {(x, y) for x, y, given in edges if given == label} for label in grammar.labels}
    found |= {symbol: set() for symbol in grammar.derived}
    size = -1
    while size != sum(map(len, found.values())):
        size = sum(map(len, found.values()))
        for production in grammar.productions:
            paths = {(node, node) for node in nodes}
            for symbol in production.body:
                pairs = found[symbol.removeprefix("-")]
                turned = {(y, x) for x, y in pairs} if symbol.startswith("-") else pairs
                paths = {(x, z) for x, y in paths for w, z in turned if w == y}
            found[production.head] |= paths
    return found


@pytest.mark.executors("stages", spark=["dataflow"])
@pytest.mark.parametrize("name", ["dataflow", "points_to"])
def test_what_a_grammar_derives_equals_the_slow_twin_after_every_change(name: str) -> None:
    grammar = read_grammar((GRAMMARS / f"{name}.grammar").read_text())
    numbers = random.Random(3)
    nodes = [f"v{number}" for number in range(7)]
    present: set[Edge] = set()
    with make_engine() as engine:
        reachability = Reachability(grammar, engine)
        views = {symbol: reachability.view(symbol) for symbol in grammar.derived}
        for _ in range(4):
            coming = {(numbers.choice(nodes), numbers.choice(nodes), numbers.choice(grammar.labels)) for _ in range(4)}
            going = {*numbers.sample(sorted(present), len(present) // 3)}
            reachability.insert(coming - present)
            reachability.remove(going - coming)
            present = (present - going) | coming
            expected = derived(grammar, present)
            assert {symbol: {*view.rows()} for symbol, view in views.items()} == {
                symbol: expected[symbol] for symbol in grammar.derived
            }


def test_a_goal_gives_what_the_view_has_for_its_node() -> None:
    grammar = read_grammar("P\nP P e\nB ( e".replace("(", "-e"))
    with make_engine() as engine:
        reachability = Reachability(grammar, engine)
        reachability.insert([("a", "b", "e"), ("b", "c", "e"), ("x", "c", "e")])
        assert reachability.goal("P", start="a") == [("a", "a"), ("a", "b"), ("a", "c")]
        assert reachability.goal("P", end="c") == [("a", "c"), ("b", "c"), ("c", "c"), ("x", "c")]
        assert reachability.goal("P", start="a", end="x") == []
        assert reachability.goal("B", start="b") == [("b", "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g: has no productions"),
        ("# only this", "g: has no productions"),
        ("N n\nN N 3", "g, line 2: '3' is no symbol"),
        ("N n | e", r"g, line 1: '\|' is no symbol"),
        ("-N n", "g, line 1: a line derives 'N', not '-N'"),
        ("N n\nN N", "g, line 2: 'N' is derived from itself alone"),
        ("A B a\nB A b", "g: 'A' can never be derived"),
        ("N' n\nN_prime n", "would both be called 'N_prime'"),
        ("node e", "would both be called 'node'"),
        ("edge_e e", "would both be called 'edge_e'"),
    ],
)
def test_a_grammar_that_cannot_be_is_an_error_that_says_where(text: str, message: str) -> None:
    with pytest.raises(BadGrammar, match=message):
        read_grammar(text, "g")


def test_edges_and_symbols_that_the_grammar_lacks_change_nothing(tmp_path: Path) -> None:
    with make_engine() as engine:
        reachability = Reachability(read_grammar("N n\nN N e"), engine)
        with pytest.raises(BadGrammar, match="edges with the label 'x': the grammar's labels are e, n"):
            reachability.insert([("a", "b", "n"), ("a", "b", "x")])
        with pytest.raises(BadGrammar, match="does not derive 'M'; it derives N"):
            reachability.view("M")
        assert reachability.view("N").rows() == []
    path = tmp_path / "edges"
    path.write_text("a b n\na b")
    with pytest.raises(BadGrammar, match="edges, line 2: an edge is two nodes and a label, found 2 words"):
        list(read_edges(path))


def test_the_command_answers_and_names_errors(capsys: Any, tmp_path: Path) -> None:
    edges = tmp_path / "edges"
    edges.write_text("o x n\nx y e\ny z e\n")
    grammar = str(GRAMMARS / "dataflow.grammar")
    assert command.main(["reach", grammar, str(edges), "N"]) == 0
    assert capsys.readouterr().out == "o\tx\no\ty\no\tz\n"
    assert command.main(["reach", grammar, str(edges), "M", "--start", "o"]) == 1
    assert "does not derive 'M'" in capsys.readouterr().err


def test_the_command_writes_facts_that_the_datalog_command_reads(tmp_path: Path) -> None:
    sample = Path(__file__).parent / "data" / "java" / "main.jar"
    assert command.main(["facts", "java", str(sample), "--out", str(tmp_path)]) == 0
    assert "Main$Lion\tMain$Cat" in (tmp_path / "DirectSuperclass.facts").read_text().splitlines()


def test_the_command_asks_about_a_program(capsys: Any) -> None:
    sample = Path(__file__).parent / "data" / "c" / "list.ll"
    assert command.main(["c", "null", str(sample), "--containing", "use"]) == 0
    assert (
        "list.c:22\tuse\tuse/find call 0\tlist.c:17 in find: find/phi1 = null" in capsys.readouterr().out.splitlines()
    )
