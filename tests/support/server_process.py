"""A server in a process of its own, which can be killed and started again on the same storage and ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass
class ServerProcess:
    """A server, and how to reach it."""

    storage: Path
    port: int
    http_port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        options = ["--storage", str(self.storage), "--port", str(self.port), "--http-port", str(self.http_port)]
        self.process = subprocess.Popen([sys.executable, "-m", "tektite", "serve", *options], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.stderr.read() if self.process.stderr else ""
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not become ready")

    def kill(self, number: int = signal.SIGKILL) -> str:
        """Send it a signal, and wait for its end. What it has logged."""
        assert self.process is not None
        os.kill(self.process.pid, number)
        _, said = self.process.communicate(timeout=60)
        return said.decode()

    def connect(self, user: str = "me", password: str | None = None, **options: Any) -> psycopg.Connection[Any]:
        """A client of PostgreSQL's."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, dbname="tektite", autocommit=True, **options
        )


@contextmanager
def server_process(storage: Path) -> Iterator[ServerProcess]:
    """A server that has been started, and is killed at the end of the block if it runs still."""
    found = ServerProcess(storage, free_port(), free_port())
    try:
        found.start()
        yield found
    finally:
        if found.process is not None and found.process.poll() is None:
            found.process.kill()
            found.process.communicate()
