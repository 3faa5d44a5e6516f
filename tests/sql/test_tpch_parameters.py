"""TPC-H queries with other constants: as prepared statements they answer what they answer alone, while rows change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tektite as tk
from benchmarks.tpch.answers import check_rows
from benchmarks.tpch.maintained import Encoded, Relations
from benchmarks.tpch.parameters import PARAMETERS, drawn, with_values
from tektite.engine.core import core_of

SCALE = 0.01
NUMBERS = [number for number in PARAMETERS if number != 15]
"""All but the one that needs a view of its own."""


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[tk.Engine, Relations, Encoded]]:
    with tk.Engine(autocommit=False) as engine:
        encoded = Encoded(engine, SCALE)
        relations = Relations(engine, encoded)
        relations.insert(encoded.words)
        engine.advance()
        yield engine, relations, encoded


@pytest.mark.parametrize("number", NUMBERS)
def test_prepared_queries_answer_as_they_do_alone(loaded: tuple[tk.Engine, Relations, Encoded], number: int) -> None:
    engine, relations, encoded = loaded
    labels = tuple(f"${at}" for at in range(1, len(PARAMETERS[number]) + 1))
    engine.sql(f"PREPARE asked AS {with_values(number, SCALE, labels).select}")
    bindings = [drawn(number, SCALE, seed) for seed in (0, 1, 2)]
    some = np.ascontiguousarray(encoded.words["lineitem"][:, number::97])
    for diff in (0, -1, 1):
        if diff:
            core_of(relations.inputs["lineitem"]).update_words(some, np.full(some.shape[1], diff))
            engine.advance()
        for values in bindings:
            alone = with_values(number, SCALE, values)
            found = engine.sql(f"EXECUTE asked({', '.join(values)})").rows()
            check_rows(found, engine.sql(alone.select).rows(), alone)
    engine.sql("DEALLOCATE asked")


def test_values_of_validation_queries_change_nothing() -> None:
    from benchmarks.tpch.queries import query

    for number in PARAMETERS:
        assert with_values(number, SCALE, drawn(number, SCALE, 0)) == query(number, SCALE)
        texts = {with_values(number, SCALE, drawn(number, SCALE, seed)).select for seed in range(12)}
        views = {with_values(number, SCALE, drawn(number, SCALE, seed)).before for seed in range(12)}
        assert len(texts) > 1 or len(views) > 1


def test_negated_patterns_may_be_unknown() -> None:
    engine = tk.Engine()
    engine.sql("CREATE TABLE t (x varchar); INSERT INTO t VALUES ('a')")
    assert engine.sql("SELECT x NOT LIKE NULL, x LIKE NULL FROM t").rows() == [(None, None)]
    engine.sql("PREPARE unlike AS SELECT x FROM t WHERE x NOT LIKE $1")
    assert engine.sql("EXECUTE unlike('b%')").rows() == [("a",)]
    assert engine.sql("EXECUTE unlike('a%')").rows() == []
