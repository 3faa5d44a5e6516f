"""What Soufflé's programs are made of has its answers here too, and keeps them while facts come and go."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

Rows = list[tuple[Any, ...]]

FACTS: dict[str, Rows] = {
    "e": [(1, 2), (2, 3), (3, 1), (5, 6), (7, 7)],
    "n": [(0,), (1,), (2,), (3,), (10,)],
    "t": [("a",), ("ab",), ("b",), ("xyz",), ("",)],
}

ANSWERS: dict[str, tuple[str, Rows]] = {
    # Predicates without columns.
    "a predicate without columns that holds": ("yes() :- e(1, _).  o(x) :- n(x), yes(), x < 2.", [(0,), (1,)]),
    "a predicate without columns that does not hold": ("yes() :- e(9, _).  o(x) :- n(x), !yes(), x < 2.", [(0,), (1,)]),
    "a predicate without columns, declared and asked for": (".decl o()  o() :- e(_, _), !n(7).", [(True,)]),
    # Aggregates within expressions and over expressions.
    "an aggregate within an expression": ("o(x) :- x = 10 * count : { n(_) } + 1.", [(51,)]),
    "two aggregates in one expression": ("o(x) :- x = max y : { n(y) } - min y : { n(y), y > 0 }.", [(9,)]),
    "an aggregate as an argument of a predicate": ("o(x) :- e(x, count : { n(_) } - 2).", [(2,)]),
    "an aggregate as an argument of a negation": ("o(x) :- n(x), x > 0, x < 4, !e(x, count : { n(_) } - 2).", [(1,), (3,)]),
    "an aggregate in a head": ("o(x, 2 * count : { e(x, _) }) :- n(x), x < 2.", [(0, 0), (1, 2)]),
    "an aggregate within a function": ("o(x) :- n(x), x < min(2, count : { n(_) }).", [(0,), (1,)]),
    "an aggregate in the term of another": ("o(x) :- x = sum y * (count : { e(y, _) }) : { n(y) }.", [(6,)]),
    "the least sum": ("o(m) :- m = min x + y : { e(x, y) }.", [(3,)]),
    "the greatest product and difference": ("o(m) :- m = max x * 10 - y ^ 2 : { e(x, y) }.", [(29,)]),
    "a sum of bits": ("o(m) :- m = sum x band 1 bor 2 : { e(x, _) }.", [(14,)]),
    # Numbers and texts.
    "an exponent that is computed": ("o(x, 2 ^ x) :- n(x).", [(0, 1), (1, 2), (2, 4), (3, 8), (10, 1024)]),
    "a power of a power": ("o(y ^ x ^ 2) :- e(x, y), x < 3.", [(2,), (81,)]),
    "negative powers": ("o(x, x ^ -1) :- n(x), x < 3, x > 0.", [(1, 1), (2, 0)]),
    "powers of floats": ("o(to_float(x) ^ 0.5) :- n(x), x < 2.", [(0.0,), (1.0,)]),
    "logic of numbers": (
        "o(x, x land 2, x lor 0, lnot x, x lxor 1) :- n(x), x < 3.", [(0, 0, 0, 1, 1), (1, 1, 1, 0, 0), (2, 1, 1, 0, 0)],
    ),
    "logic binds less than arithmetic": ("o(x - 1 lor x - 1 land 0) :- n(x), x < 3.", [(0,), (1,)]),
    "a shift with zeros": ("o(-1 bshru 60 + x) :- n(x), x < 2.", [(7,), (15,)]),
    "conversions": ("o(to_unsigned(1.9), to_number(to_string(x)), as(x, number)) :- n(x), x > 3.", [(1, 10, 10)]),
    "numbers of texts": (
        "o(to_number(x + \"10\"), to_number(\"-0xfF\"), to_number(\"0b101\")) :- t(x), x = \"\".", [(10, -255, 5)],
    ),
    "a range up": ("o(x) :- x = range(1, 4).", [(1,), (2,), (3,)]),
    "a range down": ("o(x) :- x = range(2, 0).", [(1,), (2,)]),
    "a range with steps": ("o(x) :- x = range(1, 8, 3).  "
        "o(x) :- x = range(0, -5, -2).", [(-4,), (-2,), (0,), (1,), (4,), (7,)]),
    "ranges of facts": ("o(y, x) :- n(y), y < 3, x = range(0, y).", [(1, 0), (2, 0), (2, 1)]),
    "a range within an expression": ("o(range(0, 3) * 2).", [(0,), (2,), (4,)]),
    "a range that is counted": ("o(c) :- c = count : { x = range(0, 100000), x % 7 = 0 }.", [(14286,)]),
    "an empty range": ("o(x) :- x = range(3, 3).  o(x) :- x = range(3, 5, -1).  o(9).", [(9,)]),
    "the number of a text": ("o(x) :- t(x), ord(x) = ord(\"ab\").  "
        "o(x) :- t(x), n(y), ord(y) = 10, x = \"b\".", [("ab",), ("b",)]),
    "texts that match": ("o(x) :- t(x), match(\"a.*\", x).", [("a",), ("ab",)]),
    "texts that do not match as a whole": ("o(x) :- t(x), !match(\"a|x|\", x).", [("ab",), ("b",), ("xyz",)]),
    "texts that contain": ("o(x) :- t(x), contains(\"b\", x).  "
        "o(x) :- t(x), t(y), y = \"a\", contains(y, x).", [("a",), ("ab",), ("b",)]),
    "texts that are joined by +": (
        "o(\"<\" + x + \">\" + to_string(1)) :- t(x), x != \"\", strlen(x) < 2.", [("<a>1",), ("<b>1",)],
    ),
    # Records.
    "records that are built and taken apart": (
        ".type P = [x: number, y: number]  .decl p(r: P)  p([y, x]) :- e(x, y).  "
        "o(x, y) :- p([x, y]), x < 3.", [(1, 3), (2, 1)],
    ),
    "a record as it is shown": (
        ".type P = [x: number, s: symbol, r: P, f: float]  .decl o(r: P)  o([1, s, nil, 2]) :- t(s), s = \"ab\".",
        [('[1, "ab", nil, 2.0]',)],
    ),
    "texts in records that look like records": (
        ".type P = [s: symbol, t: symbol]  .decl p(r: P)  p([cat(s, \", \\\"[\"), s]) :- t(s).  "
        "o(s) :- p([s, \"ab\"]).", [('ab, "[',)],
    ),
    "lists": (
        """
        .type L = [head: number, tail: L]
        .decl l(l: L)  .decl len(l: L, n: number)
        l([x, nil]) :- e(x, _), x < 4.   l([y, l]) :- l(l), l = [x, rest], e(x, y), len(l, k), k < 3.
        len(nil, 0).   len(l, n + 1) :- l(l), l = [_, rest], len(rest, n).
        o(l) :- l(l), len(l, 3), l = [1, _].
        """,
        [("[1, [3, [2, nil]]]",)],
    ),
    "nil": (
        ".type L = [x: number, l: L]  .decl l(l: L)  l(nil).  l([x, nil]) :- n(x), x < 2.  "
        "o(x) :- l([x, l]), l = nil.  o(9) :- l(nil).",
        [(0,), (1,), (9,)],
    ),
    "records within records, by pattern": (
        """
        .type P = [x: number, y: number]   .type Q = [a: P, b: P]   .decl q(q: Q)
        q([[x, y], [y, x]]) :- e(x, y).    o(a, b) :- q([[a, _], [_, b]]), q([_, [b, 1]]).
        """,
        [(2, 2)],
    ),
    "equal records join": (
        """
        .type P = [x: number, y: number]   .decl p(r: P)   .decl q(r: P, n: number)
        p([x, y]) :- e(x, y).   q([x, x + 1], x) :- n(x).   o(n) :- p(r), q(r, n).
        """,
        [(1,), (2,)],
    ),
    "a record in a negation": (
        ".type P = [x: number, y: number]  .decl p(r: P)  p([x, y]) :- e(x, y).  "
        "o(x) :- n(x), x < 4, !p([x, x + 1]).", [(0,), (3,)],
    ),
    "a pattern in a negation": (
        ".type P = [x: number, y: number]  .decl p(r: P)  p([x, y]) :- e(x, y).  o(x) :- n(x), !p([x, _]).", [(0,), (10,)],
    ),
    "records in aggregates": (
        ".type P = [x: number, y: number]  .decl p(r: P)  p([x, y]) :- e(x, y).  "
        "o(c, m) :- c = count : { p([x, x]) }, m = max x : { p([x, _]) }.",
        [(1, 7)],
    ),
    "records compared": (
        ".type P = [x: number, y: number]  .decl p(r: P)  p([x, y]) :- e(x, y).  o(x) :- p(r), r != [1, 2], r = [x, y], x < y.",
        [(2,), (5,)],
    ),
    # Tagged values.
    "tagged values": (
        """
        .type T = Num { x: number } | Add { a: T, b: T } | Zero {}
        .decl t(t: T)   .decl value(t: T, x: number)
        t($Add($Num(x), $Add($Num(y), $Zero))) :- e(x, y), x < 3.
        t(a), t(b) :- t($Add(a, b)).
        value(t, x) :- t(t), t = $Num(x).   value($Zero, 0) :- t($Zero).
        value(t, x + y) :- t(t), t = $Add(a, b), value(a, x), value(b, y).
        o(t, x) :- value(t, x), x > 2.
        """,
        [("$Add($Num(1), $Add($Num(2), $Zero))", 3), ("$Add($Num(2), $Add($Num(3), $Zero))", 5),
         ("$Add($Num(3), $Zero)", 3), ("$Num(3)", 3)],
    ),
    "tags that stand alone": (
        ".type C = Red {} | Green {}  .decl c(x: number, c: C)  c(x, $Red) :- n(x), x < 2.  "
        "c(x, $Green) :- n(x), x > 2.  o(x) :- c(x, $Green).",
        [(3,), (10,)],
    ),
    # Equivalence relations.
    "an equivalence relation": (
        ".decl q(x: number, y: number) eqrel  q(x, y) :- e(x, y).  o(x, y) :- q(x, y), x > 2, y > 1.",
        [(3, 2), (3, 3), (5, 5), (5, 6), (6, 5), (6, 6), (7, 7)],
    ),
    "an equivalence relation that is recursive": (
        ".decl q(x: number, y: number) eqrel  q(1, 5).  q(y, z) :- q(x, w), e(x, y), e(w, z).  "
        "o(x, y) :- q(x, y), x < y.", [(1, 5), (2, 6)],
    ),
    # Choices.
    "a choice": (".decl o(x: symbol, n: number) choice-domain x  o(x, n) :- t(x), n(n), n > strlen(x).",
                 [("", 1), ("a", 2), ("ab", 3), ("b", 2), ("xyz", 10)]),
    "a spanning tree": (
        ".decl o(x: number, y: number) choice-domain y  o(0, 1).  o(x, y) :- o(_, x), e(x, y).  "
        "o(x, y) :- o(_, x), e(x, z), e(z, y).",
        [(0, 1), (1, 2), (1, 3)],
    ),
    "a matching": (
        ".decl o(x: number, y: number) choice-domain x, y  o(x, y) :- n(x), n(y), x != y.", [(0, 1), (1, 0), (2, 3), (3, 2)],
    ),
    "pairs of columns": (
        ".decl o(a: number, b: number, c: number) choice-domain (a, b)  o(a, b, c) :- n(a), n(b), n(c), a < 1, b < 2.",
        [(0, 0, 0), (0, 1, 0)],
    ),
    "a choice that something reads": (
        ".decl c(k: number, x: number) choice-domain k  c(1, x) :- e(x, _).  "
        "o(x, n) :- c(_, x), n = count : { c(_, _) }.", [(1, 1)],
    ),
    # Subsumption.
    "subsumption by one column": ("o(1, y) :- e(_, y).  o(x, a) <= o(x, b) :- b <= a.", [(1, 1)]),
    "subsumption by two columns": (
        "o(x, y) :- e(x, y).  o(3, 4) :- n(3).  o(a, b) <= o(c, d) :- a <= c, b <= d.", [(7, 7)],
    ),
    "subsumption that leaves several": (
        "o(x, 10 - x) :- n(x), x < 4.  o(1, 5) :- n(1).  "
        "o(a, b) <= o(c, d) :- a <= c, b <= d.", [(0, 10), (1, 9), (2, 8), (3, 7)],
    ),
    "subsumption of records and floats, which are declared": (
        ".type P = [x: number]  .decl q(p: P, f: float)  q([x], to_float(x)) :- n(x), x = 3.  q([1], 2) :- n(1).  "
        "q([0], 1) :- n(1).  q(a, f) <= q(b, g) :- f < g, a = [x], b = [y], x < y.  o(x, f) :- q([x], f).", [(3, 3.0)],
    ),
    "subsumption whose body has the predicate itself": (
        "o(x) :- n(x).  o(a) <= o(b) :- !e(a, _), o(b), b > 3.", [(1,), (2,), (3,), (10,)],
    ),
    "subsumption in recursion": (
        "far(x, y, 1, y) :- e(x, y).  far(x, z, k + 1, c + z) :- far(x, y, k, c), e(y, z).  "
        "far(x, y, j, b) <= far(x, y, k, c) :- k <= j, c <= b.  o(y, k, c) :- far(1, y, k, c).",
        [(1, 3, 6), (2, 1, 2), (3, 2, 5)],
    ),
    "subsumption of records in recursion": (
        ".type I = [low: number, high: number]  .decl v(x: number, i: I)  v(1, [0, 0]) :- n(0).  "
        "v(y, [l, h + 1]) :- v(x, [l, h]), e(x, y), h < 9.  v(x, [a, b]) <= v(x, [c, d]) :- c <= a, b <= d.  o(x, i) :- v(x, i).",
        [(1, "[0, 9]"), (2, "[0, 7]"), (3, "[0, 8]")],
    ),
    "subsumption by another predicate": (
        "o(x) :- n(x).  o(a) <= o(b) :- e(a, b).", [(0,), (10,)],
    ),
    # Components.
    "components with parameters, bases and overriding": (
        """
        .comp Graph<T> {
            .decl edge(x: T, y: T)
            .decl path(x: T, y: T) overridable
            path(x, y) :- edge(x, y).
            path(x, z) :- path(x, y), edge(y, z).
        }
        .comp Step<T> : Graph<T> { .override path   path(x, y) :- edge(x, y), x < y. }
        .init all = Graph<number>
        .init one = Step<number>
        all.edge(x, y), one.edge(x, y) :- e(x, y).
        o(1, x) :- all.path(x, x).   o(2, x) :- one.path(x, _).
        """,
        [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 2), (2, 5)],
    ),
    "instances within components": (
        """
        .comp Set<T> { .decl has(x: T) }
        .comp Two { .init a = Set<number>  .init b = Set<number>
            .decl both(x: number)  both(x) :- a.has(x), b.has(x), limit(x). }
        .decl limit(x: number)   limit(x) :- n(x), x < 4.
        .init two = Two
        two.a.has(x) :- e(x, _).   two.b.has(x) :- e(_, x).
        o(x) :- two.both(x).
        """,
        [(1,), (2,), (3,)],
    ),
    "a component that is a parameter": (
        """
        .comp Odd { .decl is(x: number)  is(x) :- n(x), x % 2 = 1. }
        .comp Large { .decl is(x: number)  is(x) :- n(x), x > 2. }
        .comp Chosen<K> { .init k = K  .decl not(x: number)  not(x) :- n(x), !k.is(x). }
        .init a = Chosen<Odd>   .init b = Chosen<Large>
        o(1, x) :- a.not(x).   o(2, x) :- b.not(x).
        """,
        [(1, 0), (1, 2), (1, 10), (2, 0), (2, 1), (2, 2)],
    ),
    "a component within one with a parameter": (
        """
        .comp Outer<T> { .comp In { .decl r(x: T) }  .init i = In  .decl s(x: T)  s(x) :- i.r(x). }
        .init a = Outer<number>   .init b = Outer<symbol>
        a.i.r(x) :- n(x), x > 3.   b.i.r(x) :- t(x), x = "b".   o(to_string(x)) :- a.s(x).   o(x) :- b.s(x).
        """,
        [("10",), ("b",)],
    ),
    "a parameter that is passed on": (
        """
        .comp A { .decl x(s: symbol)  x("A"). }   .comp B { .decl x(s: symbol)  x("B"). }
        .comp Top<Z> { .comp Foo<Z> : Bar<Z> {}   .comp Bar<Q> { .init X = Q }   .init f = Foo<Z> }
        .init a = Top<A>   .init b = Top<B>
        o(s, x) :- a.f.X.x(s), n(x), x = 1.   o(s, x) :- b.f.X.x(s), n(x), x = 2.
        """,
        [("A", 1), ("B", 2)],
    ),
    "types of components": (
        """
        .comp Pairs<A> { .type P = [x: A, y: A]  .decl p(p: P)  p([x, x]) :- q(x).  .decl q(x: A) }
        .init n2 = Pairs<number>   .init t2 = Pairs<symbol>
        n2.q(x) :- n(x), x < 1.    t2.q(x) :- t(x), x = "b".
        o(to_string(x)) :- n2.p([x, _]).   o(x) :- t2.p([_, x]).
        """,
        [("0",), ("b",)],
    ),
    "a pragma has no effect": ('.pragma "legacy"  .pragma "a" "b"  o(x) :- n(x), x > 3.', [(10,)]),
}  # fmt: skip


@pytest.mark.executors(stages=["tagged values", "ranges of facts"])
@pytest.mark.parametrize(("text", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_program_means_what_it_means_in_souffle(text: str, expected: Rows) -> None:
    with make_engine() as engine:
        types: dict[type, Any] = {int: tk.Int, str: tk.String}
        for name, rows in FACTS.items():
            columns = {f"c{at}": types[type(value)] for at, value in enumerate(rows[0])}
            engine.create_table(name, columns, mode="set")
        view = engine.datalog(text)["o"]
        # Facts come in two epochs; what the second removes should leave no trace.
        for name, rows in FACTS.items():
            engine.table(name).insert([*rows[::2], *((*row[:-1], row[-1] * 3) for row in rows[1::2])])
        engine.advance()
        for name, rows in FACTS.items():
            changed = [(*row[:-1], row[-1] * 3) for row in rows[1::2]]
            engine.table(name).remove([row for row in changed if row not in rows[::2]])
            engine.table(name).insert([row for row in rows[1::2] if row not in rows[::2]])
        engine.advance()
        assert sorted(view.rows()) == expected


@pytest.mark.executors("stages")
def test_functors_are_python_functions_that_are_called_once_for_each_argument(executor: str) -> None:
    calls: list[tuple[Any, ...]] = []

    def join(text: str, times: int, ratio: float) -> str:
        calls.append((text, times, ratio))
        return f"{text * times}/{ratio}"

    with make_engine() as engine:
        t = engine.create_table("t", {"x": tk.String, "n": tk.Int}, mode="set")
        program = engine.datalog(
            """
            .functor join(a: symbol, b: number, c: float): symbol
            .functor odd(number): number
            o(@join(x, n, 0.5), @odd(n)) :- t(x, n).
            """,
            functors={"join": join, "odd": lambda n: n % 2},
        )
        t.insert([("a", 2), ("b", 1)])
        engine.advance()
        assert sorted(program["o"].rows()) == [("aa/0.5", 0), ("b/0.5", 1)]
        t.remove([("a", 2)])
        engine.advance()
        assert program["o"].rows() == [("b/0.5", 1)]
        if executor == "threads":  # other processes have copies of the list
            assert sorted(set(calls)) == sorted(calls) == [("a", 2, 0.5), ("b", 1, 0.5)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda n: "a", r"@f\(3\) gave 'a', not a value of type int"),
        (lambda n: 1 // 0, r"@f\(3\) failed: ZeroDivisionError"),
        (lambda n: 2**70, r"@f\(3\) gave 1180591620717411303424, which does not fit"),
    ],
)
def test_functor_that_fails_names_its_call(function: Any, message: str) -> None:
    with make_engine() as engine:
        n = engine.create_table("n", {"x": tk.Int}, mode="set")
        view = engine.datalog(".functor f(x: number): number\no(@f(x)) :- n(x).", functors={"f": function})["o"]
        n.insert([(3,)])
        with pytest.raises(tk.TektiteError, match=message):
            engine.advance()
            view.rows()


def test_power_that_does_not_fit_is_an_error() -> None:
    with make_engine() as engine:
        n = engine.create_table("n", {"x": tk.Int}, mode="set")
        view = engine.datalog("o(2 ^ x) :- n(x), x < 100.")["o"]
        n.insert([(62,), (1000,)])
        engine.advance()
        assert view.rows() == [(2**62,)]
        n.insert([(63,)])
        with pytest.raises(tk.TektiteError, match="the result does not fit into 64 bits"):
            engine.advance()
            view.rows()


def test_goal_may_ask_for_a_record_and_for_a_predicate_without_columns() -> None:
    with make_engine() as engine:
        e = engine.create_table("e", {"x": tk.Int, "y": tk.String}, mode="set")
        engine.datalog("""
            .type P = [x: number, s: symbol]
            .decl p(r: P, n: number)
            p([x, s], x) :- e(x, s).
            full() :- e(2, _).
        """)
        found = engine.query('p([1, "a"], ?)')
        full = engine.query("full()")
        e.insert([(1, "a"), (1, "b")])
        engine.advance()
        assert (found.rows(), full.rows()) == ([('[1, "a"]', 1)], [])
        e.insert([(2, "a")])
        e.remove([(1, "a")])
        engine.advance()
        assert (found.rows(), full.rows()) == ([], [(True,)])


def test_types_of_a_text_are_known_to_later_texts_and_go_with_it() -> None:
    with make_engine() as engine:
        first = engine.datalog(".type P = [x: number]  .decl p(p: P)  p([1]).  p([2]).")
        second = engine.datalog(".decl q(p: P)  q(r) :- p(r), r = [x], x > 1.")
        assert second["q"].rows() == [("[2]",)]
        with pytest.raises(tk.ConflictError, match="type 'P' is declared with other fields already"):
            engine.datalog('.type P = [x: symbol]  .decl s(p: P)  s(["a"]).')
        engine.view("q").drop()
        second.drop()
        first.drop()
        third = engine.datalog('.type P = [x: symbol]  .decl p(p: P)  p(["a"]).')
        assert third["p"].rows() == [('["a"]',)]
