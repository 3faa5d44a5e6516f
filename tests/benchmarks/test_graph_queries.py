"""The benchmark of graph queries answers as a search of the edges does, on both sides, and says what it measured."""

from __future__ import annotations

import pytest

from benchmarks import graph_queries

SMALL = {"nodes": 200, "edges": 800, "concurrent": [1, 10], "repetitions": 2, "rate": [1000], "standing": 20}


@pytest.mark.parametrize("workers", [1, 2])
def test_both_sides_are_measured_and_checked(workers: int) -> None:
    records = list(graph_queries.run(**SMALL, duration=0.05, workers=workers, check=True))  # type: ignore[arg-type]
    for side in graph_queries.SIDES:
        phases = [record["phase"] for record in records if record["side"] == side]
        assert phases == ["load", *["fig6"] * 8, "fig5"]
    # Of the records, the first: how many changes lie in the last one depends on how fast the machine is.
    shared, apart = (next(one for one in records if one["side"] == side) for side in graph_queries.SIDES)
    assert shared["index_mib"] < apart["index_mib"]


def test_wrong_answer_is_found() -> None:
    mix = graph_queries.Mix(200, 800, 1, shared=True)
    mix.stand(20)
    mix.check()
    mix.tables[0].insert([(int(mix.asked["1-hop"][0, 0]), 0)])
    mix.engine.advance()
    with pytest.raises(AssertionError, match="1-hop of"):
        mix.check()
    mix.close()


def test_unknown_side_is_refused() -> None:
    with pytest.raises(ValueError, match="a side is one of shared, not shared, not 'both'"):
        list(graph_queries.run(sides=["both"]))
