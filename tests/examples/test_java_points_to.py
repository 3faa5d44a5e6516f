"""The points-to analysis of Java programs: known answers, the slow twin, and equal answers after every change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from examples.analysis.java.questions import CONTEXTS, QUESTIONS, analysis, predicate
from examples.analysis.watched import Analysis
from tests.examples.java_oracle import points_to

SAMPLE = Path(__file__).parent / "data" / "java" / "main.jar"
JARS = Path(pyspark.__file__).parent / "jars"
MAIN = "Main.main(java.lang.String[])void"


@pytest.fixture(scope="module")
def sample() -> Iterator[Analysis]:
    with analysis([SAMPLE]) as found:
        found.refresh()
        found.state("EntryPoint", [(MAIN,)])
        found.state("TaintSource", [("Main", "secret")])
        found.state("TaintSink", [("Main", "print", 0)])
        found.state("TaintSanitizer", [("Main", "cleaned")])
        yield found


def answer(found: Analysis, question: str, context: str = "insensitive") -> list[tuple[Any, ...]]:
    return sorted(found.ask(predicate(question, context)).rows())


def test_lambdas_lead_from_what_they_capture_to_what_they_return(sample: Analysis) -> None:
    rows = answer(sample, "points-to", "object2")
    result = "Main.lambdas(Main$Cat)java.lang.Object/Main$Box.get/0#result"
    assert [heap for variable, heap in rows if variable == result] == [f"{MAIN}/new Main$Lion/0"]


def test_arrays_of_arrays_hold_what_is_stored_in_them(sample: Analysis) -> None:
    rows = answer(sample, "points-to")
    row = [heap for variable, heap in rows if variable == "Main.arrays()java.lang.Object[]/array load/1#value"]
    assert row == ["Main.arrays()java.lang.Object[]/new java.lang.Object[]/0"]


def test_an_exception_is_caught_by_the_first_handler_of_its_type_or_leaves(sample: Analysis) -> None:
    assert answer(sample, "throws") == [(MAIN, "java.lang.IllegalStateException")]
    rows = answer(sample, "points-to")
    caught = [heap for variable, heap in rows if variable.endswith("catch Main$Trouble/0#caught")]
    assert caught == ["Main.fail(boolean)void/new Main$Trouble/0"]


def test_contexts_decide_which_casts_may_fail(sample: Analysis) -> None:
    def failing(context: str) -> set[str]:
        return {cast for cast, _, _ in answer(sample, "casts", context)}

    boxes = {"Main.boxes()void/cast Main$Cat/0", "Main.boxes()void/cast Main$Horn/0"}
    calls = {"Main.calls()void/cast Main$Cat/0", "Main.calls()void/cast Main$Horn/0"}
    assert failing("insensitive") == boxes | calls
    assert failing("object2") == calls
    assert failing("hybrid") == set()


def test_calls_are_polymorphic_if_several_methods_may_run(sample: Analysis) -> None:
    box, cat = "Main.boxes()void/Main$Cat.name/0", "Main.nameOf(Main$Cat)java.lang.String/Main$Cat.name/0"
    assert answer(sample, "polymorphic") == [(box,), (cat,)]
    assert answer(sample, "polymorphic", "object2") == [(cat,)]


def test_methods_that_nothing_reaches_are_dead(sample: Analysis) -> None:
    assert answer(sample, "dead") == [("Main.<init>()void",), ("Main.unreachable()void",)]


def test_a_field_that_nobody_assigns_is_null_where_it_is_dereferenced(sample: Analysis) -> None:
    friend = "Main.friendOfFriend(Main$Cat)java.lang.String"
    assert answer(sample, "always-null") == [(f"{friend}/Main$Cat.name/0", f"{friend}/local1#0", friend)]


def test_taint_goes_through_texts_and_ends_at_sanitizers(sample: Analysis) -> None:
    leak = "Main.leak()void"
    assert answer(sample, "leaks") == [(f"{leak}/Main.secret/0", f"{leak}/Main.print/0", 0)]


@pytest.mark.parametrize("path", ["main.jar", "opencsv-*.jar", "minlog-*.jar"])
def test_context_insensitive_answers_equal_the_slow_twin(path: str) -> None:
    (jar,) = [SAMPLE] if path == SAMPLE.name else JARS.glob(path)
    with analysis([jar]) as found:
        found.refresh()
        compare_with_twin(found)


def compare_with_twin(found: Analysis) -> None:
    expected = points_to(found.base.rows(), found.ask("KnownSuperclass").rows())
    assert {(h, v) for _, h, _, v in found.ask("insensitive.VarPointsTo").rows()} == expected["VarPointsTo"]
    assert {(i, m) for _, i, _, m in found.ask("insensitive.CallGraphEdge").rows()} == expected["CallGraphEdge"]
    assert {(m,) for _, m in found.ask("insensitive.Reachable").rows()} == expected["Reachable"]


def test_answers_equal_the_slow_twin_after_every_change_of_a_method() -> None:
    with analysis([SAMPLE]) as found:
        found.refresh()
        units = dict(found.base.units)
        bodies = sorted(unit for unit in units if "(" in unit)
        chosen = random.Random(1).sample(bodies, 8)
        for count, unit in enumerate(chosen):
            found.base.replace({unit: None} | {back: units[back] for back in chosen[: max(count - 1, 0)]})
            compare_with_twin(found)
        found.base.replace(units)
        compare_with_twin(found)


def test_context_sensitive_answers_equal_recomputation_after_changes() -> None:
    asked = [predicate(question, "object2") for question in ("points-to", "null", "casts", "throws", "calls")]
    with analysis([SAMPLE]) as kept, analysis([SAMPLE]) as anew:
        kept.refresh()
        views = kept.program.views(*asked)
        units = dict(kept.base.units)
        for unit in (
            "Main.boxes()void",
            "Main$Box.put(java.lang.Object)void",
            "Main.lambdas(Main$Cat)java.lang.Object",
        ):
            kept.base.replace({unit: None})
        kept.base.replace({"Main.boxes()void": units["Main.boxes()void"]})
        anew.base.load(kept.base.units)
        for name, view in zip(asked, views.values() if isinstance(views, dict) else views, strict=True):
            assert sorted(view.rows()) == sorted(anew.ask(name).rows()), name


def test_every_question_can_be_asked_in_every_context(sample: Analysis) -> None:
    for context in CONTEXTS:
        assert dict(answer(sample, "figures", context))["reachable methods"] == 26
    assert [
        question for question in QUESTIONS if question not in ("recursive", "locks") and not answer(sample, question)
    ] == []


def test_a_file_that_breaks_leaves_the_answers_as_they_were(tmp_path: Path) -> None:
    copy = tmp_path / "main.jar"
    copy.write_bytes(SAMPLE.read_bytes())
    with analysis([copy]) as found:
        assert found.refresh() > 300
        before = found.base.rows()
        copy.write_bytes(b"broken")
        with pytest.raises(ValueError, match="neither a class file nor a jar"):
            found.refresh()
        assert found.base.rows() == before
        copy.write_bytes(SAMPLE.read_bytes())
        assert found.refresh() == 0
