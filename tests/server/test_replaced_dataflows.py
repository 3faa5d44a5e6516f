"""Subscriptions go on when another dataflow takes the place of theirs: the policies of what it reads have changed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tektite.engine.core import core_of
from tektite.server.feeds import DataflowReplaced, FeedChanges, SharedFeed
from tektite.wire.failures import HistoryGone
from tests.support.server import RunningServer
from tests.support.wire import Follower, JsonClient, json_client

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (30); CREATE USER root SUPERUSER; CREATE USER ann;
    GRANT SELECT ON t TO ann; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON t USING (id < 10)
"""
REPLACE = "CREATE POLICY more ON t USING (id < 40)"
QUERY = {"subscription": 1, "sql": "SELECT id FROM t"}


@contextmanager
def subscriber(served: RunningServer) -> Iterator[JsonClient]:
    (row,) = served.engine.sql("CREATE TOKEN for_ann FOR ann").rows()
    with json_client(served, Authorization=f"Bearer {row[0]}") as client:
        assert "error" not in client.ask("interest", **QUERY)
        yield client


def followed(client: JsonClient, follower: Follower, *wanted: int) -> None:
    """Follow until these are the rows."""
    while sorted(id for (id,) in follower.contents.elements()) != sorted(wanted):
        message = client.push()
        assert "error" not in message, message
        follower.take(message)


def feed_of(served: RunningServer) -> SharedFeed:
    (feed,) = served.server.feeds._feeds.values()
    return feed


def test_a_feed_holds_no_history_of_a_dataflow_that_was_replaced(served: RunningServer) -> None:
    served.engine.sql(SETUP)
    with subscriber(served) as client:
        follower = Follower()
        followed(client, follower, 1, 2)
        feed = feed_of(served)
        with core_of(served.engine).lock.held:
            long_ago = time.monotonic() - 1e6
            feed._past = deque([(long_ago, follower.told)] * 2)
            served.engine.sql(REPLACE)
        followed(client, follower, 1, 2, 30)
        served.engine.sql("INSERT INTO t VALUES (31)")
        followed(client, follower, 1, 2, 30, 31)
        assert feed._holding is core_of(feed.source.relation)


def test_what_an_earlier_dataflow_would_have_told_is_not_told(served: RunningServer) -> None:
    served.engine.sql(SETUP)
    with subscriber(served) as client:
        follower = Follower()
        followed(client, follower, 1, 2)
        feed, before = feed_of(served), follower.told
        served.engine.sql(REPLACE)
        followed(client, follower, 1, 2, 30)
        with core_of(served.engine).lock.held:
            with pytest.raises(DataflowReplaced):
                feed.fetch(None, before, False)
            with pytest.raises(HistoryGone, match="subscribe again"):
                feed.fetch(before, follower.told, False)
            assert feed.fetch(follower.told, feed.told, False).table.num_rows == 0


def test_a_subscription_that_begins_while_the_dataflow_is_replaced(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.engine.sql(SETUP)
    there, left = SharedFeed.fetch, [REPLACE]

    def fetch(feed: SharedFeed, since: int | None, upto: int, slow: bool) -> FeedChanges:
        while left:
            served.engine.sql(left.pop())
        return there(feed, since, upto, slow)

    monkeypatch.setattr(SharedFeed, "fetch", fetch)
    with subscriber(served) as client:
        follower = Follower()
        followed(client, follower, 1, 2, 30)
        served.engine.sql("INSERT INTO t VALUES (31)")
        followed(client, follower, 1, 2, 30, 31)


def test_a_subscription_that_catches_up_is_told_why_nobody_may_follow(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies change while nobody has the grant: there is no one by whose rights the query could be planned anew."""
    served.engine.sql(SETUP)
    there, left = SharedFeed.fetch, [f"REVOKE SELECT ON t FROM ann; {REPLACE}"]

    def fetch(feed: SharedFeed, since: int | None, upto: int, slow: bool) -> FeedChanges:
        while left:
            served.engine.sql(left.pop())
        return there(feed, since, upto, slow)

    monkeypatch.setattr(SharedFeed, "fetch", fetch)
    with subscriber(served) as client:
        while not (message := client.push()).get("end"):
            pass
        assert "subscribe again" in message["error"]["message"]


def test_a_feed_that_fails_in_the_event_loop_ends_its_subscriptions(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.engine.sql(SETUP)
    with subscriber(served) as client:
        followed(client, Follower(), 1, 2)

        def fail(feed: SharedFeed) -> FeedChanges:
            raise ValueError("on purpose")

        monkeypatch.setattr(SharedFeed, "_take", fail)
        served.engine.sql("INSERT INTO t VALUES (3)")
        while not (message := client.push()).get("end"):
            pass
        assert message["error"]["code"] == "history-gone"
    said = served.log.getvalue()
    assert "on purpose" in said
    served.log.seek(0)
    served.log.truncate()
