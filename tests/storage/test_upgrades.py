"""A storage that an earlier version wrote is read, and written to, by this one.

`data/storage-VERSION.tar.gz` is what `write` below left in a storage when that version ran it, with two workers. A release adds
its own; none is ever removed or made anew.
"""

from __future__ import annotations

import datetime
import decimal
import tarfile
from pathlib import Path

import pytest

import tektite as tk

DATA = Path(__file__).parent / "data"
NAMES = ("people", "edges", "settings")
PEOPLE = {
    "id": tk.Int, "name": tk.String, "born": tk.Date, "score": tk.Float, "paid": tk.Decimal(12, 2), "seen": tk.Timestamp,
    "active": tk.Bool,
}  # fmt: skip


def person(epoch: int, i: int) -> tuple[object, ...]:
    """Every type, with NULLs and texts beyond ASCII."""
    born = datetime.date(1970, 1, 1) + datetime.timedelta(days=37 * i + epoch)
    return (
        100 * epoch + i,
        f"name {epoch} {i} \u00e9\u4e16",
        born if i % 5 else None,
        i / 7 - epoch if i % 3 else None,
        decimal.Decimal(i * epoch) / 4,
        datetime.datetime(2024, 1, 1 + epoch, i % 24, i % 60),
        i % 2 == 0 if i % 4 else None,
    )


def write(engine: tk.Engine, is_stored: bool) -> None:
    """What the stored archives were written by."""
    people = engine.create_table("people", PEOPLE, primary_key=["id"])
    edges = engine.create_table("edges", {"src": tk.String, "dst": tk.String})
    degrees = engine.install("degrees", edges.group_by("src").agg(n=tk.count()))
    if is_stored:
        degrees.persist()
    for epoch in range(6):
        people.insert([person(epoch, i) for i in range(60)])
        edges.insert([(f"n{(i * 7) % 13}", f"n{(i * epoch) % 17}") for i in range(80)])
        engine.advance()
        if epoch % 2:
            edges.remove([(f"n{(i * 7) % 13}", f"n{(i * epoch) % 17}") for i in range(0, 80, 3)])
            people.remove([row for row in people.rows() if row[0] % 10 == epoch])
            engine.advance()
    engine.sql("CREATE TABLE settings (key varchar PRIMARY KEY, value varchar NOT NULL DEFAULT 'unset')")
    engine.sql("INSERT INTO settings (key) VALUES ('a'), ('b')")


def contents(engine: tk.Engine) -> dict[str, list[str]]:
    return {name: sorted(map(str, engine.table(name).rows())) for name in NAMES}


@pytest.fixture(params=sorted(path.name for path in DATA.glob("storage-*.tar.gz")))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(DATA / request.param) as archive:
        archive.extractall(tmp_path / "storage", filter="data")
    return tmp_path / "storage"


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    with tk.Engine(autocommit=False) as engine:
        write(engine, is_stored=False)
        return contents(engine)


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_storage_of_an_earlier_version_is_read(
    stored: Path, expected: dict[str, list[str]], workers: int | None
) -> None:
    with tk.Engine(workers, storage=stored, autocommit=False) as engine:
        assert contents(engine) == expected


def test_storage_of_an_earlier_version_goes_on(stored: Path, expected: dict[str, list[str]]) -> None:
    with tk.Engine(storage=stored, autocommit=False) as engine:
        degrees = engine.install("degrees", engine.table("edges").group_by("src").agg(n=tk.count()))
        before = sorted(degrees.rows())
        engine.table("edges").insert([("new", "n1"), ("n0", "n1")])
        engine.advance()
        engine.sql("INSERT INTO settings (key) VALUES ('c')")
        with pytest.raises(tk.ConflictError, match="two rows with the key"):
            engine.sql("INSERT INTO settings VALUES ('a', 'again')")
    with tk.Engine(storage=stored, autocommit=False) as engine:
        found = contents(engine)
        assert found["people"] == expected["people"]
        assert found["settings"] == sorted([*expected["settings"], "('c', 'unset')"])
        assert found["edges"] == sorted([*expected["edges"], "('new', 'n1')", "('n0', 'n1')"])
        again = engine.install("degrees", engine.table("edges").group_by("src").agg(n=tk.count()))
        more = dict(before) | {"new": 1, "n0": dict(before).get("n0", 0) + 1}
        assert sorted(again.rows()) == sorted(more.items())
