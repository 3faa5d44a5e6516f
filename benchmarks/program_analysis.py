"""Figs. 9 and 10 of *Shared Arrangements*: null and alias analyses of real C programs, plain and over shared relations.

`sources` are C files or .ll files of one program. The first answer is measured for each analysis, then the removal of each of
the first `removals` assignments of null (for aliases: of `removals` assignments): one epoch each, median and maximum.

Programs to measure come with packages of the registries: SQLite's amalgamation is in the crate libsqlite3-sys, zlib in libz-sys,
lz4 in the source package of Python's lz4. Without sources, a program is generated: `functions` functions that call each other,
store pointers and return null.

With `anchor=FILE`, the program of benchmarks/anchor, differential-dataflow evaluates the same rules over the same facts before.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.anchors import run_anchor
from benchmarks.measure import Laps, Others
from examples.analysis.c.questions import extract
from examples.analysis.fact_base import Facts
from examples.analysis.java.questions import analysis as java_analysis
from examples.analysis.watched import Analysis

NAME = "program_analysis"
DESCRIPTION = (
    "null and alias analyses of C programs, plain and over shared relations; then assignments of null go, one by one"
)

# For each analysis its plain form and the one that shares relations: both answer the same question.
FORMS = {
    ("dataflow", "plain"): ["dataflow.MayBeNull"],
    ("dataflow", "shared"): ["reached.MayBeNull"],
    ("points-to", "plain"): ["plain.MemoryAlias", "plain.ValueFlow"],
    ("points-to", "shared"): ["shared.MemoryAlias", "shared.ValueFlow"],
    ("null through memory", "plain"): ["plain_memory.MayBeNull"],
    ("null through memory", "shared"): ["memory.MayBeNull"],
}
# Aliases do not depend on assignments of null: there, other assignments go.
REMOVED = {"dataflow": "NullAssignment", "points-to": "AssignLocal", "null through memory": "NullAssignment"}


# The tasks of the other program.
ANCHORED = {("dataflow", "plain"): "dataflow", ("points-to", "plain"): "plain", ("points-to", "shared"): "shared"}


def run(
    sources: Sequence[str] = (),
    clang: Sequence[str] = (),
    functions: int = 300,
    removals: int = 1000,
    analyses: Sequence[str] = ("dataflow", "points-to", "null through memory"),
    forms: Sequence[str] = ("plain", "shared"),
    jars: Sequence[str] = (),
    contexts: Sequence[str] = ("insensitive", "object2"),
    workers: int = 1,
    anchor: str = "",
) -> Iterator[dict[str, Any]]:
    """A record for each analysis and form: the first answer, and the removal of assignments of null. With `jars`, the points-to
    analysis of a Java program instead: a record for each context.
    """
    if jars:
        for context in contexts:
            yield replaced_bodies([Path(one) for one in jars], context, removals, workers)
        return
    started = time.perf_counter()
    units = dict(extract([Path(one) for one in sources], clang)) if sources else generated(functions)
    extraction = time.perf_counter() - started
    program = Path(sources[0]).stem if sources else f"generated-{functions}"
    for (analysis, form), predicates in FORMS.items():
        if analysis not in analyses or form not in forms:
            continue
        record = {"program": program, "analysis": analysis, "form": form, "extraction_s": extraction}
        other: dict[str, Any] = {}
        if anchor and (analysis, form) in ANCHORED:
            with tempfile.NamedTemporaryFile("w", suffix=".facts") as file:
                file.writelines(numbered(units))
                file.flush()
                task = ANCHORED[analysis, form]
                for found in run_anchor(anchor, "analysis", file.name, task, workers, removals):
                    other |= {f"anchor_{name}": value for name, value in found.items() if name != "phase"}
        found = measured(units, predicates, REMOVED[analysis], removals, workers)
        if other:
            if other["anchor_rows"] != found["rows_left"]:
                raise AssertionError(
                    f"{task}: {found['rows_left']} rows left, and {other['anchor_rows']} by the other program"
                )
            for name in ("first_s", "removal_p50_us", "removal_max_us"):
                if other.get(f"anchor_{name}"):
                    other[f"{name}_ratio"] = round(found[name] / other[f"anchor_{name}"], 2)
            other["cpu_ratio"] = round(found["first_cpu_s"] / max(other["anchor_cpu_seconds"], 0.01), 2)
        yield record | found | other


def measured(
    units: dict[str, Facts], predicates: Sequence[str], relation: str, removals: int, workers: int
) -> dict[str, Any]:
    """The first answer of some predicates, then the removal of some facts of a relation, one epoch each."""
    others, laps = Others(), Laps()
    with Analysis("c/analyses.dl", lambda _: units, [], workers) as found:
        facts = found.base.load(units)
        with laps.lap():
            views = [found.ask(predicate) for predicate in predicates]
            found.engine.settle()
        first = laps.total()
        rows = sum(view.snapshot().num_rows for view in views)
        table = found.engine.table(relation)
        chosen = sorted(found.base.rows().get(relation, []))[:removals]
        laps = Laps()
        for row in chosen:
            with laps.lap():
                table.remove([row])
                found.engine.settle()
        left = sum(view.snapshot().num_rows for view in views)
    return {
        "facts": facts,
        "rows": rows,
        "rows_left": left,
        "first_s": first["seconds"],
        "first_cpu_s": first["cpu_seconds"],
        "removed": len(chosen),
        **{f"removal_{name}": value for name, value in laps.figures().items()},
        **others.figures(),
    }


def numbered(units: dict[str, Facts]) -> Iterator[str]:
    """The facts of a program as lines of numbers, in the order in which they are removed."""
    rows: dict[str, set[tuple[str | int, ...]]] = {}
    for facts in units.values():
        for relation, found in facts.items():
            rows.setdefault(relation, set()).update(map(tuple, found))
    numbers: dict[str | int, int] = {}

    def line(kind: str, *words: str | int) -> str:
        return " ".join([kind, *(str(numbers.setdefault(word, len(numbers))) for word in words)]) + "\n"

    formal = {(function, index): node for function, index, node in rows.get("FormalArgument", ())}
    returned: dict[str | int, list[str | int]] = {}
    for function, node in rows.get("ReturnedNode", ()):
        returned.setdefault(function, []).append(node)
    callees: dict[str | int, list[str | int]] = {}
    for call, _, callee in rows.get("CallSite", ()):
        callees.setdefault(call, []).append(callee)
    for row in sorted(rows.get("AssignLocal", ()), key=repr):
        yield line("a", *row)
    for row in sorted(rows.get("NullAssignment", ()), key=repr):
        yield line("n", *row)
    for call, index, node in rows.get("ActualArgument", ()):
        for callee in callees.get(call, ()):
            if (callee, index) in formal:
                yield line("c", node, formal[callee, index])
    for call, node in rows.get("CallResult", ()):
        for callee in callees.get(call, ()):
            for result in returned.get(callee, ()):
                yield line("c", result, node)
    for pointer, part in rows.get("Dereference", ()):
        yield line("p", pointer, part, "*")
    for row in rows.get("FieldAddress", ()):
        yield line("p", *row)


def replaced_bodies(jars: Sequence[Path], context: str, methods: int, workers: int) -> dict[str, Any]:
    """The first answer of a points-to analysis, then methods whose bodies go and come back, an epoch each."""
    others, first, laps = Others(), Laps(), Laps()
    with java_analysis(jars, workers) as found:
        facts = found.refresh()
        with first.lap():
            view = found.ask(f"{context}.VarPointsTo")
            found.engine.settle()
        rows = view.snapshot().num_rows
        bodies = {unit: facts for unit, facts in found.base.units.items() if "(" in unit}
        for unit in random.Random(1).sample(sorted(bodies), min(methods, len(bodies))):
            for body in (None, bodies[unit]):
                with laps.lap():
                    found.base.replace({unit: body})
                    found.engine.settle()
        left = view.snapshot().num_rows
    return {
        "program": jars[0].stem,
        "analysis": context,
        "facts": facts,
        "rows": rows,
        "rows_left": left,
        "first_s": first.total()["seconds"],
        **{f"body_{name}": value for name, value in laps.figures().items()},
        **others.figures(),
    }


def generated(functions: int, seed: int = 1) -> dict[str, Facts]:
    """A program as large as one likes: functions of about thirty assignments that pass pointers on and store them."""
    numbers = random.Random(seed)
    units: dict[str, Facts] = {}
    for number in range(functions):
        name = f"f{number}"
        nodes = [f"{name}/v{place}" for place in range(24)]
        facts: dict[str, list[tuple[str | int, ...]]] = {
            "FormalArgument": [(f"@{name}", 0, nodes[0])],
            "ReturnedNode": [(f"@{name}", nodes[-1])],
            "Object": [(nodes[1], "heap")],
            "AssignLocal": [(nodes[numbers.randrange(place)], nodes[place]) for place in range(2, 24)],
            "NullAssignment": [
                (f"{name}: null {count}", numbers.choice(nodes)) for count in range(numbers.randrange(3))
            ],
            "Use": [(f"{name}.c:{place}", nodes[place], name) for place in range(0, 24, 3)],
        }
        for place in numbers.sample(range(24), 6):
            facts.setdefault("Dereference", []).append((nodes[place], f"*{nodes[place]}"))
            stored = numbers.choice(nodes)
            pair = (stored, f"*{nodes[place]}") if numbers.random() < 0.5 else (f"*{nodes[place]}", stored)
            facts["AssignLocal"].append(pair)
        # Calls go to functions nearby, as they do in programs.
        for count in range(2):
            callee = f"@f{min(max(number + numbers.randint(-20, 20), 0), functions - 1)}"
            call = f"{name}/call {count}"
            facts.setdefault("CallSite", []).append((call, name, callee))
            facts.setdefault("ActualArgument", []).append((call, 0, numbers.choice(nodes)))
            facts.setdefault("CallResult", []).append((call, numbers.choice(nodes)))
        units[name] = facts
    return units
