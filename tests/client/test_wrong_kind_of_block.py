"""`for`, `with` and `len` of what is waited for, and operators on what is on a server: each says what to write."""

from __future__ import annotations

import asyncio
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
