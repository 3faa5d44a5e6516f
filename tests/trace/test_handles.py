"""What a reader of an arrangement sees, step by step: old, delta and new, whatever others do to the trace meanwhile."""

from __future__ import annotations

import gc
import weakref
from typing import Any, cast

import numpy as np
import pytest

from tektite.dataflow.arrange import consolidate
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version
from tektite.trace.trace import Handle, Hold, Trace
from tests.support.brute import Bag, bag


def mint(trace: Trace, updates: list[tuple[int, int, int]], upper: int) -> None:
    """Append updates (row, epoch, diff) as the batch of everything before `upper`."""
    rows = consolidate([Chunk.of_array(np.array(updates, np.int64).T.copy())], (1, 1, 1), 0)
    trace.mint(0, rows, ((upper,),))


def content(found: Version | tuple[Batch, ...]) -> Bag:
    """What some batches add up to: (row, epoch) -> diff."""
    batches = found.batches if isinstance(found, Version) else found
    columns = [Chunk(batch.head, batch.memory).to_array().T.tolist() for batch in batches]
    return bag(((row, epoch), diff) for rows in columns for row, epoch, diff in rows)


def a_trace(effort: str = "eager", since: int = 0) -> tuple[Trace, Hold]:
    """A trace of one column that is held from `since` on."""
    trace = Trace(1, 1, 1, 1, effort)
    return trace, Hold(trace, lambda: ((since,),))


# ---------------------------------------------------------------------------------------------------- old, delta, new


@pytest.mark.parametrize("effort", ["eager", "default", "lazy"])
def test_old_stays_as_it_was_when_the_first_unread_batch_came(effort: str) -> None:
    trace, _ = a_trace(effort)
    handle = Handle(trace, lambda: ((0,),))
    mint(trace, [(1, 0, 1)], 1)
    old, delta, new = handle.take(0)
    assert (content(old), content(delta), content(new)) == ({}, {(1, 0): 1}, {(1, 0): 1})
    mint(trace, [(2, 1, 1)], 2)
    mint(trace, [(1, 2, -1)], 3)
    assert content(handle.old(0)) == {(1, 0): 1}
    old, delta, new = handle.take(0)
    assert content(old) == {(1, 0): 1}
    assert content(delta) == {(2, 1): 1, (1, 2): -1}
    assert content(new) == {(1, 0): 1, (2, 1): 1, (1, 2): -1}


def test_an_idle_reader_has_nothing_to_do_and_pins_nothing() -> None:
    trace, _ = a_trace()
    handle = Handle(trace, lambda: ((0,),))
    mint(trace, [(1, 0, 1)], 1)
    handle.take(0)
    assert not handle.waiting()
    old, delta, new = handle.take(0)
    assert old is new is trace.version(0) and not delta
    assert handle.pins[0].batches == ()


def test_history_is_the_first_delta_of_a_newcomer() -> None:
    trace, _ = a_trace()
    mint(trace, [(1, 0, 1), (2, 0, 1)], 1)
    mint(trace, [(2, 1, -1)], 2)
    old, delta, _ = Handle(trace, None).take(0)
    assert content(old) == {}
    assert content(delta) == {(1, 0): 1, (2, 0): 1, (2, 1): -1}


def test_merging_never_touches_what_waits() -> None:
    """A slow reader holds late; the trace is compacted to a later time than what waits in its queue."""
    now = [0]
    trace = Trace(1, 1, 1, 1, "eager")
    Hold(trace, lambda: ((now[0],),))
    handle = Handle(trace, None)
    for epoch in range(10):
        mint(trace, [(7, epoch, 1 if epoch % 2 == 0 else -1)], epoch + 1)
        now[0] = epoch
    trace.idle(1 << 20)
    assert trace.rows < 10
    _, delta, _ = handle.take(0)
    assert content(delta) == {(7, epoch): 1 if epoch % 2 == 0 else -1 for epoch in range(10)}


# ---------------------------------------------------------------------------------------------------- straddling


def test_a_batch_that_straddles_the_sweep_is_split() -> None:
    trace, _ = a_trace()
    handle = Handle(trace, lambda: ((0,),))
    mint(trace, [(1, 0, 1), (2, 1, 1), (1, 2, -1), (3, 4, 1)], 5)
    old, delta, new = handle.take_before(0, 2)
    assert (content(old), content(delta)) == ({}, {(1, 0): 1, (2, 1): 1})
    assert content(new) == content(delta)
    assert handle.waiting()
    mint(trace, [(9, 5, 1)], 6)
    old, delta, new = handle.take_before(0, 4)
    assert content(old) == {(1, 0): 1, (2, 1): 1}
    assert content(delta) == {(1, 2): -1}
    assert content(new) == {(1, 0): 1, (2, 1): 1, (1, 2): -1}
    old, delta, new = handle.take_before(0, 6)
    assert content(old) == {(1, 0): 1, (2, 1): 1, (1, 2): -1}
    assert content(delta) == {(3, 4): 1, (9, 5): 1}
    assert not handle.waiting()
    assert new is trace.version(0)


def test_taking_before_the_first_update_takes_nothing() -> None:
    trace, _ = a_trace()
    handle = Handle(trace, lambda: ((0,),))
    mint(trace, [(1, 3, 1)], 5)
    old, delta, new = handle.take_before(0, 2)
    assert (content(old), delta, content(new)) == ({}, (), {})
    assert content(handle.take_before(0, 5)[1]) == {(1, 3): 1}


def test_many_holds_are_asked_now_and_then_and_new_ones_each_time() -> None:
    trace = Trace(1, 1, 1, 1, "default")
    asked = [0]
    epoch = 5

    def frontier() -> tuple[tuple[int, ...], ...]:
        asked[0] += 1
        return ((epoch,),)

    holds = [Hold(trace, frontier) for _ in range(1000)]
    assert trace.frontier().tolist() == [[5]]
    epoch = 9
    early = Hold(trace, lambda: ((3,),))
    found = [trace.frontier().tolist()[0][0] for _ in range(40)]
    assert set(found) == {3}, "a new hold counts at once"
    early.drop()
    found = [trace.frontier().tolist()[0][0] for _ in range(40)]
    assert found[-1] == 9, "what holds have reached is noticed before long"
    assert trace.since() == ((9,),)
    before, merges = asked[0], 1000
    for _ in range(merges):
        trace.frontier()
    assert asked[0] - before < 100 * merges
    for hold in holds[10:]:
        hold.drop()
    epoch = 12
    assert trace.frontier().tolist() == [[12]], "a few are asked each time"


def test_a_handle_that_garbage_collection_empties_is_taken_as_it_was() -> None:
    """The end of a subscription that nobody holds any more empties its handle, at any line of any thread."""
    trace, _ = a_trace()
    handle = Handle(trace, lambda: ((0,),))
    for row in range(30):  # the memory of shorter tuples is used again, which collects nothing
        mint(trace, [(row, row, 1)], row + 1)
    trace.version(0)
    before = gc.get_threshold()
    gc.disable()
    try:
        cycle: list[object] = [type("Follower", (), {})()]
        weakref.finalize(cycle[0], handle.forget)
        cast(Any, cycle[0]).cycle = cycle
        gc.set_threshold(1)
        del cycle
        gc.enable()
        _, delta, _ = handle.take(0)
    finally:
        gc.enable()
        gc.set_threshold(*before)
    assert content(delta) == {(row, row): 1 for row in range(30)}
