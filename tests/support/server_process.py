"""A server in a process of its own, which can be killed and started again on the same storage and ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg

from tests.support.patience import PATIENCE, until


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
    log: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    """What it says: a file, since a pipe that nobody reads stops it when it is full."""

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        options = ["--storage", str(self.storage), "--port", str(self.port), "--http-port", str(self.http_port)]
        self.log.seek(0)
        self.log.truncate()
        self.process = subprocess.Popen([sys.executable, "-m", "tektite", "serve", *options], stderr=self.log)
        until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self._said()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/ready", timeout=PATIENCE):
                return True
        except OSError:
            return False

    def _said(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()

    def kill(self, number: int = signal.SIGKILL) -> str:
        """Send it a signal, and wait for its end. What it has logged."""
        assert self.process is not None
        os.kill(self.process.pid, number)
        self.process.wait(PATIENCE)
        return self._said()

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
            found.process.wait()
        found.log.close()
