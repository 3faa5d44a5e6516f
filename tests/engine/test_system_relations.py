"""System relations say what is so, follow what changes, and do not report on themselves."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.system.relations import RELATIONS, SYSTEM
from tests.support.executors import make_engine
from tests.support.patience import PATIENCE, eventually, until

pytestmark = pytest.mark.executors


def small_engine() -> tuple[tk.Engine, tk.Table, tk.View]:
    engine = make_engine(autocommit=True)
    sales = engine.create_table("sales", {"shop": str, "amount": int})
    totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
    sales.insert([("north", 3), ("south", 5)])
    engine.settle()
    return engine, sales, totals


@pytest.fixture
def work_is_counted(executor: str) -> None:
    """Operators note what they do in this process. A shard elsewhere does not."""
    if executor != "threads":
        pytest.skip("work is counted in this process alone")


def looked(engine: tk.Engine) -> int:
    """Look at the engine, as its thread does from time to time while somebody watches; how many epochs that closes."""
    core = core_of(engine)
    with core.lock.held:
        before = engine.next_epoch
        core.system.refresh()
        return engine.next_epoch - before


@pytest.mark.executors("stages", "spark")
def test_every_relation_can_be_read_in_every_language() -> None:
    engine, _, _ = small_engine()
    for name in RELATIONS:
        by_sql = engine.sql(f"SELECT * FROM system.{name}")
        assert by_sql.to_arrow().column_names == list(RELATIONS[name].columns)
        assert engine.table(f"system.{name}").schema == tk.Schema(RELATIONS[name].columns)
    engine.datalog("known(n) :- system.views(n, _, _, _, _, _, _, _, _, _, _, _, _).")
    assert engine.view("known").rows() == [("totals",)]
    assert engine.tables == ("sales",)


def test_what_is_asked_for_is_what_is_so() -> None:
    engine, sales, totals = small_engine()
    query = "SELECT name, state, rows, lag FROM system.views ORDER BY name"
    assert engine.sql(query).rows() == [("totals", "current", 2, 0)]
    sales.insert([("east", 1)])
    assert engine.sql(query).rows() == [("totals", "current", 3, 0)]
    engine.create_view("large", sales.filter(tk.col("amount") > 4))
    assert [row[0] for row in engine.sql(query).rows()] == ["large", "totals"]
    assert sorted(engine.sql("SELECT index, reader FROM system.index_readers").rows()) == [
        ("sales", "large"),
        ("sales", "totals"),
    ]
    totals.drop()
    assert [row[0] for row in engine.sql(query).rows()] == ["large"]
    (shown,) = engine.sql("SELECT rows, bytes, readers FROM system.indexes WHERE name = 'sales'").rows()
    (info,) = [index for index in engine.indexes() if index.name == "sales"]
    assert shown == (info.rows, info.bytes, 1)


def test_indexes_and_sweeps_have_a_first_time_and_a_last_one() -> None:
    engine, sales, _ = small_engine()
    before = sales.insert([("east", 1)])
    with engine.hold(sales):
        after = sales.insert([("east", 2)])
        ((first, time),) = engine.sql("SELECT first, time FROM system.indexes WHERE name = 'sales'").rows()
        (info,) = engine.indexes(sales)
        assert first == info.first == before and info.time == sales.time and after <= time <= info.time
    swept = engine.sql("SELECT first, time FROM system.sweeps WHERE name = 'totals' ORDER BY number").rows()
    assert swept == [(s.first, s.time) for s in engine.progress if s.name == "totals"] and (after, after) in swept


def test_a_view_over_them_follows_though_nobody_commits() -> None:
    engine, sales, _ = small_engine()
    text = """SELECT v.name, i.name AS index FROM system.views v, system.index_readers r, system.indexes i
              WHERE r.reader = v.name AND i.name = r.index"""
    engine.sql(f"CREATE MATERIALIZED VIEW sharing AS {text}")
    assert engine.view("sharing").rows() == [("totals", "sales")]
    engine.create_view("large", sales.filter(tk.col("amount") > 4))
    eventually(lambda: sorted(engine.view("sharing").rows()), [("large", "sales"), ("totals", "sales")])
    engine.drop_view("large")
    eventually(lambda: engine.view("sharing").rows(), [("totals", "sales")])


def test_looking_changes_nothing(executor: str) -> None:
    engine, sales, _ = small_engine()
    views = engine.create_view("watched", engine.table("system.views").select("name", "time", "bytes"))
    work = engine.create_view("work", engine.table("system.work"))
    memory = engine.create_view("memory", engine.table("system.memory"))
    sales.insert([("north", 1)])
    eventually(lambda: [row[:2] for row in views.rows()], [("totals", engine.table("system.views").rows()[0][5])])
    until(lambda: not looked(engine))
    assert not any(looked(engine) for _ in range(5)), "system relations must not change because they were written"
    names = {row[0] for row in views.rows()}
    assert names == {"totals"}, "queries over system relations are not reported"
    assert all("system" not in owner for _, owner, _ in memory.rows())
    assert len(work.rows()) > 0 or executor != "threads"


def test_a_subscription_gets_changes_that_add_up() -> None:
    engine, sales, _ = small_engine()
    subscription = engine.table("system.tables").subscribe()
    held: dict[tuple[Any, ...], int] = {}

    def take() -> list[int]:
        while (delta := subscription.poll(0)) is not None:
            for row in delta.table.to_pylist():
                diff = row.pop("diff")
                key = tuple(row.values())
                held[key] = held.get(key, 0) + diff
        return sorted(key[3] for key, times in held.items() if times)

    eventually(take, [2])
    sales.insert([("north", 1), ("north", 2)])
    eventually(take, [4])
    engine.create_table("others", {"x": int})
    eventually(take, [0, 4])
    assert set(held.values()) <= {0, 1}


def test_the_example_of_the_paper() -> None:
    engine, _, _ = small_engine()
    found = engine.query(
        "[:find ?name (sum ?size) :where [?x :differential.event/size ?size] [?x :timely.event.operates/name ?name] "
        "(not [?x :timely.event.operates/shutdown? true])]"
    ).rows()
    by_table: dict[str, int] = {}
    for name, rows in engine.sql("SELECT name, rows FROM system.operators").rows():
        by_table[name] = by_table.get(name, 0) + rows
    assert {name: size for name, size in found if size} == {name: rows for name, rows in by_table.items() if rows}


def test_epochs_say_what_they_took() -> None:
    engine, sales, _ = small_engine()
    table = engine.table("system.epochs")
    assert table.rows() == [], "what nobody asked for is not noted"
    for amount in range(300):
        sales.insert([("north", amount), ("south", amount)])
    sales.remove([("north", 0)])
    last = engine.next_epoch - 1
    found = sorted(engine.sql("SELECT * FROM system.epochs").rows())
    assert len(found) == 256 and found[-1][0] == last
    assert [row[2] for row in found] == [2] * 255 + [1]
    for _, at, _, *phases, seconds in found:
        assert seconds == pytest.approx(sum(phases)) and min(phases) >= 0
        assert abs(at.timestamp() - time.time()) < 300


def test_epochs_do_not_report_on_themselves() -> None:
    engine, sales, _ = small_engine()
    watched = engine.create_view("watched", engine.table("system.epochs").select("epoch", "rows"))
    sales.insert([("west", 1)])
    eventually(lambda: [rows for _, rows in watched.rows()], [1])
    looked(engine)
    assert [rows for _, rows in watched.rows()] == [1]


def test_a_refused_epoch_is_none() -> None:
    engine = make_engine(autocommit=True)
    keyed = engine.create_table("keyed", {"k": int}, primary_key="k")
    engine.table("system.epochs")
    keyed.insert([(1,)])
    with pytest.raises(tk.ConflictError):
        keyed.insert([(1,)])
    assert [row[2] for row in engine.table("system.epochs").rows()] == [1]


def test_granularity_takes_changes_together() -> None:
    engine, sales, _ = small_engine()
    engine.set_system_granularity(0.05)
    engine.set_system_granularity(3600, "system.tables")
    slow = engine.create_view("slow", engine.table("system.tables").select("rows"))
    quick = engine.create_view("quick", engine.table("system.views").select("rows"))
    sales.insert([("west", 1)])
    eventually(quick.rows, [(3,)])
    assert slow.rows() == [(2,)]
    assert engine.sql("SELECT rows FROM system.tables").rows() == [(3,)], "who asks gets what is so"
    with pytest.raises(tk.NotFoundError, match="system.table"):
        engine.set_system_granularity(1, "system.table")
    for wrong in (0, -1, float("inf"), "1 s"):
        with pytest.raises(tk.IncorrectError, match="positive number"):
            engine.set_system_granularity(wrong)  # type: ignore[arg-type]


def shared_engine() -> tuple[tk.Engine, tk.Table]:
    """Two views that share an index, one of which other views read, and a loop."""
    engine = make_engine(autocommit=True)
    edges = engine.create_table("edges", {"src": int, "dst": int})
    engine.sql("CREATE MATERIALIZED VIEW hops AS SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src")
    engine.sql(
        "CREATE MATERIALIZED VIEW siblings AS SELECT a.src, b.src AS other FROM edges a JOIN edges b ON a.dst = b.dst"
    )
    engine.datalog("reach(x, y) :- edges(x, y).  reach(x, z) :- reach(x, y), edges(y, z).")
    engine.view("reach")
    edges.insert([(0, 1), (1, 2), (2, 3)])
    engine.settle()
    return engine, edges


def test_the_graph_of_operators_is_whole() -> None:
    engine, _ = shared_engine()
    operators = {row[0]: row for row in engine.table("system.operators").rows()}
    channels = engine.table("system.channels").rows()
    assert all(source in operators or source is None for source, *_ in channels)
    assert all(target in operators for _, target, *_ in channels)
    reached = {target for _, target, *_ in channels}
    assert reached == operators.keys() - {id for id, row in operators.items() if row[2] == "errors"}, (
        "rows come to every operator from somewhere"
    )
    read = {(source, index) for source, _, kind, index, _ in channels if kind == "reads"}
    assert (None, "edges") in read, "a table has no operator"
    kept = dict(engine.sql("SELECT name, operator FROM system.indexes WHERE kind = 'index'").rows())
    assert (kept["edges by (dst)"], "edges by (dst)") in read
    shared = {row[1] for row in operators.values() if row[7]}
    names = dict(engine.sql("SELECT id, name FROM system.dataflows").rows())
    assert {names[flow] for flow in shared} == kept.keys()
    texts = {row[8] for row in operators.values() if row[2] == "join"}
    assert texts == {"join on dst = src", "join on dst = dst", "join on y = src"}
    kinds = dict(engine.sql("SELECT name, kind FROM system.indexes").rows())
    assert (kinds["edges"], kinds["hops"], kinds["edges by (dst)"]) == ("table", "view", "index")


def test_views_are_joined_with_what_they_read_by_their_dataflow() -> None:
    engine, edges = shared_engine()
    core_of(engine).install_together(
        {"low": edges.filter(tk.col("src") < 2), "high": edges.filter(tk.col("src") > 2)}, {}
    )
    found = engine.sql(
        "SELECT v.name, r.index FROM system.views v JOIN system.index_readers r ON r.dataflow = v.dataflow ORDER BY 1, 2"
    ).rows()
    assert ("high", "edges") in found and ("low", "edges") in found
    assert ("hops", "edges by (dst)") in found and ("siblings", "edges by (dst)") in found


def test_queries_that_clients_follow_or_prepared_are_readers() -> None:
    engine, _ = shared_engine()
    engine.sql("CREATE INDEX by_dst ON edges (dst)")
    for name in ("hops", "siblings"):
        engine.drop_view(name)
    engine.sql("CREATE TABLE people (id int PRIMARY KEY)")

    def unread() -> list[tuple[str]]:
        return engine.sql("SELECT about FROM system.advice WHERE kind = 'unread'").rows()

    assert unread() == [("edges by (dst)",)]
    followed = engine.sql("SUBSCRIBE (SELECT id, src FROM people JOIN edges ON dst = id)").subscription
    assert followed is not None
    read = (
        "SELECT reader, d.kind FROM system.index_readers r JOIN system.dataflows d ON d.id = r.dataflow "
        "WHERE index = 'edges by (dst)'"
    )
    ((reader, kind),) = engine.sql(read).rows()
    assert reader.startswith("shared query ") and kind == "query" and unread() == []
    engine.sql("PREPARE sources AS SELECT src FROM edges WHERE dst = $1")
    engine.sql("EXECUTE sources(2)")
    names = {name for (name,) in engine.sql("SELECT name FROM system.dataflows WHERE kind = 'query'").rows()}
    assert names == {reader, "prepared sources"}
    assert all(not name.startswith("__") for (name,) in engine.sql("SELECT reader FROM system.index_readers").rows())


@pytest.mark.usefixtures("work_is_counted")
def test_changes_rounds_and_traffic_are_counted() -> None:
    engine, edges = shared_engine()
    for name in ("traffic", "work"):
        engine.table(f"system.{name}")
    before = dict(engine.sql("SELECT name, changes FROM system.views").rows())
    ((last, rounds),) = engine.sql("SELECT last_rounds, rounds FROM system.loops WHERE loops = 'reach'").rows()
    assert last == rounds == 2
    edges.insert([(3, 4)])
    engine.settle()
    after = dict(engine.sql("SELECT name, changes FROM system.views").rows())
    assert {name: after[name] - before[name] for name in after} == {"hops": 1, "siblings": 1, "reach": 4}
    assert engine.sql("SELECT last_rounds, rounds FROM system.loops WHERE loops = 'reach'").rows() == [(3, 5)]
    traffic = engine.table("system.traffic").rows()
    assert {(row[:4]) for row in traffic} <= {row[:4] for row in engine.table("system.channels").rows()}
    assert sum(rows for source, _, _, index, rows in traffic if source is None and index == "edges") >= 4
    carried = sum(rows for _, _, kind, _, rows in traffic if kind == "sends")
    assert carried == sum(row[4] for row in engine.table("system.work").rows())
    edges.remove([(3, 4)])
    engine.settle()
    ((again,),) = engine.sql("SELECT changes FROM system.views WHERE name = 'reach'").rows()
    assert again == after["reach"] + 4, "what is taken away is a change"


def test_errors_are_listed_while_they_stand() -> None:
    engine = make_engine(autocommit=True)
    texts = engine.create_table("texts", {"t": str})
    engine.create_view("numbers", texts.select(n=tk.col("t").cast(int)))
    texts.insert([("one",)])
    engine.settle()
    ((view, kind, message),) = engine.sql("SELECT * FROM system.errors").rows()
    assert (view, kind) == ("numbers", "rows") and "'one'" in message
    assert engine.sql("SELECT state FROM system.views").rows() == [("error",)]
    texts.remove([("one",)])
    engine.settle()
    assert engine.sql("SELECT * FROM system.errors").rows() == []


@pytest.mark.parametrize(
    "write",
    [
        lambda e: e.sql("INSERT INTO system.errors VALUES ('a', 'b', 'c')"),
        lambda e: e.sql("DELETE FROM system.views"),
        lambda e: e.table("system.errors").insert([("a", "b", "c")]),
        lambda e: e.table("system.errors").update([("a", "b", "c")]),
        lambda e: e.drop_table("system.errors"),
        lambda e: e.sql("DROP TABLE system.views"),
        lambda e: e.create_table("system.views", {"x": int}),
    ],
)
def test_nobody_else_writes_to_them(write: Any) -> None:
    engine, _, _ = small_engine()
    engine.table("system.errors"), engine.table("system.views")
    with pytest.raises(tk.TektiteError, match="system"):
        write(engine)
    assert engine.sql("SELECT name FROM system.views").rows() == [("totals",)]


def test_their_names_are_taken_before_anybody_asks() -> None:
    engine = make_engine(autocommit=True)
    with pytest.raises(tk.ConflictError, match="'system.views' is a system relation"):
        engine.create_table("system.views", {"x": int})
    engine.sql("CREATE SCHEMA system")
    with pytest.raises(tk.ConflictError, match="'system.views'"):
        engine.sql("CREATE TABLE system.views (x int)")


def test_a_commit_that_is_refused_leaves_them_right() -> None:
    engine = make_engine(autocommit=True)
    keyed = engine.create_table("keyed", {"k": int}, primary_key="k")
    watched = engine.create_view("watched", engine.table("system.tables").select("name", "rows"))
    keyed.insert([(1,)])
    for _ in range(3):
        with pytest.raises(tk.ConflictError):
            keyed.insert([(1,)])
        looked(engine)
    keyed.insert([(2,)])
    eventually(watched.rows, [("keyed", 2)])
    assert engine.sql("SELECT name, rows FROM system.tables").rows() == [("keyed", 2)]


def test_an_engine_without_epochs_of_its_own_follows_with_advance() -> None:
    engine = make_engine(autocommit=False)
    table = engine.create_table("t", {"x": int})
    watched = engine.create_view("watched", engine.table("system.tables").select("name", "rows"))
    table.insert([(1,)])
    engine.advance()
    assert engine.next_epoch == 1
    assert looked(engine) == 0
    engine.advance()
    assert watched.rows() == [("t", 1)]


def test_a_storage_does_not_keep_them(tmp_path: Path) -> None:
    with make_engine(autocommit=True, storage=tmp_path / "store") as engine:
        engine.create_table("t", {"x": int}).insert([(1,)])
        ((url, *_),) = engine.sql("SELECT url, files FROM system.storage").rows()
        assert str(tmp_path) in url
    with make_engine(autocommit=True, storage=tmp_path / "store") as engine:
        assert engine.tables == ("t",)
        assert engine.sql("SELECT name, rows, stored FROM system.tables").rows() == [("t", 1, True)]


def test_threads_that_ask_while_others_write() -> None:
    engine, sales, _ = small_engine()
    stop, failures = threading.Event(), []

    def ask() -> None:
        try:
            while not stop.is_set():
                for name in SYSTEM:
                    engine.table(name).rows()
        except BaseException as error:
            failures.append(error)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    for number in range(100):
        sales.insert([("north", number)])
        if number % 10 == 0:
            engine.create_view(f"v{number}", sales.filter(tk.col("amount") > number))
    stop.set()
    for thread in asking:
        thread.join()
    assert failures == []
    assert len(engine.sql("SELECT name FROM system.views").rows()) == 11
    engine.close()


@pytest.mark.usefixtures("work_is_counted")
def test_explain_analyze_and_profiles_count_rows() -> None:
    engine, sales, _ = small_engine()
    lines = [row[0] for row in engine.sql("EXPLAIN ANALYZE SELECT shop, count(*) FROM sales GROUP BY shop").rows()]
    assert "operators" in lines and lines[-1] == "2 rows"
    data = json.loads(str(engine.sql("EXPLAIN (ANALYZE, FORMAT JSON) SELECT shop, count(*) FROM sales GROUP BY shop")))
    texts = {each["text"] for each in data["operators"]}
    assert data["analyzed"]["rows"] == 2
    assert {each["text"] for each in data["analyzed"]["operators"]} <= texts, "figures belong to lines of the plan"
    with engine.profile() as profile:
        with pytest.raises(tk.ConflictError, match="complete at the end"):
            _ = profile.operators
        sales.insert([("west", 1), ("west", 2)])
        engine.settle()
    received = [each.received for each in profile.operators if each.dataflow == "totals"]
    assert max(received) == 2
    assert profile.table().num_rows == len(profile.operators) == len(profile.folded().splitlines())
    assert "totals" in str(profile)


@pytest.mark.usefixtures("work_is_counted")
def test_explain_analyze_tells_memory_and_sharing_of_what_is_gone_afterwards() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE sales (id int PRIMARY KEY, shop int); CREATE TABLE shops (shop int PRIMARY KEY, town int)")
    engine.table("sales").insert({"id": list(range(900)), "shop": [number % 7 for number in range(900)]})
    engine.table("shops").insert({"shop": list(range(7)), "town": list(range(7))})
    query = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT town, count(*) FROM sales JOIN shops ON shops.shop = sales.shop GROUP BY town"
    for _ in range(2):  # the second one finds the graph of the first
        analyzed = json.loads(str(engine.sql(query)))["analyzed"]["operators"]
        kept = {(each["dataflow"], each["operator"], each["shared"]): each["bytes"] for each in analyzed}
        assert kept[("sales by (shop)", "arrange by (shop)", True)] > 900
        assert kept[("query", "aggregate", False)] > 0
        assert {name for name, _, _ in kept} == {"query", "sales by (shop)"}


def advised(engine: tk.Engine) -> dict[str, list[str]]:
    engine.settle()
    found: dict[str, list[str]] = {}
    for kind, about in engine.sql("SELECT kind, about FROM system.advice ORDER BY kind, about").rows():
        found.setdefault(kind, []).append(about)
    return found


def test_advice_names_what_could_be_better() -> None:
    engine = make_engine(workers=2, autocommit=True)
    sales = engine.create_table("sales", {"shop": int, "amount": int})
    sales.insert({"shop": [number % 7 for number in range(1000)], "amount": list(range(1000))})
    assert advised(engine) == {}
    index = engine.create_index(sales, by="amount")
    assert advised(engine) == {"unread": ["sales by (amount)"]}
    reader = engine.create_view("reader", sales.join(sales.select(x="amount"), left_on="amount", right_on="x"))
    assert "unread" not in advised(engine)
    reader.drop()
    index.drop()
    assert advised(engine) == {}
    users = engine.create_table("users", {"id": int, "mail": str}, unique="mail")
    users.insert([(1, "a"), (2, "b")])
    users.insert([(3, "c")])  # the index that tells whether a value is there is read by no query, and needed
    assert advised(engine) == {}
    totals = sales.group_by("shop").agg(total=tk.sum("amount"))
    engine.create_view("many", totals.filter(tk.col("total") > 100))
    assert advised(engine) == {}
    engine.create_view("few", totals.filter(tk.col("total") < 100))
    (repeated,) = advised(engine)["repeated"]
    assert "sales" in repeated
    engine.drop_view("few")
    visits = engine.create_table("visits", {"id": int, "page": int})
    visits.insert({"id": list(range(20_000)), "page": [3] * 19_000 + list(range(1000))})
    keyed = engine.create_index(visits, by="page")
    assert advised(engine).get("skewed", []) == ["visits by (page)"]
    keyed.drop()
    texts = engine.create_table("texts", {"t": str})
    engine.create_view("numbers", texts.select(n=tk.col("t").cast(int)))
    texts.insert([("one",)])
    engine.settle()
    assert advised(engine)["failing"] == ["numbers"]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_index_that_queries_make_again_and_again_is_worth_keeping(workers: int) -> None:
    engine = make_engine(workers=workers, autocommit=True)
    engine.sql("CREATE TABLE sales (id int PRIMARY KEY, shop int); CREATE TABLE shops (shop int PRIMARY KEY, town int)")
    engine.table("sales").insert({"id": list(range(30_000)), "shop": [number % 700 for number in range(30_000)]})
    engine.table("shops").insert({"shop": list(range(700)), "town": [number % 9 for number in range(700)]})

    def ask(times: int) -> None:
        for number in range(times):
            query = (
                "SELECT town, count(*) FROM sales JOIN shops ON shops.shop = sales.shop WHERE town <> $1 GROUP BY town"
            )
            assert len(engine.sql(query, [number]).rows()) == 8

    ask(4)
    assert advised(engine) == {}, "so few are no habit"
    ask(1)
    assert advised(engine) == {"rebuilt": ["sales by (shop)"]}, "and shops are too small to matter"
    ((message, size),) = engine.sql("SELECT message, bytes FROM system.advice").rows()
    assert message.startswith("queries made this index 5 times, of 150,000 rows in all") and size > 30_000
    engine.sql("CREATE INDEX by_shop ON sales (shop)")
    assert advised(engine) == {"unread": ["sales by (shop)"]}
    before = list(core_of(engine).catalog.discarded)
    ask(6)
    assert advised(engine) == {}, "queries that are answered once read the index, and make none"
    assert list(core_of(engine).catalog.discarded) == before
    engine.sql(
        "DROP INDEX by_shop; CREATE MATERIALIZED VIEW large AS SELECT sales.id FROM sales JOIN shops USING (shop)"
    )
    assert "rebuilt" not in advised(engine), "a standing query keeps one, and others share it"
    engine.sql("DROP MATERIALIZED VIEW large; DROP TABLE sales")
    assert advised(engine) == {}


def test_rights_hold_for_them_and_catalogs_go_on() -> None:
    engine, _, _ = small_engine()
    engine.sql("CREATE ROLE bob LOGIN; CREATE SCHEMA other; CREATE TABLE other.t (x int)")
    bob = engine.session()
    bob.sql("SET ROLE bob")
    with pytest.raises(tk.TektiteError, match="permission denied"):
        bob.sql("EXPLAIN ANALYZE SELECT * FROM sales")
    assert bob.sql("SELECT name FROM system.views").rows() == []
    engine.sql("GRANT SELECT ON system.views TO bob")
    assert bob.sql("SELECT name FROM system.views").rows() == [("totals",)]
    followed = bob.sql("SUBSCRIBE system.views").subscription
    assert followed is not None and {change.row[0] for change in followed.changes()} == {"totals"}
    assert engine.sql("SUBSCRIBE other.t").subscription is not None
    for name in SYSTEM:  # every table is there
        engine.table(name)
    assert ("sales",) in engine.sql("SELECT relname FROM pg_catalog.pg_class").rows()
    assert engine.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'other'").rows() == [
        ("t",)
    ]


def test_a_subscription_is_told_of_an_engine_that_nobody_has_written_to() -> None:
    engine = make_engine(autocommit=True)
    sales = engine.create_table("sales", {"shop": str, "amount": int})
    engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
    with engine.sql("SUBSCRIBE (SELECT name, state FROM system.views)").subscription as followed:
        delta = followed.poll(PATIENCE)
    assert delta is not None and [row["name"] for row in delta.table.to_pylist()] == ["totals"]


def test_rows_are_counted_as_often_as_they_are_there_and_without_their_history() -> None:
    engine = make_engine(autocommit=True)
    numbers = engine.create_table("numbers", {"n": int})
    engine.create_view("counted", numbers.count(by="n"))
    engine.create_view("all", numbers.filter(tk.col("n") > 0))
    for _ in range(100):
        numbers.insert([(1,), (1,), (2,)])
    engine.sql("DELETE FROM numbers WHERE n = 2")
    engine.settle()
    assert engine.sql("SELECT name, rows FROM system.views ORDER BY name").rows() == [("all", 200), ("counted", 1)]
    assert engine.sql("SELECT rows FROM system.tables").rows() == [(200,)]
    indexes = engine.sql("SELECT name, rows FROM system.indexes").rows()
    assert {("numbers", 200), ("counted", 1)} <= set(indexes)
    assert ">200</td>" in engine._repr_html_()


def test_owners_are_named_where_there_are_roles() -> None:
    engine, _, _ = small_engine()
    query = "SELECT name, owner FROM system.views UNION ALL SELECT name, owner FROM system.tables ORDER BY name"
    assert engine.sql(query).rows() == [("sales", None), ("totals", None)]
    engine.sql("CREATE USER ann; ALTER TABLE sales OWNER TO ann")
    assert engine.sql(query).rows() == [("sales", "ann"), ("totals", None)]


@pytest.mark.usefixtures("work_is_counted")
def test_the_work_of_each_epoch_adds_up_to_that_of_all() -> None:
    engine, sales, _ = small_engine()
    by_epoch = "SELECT epoch, sum(runs), sum(received) FROM system.epoch_work GROUP BY epoch ORDER BY epoch"
    assert engine.sql(by_epoch).rows() == []
    first = sales.insert([("east", 1), ("west", 2)])
    sales.insert([("east", 1)])
    found = engine.sql(by_epoch).rows()
    assert [epoch for epoch, _, _ in found] == [first, first + 1]
    assert found[0][2] == 2 * found[1][2] > 0
    together = tuple(sum(column) for column in list(zip(*found, strict=True))[1:])
    assert engine.sql("SELECT sum(runs), sum(received) FROM system.work").rows() == [together]


@pytest.mark.usefixtures("work_is_counted")
def test_the_work_of_epochs_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tektite.dataflow.work_log.KEPT_LINES", 4)
    engine, sales, _ = small_engine()
    engine.table("system.epoch_work")
    for number in range(20):
        last = sales.insert([("east", number)])
    epochs = [epoch for (epoch,) in engine.sql("SELECT DISTINCT epoch FROM system.epoch_work ORDER BY epoch").rows()]
    assert epochs[-1] == last and len(epochs) <= 4


def test_merges_are_listed_with_what_they_have_done() -> None:
    engine = make_engine(autocommit=True)
    numbers = engine.create_table("numbers", {"n": int})
    for start in range(0, 400_000, 20_000):
        numbers.insert({"n": range(start, start + 20_000)})
    found = engine.sql("SELECT merged, open, rows, done FROM system.merges WHERE name = 'numbers'").rows()
    assert sum(merged for merged, *_ in found) > 0
    assert all(done <= rows and bool(rows) == bool(open) for _, open, rows, done in found)
