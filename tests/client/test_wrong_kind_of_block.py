"""`for`, `with` and `len` of what is waited for, and operators on what is on a server: each says what to write."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

import tektite as tk


def test_what_is_waited_for_says_so() -> None:
    async def main(url: str) -> None:
        async with await tk.connect_async(url) as session:
            table: Any = await session.create_table("t", {"a": int})
            subscription: Any = await table.subscribe()
            block: Any = session.transaction()
            with pytest.raises(tk.IncorrectError, match="`async with`"), block:
                pass
            with pytest.raises(tk.IncorrectError, match="`async for`"):
                iter(subscription)
            with pytest.raises(tk.IncorrectError, match=r"await x\.count\(\)"):
                len(table)
            with pytest.raises(tk.IncorrectError, match=r"await x\.rows\(\)"):
                list(table)

    with tk.Engine().console() as console:
        asyncio.run(main(console.url))


def test_what_waits_says_so_to_tasks_and_queries_do_not_travel() -> None:
    async def enter(session: Any) -> None:
        async with session:
            pass

    with tk.Engine().console() as console, tk.connect(console.url) as session:
        with pytest.raises(tk.IncorrectError, match="connect_async"):
            asyncio.run(enter(session))
        table: Any = session.create_table("t", {"a": int})
        with pytest.raises(tk.UnsupportedError, match="do not travel"):
            table["a"]
        with pytest.raises(tk.IncorrectError, match="operators are for columns"):
            table + 1
        with pytest.raises(AttributeError, match=r"no 'execute'; use sql\(text\)"):
            session.execute("SELECT 1")  # type: ignore[attr-defined]


def test_a_session_is_opened_by_await_by_its_block_and_by_a_task() -> None:
    async def main(url: str) -> list[Any]:
        async with tk.connect_async(url) as session:
            table = await session.create_table("t", {"a": int})
            await table.insert([(1,)])
            frame = await table.to_pandas()
            found = [frame["a"].to_list()]
        with pytest.raises(tk.ConflictError, match="closed"):
            await session.sql("SELECT 1")
        for opened in (await tk.connect_async(url), await asyncio.create_task(tk.connect_async(url))):
            async with opened:
                found.append((await opened.sql("SELECT a FROM t")).rows())
        return found

    with tk.Engine().console() as console:
        assert asyncio.run(main(console.url)) == [[1], [(1,)], [(1,)]]


def test_a_session_that_is_being_opened_says_so() -> None:
    async def main(url: str) -> None:
        opening: Any = tk.connect_async(url)
        with pytest.raises(AttributeError, match=r"await it first, as in \(await tk\.connect_async\(url\)\)\.sql"):
            opening.sql("SELECT 1")
        with pytest.raises(tk.IncorrectError, match="`async with`"), opening:
            pass
        opening.close()

    asyncio.run(main("tektite://localhost:1"))


def test_a_result_over_a_wire_says_what_to_write() -> None:
    with tk.Engine().console() as console, tk.connect(console.url) as session:
        result: Any = session.sql("SELECT 1 AS a")
        for name, hint in (
            ("fetchall", r"rows\(\)"),
            ("df", r"to_pandas\(\)"),
            ("filter", r"session\.sql"),
            ("to_panda", "to_pandas"),
        ):
            with pytest.raises(AttributeError, match=f"has no '{name}'.*{hint}"):
                getattr(result, name)
        with pytest.raises(tk.IncorrectError, match=r"to_arrow\(\)\['a'\]"):
            result["a"]
        with pytest.raises(tk.IncorrectError, match="write `for`"):
            aiter(result)


def test_a_port_where_no_server_for_sessions_listens_is_explained() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        url = f"tektite://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(tk.TektiteError, match="`tektite serve` starts a server"):
            tk.connect(url)
        other.listen()

        def answer() -> None:
            client, _ = other.accept()
            with client:
                client.recv(1)
                client.sendall(b"E\x00\x00\x00\x05\x00")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(tk.TektiteError, match="port of PostgreSQL's protocol"):
            tk.connect(url)
        thread.join()


def test_the_status_of_a_server_counts_the_tables_and_views_of_users() -> None:
    with tk.Engine().console() as console, tk.connect(console.url) as session:
        session.create_table("t", {"a": int})
        session.create_view("v", "SELECT name FROM system.tables")
        assert (session.status()["tables"], session.status()["views"]) == (1, 1)
