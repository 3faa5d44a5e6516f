"""Limits of one user: rows of a statement, bytes of a query, standing queries at a time."""

from __future__ import annotations

from dataclasses import dataclass

from tektite.errors import ConflictError


class TooManyQueries(ConflictError):
    """A user has as many standing queries as it may have."""

    code = "too-many-queries"


@dataclass(frozen=True)
class Allowance:
    """The limits of a user; None is none."""

    rows: int | None = None
    """Rows that a statement may give."""
    memory: int | None = None
    """Bytes that a query may keep."""
    queries: int | None = None
    """Materialised views and subscriptions that the user may have at a time."""

    def within(self, others: Allowance) -> Allowance:
        """These limits, and those of others where there are none.

        >>> Allowance(rows=5).within(Allowance(rows=9, queries=2))
        Allowance(rows=5, memory=None, queries=2)
        """
        pairs = ((self.rows, others.rows), (self.memory, others.memory), (self.queries, others.queries))
        return Allowance(*[other if own is None else own for own, other in pairs])

    def check_queries(self, user: str, many: int) -> None:
        """Refuse one query more than the user may have."""
        if self.queries is not None and many >= self.queries:
            raise TooManyQueries(
                f"user {user!r} has {many} standing queries, which is as many as it may have: drop a view or end a subscription"
            )
