"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import RunningServer, running_server


@pytest.fixture
def served() -> Iterator[RunningServer]:
    """A server of an empty engine without a storage."""
    with running_server() as found:
        yield found
    assert "internal-error" not in found.log.getvalue()
