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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick failures first."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
