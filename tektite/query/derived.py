"""Collections made of others, and the checks of what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.plan import algebra as plan
from tektite.unknown_options import is_function

if TYPE_CHECKING:
    from tektite.query.collection import Collection


def derived(operator: plan.Operator, *sources: Collection) -> Collection:
    """A collection for an operator over some collections. It belongs to their engine; loop variables may have none."""
    engines = [source.engine for source in sources if source.engine is not None]
    if any(engine is not engines[0] for engine in engines):
        raise IncorrectError("collections of two engines cannot be combined")
    from tektite.query.collection import Collection

    return Collection(engines[0] if engines else None, operator)


def subtracted(part: Collection, *whole: Collection) -> Collection:
    """The rows of some collections without a part that they have together."""
    return whole[0].concat(*whole[1:], derived(plan.Negate(part.schema, part.operator), part))


def check_function(found: object, verb: str) -> None:
    if not is_function(found):
        raise IncorrectError(f"{verb} takes a function, not {found!r}")


def check_collection(found: object, verb: str) -> None:
    from tektite.query.collection import Collection

    if not isinstance(found, Collection):
        raise IncorrectError(f"{verb} needs a collection, not {type(found).__name__}")
