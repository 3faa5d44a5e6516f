"""Whatever texts have gone, answers are those of an engine that never saw them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.texts import answers, answers_anew, collected, declare, eager

pytestmark = pytest.mark.executors("stages")


# Without time for a turn, collections meet dataflows that are suspended between two nodes.
@pytest.mark.parametrize(("workers", "options"), [(1, {}), (2, {}), (1, {"turn": 0.0})])
@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_an_engine_that_never_saw_the_past(
    seed: int, workers: int, options: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    with eager(make_engine(workers, autocommit=False, **options)) as engine:
        a, b = declare(engine)
        rows_a: list[tuple[int, str]] = []
        rows_b: list[tuple[int, str, str]] = []
        for epoch in range(8):
            gone_a, gone_b = ([row for row in rows if rng.random() < 0.5] for rows in (rows_a, rows_b))
            new_a = [(rng.randrange(6), f"{epoch + rng.randrange(2)}.{rng.randrange(3)}") for _ in range(6)]
            names = [f"{epoch + rng.randrange(2)}.{rng.randrange(3)}" for _ in range(20)]
            # Some texts are no numbers, so that a row fails while it is there.
            new_b = [(n, rng.choice(names), rng.choice([*names[:4], "17", str(epoch)])) for n in range(6)]
            for source, gone, new, rows in ((a, gone_a, new_a, rows_a), (b, gone_b, new_b, rows_b)):
                source.remove(gone)
                source.insert(new)
                left = Counter(rows) - Counter(gone) + Counter(new)  # type: ignore[operator]
                rows[:] = left.elements()
            engine.advance()
            assert answers(engine) == answers_anew(rows_a, rows_b)
        a.remove(rows_a)
        b.remove(rows_b)
        engine.advance()
        engine.settle()
        if core_of(engine).storage is not None:
            engine.sync()
        # The constants of the views, and nothing that the rows had.
        assert collected(engine) < 60
