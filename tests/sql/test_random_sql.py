"""Random queries over small random tables equal DuckDB's answers after every epoch of random changes.

TEKTITE_SQL_QUERIES sets how many queries there are (160), TEKTITE_SEED where the seeds start. A failure prints a small
script that shows it.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.nightly import SEED, size
from tests.support.sql.generator import Generator
from tests.support.sql.trial import reduced, report, try_case
from tests.support.sql.worlds import World

QUERIES = size("TEKTITE_SQL_QUERIES", 160)
TOGETHER = {"threads": 20, "stages": 5, "spark": 2}
"""Queries that are maintained beside each other."""

pytestmark = [pytest.mark.slow, pytest.mark.executors]


@pytest.mark.executors(stages=[SEED + 7], spark=[SEED + 7])
@pytest.mark.parametrize("seed", range(SEED, SEED + -(-QUERIES // TOGETHER["threads"])))
def test_random_queries_equal_duckdb_after_every_epoch(seed: int, executor: str) -> None:
    chance = random.Random(seed)
    world = World(chance)
    case = world.case()
    generator = Generator(chance, world.tables)
    answered, wanted = 0, TOGETHER[executor]
    while answered < wanted:
        case.queries = [generator.query() for _ in range(wanted - answered)]
        # Most queries see all changes come; some arrive when there is a past.
        case.installs = [chance.choice((0, 0, 0, chance.randrange(len(case.epochs)))) for _ in case.queries]
        faults, count = try_case(case, workers=1 + seed % 2)
        answered += count
        if faults:
            shown = [report(*reduced(case.alone(fault.query), replace(fault, query=0))) for fault in faults[:3]]
            pytest.fail(f"{len(faults)} of {count} queries of seed {seed} differ:\n\n" + "\n\n".join(shown))
