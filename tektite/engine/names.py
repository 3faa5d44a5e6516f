"""Names of tables and views: which are free, and what an unknown one might have meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from tektite.engine.core import HIDDEN_PREFIX
from tektite.errors import ConflictError, IncorrectError, NotFoundError

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore

T = TypeVar("T")


def check_name(core: EngineCore, name: str) -> None:
    """Refuse a name that is taken, or is none."""
    core.check_running()
    if not isinstance(name, str) or not name:
        raise IncorrectError(f"a name is a non-empty string, not {name!r}")
    if name in core.system.names():
        raise ConflictError(f"{name!r} is a system relation: choose another name")
    if name in core.views or name in core.inputs:
        kind = "view" if name in core.views else "table"
        raise ConflictError(
            f"there is a {kind} named {name!r} already; if_exists='keep' or 'replace' (in SQL, IF NOT EXISTS or OR REPLACE) lets "
            "a call be made again"
        ).about(condition="duplicate-table")
    if (claim := core.hooks.claim(name)) is not None:
        raise ConflictError(f"there is {claim} named {name!r} already").about(condition="duplicate-table")


def by_name(core: EngineCore, where: Mapping[str, T], name: str, kind: str) -> T:
    """The object that has a name. Otherwise the error says which other object has it, or lists the names that exist."""
    if name in where:
        return where[name]
    system, other = core.system.names(), "table" if kind == "view" else "view"
    if name in (core.inputs if kind == "view" else core.views) or name in system:
        found = f"there is no {kind} {name!r}; there is a {other} of this name: {other}({name!r})"
        raise NotFoundError(found).about(condition="undefined-table").about(kind=kind, name=name)
    known = [repr(each) for each in where if not each.startswith(HIDDEN_PREFIX) and each not in system]
    raise (
        NotFoundError(f"there is no {kind} {name!r}; there are: {', '.join(known) or 'none'}")
        .about(condition="undefined-table")
        .about(kind=kind, name=name)
    )
