"""Goals: what is derived for some arguments is what the full evaluation has for them, whatever changes."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

import tektite as tk
from tektite.datalog.syntax.textbook import parse_program
from tests.support.datalog_programs import BASE, VALUES, RandomProgram
from tests.support.datalog_twin import evaluate
from tests.support.executors import make_engine
from tests.support.nightly import few_of
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}
GRAPH = """
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
rtc(x, y) :- edge(x, y).
rtc(x, z) :- edge(x, y), rtc(y, z).
ntc(x, y) :- edge(x, y).
ntc(x, z) :- ntc(x, y), ntc(y, z).
sg(x, y) :- edge(p, x), edge(p, y), x != y.
sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).
apart(x, y) :- edge(x, _), edge(_, y), !tc(x, y).
degree(x, count(y)) :- tc(x, y).
near(x, x, 0) :- edge(x, _).
near(x, z, min(d + 1)) :- near(x, y, d), edge(y, z).
lonely(x) :- edge(x, _), n = count : { tc(x, _) }, n < 3.
even(x, x) :- edge(x, _).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
"""
GOALS = [
    "tc({}, ?)", "tc(?, {})", "tc({}, {})", "rtc({}, ?)", "rtc(?, {})", "ntc({}, ?)", "ntc(?, {})", "sg({}, ?)",
    "sg(?, {})", "apart({}, ?)", "degree({}, ?)", "near({}, ?, ?)", "near(?, {}, ?)", "near(?, ?, {})", "lonely({})",
    "even({}, ?)", "odd(?, {})", "tc(x, x)", "edge({}, ?)",
]  # fmt: skip


def matches(goal: str, row: tuple[int, ...]) -> bool:
    terms = goal.split("(")[1].rstrip(")").split(", ")
    fixed = all(term in ("?", "x") or int(term) == value for term, value in zip(terms, row, strict=True))
    repeated = [value for term, value in zip(terms, row, strict=True) if term == "x"]
    return fixed and len(set(repeated)) <= 1


@pytest.mark.executors(stages=["apart({}, ?)-1", "near(?, ?, {})-2"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pattern", GOALS)
def test_goal_is_the_full_answer_filtered(pattern: str, workers: int) -> None:
    rng = random.Random(pattern)
    with make_engine(workers) as engine:
        edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
        engine.datalog(GRAPH)
        text = parse_program(GRAPH)
        goals = [pattern.format(*(rng.randrange(7) for _ in range(2))) for _ in range(2)]
        queries = [(goal, engine.query(goal, strategy="goal")) for goal in goals]
        facts: set[tuple[int, ...]] = set()
        for _ in range(5):
            for _ in range(5):
                row = (rng.randrange(7), rng.randrange(7))
                (edge.remove if row in facts else edge.insert)([row])
                facts ^= {row}
            engine.advance()
            expected = evaluate_with_minimum(text, facts)
            for goal, query in queries:
                name = goal.split("(")[0]
                wanted = sorted(row for row in expected[name] if matches(goal, row))
                assert sorted(query.rows()) == wanted, f"{goal}\n{query.explain()}\n{sorted(facts)}"


def evaluate_with_minimum(text: object, facts: set[tuple[int, ...]]) -> dict[str, set[tuple[int, ...]]]:
    """The oracle's answer; `near`, which is a minimum in recursion, by breadth-first search."""
    rules = tuple(rule for rule in text.rules if rule.predicate != "near")  # type: ignore[attr-defined]
    found = evaluate(type(text)("twin", rules), {"edge": facts})  # type: ignore[call-arg]
    near = set()
    for start in {x for x, _ in facts}:
        distance = {start: 0}
        front = [start]
        while front:
            following = [y for x in front for a, y in facts if a == x and y not in distance]
            distance |= {y: distance[front[0]] + 1 for y in following}
            front = list(dict.fromkeys(following))
        near |= {(start, y, d) for y, d in distance.items()}
    return found | {"near": near}


