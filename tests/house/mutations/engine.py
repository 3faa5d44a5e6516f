"""Faults of the engine: constraints, inputs, the catalog, views."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.trace.records import Version
from tests.house.mutations.fault import Fault, being, misled, nothing, returning
from tests.support.row_changes import row_changes


def a_required_column_holds_no_null() -> None:
    with tk.Engine(autocommit=False) as engine, pytest.raises(tk.IncorrectError):
        engine.sql("CREATE TABLE t (x int NOT NULL); INSERT INTO t VALUES (NULL)")


def a_required_column_of_tuples_holds_no_null() -> None:
    with tk.Engine() as engine, pytest.raises(tk.IncorrectError):
        engine.create_table("t", {"x": tk.Int}, required="x").insert([(None,)])


def a_key_is_there_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql("CREATE TABLE t (x int PRIMARY KEY, y int); INSERT INTO t VALUES (1, 1)")
        with pytest.raises(tk.ConflictError):
            engine.sql("INSERT INTO t VALUES (1, 2)")


def a_unique_value_is_there_once() -> None:
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE t (x int, y int UNIQUE); INSERT INTO t VALUES (1, 1)")
        with pytest.raises(tk.ConflictError):
            engine.sql("INSERT INTO t VALUES (2, 1)")


def a_check_is_never_false() -> None:
    with tk.Engine() as engine, pytest.raises(tk.ConflictError):
        engine.sql("CREATE TABLE t (x int CHECK (x > 0)); INSERT INTO t VALUES (0)")


def what_is_not_there_cannot_be_removed() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        a.insert([(1,)])
        engine.advance()
        a.remove([(2,)])
        with pytest.raises(tk.IncorrectError):
            engine.advance()


def an_upsert_replaces() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int, "y": tk.Int}, mode="upsert", primary_key=["x"])
        view = engine.install("all", a)
        for y in (1, 2):
            a.insert([(1, y)])
            engine.advance()
        assert view.multiplicities() == {(1, 2): 1}


def the_future_counts_when_it_comes() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("all", a)
        a.insert([(1,)], time=0)
        a.insert([(2,)], time=2)
        engine.advance(1)
        assert view.rows() == [(1,)]
        engine.advance(3)
        assert sorted(view.rows()) == [(1,), (2,)]


def queries_share_an_arrangement_while_they_are_there() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int, "y": tk.Int}), engine.create_table("b", {"y": tk.Int})
        before = len(engine.indexes())
        views = [engine.install(name, a.join(b, on="y")) for name in ("one", "two")]
        assert len(engine.indexes(a)) == 2
        for view in views:
            view.drop()
        assert len(engine.indexes()) == before


def a_graph_is_not_used_again_beside_another_arrangement() -> None:
    with tk.Engine(autocommit=False) as engine:
        stream, table = (
            engine.create_table("s", {"x": tk.Int}, mode="stream"),
            engine.create_table("t", {"x": tk.Int, "y": tk.Int}, order_by=["x"]),
        )
        query = stream.join(table, on="x")
        flows = []
        for _ in range(3):
            view = engine.install("v", query)
            flows.append(core_of(view).flow)
            view.drop()
            if len(flows) == 2:
                table.create_index("y")
        assert flows[0] is flows[1] and flows[1] is not flows[2]


def the_past_is_read_as_it_was() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("all", a)
        a.insert([(1,)])
        engine.advance()
        with engine.hold(view, at=0):
            a.insert([(2,)])
            engine.advance()
            assert view.rows(at=0) == [(1,)]


def a_change_is_told_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        changes = row_changes(engine.install("all", a))
        told: list[Any] = []
        for n in range(3):
            a.insert([(n,)])
            engine.advance()
            told += [tuple(change) for change in changes]
        assert told == [((n,), n, 1) for n in range(3)]


def a_listener_is_called() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        told: list[int] = []
        engine.install("all", a).subscribe(lambda delta: told.append(delta.time))
        for n in range(3):
            a.insert([(n,)])
            engine.advance()
        assert told == [0, 1, 2]


def the_first_rows_are_all_there() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        for n in range(3):
            a.insert([(3 * x + n,) for x in range(300)])
            engine.advance()
        assert a.head(100)["x"].to_pylist() == list(range(100))


def a_failed_view_fails_alone() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        bad = engine.install("bad", a.iterate(lambda rows: rows.select(x=tk.col("x") + 1), max_rounds=5))
        good = engine.install("good", a.count())
        a.insert([(1,)])
        engine.advance()
        assert good.rows() == [(1,)]
        with pytest.raises(tk.TektiteError):
            bad.rows()


def a_row_fails_while_it_is_there() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.String})
        view = engine.install("numbers", a.filter(tk.col("x") != "*").select(y=tk.col("x").cast(tk.Int)))
        reader = engine.install("reader", view.count())
        a.insert([("1",), ("bad",), ("*",)])
        engine.advance()
        for found in (view, reader):
            with pytest.raises(tk.IncorrectError):
                found.rows()
        a.remove([("bad",)])
        engine.advance()
        assert (view.rows(), reader.rows()) == ([(1,)], [(1,)])


def pending_rows_are_forgotten_by_a_rollback() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        a.insert([(1,)])
        a.rollback()
        a.insert([(2,)])
        engine.advance()
        assert engine.install("all", a).rows() == [(2,)]


def texts_stay_while_somebody_has_them() -> None:
    with tk.Engine(autocommit=False) as engine:
        core_of(engine).texts.be_eager()
        a = engine.create_table("a", {"k": tk.Int, "s": tk.String})
        engine.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT CASE WHEN k > 1 THEN upper(s) ELSE 'const' || 'ant' END AS s FROM a"
        )
        changes = row_changes(engine.view("v"))
        for k, s in ((2, "up"), (1, "no")):
            for write in (a.insert, a.remove, a.insert):
                write([(k, s)])
                core_of(engine).commit(WriteSet())  # a collection, while the rows wait
                engine.advance()
        assert sorted(engine.view("v").rows()) == [("UP",), ("constant",)]
        assert sum(change.diff for change in changes) == 2


def a_text_that_is_gone_is_made_again() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"s": tk.String})
        view = engine.install("upper", a.select(u=tk.col("s").upper()))
        for write in (a.insert, a.remove, a.insert):
            write([("up",)])
            engine.advance()
            while engine.idle():
                pass
        assert view.rows() == [("UP",)]


def texts_go_with_their_rows() -> None:
    with tk.Engine(autocommit=False) as engine:
        core_of(engine).texts.be_eager()
        a = engine.create_table("a", {"s": tk.String})
        for write in (a.insert, a.remove):
            write([("text",)])
            engine.advance()
        while engine.idle():
            pass
        assert core_of(engine).dictionary.texts == 0


def serializable_transactions_agree_with_an_order() -> None:
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE on_call (name varchar PRIMARY KEY); INSERT INTO on_call VALUES ('ann'), ('bob')")
        one, other = engine.session(), engine.session()
        one.serializable = other.serializable = True
        for session, name in ((one, "ann"), (other, "bob")):
            session.sql("BEGIN")
            if session.sql("SELECT count(*) FROM on_call").rows() == [(2,)]:
                session.sql(f"DELETE FROM on_call WHERE name = '{name}'")
        one.sql("COMMIT")
        with suppress(tk.TransactionConflict):
            other.sql("COMMIT")
        assert engine.sql("SELECT count(*) FROM on_call").rows() == [(1,)]


def a_view_goes_on_by_another_plan() -> None:
    with tk.Engine(autocommit=False, turn=0.0) as engine:
        core_of(engine).replanner.rows = 40
        a, b, c = [engine.create_table(name, {"x": tk.Int, name * 2: tk.Int}) for name in "abc"]
        view = engine.install("v", tk.match((a, ("x", "a")), (b, ("x", "b")), (c, ("x", "c"))))
        counted = engine.install("n", view.count())
        flow = core_of(view).flow
        for epoch in range(6):
            a.insert([(x, epoch) for x in range(20)])
            b.insert([(epoch, epoch)])
            c.insert([(epoch, epoch)])
            engine.advance()
            if epoch > 3:
                engine.settle()
                assert core_of(view).flow is not flow
            assert len(view.rows()) == (epoch + 1) ** 2
            engine.run()
        core_of(engine).coordinator.turn = 10.0
        a.insert([(1, 100)])
        engine.advance()
        assert core_of(engine).is_current(core_of(counted))
        assert counted.rows() == [(37,)]


ENGINE = "tektite.engine"
FAULTS = [
    Fault("rows may lack what they need", f"{ENGINE}.constraints Rules.check_rows", nothing, a_required_column_holds_no_null),
    Fault("few rows may lack what they need", f"{ENGINE}.input_core few_columns", misled(lambda source, required: (source, ())),
          a_required_column_of_tuples_holds_no_null),
    Fault("batches are not looked at", f"{ENGINE}.constraints Rules.check_batch", nothing, a_key_is_there_once),
    Fault("batches are not looked at", f"{ENGINE}.constraints Rules.check_batch", nothing, what_is_not_there_cannot_be_removed),
    Fault("small epochs are not looked at", f"{ENGINE}.input_core InputCore._checked_batch", nothing,
          what_is_not_there_cannot_be_removed),
    Fault("unique columns are compared with nothing", f"{ENGINE}.unique_keys held_batches", returning([]),
          a_unique_value_is_there_once),
    Fault("conditions are not looked at", f"{ENGINE}.constraints RowChecks.check_rows", nothing, a_check_is_never_false),
    Fault("operations do not see what is held", f"{ENGINE}.pending_updates net_changes",
          misled(lambda operations, keys, values, held, memory: (operations, keys, values, Version(()), memory)),
          an_upsert_replaces),
    Fault("the future counts at once", f"{ENGINE}.epoch_batches split_at_epoch",
          being(lambda pending, high, time_at: ([chunk for chunk, _ in pending], [])), the_future_counts_when_it_comes),
    Fault("no arrangement is found", f"{ENGINE}.catalog Catalog.find", returning(None),
          queries_share_an_arrangement_while_they_are_there),
    Fault("arrangements outlive their readers", f"{ENGINE}.catalog Catalog.release", nothing,
          queries_share_an_arrangement_while_they_are_there),
    Fault("a graph serves whatever has changed", f"{ENGINE}.graph_cache GraphCache._stands", returning(True),
          a_graph_is_not_used_again_beside_another_arrangement),
    Fault("the past is read an epoch late", f"{ENGINE}.view_core read_version", misled(lambda trace, epoch: (trace, epoch + 1)),
          the_past_is_read_as_it_was),
    Fault("changes are told again", f"{ENGINE}.change_feed ChangeFeed.done", nothing, a_change_is_told_once),
    Fault("nobody is told", f"{ENGINE}.notices Notices.give", nothing, a_listener_is_called),
    Fault("the first rows are those of one batch", f"{ENGINE}.versions chunks_before",
          lambda there: lambda *given: there(*given)[:1], the_first_rows_are_all_there),
    Fault("a rollback forgets nothing", f"{ENGINE}.write_set WriteSet.forget", nothing,
          pending_rows_are_forgotten_by_a_rollback),
    Fault("what was read is not looked at", f"{ENGINE}.read_set ReadSet.changed", returning(None),
          serializable_transactions_agree_with_an_order),
    Fault("answers are not compared", f"{ENGINE}.read_set same_rows", returning(True),
          serializable_transactions_agree_with_an_order),
    Fault("texts of versions are not looked for", "tektite.trace.trace Trace.held_batches", returning([]),
          texts_stay_while_somebody_has_them),
    Fault("results of text functions are not forgotten", "tektite.expr.text forget_results", nothing,
          a_text_that_is_gone_is_made_again),
    Fault("constants keep no texts", "tektite.values.dictionary Dictionary.pin", nothing, texts_stay_while_somebody_has_them),
    Fault("every text is in use", "tektite.values.dictionary Dictionary.begin_era",
          lambda there: lambda self: min(there(self), 1), texts_go_with_their_rows),
    Fault("failures stop everybody", "tektite.dataflow.flow Dataflow.fail",
          lambda there: lambda self, error: (_ for _ in ()).throw(error), a_failed_view_fails_alone),
    Fault("errors of rows are lost", "tektite.dataflow.errors ErrorOrigin.send", nothing, a_row_fails_while_it_is_there),
    Fault("errors of rows stay", "tektite.dataflow.errors ErrorOrigin.send",
          misled(lambda origin, shard, rows, *rest: (origin, shard, abs(rows), *rest)), a_row_fails_while_it_is_there),
    Fault("errors stay in their dataflow", f"{ENGINE}.catalog Entry.errors", being(property(lambda entry: ())),
          a_row_fails_while_it_is_there),
    Fault("a new plan answers before it is there", "tektite.dataflow.succession Succession.is_ready", returning(True),
          a_view_goes_on_by_another_plan),
    Fault("a new plan appends to a trace of its own", "tektite.dataflow.arrange ArrangeNode.mint_into", nothing,
          a_view_goes_on_by_another_plan),
    Fault("readers run before what they read", "tektite.runtime.coordinator Coordinator.replace",
          lambda there: lambda self, old, new: self.remove(old), a_view_goes_on_by_another_plan),
]  # fmt: skip
