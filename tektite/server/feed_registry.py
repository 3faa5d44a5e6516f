"""Feeds: the feeds of a server, one for each table, view or query. Subscribers share a feed; it ends with the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING
from weakref import WeakSet

from tektite.engine.core import core_of
from tektite.server.feeds import SharedFeed

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore
    from tektite.server.server import Server

SHARE = 4
"""Seconds of the event loop that are left to others for each second that feeds take."""


def _close_made(making: asyncio.Future[SharedFeed]) -> None:
    """Close a feed that nobody waits for any more, if one was made."""
    if not making.cancelled() and making.exception() is None:
        making.result().close()


class Feeds:
    """The feeds of a server, by what they tell of. Called in the event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._feeds: dict[Hashable, SharedFeed] = {}
        self._leaving: dict[Hashable, asyncio.TimerHandle] = {}
        self._making: dict[Hashable, asyncio.Future[None]] = {}
        self.installed: WeakSet[ViewCore] = WeakSet()
        """Views that are there because somebody is interested in a predicate."""
        self.cost = 0.0
        """Seconds that it takes all feeds to tell their subscribers."""

    @property
    def pause(self) -> float:
        """Seconds that a feed rests behind telling its subscribers: as long as all of them are told by one part in SHARE of the
        event loop's time. What changes meanwhile goes into one message, with its times.
        """
        return SHARE * self.cost

    def __len__(self) -> int:
        return len(self._feeds)

    async def get(self, key: Hashable, make: Callable[[], asyncio.Future[SharedFeed]]) -> SharedFeed:
        """The feed with a key; `make` gives a new one, where there is none or it has ended."""
        while key in self._making:
            await asyncio.wait([self._making[key]])
        found = self._feeds.get(key)
        if found is not None and found.end is None and not core_of(found.source.relation).dropped:
            self._stay(key)
            return found
        done = self._making[key] = asyncio.get_running_loop().create_future()
        making = make()
        try:
            made = await asyncio.shield(making)
            self._stay(key)
            self._feeds[key] = made
            if found is not None and not found.subscribers:
                found.close()
            return made
        except asyncio.CancelledError:  # whoever asked has gone: what is made meanwhile goes, too
            making.add_done_callback(_close_made)
            raise
        finally:
            del self._making[key]
            done.set_result(None)

    def left(self, key: Hashable, feed: SharedFeed) -> None:
        """Somebody has left a feed. Without anybody else it goes, when the lease is over."""
        if feed.subscribers:
            return
        if self._feeds.get(key) is not feed:
            feed.close()  # there is another one in its place
            return
        if key in self._leaving:
            return
        seconds = 0.0 if feed.end is not None else self._server.plan.limits.lease_seconds
        self._leaving[key] = asyncio.get_running_loop().call_later(seconds, self._go, key, feed)

    def _stay(self, key: Hashable) -> None:
        timer = self._leaving.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _go(self, key: Hashable, feed: SharedFeed) -> None:
        self._leaving.pop(key, None)
        if not feed.subscribers and self._feeds.get(key) is feed:
            self._close(key, feed)

    def _close(self, key: Hashable, feed: SharedFeed) -> None:
        self._feeds.pop(key, None)
        feed.close()

    async def tell_all(self, seconds: float) -> None:
        """Tell all subscribers how far time has come, so that they can go on from there at the server's next start; of those
        that this takes longer than so many seconds, as many as it can.
        """
        telling = [asyncio.ensure_future(feed.refresh()) for feed in self._feeds.values() if feed.subscribers]
        if telling:
            _, late = await asyncio.wait(telling, timeout=seconds)
            for each in late:
                each.cancel()

    def close(self) -> None:
        """End all of them: the server stops."""
        for key in list(self._feeds):
            self._stay(key)
            self._close(key, self._feeds[key])
