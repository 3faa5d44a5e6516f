"""/metrics: Prometheus reads it, it says what is so, and asking changes nothing."""

from __future__ import annotations

import http.client

import psycopg
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from tektite.__main__ import app
from tests.support.patience import PATIENCE
from tests.support.server import RunningServer


def scraped(served: RunningServer) -> dict[tuple[str, tuple[str, ...]], float]:
    client = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=PATIENCE)
    client.request("GET", "/metrics")
    found = client.getresponse()
    assert found.status == 200 and found.getheader("content-type", "").startswith("text/plain")
    families = text_string_to_metric_families(found.read().decode())
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


def test_prometheus_reads_what_is_so(served: RunningServer) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE sales (shop text, amount int)")
        client.execute("CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) FROM sales GROUP BY shop")
        client.execute("INSERT INTO sales VALUES ('north', 1), ('south', 2), ('east', 3)")
        first = scraped(served)
        assert first["tektite_table_rows", ("sales",)] == 3 and first["tektite_view_rows", ("totals",)] == 3
        assert first["tektite_index_readers", ("sales",)] == 1
        assert first["tektite_views", ("current",)] == 1 and first["tektite_views", ("failed",)] == 0
        assert first["tektite_connections", ()] >= 1
        second = scraped(served)
        assert second["tektite_epochs_total", ()] == first["tektite_epochs_total", ()]
        client.execute("DROP MATERIALIZED VIEW totals")
        assert ("tektite_view_rows", ("totals",)) not in scraped(served)


def test_another_method_is_refused(served: RunningServer) -> None:
    client = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=PATIENCE)
    client.request("POST", "/metrics", b"{}")
    assert client.getresponse().status == 405


def test_advice_for_a_server(served: RunningServer) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["advise", served.web_url]).output == "nothing to improve\n"
    nobody = runner.invoke(app, ["advise", "tektite://localhost:1"])
    assert nobody.exit_code == 1 and str(nobody.exception).startswith("cannot connect to")
    with psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE sales (shop text, amount int)")
        client.execute("CREATE INDEX by_amount ON sales (amount)")
    assert runner.invoke(app, ["advise", served.web_url]).output.startswith("unread: sales by (amount)\n")
