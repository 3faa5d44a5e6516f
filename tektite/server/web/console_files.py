"""The files of the console: a static page, which is a client of the server like any other and knows nothing by itself.

Everybody may load them, before they say who they are. A page may load only files of this server and talk to this server alone.
A browser asks whether its copy is still right each time, by the hash of the contents.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent / "console"
PREFIX = "/console/"
KINDS = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's content security policy: scripts and style sheets come from these files alone, and no other host is called. The
editor sets the attribute `style` of its own elements.
"""
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
    "vary": "accept-encoding",
    "cross-origin-opener-policy": "same-origin",
}
WORTH_PACKING = 1000
"""Bytes from which on a file is sent compressed."""


@dataclass(frozen=True)
class ConsoleFile:
    """A file as it is sent."""

    kind: str
    body: bytes
    packed: bytes | None
    """The same, compressed by gzip, where that is worth it."""
    tag: str
    """A hash of the contents."""


def console_file(path: str) -> ConsoleFile | None:
    """The file that a path of HTTP leads to; None if it leads to none.

    >>> console_file("/").kind
    'text/html; charset=utf-8'
    >>> console_file("/console/../console_files.py") is None
    True
    """
    if path == "/":
        path = PREFIX + "index.html"
    if not path.startswith(PREFIX) or "\0" in path or "\\" in path:
        return None
    name = PurePosixPath(path.removeprefix(PREFIX))
    if name.is_absolute() or name.suffix not in KINDS or any(part.startswith(".") for part in name.parts):
        return None
    found = ROOT / name
    try:
        changed = found.stat().st_mtime_ns
        return _read(found, changed) if found.is_file() else None
    except OSError:
        return None


@lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> ConsoleFile:
    body = path.read_bytes()
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= WORTH_PACKING else None
    return ConsoleFile(KINDS[path.suffix], body, packed, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
