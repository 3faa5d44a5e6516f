"""What is wrong with a Datalog program is said where it is, and leaves everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tektite as tk
from tektite.datalog.evaluate.fact_files import FileForm, read_facts
from tektite.values.schema import Schema
from tests.support.executors import make_engine

REFUSED = {
    "a rule that does not end": ("p(x) :- q(x)", tk.IncorrectError, "program:1:12: .*end of the text"),
    "a stray character": ("p(x) :- q(x) & r(x).", tk.IncorrectError, r"program:1:14: did not expect '&'"),
    "an EDN bracket too few": ("[(p ?x) [?x :q ?y]", tk.IncorrectError, "bracket missing"),
    "an unbound head variable": (
        "p(x, y) :- edge(x, _).",
        tk.IncorrectError, r"rule 'p\(x, y\) .*' \(program:1:1\): variable 'y' in the head",
    ),
    "an unbound variable in a negation": ("p(x) :- edge(x, _), !edge(x, y).", tk.IncorrectError, "variable 'y' in !edge"),
    "an unbound variable in a comparison": ("p(x) :- edge(x, _), y < 3.", tk.IncorrectError, "variable 'y' in y < 3"),
    "nothing in the head": ("p(_) :- edge(_, _).", tk.IncorrectError, "'_' in the head"),
    "a fact with a variable": ("p(x).", tk.IncorrectError, "variable 'x' in the head"),
    "an arity clash between rules": (
        "p(x) :- edge(x, _). p(x, y) :- edge(x, y).",
        tk.IncorrectError, "'p' has 2 columns here, and 1 in rule",
    ),
    "an arity clash with what is stored": (
        "p(x) :- edge(x, _, _).",
        tk.IncorrectError, "'edge' has 3 columns here, and 2 in",
    ),
    "a type clash between rules": (
        'p(x) :- edge(x, _). p("a").',
        tk.IncorrectError, "column 1 of 'p' is string here, and int in rule",
    ),
    "a type clash in a rule": (
        "p(x) :- edge(x, _), name(_, x).",
        tk.IncorrectError, "variable 'x' is int in edge.* and string in name",
    ),
    "a constant of the wrong type": (
        'p(x) :- edge(x, "a").',
        tk.IncorrectError, '"a" in edge.* is string, but the column is int',
    ),
    "a sum of texts": ("p(sum(x)) :- name(_, x).", tk.IncorrectError, r"sum\(x\) is taken of string"),
    "arithmetic on texts": ("p(y) :- name(_, x), y = x + 1.", tk.IncorrectError, r"\(x \+ 1\)"),
    "a comparison of a number with a text": ('p(x) :- edge(x, _), x < "a".', tk.IncorrectError, "is string"),
    "negation through recursion": (
        "p(x) :- edge(x, _), !q(x). q(x) :- r(x). r(x) :- p(x).", tk.IncorrectError, "p -> !q -> r -> p",
    ),
    "an aggregate through recursion": (
        "p(x, count(y)) :- edge(x, y), p(y, _).",
        tk.IncorrectError, "the aggregate count of 'p'.*: p -> count over p",
    ),
    "a minimum that feeds something else": (
        "p(1, 0). p(y, min(d + 1)) :- p(x, d), edge(x, y), q(d). q(x) :- edge(x, _).",
        tk.UnsupportedError, "stands in two predicates",
    ),
    "a minimum that decides against itself": (
        "p(1, 0). p(y, min(d + 1)) :- p(x, d), edge(x, y), d > 2.", tk.UnsupportedError, "fail for a better one",
    ),
    "a minimum that is turned around": (
        "p(1, 0). p(y, min(9 - d)) :- p(x, d), edge(x, y).", tk.UnsupportedError, "need not grow with it",
    ),
    "two kinds of improvement": (
        "p(1, 0). p(y, min(d)) :- p(x, d), edge(x, y). p(y, max(d)) :- p(x, d), edge(x, y).",
        tk.IncorrectError, "keeps min of column 2",
    ),
    "an aggregate that does not exist": (
        "p(x) :- edge(x, _), n = median y : { edge(x, y) }, n > 1.",
        tk.IncorrectError, "no aggregate 'median'",
    ),
    "a function that does not exist": ("p(frob(x)) :- edge(x, _).", tk.UnsupportedError, "no function 'frob'"),
    "a component that does not end": (".comp Graph {", tk.IncorrectError, "program:1:13: did not expect the end"),
    "an equivalence relation of three columns": (
        ".decl eq(x: number, y: number, z: number) eqrel", tk.IncorrectError, "needs two columns of one type",
    ),
    "an unknown type": (".decl p(x: integer)", tk.IncorrectError, "no type 'integer'"),
    "an input that is not declared": (".input nowhere", tk.IncorrectError, "'nowhere' is an input that is not declared"),
    "a declaration against what is stored": (
        ".decl edge(x: symbol, y: number)\n.input edge",
        tk.IncorrectError, "'edge' is declared as",
    ),
    "two declarations": (
        ".decl p(x: number)\n.decl p(x: symbol)",
        tk.ConflictError, "declared with other columns at program:1:1",
    ),
    "a text that does not end": ('p("a) :- edge(_, _).', tk.IncorrectError, "program:1:3: this text does not end"),
    "a comment that does not end": ("p(1).\n/* p(2).", tk.IncorrectError, "program:2:1: this comment does not end"),
    "a comment in a rule that does not end": ("p(x) :- edge(x, y), x = y /* and", tk.IncorrectError, "comment does not end"),
    "a function that does not exist, in a head": (
        "p(1).\np(frob(x)) :- edge(x, _).", tk.UnsupportedError, r"rule 'p\(frob\(x\)\) .*' \(program:2:1\): there is no",
    ),
    "an exponent that is a text": ('p(x ^ "a") :- edge(x, _).', tk.IncorrectError, r"rule 'p\(x \^ \"a\"\).*power needs"),
    "a variable of an aggregate that nothing binds": (
        "p(n) :- n = count : { edge(x, _) }, x > 1.", tk.IncorrectError, "variable 'x' in x > 1 is not bound",
    ),
    "negation through recursion, of a group": (
        "p(x) :- edge(x, y), !(q(x), edge(y, x)). q(x) :- p(x).", tk.IncorrectError,
        r"rule 'p\(x\) :- edge\(x, y\), !\(q\(x\), edge\(y, x\)\)\.' .*: a negation of 'q'.*: p -> !q -> p\.",
    ),
    "an aggregate through recursion, in a body": (
        "p(x) :- edge(x, _), 1 < count : { p(x) }.", tk.IncorrectError,
        r"rule 'p\(x\) :- edge\(x, _\), 1 < count : \{ p\(x\) \}\.' .*the aggregate count of 'p'.*: p -> count over p\.",
    ),
    "an output of nothing": (".output nowhere", tk.NotFoundError, "program:1:9: .output: there is no relation 'nowhere'"),
    "a size of nothing": ("\n.printsize egde", tk.NotFoundError, "program:2:12: .*'egde': did you mean 'edge'"),
    "a record in a column of numbers": (
        "p(x) :- edge(x, [a, b]).", tk.IncorrectError, r"what the fields of \[a, b\] are does not follow",
    ),
    "a record with a field too many": (
        ".type P = [x: number]\n.decl p(r: P)\np([x, 1]) :- edge(x, _).", tk.IncorrectError,
        r"\[x, 1\] has 2 fields, and type P has 1",
    ),
    "a field of another type": (
        ".type P = [x: symbol]\n.decl p(r: P)\np([x]) :- edge(x, _).", tk.IncorrectError, "x is int, and the field .* is string",
    ),
    "a union of records": (
        ".type P = [x: number]\n.type Q = [y: number]\n.type R = P | Q\n.decl p(r: R)", tk.IncorrectError, "union of records",
    ),
    "nil in a column of texts": (
        ".type R = [x: number]\n.decl p(s: symbol, r: R)\np(nil, nil).", tk.IncorrectError, "nil is a record, and no declaration",
    ),
    "nil in a field of texts": (
        ".type R = [x: symbol]\n.decl p(r: R)\np([nil]).", tk.IncorrectError, "nil is a record, and no declaration",
    ),
    "nil in a column that is not declared": ("p(nil) :- edge(_, _).", tk.IncorrectError, "nil is a record, and no declaration"),
    "a tag that no type has": ("p($A(x)) :- edge(x, _).", tk.IncorrectError, r"the fields of \$A\(x\) are does not follow"),
    "a tag of another type": (
        ".type T = A {x: number}\n.type U = B {}\n.decl p(t: T)\np($B) :- edge(_, _).", tk.IncorrectError,
        r"\$B is not of type T, which has: \$A",
    ),
    "a counter": ("p($) :- edge(_, _).", tk.UnsupportedError, r"program:1:3: the counter \$"),
    "another counter": ("p(autoinc()) :- edge(_, _).", tk.UnsupportedError, r"program:1:3: autoinc\(\)"),
    "a functor that is not declared": (
        "p(@f(x)) :- edge(x, _).", tk.NotFoundError, "there is no functor @f; declared are: none",
    ),
    "a functor without a function": (
        ".functor f(x: number): number\np(@f(x)) :- edge(x, _).", tk.NotFoundError, "@f has no function: give engine.datalog",
    ),
    "a functor with state": (
        ".functor f(x: number): number stateful", tk.UnsupportedError, "program:1:1: functor f is stateful",
    ),
    "a functor of four values": (
        ".functor f(a: number, b: number, c: number, d: number): number\np(@f(x, x, x, x)) :- edge(x, _).", tk.NotFoundError,
        "no function",
    ),
    "a choice by a column that is not there": (
        ".decl p(x: number) choice-domain y\np(1).", tk.IncorrectError,
        "program:1:34: choice-domain: there is no column 'y'; .*: x",
    ),
    "a choice without rules": (".decl p(x: number) choice-domain x", tk.IncorrectError, "'p' has a choice-domain and no rules"),
    "a choice among least values": (
        ".decl p(x: number, y: number) choice-domain x\np(x, min(y)) :- edge(x, y).", tk.IncorrectError, "keeps least",
    ),
    "a choice of an equivalence relation": (
        ".decl p(x: number, y: number) eqrel choice-domain x\np(1, 2).", tk.IncorrectError, "it can be one of them",
    ),
    "a subsumption of an input": (
        "edge(a, b) <= edge(c, d) :- a <= c, b <= d.", tk.UnsupportedError, "program:1:1: 'edge' is an input: subsumption",
    ),
    "a subsumption by another predicate": ("p(1). q(2). p(x) <= q(y) :- x < y.", tk.IncorrectError, "'p' is subsumed by"),
    "a subsumption whose body negates its own predicate in a group": (
        "p(1, 1). p(x, y) :- p(y, x). p(a, b) <= p(c, d) :- a < c, !(p(a, z), z > d).", tk.IncorrectError, "a negation of 'p'",
    ),
    "a limit": (".limitsize p(n=1)", tk.UnsupportedError, r"program:1:1: \.limitsize p"),
    "a component that is not there": (
        ".comp G {}\n.init g = H", tk.IncorrectError, "program:2:11: there is no component 'H'; .*: G",
    ),
    "a component with a type too few": (".comp G<T> {}\n.init g = G", tk.IncorrectError, "component G takes 1 types, found 0"),
    "a component that is its own base": (".comp G : G {}\n.init g = G", tk.IncorrectError, "G is its own base: G -> G"),
    "a component that contains itself": (
        ".comp G { .init g = G }\n.init g = G", tk.IncorrectError, "component G contains itself",
    ),
    "an override of what may not be overridden": (
        ".comp A { .decl r(x: number) r(1). }\n.comp B : A { .override r }\n.init b = B", tk.IncorrectError,
        "program:2:15: .override r: the base does not declare 'r' as overridable",
    ),
    "an override of nothing": (
        ".comp B { .override r }\n.init b = B", tk.IncorrectError, "no base of the component declares 'r'",
    ),
    "an override outside": (".override r", tk.IncorrectError, "program:1:1: .override belongs into a component"),
    "a type that is defined by itself": (
        ".type A = B\n.type B = A\n.decl p(x: A)", tk.IncorrectError, "type A is defined by itself",
    ),
    "two types of one name": (".type A = number\n.type A = symbol", tk.IncorrectError, "program:2:1: there is a type 'A'"),
    "a negative fact that is unsigned": (
        ".decl p(x: unsigned)\np(-3).", tk.IncorrectError, r"\(program:2:1\): -3 in column 'x' of 'p', which is unsigned",
    ),
    "a predicate with and without columns": (
        "p() :- edge(_, _). p(x, y) :- edge(x, y).", tk.IncorrectError, "'p' has 2 columns here, and 1 in",
    ),
    "a range of what nothing binds": ("p(x) :- x = range(0, y).", tk.IncorrectError, "variable 'y' in .* is not bound"),
    "a pattern that is not written out": (
        '.decl t(x: symbol)\np(x) :- t(x), match(x, "a").', tk.UnsupportedError, "a regular expression that is written out",
    ),
    "a goal among rules": ("p(x) :- edge(x, _). ?- p(x).", tk.IncorrectError, "program:1:21: .*give the goal to engine.query"),
    "two variables that nothing binds": ("p(x) :- edge(x, _), y = z.", tk.IncorrectError, "variable 'y' in y = z"),
    "a number that is too large": ("p(99999999999999999999).", tk.IncorrectError, "does not fit into 64 bits"),
    "a query registered as rules": ("[:find ?x :where [?x :edge ?y]]", tk.IncorrectError, "give it to engine.query"),
    "an attribute that is a number": ("[(p ?x) [?x 3 ?y]]", tk.IncorrectError, "is a keyword, as :knows, or a variable; found 3"),
    "an unknown EDN predicate": ("[(p ?x) [?x :edge ?y] [(frob ?x ?y)]]", tk.IncorrectError, "no predicate 'frob'"),
}  # fmt: skip


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.create_table("edge", {"x": tk.Int, "y": tk.Int})
    engine.create_table("name", {"e": tk.Int, "v": tk.String})
    return engine


@pytest.mark.parametrize(("text", "kind", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_program_is_refused_and_leaves_nothing_behind(
    engine: tk.Engine, text: str, kind: type[Exception], message: str
) -> None:
    before = (engine.tables, engine.views)
    with pytest.raises(kind, match=message):
        engine.datalog(text)
    assert (engine.tables, engine.views) == before
    program = engine.datalog("p(x) :- edge(x, _).")  # the name is still free
    assert program["p"].rows() == []


def test_rule_registered_twice_with_another_meaning_is_refused(engine: tk.Engine) -> None:
    engine.datalog("p(x) :- edge(x, y), y > 1.")
    engine.datalog("p(a) :- edge(a, b), b > 1.")  # other names, same meaning
    with pytest.raises(tk.ConflictError, match="'p' is registered with another meaning, at program:1:1"):
        engine.datalog("p(x) :- edge(x, y), y > 2.")


def test_rule_may_be_registered_again_with_its_clauses_in_another_order(engine: tk.Engine) -> None:
    engine.datalog("p(x) :- edge(x, y), edge(y, z), name(z, _), !(edge(z, w), name(w, _)), (z > 1; z < 0).")
    engine.datalog("p(a) :- (c < 0; c > 1), !(name(d, _), edge(c, d)), edge(b, c), name(c, _), edge(a, b).")
    for other in (
        "p(a) :- (c < 0; c > 1), !(name(d, _), edge(c, d)), edge(b, c), name(b, _), edge(a, b).",
        "p(a) :- (c < 0; c > 1), !(name(d, _), edge(d, c)), edge(b, c), name(c, _), edge(a, b).",
        "p(a) :- (c < 0; c > 1), !(name(d, _), edge(c, d)), edge(c, b), name(c, _), edge(a, b).",
    ):
        with pytest.raises(tk.ConflictError, match="registered with another meaning"):
            engine.datalog(other)


def test_rule_registered_again_keeps_its_settings(engine: tk.Engine) -> None:
    rules = "p(x) :- edge(x, _)."
    engine.datalog(rules, max_rounds=5, share={"p": False})
    with pytest.raises(tk.ConflictError, match="registered with max_rounds=5, not 6"):
        engine.datalog(rules, max_rounds=6)
    with pytest.raises(tk.ConflictError, match="registered with share={'p': False}"):
        engine.datalog(rules, max_rounds=5, share={"p": True})
    engine.datalog(rules, max_rounds=5, share={"p": False})


def test_rules_are_forgotten_with_the_last_program_that_registered_them(engine: tk.Engine) -> None:
    first = engine.datalog("p(x) :- edge(x, _).")
    second = engine.datalog("p(y) :- edge(y, _).")
    reader = engine.datalog("q(x) :- p(x).")
    first.drop()
    with pytest.raises(tk.ConflictError, match="the rules of 'q' read it"):
        second.drop()
    reader.drop()
    second.drop()
    with pytest.raises(tk.NotFoundError):
        engine.view("p")
    engine.datalog("p(x) :- edge(_, x).")


def test_rules_of_a_maintained_view_stay(engine: tk.Engine) -> None:
    program = engine.datalog("p(x) :- edge(x, _).")
    view = engine.view("p")
    with pytest.raises(tk.ConflictError, match="its view is maintained"):
        program.drop()
    view.drop()
    program.drop()


def test_name_of_a_view_is_taken(engine: tk.Engine) -> None:
    engine.install("p", engine.table("edge").select("x"))
    with pytest.raises(tk.ConflictError, match="there is a view named 'p'"):
        engine.datalog("p(x) :- edge(x, _).")


def test_unknown_relations_are_named_with_what_there_is(engine: tk.Engine) -> None:
    engine.datalog("p(x) :- egde(x, _).")
    with pytest.raises(tk.NotFoundError, match="no relation 'egde': did you mean 'edge'"):
        engine.view("p")
    with pytest.raises(tk.NotFoundError, match="no relation 'q'"):
        engine.query("q(1)")
    with pytest.raises(tk.NotFoundError, match="no relation 'person/nkows'"):
        engine.query("[:find ?x :where [?x :person/nkows 3]]")
    with pytest.raises(tk.NotFoundError, match="no rule for 'q'"):
        engine.datalog("r(x) :- edge(x, _).").view("q")


@pytest.mark.parametrize(
    ("query", "given", "message"),
    [
        ("edge(1)", {}, "'edge' has 2 columns"),
        ("edge(1, ?), edge(2, ?)", {}, "did not expect ','"),
        ("edge(1 + 1, ?)", {}, "give its value"),
        ("edge($x, ?)", {"y": 1}, "no parameter 'y'"),
        ("edge($x, ?)", {"x": "a"}, "expected int"),
        ('edge("a", ?)', {}, "is string, but the column is int"),
        ('far("a", ?)', {}, r'"a" in far\("a", .*\) is string, but the column is int'),
        ("[:where [?x :edge ?y]]", {}, "no :find"),
        ("[:find ?z :where [?x :edge ?y]]", {}, "variable 'z' in the head"),
        ("[:find ?x :with ?w :where [?x :edge ?y]]", {}, "variable 'w' in :with"),
        ("[:find (mode ?x) :where [?x :edge ?y]]", {}, "no aggregate 'mode'"),
        ('[:find ?x :where [?x :edge ?y] [(< ?x "a")]]', {}, "is string"),
        ("[:find ?x :in ?p :where [?x :edge ?y]]", {}, "type of parameter 'p'"),
    ],
)
def test_query_is_refused(engine: tk.Engine, query: str, given: dict[str, object], message: str) -> None:
    engine.datalog("far(x, y) :- edge(x, y).  far(x, z) :- far(x, y), edge(y, z).")
    before = (engine.tables, engine.views)
    with pytest.raises(tk.TektiteError, match=message):
        engine.query(query, given)
    assert (engine.tables, engine.views) == before


@pytest.mark.executors("stages")
def test_recursion_that_grows_for_ever_ends_with_an_error_that_names_it(engine: tk.Engine) -> None:
    program = engine.datalog("count_up(0). count_up(n + 1) :- count_up(n).", max_rounds=50)
    engine.datalog("other(0). other(n + 1) :- other(n), n < 3.", max_rounds=1_000)
    with pytest.raises(tk.TektiteError, match=r"count_up.*50 rounds.*larger max_rounds="):
        program["count_up"].rows()
    with pytest.raises(tk.TektiteError, match=r"count_up.*50 rounds.*larger max_rounds="):
        engine.query("count_up($n)", n=-1, strategy="goal").rows()
    assert engine.datalog("p(x) :- edge(x, _).")["p"].rows() == []


@pytest.mark.executors("stages")
def test_recursion_without_arithmetic_has_no_limit(engine: tk.Engine) -> None:
    program = engine.datalog("reach(1). reach(y) :- reach(x), edge(x, y).", max_rounds=3)
    engine.table("edge").insert([(i, i + 1) for i in range(1, 40)])
    engine.advance()
    assert len(program["reach"].rows()) == 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n2\n", r"p\.facts:2: expected 2 columns \(x, y\), found 1"),
        ("1\ta\n2\tb\nthree\tc\n", r"p\.facts:3: column 'x': expected int, found 'three'"),
        ("1\ta\n\n2\tb\n", r"p\.facts:2: expected 2 columns"),
        ("1\ta\n99999999999999999999\tb\n", r"p\.facts:2: column 'x': 99999999999999999999 does not fit"),
        ("1\ta\n-9223372036854775808\tb\n", r"p\.facts:2: column 'x': -9223372036854775808 does not fit"),
        ("1\ta\n0xffffffffffffffff\tb\n", r"p\.facts:2: column 'x': 0xffffffffffffffff does not fit"),
        ("1\ta\n-3\tb\n", r"p\.facts:2: column 'x': expected unsigned, found '-3'"),
        ("1\ta\tb\n", r"p\.facts:1: expected 2 columns \(x, y\), found 3"),
    ],
)
def test_bad_line_of_a_fact_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "p.facts"
    path.write_text(content)
    with pytest.raises(tk.IncorrectError, match=message):
        read_facts(path, Schema(x=tk.Int, y=tk.String), FileForm(unsigned=("x",) if "-3" in content else ()))


@pytest.mark.parametrize("content", ["1_0\n", "1\n١\n", "1e\n", ".\n"])
def test_what_is_no_number_is_not_read_as_one(tmp_path: Path, content: str) -> None:
    path = tmp_path / "p.facts"
    path.write_text(content, encoding="utf-8")
    for type in (tk.Int, tk.Float):
        with pytest.raises(tk.IncorrectError, match=f"p.facts:{content.count(chr(10))}: column 'x': expected {type}"):
            read_facts(path, Schema(x=type))


@pytest.mark.parametrize("more", ["", "+4\tb\n", "-1\tb\n"])
def test_numbers_of_a_fact_file_may_be_hexadecimal(tmp_path: Path, more: str) -> None:
    path = tmp_path / "p.facts"
    path.write_text("0x1F\ta\n 7 \ta\n" + more)
    rows = [31, 7, *(int(line.split()[0]) for line in more.splitlines())]
    assert read_facts(path, Schema(x=tk.Int, y=tk.String))["x"].to_pylist() == rows


def test_unclosed_quote_of_a_fact_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.facts"
    path.write_text('1,"a"\n2,"b\n')
    with pytest.raises(tk.IncorrectError, match=r"p\.facts:2: "):
        read_facts(path, Schema(x=tk.Int, y=tk.String), FileForm(",", quoted=True))


def test_missing_fact_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(tk.NotFoundError, match=r"no fact file .*p\.facts"):
        read_facts(tmp_path / "p.facts", Schema(x=tk.Int))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([(1, "nkows", 2)], "no attribute :nkows; there are: :knows, :bot"),
        ([(1, "knows", 2), (1, "knows", "bob")], "expected int"),
        ([(1, "knows")], "takes a value"),
        ([(1, "bot?", True)], "takes no value"),
        ([(1,)], "a fact is"),
        ("[1 :knows ?x]", "is not a value"),
    ],
)
def test_transaction_is_refused_as_a_whole(facts: object, message: str) -> None:
    engine = make_engine()
    engine.attribute("knows", tk.Int)
    engine.attribute("bot?")
    with pytest.raises(tk.TektiteError, match=message):
        engine.transact(facts)
    assert engine.table("knows").pending == 0


def test_names_of_rules_are_taken() -> None:
    """By rules that nobody reads yet and by those that are kept; what belongs to the rules may have them."""
    with make_engine() as engine:
        other = engine.create_table("z", {"x": tk.Int})
        program = engine.datalog("f(9).  g(x) :- f(x).")
        for name in ("f", "g"):
            with pytest.raises(tk.ConflictError, match=f"a Datalog rule named '{name}' already"):
                engine.install(name, other)
            with pytest.raises(tk.ConflictError, match=f"a Datalog rule named '{name}' already"):
                engine.create_table(name, {"x": tk.Int})
        assert program["f"].rows() == [(9,)] == engine.query("g(?)").rows()
        engine.drop("f")
        program.drop()
        engine.install("f", other)


@pytest.mark.executors("stages")
def test_facts_of_both_zeros_are_one() -> None:
    with make_engine() as engine:
        engine.datalog("p(-0.0).  p(0.0).  q(x) :- p(x), p(x).  n(count()) :- q(_).")
        assert engine.view("q").rows() == [(0.0,)]
        assert engine.view("n").rows() == [(1,)]


@pytest.mark.parametrize("text", [None, 3, b"p(1)."])
def test_text_that_is_none_is_refused(text: object) -> None:
    with make_engine() as engine:
        with pytest.raises(tk.IncorrectError, match="is text, not"):
            engine.datalog(text)  # type: ignore[arg-type]
        with pytest.raises(tk.IncorrectError, match="is text, not"):
            engine.query(text)  # type: ignore[arg-type]
    with make_engine() as engine, pytest.raises(tk.IncorrectError, match="facts are"):
        engine.transact(3)


@pytest.mark.parametrize(
    ("ask", "place"),
    [
        (lambda engine: engine.datalog("p(1).\n  q(x) :- p(x) & r(x)."), (2, 16)),
        (lambda engine: engine.datalog("p(1).\nq(x, y) :- p(x).", source="(mine)"), (2, 1)),
        (lambda engine: engine.query("\n?- p(1, ,x)."), (2, 9)),
        (lambda engine: engine.query("[:find ?x\n :where [?x :q"), (2, 13)),
    ],
    ids=["a stray character", "an unbound variable", "a goal", "a query"],
)
def test_an_error_has_its_place_for_programs(ask: Callable[[tk.Engine], object], place: tuple[int, int]) -> None:
    with pytest.raises(tk.TektiteError) as caught:
        ask(make_engine())
    assert (caught.value.details["line"], caught.value.details["column"]) == place
