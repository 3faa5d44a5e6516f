"""Texts that take long to read are read beside other clients' statements; and none takes the square of its length, or more.

Without that, each test that is only made of statements would not come to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tektite.sql.parse import parser
from tests.support.server import RunningServer
from tests.support.wire import json_client

MANY = 1_000_000


@pytest.fixture
def client(served: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(served.conninfo(), autocommit=True) as found:
        yield found


@pytest.mark.parametrize(
    "text",
    [
        f"COPY t{' ' * MANY}X",
        f"COPY t(a){' ' * MANY}X",
        f"COPY t{' ' * MANY}(a){' ' * MANY}TO",
        f"BEGIN{' ' * MANY}X",
        f"SET x{' ' * MANY}X",
        f"FETCH{' ' * MANY}!",
        f"SELECT abs('{'a' * MANY}', 1)",
        "(CASE WHEN t.typtype = 'd' THEN(WITH RECURSIVE typebases" * 10_000,
        "SELECT COLUMNS('^(a+)+$') FROM (SELECT 1 AS " + "a" * 40 + "b)",
        f"SELECT {'x' * 60}.* LIKE '{'%a' * 40}b' FROM (SELECT 1 AS {'a' * 60}) AS {'x' * 60}",
    ],
    ids=lambda text: " ".join(text[:30].split()),
)
def test_no_text_takes_the_square_of_its_length(client: psycopg.Connection, text: str) -> None:
    with pytest.raises(psycopg.Error):
        client.execute(text)
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_patterns_of_rows_are_looked_for_once(client: psycopg.Connection) -> None:
    client.execute("CREATE TABLE t (p text); INSERT INTO t SELECT repeat('%a', 40) || 'b'")
    assert client.execute("SELECT repeat('a', 100) LIKE p, repeat('a', 100) || 'b' LIKE p FROM t").fetchall() == [
        (False, True)
    ]


def test_long_texts_are_parsed_in_workers_without_the_engines_lock(
    served: RunningServer, client: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    parse = parser.parse

    def seen(text: str) -> Iterator[parser.Statement]:
        if text.startswith("SELECT 1 +"):
            is_free = served.engine is not None and not holds_lock(served)
            found.append(f"{threading.current_thread().name.rpartition('_')[0]} {is_free}")
        return parse(text)

    monkeypatch.setattr(parser, "parse", seen)
    text = "SELECT 1" + " + 1" * 300
    assert client.execute(text).fetchone() == (301,)
    assert client.execute(text, prepare=True).fetchone() == (301,)
    with json_client(served) as socket:
        for _ in range(3):
            assert socket.rows("sql", text=text) == [[301]]
        assert "error" not in socket.ask("interest", subscription=1, sql=text)
        assert "error" not in socket.ask("prepare", name="p", text=text)
    assert len(found) >= 6 and set(found) == {"tektite-server True"}


def holds_lock(served: RunningServer) -> bool:
    """Whether the calling thread holds the engine's lock."""
    from tektite.engine.core import core_of

    return bool(core_of(served.engine).lock.held._is_owned())
