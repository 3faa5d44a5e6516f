"""`engine.console()`: a program's engine, looked at from outside, and left as it was."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

import tektite as tk
from tektite.__main__ import app
from tests.support.patience import PATIENCE
from tests.support.wire import json_client


def shown(url: str, path: str = "") -> str:
    with urllib.request.urlopen(url + path, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def test_a_program_and_its_console_see_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    engine = tk.Engine()
    sales = engine.create_table("sales", {"shop": str, "amount": int})
    with engine.console() as console:
        assert f"the console is at {console.url}" in capsys.readouterr().out
        assert "<title>Tektite</title>" in shown(console.url)
        with tk.connect(console.url) as session:
            changes = session.table("sales").subscribe()
            sales.insert([("north", 3)])
            delta = changes.poll(PATIENCE)
            assert delta is not None and delta.table.to_pylist() == [{"shop": "north", "amount": 3, "diff": 1}]
            session.sql("INSERT INTO sales VALUES ('south', 5)")
            session.create_view("totals", "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
            assert engine.sql("SELECT user_name FROM system.clients").rows() == [("tektite",)]
    assert sorted(engine.view("totals").rows()) == [("north", 3), ("south", 5)]
    assert engine.sql("SELECT user_name FROM system.clients").rows() == []
    with pytest.raises(OSError, match="refused"):
        shown(console.url)
    console.close()
    assert repr(console) == "<Console, closed>"


def test_what_was_installed_for_who_looked_goes_with_the_console() -> None:
    engine = tk.Engine()
    engine.sql("CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
    with engine.console() as console, json_client(SimpleNamespace(http_port=urlsplit(console.url).port)) as client:
        client.ask("interest", subscription=1, sql="SELECT x + 1 AS y FROM t")
        assert any("shared" in index.readers[0] for index in engine.indexes() if index.readers)
    assert [index.readers for index in engine.indexes() if index.readers] == []


def test_an_engine_that_is_closed_ends_its_consoles() -> None:
    engine = tk.Engine()
    consoles = [engine.console(), engine.console()]
    assert consoles[0].url != consoles[1].url
    engine.close()
    assert [repr(console) for console in consoles] == ["<Console, closed>"] * 2
    with pytest.raises(tk.ConflictError, match="closed"):
        engine.console()


def test_an_engine_whose_program_closes_epochs_is_given_none() -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"x": int})
    with engine.console() as console, tk.connect(console.url) as session:
        session.table("t").insert([(1,)])
        assert session.sql("SELECT * FROM t").rows() == [] and table.rows() == []
        engine.advance()
        assert session.sql("SELECT * FROM t").rows() == [(1,)]


def test_a_console_stores_nothing_about_its_clients(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        engine.create_table("t", {"x": int})
        with engine.console() as console, tk.connect(console.url) as session:
            session.create_view("v", "SELECT x + 1 AS y FROM t")
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.tables == ("t",) and engine.views == ()


def test_other_machines_need_a_user() -> None:
    engine = tk.Engine()
    with pytest.raises(tk.ConflictError, match="loopback only"):
        engine.console(address="0.0.0.0")
    engine.sql("CREATE USER ann PASSWORD 'secret'")
    with engine.console(address="0.0.0.0") as console, pytest.raises(tk.TektiteError, match="say who you are"):
        tk.connect(console.url.replace("0.0.0.0", "127.0.0.1"))


def test_the_command_finds_the_console_of_a_server() -> None:
    run = CliRunner().invoke
    with tk.Engine().console() as console:
        found = run(app, ["console", "--attach", console.url, "--no-browser"])
        assert (found.exit_code, found.output) == (0, f"the console is at {console.url}\n")
    found = run(app, ["console", "--attach", console.url, "--no-browser"])
    assert found.exit_code == 1 and "there is no server at" in str(found.exception)  # which `main` prints


def test_import_tektite_loads_no_server_and_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys, tektite, json; tektite.Engine; print(json.dumps([n for n in sys.modules if 'server' in n or n == 'h11']))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert [name for name in json.loads(found.stdout) if name.startswith(("tektite", "h11"))] == []
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "h11" else real(name, *rest))
    with pytest.raises(tk.UnsupportedError, match=r"needs the package h11: pip install 'tektite\[server\]'"):
        tk.Engine().console()


def test_two_that_listen_at_the_same_time_get_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[socket.socket] = []
    bind = socket.socket.bind

    def bind_and_be_late(self: socket.socket, address: Any) -> None:
        bind(self, address)
        if not others:  # somebody else listens there before this one does
            others.append(socket.socket(self.family, self.type))
            others[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bind(others[0], self.getsockname())
            others[0].listen()

    monkeypatch.setattr(socket.socket, "bind", bind_and_be_late)
    with tk.Engine() as engine, engine.console() as console:
        port = urlsplit(console.url).port
        assert others and port != others[0].getsockname()[1]
        others[0].close()


@pytest.mark.parametrize("port", [99_999, -1, "5434"])
def test_a_port_that_there_is_not_is_refused(port: Any) -> None:
    with tk.Engine() as engine, pytest.raises(tk.IncorrectError, match="expected a port from 0 .* to 65535, found"):
        engine.console(port=port)


def test_a_remote_result_prints_as_the_engine_s_own() -> None:
    text = "SELECT x, CASE WHEN x > 1 THEN 'many' END AS word FROM (VALUES (1), (2)) AS v(x) ORDER BY x"
    with tk.Engine() as engine, engine.console(port=0) as console:
        session = tk.connect(console.url)
        for statement in (text, "CREATE TABLE t (a int)", "EXPLAIN SELECT a FROM t", "SELECT * FROM t"):
            remote = str(session.sql(statement))
            if statement.startswith("CREATE"):
                assert remote == "CREATE TABLE"
            else:
                assert remote == str(engine.sql(statement))
        session.close()
