"""docs/datalog-support.md: what Datalog supports, found out by running an example of each construct.

`python -m tests.support.datalog_support` writes the page; `tests/datalog/test_support_table.py` fails when the page is not what
the examples give. So the page says nothing that was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tektite as tk

PAGE = Path(__file__).parents[2] / "docs" / "datalog-support.md"
HEAD = """# What Datalog supports

Every line was run. The last column has what the example gives: the facts of `o`, or the answer of the query; or what the engine
says of it. `python -m tests.support.datalog_support` writes this page, and a test fails when it is not up to date.
"""
SETUP = """
.decl e(x: number, y: number)   e(1, 2).   e(2, 3).   e(3, 1).   e(3, 4).
.decl s(x: symbol)              s("abc").  s("b").
"""
RULES: dict[str, list[tuple[str, str]]] = {
    "Rules": [
        ("recursion", ".decl o(x: number, y: number) o(x, y) :- e(x, y), x < 2. o(x, z) :- o(x, y), e(y, z)."),
        ("alternatives", ".decl o(x: number) o(x) :- (e(x, 2); e(x, 4))."),
        ("negation, also of groups", ".decl o(x: number) o(x) :- e(_, x), !(e(x, y), y > 1)."),
        ("several heads", ".decl o(x: number) .decl p(x: number) o(x), p(x) :- e(x, 4)."),
        ("predicates without columns", ".decl p() p() :- e(1, _). .decl o(x: number) o(1) :- p()."),
        ("comparison, arithmetic", ".decl o(x: number) o(x * 2 + 1) :- e(x, y), x != y, x >= 2."),
        ("powers that are not constants", ".decl o(x: number) o(x ^ y) :- e(x, y)."),
        ("bits and logic", ".decl o(x: number) o(6 bxor 3). o(1 bshl 4). o(bnot 0). o(2 land 0). o(lnot 0)."),
        ("texts", '.decl o(x: symbol) o(cat("a", "b", "c")). o(substr("hello", 1, 3)). o(to_string(strlen("ab"))).'),
        ("match, contains", '.decl o(x: symbol) o(x) :- s(x), match("a.*", x). o(x) :- s(x), contains("b", x).'),
        ("range", ".decl o(x: number) o(x) :- x = range(0, 10, 4)."),
        ("ord", '.decl o(x: number) o(0) :- ord("a") = ord("a"), ord("a") != ord("b").'),
        ("conversions", '.decl o(x: number) o(to_number("7")). o(to_number(2.7)). o(to_unsigned(3)).'),
        ("true, false", ".decl o(x: number) o(1) :- true. o(2) :- false."),
        ("autoinc", ".decl o(x: number) o(autoinc())."),
        ("the counter $", ".decl o(x: number) o($)."),
    ],
    "Aggregates": [
        (
            "count, sum, min, max, mean",
            ".decl o(x: number) o(n) :- n = count : { e(_, _) }. o(n) :- n = sum x : { e(x, _) "
            "}.",
        ),
        ("of an expression", ".decl o(x: number) o(n) :- n = min x + y : { e(x, y) }."),
        ("within an expression", ".decl o(x: number) o(2 * count : { e(_, _) } + 1)."),
        ("for each outer value", ".decl o(x: number, n: number) o(x, n) :- e(x, 2), n = count : { e(y, _), y > x }."),
        (
            "variables of their own",
            ".decl o(x: number, y: number) o(a, b) :- a = max x : { e(x, _) }, b = max x : { e(_, x) "
            "}.",
        ),
        ("witnesses", ".decl o(x: number, n: number) o(x, n) :- n = max y : { e(x, y) }."),
        ("witnesses of a count", ".decl o(x: number, n: number) o(x, n) :- n = count : { e(x, _) }."),
        ("in the head", ".decl o(x: number, n: number) o(x, count()) :- e(x, _)."),
        ("least values in recursion", ".decl o(x: number, n: number) o(1, 0). o(y, min(n + 1)) :- o(x, n), e(x, y)."),
    ],
    "Relations and types": [
        (
            "records",
            ".type P = [a: number, b: symbol] .decl p(x: P) p([1, \"a\"]). p(nil). .decl o(x: number) o(x) :- "
            "p([x, _]).",
        ),
        (
            "tagged values",
            ".type T = N { n: number } | P { a: T, b: T } .decl p(x: T) p($P($N(1), $N(2))). .decl o(x: number) "
            "o(x) :- p($P($N(x), _)).",
        ),
        ("subtypes and unions", ".type A <: number .type B <: number .type U = A | B .decl o(x: U) o(1)."),
        (
            "types of tables",
            ".decl d(x: date, m: decimal(5, 2)) d(\"2024-02-29\", 1.5). .decl o(x: date) o(x) :- d(x, _), x > \"2024-01-01\".",
        ),
        ("lists of values", ".decl o(l: date[]) o(\"[2024-01-01, 2024-02-29]\")."),
        ("eqrel", ".decl o(x: number, y: number) eqrel o(1, 2)."),
        ("choice-domain", ".decl o(x: number, y: number) choice-domain x o(x, y) :- e(x, y)."),
        ("subsumption", ".decl o(x: number, y: number) o(x, y) :- e(x, y). o(x, a) <= o(x, b) :- a <= b."),
        ("functors in Python", ".functor twice(x: number): number .decl o(x: number) o(@twice(x)) :- e(x, 4)."),
        (
            "components",
            ".comp C<T> { .decl r(x: T) overridable r(1). } .comp D<T> : C<T> { .override r r(2). } .init d = "
            "D<number> .decl o(x: number) o(x) :- d.r(x).",
        ),
        ("the preprocessor", "#define LIMIT 3\n.decl o(x: number) o(x) :- e(x, _), x < LIMIT."),
        ("qualifiers, .pragma, .plan", ".pragma \"legacy\" .decl o(x: number) inline btree o(x) :- e(x, 4). .plan 0: (1)"),
        (".limitsize", ".decl o(x: number) o(1). .limitsize o(n = 3)"),
        (".lattice", ".decl o(x: number) o(1). .lattice L<> { Bottom -> 1 }"),
    ],
}  # fmt: skip
EDN: list[tuple[str, str]] = [
    ("find", "[:find ?n :where [?e :name ?n]]"),
    ("without :where", "[:find ?x :in ?x]"),
    ("map form", "{:find [?n] :where [[?e :name ?n]]}"),
    ("one value", '[:find ?e . :where [?e :name "ann"]]'),
    ("a list", "[:find [?n ...] :where [_ :name ?n]]"),
    ("a tuple", "[:find [?n ?a] :where [?e :name ?n] [?e :age ?a] [(> ?a 35)]]"),
    ("an attribute without value", "[:find ?e :where [?e :age]]"),
    ("get-else", "[:find ?n ?a :where [?e :name ?n] [(get-else $ ?e :age 0) ?a]]"),
    ("missing?", "[:find ?n :where [?e :name ?n] [(missing? $ ?e :age)]]"),
    ("ground of collections", "[:find ?x :where [(ground [1 2]) [?x ...]]]"),
    ("relations as sources", "[:find ?a ?b :where [$pairs ?a ?b]]"),
    ("variable attributes", "[:find ?e ?a :where [?e ?a 30]]"),
    ("reverse attributes", "[:find ?x ?y :where [?x :_knows ?y]]"),
    ("not, or", "[:find ?n :where [?e :name ?n] (or [?e :age 30] (not [?e :age]))]"),
    ("aggregates", "[:find (count ?a) (sum ?a) (avg ?a) (min ?a) (max ?a) :where [_ :age ?a]]"),
    ("median, variance, stddev", "[:find (median ?a) (variance ?a) (stddev ?a) :where [_ :age ?a]]"),
    ("sample, rand", "[:find (sample 1 ?a) :where [_ :age ?a]]"),
    ("pull", '[:find (pull ?e [:name {:knows [:name]}]) . :where [?e :name "ann"]]'),
    ("pull of everything", "[:find (pull ?e [*]) . :where [?e :age 30]]"),
    ("pull backwards", '[:find (pull ?e [:name {:_knows [:name]}]) . :where [?e :name "bob"]]'),
    ("pull with defaults", "[:find (pull ?e [(:age :default 0)]) . :where [?e :name]]"),
]


def page() -> str:
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    for title, constructs in RULES.items():
        yield f"## {title}\n\nWith `{' '.join(SETUP.split())}`:\n\n| construct | example | facts of `o` |\n|---|---|---|"
        for name, text in constructs:
            yield row(name, text, facts_of(text))
        yield ""
    yield "## EDN\n\n| construct | example | answer |\n|---|---|---|"
    with people() as engine:
        for name, text in EDN:
            yield row(name, text, answer_of(engine, text))
    yield ""


def row(name: str, example: str, found: str) -> str:
    shown = " ".join(example.split()).replace("|", "\\|")
    return f"| {name} | `{shown}` | {found.replace('|', chr(92) + '|')} |"


def facts_of(text: str) -> str:
    """The facts of `o` of a program, or the first line of what is wrong with it."""
    with tk.Engine() as engine:
        try:
            given = {"twice": lambda x: 2 * x} if ".functor" in text else None
            program = engine.datalog(SETUP + text, functors=given)
            found = sorted(program["o"].rows(), key=repr)
        except tk.TektiteError as error:
            return str(error).splitlines()[0]
    return f"`{found}`"


def people() -> tk.Engine:
    engine = tk.Engine()
    engine.attribute("name", tk.String, cardinality="one")
    engine.attribute("age", tk.Int, cardinality="one")
    engine.attribute("knows", tk.Int, cardinality="many")
    engine.create_table("pairs", {"a": tk.Int, "b": tk.Int}, mode="set").insert([(1, 2)])
    engine.transact('[1 :name "ann"] [2 :name "bob"] [3 :name "cid"] [1 :age 30] [2 :age 40] [1 :knows 2] [2 :knows 3]')
    return engine


def answer_of(engine: tk.Engine, text: str) -> str:
    """The answer of a query, in a certain order; or the first line of what is wrong with it."""
    try:
        query = engine.query(text, **({"x": 5} if ":in ?x" in text else {}))
        found = query.answer()
    except tk.TektiteError as error:
        return str(error).splitlines()[0].partition(": ")[2]  # the query's number says nothing
    return f"`{sorted(found, key=repr) if isinstance(found, list) else found}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
