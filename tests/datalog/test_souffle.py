"""Programs as Soufflé's users write them run as they are, with the answers that Soufflé's documentation gives."""

from __future__ import annotations

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

PROGRAMS = {
    "the tutorial's security analysis": (
        """
        .type node = symbol
        .decl Unsafe( n:node )
        Unsafe("while").
        Unsafe(y) :- Unsafe(x), Edge(x, y), !Protect(y).
        .decl Protect( n:node )
        Protect("protect").
        .decl Vulnerable( n:node )
        Vulnerable("ins").
        .decl Edge( n:node, m:node)
        Edge("start", "while").
        Edge("while","protect"). Edge("while","ins"). Edge("ins","end").
        .decl Violation( n:node )
        Violation(x) :- Vulnerable(x), Unsafe(x).
        .output Violation,Unsafe
        """,
        {"Violation": [("ins",)], "Unsafe": [("end",), ("ins",), ("while",)]},
    ),
    "Fibonacci numbers": (
        """
        .decl Fib(i:number, a:number)
        .output Fib
        Fib(1, 1). Fib(2, 1).
        Fib(i + 1, a + b) :- Fib(i, a), Fib(i-1, b), i < 8.
        """,
        {"Fib": [(1, 1), (2, 1), (3, 2), (4, 3), (5, 5), (6, 8), (7, 13), (8, 21)]},
    ),
    "aggregates": (
        """
        .decl Car(name: symbol, colour:symbol, speed:number)
        Car("Audi", "blue", 160). Car("BMW", "red", 180). Car("Mercedes", "red", 170).
        .decl Red(n:number)
        Red(c) :- c = count : { Car(_, "red", _) }.
        .decl Fast(name:symbol, s:number)
        Fast(n, s) :- Car(n, _, s), s = max x : { Car(_, _, x) }.
        .decl Sum(c:symbol, s:number)
        Sum(c, s) :- Car(_, c, _), s = sum x : Car(_, c, x).
        .decl Mean(m: float)
        Mean(m) :- m = mean x : { Car(_,_,x) }.
        .output Red, Fast, Sum, Mean
        """,
        {
            "Red": [(2,)],
            "Fast": [("BMW", 180)],
            "Sum": [("blue", 160), ("red", 350)],
            "Mean": [(170.0,)],
        },
    ),
    "several heads, alternatives and functions": (
        """
        .decl W(x:symbol)
        W("hello"). W("ab").
        .decl A(x:symbol, n:number) .decl B(x:symbol) .decl C(x: symbol) .decl D(a: number, b: number)
        A(x, n), B(y) :- W(x), n = strlen(x), y = cat(x, "!").
        C(substr(x, 0, 1)) :- W(x), (strlen(x) > 3 ; x = "ab").
        D(7 / 2, -7 / 2). D(-7 % 3, 2^10). D(x, y) :- x = min(3, 4), y = max(1, 2, 9).
        .output A,B,C,D
        """,
        {
            "A": [("ab", 2), ("hello", 5)],
            "B": [("ab!",), ("hello!",)],
            "C": [("a",), ("h",)],
            "D": [(-1, 1024), (3, -3), (3, 9)],
        },
    ),
    "repeated variables, equality and aggregates inside aggregates": (
        """
        .decl e(x:number,y:number)
        e(1,1). e(1,2). e(2,2). e(3,1).
        .decl self(x:number)
        self(x) :- e(x,x).
        .decl eq(x:number,y:number)
        eq(a,c) :- e(a,b), b = c, c != a.
        .decl deg(n: number, c: number)
        deg(x, n) :- e(x,_), n = count : { e(x, y), m = count : { e(y, _) }, m > 1 }.
        .output self, eq, deg
        """,
        {"self": [(1,), (2,)], "eq": [(1, 2), (3, 1)], "deg": [(1, 1), (2, 0), (3, 1)]},
    ),
    "bits": (
        """
        .decl p(x: number)
        p(6). p(-1).
        .decl q(x: number, a: number, b: number, c: number, d: number)
        q(x, x band 3, x bor 1, x bxor 5, bnot x) :- p(x).
        .decl r(x: number, y: number, z: number)
        r(x bshl 1 + 1, x bshr 1, 1 bor x band (1 + 1)) :- p(x), x band 4 = 4, x > 0.
        .decl s(bandwidth: number)
        s(-bandwidth ^ 2) :- p(bandwidth), bandwidth mod 2 = 0.
        .output q, r, s
        """,
        {"q": [(-1, 3, -1, -6, 0), (6, 2, 7, 3, -7)], "r": [(24, 3, 3)], "s": [(-36,)]},
    ),
    "types behind the declarations that use them, and names of any alphabet": (
        """
        .decl größe(länge: Maß)
        größe(3).
        .decl größer(länge: Maß)
        größer(länge + 1) :- größe(länge).
        .type Maß = Länge
        .type Länge <: unsigned
        .output größer
        """,
        {"größer": [(4,)]},
    ),
    "floats": (
        """
        .decl p(x: float)
        p(1.5). p(2).
        .decl q(x: float)
        q(x * 2.0) :- p(x). q(x / 4) :- p(x).
        .output q
        """,
        {"q": [(0.375,), (0.5,), (3.0,), (4.0,)]},
    ),
}


@pytest.mark.parametrize(("text", "expected"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_runs_as_it_is(text: str, expected: dict[str, list[tuple[object, ...]]]) -> None:
    with make_engine() as engine:
        program = engine.datalog(text)
        assert set(program.outputs) == set(expected)
        assert {name: sorted(program[name].rows()) for name in program.outputs} == expected


def test_relation_that_is_read_and_has_rules_of_its_own_is_seen_as_a_whole() -> None:
    with make_engine() as engine:
        program = engine.datalog("""
            .decl e(x: number, y: number)
            .input e
            .output e
            e(y, x) :- e(x, y).
            .decl f(x: number)
            .input f
            f(7).
            both(x) :- f(x), e(x, _).
        """)
        e, f, both = program["e"], engine.view("f"), engine.view("both")
        assert engine.view("e") is e
        engine.table("e").insert([(1, 2), (7, 7)])
        engine.table("f").insert([(1,)])
        engine.advance()
        assert sorted(e.rows()) == [(1, 2), (2, 1), (7, 7)]
        assert sorted(f.rows()) == [(1,), (7,)]
        assert sorted(both.rows()) == [(1,), (7,)]
        assert engine.query("e(2, ?)").rows() == [(2, 1)]
        engine.table("e").remove([(1, 2)])
        engine.advance()
        assert e.rows() == [(7, 7)]
        assert both.rows() == [(7,)]
        with pytest.raises(tk.ConflictError, match="its view is maintained"):
            program.drop()


@pytest.mark.executors("stages")
def test_facts_of_a_program_are_there_before_an_epoch_closes_however_short_a_turn_is() -> None:
    with make_engine(turn=0) as engine:
        program = engine.datalog(
            "w(1). w(2). shared(x + 1) :- w(x), x > 0. shared(x) :- w(x). a(x) :- shared(x), w(x)."
        )
        assert sorted(program["a"].rows()) == [(1,), (2,)]
