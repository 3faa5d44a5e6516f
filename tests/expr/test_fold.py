"""Constants are computed once, and leave nothing behind."""

from __future__ import annotations

from tektite.expr import fold
from tektite.expr.ast import lit


def test_folding_keeps_few_texts_however_many_constants_there_were() -> None:
    for number in range(2 * fold.MOST_TEXTS):
        folded = fold.folded(lit(f"text {number}") == lit("text 7"))
        assert folded.params[1] is (number == 7)
    assert fold._texts.texts <= fold.MOST_TEXTS + 2
