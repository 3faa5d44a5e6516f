"""What a client may say of how often it is told."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.server.granularity import Granularity


@pytest.mark.parametrize("said", ["10 parsecs", "commit", "explicit", "", "-1 ms", 0, True, 1.5])
def test_what_is_no_granularity_is_answered_with_what_one_is(said: object) -> None:
    with pytest.raises(
        tk.IncorrectError, match="a granularity is a number of epochs, or a time such as '100 ms' or '1 s', not"
    ):
        Granularity.parse(said)


def test_a_time_has_any_unit_that_clocks_have() -> None:
    assert [Granularity.parse(said).seconds for said in ("100 ms", "1 s", "2min")] == [0.1, 1.0, 120.0]
