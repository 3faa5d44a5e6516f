"""Graph tasks and skew: every task is measured, and answers do not depend on the number of workers."""

from __future__ import annotations

from benchmarks import graph_tasks, skew


def test_every_task_has_a_first_answer_and_epochs() -> None:
    records = list(graph_tasks.run(scale=6, edges=200, swaps=5, epochs=2, workers=(1, 2)))
    assert [(one["task"], one["of_workers"], one["phase"]) for one in records] == [
        (task, workers, phase) for task in graph_tasks.TASKS for workers in (1, 2) for phase in ("first", "epochs")
    ]
    rows = {(one["task"], one["phase"], one["of_workers"]): one["rows"] for one in records}
    assert all(rows[task, phase, 1] == rows[task, phase, 2] > 0 for task, phase, _ in rows)


def test_weights_are_those_of_32_bits() -> None:
    import numpy as np

    assert graph_tasks.weights_of(np.array([2**28]), np.array([1])).tolist() == [(2**28 * 31 % 2**32 + 17) % 10 + 1]


def test_work_of_hubs_is_measured_with_every_number_of_workers() -> None:
    records = list(skew.run(nodes=100, edges=400, scale=6, epochs=2, batch=5, workers=(1, 2), graphs=("hub", "rmat")))
    assert {one["of_workers"] for one in records} == {1, 2}
    assert all(one["speedup"] > 0 and one["balance"] >= 1 for one in records)
