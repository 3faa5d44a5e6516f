"""Hooks: functions of languages that the engine calls, because it does not know the languages.

All of them run with the engine's lock held, except `on_close`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tektite.engine.view import View
    from tektite.engine.write_set import WriteSet


@dataclass
class Hooks:
    """Functions by the occasion on which an engine calls them, in the order in which they were added."""

    before_commit: list[Callable[[WriteSet], None]] = field(default_factory=list)
    """Called with the write set that is about to be committed. May add to it."""
    name_claims: list[Callable[[str], str | None]] = field(default_factory=list)
    """Called with a name that an input or a view is to get. Says what has the name already ("a Datalog rule"), or None."""
    view_builders: list[Callable[[str], View | None]] = field(default_factory=list)
    """Called with the name of a view that there is not. Builds it, or returns None."""
    on_close: list[Callable[[], None]] = field(default_factory=list)
    """Called once each when the engine closes, before anything is dropped. Without the lock: a function that stops a thread
    waits for it, and the thread may wait for the lock.
    """

    def claim(self, name: str) -> str | None:
        """What some language has under a name, if one does."""
        return next((found for claims in self.name_claims if (found := claims(name)) is not None), None)

    def build_view(self, name: str) -> View | None:
        """The view of a name that some language can build, if one can."""
        return next((found for build in self.view_builders if (found := build(name)) is not None), None)
