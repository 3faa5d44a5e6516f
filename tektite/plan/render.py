"""Rendering: from a plan to the nodes of a dataflow.

Each operator of a plan is rendered once per dataflow, in the scope of its loop. It enters inner loops that use it.
Linear operators become steps on edges. An operator that reads an arrangement gets an existing one if possible: from the
catalog for inputs and views, from the output of a reduction, or one that this dataflow has made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tektite.dataflow import arrange, loop, range_filter, reduce
from tektite.dataflow import join as join_node
from tektite.dataflow.arrange import Arranged, serves
from tektite.dataflow.errors import ErrorNode, ErrorOrigin, ErrorSource, Fallible, sources_of
from tektite.dataflow.flow import Dataflow, EpochSource
from tektite.dataflow.function_node import BatchFunction, FunctionNode
from tektite.dataflow.function_reduce import FunctionReduce, GroupsReduce
from tektite.dataflow.graph import LinearStep, Scope
from tektite.dataflow.linear import Accumulate, NegateStep, ProgramStep, SelectStep
from tektite.dataflow.near_reduce import NearReduce
from tektite.dataflow.output import InspectNode
from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr import Expr, RowProgram, col
from tektite.expr import compile as compile_program
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers
from tektite.plan.conjunctions.render import render_match
from tektite.plan.explain import line
from tektite.plan.look_through import look_through, permutation
from tektite.plan.names import free_name
from tektite.plan.stream import Stream, first_places, in_order, together
from tektite.trace.chunk import column_spec
from tektite.trace.trace import Trace
from tektite.values.shared_values import shared
from tektite.values.types import Float, Int, Type

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary


class SharedArrangement(Protocol):
    """A shared arrangement of the catalog."""

    source: EpochSource
    trace: Trace
    columns: tuple[int, ...]
    sharded_by: int

    @property
    def errors(self) -> Sequence[ErrorSource]:
        """The errors that it depends on."""


class ArrangementCatalog(Protocol):
    """The catalog in which rendering finds the arrangements of inputs, views and explicitly arranged collections."""

    def arrangement(
        self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int
    ) -> SharedArrangement:
        """An arrangement whose leading columns are `lead`; made if there is none."""

    def has(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> bool:
        """Whether there is such an arrangement already."""

    def changes(self, operator: plan.Read) -> SharedArrangement:
        """The arrangement whose changes are the collection's."""


@dataclass(frozen=True)
class Use:
    """An arrangement that a plan reads: of which collection, by which columns, and where it comes from."""

    collection: str
    columns: tuple[str, ...]
    origin: str
    operator: plan.Operator


class _MadeFor:
    """A block in which the nodes of a dataflow are made for an operator of a plan."""

    __slots__ = ("_before", "_flow", "_operator")

    def __init__(self, flow: Dataflow, operator: plan.Operator) -> None:
        self._flow = flow
        self._operator = operator
        self._before = flow.purpose

    def __enter__(self) -> None:
        self._flow.purpose = self._operator

    def __exit__(self, *_: object) -> None:
        self._flow.purpose = self._before


