"""What can be asked of a C program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.analysis.c.compiling import llvm_text
from examples.analysis.c.extraction import module_units
from examples.analysis.fact_base import Facts
from examples.analysis.watched import Analysis, files

QUESTIONS = {
    "null": ("NullUse", "uses of pointers that may be null, and the assignment of null that reaches them"),
    "null-memory": ("NullUseThroughMemory", "the same, also through memory that pointers share"),
    "dataflow": ("dataflow.Null", "assignments of null, and the nodes that each reaches"),
    "points-to": ("points_to.PointsTo", "pointers, and the objects that they may lead to"),
    "value-flow": ("shared.ValueFlow", "nodes whose value may come from another"),
    "memory-alias": ("shared.MemoryAlias", "pieces of memory that may be the same"),
    "value-alias": ("shared.ValueAlias", "pointers that may be equal"),
}


def extract(paths: Sequence[Path], options: Sequence[str] = ()) -> Mapping[str, Facts]:
    """The facts of C sources, .ll files and folders of them."""
    units: dict[str, Facts] = {}
    for given in paths:
        for path in files(given):
            if path.suffix in (".c", ".ll"):
                units |= module_units(llvm_text(path, options), path.name)
    return units


def analysis(paths: Sequence[Path], options: Sequence[str] = (), workers: int = 1) -> Analysis:
    """The analysis of a C program."""
    return Analysis("c/analyses.dl", lambda found: extract(found, options), paths, workers)
