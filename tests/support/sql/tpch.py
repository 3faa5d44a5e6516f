"""TPC-H as it loads: the eight relations round-robin, with orders and lineitems deleted, changed and inserted beside.

`Run` keeps an engine and DuckDB at the same state, checkpoint by checkpoint, and collects for each query in what its
view differs from DuckDB's answer. One query's failure does not stop the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks.tpch import KEYS, QUERIES, RELATIONS, Query, load, query, round_robin, schema
from tests.support.sql.oracle import Oracle, ordered_difference, spoken, top_difference, unlimited

# With the validation parameters some answers are nearly empty at a small scale factor. These replacements let more rows
# through, and are checked beside the standard's text.
WIDER = {
    2: (("p_size = 15", "p_size < 30"), ("p_type like '%BRASS'", "p_type like '%S%'")),
    5: (("r_name = 'ASIA'", "r_name <> 'ASIA'"),),
    7: (
        ("n1.n_name = 'FRANCE'", "n1.n_name < 'FRANCE'"),
        ("n2.n_name = 'FRANCE'", "n2.n_name < 'FRANCE'"),
        ("n2.n_name = 'GERMANY'", "n2.n_name > 'G'"),
        ("n1.n_name = 'GERMANY'", "n1.n_name > 'G'"),
    ),
    8: (("p_type = 'ECONOMY ANODIZED STEEL'", "p_type like '%STEEL'"), ("'BRAZIL'", "'INDIA'")),
    11: (("n_name = 'GERMANY'", "n_name < 'K'"),),
    14: (("interval '1' month", "interval '2' year"),),
    17: (("p_container = 'MED BOX'", "p_container like 'MED%'"), ("0.2 *", "0.6 *")),
    18: (("> 300", "> 220"),),
    19: (("and p_size between 1 and 5", ""), ("and l_shipinstruct = 'DELIVER IN PERSON'", "")),
    20: (("like 'forest%'", "like '%o%'"), ("n_name = 'CANADA'", "n_name > 'F'"), ("0.5 *", "50 *")),
    21: (("n_name = 'SAUDI ARABIA'", "n_name > 'C'"),),
    22: (("c_acctbal > 0.00", "c_acctbal > -500.00"),),
}


def wider(number: int) -> Query:
    """A query whose parameters let more rows through."""
    found = query(number, scale=0.2)
    select = found.select
    for old, new in WIDER[number]:
        assert old in select, (number, old)
        select = select.replace(old, new)
    return Query(number, found.before, select)


def expected(oracle: Oracle, ours: list[tuple[Any, ...]], text: str) -> str | None:
    """In what an ordered answer differs from DuckDB's."""
    _, keys, limit, _ = unlimited(spoken(text))
    if limit is not None:
        return top_difference(ours, oracle, text)
    return ordered_difference(ours, oracle.rows(text), keys)


