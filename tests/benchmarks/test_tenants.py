"""The benchmark of many clients tells every client the same changes, whatever is shared."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from benchmarks import tenants


def test_clients_are_told_the_same_by_every_strategy(tmp_path: Path) -> None:
    records = list(tenants.run(clients=60, arrivals=10, tuples=50, devices=20))
    told: dict[str, list[int]] = defaultdict(list)
    for record in records:
        told[record["strategy"]].append(record["changes"])
    assert set(told) == {*tenants.STRATEGIES}
    assert told[tenants.NOTHING] == told[tenants.ARRANGEMENTS] == told[tenants.DATA_PLANE]
    assert sum(told[tenants.DATA_PLANE]) > 60
    tenants.plot(records, tmp_path / "tenants.png")
    assert (tmp_path / "tenants.png").stat().st_size > 1000
