"""What a fault is: a name in the package, what it is replaced by, and the check that fails with it and passes without."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

Broken = Callable[[Any], Any]
"""Makes the broken thing of the one that is there."""


@dataclass(frozen=True)
class Fault:
    """`where` is a module and a name in it: "tektite.trace.times meet", "tektite.trace.trace Handle.take", and for an entry
    of a dict "tektite.expr.typing COMPARISONS[le]".
    """

    what: str
    where: str
    broken: Broken
    check: Callable[[], None]

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Break it, wherever it was imported to."""
        module, _, path = self.where.partition(" ")
        owner: Any = importlib.import_module(module)
        *outer, last = path.split(".")
        for name in outer:
            owner = getattr(owner, name)
        last, _, key = last.partition("[")
        if key:
            table = getattr(owner, last)
            patch.setitem(table, key[:-1], self.broken(table[key[:-1]]))
            return
        there = inspect.getattr_static(owner, last)
        made = self.broken(getattr(owner, last) if isinstance(there, staticmethod) else there)
        if inspect.isclass(owner):
            patch.setattr(owner, last, staticmethod(made) if isinstance(there, staticmethod) else made)
            return
        for found in [module for name, module in sys.modules.items() if name.partition(".")[0] in ("tektite", "tests")]:
            for name, value in list(vars(found).items()):
                if value is there and (name == last or callable(there)):
                    patch.setattr(found, name, made)


def returning(value: Any) -> Broken:
    """It always returns this."""
    return lambda there: lambda *args, **kwargs: value


def altered(change: Callable[[Any], Any]) -> Broken:
    """What it returns is changed."""
    return lambda there: lambda *args, **kwargs: change(there(*args, **kwargs))


def misled(change: Callable[..., tuple[Any, ...]]) -> Broken:
    """It is called with other arguments than were given."""
    return lambda there: lambda *args, **kwargs: there(*change(*args), **kwargs)


def being(value: Any) -> Broken:
    """It is something else."""
    return lambda there: value


nothing = returning(None)
"""It does nothing."""
