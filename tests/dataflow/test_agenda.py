"""The agenda of a dataflow: what an error in a loop leaves behind."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tektite.dataflow.graph import Moment, Scope, run_agenda


class Failing:
    """A node that fails whenever it runs."""

    position = 0

    def run(self, moment: Moment) -> None:
        raise ValueError

    def clear(self) -> None:
        """Nothing waits."""


def test_an_error_in_a_loop_leaves_the_depth_of_calls_as_it_was() -> None:
    flow: Any = SimpleNamespace(journal=None, limit=None)
    root = Scope(flow)
    body = Scope(flow, root, "loop", limit=1)
    body.add(cast(Any, Failing()))
    for _ in range(max(sys.getrecursionlimit(), 10_000) + 100):  # C has a limit of its own since Python 3.12
        body.schedule(0, (0,))
        with pytest.raises(ValueError):  # and no RecursionError  # noqa: PT011
            run_agenda(root, float("inf"))
        root.clear()
