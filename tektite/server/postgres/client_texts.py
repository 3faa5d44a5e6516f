"""Rewrites statements that drivers send to simpler ones with the same meaning."""

from __future__ import annotations

import re
from typing import Final

DOMAINS: Final = re.compile(
    r"\(CASE WHEN t\.typtype = 'd' THEN\s*\(WITH RECURSIVE typebases.*?LIMIT 1\)\s*ELSE NULL\s*END\)(\s*AS basetype)",
    re.DOTALL,
)
"""asyncpg's query for the base type of a domain. There are no domains here."""
LONGEST = 10_000
"""Characters of a statement that is looked at: those of drivers are shorter, and the pattern takes the square of a long one's."""


def simpler(text: str) -> str:
    """A statement as it is prepared.

    >>> simpler("SELECT 1")
    'SELECT 1'
    """
    return DOMAINS.sub(r"NULL::oid\1", text) if len(text) <= LONGEST and "typebases" in text else text