@pytest.mark.executors(stages=[0, 7])
@pytest.mark.parametrize("seed", few_of([*range(80), 50010], *range(20), 50010))
def test_goals_of_random_programs_agree_with_naive_evaluation(seed: int) -> None:
    """By magic sets, or as is chosen where some predicates are kept in full already."""
    program = RandomProgram(seed)
    rng = random.Random(seed)
    with make_engine() as engine:
        inputs = {name: engine.create_table(name, COLUMNS[n], mode="set") for name, n in BASE.items()}
        engine.datalog(program.text)
        queries = []
        strategy = "auto" if seed % 2 == 0 else "goal"
        if strategy == "auto":
            engine.view(rng.choice(program.predicates))
        for name in program.predicates:
            terms = [rng.choice(["?", str(rng.choice(VALUES))]) for _ in range(program.arity[name])]
            goal = f"{name}({', '.join(terms)})"
            queries.append((goal, engine.query(goal, strategy=strategy)))
        facts: dict[str, set[tuple[int, ...]]] = {name: set() for name in BASE}
        for _ in range(3):
            for name, table in inputs.items():
                for _ in range(rng.randint(1, 5)):
                    row = tuple(rng.choice(VALUES) for _ in range(BASE[name]))
                    (table.remove if row in facts[name] else table.insert)([row])
                    facts[name] ^= {row}
            engine.advance()
            expected = evaluate(parse_program(program.text), facts)
            for goal, query in queries:
                wanted = sorted(row for row in expected[goal.split("(")[0]] if matches(goal, row))
                assert sorted(query.rows()) == wanted, f"{goal} of\n{program.text}\n{query.explain()}\n{facts}"


def graph() -> tuple[tk.Engine, tk.Table]:
    engine = make_engine()
    edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    edge.insert([(1, 2), (2, 3), (3, 1), (4, 5)])
    engine.advance()
    engine.datalog(GRAPH)
    return engine, edge


@pytest.mark.executors("stages", "spark")
def test_one_dataflow_serves_arguments_that_come_and_go() -> None:
    engine, edge = graph()
    query = engine.query("tc($x, ?)", x=4)
    before = engine.views
    assert query.rows() == [(4, 5)]
    query.insert(x=[1, 2])
    engine.advance()
    assert sorted(query.rows()) == [(a, b) for a in (1, 2) for b in (1, 2, 3)] + [(4, 5)]
    query.remove(x=1)
    edge.remove([(3, 1)])
    engine.advance()
    assert sorted(query.rows()) == [(2, 3), (4, 5)]
    assert engine.views == before
    query.drop()
    assert [a.name for a in engine.indexes()] == ["edge"]


def test_argument_is_answered_before_another_epoch_closes() -> None:
    engine, _ = graph()
    assert sorted(engine.query("tc(?, $y)", y=[5, 9]).rows()) == [(4, 5)]


def test_automatic_choice_reads_what_is_kept_in_full() -> None:
    engine, _ = graph()
    alone = engine.query("tc(1, ?)")
    assert alone.explain().startswith("query 1: derived for its arguments, because its arguments reach rules")
    engine.view("tc")
    beside = engine.query("tc(1, ?)")
    assert beside.explain().startswith("query 2: derived in full, because 'tc' is kept in full already")
    assert sorted(alone.rows()) == sorted(beside.rows())
    everything = engine.query("sg(?, ?)")
    assert "because nothing that it gives reaches a rule" in everything.explain()


def test_negated_predicate_is_evaluated_in_full_where_asking_would_break_strata() -> None:
    # What q asks of r depends on p, and p depends on !q: asking would make the negation recursive.
    engine, _ = graph()
    engine.datalog("""
        r(x, y) :- edge(x, y).  r(x, z) :- r(x, y), edge(y, z).
        q(x, y) :- r(x, y), x < y.
        win(x, y) :- edge(x, y), !q(x, y).
        win(x, z) :- win(x, y), edge(y, z), !q(x, z).
    """)
    query = engine.query("win(1, ?)", strategy="goal")
    assert "  q: " in query.explain()
    full = engine.query("win(1, ?)", strategy="full")
    assert sorted(query.rows()) == sorted(full.rows())


