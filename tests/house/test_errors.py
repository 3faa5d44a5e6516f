"""Errors: one base, the fault in the class, and a view's name that survives a trip to another process."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from tektite import errors


@pytest.mark.parametrize(
    "kind",
    [errors.IncorrectError, errors.NotFoundError, errors.ConflictError, errors.FaultError, errors.UnsupportedError],
)
def test_every_error_is_a_tektite_error(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.TektiteError)
    assert str(kind("what was found")) == "what was found"


def test_incorrect_input_is_a_value_error_too() -> None:
    assert issubclass(errors.IncorrectError, ValueError)


def test_a_fault_names_its_view_in_every_process() -> None:
    error = errors.FaultError("division by zero", view="ratios")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.view, str(copy)) == ("ratios", "view 'ratios': division by zero")


def test_every_code_of_an_error_is_on_the_reference_page() -> None:
    root = Path(errors.__file__).parent
    page = (root.parent / "docs" / "reference.md").read_text()
    declared = r"^class \w+\([^\n]*(?:Error|Conflict)\):\n(?:(?!^class ).*\n)*?    code = \"([a-z-]+)\""
    codes = {code for file in root.rglob("*.py") for code in re.findall(declared, file.read_text(), re.MULTILINE)}
    assert {"not-found", "history-gone", "permission-denied", "connection-lost"} <= codes
    assert not [code for code in codes if f"`{code}`" not in page]
