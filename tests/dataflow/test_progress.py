"""How far a dataflow is: asked of its sources, each once, however many ways lead there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

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


class Ended:
    """An input that has closed the epochs before `low`, and perhaps ended."""

    name, first, flow, failure = "input", 0, None, None

    def __init__(self, low: int, closed: bool) -> None:
        self.low = low
        self.closed = closed


def flow_of(sources: Sequence[Any]) -> Dataflow:
    flow = Dataflow("flow", None, 1, "low")  # type: ignore[arg-type]
    for source in sources:
        flow.read(source)
    return flow


@pytest.mark.parametrize("count", range(4))
def test_one_that_sleeps_has_answered_as_far_as_its_inputs_are_closed(count: int) -> None:
    for given in product(product([0, 3, 5], [False, True]), repeat=count):
        flow = flow_of([Ended(*each) for each in given])
        assert flow.low == 0, "it is awake"
        flow.awake = False
        going = [low for low, closed in given if not closed]
        expected = min(going) if going else max([low for low, _ in given], default=0)
        assert (flow.low, flow.reached, flow.available()) == (expected, expected, expected)


def test_one_that_wakes_says_so_and_has_answered_as_far_as_it_slept() -> None:
    sources = [Ended(3, False), Ended(5, True)]
    flow = flow_of(sources)
    woken: list[Dataflow] = []
    flow.on_wake = woken.append
    flow.awake = False
    sources[0].low = 4
    flow.wake()
    sources[0].low = 6
    assert (flow.low, flow.awake, woken) == (4, True, [flow])


def test_one_that_has_answered_sleeps_and_one_that_waits_for_its_first_answer_does_not() -> None:
    source = Ended(3, False)
    flow = flow_of([source])
    assert not flow.rest()
    source.closed = True
    assert flow.rest(), "its inputs have ended"
    source.closed, flow.swept, flow.awake = False, True, True
    assert flow.rest()
    flow.running = True
    assert not flow.rest()