class Renderer:
    """Renders plans into one dataflow."""

    def __init__(self, flow: Dataflow, catalog: ArrangementCatalog, dictionary: Dictionary) -> None:
        self.flow = flow
        self.catalog = catalog
        self.dictionary = dictionary
        self.shards = flow.shards
        self.scopes: dict[plan.Loop | None, Scope] = {None: flow.root}
        self._streams: dict[plan.Operator, Stream] = {}
        self._nodes: dict[plan.Operator, reduce.ReduceNode] = {}
        self._arranged: list[tuple[plan.Operator, Arranged]] = []
        # Only `explain` needs these texts, so they are made on demand.
        self.uses: list[Callable[[], Use]] = []
        self.decisions: list[Callable[[], list[str]]] = []
        self.reusable = True
        """Whether another dataflow may reuse this graph: it has no loop and does not know its dataflow's name."""
        self.origins: list[ErrorOrigin] = []
        """The parts of the graph whose rows may fail."""
        self._imported: dict[int, Sequence[ErrorSource]] = {}
        """The errors that imported traces depend on, by the trace's id."""
        self.remembering: list[RowProgram] = []
        """Programs with functions of text. Their results are dropped with the last query that uses them."""

    def finish(self, results: Sequence[Trace]) -> None:
        """End rendering: connect what may fail with the dataflow's errors, and say which errors each result depends on."""
        flow = self.flow
        for reading in flow.root.nodes:
            reading.choose_rows()
        flow.name_purposes(line)
        node = ErrorNode(flow, self.origins) if self.origins else None
        flow.results = flow.traces if flow.traces == tuple(results) else tuple(results)
        flow.result_errors = tuple(sources_of(flow, node, results, self._imported))
        flow.hold_errors()

    def _origin(self, width: int, scope: Scope, fallible: Fallible) -> ErrorOrigin:
        """A number for what may fail on rows of so many data columns, in a scope."""
        self.origins.append(ErrorOrigin(len(self.origins), width, scope.depth, fallible))
        return self.origins[-1]

    # ------------------------------------------------------------------ scopes

    def scope(self, of: plan.Operator) -> Scope:
        """The scope that an operator is rendered in."""
        return self._scope(of.loop)

    def _scope(self, of: plan.Loop | None) -> Scope:
        if of in self.scopes:
            return self.scopes[of]
        assert of is not None
        self.reusable = False
        scope = Scope(self.flow, self._scope(of.parent), of.name, of.limit, of.advice)
        self.scopes[of] = scope
        return scope

    def entered(self, operator: plan.Operator, scope: Scope) -> Stream:
        """An operator's stream as seen from `scope`."""
        stream = self.stream(operator)
        self.pass_in(stream.scope, scope)
        return stream.enter(scope)

    def pass_in(self, outer: Scope, inner: Scope) -> None:
        """Note that something of an outer scope is used in an inner one."""
        while inner is not outer:
            assert inner.parent is not None
            inner.enters(inner.parent)
            inner = inner.parent

    # ------------------------------------------------------------------ streams

    def stream(self, operator: plan.Operator) -> Stream:
        """The operator's collection as a stream, in its own scope."""
        found = self._streams.get(operator)
        if found is None:
            with self._made_for(operator):
                found = self._streams[operator] = self._render(operator)
        return found

    def _made_for(self, operator: plan.Operator) -> _MadeFor:
        """A block in which nodes are made for an operator."""
        return _MadeFor(self.flow, operator)

    def _render(self, operator: plan.Operator) -> Stream:
        match operator:
            case plan.Read():
                return self._read(operator)
            case plan.Rows():
                return self._changes(self.arranged(operator, (0,), None))
            case plan.Project():
                return self._project(operator)
            case plan.MapBatches():
                self.reusable = False
                function = BatchFunction(operator.function, operator.input.schema, operator.schema, operator.many,
                                         self.dictionary, self.flow.name)  # fmt: skip
                stream = self.stream(operator.input)
                node = FunctionNode(stream.scope, self.shards, function)
                node.errors = self._origin(len(operator.input.schema.names), stream.scope, function)
                stream.feed(node)
                return Stream(stream.scope, [(node.port, (), 0)], None)
            case plan.Concat():
                scope = self.scope(operator)
                return together(scope, [self.entered(part, scope) for part in operator.parts])
            case plan.Negate():
                stream = self.stream(operator.input)
                return stream.then(NegateStep(), stream.placed)
            case plan.Arrange():
                return self._changes(self.arranged(operator, operator.key, None))
            case plan.Join():
                return self._join(operator)
            case plan.Match():
                return render_match(self, operator)
            case plan.RangeFilter():
                return self._range_filter(operator)
            case plan.AtLeast() | plan.Aggregate() | plan.First() | plan.Reduce():
                return self._reduced(operator)
            case plan.Inspect():
                return self._inspect(operator)
            case plan.Variable() | plan.Leave():
                self._loop(operator.of)
                return self._streams[operator]
        raise UnsupportedError(f"cannot render {type(operator).__name__}")

    def _read(self, operator: plan.Read) -> Stream:
        entry = self.catalog.changes(operator)
        return self._changes(self._import(entry))

    def _import(self, entry: SharedArrangement) -> Arranged:
        self.flow.read(entry.source)
        self._imported[id(entry.trace)] = entry.errors
        return Arranged(entry.trace, self.flow.root, entry.columns, entry.sharded_by, imported=True)

    def adopt(self, operator: plan.Operator, entry: SharedArrangement) -> None:
        """Take an operator's collection from an arrangement of it instead of computing it."""
        self._streams[operator] = self._changes(self._import(entry))

    def _changes(self, arranged: Arranged) -> Stream:
        node = arrange.ChangesNode(arranged.scope, self.shards, arranged, "changes")
        return in_order(node, arranged)

    def _project(self, operator: plan.Project) -> Stream:
        outputs, predicate, source = operator.outputs, operator.predicate, operator.input
        stream = self.stream(source)
        kept = [source.schema.index(o.params[0]) if o.op == "col" else -1 for o in outputs]
        placed = None if stream.placed is None else first_places(kept, [(column,) for column in stream.placed])
        if predicate is None and -1 not in kept:
            return stream.then(self._step(SelectStep(kept), operator), placed)
        program = self.program(outputs, predicate, source.schema.positions)
        return self._through(stream, program, len(source.schema.names), source.schema.positions, placed, operator)

    def _step(self, step: SelectStep | ProgramStep, operator: plan.Operator) -> LinearStep:
        """A step, of which is noted what it was made for."""
        self.flow.note_purpose(step, operator)
        return step

    def _through(
        self,
        stream: Stream,
        program: RowProgram,
        width: int,
        shown: Mapping[str, tuple[int, Type]],
        placed: ColumnNumbers | None,
        operator: plan.Operator | None = None,
    ) -> Stream:
        """A stream after a program, of an operator. Errors show some of the columns of its rows."""
        step = ProgramStep(program, width, shown)
        if operator is not None:
            self._step(step, operator)
        if program.can_fail:
            step.errors = self._origin(width, stream.scope, step)
        return stream.then(step, placed)

    def program(
        self, outputs: Sequence[Expr], predicate: Expr | None, columns: Mapping[str, tuple[int, Type]]
    ) -> RowProgram:
        """Compiled expressions."""
        program = compile_program(outputs, predicate, columns, self.dictionary)
        if program.remembers:
            self.remembering.append(program)
        return program

    def _inspect(self, operator: plan.Inspect) -> Stream:
        stream = self.stream(operator.input)
        self.reusable = False
        node = InspectNode(stream.scope, self.shards, operator.schema, operator.function, self.dictionary)
        stream.feed(node)
        return stream

    # ------------------------------------------------------------------ arrangements

    def arranged(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None,
                 key: int | None = None) -> Arranged:  # fmt: skip
        """The operator's collection, arranged so that its leading columns are `lead`, the first `key` of them the key.

        `sharded_by` asks for that many leading columns to decide the shard; None takes any number up to `key`.
        """
        key = len(lead) if key is None else key
        for known, arranged in self._arranged:
            if known is operator and serves(arranged, lead, sharded_by, key):
                return arranged
        with self._made_for(operator):
            arranged = self._arrange(operator, lead, sharded_by, key)
        self._arranged.append((operator, arranged))
        return arranged

    def _arrange(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Arranged:
        match operator:
            case plan.Read() if not operator.readable.is_stream:
                return self._shared(operator, lead, sharded_by, key)
            case plan.Rows():
                return self._shared(operator, lead, sharded_by, key)
            case plan.Arrange() if operator.loop is None:
                return self._shared(operator, lead, sharded_by, key)
            case plan.Project() if operator.predicate is None and (renamed := permutation(operator)) is not None:
                inner = self.arranged(operator.input, tuple(renamed[c] for c in lead), sharded_by, key)
                return inner.renamed({column: at for at, column in enumerate(renamed)})
            case plan.Arrange():
                return self.arranged(operator.input, lead, sharded_by, key)
            case plan.AtLeast() | plan.Aggregate() | plan.First() | plan.Reduce():
                output = self._node(operator).output
                if serves(output, lead, sharded_by, key):
                    self._note_use(operator, lead, "what it is kept as")
                    return output
        if sharded_by is None:
            sharded_by = self._shard_columns(operator, lead, key)
        self._note_use(operator, lead, "this query's own")
        return self.arrange_anew(operator, lead, sharded_by)

    def _shared(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Arranged:
        found = self.catalog.has(operator, lead, sharded_by, key)
        entry = self.catalog.arrangement(operator, lead, sharded_by, key)

        def origin() -> str:
            if not found:
                return "shared, made for this query"
            if (skew := entry.trace.skew) is None:
                return "shared, there already"
            share = f"{100 * skew[0] // skew[1]}% of its rows are in one of {entry.trace.shards} shards"
            return f"shared, there already; {share}, whose joins all workers share"

        self._note_use(operator, lead, origin)
        return self._import(entry)

    def has_arrangement(self, operator: plan.Operator, lead: tuple[int, ...], key: int) -> bool:
        """Whether `arranged` would find an existing arrangement, or one that this dataflow makes anyway."""
        if any(known is operator and serves(arranged, lead, None, key) for known, arranged in self._arranged):
            return True
        match operator:
            case plan.Read():
                return not operator.readable.is_stream and self.catalog.has(operator, lead, None, key)
            case plan.Arrange() if operator.loop is None:
                return self.catalog.has(operator, lead, None, key)
            case plan.Arrange():
                return self.has_arrangement(operator.input, lead, key)
            case plan.Project() if operator.predicate is None and (renamed := permutation(operator)) is not None:
                return self.has_arrangement(operator.input, tuple(renamed[c] for c in lead), key)
            case plan.AtLeast() | plan.Aggregate() | plan.First() | plan.Reduce():
                return serves(self._node(operator).output, lead, None, key)
        return False

    def _note_use(self, operator: plan.Operator, lead: tuple[int, ...], origin: str | Callable[[], str]) -> None:
        def use() -> Use:
            names = operator.schema.names
            said = origin if isinstance(origin, str) else origin()
            return Use(plan.describe(operator), tuple(names[column] for column in lead), said, operator)

        self.uses.append(use)

    def _shard_columns(self, operator: plan.Operator, lead: ColumnNumbers, key: int) -> int:
        """By how many leading columns to shard: by those that rows are placed by already, if the key begins with them."""
        placed = self.stream(operator).placed
        return len(placed) if placed and len(placed) <= key and lead[: len(placed)] == placed else key

    def arrange_anew(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int) -> Arranged:
        """An arrangement of the operator's stream that is this dataflow's own."""
        stream = self.stream(operator)
        width = len(operator.schema.names)
        columns = shared((*lead, *[c for c in range(width) if c not in lead]))
        select = None
        if columns != tuple(range(width)):
            times = stream.scope.depth + 1
            spec = column_spec([*columns, *range(width, width + times + 1)])

            def select(chunk):  # type: ignore[no-untyped-def]
                return chunk.select(spec)

        settled = stream.placed == lead[:sharded_by]
        by = ", ".join([operator.schema.names[column] for column in lead])
        with self._made_for(operator):
            node = arrange.ArrangeNode(
                stream.scope,
                self.shards,
                columns,
                sharded_by,
                sys.intern(f"arrange by ({by})"),
                select,
                settled=settled,
            )
        stream.feed(node)
        return node.arranged

    # ------------------------------------------------------------------ join and reduce

    def _join(self, operator: plan.Join) -> Stream:
        """A join; a filter over an explicit arrangement on either side runs on the pairs, so that nothing is copied."""
        scope = self.scope(operator)
        left, left_columns, left_filter = look_through(operator.left)
        right, right_columns, right_filter = look_through(operator.right)
        key = len(operator.left_key)
        left_lead = tuple(left_columns[c] for c in operator.left_key)
        right_lead = tuple(right_columns[c] for c in operator.right_key)
        if self.has_arrangement(right, right_lead, key) and not self.has_arrangement(left, left_lead, key):
            # The side that has to be arranged anew is sharded as the other one is.
            arranged_right = self.arranged(right, right_lead, None)
            arranged_left = self.arranged(left, left_lead, arranged_right.sharded_by, key)
        else:
            arranged_left = self.arranged(left, left_lead, None)
            arranged_right = self.arranged(right, right_lead, arranged_left.sharded_by, key)
        self.pass_in(arranged_left.scope, scope)
        self.pass_in(arranged_right.scope, scope)
        columns = (left_columns, right_columns)
        wanted = [(side, columns[side][column]) for side, column in operator.outputs]
        filters = [(0, left, left_filter), (1, right, right_filter)]
        tested = [
            (side, source.schema.index(name))
            for side, source, predicate in filters
            if predicate is not None
            for name in predicate.columns()
        ]
        produced = wanted + [column for column in dict.fromkeys(tested) if column not in wanted]
        traces = (arranged_left.columns, arranged_right.columns)
        output = shared(tuple([(side, traces[side].index(column)) for side, column in produced]))
        node = join_node.JoinNode(
            scope, self.shards, arranged_left, arranged_right, key, output, "join", operator.nulls_match
        )
        keys = zip(arranged_left.columns[: arranged_left.sharded_by], arranged_right.columns, strict=False)
        stream = Stream(scope, [(node.port, (), 0)], first_places(produced, [((0, a), (1, b)) for a, b in keys]))
        for side, source, predicate in filters:
            if predicate is not None:
                names = source.schema.names
                positions = {names[c]: (at, source.schema.types[c]) for at, (s, c) in enumerate(produced) if s == side}
                stream = self._filtered(stream, predicate, positions, len(produced))
        if len(produced) == len(wanted):
            return stream
        placed = stream.placed
        kept = placed if placed is not None and all(c < len(wanted) for c in placed) else None
        return stream.then(SelectStep(range(len(wanted))), kept)

    def _filtered(self, stream: Stream, predicate: Expr, positions: dict[str, tuple[int, Type]], width: int) -> Stream:
        """A stream's rows for which a predicate over some of its columns is true, with all their columns."""
        unnamed = {free_name(f"place {at}", positions): (at, Int) for at in range(width)}
        outputs = [col(name) for name in unnamed]
        program = self.program(outputs, predicate, positions | unnamed)
        return self._through(stream, program, width, positions, stream.placed)

    def _range_filter(self, operator: plan.RangeFilter) -> Stream:
        scope = self.scope(operator)
        key = len(operator.input_key)
        rows = self.arranged(operator.input, (*operator.input_key, operator.column), None, key)
        bounds = self.arranged(operator.bounds, operator.bounds_key, rows.sharded_by)
        for side in (rows, bounds):
            self.pass_in(side.scope, scope)
        output = [rows.columns.index(column) for column in range(len(operator.schema.names))]
        floats = operator.schema.types[operator.column] == Float
        node = range_filter.RangeFilterNode(scope, self.shards, rows, bounds, key, operator.comparison, floats,
                                   bounds.columns.index(operator.bound), output, "range filter")  # fmt: skip
        return Stream(scope, [(node.port, (), 0)], rows.columns[: rows.sharded_by])

    def _reduced(self, operator: plan.Operator) -> Stream:
        node = self._node(operator)
        return in_order(node, node.output)

    def _node(self, operator: plan.Operator) -> reduce.ReduceNode:
        node = self._nodes.get(operator)
        if node is None:
            with self._made_for(operator):
                node = self._nodes[operator] = self._make_reduce(operator)
        return node

    def _make_reduce(self, operator: plan.Operator) -> reduce.ReduceNode:
        match operator:
            case plan.AtLeast():
                width = len(operator.schema.names)
                source = self._whole_row(operator.input, width)
                return reduce.BuiltinReduce(source, self.shards, width, reduce.at_least(operator.times), source.columns,
                                            "distinct")  # fmt: skip
            case plan.Aggregate():
                return self._aggregate(operator)
            case plan.First():
                width = len(operator.schema.names)
                source = self.arranged(operator.input, tuple(range(width)), None, operator.key)
                op = reduce.first(operator.count, operator.last, width - operator.key, operator.ties)
                return reduce.BuiltinReduce(source, self.shards, operator.key, op, tuple(range(width)), "top")
            case plan.Reduce():
                # the function gets rows with their columns in order
                width = len(operator.input.schema.names)
                source = self.arranged(operator.input, tuple(range(width)), None, operator.key)
                make: type[FunctionReduce] = FunctionReduce
                if operator.together:
                    make = NearReduce if hasattr(operator.function, "near") else GroupsReduce
                node = make(source, self.shards, operator.key, operator.function, operator.input.schema, operator.schema,
                            self.dictionary, "reduce")  # fmt: skip
                node.errors = self._origin(operator.key + 1, node.scope, node)
                return node
        raise UnsupportedError(f"cannot render {type(operator).__name__}")

    def _whole_row(self, operator: plan.Operator, width: int) -> Arranged:
        """An arrangement by all columns, in any order; an explicit arrangement inside a loop says in which, and by how
        many columns it is sharded, so that what is made of it serves those who look rows up by these columns.
        """
        if isinstance(operator, plan.Arrange) and operator.loop is not None:
            order = (*operator.key, *(c for c in range(width) if c not in operator.key))
            return self.arranged(operator.input, order, len(operator.key), width)
        return self.arranged(operator, self.any_order(operator, width), None, width)

    def any_order(self, operator: plan.Operator, width: int) -> tuple[int, ...]:
        """A column order of the whole row, the one that an arrangement already has if there is one."""
        if isinstance(operator, plan.Read) and not operator.readable.is_stream:
            return self.catalog.changes(operator).columns
        if isinstance(operator, plan.Arrange):
            return (*operator.key, *(c for c in range(width) if c not in operator.key))
        if isinstance(operator, plan.Project) and operator.predicate is None:
            renamed = permutation(operator)
            if renamed is not None:
                return tuple(renamed.index(c) for c in self.any_order(operator.input, width))
        for known, arranged in self._arranged:
            if known is operator:
                return arranged.columns
        return tuple(range(width))

    def _aggregate(self, operator: plan.Aggregate) -> reduce.ReduceNode:
        key, source = operator.key, operator.input
        columns = shared(tuple(range(len(key) + len(operator.aggregates))))
        whole_row = set(key) == set(range(len(source.schema.names)))
        if whole_row and all(a.kind == "count" and a.column is None for a in operator.aggregates):
            arranged = self.arranged(source, key, None)
            op = reduce.linear((("count", 0),) * len(operator.aggregates))
            return reduce.BuiltinReduce(arranged, self.shards, len(key), op, columns, "aggregate")
        stream = self.stream(source)
        placed = stream.placed
        sharded_by = len(placed) if placed and key[: len(placed)] == placed else len(key)
        accumulate = Accumulate(key, operator.aggregates, source.schema, stream.scope.depth + 1)
        node = arrange.ArrangeNode(
            stream.scope,
            self.shards,
            tuple(range(accumulate.data)),
            sharded_by,
            "accumulate",
            accumulate,
            accumulate.data,
            accumulate.diffs,
            settled=placed == key[:sharded_by],
        )
        stream.feed(node)
        op = reduce.linear(tuple(accumulate.kinds))
        made = reduce.BuiltinReduce(node.arranged, self.shards, len(key), op, columns, "aggregate")
        if op.sums:
            made.groups = reduce.GroupNames(operator.schema.select(*operator.schema.names[: len(key)]), self.dictionary)
            made.errors = self._origin(len(key), made.scope, made)
        return made

    # ------------------------------------------------------------------ loops

    def _loop(self, of: plan.Loop) -> None:
        """Render a whole loop: its variables first, then their definitions, then everything that leaves."""
        scope = self._scope(of)
        variables = {}
        for variable in of.variables:
            if variable.starts is not None:
                self._streams[variable] = self._entries(variable, scope)
                continue
            with self._made_for(variable):
                node = loop.FeedbackNode(scope, self.shards, len(variable.schema.names), variable.name)
            # Feedback is placed by the hash of the whole row.
            stream = Stream(scope, [(node.port, (), 0)], tuple(range(len(variable.schema.names))))
            if variable.initial is not None:
                stream = together(scope, [stream, self.entered(variable.initial, scope)])
            self._streams[variable] = stream
            variables[variable] = node
        for variable, node in variables.items():
            definition = of.definitions.get(variable)
            if definition is None:
                raise IncorrectError(f"loop {of.name!r}: variable {variable.name!r} was never set")
            self.entered(definition, scope).feed(node)
            if variable.initial is not None:
                self.entered(variable.initial, scope).then(NegateStep(), None).feed(node)
        for leave in of.leaves:
            inner = self.entered(leave.inner, scope)
            assert scope.parent is not None
            with self._made_for(leave):
                out = loop.LeaveNode(scope.parent, self.shards, len(leave.schema.names), "leave")
            inner.feed(out)
            self._streams[leave] = Stream(scope.parent, [(out.port, (), 0)], inner.placed)

    def _entries(self, variable: plan.Variable, scope: Scope) -> Stream:
        """A collection from outside a loop, each row from its own round on."""
        assert variable.initial is not None and variable.starts is not None
        stream = self.entered(variable.initial, scope)
        with self._made_for(variable):
            node = loop.EntryNode(scope, self.shards, len(variable.schema.names), variable.starts, variable.name)
        stream.feed(node)
        return Stream(scope, [(node.port, (), 0)], stream.placed)
