"""Loops: scopes in which collections are defined in terms of themselves.

A loop runs round by round until nothing changes. In each round a variable is what its definition was one round earlier.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from tektite.errors import ConflictError, IncorrectError
from tektite.expr import Expr, coalesce, col, greatest
from tektite.former_names import former_options
from tektite.plan import algebra as plan
from tektite.plan.names import free_name
from tektite.query.collection import ROUND_LIMIT, Collection
from tektite.query.derived import check_collection, derived
from tektite.unknown_options import explains_options
from tektite.values import types
from tektite.values.arguments import whole_number
from tektite.values.schema import Schema

_loops: ContextVar[tuple[Loop, ...]] = ContextVar("loops", default=())


@explains_options
class Loop:
    """A scope to iterate in, with any number of variables that may depend on each other.

    Inside, you may use collections from outside. `leave` takes a collection out. A loop that is opened inside another one is
    nested in it.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> with tk.Loop("reach") as loop:
    ...     reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
    ...     longer = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
    ...     reach.set(edges.concat(longer).distinct())
    ...     result = loop.leave(reach)
    >>> result
    <Collection (src: int, dst: int)>
    """

    @former_options(limit="max_rounds")
    def __init__(
        self, name: str = "loop", max_rounds: int = ROUND_LIMIT, shared: bool = False, advice: str | None = None
    ) -> None:
        """With `shared`, all queries that arrange what leaves the loop share one run of it. A loop that still changes after
        `max_rounds` rounds fails, with `advice` in its error.
        """
        rounds = whole_number(max_rounds, 1)
        if rounds is None:
            raise IncorrectError(f"loop {name!r}: max_rounds is a positive number of rounds, not {max_rounds!r}")
        if not isinstance(name, str):
            raise IncorrectError(f"a loop is named by a text, not {name!r}")
        outer = _loops.get()
        parent = outer[-1]._plan if outer else None
        self._plan: plan.Loop = plan.Loop(name, rounds, parent, shared, advice or plan.Loop.advice)
        self.name = name

    def __enter__(self) -> Loop:
        self._token = _loops.set((*_loops.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _loops.reset(self._token)

    def variable(
        self, name: str, /, initial: Collection | None = None, schema: Schema | None = None, **columns: types.Type
    ) -> LoopVariable:
        """A variable with the columns given, or those of its initial collection. Without one it is empty in round 0.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.values({"src": [1, 2], "dst": [2, 3]})
        >>> with tk.Loop() as loop:
        ...     variable = loop.variable("reach", src=tk.Int, dst=tk.Int)
        ...     other = loop.variable("begins", edges)
        >>> variable, other
        (<LoopVariable (src: int, dst: int)>, <LoopVariable (src: int, dst: int)>)
        """
        if schema is not None:
            columns = dict(zip(schema.names, schema.types, strict=True))
        if (initial is None) == (not columns):
            raise IncorrectError(f"variable {name!r} needs either an initial collection or columns")
        if initial is not None and self._plan.encloses(initial.operator.loop):
            raise IncorrectError(
                f"loop {self.name!r}: variable {name!r} begins with a collection that changes with the loop's own rounds; "
                "begin with one from outside"
            )
        schema = Schema(columns) if initial is None else initial.schema
        engine = None if initial is None else initial.engine
        operator = plan.Variable(schema, name, self._plan, None if initial is None else initial.operator)
        self._plan.variables.append(operator)
        return LoopVariable(engine, operator)

    def enter(self, collection: Collection, at: Expr | str) -> Collection:
        """A collection from outside, of which each row is there from round `at` on. Rounds below 0, and NULL, count as 0. A row
        that enters behind the loop's `max_rounds` fails it.

        What a loop computes does not depend on it, if its fixed point is unique; how much work that is may. Where the least label
        wins, rounds that let small labels go first spare most others their way:

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.values({"src": [1, 2, 30], "dst": [2, 3, 31]})
        >>> nodes = edges.select(node="src").concat(edges.select(node="dst")).distinct().with_columns(label="node")
        >>> with tk.Loop("labels") as loop:
        ...     moved = loop.variable("moved", node=tk.Int, label=tk.Int)
        ...     labels = moved.concat(loop.enter(nodes, at=tk.col("label") // 10 * 100)).min("label", by="node")
        ...     moved.set(labels.join(edges, left_on="node", right_on="src").select(node="dst", label="label"))
        ...     found = loop.leave(labels)
        >>> sorted(tuple(row.values()) for row in found.collect().to_pylist())
        [(1, 1), (2, 1), (3, 1), (30, 30), (31, 30)]
        """
        check_collection(collection, "enter")
        if self._plan.encloses(collection.operator.loop):
            raise IncorrectError(
                f"loop {self.name!r}: a collection that changes with the loop's own rounds is in it already; enter takes one "
                "from outside"
            )
        name = free_name("round", collection.schema.names)
        round = greatest(coalesce(col(at) if isinstance(at, str) else at, 0), 0)
        found = collection.with_columns(**{name: round})
        if found.schema.types[-1] != types.Int:
            raise IncorrectError(f"loop {self.name!r}: at= must be an integer, not {found.schema.types[-1]}: {at}")
        names = found.schema.names
        operator = plan.Variable(found.schema, "enter", self._plan, found.operator, len(names) - 1)
        self._plan.variables.append(operator)
        return derived(operator, found).select(*names[:-1])

    def leave(self, collection: Collection, title: str | None = None) -> Collection:
        """The contents of a collection of this loop once nothing changes. `title` names its arrangement.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.values({"src": [1, 2], "dst": [2, 3]})
        >>> with tk.Loop("reach") as loop:
        ...     reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
        ...     step = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        ...     reach.set(edges.concat(step).distinct())
        ...     result = loop.leave(reach)
        >>> result.sort("src", "dst").collect().to_pylist()
        [{'src': 1, 'dst': 2}, {'src': 1, 'dst': 3}, {'src': 2, 'dst': 3}]
        """
        check_collection(collection, "leave")
        loop = collection.operator.loop
        if loop is not None and not loop.encloses(self._plan):
            raise IncorrectError(f"loop {self.name!r}: {collection!r} belongs to loop {loop.name!r}, leave that first")
        operator = plan.Leave(collection.schema, collection.operator, self._plan, title)
        self._plan.leaves.append(operator)
        return derived(operator, collection)


@explains_options
class LoopVariable(Collection):
    """A collection of a loop that is defined in terms of itself and others.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.values({"src": [1, 2], "dst": [2, 3]})
    >>> with tk.Loop("reach") as loop:
    ...     reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
    ...     step = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
    ...     reach.set(edges.concat(step).distinct())
    ...     result = loop.leave(reach)
    >>> type(reach).__name__, reach.schema.names
    ('LoopVariable', ('src', 'dst'))
    """

    def __init__(self, engine: Any, operator: plan.Variable) -> None:
        super().__init__(engine, operator)
        self.variable = operator

    def set(self, definition: Collection) -> None:
        """Define the variable: in the next round it is what the definition is in this one.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.values({"src": [1, 2], "dst": [2, 3]})
        >>> with tk.Loop("reach") as loop:
        ...     reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
        ...     step = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        ...     reach.set(edges.concat(step).distinct())
        ...     result = loop.leave(reach)
        >>> result.count().collect().to_pydict()
        {'count': [3]}
        """
        check_collection(definition, "set")
        definitions = self.variable.of.definitions
        loop = definition.operator.loop
        if loop is not None and not loop.encloses(self.variable.of):
            raise IncorrectError(
                f"loop {self.variable.of.name!r}: the definition of {self.variable.name!r} belongs to loop {loop.name!r}; "
                "leave that first"
            )
        if self.variable in definitions:
            raise ConflictError(f"loop {self.variable.of.name!r}: variable {self.variable.name!r} is set already")
        if definition.schema.types != self.schema.types:
            raise IncorrectError(
                f"loop {self.variable.of.name!r}: variable {self.variable.name!r} is {self.schema}, but its definition "
                f"is {definition.schema}"
            )
        definitions[self.variable] = definition.operator
        if self.engine is None:
            self.engine = definition.engine
