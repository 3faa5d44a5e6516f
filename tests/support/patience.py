"""Waiting for what other threads and processes bring about, for longer than any machine takes that is busy with other work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 120.0
"""Seconds. Who waits so long in vain has failed; nobody waits so long for something that comes."""
PATIENT_TURN = PATIENCE
"""Seconds that a view may take at a time where a test looks for what an epoch brought, without waiting."""


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)


def eventually(look: Callable[[], Any], wanted: Any) -> None:
    """Wait until something has a value."""
    deadline = time.monotonic() + PATIENCE
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found == wanted
