"""What sums and averages of floats have to be: the exact result, rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

LARGEST = 1.7976931348623157e308
LEAST = 5e-324

ODD = [0.0, -0.0, LEAST, -LEAST, 2.2250738585072014e-308, 2.225073858507201e-308, 1.0, -1.0, 0.1, 1e16, 1e308, -1e308,
       LARGEST, -LARGEST, 2.0**970, -(2.0**970), 2.0**-1022, 2.0**53, 2.0**-53, math.inf, -math.inf, math.nan]  # fmt: skip

finite = st.floats(allow_nan=False, allow_infinity=False)
scaled = st.builds(math.ldexp, st.floats(-1, 1), st.integers(-1080, 1020))
anything = st.one_of(st.none(), finite, scaled, st.sampled_from(ODD))


def rounded(exact: Fraction) -> float:
    """The double nearest to a fraction; infinite where there is none so large."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def expected(values: Sequence[float | None]) -> tuple[int, float | None, float | None]:
    """How many values are not NULL, their sum and their mean."""
    present = [x for x in values if x is not None]
    if not present:
        return 0, None, None
    if not all(map(math.isfinite, present)):
        total = sum(x for x in present if not math.isfinite(x))
        return len(present), total, total
    exact = sum(map(Fraction, present), Fraction(0))
    return len(present), rounded(exact), rounded(exact / len(present))


def same(a: float | None, b: float | None) -> bool:
    """Whether two results are the same bits, or both NULL or NaN."""
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return repr(a) == repr(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)
