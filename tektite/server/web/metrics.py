"""`/metrics`: the engine's figures for Prometheus, from the same relations that queries read.

A scrape takes the engine's lock for one look, in a worker. It writes nothing, so it closes no epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from tektite.engine.core import core_of
from tektite.engine.system.relations import RELATIONS

if TYPE_CHECKING:
    from tektite.server.server import Server

KIND = "text/plain; version=0.0.4; charset=utf-8"

LABELLED: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    ("view_rows", "Rows that a view holds, about", "views", ("name",), "rows"),
    ("view_lag_epochs", "Epochs that a view is behind", "views", ("name",), "lag"),
    ("view_bytes", "Bytes that only this view keeps", "views", ("name",), "bytes"),
    ("view_subscriptions", "Subscriptions of a view", "views", ("name",), "subscriptions"),
    ("table_rows", "Rows that a table holds, about", "tables", ("name",), "rows"),
    ("index_bytes", "Bytes of a shared index", "indexes", ("name",), "bytes"),
    ("index_readers", "Dataflows that read a shared index", "indexes", ("name",), "readers"),
    ("dataflow_waiting_rows", "Changes that wait for a dataflow", "dataflows", ("name",), "waiting"),
    ("memory_bytes", "Memory by kind of owner", "memory", ("kind",), "bytes"),
)
"""A gauge each: its name and meaning, the relation that it is taken of, the columns that label it, and the one that it shows.
Rows with the same labels are added up.
"""

SHOWN_RELATIONS = tuple(dict.fromkeys(f"system.{each[2]}" for each in LABELLED))
"""The system relations that the metrics are taken of."""


class EngineCollector(Collector):
    """The figures of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        """All metrics, as of one moment."""
        core = core_of(self._server.engine)
        with core.lock.held:
            seen = core.system.look()
            found = {name: list(RELATIONS[name].rows(seen)) for name in dict.fromkeys(each[2] for each in LABELLED)}
            states = [row[2] for row in found["views"]]
        yield CounterMetricFamily("tektite_epochs", "Epochs that have been closed", value=core.epoch)
        yield GaugeMetricFamily("tektite_durable_epochs", "Epochs that are in the storage", value=core.durable)
        yield GaugeMetricFamily("tektite_connections", "Connected clients", value=len(self._server.connections))
        by_state = GaugeMetricFamily("tektite_views", "Views by state", labels=["state"])
        for state in ("current", "behind", "error", "failed"):
            by_state.add_metric([state], states.count(state))
        yield by_state
        for title, about, relation, labels, shown in LABELLED:
            columns = list(RELATIONS[relation].columns)
            metric = GaugeMetricFamily(f"tektite_{title}", about, labels=labels)
            sums: dict[tuple[str, ...], float] = {}
            for row in found[relation]:
                key = tuple(str(row[columns.index(label)]) for label in labels)
                sums[key] = sums.get(key, 0) + row[columns.index(shown)]
            for key, value in sums.items():
                metric.add_metric(key, value)
            yield metric


def metrics_text(server: Server) -> bytes:
    """The text of a scrape. May wait for the engine's lock."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(server))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
