"""Figs. 9 and 10 of *Shared Arrangements*: null and alias analyses of real C programs, plain and over shared relations.

`sources` are C files or .ll files of one program. The first answer is measured for each analysis, then the removal of each of
the first `removals` assignments of null (for aliases: of `removals` assignments): one epoch each, median and maximum.

Programs to measure come with packages of the registries: SQLite's amalgamation is in the crate libsqlite3-sys, zlib in libz-sys,
lz4 in the source package of Python's lz4. Without sources, a program is generated: `functions` functions that call each other,
store pointers and return null.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
        yield record | measured(units, predicates, REMOVED[analysis], removals, workers)


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
        "removed": len(chosen),
        **{f"removal_{name}": value for name, value in laps.figures().items()},
        **others.figures(),
    }


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
