"""Sizes of tests: a few parameters, fixed seeds and few examples in `make test`; all parameters, other seeds each day and more
examples in `make nightly`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import is_hypothesis_test

N = TypeVar("N", int, float)
NIGHTLY = bool(os.environ.get("TEKTITE_NIGHTLY"))
"""Whether tests marked `nightly` run."""
SEED = int(os.environ.get("TEKTITE_SEED", "0"))
"""The first seed of random queries, texts, goals, rules and formulas. `make nightly` sets another one each day."""


def few_of(every: Iterable[Any], *few: Any) -> list[Any]:
    """Parameters of which all but a few are for the night.

    >>> [getattr(found, "values", found) for found in few_of(["a", "b"], "b")]
    [('a',), 'b']
    """
    every = list(every)
    missing = [one for one in few if one not in every]
    if missing:
        raise ValueError(f"{missing} are none of the parameters {every}")
    return [
        one if one in few else pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.nightly)
        for one in every
    ]


def by_day_or_night(day: int, night: int) -> int:
    """A number of examples."""
    return night if NIGHTLY else day


def size(variable: str, day: N) -> N:
    """A number that a variable of the environment sets, as the parts of `make nightly` and `make soak` do."""
    return type(day)(os.environ.get(variable, day))


def differs_at_night(item: pytest.Item) -> bool:
    """Whether a test is another one at night than by day: it is for the night alone, it has random examples, or its module has
    sizes or seeds of the night.
    """
    if any(item.get_closest_marker(name) for name in ("nightly", "soak")):
        return True
    names = vars(getattr(item, "module", object))
    return is_hypothesis_test(getattr(item, "obj", None)) or any(
        name in names for name in ("SEED", "size", "by_day_or_night")
    )