@pytest.mark.executors("stages")
def test_forced_strategies_agree() -> None:
    engine, _ = graph()
    for goal in ("tc(1, ?)", "sg(?, 2)", "degree(4, ?)"):
        answers = [sorted(engine.query(goal, strategy=s).rows()) for s in ("auto", "goal", "full")]
        assert answers[0] == answers[1] == answers[2]
    with pytest.raises(tk.IncorrectError, match="strategy is one of"):
        engine.query("tc(1, ?)", strategy="magic")


@pytest.mark.executors("stages")
def test_query_that_comes_to_ask_for_much_is_evaluated_in_full() -> None:
    engine = make_engine()
    edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    n = 200
    edge.insert([(i, i + 1) for i in range(n)] + [(i, i + 2) for i in range(n)])
    engine.advance()
    engine.datalog(GRAPH)
    query = engine.query("sg($x, ?)", x=5)
    reference = engine.query("sg($x, ?)", x=5, strategy="goal")
    assert query.explain().startswith("query 1: derived for its arguments")
    assert sorted(query.rows()) == sorted(reference.rows())
    for asked in (query, reference):
        asked.insert(x=n)
    engine.advance()
    assert query.explain().startswith(
        "query 1: derived in full, because its arguments come to ask for more than one in 3"
    )
    assert sorted(query.rows()) == sorted(reference.rows())
    for asked in (query, reference):
        asked.remove(x=5)
    edge.remove([(10, 11)])
    engine.advance()
    assert sorted(query.rows()) == sorted(reference.rows())
    again = engine.query("sg(?, 7)")
    assert "'sg' is kept in full already" in again.explain()
    for asked in (again, query, reference):
        asked.drop()
    assert [a.name for a in engine.indexes()] == ["edge"]


def test_query_that_asks_for_much_from_the_start_is_evaluated_in_full() -> None:
    engine = make_engine()
    edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    edge.insert([(i, i + 1) for i in range(150)])
    engine.advance()
    engine.datalog(GRAPH)
    query = engine.query("sg(149, ?)")
    assert query.explain().startswith("query 1: derived in full, because its arguments come to ask")
    query.drop()
    assert [a.name for a in engine.indexes()] == ["edge"]


def test_query_whose_changes_are_followed_stays_as_it_is() -> None:
    engine = make_engine()
    edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    edge.insert([(i, i + d) for i in range(150) for d in (1, 2)])
    engine.advance()
    engine.datalog(GRAPH)
    query = engine.query("sg($x, ?)", x=5)
    changes = row_changes(query, snapshot=False)
    query.insert(x=149)
    engine.advance()
    assert query.explain().startswith("query 1: derived for its arguments")
    assert {change.row[0] for change in changes} == {149}


def test_goal_on_a_column_that_the_head_computes() -> None:
    with make_engine() as engine:
        engine.datalog("n(0). n(x + 1) :- n(x), x < 20.")
        for strategy in ("auto", "goal", "full"):
            assert engine.query("n(7)", strategy=strategy).rows() == [(7,)]
            assert engine.query("n(30)", strategy=strategy).rows() == []


def test_goal_may_be_written_as_in_prolog() -> None:
    engine = make_engine()
    engine.datalog("edge(1, 2).  edge(2, 3).  tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).")
    for text in ("tc(1, ?)", "?- tc(1, ?).", "?-tc(1, x)", " ?- tc(1, _) ."):
        assert sorted(engine.query(text).rows()) == [(1, 2), (1, 3)]


