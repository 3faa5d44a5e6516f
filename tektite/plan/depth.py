"""What users are told of plans that are too deep: rewriting and rendering go down a plan, and Python's stack ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tektite.errors import UnsupportedError
from tektite.plan.algebra import Operator
from tektite.plan.walk import walk


@contextmanager
def within_depth(roots: Sequence[Operator]) -> Iterator[None]:
    """Refuse plans that turn out to be too deep in this block.

    >>> with within_depth([]):
    ...     raise RecursionError
    Traceback (most recent call last):
      ...
    tektite.errors.UnsupportedError: the query is nested too deeply: it has 0 operators, hundreds of them above each other. \
Make a view of a part of it, and write the rest over that view
    """
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            f"the query is nested too deeply: it has {len(walk(roots)):,} operators, hundreds of them above each other. Make a "
            "view of a part of it, and write the rest over that view"
        ) from None
