"""Who closes epochs on a server: commits, a clock, or clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import psycopg

from tektite.server.epochs import EpochPolicy
from tests.support.server import running_server


def test_inserts_of_many_connections_share_an_epoch_of_the_clock() -> None:
    async def use() -> None:
        clients = [await asyncpg.connect(served.url) for _ in range(20)]
        await clients[0].execute("CREATE TABLE t (i bigint, v text)")
        prepared = [await client.prepare("INSERT INTO t VALUES ($1, $2)") for client in clients]
        before = served.engine.next_epoch
        for n in range(5):
            await asyncio.gather(*(each.fetch(n * 100 + number, "v") for number, each in enumerate(prepared)))
        assert await clients[0].fetchval("SELECT count(*) FROM t") == 100
        assert served.engine.next_epoch - before < 50
        for client in clients:
            await client.close()

    with running_server(epochs=EpochPolicy.parse("200 ms")) as served:
        asyncio.run(use())


def test_clients_close_epochs_where_they_are_explicit(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "store", epochs=EpochPolicy.parse("explicit")) as served,
        psycopg.connect(served.conninfo(), autocommit=True) as writer,
        psycopg.connect(served.conninfo(), autocommit=True) as reader,
    ):
        writer.execute("CREATE TABLE t (i bigint, v text)")
        reader.execute("SELECT count(*) FROM t")
        before = served.engine.next_epoch
        for n in range(3):
            writer.execute("INSERT INTO t VALUES (%s, %s)", (n, "a"), prepare=True)
        assert served.engine.next_epoch == before
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
        writer.execute("ADVANCE")
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (3,)
        assert served.engine.next_epoch == before + 1
