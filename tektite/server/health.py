"""Liveness, readiness and status, for whoever runs the server: what `/live`, `/ready` and `/status` answer.

`/live` answers as long as the event loop turns. `/ready` answers 200 while statements are answered, and 503 before and after.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of

if TYPE_CHECKING:
    from tektite.server.server import Server


def health(server: Server, path: str) -> tuple[int, dict[str, Any]] | None:
    """The status and the body that answer a request for a path; None if that is no such path."""
    if path == "/live":
        return 200, {"live": True}
    if path in ("/ready", "/health"):
        return (200 if server.is_ready else 503), {"ready": server.is_ready}
    if path == "/status":
        return 200, status_of(server)
    return None


def status_of(server: Server) -> dict[str, Any]:
    """The state of a server, without waiting for its engine."""
    core = core_of(server.engine)
    internal = core.system.names()
    tables = [name for name in tuple(core.inputs) if not name.startswith("__") and name not in internal]
    views = [name for name in tuple(core.views) if not name.startswith("__")]
    return {
        "ready": server.is_ready, "seconds": round(time.time() - server.began, 3), "connections": len(server.connections),
        "epoch": core.epoch, "durable": core.durable, "tables": len(tables), "views": len(views),
        "feeds": len(server.feeds),
    }  # fmt: skip
