"""A browser for the tests of a module, and servers that have something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tektite.sql.access.verifiers import Verifier
from tests.support.browser import chromium, page_of
from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Ends with the module: while it is there, its event loop runs in this thread, and other tests have theirs."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def lively() -> Iterator[RunningServer]:
    """A server with a few tables and views, which all tests of a module share."""
    with running_server() as found:
        found.engine.sql("""
            CREATE TABLE sales (id int PRIMARY KEY, shop varchar, amount int);
            CREATE TABLE edges (src int, dst int);
            CREATE MATERIALIZED VIEW per_shop AS SELECT shop, count(*) AS sales, sum(amount) AS total FROM sales GROUP BY shop;
            INSERT INTO sales VALUES (1, 'north', 10), (2, 'south', 20), (3, 'north', 5);
            INSERT INTO edges VALUES (1, 2), (2, 3), (3, 1), (3, 4);
            CREATE TABLE many (x int); INSERT INTO many SELECT * FROM generate_series(1, 3000)
        """)
        yield found
    assert "internal-error" not in found.log.getvalue()


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    """A server with users: root may do everything, ann may look at some of it."""
    with running_server(users={"root": Verifier.of("pw")}) as found:
        found.engine.sql("""
            CREATE TABLE docs (id int); INSERT INTO docs VALUES (1); CREATE TABLE hidden (id int);
            CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM docs;
            CREATE USER ann PASSWORD 'pw'; GRANT SELECT ON docs TO ann; GRANT SELECT ON counted TO ann
        """)
        yield found
    assert "internal-error" not in found.log.getvalue()


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages of a console: `opened(server, "operations", width=390)`. Loading takes longer than most tests: a page is used
    again, by going to another one and back, unless the test wants a new one.
    """
    pages: dict[Any, Any] = {}
    with ExitStack() as stack:

        def open_page(served: Any, path: str = "query", new: bool = False, **options: Any) -> Any:
            options.setdefault("viewport", {"width": 1200, "height": 800})
            key = (served.http_port, str(options))
            if new or key not in pages:
                page = pages[key] = stack.enter_context(page_of(browser, **options))
                page.goto(f"http://127.0.0.1:{served.http_port}/#/{path}")
                return page
            page = pages[key]
            other = "operations" if page.evaluate("location.hash") == f"#/{path}" else path
            for name in dict.fromkeys([other, path]):
                page.evaluate("(name) => { localStorage.clear(); location.hash = `#/${name}` }", name)
                page.wait_for_selector(f".page-{name}")
            return page

        yield open_page
