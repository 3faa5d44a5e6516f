"""The command `tektite serve`: reads a description, opens the engine, and serves it until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import getpass
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tektite.errors import TektiteError
from tektite.server.epochs import EpochPolicy
from tektite.server.installation import check_views, open_engine
from tektite.server.logs import Log
from tektite.server.plan import ServerPlan, read_server
from tektite.server.server import Server
from tektite.sql.access.verifiers import Verifier


def serve_file(path: Path | None, options: dict[str, Any], log_form: str, check: bool) -> int:
    """Serve what a file describes, with some of it said otherwise by options; the exit code."""
    log = Log(log_form)
    try:
        plan = with_options(read_server(path), options)
        plan.check()
        if check:
            pipeline = plan.pipeline
            check_views(pipeline)
            log.info(
                "sound",
                name=pipeline.name,
                tables=len(pipeline.tables),
                views=len(pipeline.views),
                users=len(plan.users),
            )
            return 0
        with loop_runner() as runner:
            runner.run(serve(plan, log))
    except TektiteError as error:
        log.error("failed", error=error)
        return 1
    return 0


def with_options(plan: ServerPlan, options: dict[str, Any]) -> ServerPlan:
    """A plan in which options of the command line count more. Those that are None were not given."""
    given = {name: value for name, value in options.items() if value is not None}
    if "epochs" in given:
        given["epochs"] = EpochPolicy.parse(given["epochs"])
    if "storage" in given:
        given["pipeline"] = replace(plan.pipeline, storage=str(given.pop("storage")))
    limits = {name: given.pop(name) for name in ("connections", "statement_seconds") if name in given}
    return replace(plan, **given, limits=replace(plan.limits, **limits))


async def serve(plan: ServerPlan, log: Log, started: Callable[[Server], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. `started` is called when clients can connect."""
    gc.freeze()  # modules stay: looking for garbage among their objects takes 15 to 40 ms, in which no client is answered
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    with open_engine(plan, log) as engine:
        server = Server(plan, engine, log)
        try:
            await server.start()
            if started is not None:
                started(server)
            await stop.wait()
        finally:
            await server.stop()


def loop_runner() -> asyncio.Runner:
    """The runner of the event loop: uvloop's, where that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def print_verifier() -> int:
    """Ask for a password, and print its verifier."""
    password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        print("tektite: a password is needed", file=sys.stderr)
        return 1
    print(Verifier.of(password))
    return 0