EQUATIONS = {
    "tc(x, z) :- tc(x, y), edge(w, z), w = y.": "tc(x, z) :- tc(x, w), edge(w, z).",
    "tc(x, z) :- tc(x, y), edge(y, w), z = w.": "tc(x, z) :- tc(x, y), edge(y, z).",
    "tc(x, z) :- tc(x, a), a = b, b = c, edge(c, z).": "tc(x, z) :- tc(x, a), edge(a, z).",
}


@pytest.mark.parametrize(("written", "kept"), EQUATIONS.items())
def test_equal_variables_of_a_rule_are_one(written: str, kept: str) -> None:
    engine = make_engine()
    edge = engine.create_table("edge", {"src": tk.Int, "dst": tk.Int}, mode="set")
    program = engine.datalog(f"tc(x, y) :- edge(x, y).  {written}")
    assert kept in program.explain("tc")
    edge.insert([(1, 2), (2, 3), (7, 8)])
    engine.advance()
    assert sorted(program["tc"].rows()) == [(1, 2), (1, 3), (2, 3), (7, 8)]
    for strategy in ("goal", "full"):
        assert engine.query("tc(?, 3)", strategy=strategy).rows() == [(1, 3), (2, 3)]


@pytest.mark.executors("stages")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("[:find ?a ?d :where [?a :edge ?b] [?c :edge ?d] [(= ?b ?c)]]", [(1, 3)]),
        ("[:find ?a ?b :where [?a :edge _] [(= ?b ?a)]]", [(1, 1), (2, 2), (7, 7)]),
        ("[:find ?a ?b :where [?a :edge _] [(identity ?a) ?b]]", [(1, 1), (2, 2), (7, 7)]),
        ("[:find ?a ?b :where [?a :edge _] [(= ?b (+ ?a 1))]]", [(1, 2), (2, 3), (7, 8)]),
        ("[:find ?a ?b :where [(ground 2) ?a] [?a :edge ?b]]", [(2, 3)]),
        ("[:find ?a ?b :where [?a :edge ?b] [(< 1 ?a ?b 9)]]", [(2, 3), (7, 8)]),
    ],
)
def test_equation_binds_and_joins_in_edn(query: str, expected: list[tuple[int, int]]) -> None:
    engine = make_engine()
    engine.create_table("edge", {"src": tk.Int, "dst": tk.Int}, mode="set").insert([(1, 2), (2, 3), (7, 8)])
    engine.advance()
    found = engine.query(query)
    assert sorted(found.rows()) == expected
    assert "product" not in found.explain(joins=True)


@pytest.mark.executors("stages")
def test_goal_beside_a_predicate_that_is_kept_in_full() -> None:
    """What one rule asks for follows from what is kept, and what another asks for does not."""
    with make_engine() as engine:
        for name in "ab":
            engine.create_table(name, {"x": tk.Int, "y": tk.Int}, mode="set").insert([(4, 1), (1, 4), (2, 1)])
        engine.advance()
        engine.datalog("""p((x + 1) % 5, y) :- b(x, y).  q(y) :- p(x, y), q(x).  q(x) :- a(x, y), r(_, _, y).  q(2).
            r(y, x, y) :- q(x), p(x, y).  r(y, y, w) :- r(y, y, _), r(1, w, _).""")
        engine.view("p")
        before = engine.views
        asked = [engine.query(f"q({x})") for x in range(5)]
        found = sorted(row for query in asked for row in query.rows())
        for query in asked:
            query.drop()
        assert engine.views == before
        assert found == sorted(engine.view("q").rows())


SWAPPED = {
    "p(x, z) :- p(x, y), e(y, z).": "left",
    "p(x, z) :- e(x, y), p(y, z).": "right",
    "p(x, z) :- p(x, y), p(y, z).": "non-linear",
}


