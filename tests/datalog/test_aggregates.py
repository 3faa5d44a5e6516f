"""What an aggregate over a body of its own is taken of: outer variables, its own variables, and witnesses."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

Rows = list[tuple[Any, ...]]

FACTS: dict[str, Rows] = {
    "score": [("ann", 10), ("bob", 20), ("cid", 20), ("dan", 5), ("eva", 5)],
    "a": [(1,), (2,), (5,)],
    "b": [(3,), (4,)],
    "e": [(1, 2), (1, 3), (2, 3), (5, 5)],
    "team": [("red", "ann"), ("red", "bob"), ("blue", "cid"), ("blue", "dan")],
}

ANSWERS: dict[str, tuple[str, Rows]] = {
    # Outer variables: the aggregate is taken once for each of their values, however often the rule around it has them.
    "an outer variable in a comparison": (
        "o(p, n) :- score(p, s), n = count : { score(_, t), t > s }.",
        [("ann", 2), ("bob", 0), ("cid", 0), ("dan", 3), ("eva", 3)],
    ),
    "an outer variable in a sum, where others have the same value": (
        "o(p, n) :- score(p, s), n = sum t : { score(_, t), t >= s }.",
        [("ann", 50), ("bob", 40), ("cid", 40), ("dan", 60), ("eva", 60)],
    ),
    "an outer variable in arithmetic": (
        "o(x, n) :- e(x, _), n = count : { e(_, y), z = y - x, z > 0 }.", [(1, 4), (2, 3), (5, 0)],
    ),
    "an outer variable in an equation": (
        "o(x, n) :- e(x, _), n = count : { b(y), y = x + 2 }.", [(1, 1), (2, 1), (5, 0)],
    ),
    "an outer variable in a negation": (
        "o(x, n) :- e(x, _), n = count : { a(y), !e(x, y) }.", [(1, 2), (2, 3), (5, 2)],
    ),
    "an outer variable in a negated group": (
        "o(x, n) :- e(x, _), n = count : { a(y), !(e(x, z), z < y) }.", [(1, 2), (2, 2), (5, 3)],
    ),
    "an outer variable in a function": (
        "o(x, n) :- e(x, _), n = sum max(x, y) : { a(y) }.", [(1, 8), (2, 9), (5, 15)],
    ),
    "an outer variable in the term alone": ("o(x, n) :- e(x, _), n = sum x * y : { b(y) }.", [(1, 7), (2, 14), (5, 35)]),
    "an outer variable in an aggregate inside": (
        "o(x, n) :- e(x, _), n = count : { a(y), y <= count : { e(_, z), z > x } }.", [(1, 2), (2, 2), (5, 0)],
    ),
    "an outer variable in an alternative": (
        "o(x, n) :- e(x, _), n = count : { a(y), (y > x; e(y, x)) }.", [(1, 2), (2, 2), (5, 1)],
    ),
    "outer variables that nothing connects": (
        "o(x, y, n) :- a(x), b(y), x < 3, n = count : { e(z, w), z <= x, w < y }.",
        [(1, 3, 1), (1, 4, 2), (2, 3, 1), (2, 4, 3)],
    ),
    "the result of another aggregate": (
        "o(n, m) :- m = sum x : { a(x), x < n }, n = max y : { b(y) }.", [(4, 3)],
    ),
    "a count that another aggregate uses": (
        "o(x, m) :- a(x), n = count : { e(x, _) }, m = max y : { b(y), y > n }.", [(1, 4), (2, 4), (5, 4)],
    ),
    "aggregates of a rule that reads itself": (
        "o(x, n) :- x = 1, n = count : { b(_) }.  o(y, n) :- o(x, _), e(x, y), n = count : { a(z), z < y }.",
        [(1, 2), (2, 1), (3, 2)],
    ),
    "an aggregate whose bindings count, inside one": (
        "o(n) :- n = count : { a(x), m = count : { e(_, y), y > x }, m > 0 }.", [(2,)],
    ),
    "an aggregate in a head, of an aggregate in the body": (
        "o(t, sum(n)) :- team(t, p), score(p, s), n = count : { score(_, u), u < s }.", [("blue", 3), ("red", 5)],
    ),
    # Nothing to aggregate.
    "nothing: count and sum are 0 for each outer value": (
        "o(x, n, m) :- a(x), n = count : { e(y, _), y > x }, m = sum y : { b(y), y < x }.",
        [(1, 2, 0), (2, 1, 0), (5, 0, 7)],
    ),
    "nothing: min and max say nothing": ("o(x, n) :- a(x), n = min y : { b(y), y > x }.", [(1, 3), (2, 3)]),
    # Own variables.
    "one name in two aggregates": ("o(c, n) :- c = max x : { a(x) }, n = max x : { b(x) }.", [(5, 4)]),
    "one name in an aggregate and in one inside it": (
        "o(n) :- n = sum x : { a(x), 1 < count : { b(x) } }.", [(0,)],
    ),
    "a name that the term has in an aggregate and in one inside it": (
        "o(n) :- n = sum x : { a(x), x < max x : { b(x) } }.", [(3,)],
    ),
    "the result's own name": ("o(a) :- a = max a : a(a).", [(5,)]),
    "the result's own name, beside the term": ("o(n) :- n = max y : { e(n, y) }.", [(5,)]),
    "the name of a variable of the rule, as the term": (
        "o(x, n) :- a(x), n = max x : { b(x) }.", [(1, 4), (2, 4), (5, 4)],
    ),
    "the name of a variable of the rule, in the term": (
        "o(x, n) :- a(x), n = max x + y : { e(x, y) }.", [(1, 10), (2, 10), (5, 10)],
    ),
    "one name in an aggregate and in a negated group": (
        "o(x) :- a(x), !(e(x, y), b(y)), n = count : { e(y, _) }, n > 3.", [(5,)],
    ),
    "one name in two negated groups": ("o(x) :- a(x), !(e(x, y), b(y)), !(e(y, x), a(y), y < x).", [(5,)]),
    "a computed term beside an aggregate whose value an alternative needs": (
        "o(n, count(x)) :- n = min y : { a(_) }, a(y), e(y + 1, x), (e(y, x); n = 7).", [(1, 1)],
    ),
    "alternatives of which one has a value computed beside them": (
        "o(n) :- n = count : { (e(w, z); a(w)), z = w + 1 }.", [(3,)],
    ),
    "alternatives that need what others bind, by an aggregate": (
        "o(n) :- n = count : { (b(z); e(1, y)), b(z), (y = min u : { a(u) }; e(2, y)) }.", [(4,)],
    ),
    "one name in an aggregate of an alternative and in another alternative": (
        "o(n) :- n = count : { a(x), (x = min y : { e(_, y) }; x > 4), (e(x, y); b(3)) }.", [(2,)],
    ),
    # Witnesses.
    "a witness of an aggregate in an alternative, that a negated group uses": (
        "o(n) :- n = max z : { !(b(z), z > 3), (_ = min y : { a(z), e(z, y) }; b(z)) }.", [(3,)],
    ),
    "a witness in an alternative, that another choice needs": (
        "o(x, count()) :- (b(y); x - y < 2), a(x), (_ = max y : { e(y, _) }, y > 1; e(3, y)).", [(1, 1), (2, 1), (5, 1)],
    ),
    "a witness in an alternative, beside one that does not bind it": (
        "o(n) :- n = sum z : { (a(u); e(u, z)), (_ = min y : { e(z, y) }; e(z, u)) }, b(u).", [(0,)],
    ),
    "the name of the result inside, of another aggregate": (
        "o(n) :- n = max z : { a(z), (n = min y : { e(z, y) }, n > 2; b(z)) }.", [(5,)],
    ),
    "the name of the result inside, for each outer value": (
        "o(x, n) :- a(x), n = max z : { e(x, z), (n = min y : { e(z, y) }; a(n), n < z) }.", [(1, 3), (2, 3), (5, 5)],
    ),
    "a witness in the head": ("o(p, s) :- s = max t : { score(p, t) }.", [("bob", 20), ("cid", 20)]),
    "a witness of a min": ("o(x, n) :- n = min y : { e(x, y) }.", [(1, 2)]),
    "a witness without its value": ("o(p) :- _ = max t : { score(p, t) }.", [("bob",), ("cid",)]),
    "witnesses in the term": ("o(x, y, n) :- n = min x + y : { e(x, y), x > 1 }.", [(2, 3, 5)]),
    "a witness for each outer value": (
        "o(t, p, s) :- team(t, _), s = min u : { team(t, p), score(p, u) }.", [("blue", "dan", 5), ("red", "ann", 10)],
    ),
    "a witness that a comparison uses": ("o(p) :- 9 < max t : { score(p, t) }, p != \"bob\".", [("cid",)]),
    "a witness that a negation uses": ("o(x) :- n = max y : { e(x, y) }, !b(x), n = 5.", [(5,)]),
    "a witness that two aggregates share": (
        "o(x, n, m) :- n = min y : { e(x, y) }, m = max y : { e(x, y), x < 2 }.", [(1, 2, 3)],
    ),
    "a witness counts once": ("o(n) :- n = count : { m = max y : { e(x, y), a(z), z <= x }, x > 0 }.", [(1,)]),
    "a witness of an aggregate inside": (
        "o(n, w) :- n = max y : { a(y), y > min z : { e(w, z) } }.", [(5, 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_aggregate_is_taken_of(text: str, expected: Rows) -> None:
    with make_engine() as engine:
        types: dict[type, Any] = {int: tk.Int, str: tk.String}
        for name, rows in FACTS.items():
            columns = {f"c{at}": types[type(value)] for at, value in enumerate(rows[0])}
            engine.create_table(name, columns, mode="set")
        program = engine.datalog(text)
        view = program["o"]
        # Facts come in two epochs, and what is removed in the second has never been there.
        for name, rows in FACTS.items():
            engine.table(name).insert([*rows[::2], *((*row[:-1], row[-1] * 2) for row in rows[1::2])])
        engine.advance()
        for name, rows in FACTS.items():
            changed = [(*row[:-1], row[-1] * 2) for row in rows[1::2]]
            engine.table(name).remove([row for row in changed if row not in rows[::2]])
            engine.table(name).insert([row for row in rows[1::2] if row not in rows[::2]])
        engine.advance()
        assert sorted(view.rows()) == expected


REFUSED = {
    "a witness of a count": (
        "o(x, n) :- n = count : { e(x, _) }.",
        r"variable 'x' in the head is not bound: it stands in the body of count \(program:1:16\), .*that binds 'x'",
    ),
    "a witness of a mean, in a comparison": (
        "o(n) :- n = mean y : { e(x, y) }, x > 1.", "variable 'x' in x > 1 is not bound: it stands in the body of mean",
    ),
    "a witness of a max that a count uses": (
        "o(x, n, m) :- m = max y : { e(x, y) }, n = count : { a(y), y < x }.", "variable 'x' in the head is not bound",
    ),
    "a witness that the body does not bind": (
        "o(x, n) :- n = max y : { a(y), y < x }.", "variable 'x' in the head is not bound",
    ),
    "a name that alternatives share and none of them always binds": (
        "o(n) :- n = count : { (_ = max y : { e(w, y) }; a(w)), (e(_, 3); a(w)) }.", "variable 'w' in .* is not bound",
    ),
    "alternatives and an aggregate that need each other": (
        "o(n) :- n = count : { (a(x); e(x, u)), u = min y : { e(x, y) } }.", "variable 'u' in .* is not bound",
    ),
    "aggregates of each other": (
        "o(n, m) :- n = count : { a(x), x < m }, m = count : { a(x), x < n }.",
        r"the aggregates count \(program:1:16\) and count \(program:1:45\) are computed from each other",
    ),
    "an aggregate of its own result": ("o(n) :- n = count : { a(x), x < n }.", "variable 'n' in x < n is not bound"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_aggregate_is_refused(text: str, message: str) -> None:
    with make_engine() as engine:
        engine.create_table("a", {"x": tk.Int}, mode="set")
        engine.create_table("e", {"x": tk.Int, "y": tk.Int}, mode="set")
        with pytest.raises(tk.IncorrectError, match=message) as caught:
            engine.datalog(text)
        assert text in str(caught.value)


@pytest.mark.executors("stages", "spark")
def test_goal_asks_for_an_aggregate_with_outer_variables_and_one_with_witnesses() -> None:
    with make_engine() as engine:
        score = engine.create_table("score", {"who": tk.String, "points": tk.Int}, mode="set")
        engine.datalog("""
            rank(p, n) :- score(p, s), n = count : { score(_, t), t > s }.
            best(p, s) :- s = max t : { score(p, t) }.
        """)
        ranks = engine.query("rank($p, ?)", p="bob", strategy="goal")
        best = engine.query('best("bob", ?)', strategy="goal")
        score.insert([("ann", 10), ("bob", 5), ("cid", 10)])
        engine.advance()
        assert (ranks.rows(), best.rows()) == ([("bob", 2)], [])
        score.remove([("bob", 5), ("ann", 10)])
        score.insert([("bob", 10), ("dan", 10)])
        ranks.insert(p="cid")
        engine.advance()
        assert (sorted(ranks.rows()), best.rows()) == ([("bob", 0), ("cid", 0)], [("bob", 10)])


def test_float_becomes_the_whole_number_before_its_point() -> None:
    with make_engine() as engine:
        f = engine.create_table("f", {"x": tk.Float}, mode="set")
        view = engine.datalog("o(x, to_number(x), ftoi(x)) :- f(x).")["o"]
        f.insert([(1.5,), (-1.5,), (2.5,), (-0.5,), (3.0,)])
        engine.advance()
        assert sorted(view.rows()) == [(-1.5, -1, -1), (-0.5, 0, 0), (1.5, 1, 1), (2.5, 2, 2), (3.0, 3, 3)]


def test_text_that_is_no_whole_number_is_an_error_that_names_it() -> None:
    with make_engine() as engine:
        t = engine.create_table("t", {"x": tk.String}, mode="set")
        engine.datalog("o(to_number(x)) :- t(x).")
        view = engine.view("o")
        t.insert([("12",), ("-3",)])
        engine.advance()
        assert sorted(view.rows()) == [(-3,), (12,)]
        t.insert([("1.5",)])
        with pytest.raises(tk.TektiteError, match=r"'o.*'1\.5'"):
            engine.advance()
            view.rows()
