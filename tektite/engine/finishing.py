"""Brings a dataflow up to date, in the thread of whoever wants to read it, while others use the engine."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from tektite.dataflow.away import Absence, check_no_circle
from tektite.dataflow.flow import Dataflow
from tektite.engine.notices import is_over

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore

PATIENCE = 1.0
"""Seconds to wait for a dataflow that is away before looking whether it is still wanted."""


def finish(core: EngineCore, flow: Dataflow, deadline: float | None) -> None:
    """Bring a dataflow up to date with the epochs that are closed, or as far as it comes until a deadline of `time.monotonic`.
    Writers leave it alone meanwhile. The caller holds the engine's lock.
    """
    claim = Absence(flow.name)
    with claim.held:
        core.coordinator.claim(flow, claim)
        _give_turns(core, flow, deadline)
    if claim.is_awaited:  # also when it is over: nobody else goes on with what writers have left
        core.coordinator.run()
    core.trimmer.trim_if_due()
    core.notices.give(core.coordinator)


def _give_turns(core: EngineCore, flow: Dataflow, deadline: float | None) -> None:
    """Give a dataflow and what it reads turns, and others in between, until it has answered for the epochs closed by now."""
    coordinator = core.coordinator
    turn = math.inf if coordinator.working or core.lock.is_undisturbed else coordinator.turn
    closed = core.epoch
    while not (coordinator.finish(flow, turn) or 0 < closed <= flow.low):
        if is_over(deadline) or flow not in coordinator.flows:  # it may have been dropped
            return
        away = coordinator.absence(flow)
        if away is None:
            core.lock.let_others()
        elif away.is_mine:  # a function of a query reads what the query itself computes
            return
        else:
            wait_for(core, away, deadline)
        core.lock.roll_forward()


def wait_for(core: EngineCore, away: Absence, deadline: float | None = None) -> None:
    """Let others use the engine until a dataflow that is away is back, at most until a deadline. The caller holds the lock."""
    if deadline is not None:
        core.lock.without(lambda: away.wait(min(max(deadline - time.monotonic(), 0), PATIENCE)))
        return
    mine = core.coordinator.absences_here()
    check_no_circle(mine, away)
    try:
        for each in mine:
            each.waits_for = away
        core.lock.without(lambda: away.wait(PATIENCE))
    finally:
        for each in mine:
            each.waits_for = None
