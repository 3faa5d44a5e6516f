"""Collections made of others, and the checks of what they are made of."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.plan import algebra as plan
from tektite.unknown_options import is_function

if TYPE_CHECKING:
    from tektite.query.collection import Collection


@cache
def _collection() -> type[Collection]:
    """The class of collections, whose module imports this one."""
    from tektite.query.collection import Collection

    return Collection


def derived(operator: plan.Operator, *sources: Collection) -> Collection:
    """A collection for an operator over some collections. It belongs to their engine; loop variables may have none."""
    engine = None
    for source in sources:
        if engine is None:
            engine = source.engine
        elif source.engine is not None and source.engine is not engine:
            raise IncorrectError("collections of two engines cannot be combined")
    return _collection()(engine, operator)


def subtracted(part: Collection, *whole: Collection) -> Collection:
    """The rows of some collections without a part that they have together."""
    return whole[0].concat(*whole[1:], derived(plan.Negate(part.schema, part.operator), part))


def check_function(found: object, verb: str) -> None:
    if not is_function(found):
        raise IncorrectError(f"{verb} takes a function, not {found!r}")


def check_collection(found: object, verb: str) -> None:
    if not isinstance(found, _collection()):
        if isinstance(found, str):
            advice = f"; engine.table({found!r}) or engine.view({found!r}) finds one by its name"
        elif hasattr(found, "__arrow_c_stream__"):
            advice = "; engine.values(rows) makes one of rows"
        else:
            advice = ""
        raise IncorrectError(f"{verb} needs a collection, not {type(found).__name__}{advice}")
