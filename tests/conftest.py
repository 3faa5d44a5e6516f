"""How the tests run: Hypothesis profiles, and slow tests last."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# The first example may wait for a kernel to compile, so no profile has a deadline or minds a slow start.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **_PATIENT)
settings.register_profile("nightly", max_examples=2000, print_blob=True, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick failures first. With several processes, the tests of a file run in one of them, and those on Spark in one as well:
    each session takes a Java of its own. That one begins with them, because together they take longest; a lone process ends
    with them.
    """
    many = "PYTEST_XDIST_WORKER" in os.environ
    ranked = []
    for item in items:
        slow = item.get_closest_marker("slow") is not None
        spark = "spark" in item.path.relative_to(item.config.rootpath).parts[:2]
        item.add_marker(pytest.mark.xdist_group("spark" if spark else f"{item.path.name}{' slow' if slow else ''}"))
        ranked.append((spark != many, slow))
    items[:] = [item for _, item in sorted(zip(ranked, items, strict=True), key=lambda pair: pair[0])]
