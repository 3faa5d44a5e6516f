"""The methods of Engine for SQL and Datalog.

A language is imported by the method that needs it, so that `import tektite` loads none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from tektite.client_protocol import Cardinality, Mode
from tektite.engine.lock import guarded_by_core
from tektite.errors import IncorrectError
from tektite.former_names import former_options
from tektite.query.collection import ROUND_LIMIT, Collection
from tektite.query.derived import check_collection
from tektite.query.match import Joins
from tektite.unknown_options import explains_options
from tektite.values.arguments import whole_number
from tektite.values.type_names import TypeLike
from tektite.values.types import Int

if TYPE_CHECKING:
    from tektite.datalog.evaluate.attributes import Attribute
    from tektite.datalog.evaluate.program import Program
    from tektite.datalog.evaluate.queries import Query
    from tektite.engine.engine_core import EngineCore
    from tektite.sql import Result


@explains_options
class LanguageMethods:
    """SQL, Datalog, and facts of attributes."""

    _core: EngineCore
    _attributes: dict[str, Attribute]

    def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> Result:
        """Run one or several statements of SQL, separated by semicolons; the last one's result.

        `params` are the values of `$1`, `$2` and so on as a list, or of `$name` as a mapping or keywords.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.sql("CREATE TABLE sales (shop varchar, amount int)")
        >>> totals = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
        >>> view = engine.sql(f"CREATE MATERIALIZED VIEW totals AS {totals}").view
        >>> engine.sql("INSERT INTO sales VALUES ('north', 3), ('north', 4), ('south', 5)").message
        'INSERT 0 3'
        >>> sorted(view.rows())
        [('north', 7), ('south', 5)]
        >>> list(engine.sql("SELECT total FROM totals WHERE shop = $1", ["south"]))
        [(5,)]
        """
        _check_text(text, "a statement of SQL")
        given = _parameters(params, named)
        run, lock = _sql().run, self._core.lock
        with lock.held:
            if lock.decision is not None:
                lock.roll_forward()
            found: Result = run(self._core.engine, text, given)
            return found

    @guarded_by_core
    def from_sql(
        self,
        query: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        /,
        *,
        collections: Mapping[str, Collection] | None = None,
        **named: Any,
    ) -> Collection:
        """A query as a collection, to go on with in Python; `params` as for `sql`. Beside tables and views it may read other
        `collections`, by the names that they are given here; `Collection.sql` is for one of them.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> large = engine.from_sql("SELECT * FROM sales WHERE amount > $1", [100])
        >>> large.count(by="shop")
        <Collection (shop: string, count: int)>
        >>> engine.from_sql("SELECT shop FROM sales EXCEPT SELECT shop FROM large", collections={"large": large})
        <Collection (shop: string)>
        """
        from tektite.sql import plan

        _check_text(query, "a query")
        for name, collection in (collections or {}).items():
            check_collection(collection, f"from_sql: {name!r}")
            if collection.engine not in (None, self._core.engine):
                raise IncorrectError(f"from_sql: {name!r} is a collection of another engine")
        return plan(self._core.engine, query, _parameters(params, named), collections)

    @former_options(rounds="max_rounds")
    @guarded_by_core
    def datalog(
        self,
        text: str,
        *,
        source: str = "program",
        max_rounds: int = ROUND_LIMIT,
        share: Mapping[str, bool] | None = None,
        joins: Joins = "auto",
        functors: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Program:
        """Register rules, facts and declarations, in Soufflé's syntax or as EDN. Nothing runs until somebody asks for a view.

        `source` is what errors call the text. `max_rounds` is how many rounds a recursion with arithmetic may take. `share` says
        for some predicates whether others read one arrangement of their facts (True) or derive them anew (False), where the
        documented policy should not decide. `joins` forces a join strategy for the rules of this text: binary, delta or hector.
        `functors` has a pure Python function for each `.functor` that the rules call.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edge = engine.create_table("edge", {"src": tk.Int, "dst": tk.Int})
        >>> program = engine.datalog("reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
        >>> reach = engine.view("reach")
        >>> _ = edge.insert([(1, 2), (2, 3)])
        >>> sorted(reach.rows())
        [(1, 2), (1, 3), (2, 3)]
        """
        from tektite.datalog.evaluate.places import placed
        from tektite.datalog.evaluate.program import register
        from tektite.datalog.evaluate.rule_store import rule_store

        _check_text(text, "a Datalog program")
        rounds = whole_number(max_rounds, 1)
        if rounds is None:
            raise IncorrectError(f"datalog: max_rounds is a positive number of rounds, not {max_rounds!r}")
        if share is not None and not isinstance(share, Mapping):
            raise IncorrectError(f"datalog: share is a dict such as {{'reach': True}}, not {share!r}")
        with placed(re.escape(source)):
            return register(rule_store(self._core.engine), text, source, rounds, share, joins, functors)

    @guarded_by_core
    def query(
        self,
        text: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        strategy: Literal["auto", "goal", "full"] = "auto",
        joins: Joins = "auto",
        **named: Any,
    ) -> Query:
        """Maintain the answer of a goal, `tc("david", ?)`, or of a query `[:find ?b :in ?a :where [?a :knows ?b]]`.

        Parameters (`$x` in a goal, `:in` in a query) get their first values by name, and further ones by `insert` and
        `remove` of what is returned. `strategy` is goal (derive what the arguments ask for), full (derive everything the rules
        say) or auto; the answer's `explain` says what was chosen, and why. `joins` forces a join strategy for the rules that are
        evaluated for this query alone: binary, delta or hector. A parameter of one of these names is given in `arguments`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.datalog('[(friend ?a ?b) [?a :knows ?b]] [(friend ?a ?b) [?b :knows ?a]]')
        >>> knows = engine.attribute("knows", tk.Int)
        >>> _ = engine.transact([(1, "knows", 2), (3, "knows", 1)])
        >>> sorted(engine.query("[:find ?b :in ?a :where (friend ?a ?b)]", a=1).rows())
        [(2,), (3,)]
        """
        from tektite.datalog.evaluate.places import placed
        from tektite.datalog.evaluate.queries import ask
        from tektite.datalog.evaluate.rule_store import rule_store

        _check_text(text, "a query")
        if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0].upper() in ("SELECT", "WITH", "FROM", "VALUES"):
            raise IncorrectError(
                "query takes a goal or a query of Datalog; SQL is for sql(text), create_view and from_sql"
            )
        with placed(r"query \d+"):
            return ask(rule_store(self._core.engine), text, {**(arguments or {}), **named}, strategy, joins=joins)

    @former_options(semantics="mode")
    @guarded_by_core
    def attribute(
        self,
        name: str,
        value: TypeLike | None = None,
        *,
        cardinality: Cardinality | None = None,
        mode: Mode | None = None,
        entity: TypeLike = Int,
    ) -> Attribute:
        """Declare an attribute of entities, kept by entity and by value; without a value type it is a property they have.

        What a fact means that is written twice is said by `cardinality` (one or many), or by `mode`, as of a table: bag, set
        (where nothing is said), upsert (a value replaces the entity's last one) or append.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> age = engine.attribute("age", tk.Int, cardinality="one")
        >>> _ = engine.transact([(1, "age", 36), (1, "age", 37)])
        >>> engine.query("[:find ?e ?a :where [?e :age ?a]]").rows()
        [(1, 37)]
        """
        from tektite.datalog.evaluate.attributes import declare

        made = declare(self._core.engine, name, value, cardinality, mode, entity)
        self._attributes[made.name] = made
        return made

    @guarded_by_core
    def transact(self, facts: Any) -> int | None:
        """Write facts of attributes, `[(1, "knows", 2), ("retract", 1, "knows", 3)]` or as EDN, all of them or, if one is wrong,
        none. Returns what `Table.insert` does.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.attribute("name", tk.String), engine.attribute("bot?")
        >>> _ = engine.transact('[1 :name "ann"] [2 :name "bob"] [2 :bot?]')
        >>> engine.query("[:find ?name :where [?e :name ?name] (not [?e :bot?])]").rows()
        [('ann',)]
        """
        from tektite.datalog.evaluate.attributes import transact

        if not isinstance(facts, str | Iterable):
            raise IncorrectError(f"facts are EDN or a list of tuples such as (1, 'knows', 2), not {facts!r}")
        known = {name: found for name, found in self._attributes.items() if name in self._core.engine.tables}
        return transact(self._core.engine, known, facts)


@cache
def _sql() -> ModuleType:
    """The language, which is loaded when it is first used."""
    import tektite.sql

    return tektite.sql


def _parameters(params: object, named: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `$1` and `$name`, by what follows the dollar sign."""
    if params.__class__ in (list, tuple):  # the checks below cost as much as the rest of this
        found = dict(zip(map(str, range(1, len(params) + 1)), params, strict=True))
    elif isinstance(params, Mapping):
        found = {str(name): value for name, value in params.items()}
    elif isinstance(params, Sequence) and not isinstance(params, str | bytes):
        found = {str(number): value for number, value in enumerate(params, 1)}
    else:
        raise IncorrectError(f"params are a list for $1, $2 and so on, or a dict for $name, not {params!r}")
    return {**found, **named}


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise IncorrectError(f"{what} is text, not {text!r}")
