"""Engine as users hold it: the engine below, and the languages that can be spoken to it, each loaded at its first word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tektite import engine
from tektite.collection import ROUND_LIMIT

if TYPE_CHECKING:
    from tektite.datalog.program import Program
    from tektite.datalog.store import Store
    from tektite.views import View


class Engine(engine.Engine):
    __doc__ = engine.Engine.__doc__

    _rules: Store | None = None

    def _store(self) -> Store:
        if self._rules is None:
            from tektite.datalog.store import Store

            self._rules = Store(self)
        return self._rules

    def datalog(
        self, text: str, *, source: str = "program", rounds: int = ROUND_LIMIT, share: Mapping[str, bool] | None = None
    ) -> Program:
        """Register rules, facts and declarations, in Soufflé's syntax or as EDN. Nothing runs until somebody asks for a view.

        `source` is what errors call the text. `rounds` is how many rounds a recursion with arithmetic may take. `share` says
        for some predicates whether others read one arrangement of their facts (True) or derive them anew (False), where the
        documented policy should not decide.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edge = engine.input("edge", src=tk.Int, dst=tk.Int)
        >>> program = engine.datalog("reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
        >>> reach = engine.view("reach")
        >>> edge.insert([(1, 2), (2, 3)])
        >>> _ = engine.advance()
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (2, 3)]
        """
        from tektite.datalog.program import register

        return register(self._store(), text, source, rounds, share)

    def view(self, name: str) -> View:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet."""
        if self._rules is not None and name not in self.views and self._rules.known(name):
            return self._rules.view(name)
        return super().view(name)
