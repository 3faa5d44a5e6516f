"""Facts of C programs and the null and alias analyses over them: known answers, a slow twin, equal answers after changes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.analysis.c.compiling import CannotCompile, find_clang
from examples.analysis.c.questions import QUESTIONS, analysis, extract
from examples.analysis.c.relations import NUMBERS, RELATIONS
from examples.analysis.watched import RULES, Analysis
from tests.examples.test_java_extraction import declarations

DATA = Path(__file__).parent / "data" / "c"
SAMPLE = DATA / "list.ll"
needs_clang = pytest.mark.skipif(find_clang() is None, reason="needs clang, Debian's package")


@pytest.fixture(scope="module")
def sample() -> Iterator[Analysis]:
    with analysis([SAMPLE]) as found:
        found.refresh()
        yield found


def answer(found: Analysis, question: str) -> set[tuple[Any, ...]]:
    return {*found.ask(QUESTIONS[question][0]).rows()}


def test_a_use_of_a_pointer_that_may_be_null_names_its_line_and_where_null_came_from(sample: Analysis) -> None:
    uses = {(place, function, origin) for place, function, _, origin in answer(sample, "null")}
    assert ("list.c:22", "use", "list.c:17 in find: find/phi1 = null") in uses
    assert not {function for _, function, _ in uses} & {"checked", "through_memory"}


def test_null_goes_through_memory_that_two_pointers_share(sample: Analysis) -> None:
    found = {place for place, function, _, _ in answer(sample, "null-memory") if function == "through_memory"}
    assert found == {"list.c:33"}


def test_fields_of_a_struct_are_told_apart(sample: Analysis) -> None:
    shared = answer(sample, "memory-alias")
    one = "through_memory/%0.node.1"
    assert (f"*{one}", "*through_memory/select0.node.1") in shared or (
        f"*{one}",
        "*through_memory/phi0.node.1",
    ) in shared
    assert not [pair for pair in shared if pair[0] == one and not pair[1].endswith(".node.1")]


def test_pointers_lead_to_what_was_allocated(sample: Analysis) -> None:
    assert ("checked/load0", "begin/malloc call 0") in answer(sample, "points-to")
    assert ("checked/load0", "begin/malloc call 1") not in answer(sample, "points-to")


Pairs = set[tuple[Any, ...]]


def aliases(facts: dict[str, list[tuple[Any, ...]]]) -> dict[str, Pairs]:
    """The slow twin: the grammar of value flow and aliases, by passes over all pairs until nothing changes."""
    steps = {*facts["AssignLocal"]}
    parts = [(p, m, "*") for p, m in facts["Dereference"]] + list(facts["FieldAddress"])
    nodes = {node for step in steps for node in step} | {node for p, x, _ in parts for node in (p, x)}
    flow: Pairs = {(node, node) for node in nodes} | steps
    memory: Pairs = set()
    value: Pairs = set()
    size = -1
    while size != len(flow) + len(memory) + len(value):
        size = len(flow) + len(memory) + len(value)
        flow |= {(x, y) for x, z in memory for w, y in steps if w == z}
        flow |= composed(flow, flow)
        back = {(y, x) for x, y in flow}
        value |= composed(back, flow) | composed(composed(back, memory), flow)
        memory |= {(x, w) for y, x, one in parts for z, w, other in parts if one == other and (y, z) in value}
    return {"ValueFlow": flow, "MemoryAlias": memory, "ValueAlias": value}


def composed(first: Pairs, second: Pairs) -> Pairs:
    after: dict[Any, list[Any]] = {}
    for y, z in second:
        after.setdefault(y, []).append(z)
    return {(x, z) for x, y in first for z in after.get(y, ())}


def reached(facts: dict[str, list[tuple[Any, ...]]], assigned: Iterable[tuple[Any, ...]]) -> Pairs:
    found: Pairs = {*facts["NullAssignment"]}
    size = -1
    while size != len(found):
        size = len(found)
        found |= composed(found, {*assigned})
    return found


def compare(found: Analysis) -> None:
    facts = {name: found.base.rows().get(name, []) for name in RELATIONS}
    expected = aliases(facts)
    for form in ("plain", "shared"):
        for name, rows in expected.items():
            assert {*found.ask(f"{form}.{name}").rows()} == rows, f"{form}.{name}"
    null = reached(facts, found.ask("Assign").rows())
    assert {*found.ask("dataflow.Null").rows()} == null
    assert {*found.ask("reached.MayBeNull").rows()} == {(node,) for _, node in null}
    objects = {node for node, _ in facts["Object"]}
    led = {
        (x, o)
        for o, x in expected["ValueFlow"] | composed(expected["MemoryAlias"], expected["ValueFlow"])
        if o in objects
    }
    assert {*found.ask("points_to.PointsTo").rows()} == led


def test_answers_equal_the_slow_twin_after_every_change_of_a_function() -> None:
    with analysis([SAMPLE]) as found:
        found.refresh()
        compare(found)
        units = dict(found.base.units)
        for unit in random.Random(2).sample(sorted(units), 4):
            found.base.replace({unit: None})
            compare(found)
        found.base.replace(units)
        compare(found)


def test_answers_equal_the_slow_twin_while_assignments_of_null_go() -> None:
    with analysis([SAMPLE]) as found:
        found.refresh()
        nulls = found.engine.table("NullAssignment")
        facts = {name: found.base.rows().get(name, []) for name in RELATIONS}
        for row in list(facts["NullAssignment"]):
            nulls.remove([row])
            facts["NullAssignment"].remove(row)
            assert {*found.ask("dataflow.Null").rows()} == reached(facts, found.ask("Assign").rows())
        assert found.ask("NullUse").rows() == []


def test_rules_declare_the_relations_that_extraction_gives() -> None:
    declared = declarations((RULES / "c" / "facts.dl").read_text())
    given = {
        name: tuple((column, "number" if column in NUMBERS else "symbol") for column in columns)
        for name, columns in RELATIONS.items()
    }
    assert {name: columns for name, columns in declared.items() if name not in ("Assign", "AssignCall")} == given


@needs_clang
def test_clang_gives_the_facts_of_the_stored_text() -> None:
    def facts(path: Path) -> list[Any]:
        return [{name: sorted(rows) for name, rows in unit.items()} for unit in extract([path]).values()]

    assert facts(DATA / "list.c") == facts(SAMPLE)


@needs_clang
def test_a_changed_source_changes_the_answer_and_a_broken_one_nothing(tmp_path: Path) -> None:
    source = tmp_path / "list.c"
    shutil.copy(DATA / "list.c", source)
    text = source.read_text()
    with analysis([source]) as found:
        found.refresh()
        before = answer(found, "null")
        source.write_text(text.replace("return 0;\n}\n\nint use", "return head;\n}\n\nint use"))
        assert found.refresh() > 0
        assert {origin for *_, origin in before - answer(found, "null")} == {"list.c:17 in find: find/phi1 = null"}
        source.write_text(text + "int broken(")
        with pytest.raises(CannotCompile, match="list.c: clang says"):
            found.refresh()
        source.write_text(text)
        found.refresh()
        assert answer(found, "null") == before


def test_text_that_llvm_cannot_read_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.ll"
    path.write_text("define")
    with pytest.raises(CannotCompile, match="broken.ll: LLVM .* cannot read it"):
        extract([path])
