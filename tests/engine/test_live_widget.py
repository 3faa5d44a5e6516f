"""`view.show()`: a table in a notebook that follows its view, in this process, in a real kernel and in a real browser."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tests.support.browser import chromium, page_of
from tests.support.patience import PATIENCE, eventually

pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'tektite[notebook]'")


def shown() -> tuple[tk.Engine, tk.Table, tk.View]:
    engine = tk.Engine()
    sales = engine.create_table("sales", {"shop": str, "amount": int})
    return engine, sales, engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))


def test_it_follows_rows_that_come_change_and_go() -> None:
    engine, sales, totals = shown()
    widget, other = totals.show(), totals.show()
    assert (widget.title, widget.columns) == ("totals", [["shop", "string"], ["amount", "int"]])
    assert widget.state["rows"] == []
    sales.insert([("north", 3), (None, 5)])
    eventually(lambda: sorted(widget.state["rows"], key=str), [["north", "3"], [None, "5"]])
    sales.insert([("north", 4)])
    eventually(lambda: sorted(widget.state["rows"], key=str), [["north", "7"], [None, "5"]])
    sales.remove([(None, 5)])
    eventually(lambda: widget.state["rows"], [["north", "7"]])
    assert widget.state["time"] == totals.time and widget.state["many"] == 1
    widget.close()
    sales.insert([("south", 1)])
    eventually(lambda: len(other.state["rows"]), 2)
    assert widget.state["rows"] == [["north", "7"]]
    engine.close()


def test_only_the_first_rows_are_sent() -> None:
    engine, sales, totals = shown()
    sales.insert([(f"shop {number}", number) for number in range(100)])
    widget = totals.show(rows=5)
    assert len(widget.state["rows"]) == 5 and widget.state["many"] == 100
    widget.close()
    with pytest.raises(tk.IncorrectError, match="a number of rows from 1 on"):
        totals.show(rows=0)


def test_errors_of_rows_are_shown_while_they_stand_and_a_drop_ends_it() -> None:
    engine = tk.Engine()
    texts = engine.create_table("texts", {"t": str})
    numbers = engine.create_view("numbers", texts.select(n=tk.col("t").cast(int)))
    widget = numbers.show()
    texts.insert([("one",)])
    eventually(lambda: "'one'" in (widget.state["error"] or ""), True)
    texts.remove([("one",)])
    texts.insert([("2",)])
    eventually(lambda: (widget.state["error"], widget.state["rows"]), (None, [["2"]]))
    engine.drop_view("numbers")
    eventually(lambda: widget.state["ended"], True)
    assert "dropped" in widget.state["error"]
    with pytest.raises(tk.ConflictError, match="dropped"):
        numbers.show()
    stream = engine.create_view("stream", texts.select("t"))
    widget = stream.show()
    engine.close()
    eventually(lambda: widget.state["ended"], True)
    widget.close()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, totals = shown()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "tektite.engine.live_widget", raising=False)
    with pytest.raises(
        tk.UnsupportedError, match=r"view 'totals': show needs the package anywidget: pip install 'tektite\[notebook\]'"
    ):
        totals.show()


# ---------------------------------------------------------------- in a notebook

CELL = """
import tektite as tk
engine = tk.Engine()
sales = engine.create_table("sales", {"shop": str, "amount": int})
totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")).sort("shop"))
_ = sales.insert([("north", 3), ("south", 5)])
totals.show()
"""
BUSY = """
import time
from pathlib import Path
sales.insert([("north", 4)])
while not Path({!r}).exists():
    time.sleep(0.01)
sales.insert([("west", 1)])
"""


@contextmanager
def kernel() -> Iterator[Any]:
    """A client of a kernel of its own."""
    jupyter = pytest.importorskip("jupyter_client.manager", reason="ipykernel is not installed: pip install ipykernel")
    manager, client = jupyter.start_new_kernel(kernel_name="python3", cwd=str(Path(__file__).parents[2]))
    try:
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def messages(client: Any, until: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """What a kernel sends to all, up to a message."""
    while True:
        found = client.get_iopub_msg(timeout=PATIENCE)
        assert found["msg_type"] != "error", "\n".join(found["content"]["traceback"])
        yield found
        if until(found):
            return


def is_idle(of: str) -> Callable[[dict[str, Any]], bool]:
    return lambda found: (
        found["msg_type"] == "status"
        and found["content"]["execution_state"] == "idle"
        and found["parent_header"].get("msg_id") == of
    )


def test_a_kernel_sends_what_a_browser_draws_also_while_a_cell_runs(tmp_path: Path) -> None:
    with kernel() as client:
        begun = client.execute(CELL)
        state: dict[str, Any] = {}
        views = []
        for message in messages(client, is_idle(begun)):
            if message["msg_type"] == "comm_open" and "_esm" in message["content"]["data"].get("state", {}):
                state = message["content"]["data"]["state"]
                number = message["content"]["comm_id"]
            if message["msg_type"] == "execute_result":
                views.append(message["content"]["data"]["application/vnd.jupyter.widget-view+json"]["model_id"])
        assert views == [number] and state["state"]["rows"] == [["north", "3"], ["south", "5"]]

        goes_on = tmp_path / "goes on"
        client.execute(BUSY.format(str(goes_on)))

        def sent() -> dict[str, Any]:
            """The next state that the kernel sends."""
            while True:
                message = client.get_iopub_msg(timeout=PATIENCE)
                if message["msg_type"] == "comm_msg" and "state" in message["content"]["data"].get("state", {}):
                    found: dict[str, Any] = message["content"]["data"]["state"]["state"]
                    return found

        with chromium() as browser, page_of(browser) as page:
            page.set_content("<main></main>")
            page.add_style_tag(content=state["_css"])
            page.evaluate(
                """async ([source, state]) => {
                const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
                const listeners = new Map();
                window.model = { get: (name) => state[name], on: (name, call) => listeners.set(name, call), off: () => {},
                                 become: (value) => { state.state = value; listeners.get('change:state')(); } };
                (await import(url)).default.render({ model: window.model, el: document.querySelector('main') });
            }""",
                [state["_esm"], {name: state[name] for name in ("title", "columns", "state")}],
            )

            def cells(kind: str = "td") -> list[str]:
                found: list[str] = page.eval_on_selector_all(f"main {kind}", "all => all.map(each => each.textContent)")
                return found

            assert cells() == ["north", "3", "south", "5"] and cells("td.changed, td.added") == []
            page.evaluate("state => window.model.become(state)", sent())  # the cell runs, and does not stop the table
            goes_on.touch()
            assert cells() == ["north", "7", "south", "5"]
            assert cells("td.changed") == ["7"] and cells("td.added") == []
            page.evaluate("state => window.model.become(state)", sent())
            assert cells("td.added") == ["west", "1"] and cells("td.changed") == []
            assert "3 rows" in page.inner_text("main .state")
            failed = {"rows": [], "time": 3, "many": 0, "error": "<b>it fails</b>", "ended": False}
            page.evaluate("state => window.model.become(JSON.parse(state))", json.dumps(failed))
            assert page.inner_text("main .problem") == "<b>it fails</b>"
