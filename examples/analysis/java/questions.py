"""What can be asked of a Java program, and how an answer is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.analysis.fact_base import Facts
from examples.analysis.java.extraction import classes, program_units
from examples.analysis.watched import Analysis

CONTEXTS = {
    "insensitive": "no contexts",
    "call": "callees by their call",
    "call2": "callees by two calls, objects by one",
    "object": "callees by their receiver",
    "object2": "callees by their receiver and its allocator, objects by their allocator",
    "type": "callees by the class that allocates their receiver",
    "type2": "the same by two classes, objects by one",
    "hybrid": "object2, and static calls by their instruction",
}

QUESTIONS = {
    "null": ("null.NullDereference", "instructions that may dereference null"),
    "always-null": ("null.AlwaysNull", "instructions that dereference nothing but null"),
    "casts": ("casts.MayFail", "casts that may fail, and an object for which they do"),
    "calls": ("calls.Edge", "the call graph"),
    "targets": ("calls.Targets", "virtual calls, and how many methods each may reach"),
    "polymorphic": ("calls.Polymorphic", "virtual calls that may reach several methods"),
    "dead": ("calls.Dead", "methods that nothing reaches"),
    "recursive": ("calls.Recursive", "methods that may call themselves"),
    "throws": ("calls.Uncaught", "exceptions that leave an entry point"),
    "leaks": ("taint.Leak", "values of a source that reach a sink"),
    "locks": ("escape.UselessLock", "locks on objects that no other thread sees"),
    "points-to": ("precision.VarHeap", "variables and the objects that they may be"),
    "figures": ("precision.Figure", "sizes, to compare contexts"),
}


def extract(paths: Sequence[Path]) -> Mapping[str, Facts]:
    """The facts of jars, class files and folders of them."""
    return program_units(classes(paths))


def analysis(paths: Sequence[Path], workers: int = 1) -> Analysis:
    """The analysis of a Java program."""
    return Analysis("java/analyses.dl", extract, paths, workers)


def predicate(question: str, context: str) -> str:
    """The predicate that answers a question in a context.

    >>> predicate("null", "object2")
    'object2.null.NullDereference'
    """
    return f"{context}.{QUESTIONS[question][0]}"
