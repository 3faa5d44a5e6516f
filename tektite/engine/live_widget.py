"""LiveWidget: a view in a notebook, as a table that follows the view while epochs close. Made by `View.show`.

A thread of its own waits for the view and sends the first rows, so that cells which run for long do not stop it. Waiting and
sending take the engine's lock only to read these rows. It needs the package anywidget, and is imported when it is used.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from tektite.engine.notices import ThreadWaiter
from tektite.errors import TektiteError

if TYPE_CHECKING:
    from tektite.engine.view import View

PAUSE = 0.1
"""Seconds between two looks: as often as a person sees a difference."""
PATIENCE = 0.5
"""Seconds after which a thread that waits for a view looks whether its widget is still there."""
MOST_LETTERS = 200
"""Of longer texts, a cell shows the beginning."""

HERE = Path(__file__).parent


class LiveWidget(anywidget.AnyWidget):
    """A view's first rows. `close` ends it; it ends by itself when the view is dropped or the engine is closed."""

    _esm = HERE / "live_widget.js"
    _css = HERE / "live_widget.css"
    title = traitlets.Unicode().tag(sync=True)
    columns: traitlets.List[list[str]] = traitlets.List().tag(sync=True)
    """Pairs of a name and a type."""
    state = traitlets.Dict().tag(sync=True)
    """Everything that changes: rows of texts, their time, about how many there are, and an error."""

    def __init__(self, view: View, rows: int) -> None:
        found = zip(view.schema.names, view.schema.types, strict=True)
        self._view = view
        self._rows = rows
        self._stopped = ThreadWaiter()
        super().__init__(
            title=view.name, columns=[[name, str(type)] for name, type in found], state=self._look(is_first=True)
        )
        self._thread = _thread(self._follow)
        self._thread.start()

    def close(self) -> None:
        """Follow the view no more, and take the table away."""
        self._stopped.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        super().close()

    def _look(self, is_first: bool = False) -> dict[str, Any]:
        """The view as it is. An error of rows is shown, since it may go; others end the first look."""
        view, core = self._view, self._view._core
        with core.lock.held:
            time = view.time
            try:
                table = view._head(self._rows + 1, wait=is_first)
                rows = [[_text(value) for value in row] for row in view._tuples(table.slice(0, self._rows))]
                many = max(core.trace.count, table.num_rows) if table.num_rows > self._rows else table.num_rows
                return {"rows": rows, "time": time, "many": many, "error": None, "ended": False}
            except TektiteError as error:
                if view.error is None:  # it cannot be read at all, for instance because it keeps no rows
                    raise
                return {"rows": [], "time": time, "many": 0, "error": str(error), "ended": False}

    def _follow(self) -> None:
        time = self.state["time"]
        while not self._stopped.wait(PAUSE):
            try:
                if self._view.wait((-1 if time is None else time) + 1, PATIENCE):
                    self.state = self._look()
                    time = self.state["time"]
            except TektiteError as error:
                self.state = self.state | {"error": str(error), "ended": True}
                return


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def _thread(work: Any) -> threading.Thread:
    """A thread that may send to the notebook. In marimo, that takes one of its own kind."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        made: threading.Thread = marimo.Thread(target=work, name="tektite-widget", daemon=True)
        return made
    return threading.Thread(target=work, name="tektite-widget", daemon=True)
