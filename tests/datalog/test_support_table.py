"""The page of what Datalog supports says what its examples give."""

from __future__ import annotations

from tests.support.datalog_support import PAGE, page


def test_the_page_of_what_is_supported_is_what_its_examples_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.support.datalog_support"
