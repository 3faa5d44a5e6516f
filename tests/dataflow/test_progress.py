"""How far a dataflow is: asked of its sources, each once, however many ways lead there."""

from __future__ import annotations

from typing import Any

from tektite.dataflow.flow import Dataflow

LEVELS = 12


class CountedSource:
    """An input that counts how often it is asked how far it is."""

    name, first, flow, failure, closed = "input", 0, None, None, False

    def __init__(self) -> None:
        self.asked = 0

    @property
    def low(self) -> int:
        self.asked += 1
        return 7


def top_of_levels(source: Any, awake: bool) -> Dataflow:
    """A dataflow above levels of two, each of which reads both below it: 2 ** LEVELS ways lead down to the source."""
    below: list[Any] = [source]
    for level in range(LEVELS):
        pair = [Dataflow(f"{side} {level}", None, 1, "low") for side in ("left", "right")]  # type: ignore[arg-type]
        for flow in pair:
            for one in below:
                flow.read(one)
            flow.awake = flow.awake and awake
        below = pair
    last = Dataflow("last", None, 1, "low")  # type: ignore[arg-type]
    for one in below:
        last.read(one)
    return last


def test_each_source_is_asked_once_though_many_ways_lead_to_it() -> None:
    source = CountedSource()
    last = top_of_levels(source, awake=False)
    assert last.available() == 7
    assert source.asked == 2  # once for each of the two that read it, of 2 ** LEVELS ways
    last.awake = False
    source.asked = 0
    assert (last.low, last.closed) == (7, False)
    assert source.asked == 4


def test_where_a_dataflow_begins_is_found_by_asking_each_one_below_once() -> None:
    source = CountedSource()
    last = top_of_levels(source, awake=True)
    last.settle_start()
    assert last.first == 6
    assert source.asked == 2
