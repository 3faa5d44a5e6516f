"""The server beside real PostgreSQL (Debian's package), asked the same by the same clients: psycopg for single look-ups, asyncpg
for many connections.

`sales` has a few million rows, as a table of receipts does, and no index but its key. "computed anew" is one shop's totals from
all of them, which the view holds.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "server"
DESCRIPTION = "look-ups, inserts of many connections and COPY over PostgreSQL's protocol, beside PostgreSQL itself"

TABLE = "CREATE TABLE sales (id bigint PRIMARY KEY, shop bigint, amount double precision)"
TOTALS = "SELECT shop, count(*) AS n, sum(amount) AS total FROM sales GROUP BY shop"


def run(
    rows: int = 3_000_000,
    shops: int = 1000,
    lookups: int = 3000,
    anew: int = 10,
    connections: tuple[int, ...] = (50, 200),
    seconds: float = 5.0,
) -> Iterator[dict[str, Any]]:
    """Records of each system by `what`: look-up of a maintained view, single-row inserts of many connections, COPY."""
    systems = [("tektite", tektite_server)]
    if postgres_programs() is not None:
        systems.append(("postgresql", postgres_server))
    for system, serve in systems:
        with serve() as url:
            for record in measure(system, url, rows, shops, lookups, anew, connections, seconds):
                yield {"system": system, **record}


def measure(
    system: str, url: str, rows: int, shops: int, lookups: int, anew: int, connections: tuple[int, ...], seconds: float
) -> Iterator[dict[str, Any]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as client:
        client.execute(TABLE)
        data = "".join(f"{n}\t{n % shops}\t{n % 97}.5\n" for n in range(rows)).encode()
        began = time.perf_counter()
        with client.cursor().copy("COPY sales FROM STDIN") as copy:
            for at in range(0, len(data), 1 << 16):
                copy.write(data[at : at + (1 << 16)])
        yield {"what": "COPY", "rows/s": rows / (time.perf_counter() - began)}
        if system == "tektite":
            client.execute(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        else:
            client.execute(f"CREATE TABLE totals AS {TOTALS}")
            client.execute("CREATE UNIQUE INDEX ON totals (shop)")
            client.execute("ANALYZE")
        found = percentiles(client, "SELECT n, total FROM totals WHERE shop = %s", shops, lookups)
        yield {"what": "look-up", **found}
        one = TOTALS.replace("GROUP BY", "WHERE shop = %s GROUP BY")
        yield {"what": "computed anew", **percentiles(client, one, shops, anew, 2)}
        client.execute("CREATE TABLE events (id bigint, v text, x double precision)")
    for many in connections:
        done = asyncio.run(insert(url, many, seconds))
        yield {"what": f"INSERT, {many} connections", "rows/s": done / seconds}


def percentiles(client: Any, query: str, shops: int, times: int, before: int = 20) -> dict[str, Any]:
    """How long a query takes, `before` runs of it left out."""
    taken = []
    for n in range(times + before):
        began = time.perf_counter()
        client.execute(query, (n * 7 % shops,), prepare=True).fetchall()
        taken.append(time.perf_counter() - began)
    taken = sorted(taken[before:])
    return {"p50 ms": taken[times // 2] * 1e3, "p99 ms": taken[times * 99 // 100] * 1e3}


async def insert(url: str, many: int, seconds: float) -> int:
    """Single-row prepared INSERTs of many connections, for some seconds; how many rows."""
    import asyncpg

    clients = [await asyncpg.connect(url) for _ in range(many)]
    prepared = [await client.prepare("INSERT INTO events VALUES ($1, $2, $3)") for client in clients]
    end = time.perf_counter() + seconds
    counts = [0] * many

    async def work(number: int) -> None:
        statement = prepared[number]
        while time.perf_counter() < end:
            await statement.fetch(counts[number], "value", 1.5)
            counts[number] += 1

    await asyncio.gather(*map(work, range(many)))
    for client in clients:
        await client.close()
    return sum(counts)


# ---------------------------------------------------------------------- the systems


@contextmanager
def tektite_server() -> Iterator[str]:
    command = [sys.executable, "-m", "tektite", "serve", "--port", "0", "--http-port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        port = next(word.partition("=")[2] for word in line.split() if word.startswith("port="))
        yield f"postgresql://ann@127.0.0.1:{port}/tektite"
    finally:
        process.terminate()
        process.wait(30)


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's programs, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """PostgreSQL with its defaults, except that commits do not wait for the disk, as the other engine has no storage."""
    programs = postgres_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="tektite-pg-"))
    is_root = subprocess.check_output(["id", "-u"], text=True).strip() == "0"
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if is_root else []
    if is_root:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    subprocess.run([*user, str(programs / "initdb"), "-D", str(data), "-U", "ann", "-A", "trust"], **quiet)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = f"-p {port} -k {folder} -c max_connections=300 -c synchronous_commit=off -c listen_addresses=127.0.0.1"
    control = [*user, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    subprocess.run([*control, "-o", options, "start"], **quiet)
    try:
        yield f"postgresql://ann@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], **quiet)
        shutil.rmtree(folder, ignore_errors=True)
