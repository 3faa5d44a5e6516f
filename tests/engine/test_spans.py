"""Spans of OpenTelemetry say what the engine did, hang together, and end with `stop`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tektite as tk
from tektite.engine.core import core_of
from tests.support.server import running_server


def exporting() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def named(spans: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def test_epochs_have_phases_and_sweeps_below_them() -> None:
    provider, exporter = exporting()
    engine = tk.Engine()
    sales = engine.create_table("sales", {"shop": str, "amount": int})
    exported = engine.export_spans(provider)
    engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
    (installed,) = named(exporter.get_finished_spans(), "install")
    assert installed.attributes is not None and installed.attributes["tektite.view"] == "totals"
    exporter.clear()
    began = time.time_ns()
    sales.insert([("north", 3), ("south", 5)])
    spans = exporter.get_finished_spans()
    (epoch,) = named(spans, "epoch")
    assert epoch.attributes is not None and epoch.attributes["tektite.rows"] == 2
    assert epoch.context is not None
    phases = [span for span in spans if span.name.startswith("epoch.")]
    assert {span.parent.span_id for span in phases if span.parent is not None} == {epoch.context.span_id}
    (sweeping,) = named(spans, "epoch.sweep")
    (sweep,) = named(spans, "sweep")
    assert sweep.attributes is not None and sweep.attributes["tektite.dataflow"] == "totals"
    assert sweep.parent is not None and sweeping.context is not None
    assert sweep.parent.span_id == sweeping.context.span_id
    for span in spans:
        assert span.start_time is not None and span.end_time is not None
        assert began - 10**9 < span.start_time <= span.end_time < time.time_ns() + 10**9
    exported.stop()
    exported.stop()
    sales.insert([("west", 3)])
    assert len(exporter.get_finished_spans()) == len(spans)


def test_looking_at_the_engine_makes_no_spans() -> None:
    provider, exporter = exporting()
    engine = tk.Engine()
    engine.create_table("sales", {"shop": str}).insert([("north",)])
    engine.export_spans(provider)
    engine.create_view("watched", engine.table("system.tables"))
    engine.sql("SELECT * FROM system.epochs")
    engine.create_table("others", {"x": int})
    with core_of(engine).lock.held:
        core_of(engine).system.refresh()  # as its thread does from time to time
    assert {span.name for span in exporter.get_finished_spans()} <= {"sweep"}


def test_requests_of_clients_and_their_errors() -> None:
    provider, exporter = exporting()
    with running_server() as served:
        served.engine.export_spans(provider)
        with psycopg.connect(served.conninfo(), autocommit=True) as client:
            client.execute("CREATE TABLE t (x int)")
            with pytest.raises(psycopg.Error):
                client.execute("SELECT * FROM nothing")
    spans = exporter.get_finished_spans()
    (made,) = named(spans, "request CREATE")
    assert made.attributes is not None
    assert made.attributes["db.query.text"] == "CREATE TABLE t (x int)" and made.attributes["user.name"] == "ann"
    (failed,) = named(spans, "request SELECT")
    assert not failed.status.is_ok and "nothing" in str(failed.status.description)
