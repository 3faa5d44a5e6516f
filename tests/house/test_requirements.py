"""Each list of exact versions is complete: what a package asks for stands beside it, or in the lists that come before.

`make` installs every list, so that a package in the wrong one would be missed by nobody there, and by everybody who installs the
runtime alone.
"""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
# What may be asked for that no list has: it comes with Python, or with the tools that read it.
ELSEWHERE = {"pip", "setuptools"}


def listed(name: str) -> set[str]:
    """The packages of a list, without those of the lists that it includes."""
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()
    return {canonicalize_name(found[1]) for line in lines if (found := re.match(r"([\w.-]+)==", line))}


def asked_for(package: str) -> set[str]:
    needs = map(Requirement, distribution(package).requires or ())
    return {
        canonicalize_name(need.name) for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})
    }


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("runtime", ()),
        ("build", ("runtime",)),
        ("spark", ("runtime",)),
        ("server", ("runtime",)),
        ("notebook", ("runtime",)),
        ("dev", ("runtime", "build", "spark", "server", "notebook")),
    ],
)
def test_list_has_what_its_packages_ask_for(name: str, before: tuple[str, ...]) -> None:
    known = set().union(listed(name), *map(listed, before)) | ELSEWHERE
    missing = {package: asked_for(package) - known for package in listed(name)}
    assert {package: names for package, names in missing.items() if names} == {}


def test_runtime_has_what_the_package_asks_for() -> None:
    assert asked_for("tektite") <= listed("runtime")