class Run:
    """An engine and DuckDB over the same relations; `faults` has what was found wrong, by the name of the view."""

    def __init__(self, engine: Any, scale: float, seed: int = 0) -> None:
        self.engine = engine
        self.oracle = Oracle()
        self.scale = scale
        self.random = random.Random(seed)
        self.source = load(scale)
        self.selects: dict[str, str] = {}
        self.faults: dict[str, list[str]] = {}
        self.checkpoint = 0
        engine.sql(schema())
        for name in RELATIONS:
            self.oracle.create(name, self.source[name].schema)
        # Every tenth order is kept back with its lineitems, to be inserted by a refresh.
        self.kept_back = self.oracle_split()

    def oracle_split(self) -> dict[str, pa.Table]:
        """Take the orders that are kept back, and their lineitems, out of what will be loaded."""
        kept = {}
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            keys = self.source[name][key].to_numpy()
            late = keys // 8 % 10 == 3
            kept[name] = self.source[name].filter(pa.array(late))
            self.source[name] = self.source[name].filter(pa.array(~late))
        return kept

    # ------------------------------------------------------------------ queries

    def install(self, name: str, found: Query) -> None:
        """Maintain a query under a name from here on."""
        self.selects[name] = found.select
        self.faults.setdefault(name, [])
        try:
            for statement in found.before:
                self.define(statement)
            self.engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {found.select}")
        except Exception as error:
            self.fault(name, f"cannot be installed: {type(error).__name__}: {error}")
            del self.selects[name]

    def define(self, statement: str) -> None:
        """Create a view of the text's own (Q15's), unless another query has."""
        name = statement.split()[2]
        if self.oracle.rows(f"SELECT 1 FROM duckdb_views() WHERE view_name = '{name}'"):
            return
        self.oracle.execute(statement)
        self.engine.sql(statement)

    def drop(self, name: str) -> None:
        if name in self.selects:
            self.engine.sql(f"DROP MATERIALIZED VIEW {name}")
            del self.selects[name]

    def fault(self, name: str, message: str) -> None:
        self.faults[name].append(f"checkpoint {self.checkpoint}: {message}")

    def check(self) -> None:
        """Close the epoch and compare every view with DuckDB."""
        self.engine.advance()
        for name, select in self.selects.items():
            try:
                found = top_difference(self.engine.view(name).rows(), self.oracle, select)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found is not None:
                self.fault(name, found)
        self.checkpoint += 1

    def check_selects(self) -> None:
        """Ask every query once as a SELECT, whose rows come in the order it asks for."""
        for name, select in self.selects.items():
            try:
                table = self.engine.sql(select).table
                ours = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
                found = expected(self.oracle, ours, select)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found is not None:
                self.fault(name, f"asked once, {found}")

    # ------------------------------------------------------------------ changes

    def load(self, parts: int) -> Iterator[int]:
        """Load one part after the other, round-robin; yields after each, before the epoch is closed."""
        sizes = {name: table.num_rows for name, table in self.source.items()}
        for number, part in enumerate(round_robin(sizes, parts)):
            for name, (start, stop) in part.items():
                self.insert(name, self.source[name].slice(start, stop - start))
            yield number

    def insert(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.change_rows(name, rows, 1)
            self.oracle.insert(name, rows)

    def change_rows(self, name: str, rows: pa.Table, diff: int) -> None:
        """Let the engine have rows (1), or take them away from it (-1)."""
        table = self.engine.table(name)
        (table.insert if diff > 0 else table.remove)(rows)

    def remove(self, name: str, condition: str) -> pa.Table:
        """Delete the rows for which a condition is true; which these were."""
        rows = self.oracle.table(f"SELECT * FROM {name} WHERE {condition}")
        if rows.num_rows:
            self.change_rows(name, rows, -1)
            self.oracle.execute(f"DELETE FROM {name} WHERE {condition}")
        return rows

    def statement(self, text: str) -> None:
        """A DELETE or UPDATE in SQL, on both sides."""
        self.engine.sql(text)
        self.oracle.execute(text)

    def some_orders(self, share: float) -> str:
        """A condition on order keys that about a share of the orders fulfil, and no one knows which."""
        keys = [key for (key,) in self.oracle.rows("SELECT o_orderkey FROM orders ORDER BY 1")]
        chosen = self.random.sample(keys, min(len(keys), max(1, int(len(keys) * share))))
        return f"IN ({', '.join(map(str, sorted(chosen)))})" if chosen else "IN (-1)"

    def rf1(self, share: float) -> None:
        """Insert some of the orders that were kept back, with their lineitems."""
        keys = self.kept_back["orders"]["o_orderkey"].to_numpy()
        chosen = set(keys[: max(1, int(len(keys) * share))].tolist())
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            rows = self.kept_back[name]
            now = pa.array([k in chosen for k in rows[key].to_pylist()], pa.bool_())
            self.insert(name, rows.filter(now))
            self.kept_back[name] = rows.filter(pa.compute.invert(now))

    def rf2(self, share: float) -> None:
        """Delete some orders with their lineitems."""
        chosen = self.some_orders(share)
        self.remove("orders", f"o_orderkey {chosen}")
        self.remove("lineitem", f"l_orderkey {chosen}")

    def change(self, share: float) -> None:
        """Replace some orders and lineitems, keys and all, by changed ones."""
        chosen = self.some_orders(share)
        for name, key, columns in (
            ("orders", "o_orderkey", {"o_totalprice": "o_totalprice + 100", "o_orderdate": "o_orderdate - 200",
                                      "o_custkey": "o_custkey % 90 + 1", "o_orderpriority": "'1-URGENT'"}),
            ("lineitem", "l_orderkey", {"l_quantity": "51 - l_quantity", "l_shipdate": "l_shipdate + 30",
                                        "l_receiptdate": "l_receiptdate + 60", "l_shipmode": "'MAIL'",
                                        "l_discount": "0.10 - l_discount"}),
        ):  # fmt: skip
            old = self.remove(name, f"{key} {chosen}")
            if old.num_rows:
                self.oracle.connection.register("old", old)
                computed = ", ".join(f"{expression} AS {column}" for column, expression in columns.items())
                new = self.oracle.table(f"SELECT * REPLACE ({computed}) FROM old").cast(old.schema)
                self.oracle.connection.unregister("old")
                self.insert(name, new)

    def close(self) -> None:
        self.oracle.close()
        self.engine.close()


__all__ = ["KEYS", "QUERIES", "Run", "WIDER", "query", "wider"]
