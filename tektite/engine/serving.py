"""The method of Engine that lets people look into a running program: the console, served by a thread."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from tektite.errors import UnsupportedError
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.server.embedded import Console

NEEDED = ("h11", "websockets")


def check_packages(what: str) -> None:
    """Raise if the packages that serving an engine needs are not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        packages = f"package{'s' * (len(missing) > 1)} {' and '.join(missing)}"
        raise UnsupportedError(f"{what} needs the {packages}: pip install 'tektite[server]'")


@explains_options
class ServingMethods:
    """The console."""

    _core: EngineCore

    def console(self, *, address: str = "127.0.0.1", port: int | None = None, browser: bool = False) -> Console:
        """Serve the [console](../how-to/console.md) of this engine from a thread: a page that shows queries, views, what they
        share and what the engine does, live. The page's address is printed, and is the `url` of what is returned, which
        `close` ends; so does closing the engine.

        It listens on this machine alone, unless `address` says otherwise; that takes roles that can log in. `port` is 5434, or
        another one if that is taken. With `browser`, the page is opened.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> with engine.console() as console:
        ...     console.url.startswith("http://127.0.0.1:")
        the console is at http://127.0.0.1:...
        True
        """
        check_packages("the console")
        from tektite.server.embedded import Console

        return Console(self._core.engine, address, port, browser)
