"""Random queries whose expressions and functions fail on some rows: at every epoch a read fails exactly if recomputing the query
from the rows that are there fails, and otherwise has the same rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tektite as tk
from tests.support.executors import examples, make_engine
from tests.support.nightly import by_day_or_night, few_of

Row = tuple[Any, ...]
Rows = Counter[Row]
TEXTS = ("1", "2", "3", "x", "*", None)
MOST = 2**63 - 1
LARGE = MOST // 2 + 1
"""Two of these do not fit into a word together."""


class FailsError(Exception):
    """A row fails."""


def number(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit():
        raise FailsError(text)
    return int(text)


def added(*values: int | None) -> int | None:
    return None if None in values else fitting(sum(value for value in values if value is not None))


def fitting(value: int) -> int:
    if abs(value) > MOST:
        raise FailsError(value)
    return value


# Operations: each on a collection, and on the rows that are there. All have the columns k, x, b. An operation that may fail
# ends with an arrangement: no rewrite moves a filter past it, so that what is evaluated is what is written.


@dataclass
class Query:
    """A collection, and the same by brute force from the rows of the inputs."""

    collection: tk.Collection
    rows: Callable[[dict[str, Rows]], Rows]
    text: str


text_as_number = tk.col("b").cast(tk.Int)


def mapped(query: Query, rng: random.Random) -> Query:
    branches = rng.random() < 0.5

    def one(row: Row) -> Row:
        k, x, b = row
        return (k, added(x, 0 if branches and b in ("*", None) else number(b)), b)

    value = tk.when(tk.coalesce(tk.col("b"), "*") != "*", text_as_number).otherwise(0) if branches else text_as_number
    found = query.collection.select("k", x=tk.col("x") + value, b="b").index_by("k")
    return Query(found, lambda given: by_row(query.rows(given), one), f"map({query.text}, {branches})")


def by_row(rows: Rows, function: Callable[[Row], Row | None]) -> Rows:
    found: Rows = Counter()
    for row, many in rows.items():
        if many and (made := function(row)) is not None:
            found[made] += many
    return found


def filtered(query: Query, rng: random.Random) -> Query:
    guarded, last, bound = rng.random() < 0.5, rng.random() < 0.5, rng.choice([0, 1, 2])
    disjunction = rng.random() < 0.4
    test, guard = text_as_number > bound, tk.col("b") == "*" if disjunction else tk.col("b") != "*"
    both = (test, guard) if last else (guard, test)
    predicate = (both[0] | both[1] if disjunction else both[0] & both[1]) if guarded else test

    def one(row: Row) -> Row | None:
        b = row[2]
        if guarded and b is not None and disjunction and b == "*":
            return row
        if guarded and b is not None and not disjunction and b == "*":
            return None
        value = number(b)
        passes = value is not None and value > bound
        return row if passes else None

    found = query.collection.filter(predicate).index_by("k")
    return Query(found, lambda given: by_row(query.rows(given), one), f"filter({query.text}, {predicate})")


def joined(query: Query, other: Query) -> Query:
    def rows(given: dict[str, Rows]) -> Rows:
        found: Rows = Counter()
        right = other.rows(given)
        for (k, x, b), many in query.rows(given).items():
            for (k2, x2, _), times in right.items():
                if k == k2:
                    found[k, added(x, x2), b] += many * times
        return found

    pairs = query.collection.join(other.collection, on="k")
    found = pairs.select("k", x=tk.col("x") + tk.col("x_right"), b="b").index_by("k")
    return Query(found, rows, f"join({query.text}, {other.text})")


def summed(query: Query) -> Query:
    found = sums(query.collection).index_by("k")
    return Query(found, lambda given: sums_of(query.rows(given)), f"sum({query.text})")


def sums(collection: tk.Collection) -> tk.Collection:
    return collection.group_by(("k", "b")).agg(x=tk.sum("x")).select("k", "x", "b")


def sums_of(rows: Rows) -> Rows:
    groups: dict[Row, list[int]] = {}
    for (k, x, b), many in rows.items():
        if many:
            groups.setdefault((k, b), []).extend([] if x is None else [x * many])
    return Counter({(k, fitting(sum(values)) if values else None, b): 1 for (k, b), values in groups.items()})


def summed_in_a_loop(query: Query) -> Query:
    return Query(query.collection.iterate(sums), lambda given: sums_of(query.rows(given)), f"loop sum({query.text})")


def replaced_in_a_loop(query: Query) -> Query:
    """A loop whose rows are replaced in each round: one that fails is gone in the next."""

    def one(row: Row) -> Row:
        k, x, b = row
        return (k, added(x, 1, number(b)), b) if x is not None and x < 5 else row

    def rows(given: dict[str, Rows]) -> Rows:
        found = query.rows(given)
        while (following := by_row(found, one)) != found:
            found = following
        return found

    def body(variable: tk.Collection) -> tk.Collection:
        x = tk.col("x")
        return variable.select("k", x=tk.when(x < 5, x + 1 + text_as_number).otherwise(x), b="b")

    return Query(query.collection.iterate(body), rows, f"replace({query.text})")


def united(query: Query, other: Query) -> Query:
    return Query(
        query.collection.concat(other.collection),
        lambda given: query.rows(given) + other.rows(given),
        f"union({query.text}, {other.text})",
    )


def distinct(query: Query) -> Query:
    return Query(
        query.collection.distinct(),
        lambda given: Counter({row: 1 for row, many in query.rows(given).items() if many}),
        f"distinct({query.text})",
    )


def at_most_two(key: Row, rows: list[tuple[Row, int]]) -> list[Row]:
    if len(rows) > 2:
        raise ValueError("more than two")
    return [row for row, _ in rows]


def reduced(query: Query) -> Query:
    def rows(given: dict[str, Rows]) -> Rows:
        found = Counter({row: 1 for row, many in query.rows(given).items() if many})
        sizes = Counter(k for k, _, _ in found)
        if any(size > 2 for size in sizes.values()):
            raise FailsError("more than two")
        return found

    found = query.collection.reduce(at_most_two, by="k", x=tk.Int, b=tk.String).index_by("k")
    return Query(found, rows, f"reduce({query.text})")


def no_threes(table: pa.Table) -> pa.Table:
    if "3" in table["b"].to_pylist():
        raise ValueError("three")
    return table


def through_python(query: Query) -> Query:
    def one(row: Row) -> Row:
        if row[2] == "3":
            raise FailsError("three")
        return row

    found = query.collection.map_batches(no_threes, k=tk.Int, x=tk.Int, b=tk.String)
    return Query(found, lambda given: by_row(query.rows(given), one), f"python({query.text})")


def repeated(query: Query) -> Query:
    """A loop that adds what the text says to x until that is five or more; texts of rows that are that far are not read."""

    def rows(given: dict[str, Rows]) -> Rows:
        found = {row for row, many in query.rows(given).items() if many}
        waiting = list(found)
        while waiting:
            k, x, b = waiting.pop()
            if x is not None and x < 5:
                new = (k, added(x, 1, number(b)), b)
                if new not in found:
                    found.add(new)
                    waiting.append(new)
        return Counter(dict.fromkeys(found, 1))

    start = query.collection

    def body(variable: tk.Collection) -> tk.Collection:
        more = variable.filter(tk.col("x") < 5).select("k", x=tk.col("x") + 1 + text_as_number, b="b")
        return more.concat(start).distinct()

    return Query(start.distinct().iterate(body), rows, f"loop({query.text})")


def query_at_random(sources: list[Query], operations: int, rng: random.Random) -> Query:
    pool = list(sources)
    for _ in range(operations):
        query, other = rng.choice(pool[-3:]), rng.choice(pool)
        kind = rng.choice(
            [
                "map",
                "map",
                "filter",
                "filter",
                "join",
                "sum",
                "union",
                "distinct",
                "reduce",
                "python",
                "loop",
                "replace",
                "loop sum",
            ]
        )
        match kind:
            case "map":
                pool.append(mapped(query, rng))
            case "filter":
                pool.append(filtered(query, rng))
            case "join":
                pool.append(joined(query, other))
            case "sum":
                pool.append(summed(query))
            case "union":
                pool.append(united(query, other))
            case "distinct":
                pool.append(distinct(query))
            case "reduce":
                pool.append(reduced(query))
            case "python":
                pool.append(through_python(query))
            case "replace":
                pool.append(replaced_in_a_loop(query))
            case "loop sum":
                pool.append(summed_in_a_loop(query))
            case _:
                pool.append(repeated(query))
    return pool[-1]


def outcome(read: Callable[[], Rows]) -> Rows | None:
    """The rows, or None if reading fails."""
    try:
        return read()
    except (tk.IncorrectError, tk.FaultError, FailsError):
        return None


def checked(view: tk.View, expected: Rows | None) -> None:
    found = outcome(lambda: Counter(view.multiplicities()))
    assert view.failure is None
    assert (view.error is None) == (expected is not None)
    assert found == (None if expected is None else Counter({row: many for row, many in expected.items() if many}))


@pytest.mark.executors("stages", "spark")
def test_a_read_fails_exactly_if_recomputing_the_query_fails() -> None:
    failing, working = Counter[bool](), 0

    @settings(max_examples=examples(by_day_or_night(20, 60)))
    @given(seed=st.integers(0, 2**32), operations=st.integers(1, 5), epochs=st.integers(2, 12))
    def check(seed: int, operations: int, epochs: int) -> None:
        rng = random.Random(seed)
        engine = make_engine(workers=rng.choice([1, 1, 3]), merging=rng.choice(["eager", "default", "lazy"]))
        names = ("a", "c")
        inputs = {name: engine.create_table(name, {"k": tk.Int, "x": tk.Int, "b": tk.String}) for name in names}
        held: dict[str, Rows] = {name: Counter() for name in names}

        def rows_of(name: str) -> Callable[[dict[str, Rows]], Rows]:
            return lambda given: given[name]

        sources = [Query(inputs[name], rows_of(name), name) for name in names]
        queries = [query_at_random(sources, operations, rng) for _ in range(2)]
        note(str([query.text for query in queries]))
        views: list[tuple[tk.View, Query]] = []
        for epoch in range(epochs):
            if rng.random() < 0.6 or not views:
                query = rng.choice(queries)
                views.append((engine.install(f"v{epoch}", query.collection), query))
            elif rng.random() < 0.2:
                views.pop(rng.randrange(len(views)))[0].drop()
            for name in names:
                there = [row for row, many in held[name].items() for _ in range(many)]
                gone = [row for row in rng.sample(there, rng.randint(0, len(there)))] if rng.random() < 0.7 else []
                # texts that fail are rare at first, so that many epochs have an answer
                allowed = TEXTS if rng.random() < 0.4 else ("1", "2", None)
                most = LARGE if rng.random() < 0.2 else 3
                new = [
                    (rng.randrange(2), rng.choice([0, 1, 2, most]), rng.choice(allowed))
                    for _ in range(rng.randrange(4))
                ]
                inputs[name].insert(new)
                inputs[name].remove(gone)
                held[name] += Counter(new)
                held[name] -= Counter(gone)
            engine.advance()
            if rng.random() < 0.3:
                engine.idle()
            nonlocal working
            for view, query in views:
                expected = outcome(lambda query=query: query.rows(held))  # type: ignore[misc]
                failing[expected is None] += 1
                checked(view, expected)
        working += 1
        engine.close()

    check()
    assert working > 1 and failing[True] and failing[False]


def of_multiplicities(held: Rows) -> dict[str, Rows]:
    """What `test_multiplicities...` asks, computed with numbers of any size."""
    joined: Rows = Counter()
    for (k, v), n in held.items():
        for (other, w), m in held.items():
            if k == other:
                joined[k, v, w] += n * m
    keys: Rows = Counter()
    sums: Rows = Counter()
    for (k, v, _), n in joined.items():
        keys[k,] += n
        sums[k,] += n * v
    there = [key for key, n in keys.items() if n]
    return {
        "pairs": joined,
        "keys": keys,
        "counts": Counter([(*key, keys[key]) for key in there]),
        "sums": Counter([(*key, sums[key]) for key in there]),
        "distinct": Counter(there),
        "both": Counter({(k,): n * n + n for k, n in totals(held).items()}),
    }


def totals(held: Rows) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for (k, _), n in held.items():
        found[k] += n
    return found


@pytest.mark.parametrize("seed", few_of(range(12), *range(6)))
def test_multiplicities_beyond_64_bits_are_an_error_never_a_wrong_answer(seed: int) -> None:
    rng = random.Random(seed)
    engine = make_engine()
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, checked=False)
    pairs = table.join(table.select(k="k", w="v"), on="k")
    queries = {
        "pairs": pairs,
        "keys": pairs.select("k"),
        "counts": pairs.count(by="k"),
        "sums": pairs.group_by("k").agg(total=tk.sum("v")),
        "distinct": pairs.select("k").distinct(),
        "both": pairs.select("k").concat(table.select("k")),
    }
    views = {name: engine.install(name, query) for name, query in queries.items()}
    held: Rows = Counter()
    for _ in range(8):
        row = (rng.randrange(2), rng.randrange(3))
        diff = max(rng.choice([1, -1, 2**31, 2**30 + 5, 2**32, -(2**31), 2**20]), -held[row])
        table.update([row], diffs=[diff])
        held[row] += diff
        engine.advance()
        wanted = of_multiplicities(held)
        for name, view in views.items():
            try:
                found = view.multiplicities()
            except tk.TektiteError as error:
                assert "64 bits" in str(error)
            else:
                assert found == {row: n for row, n in wanted[name].items() if n}
