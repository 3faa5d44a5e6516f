"""The console in a browser: each page works, follows what changes, says what is wrong where it is, and lets nobody do more than
the server does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.browser import cells, typed, wait_for
from tests.support.server import RunningServer

Opened = Callable[..., Any]
SLOW = "SELECT count(*) FROM many a, many b, many c WHERE a.x + b.x + c.x = 7"


# ---------------------------------------------------------------------- queries


def test_a_query_runs_once_or_stays_live_with_changed_cells_marked(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT shop, sales, total FROM per_shop ORDER BY shop")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: cells(page), [["north", "2", "15"], ["south", "1", "20"]])
    assert "2 rows" in page.locator(".summary").inner_text()

    page.keyboard.press("Control+Shift+Enter")
    page.get_by_text("● Live").wait_for()
    wait_for(page, lambda: cells(page), [["north", "2", "15"], ["south", "1", "20"]])
    lively.engine.sql("INSERT INTO sales VALUES (4, 'south', 7)")
    page.locator(".cell.changed").first.wait_for()
    marked = page.locator(".cell.changed").all_inner_texts()
    assert cells(page) == [["north", "2", "15"], ["south", "2", "27"]]
    assert marked == ["2", "27"], "the changed cells of the changed row, and no others"
    lively.engine.sql("INSERT INTO sales VALUES (5, 'east', 1)")
    wait_for(page, lambda: cells(page)[0], ["east", "1", "1"])
    lively.engine.sql("DELETE FROM sales WHERE id > 3")
    wait_for(page, lambda: cells(page), [["north", "2", "15"], ["south", "1", "20"]])
    page.get_by_text("● Live").click()
    wait_for(page, lambda: lively.server.clients()[0].subscriptions, 0)


def test_an_error_is_underlined_where_it_is(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT shop,\n  nonsense\nFROM sales")
    underlined = page.locator(".cm-lintRange-error")
    underlined.wait_for()  # before it is run
    assert underlined.inner_text() == "nonsense"
    page.keyboard.press("Control+Enter")
    page.locator(".panel .problem").wait_for()
    assert "there is no column 'nonsense'" in page.locator(".panel").inner_text()
    assert page.locator(".cm-lintRange-error").inner_text() == "nonsense"
    typed(page, "SELECT shop FROM sales")
    wait_for(page, underlined.count, 0)

    page.get_by_role("tab", name="Datalog").click()
    typed(page, "path(x, y) :- edges(x, y).\npath(x, y) :- edges(x, y) & path(y, z).")
    page.keyboard.press("Control+Enter")
    underlined.wait_for()
    assert underlined.inner_text() == "&"


def test_rules_and_goals_are_answered(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    page.get_by_role("tab", name="Datalog").click()
    typed(page, "hop(x, y) :- edges(x, y), x > 2.")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: sorted(cells(page)), [["3", "1"], ["3", "4"]])
    typed(page, "hop(x, z) :- edges(x, y), edges(y, z).\n?- hop(1, z).")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: cells(page), [["1", "3"]])
    page.keyboard.press("Control+Shift+Enter")
    page.get_by_text("● Live").wait_for()
    lively.engine.sql("INSERT INTO edges VALUES (2, 9)")
    wait_for(page, lambda: sorted(cells(page)), [["1", "3"], ["1", "9"]])
    lively.engine.sql("DELETE FROM edges WHERE dst = 9")


def test_charts_show_what_suits_the_columns(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
    page.keyboard.press("Control+Enter")
    page.get_by_role("tab", name="Chart").click()
    wait_for(page, lambda: page.locator(".bar-line .value").all_inner_texts(), ["20", "15"])
    page.get_by_label("Chart: as").select_option("histogram")
    page.locator("canvas").wait_for()
    page.get_by_label("Chart: as").select_option("line")
    page.locator("canvas").wait_for()
    left = "document.querySelector('.drawing').clientHeight - document.querySelector('.drawing .uplot').offsetHeight"
    wait_for(page, lambda: abs(page.evaluate(left)) <= 2, True)  # a chart is as high as the place that it has
    typed(page, "SELECT max(DATE '2024-02-29') AS day, shop, sum(amount) AS total FROM sales GROUP BY shop")
    page.keyboard.press("Control+Enter")
    page.locator("canvas").wait_for()
    typed(page, "SELECT id, amount, id * 2 AS twice FROM sales")
    page.keyboard.press("Control+Enter")
    lines = page.locator(".u-series .u-label")
    wait_for(page, lines.all_inner_texts, ["id", "amount", "twice"])
    page.get_by_label("Chart: show").select_option("twice")
    wait_for(page, lines.all_inner_texts, ["id", "twice"])
    page.get_by_label("Chart: show").select_option("all numbers")
    wait_for(page, lines.all_inner_texts, ["id", "amount", "twice"])
    typed(page, "SELECT shop, sum(amount) AS total, max(DATE '2024-02-29') AS last FROM sales GROUP BY shop")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: page.locator(".bar-line .value").all_inner_texts(), ["20", "15"])
    typed(page, "SELECT src, dst FROM edges")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: sorted(page.locator(".network .nodes text").all_text_contents()), ["1", "2", "3", "4"])
    assert page.locator(".network .links line").count() == 4


def test_all_rows_are_exported(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    text = """SELECT 'a "b", c' AS t, CAST(12.5 AS decimal(9, 2)) AS d, NULL AS n, date '2024-02-29' AS day"""
    typed(page, f"{text}, 9007199254740993 AS big")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: cells(page), [['a "b", c', "12.50", "NULL", "2024-02-29", "9007199254740993"]])
    with page.expect_download() as csv:
        page.get_by_title("Export all rows as CSV").click()
    assert csv.value.path().read_bytes() == b't,d,n,day,big\r\n"a ""b"", c",12.50,,2024-02-29,9007199254740993\r\n'
    with page.expect_download() as made:
        page.get_by_title("Export all rows as JSON").click()
    row = {"t": 'a "b", c', "d": "12.50", "n": None, "day": "2024-02-29", "big": "9007199254740993"}
    assert json.loads(made.value.path().read_text()) == [row]


def test_a_plan_is_drawn_and_says_where_the_time_goes(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT shop, count(*) FROM sales GROUP BY shop")
    page.get_by_role("tab", name="Plan").click()
    page.locator(".explanation").get_by_text("group by").first.wait_for()
    page.get_by_label("run it, and say where the time goes").check()
    page.locator(".explanation").get_by_text("%)").first.wait_for()
    typed(page, "SELECT shop,\n  nonsense FROM sales")
    page.get_by_role("tab", name="Plan").click()
    page.locator(".plan .problem").wait_for()
    assert page.locator(".cm-lintRange-error").inner_text() == "nonsense"


def test_the_catalog_completes_names(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    page.locator(".relations summary", has_text="per_shop").wait_for()
    typed(page, "SELECT * FROM per")
    page.keyboard.type("_")
    page.locator(".cm-tooltip-autocomplete li", has_text="per_shop").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")


def test_a_hundred_thousand_rows_are_scrolled_and_sorted(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT generate_series AS n, generate_series % 7 AS m FROM generate_series(1, 100000)")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: "100,000 rows" in page.locator(".summary").inner_text(), True)
    assert page.locator(".grid .row").count() < 60
    page.locator(".grid").focus()
    page.keyboard.press("End")
    wait_for(page, lambda: cells(page)[-1][0] if cells(page) else None, "100000")
    page.get_by_role("columnheader", name="n", exact=True).click()
    page.keyboard.press("Home")
    page.locator(".grid").focus()
    page.keyboard.press("Home")
    wait_for(page, lambda: cells(page)[0][0], "100000")


def test_a_slow_query_is_cancelled_and_blocks_no_other_page(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, SLOW)
    page.keyboard.press("Control+Enter")
    page.get_by_text("running").wait_for()
    page.get_by_role("button", name="Cancel").click()
    wait_for(page, lambda: "cancelled" in page.locator(".summary").inner_text(), True)
    typed(page, "SELECT 1 AS one")
    page.keyboard.press("Control+Enter")
    wait_for(page, lambda: cells(page), [["1"]])


def test_a_request_is_cancelled_that_waits_for_its_connection(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    told = page.evaluate(
        """async (url) => {
            const { Session } = await import("/console/session.js");
            const session = new Session({ url });
            const open = new Promise((resolve) => session.onState((state) => state === "open" && resolve()));
            const asked = session.ask("sql", { text: "SELECT 1" }).then(() => "answered", (failure) => failure.code);
            session.cancel();
            const found = await asked;
            await open;
            session.close();
            return found;
        }""",
        f"ws://127.0.0.1:{lively.http_port}/v1/socket",
    )
    assert told == "cancelled"


def test_the_page_goes_on_after_a_lost_connection(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    typed(page, "SELECT shop, total FROM per_shop")
    page.keyboard.press("Control+Shift+Enter")
    wait_for(page, lambda: sorted(cells(page)), [["north", "15"], ["south", "20"]])
    for connection in lively.server.connections.all():
        lively.loop.call_soon_threadsafe(connection.abort)
    lively.engine.sql("INSERT INTO sales VALUES (6, 'north', 1)")
    wait_for(page, lambda: sorted(cells(page)), [["north", "16"], ["south", "20"]])
    page.locator(".connection[data-state=open]").wait_for()
    lively.engine.sql("DELETE FROM sales WHERE id = 6")
    wait_for(page, lambda: sorted(cells(page)), [["north", "15"], ["south", "20"]])


# ---------------------------------------------------------------------- operations


def test_operations_follow_the_engine_and_drop_views(lively: RunningServer, opened: Opened) -> None:
    lively.engine.sql("CREATE MATERIALIZED VIEW passing AS SELECT shop FROM sales")
    page = opened(lively, "operations")
    views = page.locator("[data-part=views]")
    views.get_by_text("passing").wait_for()
    page.locator("[data-part=clients]").get_by_text("websocket").first.wait_for()
    lively.engine.sql("INSERT INTO sales VALUES (7, 'west', 1); DELETE FROM sales WHERE id = 7")
    page.locator("[data-part=epochs] canvas").wait_for()
    views.get_by_role("button", name="Drop passing").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert "passing" in lively.engine.views
    views.get_by_role("button", name="Drop passing").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop the view").click()
    views.get_by_text("passing").wait_for(state="detached")
    assert "passing" not in lively.engine.views


def test_a_query_of_another_client_is_cancelled(lively: RunningServer, opened: Opened) -> None:
    slow = opened(lively)
    typed(slow, SLOW)
    slow.keyboard.press("Control+Enter")
    page = opened(lively, "operations", new=True)
    running = page.locator("[data-part=clients] tr", has_text="sql SELECT count(*) FROM many a")
    running.wait_for()
    running.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the query").click()
    wait_for(slow, lambda: "cancelled" in slow.locator(".summary").inner_text(), True)


# ---------------------------------------------------------------------- who may do what


def logged_in(page: Any, user: str, password: str = "pw") -> None:
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


def test_users_log_in_and_see_only_what_they_may(guarded: RunningServer, opened: Opened) -> None:
    page = opened(guarded, new=True)
    logged_in(page, "ann", "wrong")
    page.locator(".login .problem").wait_for()
    assert page.get_by_label("User").input_value() == "ann"
    page.keyboard.type("pw")  # the password has the focus
    page.keyboard.press("Enter")
    page.locator(".relations summary").first.wait_for()
    assert [name.split()[0] for name in page.locator(".relations summary").all_inner_texts()] == ["counted", "docs"]
    typed(page, "SELECT * FROM hidden")
    page.keyboard.press("Control+Enter")
    page.get_by_text("permission denied for table 'hidden'").first.wait_for()
    assert page.locator(".rail .user").inner_text() == "ann"


def test_a_drop_without_the_right_to_it_is_refused(guarded: RunningServer, opened: Opened) -> None:
    page = opened(guarded, "operations", new=True)
    logged_in(page, "ann")
    page.locator("[data-part=storage]").get_by_text("This is about the engine as a whole").wait_for()
    page.locator("[data-part=memory]").get_by_text("counted").first.wait_for()
    page.get_by_text("You see what is about tables and views that you may read").wait_for()
    assert "hidden" not in page.locator(".page-operations").inner_text()
    page.locator("[data-part=clients] tbody tr").first.wait_for()
    users = page.locator("[data-part=clients] tbody tr td:first-child").all_inner_texts()
    assert set(users) == {"ann"}, "nobody else's"
    page.get_by_role("button", name="Drop counted").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop the view").click()
    page.locator(".toast.error", has_text="permission denied: 'ann' must be owner").wait_for()
    assert "counted" in guarded.engine.views


# ---------------------------------------------------------------------- everywhere


@pytest.mark.parametrize("path", ["query", "views", "dataflow", "operations"])
def test_a_page_fits_a_phone_in_the_dark(lively: RunningServer, opened: Opened, path: str) -> None:
    page = opened(lively, path, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.locator(f".page-{path}").wait_for()
    page.locator(".connection[data-state=open]").wait_for()
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    wide = page.evaluate("document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth")
    assert wide <= 0, "the page scrolls sideways"


def test_pages_are_reached_by_keys_alone(lively: RunningServer, opened: Opened) -> None:
    page = opened(lively)
    page.locator(".cm-content").wait_for()
    page.keyboard.press("Escape")
    page.locator(".cm-content").evaluate("(each) => each.blur()")
    for key, name in (("o", "operations"), ("v", "views"), ("d", "dataflow"), ("o", "operations")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.locator(f".page-{name}").wait_for()
        page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Run the query").wait_for()
