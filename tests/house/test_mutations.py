"""The tests can fail: each rule, broken on purpose in `mutations/`, is caught by a check that passes when it holds."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import pytest

import tektite as tk
from tests.house import mutations
from tests.house.mutations.fault import Fault

LAYERS = [module.name for module in pkgutil.iter_modules(mutations.__path__) if module.name != "fault"]
FAULTS: list[Fault] = [
    fault for layer in LAYERS for fault in importlib.import_module(f"tests.house.mutations.{layer}").FAULTS
]
CHECKS = list(dict.fromkeys(fault.check for fault in FAULTS))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_check_passes(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.what}: {fault.check.__name__}")
def test_the_fault_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.apply(monkeypatch)
    with pytest.raises((AssertionError, tk.TektiteError, KeyError, pytest.fail.Exception)):
        fault.check()


def test_there_are_faults_in_every_layer() -> None:
    assert len(FAULTS) >= 60 and len(LAYERS) == 11
