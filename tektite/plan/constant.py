"""Computes the rows of plans of constants without a dataflow."""

from __future__ import annotations

import numpy as np

from tektite.expr import Expr
from tektite.expr import compile as compile_program
from tektite.plan.algebra import Concat, Operator, Project, Rows
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.words import Words


def constant_rows(operator: Operator, dictionary: Dictionary) -> Words | None:
    """The rows of a plan (columns x rows), in the order in which the plan names them; None if it reads a source, or keeps
    state.

    >>> from tektite.expr import col
    >>> from tektite.values.types import Int
    >>> schema = Schema(x=Int)
    >>> rows = Rows(schema, schema.encode([(3,), (1,)]))
    >>> doubled = Project(schema, rows, (col("x") * 2,), col("x") > 1)
    >>> constant_rows(Concat(schema, (doubled, rows)), Dictionary())
    array([[6, 3, 1]])
    """
    match operator:
        case Rows():
            words: Words = operator.words
            return words
        case Project():
            source = constant_rows(operator.input, dictionary)
            if source is None:
                return None
            return _projected(source, operator.outputs, operator.predicate, operator.input.schema, dictionary)
        case Concat():
            parts = [constant_rows(part, dictionary) for part in operator.parts]
            found = [part for part in parts if part is not None]
            return np.concatenate(found, axis=1) if len(found) == len(parts) else None
    return None


def _projected(
    rows: Words, outputs: tuple[Expr, ...], predicate: Expr | None, schema: Schema, dictionary: Dictionary
) -> Words:
    """Expressions over the rows that pass a predicate."""
    program = compile_program(outputs, predicate, schema.positions, dictionary)
    time = np.zeros((1, rows.shape[1]), np.int64)
    chunk = Chunk.of_array(np.ascontiguousarray(np.vstack([rows, time, time + 1])))
    try:
        keep, head = program.run(chunk.at, len(rows), 1, 1, 0, chunk.memory)
        return Chunk(head, keep).to_array()[: len(outputs)]
    finally:
        program.sleep()