@pytest.mark.parametrize("joins", ["auto", "binary", "delta", "hector"])
@pytest.mark.parametrize("strategy", ["auto", "goal", "full"])
@pytest.mark.parametrize("step", SWAPPED, ids=SWAPPED.values())
def test_goal_tells_the_columns_of_a_recursive_predicate_apart(step: str, strategy: str, joins: str) -> None:
    """One column is tested against a constant, another is what is asked for."""
    with make_engine() as engine:
        engine.create_table("e", {"x": tk.Int, "y": tk.Int}, mode="set").insert([(0, 2), (2, 0)])
        engine.advance()
        engine.datalog(f"p(x, y) :- e(x, y).  {step}  r(y) :- e(2, y), p(y, 2).  q(x, y) :- e(x, y), p(y, x).")
        assert engine.query("r(?)", strategy=strategy, joins=joins).rows() == [(0,)]
        assert engine.query("q(0, ?)", strategy=strategy, joins=joins).rows() == [(0, 2)]


@pytest.mark.parametrize("strategy", ["auto", "goal", "full"])
def test_goal_has_the_types_of_its_predicate(strategy: str) -> None:
    with make_engine() as engine:
        engine.create_table("price", {"x": tk.Decimal(10, 2), "y": tk.Float}, mode="set").insert(
            [(Decimal("1.5"), 2.0)]
        )
        engine.advance()
        engine.datalog("p(x, y) :- price(x, y), y < 9.0.")
        (row,) = engine.query("p(1.5, 2)", strategy=strategy).rows()
        assert repr(row) == repr(engine.view("p").rows()[0]) == "(Decimal('1.50'), 2.0)"


@pytest.mark.parametrize("strategy", ["auto", "goal", "full"])
def test_goal_on_facts_alone_answers_before_the_first_epoch(strategy: str) -> None:
    with make_engine() as engine:
        waiting = engine.create_table("waiting", {"x": tk.Int}, mode="set")
        waiting.insert([(2,)])
        engine.datalog("edge(1, 2).  edge(2, 3).  tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).")
        engine.datalog("late(x, y) :- waiting(x), tc(x, y).")
        query = engine.query("tc($x, ?)", strategy=strategy, x=1)
        late = engine.query("late($x, ?)", strategy=strategy, x=2)
        assert sorted(engine.view("tc").rows()) == [(1, 2), (1, 3), (2, 3)]
        assert sorted(engine.query("tc(1, ?)", strategy=strategy).rows()) == sorted(query.rows()) == [(1, 2), (1, 3)]
        assert late.rows() == engine.view("late").rows() == []
        query.insert(x=2)
        query.remove(x=1)
        engine.advance()
        assert query.rows() == late.rows() == engine.view("late").rows() == [(2, 3)]


@pytest.mark.parametrize("strategy", ["auto", "goal", "full"])
def test_aggregate_of_what_lies_below_stays_one_in_a_recursive_predicate(strategy: str) -> None:
    """A greatest value is taken of the rule that says so, not of what other rules say."""
    with make_engine() as engine:
        engine.create_table("e", {"x": tk.Int, "y": tk.Int}, mode="set").insert([(1, 2), (1, 3), (3, 5), (2, 4)])
        engine.advance()
        engine.datalog("""
            p(x, max(y)) :- e(x, y).    p(x, z) :- p(x, y), e(y, z).
            q(x, min(y)) :- e(x, y).    q(x, y) :- r(x, y).    r(x, y) :- q(y, x).
            both(x, min(y)) :- e(x, y).  both(x, max(y)) :- e(x, y).
            from(x, y) :- both(x, y).    from(x, z) :- from(x, y), both(y, z).
        """)
        wanted = {
            "p": [(1, 3), (1, 5), (2, 4), (3, 5)],
            "q": [(1, 2), (2, 1), (2, 4), (3, 5), (4, 2), (5, 3)],
            "from": [(1, 2), (1, 3), (1, 4), (1, 5), (2, 4), (3, 5)],
        }
        for name, rows in wanted.items():
            asked = [engine.query(f"{name}({x}, ?)", strategy=strategy) for x in range(6)]
            assert sorted(row for query in asked for row in query.rows()) == rows
            assert sorted(engine.view(name).rows()) == rows
