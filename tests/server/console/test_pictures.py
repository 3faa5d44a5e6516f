"""The pictures of the console, in a real browser: what queries share, how a view is computed, and how a query would be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tektite.sql import runner
from tektite.sql.access.verifiers import Verifier
from tests.support.browser import page_of, wait_for
from tests.support.patience import until
from tests.support.server import RunningServer, running_server

SETUP = """
CREATE TABLE edges (src int, dst int);
CREATE TABLE people (id int PRIMARY KEY, city varchar);
CREATE MATERIALIZED VIEW hops AS SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src;
CREATE MATERIALIZED VIEW cities AS SELECT city, count(*) AS n FROM edges JOIN people ON id = dst GROUP BY city;
CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r AS (
  SELECT src, dst FROM edges UNION SELECT r.src, e.dst FROM r JOIN edges e ON e.src = r.dst) SELECT * FROM r
"""
SIBLINGS = (
    "CREATE MATERIALIZED VIEW siblings AS SELECT a.src, b.src AS other FROM edges a JOIN edges b ON a.dst = b.dst"
)


@pytest.fixture
def filled(served: RunningServer) -> RunningServer:
    served.engine.sql(SETUP)
    served.engine.table("edges").insert([(n, (n * 7 + 1) % 40) for n in range(40)])
    served.engine.table("people").insert([(n, f"city {n % 3}") for n in range(40)])
    served.engine.settle()
    return served


@pytest.fixture
def page(browser: Any, filled: RunningServer) -> Iterator[Any]:
    with page_of(browser) as found:
        found.goto(f"http://127.0.0.1:{filled.http_port}/")
        yield found


def opened(page: Any, path: str) -> Any:
    page.evaluate(f"location.hash = '#/{path}'")
    return page


def drawn(page: Any, what: str) -> list[str]:
    """The ids of the circles of a kind."""
    found = page.eval_on_selector_all(f".sharing .node.{what}:not(.leaving)", "all => all.map(each => each.dataset.id)")
    return sorted(found)


def test_the_sharing_picture_follows_what_is_installed_and_dropped(filled: RunningServer, page: Any) -> None:
    opened(page, "views").wait_for_selector(".sharing .node.query")
    assert drawn(page, "query") == ["v:cities", "v:hops", "v:reach"]
    lead = page.inner_text(".lead")
    assert "3 queries, 3 indexes" in lead and "times as much" in lead
    label = ".sharing .node.index[aria-label*='edges by (dst)']"
    assert "read by 2 queries" in page.get_attribute(label, "aria-label")
    filled.engine.sql(SIBLINGS)
    page.wait_for_selector(".sharing .node[data-id='v:siblings']")
    page.wait_for_selector(f"{label}[aria-label*='read by 3 queries']")
    filled.engine.sql("DROP MATERIALIZED VIEW siblings")
    page.wait_for_selector(".sharing .node[data-id='v:siblings']", state="detached")
    page.wait_for_selector(f"{label}[aria-label*='read by 2 queries']")


def test_a_query_that_a_client_follows_is_in_the_picture_while_it_does(filled: RunningServer, page: Any) -> None:
    opened(page, "views").wait_for_selector(".sharing .node.query")
    followed = filled.engine.sql("SUBSCRIBE (SELECT id, src FROM people JOIN edges ON dst = id WHERE city = 'city 1')")
    page.wait_for_selector(".sharing .node.query.passing")
    page.wait_for_selector(".sharing .node.index[aria-label*='edges by (dst)'][aria-label*='read by 3 queries']")
    assert followed.subscription is not None
    followed.subscription.close()
    del followed
    runner(filled.engine).shared.sweep()
    page.wait_for_selector(".sharing .node.query.passing", state="detached")


def test_areas_are_true_to_memory_and_edges_lead_to_what_is_read(filled: RunningServer, page: Any) -> None:
    filled.engine.table("edges").insert([(n, n % 500) for n in range(20_000)])
    filled.engine.settle()
    opened(page, "views").wait_for_selector(".sharing .node.index")
    sizes = dict(filled.engine.sql("SELECT name, bytes FROM system.indexes WHERE name LIKE 'edges%'").rows())
    page.wait_for_function("document.querySelectorAll('.sharing .node.index').length === 3")
    circles: dict[str, float] = page.eval_on_selector_all(
        ".sharing .node.index",
        "all => Object.fromEntries(all.map(each => [each.getAttribute('aria-label').split(', ')[0].slice(6), "
        "Number(each.querySelector('.body').getAttribute('r'))]))",
    )
    scales = [circles[name] / math.sqrt(size) for name, size in sizes.items()]
    assert len(scales) == 2 and max(scales) < 1.15 * min(scales)
    ((reads,),) = filled.engine.sql(
        "SELECT count(*) FROM system.views v JOIN system.index_readers r ON r.dataflow = v.dataflow"
    ).rows()
    assert page.locator(".sharing .edge.reads").count() == reads == 5


def followed(served: RunningServer) -> set[str]:
    """The names of the relations that somebody follows."""
    return {feed.source.relation.name for feed in list(served.server.feeds._feeds.values()) if feed.subscribers}


def test_a_view_is_chosen_by_keys_and_shows_its_definition_and_changes(filled: RunningServer, page: Any) -> None:
    opened(page, "views").wait_for_selector(".sharing .node.query[tabindex='0']")
    page.focus(".sharing .node[tabindex='0']")
    for _ in range(4):
        if page.evaluate("document.activeElement.dataset.id") == "v:cities":
            break
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail h2:has-text('cities')")
    page.wait_for_selector(".detail pre:has-text('GROUP BY')")
    assert "edges by (dst)" in page.inner_text(".detail .chips")
    until(lambda: "cities" in followed(filled))
    filled.engine.table("edges").insert([(99, 3)])
    page.wait_for_selector(".detail .changes .in")
    assert "city 0" in page.inner_text(".detail .changes")
    page.click(".detail button:has-text('dataflow')")
    page.wait_for_selector(".page-dataflow .graph .operator")


def test_many_views_are_grouped_found_and_listed(filled: RunningServer, page: Any) -> None:
    for number in range(90):
        filled.engine.sql(f"CREATE MATERIALIZED VIEW from_{number} AS SELECT dst FROM edges WHERE src = {number}")
    opened(page, "views").wait_for_selector(".sharing .node.group")
    assert len(drawn(page, "query")) == 3  # reach reads what those do: the table alone
    assert "from_*" in page.get_attribute(".sharing .node.group", "aria-label")
    assert page.locator(".rows .line").count() < 40, "only lines that can be seen exist"
    page.fill("input[type=search]", "from_77")
    page.wait_for_function("document.querySelectorAll('.rows .line').length === 1")
    page.fill("input[type=search]", "")
    page.click(".sharing .node.group", force=True)
    page.wait_for_function("document.querySelectorAll('.sharing .node.query:not(.leaving)').length === 93")


def test_the_dataflow_has_loops_with_rounds_and_shared_parts(filled: RunningServer, page: Any) -> None:
    opened(page, "dataflow/reach").wait_for_selector(".graph .box.loop")
    page.wait_for_selector(".graph .box.loop text:has-text('rounds last time')")
    assert page.locator(".graph .edge.feedback").count() == 1
    inside = page.evaluate(
        """() => { const box = document.querySelector('.graph .box.loop rect').getBBox();
        const joins = [...document.querySelectorAll('.graph .operator')].filter(each => each.textContent.includes('join'));
        return joins.every(each => {
          const place = each.getCTM(), svg = each.ownerSVGElement.getCTM(); const y = (place.f - svg.f) / svg.d;
          return y > box.y && y < box.y + box.height; }); }"""
    )
    assert inside, "operators of a loop stand in its box"
    opened(page, "dataflow/hops").wait_for_selector(".graph .operator.index.shared:has-text('edges by (dst)')")
    assert page.locator(".graph .operator.own .title:text-is('join')").count() == 1
    filled.engine.sql(SIBLINGS)
    page.wait_for_selector(".graph .operator.index:has-text('3 readers')")
    numbers = count()

    def is_busy() -> bool:
        number = next(numbers)
        filled.engine.table("edges").insert([(number, 1000 + number)])
        page.wait_for_timeout(150)
        return bool(page.locator(".graph .way.active .rate:has-text('/s')").count())

    until(is_busy)
    page.click("details.text summary")
    page.wait_for_selector("details.text li:has-text('join on dst = src')")
    filled.engine.sql("DROP MATERIALIZED VIEW hops")
    page.wait_for_selector(".empty:has-text('There is no view hops')")


@pytest.mark.parametrize("analyze", [False, True])
def test_a_plan_is_drawn(filled: RunningServer, page: Any, analyze: bool) -> None:
    query = "SELECT src, count(*) FROM reach WHERE dst > 3 GROUP BY src"
    options = "ANALYZE, FORMAT JSON" if analyze else "FORMAT JSON"
    data = filled.engine.sql(f"EXPLAIN ({options}) {query}").rows()[0][0]
    opened(page, "views").wait_for_selector(".sharing")
    # an element of its own: the page redraws its sections when something changes
    draw = """async (data) => { const { draw } = await import('/console/explain.js');
        const drawn = document.body.appendChild(document.createElement('section'));
        drawn.id = 'drawn';
        const end = draw(drawn, data);
        window.remove = () => { end(); drawn.remove(); }; }"""
    page.evaluate(draw, data)
    operators = page.locator("#drawn .graph .operator")
    texts = operators.evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert len(texts) == len(json.loads(data)["operators"]) + 1
    assert any(text.startswith("group by. src") for text in texts) and any(text.startswith("reach.") for text in texts)
    assert page.locator("#drawn .graph .hot").count() == (1 if analyze else 0) or analyze
    recursive = filled.engine.view("reach").explain().data
    page.evaluate("window.remove()")
    page.evaluate(draw, json.dumps(recursive))
    assert page.locator("#drawn .graph .box.loop").count() == 1
    assert page.locator("#drawn .graph .edge.feedback").count() == 1
    assert page.locator("#drawn .explanation .badge.shared").count() >= 1


def test_layouts_of_many_things_keep_them_apart(page: Any) -> None:
    found = page.evaluate(
        """async () => {
        const { sharingGraph, outerNodes, sharingLayout } = await import('/console/sharing-layout.js');
        const numbers = (many) => [...Array(many).keys()];
        const table = { kind: 'table', columns: 'a', rows: 10, changes: 0, operator: null, dataflow: null };
        const indexes = numbers(40).map((n) => ({ ...table, name: `t${n}`, bytes: 1000 * (n + 1) ** 2 }));
        const view = { state: 'current', lag: 0, rows: 1, bytes: 100, changes: 0 };
        const views = numbers(500).map((n) => ({ ...view, name: `v${n}`, dataflow: n }));
        const read = (n) => [n % 40, (n * 7) % 40, (n * 3) % 40];
        const readers = numbers(500).flatMap((n) => read(n).map((at) => ({ index: `t${at}`, operator: null, dataflow: n })));
        const graph = sharingGraph({ views, indexes, readers });
        const outer = outerNodes(graph);
        const { places } = sharingLayout(graph, outer, { width: 1100, height: 750, margin: 140 });
        const circles = [...graph.indexes.keys()].map((id) => places.get(id));
        const near = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) < 0.8 * (a.r + b.r);
        const overlaps = circles.flatMap((a, at) => circles.slice(at + 1).filter((b) => near(a, b))).length;
        const again = sharingLayout(graph, outer, { width: 1100, height: 750, margin: 140 });
        const inside = [...places.values()].every(({ x, y }) => x > 0 && x < 1100 && y > 0 && y < 750);
        return { outer: outer.length, overlaps, inside,
                 same: [...places].every(([id, place]) => again.places.get(id).x === place.x) };
    }"""
    )
    assert found == {"outer": 39, "overlaps": 0, "inside": True, "same": True}


@pytest.mark.parametrize("size", [(1010, 690, 150), (366, 384, 26)], ids=["desktop", "phone"])
def test_queries_on_the_ring_stand_side_by_side(page: Any, size: tuple[int, int, int]) -> None:
    """Whatever their memory is: areas stay true to it, with one scale for queries and indexes."""
    found = page.evaluate(
        """async ([width, height, margin]) => {
        const { SMALLEST, sharingGraph, outerNodes, sharingLayout } = await import('/console/sharing-layout.js');
        const numbers = (many) => [...Array(many).keys()];
        const table = { kind: 'table', columns: 'a', rows: 10, changes: 0, operator: null, dataflow: null };
        const indexes = numbers(6).map((n) => ({ ...table, name: `t${n}`, bytes: 60000 * (n + 1) }));
        const view = { state: 'current', lag: 0, rows: 1, changes: 0 };
        const bytes = (n) => (n < 9 ? 230000 : n < 12 ? 900000 : n * 900);
        const views = numbers(56).map((n) => ({ ...view, name: `v${n}`, bytes: bytes(n), dataflow: n }));
        const readers = views.map(({ dataflow }) => ({ index: `t${dataflow % 6}`, operator: null, dataflow }));
        const graph = sharingGraph({ views, indexes, readers });
        const outer = outerNodes(graph);
        const { places, scale } = sharingLayout(graph, outer, { width, height, margin });
        const circles = [...places.values()];
        const meet = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) < a.r + b.r;
        const overlaps = circles.flatMap((a, at) => circles.slice(at + 1).filter((b) => meet(a, b))).length;
        const all = [...outer, ...graph.indexes.values()];
        const off = all.filter(({ id, bytes }) => places.get(id).r !== Math.max(scale * Math.sqrt(bytes), SMALLEST)).length;
        return { outer: outer.length, overlaps, off };
    }""",
        list(size),
    )
    assert found == {"outer": 56, "overlaps": 0, "off": 0}


def test_a_user_of_few_rights_sees_its_part_of_the_picture_as_rights_change(browser: Any) -> None:
    with running_server(users={"root": Verifier.of("pw")}) as server, page_of(browser) as page:
        server.engine.sql(SETUP + "; CREATE USER bob PASSWORD 'for bob'; GRANT SELECT ON hops TO bob")

        def listed() -> list[str]:
            return [str(name) for name in page.locator(".rows .line .name").all_inner_texts()]

        page.goto(f"http://127.0.0.1:{server.http_port}/#/views")
        page.fill("input[name=user]", "bob")
        page.fill("input[name=password]", "for bob")
        page.keyboard.press("Enter")
        wait_for(page, listed, ["hops"])
        assert "edges" not in page.inner_text(".page-views"), "bob may read the view, and not the table below it"
        page.click(".rows .line[data-name='hops']")
        page.get_by_text("It reads something that you may not read").wait_for()
        page.evaluate("location.hash = '#/dataflow/hops'")
        page.get_by_text("How it is computed is shown to those who may read everything that it reads").wait_for()
        server.engine.sql("GRANT SELECT ON edges TO bob")
        page.wait_for_selector(".graph .operator.index.shared:has-text('edges by (dst)')")
        page.evaluate("location.hash = '#/views'")
        page.wait_for_selector(".sharing .node.query")
        wait_for(page, listed, ["hops"])
        server.engine.sql("REVOKE SELECT ON hops FROM bob")
        wait_for(page, listed, [])
