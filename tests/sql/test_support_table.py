"""docs/sql-support.md says what the engine does."""

from __future__ import annotations

from tests.support.sql.support_table import PAGE, page


def test_the_page_of_what_is_supported_is_what_its_examples_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.support.sql.support_table"
