"""Engine as users hold it: the engine below, and the languages that can be spoken to it, each loaded at its first word."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tektite import engine
from tektite.collection import ROUND_LIMIT
from tektite.types import Int, Type

if TYPE_CHECKING:
    from tektite.datalog.attributes import Attribute
    from tektite.datalog.program import Program
    from tektite.datalog.query import Query
    from tektite.datalog.store import Store
    from tektite.sql import Result
    from tektite.views import View


class Engine(engine.Engine):
    __doc__ = engine.Engine.__doc__

    _rules: Store | None = None

    @cached_property
    def _attributes(self) -> dict[str, Attribute]:
        return {}

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

    def query(
        self, text: str, arguments: Mapping[str, Any] | None = None, /, *, strategy: str = "auto", **named: Any
    ) -> Query:
        """Maintain the answer of a goal, `tc("david", ?)`, or of a query `[:find ?b :in ?a :where [?a :knows ?b]]`.

        Parameters (`$x` in a goal, `:in` in a query) get their first values by name, and further ones by `insert` and
        `remove` of what is returned. `strategy` is goal (derive what the arguments ask for), full (derive everything the rules
        say) or auto; the answer's `explain` says what was chosen, and why.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.datalog('[(friend ?a ?b) [?a :knows ?b]] [(friend ?a ?b) [?b :knows ?a]]')
        >>> knows = engine.attribute("knows", tk.Int)
        >>> engine.transact([(1, "knows", 2), (3, "knows", 1)])
        >>> _ = engine.advance()
        >>> sorted(engine.query("[:find ?b :in ?a :where (friend ?a ?b)]", a=1).rows())
        [(2,), (3,)]
        """
        from tektite.datalog.query import ask

        return ask(self._store(), text, {**(arguments or {}), **named}, strategy)

    def attribute(
        self,
        name: str,
        value: Type | None = None,
        *,
        cardinality: str | None = None,
        semantics: str | None = None,
        entity: Type = Int,
    ) -> Attribute:
        """Declare an attribute of entities, kept by entity and by value; without a value type it is a property they have.

        What a fact means that is written twice is said by `cardinality` (one or many), or by `semantics`: raw, distinct (as
        which attributes count where nothing is said), cardinality-one, last-write-wins or cardinality-many.
        """
        from tektite.datalog.attributes import declare

        made = declare(self, name, value, cardinality, semantics, entity)
        self._attributes[made.name] = made
        return made

    def transact(self, facts: Any) -> None:
        """Write facts of attributes, `[(1, "knows", 2), ("retract", 1, "knows", 3)]` or as EDN; they count when the epoch
        closes. If one is wrong, none is written.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.attribute("name", tk.String), engine.attribute("bot?")
        >>> engine.transact('[1 :name "ann"] [2 :name "bob"] [2 :bot?]')
        >>> _ = engine.advance()
        >>> engine.query("[:find ?name :where [?e :name ?name] (not [?e :bot?])]").rows()
        [('ann',)]
        """
        from tektite.datalog.attributes import transact

        known = {name: found for name, found in self._attributes.items() if name in self.tables}
        transact(known, facts)

    def view(self, name: str) -> View:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet."""
        if self._rules is not None and name not in self.views and self._rules.known(name):
            return self._rules.view(name)
        return super().view(name)

    def sql(self, text: str, **parameters: Any) -> Result:
        """Run one or several statements of SQL, separated by semicolons; the last one's result.

        `parameters` are the values of `$name` in the text.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.sql("CREATE TABLE sales (shop varchar, amount int)")
        >>> totals = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
        >>> view = engine.sql(f"CREATE MATERIALIZED VIEW totals AS {totals}").view
        >>> engine.sql("INSERT INTO sales VALUES ('north', 3), ('north', 4), ('south', 5)").message
        'INSERT 0 3'
        >>> sorted(view.rows())
        [('north', 7), ('south', 5)]
        >>> list(engine.sql("SELECT total FROM totals WHERE shop = $shop", shop="south"))
        [(5,)]
        """
        from tektite.sql import run

        return run(self, text, parameters)
