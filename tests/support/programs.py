"""Random dataflow programs and random histories of their inputs, through the public interface.

A `Program` is decided by a seed and a number of operators alone, so that the same one can be built on several engines. Values are
few and small, and whatever could multiply without bound is made distinct again, so that brute force stays possible.
Loops converge by construction: they are monotone over a finite domain, or they stop by a counter of their own.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tektite as tk
from tektite.query.limits import first_rows
from tests.support.brute import Bag, Row, bag

VALUES = (0, 1, 2, 3)
TEXTS = ("", "a", "ab", "b")
INPUTS: dict[str, dict[str, tk.Type]] = {
    "a": {"x": tk.Int, "y": tk.Int},
    "b": {"y": tk.Int, "z": tk.Int, "s": tk.String},
    "c": {"x": tk.Int},
}
KEYED: dict[str, tuple[str, tuple[str, ...], dict[str, tk.Type]]] = {
    "u": ("upsert", ("k",), {"k": tk.Int, "v": tk.Int}),
    "t": ("set", (), {"x": tk.Int, "s": tk.String}),
}
"""Inputs whose updates are operations: semantics, key, columns."""
WIDE = 4
"""Columns from which on a collection is narrowed before it is used further."""
MANY = 60
"""Estimated rows from which on a collection is made small before it is used further."""
ROUNDS = 4
"""Rounds that a counted loop runs."""
LIMIT = 200
"""Rounds that no loop here can need."""


def spread(key: Row, rows: list[tuple[Row, int]]) -> list[Row]:
    """For `reduce`: the number of different rows and the sum of their multiplicities, the latter twice."""
    total = sum(many for _, many in rows)
    return [(len(rows), total % 3), (len(rows), total % 3), (total % 2, None)]


def odd_ones(key: Row, rows: list[tuple[Row, int]]) -> list[Row]:
    """For `reduce`: something only where the number of rows is odd, so that groups come and go."""
    total = sum(many for _, many in rows)
    return [(total % 4, len(key))] if total % 2 else []


def turned(batch: Any) -> Any:
    """For `map_batches`: a column negated, and how many columns are NULL."""
    nulls = [sum(value is None for value in row.values()) for row in batch.to_pylist()]
    return pa.table({"m0": pc.negate(batch["m0"]), "m1": pa.array(nulls, pa.int64())})


def repeated(batch: Any) -> Any:
    """For `flat_map`: none, one or two rows for each, by a column."""
    values = batch["m0"].to_pylist()
    rows = np.repeat(np.arange(len(values)), [(value or 0) % 3 for value in values])
    return pa.table({"m0": batch["m0"].take(pa.array(rows))}), rows


def ignore(table: Any) -> None:
    """For `inspect`."""


class Program:
    """Inputs and a growing pool of collections over them, some of which are to be installed as views."""

    def __init__(self, engine: tk.Engine, seed: int, operators: int) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.inputs = {name: engine.create_table(name, columns) for name, columns in INPUTS.items()}
        for name, (semantics, key, columns) in KEYED.items():
            self.inputs[name] = engine.create_table(name, columns, mode=semantics, primary_key=key)
        self.pool: list[tuple[tk.Collection, int]] = [(source, 8) for source in self.inputs.values()]
        self.inputs["one"] = engine.create_table("one", {"n": tk.Int})
        for name, collection in self.inputs.items():
            self.names[id(collection)] = name
        self.kept: list[Any] = []
        self.operators = operators
        self.depth = 0

    # ------------------------------------------------------------------ picking

    def pick(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """A collection of the pool, later ones more often."""
        return pool[max(self.rng.randrange(len(pool)), self.rng.randrange(len(pool)))]

    def ints(self, c: tk.Collection) -> list[str]:
        return [n for n, t in zip(c.schema.names, c.schema.types, strict=True) if t == tk.Int]

    def some(self, names: list[str] | tuple[str, ...], least: int = 0, most: int = 2) -> list[str]:
        most = min(most, len(names))
        return self.rng.sample(list(names), self.rng.randint(min(least, most), most))

    def number(self, c: tk.Collection) -> tk.Expr:
        """An expression over the Int columns that stays small."""
        rng = self.rng
        ints = self.ints(c)
        if not ints:
            return tk.lit(rng.choice(VALUES))
        x, y = tk.col(rng.choice(ints)), tk.col(rng.choice(ints))
        return rng.choice([
            lambda: x, lambda: (x + y) % 4, lambda: (x * 2 - y) % 5, lambda: tk.coalesce(x, y, 0),
            lambda: tk.when(x < y, x).otherwise(y), lambda: tk.lit(1), lambda: -x, lambda: (x + 1) % 4,
            lambda: x, lambda: tk.when(y == 3, None).otherwise(x),
        ])()  # fmt: skip

    def predicate(self, c: tk.Collection) -> tk.Expr:
        rng = self.rng
        x, y = self.number(c), self.number(c)
        return rng.choice([
            lambda: x < y, lambda: x != y, lambda: (x == y) | (y > 1), lambda: x.is_not_null(), lambda: ~(x >= 2),
            lambda: (x <= y) & y.is_null().is_same(False), lambda: y.isin([0, 2]),
        ])()  # fmt: skip

    def narrow(self, c: tk.Collection, size: int) -> tuple[tk.Collection, int]:
        """The collection itself if it is small, else few columns of it, folded into few values."""
        if len(c.schema.names) > WIDE:
            c = self.note(c.select(*self.some(c.schema.names, 1, 3)), "select", c)
        if size > MANY:
            ints = self.ints(c)[:2]
            outputs: dict[str, Any] = {n: tk.col(n) % 4 for n in ints} or {"k": 1}
            c = self.note(c.select(**outputs).distinct(), "few", c)
            size = 20
        return c, size

    def note(self, made: tk.Collection, how: str, *of: tk.Collection) -> tk.Collection:
        """Write down how a collection was made, for whoever has to read a failure."""
        name = self.names[id(made)] = f"v{len(self.lines)}"
        self.kept.append(made)
        self.lines.append(f"{name} = {how} of {', '.join(self.names.get(id(c), '?') for c in of)}: {made.schema}")
        return made

    # ------------------------------------------------------------------ growing

    def grow(self) -> None:
        """Add all operators to the pool."""
        for _ in range(self.operators):
            self.pool.append(self.operator(self.pool))

    def operator(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """One more collection from those of the pool."""
        kinds = ["linear", "linear", "concat", "minus", "distinct", "aggregate", "extreme", "top", "reduce", "join", "join",
                 "join", "arrange", "python"]  # fmt: skip
        if self.depth < 2:
            kinds += ["reach", "reach", "labels", "labels", "mutual", *["counted"] * 5]
        kind = self.rng.choice(kinds)
        return getattr(self, f"make_{kind}")(pool)  # type: ignore[no-any-return]

    def make_linear(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        rng = self.rng
        if rng.random() < 0.4:
            p = self.predicate(c)
            return self.note(c.filter(p), f"filter {p}", c), size
        if rng.random() < 0.5:
            e = self.number(c)
            name = rng.choice([*self.ints(c), "w"])
            return self.note(c.with_columns(**{name: e}), f"with {name} = {e}", c), size
        kept = self.some(c.schema.names, 0, 3)
        e = self.number(c)
        return self.note(c.select(*kept, e0=e) if "e0" not in kept else c.select(*kept), f"select {kept}, {e}", c), size

    def alike(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, tk.Collection, int]:
        """Two collections with the same types."""
        c, size = self.pick(pool)
        for _ in range(4):
            d, other = self.pick(pool)
            if d.schema.types == c.schema.types:
                return c, d, size + other
        d, other = self.pick(pool)
        return c.select(k=self.number(c)), d.select(k=self.number(d)), size + other

    def make_concat(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, d, size = self.alike(pool)
        return self.note(c.concat(d), "concat", c, d), size

    def make_minus(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, d, size = self.alike(pool)
        return self.note(c.concat(d.negate()), "minus", c, d), size

    def make_distinct(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        times = self.rng.choice([1, 1, 2])
        return self.note(c.threshold(times), f"at least {times}", c), size

    def make_aggregate(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        by = [n for n in self.some(c.schema.names) if n not in ("g0", "g1", "g2", "n")]
        rest = [n for n in self.ints(c) if n not in by]
        if not rest or self.rng.random() < 0.3:
            return self.note(c.count(by=by, name="n"), f"count by {by}", c), size
        makers = [tk.count, tk.sum, tk.avg, tk.min, tk.max, tk.count_distinct]
        chosen = {f"g{i}": self.rng.choice(makers)(self.rng.choice(rest)) for i in range(self.rng.randint(1, 3))}
        if self.rng.random() < 0.5:
            chosen["n"] = tk.count()
        return self.note(c.group_by(by).agg(**chosen), f"{chosen} by {by}", c), size

    def make_extreme(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        column = self.rng.choice(c.schema.names)
        by = [n for n in self.some(c.schema.names) if n != column]
        last = self.rng.random() < 0.5
        made = c.max(column, by=by) if last else c.min(column, by=by)
        return self.note(made, f"{'max' if last else 'min'} {column} by {by}", c), size

    def make_top(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        order = self.some(c.schema.names, 1, 2)
        by = [n for n in self.some(c.schema.names) if n not in order]
        downs = [self.rng.random() < 0.5 for _ in order]
        k = self.rng.choice([1, 2, 3])
        return self.note(
            first_rows(c, [(tk.col(n), down, False) for n, down in zip(order, downs, strict=True)], by, k),
            f"top {k} {order} {downs} by {by}",
            c,
        ), size

    def make_reduce(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        by = self.some(c.schema.names, 0, 2)
        by = [n for n in by if n not in ("r0", "r1")]
        function = self.rng.choice([spread, odd_ones])
        return self.note(c.reduce(function, by=by, r0=tk.Int, r1=tk.Int), f"{function.__name__} by {by}", c), size

    def make_join(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        rng = self.rng
        (c, size), (d, other) = self.narrow(*self.pick(pool)), self.narrow(*self.pick(pool))
        pairs = [
            (n, m)
            for n, t in zip(c.schema.names, c.schema.types, strict=True)
            for m, u in zip(d.schema.names, d.schema.types, strict=True)
            if t == u
        ]
        rng.shuffle(pairs)
        on: list[tuple[str, str]] = []
        for n, m in pairs[: rng.choice([0, 1, 1, 1, 2])]:
            if all(n != p and m != q for p, q in on):
                on.append((n, m))
        how = rng.choice(["inner", "inner", "left", "right", "full", "semi", "anti"])
        keys = [n for n, _ in on], [m for _, m in on]
        made = self.note(c.join(d, left_on=keys[0], right_on=keys[1], how=how), f"{how} join on {on}", c, d)
        if how in ("semi", "anti"):
            return made, size
        return self.narrow(made, size * other // (3 if on else 1))

    def make_arrange(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        c, size = self.pick(pool)
        by = self.some(c.schema.names, 1, 2)
        return self.note(c.index_by(by), f"arrange by {by}", c), size

    def make_python(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """A Python function of rows."""
        c, size = self.pick(pool)
        kind = self.rng.choice(["map", "flat", "inspect"])
        if kind == "inspect":
            return self.note(c.inspect(ignore), "inspect", c), size
        given = c.with_columns(m0=self.number(c))
        if kind == "map":
            return self.note(given.map_batches(turned, m0=tk.Int, m1=tk.Int), "map", c), size
        return self.note(given.flat_map(repeated, m0=tk.Int), "flat map", c), size

    # ------------------------------------------------------------------ loops

    def pairs(self, pool: list[tuple[tk.Collection, int]]) -> tk.Collection:
        """Some collection as edges (u, v). Negative multiplicities would make the loops over them swing for ever."""
        c, size = self.pick(pool)
        if self.rng.random() < 0.5:
            return self.inputs["a"].select(u="x", v="y")
        return self.note(c.select(u=self.number(c) % 4, v=self.number(c) % 4).distinct(), "edges", c)

    def make_reach(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """Pairs connected by a path; half of the time from an initial collection, half of the time from nothing."""
        edges = self.pairs(pool)
        arranged = edges.index_by("u") if self.rng.random() < 0.3 else edges
        if self.rng.random() < 0.5:
            found = edges.distinct().iterate(
                lambda r: r.join(arranged, left_on="v", right_on="u").select("u", v="v_right").concat(edges).distinct(),
                LIMIT,
                "reach",
            )
        else:
            with tk.Loop("reach", LIMIT) as loop:
                reach = loop.variable("reach", u=tk.Int, v=tk.Int)
                step = reach.join(arranged, left_on="v", right_on="u").select("u", v="v_right").concat(edges).distinct()
                reach.set(step)
                found = loop.leave(reach if self.rng.random() < 0.5 else step)
        return self.note(found, "reach", edges), 16

    def make_labels(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """The least node that reaches each one; an aggregate of the labels is sometimes taken inside the loop."""
        edges = self.pairs(pool)
        nodes = edges.select(n="u", label="u").concat(edges.select(n="v", label="v"))
        inside, in_order = self.rng.random() < 0.3, self.rng.random() < 0.4
        with tk.Loop("labels", LIMIT) as loop:
            if in_order:
                moved = loop.variable("moved", n=tk.Int, label=tk.Int)
                begins = loop.enter(nodes, at=tk.col("label") // 2 * self.rng.randint(1, 5))
                step = moved.concat(begins).min("label", by="n")
                moved.set(step.join(edges, left_on="n", right_on="u").select(n="v", label="label"))
            else:
                labels = loop.variable("labels", initial=nodes)
                moved = labels.join(edges, left_on="n", right_on="u").select(n="v", label="label")
                step = moved.concat(nodes).min("label", by="n")
                labels.set(step)
            found = loop.leave(step.count(by="label") if inside else step)
        return self.note(found, "labels", edges), 8

    def make_mutual(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """Paths of even and of odd length, each defined by the other."""
        edges, start = self.pairs(pool), self.pairs(pool)
        with tk.Loop("mutual", LIMIT) as loop:
            even = loop.variable("even", u=tk.Int, v=tk.Int)
            odd = loop.variable("odd", u=tk.Int, v=tk.Int)
            even.set(odd.join(edges, left_on="v", right_on="u").select("u", v="v_right").concat(start).distinct())
            turned = even.filter(tk.col("u") > tk.col("v")).select(u="v", v="u")
            odd.set(even.join(edges, left_on="v", right_on="u").select("u", v="v_right").concat(turned).distinct())
            found = loop.leave(even).select("u", "v", p=tk.lit(0)).concat(loop.leave(odd).select("u", "v", p=tk.lit(1)))
        return self.note(found, "mutual", edges, start), 30

    def make_counted(self, pool: list[tuple[tk.Collection, int]]) -> tuple[tk.Collection, int]:
        """A loop with any body, monotone or not, that a counter stops: x becomes body(x) ROUNDS times, then stays."""
        c, size = self.narrow(*self.pick(pool))
        self.depth += 1
        with tk.Loop("counted", LIMIT) as loop:
            x = loop.variable("x", initial=c)
            clock = loop.variable("clock", initial=self.inputs["one"])
            self.names[id(x)] = f"x{self.depth}"
            self.lines.append(f"begin loop x{self.depth} from {self.names.get(id(c), '?')}: {x.schema}")
            inner = [*pool, (x, size), (x, size)]
            for _ in range(self.rng.randint(1, 3)):
                inner.append(self.operator(inner))
            body = self.fit(inner[-1][0], x)
            on, off = clock.filter(tk.col("n") < ROUNDS).select(), clock.filter(tk.col("n") >= ROUNDS).select()
            clock.set(clock.select(n=tk.when(tk.col("n") < ROUNDS, tk.col("n") + 1).otherwise(tk.col("n"))))
            following = body.join(on, how="cross").concat(x.join(off, how="cross"))
            x.set(following)
            leaving = self.rng.choice([x, following, following, inner[-1][0]])
            found = loop.leave(leaving)
        self.depth -= 1
        return self.narrow(self.note(found, "end loop", x), MANY if leaving is inner[-1][0] else 20)

    def fit(self, c: tk.Collection, like: tk.Collection) -> tk.Collection:
        """A collection with the types of another, and few rows."""
        outputs: dict[str, Any] = {}
        for i, (name, type) in enumerate(zip(like.schema.names, like.schema.types, strict=True)):
            same = [n for n, t in zip(c.schema.names, c.schema.types, strict=True) if t == type]
            found: Any = tk.col(same[i % len(same)]) if same else tk.lit(None, type)
            outputs[name] = found % 4 if same and type == tk.Int else found
        return c.select(**outputs).distinct()


class History:
    """What happens to the inputs: for each of them updates (row, epoch, diff), never below zero at any epoch. Where an input
    is keyed, a diff of 1 puts a row and -1 takes it away.
    """

    def __init__(self, seed: int, epochs: int) -> None:
        rng = random.Random(seed)
        self.epochs = epochs
        self.updates: dict[str, list[tuple[Row, int, int]]] = {"one": [((0,), 0, 1)]}
        for name, columns in INPUTS.items():
            there: Bag = {}
            log = self.updates[name] = []
            for epoch in range(epochs):
                for _ in range(rng.choice([0, 1, 2, 4]) if epoch else rng.choice([0, 6, 12])):
                    row = tuple(self._value(rng, type) for type in columns.values())
                    if epoch and there and rng.random() < 0.55:
                        row = rng.choice(sorted(there, key=repr))
                        diff = -rng.randint(1, there[row])
                    else:
                        diff = rng.choice([1, 1, 1, 2])
                    log.append((row, epoch, diff))
                    there = bag([*there.items(), (row, diff)])
        for name, (_, _, columns) in KEYED.items():
            log = self.updates[name] = []
            for epoch in range(epochs):
                for _ in range(rng.choice([0, 1, 3]) if epoch else rng.choice([0, 8])):
                    row = tuple(self._value(rng, type) for type in columns.values())
                    log.append(((row[0] or 0, *row[1:]), epoch, rng.choice([1, 1, -1])))

    def _value(self, rng: random.Random, type: tk.Type) -> Any:
        if rng.random() < 0.06:
            return None
        return rng.choice(VALUES if type == tk.Int else TEXTS)

    def at(self, name: str, epoch: int) -> Bag:
        """An input's contents at the end of an epoch."""
        if name in KEYED:
            keys = len(KEYED[name][1]) or len(KEYED[name][2])
            there: dict[Row, Row] = {}
            for row, time, diff in self.updates[name]:
                if time <= epoch:
                    there.pop(row[:keys], None)
                    if diff > 0:
                        there[row[:keys]] = row
            return dict.fromkeys(there.values(), 1)
        return bag((row, diff) for row, time, diff in self.updates[name] if time <= epoch)
