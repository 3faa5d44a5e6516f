"""What the Datalog benchmarks compare their counts with is right: searches against rules applied by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.datalog import RULES
from benchmarks.graphs import closure_size, graph, same_generation_graph, same_generation_size
from tektite.datalog.syntax.textbook import parse_program
from tests.support.datalog_twin import evaluate


@pytest.mark.parametrize("name", ["tree-2", "grid-3", "gnp-9-0.2", "gnp-12-0.3"])
def test_sizes_are_those_of_the_naive_evaluation(name: str) -> None:
    edges = graph(name)
    facts = {"edge": {(int(x), int(y)) for x, y in edges}}
    assert closure_size(edges) == len(evaluate(parse_program(RULES["tc"]), facts)["tc"])
    assert same_generation_size(edges) == len(evaluate(parse_program(RULES["sg"]), facts)["sg"])


def test_graphs_are_the_same_at_every_run_and_have_no_edge_twice() -> None:
    for name in ("tree-4", "grid-5", "gnp-50-0.1"):
        edges = graph(name)
        assert np.array_equal(edges, graph(name))
        assert len(np.unique(edges, axis=0)) == len(edges)


def test_tree_for_same_generation_keeps_below_its_bound() -> None:
    name = same_generation_graph("tree-9", most=100_000)
    pairs = same_generation_size(graph(name))
    assert pairs <= 100_000 < same_generation_size(graph(f"tree-{int(name.split('-')[1]) + 1}"))
