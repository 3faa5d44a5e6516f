"""What a client may say of how often it is told."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.server.granularity import Granularity


@pytest.mark.parametrize("said", ["10 parsecs", "commit", "explicit", "", "-1 ms", 0, True, 1.5])
def test_what_is_no_granularity_is_answered_with_what_one_is(said: object) -> None:
    with pytest.raises(tk.IncorrectError, match="a granularity is a number of epochs, or a time such as '100 ms', not"):
        Granularity.parse(said)
