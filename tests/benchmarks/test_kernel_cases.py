"""The cases of the benchmark `kernels` run at every size, and their digests tell results apart."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.kernel_cases import CASES, Part, chunk, digest


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_the_same_results_again(name: str) -> None:
    for size in (1, 40, 1_000):
        run = CASES[name](size)
        assert digest(run()) == digest(run())


def test_a_digest_covers_rows_and_not_addresses() -> None:
    def of(part: Part) -> str:
        return digest([(part.memory, part.head)])

    words = np.arange(5)
    assert of(chunk(words, 7)) == of(chunk(words.copy(), 7))
    assert of(chunk(words, 7)) != of(chunk(words, 8))
    assert of(chunk(words, 7)) != of(chunk(words[::-1].copy(), 7))
